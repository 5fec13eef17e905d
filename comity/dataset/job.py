"""Shared parts of the jobs over whole datasets: how they are run, the files they read, and which pages were fetched again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from comity.dataset.files.formats import Reader, open_reader
from comity.dataset.passes import Note, Outcome, Sinks, run
from comity.dataset.permissions.expiry import NEVER_RECRAWLED, Fetches, Recrawled
from comity.dataset.permissions.terms import CURRENT
from comity.dataset.records import DatasetError, Record
from comity.dataset.tag_sources import TagSource


class JobOptions(NamedTuple):
    """The way in which a job is run."""

    workers: int | None = None  # None: as many as are of use
    progress: Callable[[int], object] = lambda _: None  # told how many octets have been read
    removed: Callable[[Note], object] = lambda _: None  # told of each record that goes: its `url`, `why` and `because`


class FetchPass(NamedTuple):
    """A pass that finds when each page was fetched last."""

    fields: Sequence[str] | None = ("url", "final_url", "fetched_at")

    def __call__(self, records: list[Record]) -> Outcome:
        fetches = Fetches()
        for record in records:
            fetches.note(record)
        return Outcome([], fetches)


def recrawled(readers: Sequence[Reader], options: JobOptions, tags: TagSource, uses: Iterable[str] = ()) -> Recrawled:
    """The pages of these files that were fetched more than once, where anything depends on it."""
    may_end = tags.fields is None or any(reader.may_mention("until_recrawled", tags.fields) for reader in readers)
    if CURRENT.isdisjoint(uses) and not may_end:
        return NEVER_RECRAWLED
    fetches = Fetches()
    run(FetchPass(), readers, Sinks(fetches.merge, progress=options.progress), workers=options.workers)
    return fetches.recrawled()


def fields_with_tag(tags: TagSource, *fields: str) -> tuple[str, ...] | None:
    """The tag, of which page the record is, and these fields; None: all."""
    return None if tags.fields is None else ("url", "final_url", *tags.fields, *fields)


def open_readers(paths: Sequence[Path]) -> list[Reader]:
    """DatasetError where a file is among them twice, by whatever names."""
    readers = [open_reader(path) for path in paths]
    if len(files_of(paths)) < len(paths):
        twice = next(path for number, path in enumerate(paths) if first_of([path], files_of(paths[:number])))
        raise DatasetError(f"{twice} is given twice")
    return readers


File = tuple[int, int]  # the same by whatever name


def files_of(paths: Iterable[Path]) -> set[File]:
    return {(stat.st_dev, stat.st_ino) for stat in map(Path.stat, paths)}


def first_of(paths: Iterable[Path], files: set[File]) -> Path | None:
    """The first of these places where one of these files stands."""
    return next((path for path in paths if path.exists() and not files.isdisjoint(files_of([path]))), None)
