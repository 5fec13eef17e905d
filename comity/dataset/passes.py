"""Passes over all records of some files, in several processes of one machine.

run(work, readers)                  what `work` made of each batch, in the order of the records
run(work, readers, writer)          and the records that it gives are written

`work` is a pure function of a batch and can be pickled. What is held at a time is a few parts a process, however large the files.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from multiprocessing import get_context, parent_process
from typing import Any, NamedTuple, Protocol

from comity.dataset.files import Part, Reader, Writer
from comity.dataset.records import DatasetError, Record, Unreadable

SMALL = 16 * 2**20  # octets: files that together have fewer are done before other processes have started
AHEAD = 2  # parts a process that are asked for before they are needed

Found = Any  # what a pass finds out: it has `merge(other)`
Note = dict[str, Any]  # a line of a log


class Outcome(NamedTuple):
    """What a pass made of some records. It can be pickled."""

    records: list[Record]  # those to be written
    found: Found
    notes: list[Note] = []  # noqa: RUF012  # never written to


class Work(Protocol):
    """A pass. It can be pickled: each process has a copy, and nothing of it comes back but the outcome."""

    @property
    def fields(self) -> Sequence[str] | None:
        """Those that it reads; None: all."""

    def __call__(self, records: list[Record]) -> Outcome: ...


class Unread(NamedTuple):
    """A record that could not be read, and of which file."""

    reader: Reader
    unreadable: Unreadable


class Made(NamedTuple):
    """Of one part."""

    encoded: list[Any]  # by the writer's `encode`
    found: list[Found]
    notes: list[Note]
    unreadable: list[Unreadable]


class Sinks(NamedTuple):
    """What takes that up which comes out beside the records."""

    found: Callable[[Found], object]
    notes: Callable[[list[Note]], object] = lambda _: None
    unreadable: Callable[[Unread], object] = lambda _: None
    progress: Callable[[int], object] = lambda _: None  # octets that are done


def usable_cores() -> int:
    return len(os.sched_getaffinity(0))


def run(work: Work, readers: Sequence[Reader], sinks: Sinks, *, writer: Writer | None = None, workers: int | None = None) -> None:
    """One pass. `writer` is entered. `workers`: processes, None: as many as there are cores for large files; 1: this one alone.

    DatasetError, whatever of it has been written: where a file cannot be read, or a process was killed."""
    task = _Task(work, tuple(readers), writer.encode if writer else None)
    if workers is None:
        workers = 1 if sum(reader.size for reader in readers) < SMALL else usable_cores()
    made = (_alone if workers == 1 else _shared(workers))(task, _parts(readers))
    with closing(made):
        for number, part, done in made:
            for encoded in done.encoded:
                assert writer
                writer.write(encoded)
            for found in done.found:
                sinks.found(found)
            sinks.notes(done.notes)
            for unreadable in done.unreadable:
                sinks.unreadable(Unread(readers[number], unreadable))
            sinks.progress(part.octets)


Numbered = tuple[int, Part]  # number of the reader


def _parts(readers: Iterable[Reader]) -> Iterator[Numbered]:
    return ((number, part) for number, reader in enumerate(readers) for part in reader.parts())


class _Task(NamedTuple):
    work: Work
    readers: tuple[Reader, ...]
    encode: Callable[[Sequence[Record]], Any] | None

    def done(self, number: int, part: Part) -> Made:
        made = Made([], [], [], [])
        for batch in self.readers[number].read(part, self.work.fields):
            made.unreadable.extend(record for record in batch if isinstance(record, Unreadable))
            outcome = self.work([record for record in batch if not isinstance(record, Unreadable)])
            if self.encode and outcome.records:
                made.encoded.append(self.encode(outcome.records))
            made.found.append(outcome.found)
            made.notes.extend(outcome.notes)
        return made


def _alone(task: _Task, parts: Iterator[Numbered]) -> Generator[tuple[int, Part, Made], None, None]:
    for number, part in parts:
        yield number, part, task.done(number, part)


def _shared(workers: int) -> Callable[[_Task, Iterator[Numbered]], Generator[tuple[int, Part, Made], None, None]]:
    def made(task: _Task, parts: Iterator[Numbered]) -> Generator[tuple[int, Part, Made], None, None]:
        # Not "fork": a copy of a process with threads (pyarrow has some) may wait for ever for a lock that one of them held.
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (task,))
        waiting: deque[tuple[int, Part, Future[Made]]] = deque()
        try:
            for number, part in parts:
                waiting.append((number, part, _submitted(pool, number, part)))
                if len(waiting) > workers * AHEAD:
                    yield _next(waiting)
            while waiting:
                yield _next(waiting)
        except BrokenProcessPool:
            raise DatasetError(
                f"a process ended before its work was done, as when memory runs out: try --workers {max(1, workers // 2)}"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)

    return made


def _submitted(pool: ProcessPoolExecutor, number: int, part: Part) -> Future[Made]:
    """The processes start here: Ctrl-C is for this one alone, which ends them."""
    if threading.current_thread() is not threading.main_thread():
        return pool.submit(_do, number, part)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_do, number, part)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _next(waiting: deque[tuple[int, Part, Future[Made]]]) -> tuple[int, Part, Made]:
    number, part, future = waiting.popleft()
    return number, part, future.result()


_task: _Task  # of this process


def _begin(task: _Task) -> None:
    """In a process that has just started."""
    global _task
    _task = task
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Or it would wait for work for ever once the process that gives it is killed."""
    parent = parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _do(number: int, part: Part) -> Made:
    return _task.done(number, part)
