"""Shared parts of the jobs over whole datasets: options, input files, and recrawled pages."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

from comity.dataset.execution.executors import PROCESSES, Do, in_order, usable_cores
from comity.dataset.files.folders import open_dataset
from comity.dataset.files.formats import Reader, open_reader
from comity.dataset.files.places import is_local, is_within
from comity.dataset.passes import Note, Outcome, Sinks, is_small, run
from comity.dataset.permissions.expiry import NEVER_RECRAWLED, Fetches, Recrawled
from comity.dataset.permissions.terms import CURRENT
from comity.dataset.records import FETCH, PAGE_URLS, DatasetError, Record
from comity.dataset.sidecar import Sidecar
from comity.dataset.tags.sources import TagSource

# A function: the URL and the time of each copy of a policy file -> the name of its source, or None
# if it is unknown
Sources = Callable[[Sequence[tuple[str, datetime]]], Sequence[str | None]]


class JobOptions(NamedTuple):
    """The options of a job."""

    workers: int | None = None
    """The number of processes. None: as many as are useful."""
    progress: Callable[[int], object] = lambda _: None
    """Called with the number of octets read since its last call."""
    removed: Callable[[Note], object] = lambda _: None
    """Called for each removed record with a note, which has `url`, `why` and `because`."""
    executor: str = PROCESSES
    """One of EXECUTORS."""
    complain: Callable[[str], object] = lambda _: None
    """Called with a warning. The job goes on."""
    evidence: Sources | None = None
    """None: write no evidence files beside the output (comity.dataset.evidence). Otherwise called
    with copies of policy files, for the names of their sources. pyarrow must be installed."""
    keep: Callable[[IO[bytes]], Callable[[str, datetime], object]] | None = None
    """None: do not keep the copies of policy files. Otherwise called with a new file, for a
    function that writes the copy of a URL and a time into it."""
    run: Mapping[str, Any] | None = None
    """The facts about the run for the manifest (comity.dataset.evidence.run). None: unknown."""


# `ahead` of `in_order` for tasks on files. It is high because the results for files take little
# memory, and because a large file must not stop the other slots.
FILES_AHEAD = 1000


class FileTask(Protocol):
    """A task on one file. It can be pickled."""

    @property
    def reader(self) -> Reader:
        """The reader of the file."""


Task = TypeVar("Task", bound=FileTask)
R_co = TypeVar("R_co", covariant=True)


def each_file(
    do: Do[Task, R_co], tasks: Sequence[Task], options: JobOptions
) -> Generator[R_co, None, None]:
    """Yield the result of `do` for each task, in the order of the tasks.

    One process processes a whole file. `options.workers` None: one process for a single file or for
    small files, else a process for each core."""
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
    """A pass that finds the last fetch of each page."""

    fields: Sequence[str] | None = (*PAGE_URLS, *FETCH)
    """The fields to read. None: all fields."""

    def __call__(self, records: list[Record]) -> Outcome:
        fetches = Fetches()
        for record in records:
            fetches.note(record)
        return Outcome([], fetches)


def find_recrawled(
    readers: Sequence[Reader],
    options: JobOptions,
    tags: TagSource,
    uses: Iterable[str] = (),
    *,
    last_fetch: bool = False,
) -> Recrawled:
    """Return the pages of these files that were fetched more than once.

    `uses` and `last_fetch`: as in Terms. If neither these arguments nor the tags depend on the last
    fetch of a page, return no pages. There is no pass over all records then.

    DatasetError: a file cannot be read."""
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
    return fetches.recrawled_pages()


def fields_with_tag(tags: TagSource, *fields: str) -> tuple[str, ...] | None:
    """Return the fields to read: the URLs of the page, those with the tag, and `fields`.

    None: all fields must be read, because the tag depends on all of them."""
    return None if tags.fields is None else ("url", "final_url", *tags.fields, *fields)


def run_facts(options: JobOptions) -> dict[str, Any]:
    """Return the member of a manifest that says how the run can be repeated. {}: unknown."""
    return {"comity:run": dict(options.run)} if options.run else {}


def open_readers(paths: Sequence[Path]) -> list[Reader]:
    """Open readers for these files, and for the files in these folders.

    DatasetError: a file cannot be read, or is given twice, even if its second name is a link."""
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
    """Return the paths of all input files, and of the sidecar if `tags` is one."""
    return [
        *(reader.path for reader in readers),
        *([tags.path] if isinstance(tags, Sidecar) else ()),
    ]


def check_outside(output: Path, inputs: Iterable[Path]) -> None:
    """Raise DatasetError if an output is in an input folder.

    The next job that reads the folder would read the output too."""
    for path in inputs:
        if path.is_dir() and is_within(output, path):
            raise DatasetError(
                f"{output} would be a part of {path}, which is read from: write it elsewhere"
            )


# The identity of a file, which all names of the file share: device and inode, or the URL in a store
File = tuple[int, int] | str


def files_of(paths: Iterable[Path]) -> set[File]:
    """Return the identities of files. The files must exist."""
    return {_file_of(path) for path in paths}


def _file_of(path: Path) -> File:
    if not is_local(path):
        return str(path)
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def first_of(paths: Iterable[Path], files: set[File]) -> Path | None:
    """Return the first path in `paths` that is a name of a file in `files`. None if no path is."""
    return next(
        (path for path in paths if path.exists() and not files.isdisjoint(files_of([path]))), None
    )
