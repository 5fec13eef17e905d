"""Captures of policy files for the option `--policies`: WARC files, folders, policy stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from comity.dataset.captures.captures import MAX_AGE, PolicyCaptures
from comity.dataset.captures.sources import CaptureSource, FileCapture, SourceEntry, sources_in
from comity.dataset.files.places import is_local, path_of
from comity.dataset.files.warc.records import Damage
from comity.dataset.records import DatasetError
from comity.gate.fetching.files import url_of
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from comity.policies import Agent, PolicyError

SQLITE = b"SQLite format 3\0"


def open_captures(
    arguments: Iterable[str | Path],
    *,
    agent: Agent,
    index: Path | None = None,
    max_age: timedelta = MAX_AGE,
    now: datetime | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> PolicyCaptures:
    """Open the captures at the paths or addresses that the operator has named.

    PolicyError, with what to do about it: a path cannot be read."""
    sources = [source for argument in arguments for source in _sources(_path(argument))]
    return PolicyCaptures.open(
        sources, agent=agent, index=index, max_age=max_age, now=now, progress=progress
    )


def _path(argument: str | Path) -> Path:
    try:
        return path_of(argument) if isinstance(argument, str) else argument
    except DatasetError as error:
        raise PolicyError(f"--policies {error}") from None


def _sources(path: Path) -> Iterator[CaptureSource]:
    try:
        is_store = is_local(path) and path.is_file() and _begins_with(path, SQLITE)
    except OSError as error:
        raise PolicyError(f"--policies {path}: it cannot be read: {error.strerror}") from None
    return iter([StoreSource(path)]) if is_store else sources_in(path)


def _begins_with(path: Path, octets: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(octets)) == octets


class StoreSource:
    """A policy store: the last copy of each file, and the reason if it cannot be fetched now."""

    def __init__(self, path: Path) -> None:
        """PolicyError: the file is not a policy store."""
        self.name = str(path.absolute())
        self.size = path.stat().st_size
        self._path = path
        with closing(PolicyStore(path)) as store:
            self.version = store.version()

    def read(self, start: int) -> Iterator[SourceEntry]:
        """Yield the captures. Offsets count origins, so reading continues at the origin `start`."""
        with closing(PolicyStore(self._path)) as store:
            for number, origin in islice(enumerate(store.origins()), start, None):
                try:
                    files = store.load(origin)
                except OSError as error:
                    yield SourceEntry(
                        number, number + 1, Damage(number, number + 1, f"{origin}: {error}")
                    )
                    continue
                for path, file in files.items():
                    yield from (
                        SourceEntry(number, number, capture)
                        for capture in _captures(url_of(origin, path), file)
                    )

    def read_at(self, offset: int) -> FileCapture | None:
        return None  # a store holds policy files only, no pages


def _captures(url: str, file: PolicyFile) -> Iterator[FileCapture]:
    if file.copy is not None and file.copy.fetched_at is not None:
        yield FileCapture(url, file.copy)
    failed_at = file.failure and (file.failure.fetched_at or file.failing_since)
    if file.failure is not None and failed_at:
        yield FileCapture(url, replace(file.failure, fetched_at=failed_at))
