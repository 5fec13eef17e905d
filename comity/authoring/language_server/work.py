"""Run the tasks of the language server, in this process or in a worker process.

A small document is processed in this process, a large one in a worker process. A typed key must not
wait, and to find the problems of 500 KiB takes most of a second.

    Workers().ask(hover_at, snapshot, position)    run a task, and return its result"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Concatenate, ParamSpec, TypeVar

from comity.authoring.language_server.tasks import (
    Snapshot,
    find_problems_in_folder,
    other_formats_of,
)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

SMALL = 16 * 1024  # the maximum characters of a document that is processed in this process
WORKERS = 2  # the number of worker processes
# The maximum seconds for one task. After that, all workers are ended. The next task starts others.
PATIENCE = 60.0
# Tasks that always run in another process, even for small documents.
SLOW: tuple[Callable[..., object], ...] = (find_problems_in_folder, other_formats_of)


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

    async def ask(
        self,
        task: Callable[Concatenate[Snapshot, Arguments], Result],
        snapshot: Snapshot,
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Run a task of tasks.py, and return its result.

        If a worker ends meanwhile, new workers start and the task runs once more.
        RuntimeError: a new worker ended, too.
        TimeoutError: the task takes longer than PATIENCE. The workers are ended."""
        if len(snapshot.text) <= SMALL and task not in SLOW:
            return task(snapshot, *arguments, **options)
        loop = asyncio.get_running_loop()
        run = partial(task, snapshot, *arguments, **options)
        for _ in range(2):
            pool = self._pool = self._pool or ProcessPoolExecutor(
                self._count, get_context("spawn"), initializer=_begin
            )
            try:
                return await asyncio.wait_for(loop.run_in_executor(pool, run), PATIENCE)
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
