"""Shared parts of the jobs over whole datasets: how they are run, the files they read, and which pages were fetched again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from comity.dataset.execution.executors import PROCESSES, Do, in_order, usable_cores
from comity.dataset.files.folders import open_dataset
from comity.dataset.files.formats import Reader, open_reader
from comity.dataset.files.places import is_local, is_within
from comity.dataset.passes import Note, Outcome, Sinks, is_small, run
from comity.dataset.permissions.expiry import NEVER_RECRAWLED, Fetches, Recrawled
from comity.dataset.permissions.terms import CURRENT
from comity.dataset.records import DatasetError, Record
from comity.dataset.sidecar import Sidecar
from comity.dataset.tags.sources import TagSource


class JobOptions(NamedTuple):
    """The way in which a job is run."""

    workers: int | None = None  # None: as many as are of use
    progress: Callable[[int], object] = lambda _: None  # told how many octets have been read
    removed: Callable[[Note], object] = lambda _: (
        None
    )  # told of each record that goes: its `url`, `why` and `because`
    executor: str = PROCESSES  # one of EXECUTORS
    complain: Callable[[str], object] = lambda _: None  # told what is wrong, and ends nothing


FILES_AHEAD = 1000  # tasks a place that are given out: what comes back of a file is small, and files are of different sizes


class FileTask(Protocol):
    """A file, and what is to be done with it. Picklable."""

    @property
    def reader(self) -> Reader: ...


Task = TypeVar("Task", bound=FileTask)
R_co = TypeVar("R_co", covariant=True)


def each_file(
    do: Do[Task, R_co], tasks: Sequence[Task], options: JobOptions
) -> Generator[R_co, None, None]:
    """Yield what `do` gives for each file, in their order. A file is done by one process, from its reading to its writing."""
    workers = options.workers
    if workers is None and options.executor == PROCESSES:
        is_alone = len(tasks) == 1 or is_small(task.reader for task in tasks)
        workers = 1 if is_alone else min(usable_cores(), len(tasks))
    outcomes = in_order(do, tasks, options.executor, workers, ahead=FILES_AHEAD)
    with closing(outcomes):
        for task, outcome in zip(tasks, outcomes, strict=True):
            options.progress(task.reader.size)
            yield outcome


class _Mentions(NamedTuple):
    key: str
    tags: tuple[str, ...]

    def __call__(self, task: _File) -> bool:
        return task.reader.may_mention(self.key, self.tags)


class _File(NamedTuple):
    reader: Reader


def _may_mention(
    readers: Sequence[Reader], key: str, tags: tuple[str, ...], options: JobOptions
) -> bool:
    workers = 1 if options.executor == PROCESSES and is_small(readers) else options.workers
    options = options._replace(workers=workers, progress=lambda _: None)
    mentions = each_file(_Mentions(key, tags), [_File(reader) for reader in readers], options)
    with closing(mentions):
        return any(mentions)


class FetchPass(NamedTuple):
    """A pass that finds when each page was fetched last."""

    fields: Sequence[str] | None = ("url", "final_url", "fetched_at")

    def __call__(self, records: list[Record]) -> Outcome:
        fetches = Fetches()
        for record in records:
            fetches.note(record)
        return Outcome([], fetches)


def recrawled(
    readers: Sequence[Reader],
    options: JobOptions,
    tags: TagSource,
    uses: Iterable[str] = (),
    *,
    last_fetch: bool = False,
) -> Recrawled:
    """Return the pages of these files that were fetched more than once, if anything depends on it.

    `last_fetch`: as in Terms."""
    if (
        not last_fetch
        and CURRENT.isdisjoint(uses)
        and tags.fields is not None
        and not _may_mention(readers, "until_recrawled", tags.fields, options)
    ):
        return NEVER_RECRAWLED
    fetches = Fetches()
    sinks = Sinks(fetches.merge, progress=options.progress)
    run(FetchPass(), readers, sinks, workers=options.workers, executor=options.executor)
    return fetches.recrawled()


def fields_with_tag(tags: TagSource, *fields: str) -> tuple[str, ...] | None:
    """The tag, of which page the record is, and these fields; None: all."""
    return None if tags.fields is None else ("url", "final_url", *tags.fields, *fields)


def open_readers(paths: Sequence[Path]) -> list[Reader]:
    """Open the readers of these files, and of the files in these folders.

    DatasetError where a file is among them twice, by whatever names."""
    files = [file for path in paths for file in open_dataset(path).files]
    readers = [open_reader(file) for file in files]
    if len(files_of(files)) < len(files):
        seen: set[File] = set()
        for file in files:
            if first_of([file], seen):
                raise DatasetError(f"{file} is given twice")
            seen |= files_of([file])
    return readers


def paths_read(readers: Iterable[Reader], tags: TagSource) -> list[Path]:
    """Return the paths of all that is read: of the records, and of the file that has their tags."""
    return [
        *(reader.path for reader in readers),
        *([tags.path] if isinstance(tags, Sidecar) else ()),
    ]


def check_outside(output: Path, inputs: Iterable[Path]) -> None:
    """DatasetError where an output would stand in a folder that is read: whoever reads it next would read that too."""
    for path in inputs:
        if path.is_dir() and is_within(output, path):
            raise DatasetError(
                f"{output} would be a part of {path}, which is read from: write it elsewhere"
            )


File = tuple[int, int] | str  # the same by whatever name


def files_of(paths: Iterable[Path]) -> set[File]:
    return {_file_of(path) for path in paths}


def _file_of(path: Path) -> File:
    if not is_local(path):
        return str(path)
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def first_of(paths: Iterable[Path], files: set[File]) -> Path | None:
    """The first of these places where one of these files stands."""
    return next(
        (path for path in paths if path.exists() and not files.isdisjoint(files_of([path]))), None
    )
