"""The tasks of the language server on one document.

A small document is processed in this process, a large one in a worker process. A typed key must not
wait, and to find the problems of 500 KiB takes most of a second.

Workers().ask(task, snapshot, ...)    run a task, and return its result
TASKS                                 the tasks, by name"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.features import (
    actions,
    diagnostics,
    formatting,
    hints,
    hover,
    names,
    symbols,
    tokens,
)
from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.samples import samples, spread_evenly
from comity.authoring.problems import Problem

SMALL = 16 * 1024  # the maximum characters of a document that is processed in this process
WORKERS = 2  # the number of worker processes
# The maximum seconds for one task. After that, all workers are ended. The next task starts others.
PATIENCE = 60.0


class Snapshot(NamedTuple):
    """A document at one moment, in values that another process can receive.

    Attributes:
        uri: The URI of the document.
        text: The text.
        encoding: The unit of columns in the editor, a `PositionEncodingKind`.
        folder: The folder of the site. "" means that it is not known.
    """

    uri: str
    text: str
    encoding: str
    folder: str = ""


@lru_cache(maxsize=4)
def outline_of(snapshot: Snapshot) -> FileOutline:
    return FileOutline(Document(snapshot.uri, snapshot.text, encoding=snapshot.encoding))


def _problems_in_folder(snapshot: Snapshot) -> list[Problem]:
    folder = Path(snapshot.folder) if snapshot.folder else None
    return diagnostics.problems_in(outline_of(snapshot).document, folder)


def _lenses(snapshot: Snapshot) -> Any:
    site = samples(Path(snapshot.folder) if snapshot.folder else None)
    return hints.lenses(outline_of(snapshot), spread_evenly(site.targets))


@lru_cache(maxsize=8)
def _other_formats(
    snapshot: Snapshot, others: tuple[tuple[str, str], ...], only: tuple[str, ...] | None
) -> Any:
    """Return the actions that state the intents of a document in other formats.

    The actions are cached, because editors ask for them after each move of the cursor.
    `others`: paths and texts of the other files of the site. `only`: the kinds of action that the
    editor wants; None means all."""
    folder = Path(snapshot.folder).as_uri()
    return actions.other_formats(outline_of(snapshot).document, folder, dict(others), only)


TASKS: dict[str, Callable[..., Any]] = {
    "problems": lambda snapshot: diagnostics.problems_in(outline_of(snapshot).document),
    "problems in folder": _problems_in_folder,
    "diagnostics": lambda snapshot, problems: diagnostics.diagnostics(
        outline_of(snapshot).document, problems
    ),
    "symbols": lambda snapshot: symbols.symbols(outline_of(snapshot)),
    "folding": lambda snapshot: symbols.folding(outline_of(snapshot)),
    "tokens": lambda snapshot, *lines: tokens.tokens(outline_of(snapshot), *lines),
    "formatting": lambda snapshot, *options: formatting.formatting(
        outline_of(snapshot), tab_size=options[0], spaces=options[1]
    ),
    "hints": lambda snapshot, problems, *lines: hints.hints(outline_of(snapshot), problems, *lines),
    "lenses": _lenses,
    "fixes": lambda snapshot, problems, selection, only: actions.fixes(
        outline_of(snapshot).document, problems, selection, only
    ),
    "conversion": lambda snapshot, only: actions.conversion(outline_of(snapshot).document, only),
    "other formats": lambda snapshot, others, only: _other_formats(snapshot, others, only),
    "other form": lambda snapshot: actions.other_form(outline_of(snapshot).document),
    "hover": lambda snapshot, position, problems: hover.hover(
        outline_of(snapshot), position, problems
    ),
    "locations": lambda snapshot, position, definitions_only, with_definitions: names.locations(
        outline_of(snapshot),
        position,
        definitions_only=definitions_only,
        with_definitions=with_definitions,
    ),
    "rename": lambda snapshot, position, name: names.rename(outline_of(snapshot), position, name),
    "range of a name": lambda snapshot, position: names.name_range(outline_of(snapshot), position),
    "completion": lambda snapshot, position, has_snippets: _completion(
        snapshot, position, has_snippets=has_snippets
    ),
}


# Tasks that always run in another process, even for small documents.
SLOW = ("problems in folder", "other formats")


def _completion(snapshot: Snapshot, position: Any, *, has_snippets: bool) -> Any:
    from comity.authoring.language_server.features.completion import completion

    site = samples(Path(snapshot.folder) if snapshot.folder else None)
    return completion(outline_of(snapshot), position, site, has_snippets=has_snippets)


def run(task: str, snapshot: Snapshot, arguments: tuple[Any, ...]) -> Any:
    """Run a task of TASKS in this process."""
    return TASKS[task](snapshot, *arguments)


def _begin() -> None:
    """Prepare a worker: lower its priority, and make it end when the server ends."""
    with suppress(OSError):
        os.nice(10)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


class Workers:
    """Worker processes. They start with the first task on a large document."""

    def __init__(self, count: int = WORKERS) -> None:
        self._count = count
        self._pool: ProcessPoolExecutor | None = None

    async def ask(self, task: str, snapshot: Snapshot, *arguments: Any) -> Any:
        """Run a task, and return its result.

        If a worker ends meanwhile, new workers start and the task runs once more.
        RuntimeError: a new worker ended, too.
        TimeoutError: the task takes longer than PATIENCE. The workers are ended."""
        if len(snapshot.text) <= SMALL and task not in SLOW:
            return run(task, snapshot, arguments)
        loop = asyncio.get_running_loop()
        for _ in range(2):
            pool = self._pool = self._pool or ProcessPoolExecutor(
                self._count, get_context("spawn"), initializer=_begin
            )
            try:
                return await asyncio.wait_for(
                    loop.run_in_executor(pool, run, task, snapshot, arguments), PATIENCE
                )
            except (BrokenProcessPool, TimeoutError) as error:
                self.close()
                if isinstance(error, TimeoutError):
                    raise
        raise RuntimeError("workers end as soon as they begin")

    def close(self) -> None:
        """End the workers. The next task starts new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            processes = list((getattr(pool, "_processes", None) or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
