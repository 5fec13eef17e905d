"""Passes over all records of some files, in several processes of one machine.

run(work, readers)                  what `work` made of each batch, in the order of the records
run(work, readers, writer)          and the records that it gives are written

How it works. A dataset may be larger than memory, and to decode, judge and encode records takes far longer than to read. So:

1. A Reader finds the parts of its file: a few MB each, which begin and end with a record. This process only finds them, in the
   order of the files, while they are asked for.
2. A part goes to some process, which reads it, gives each batch of records to its copy of `work`, and encodes what comes out for
   the writer. `work` is a pure function of a batch, as far as anybody can see, and can be pickled: it may remember what it has
   found out, but no outcome may depend on which batches it saw before.
3. What was made of the parts comes back in the order in which they were given out. This process alone writes, and merges what was
   found out: so an output has the records in their order, and equal inputs give equal files, however many processes there are.
4. No more than AHEAD parts a process wait, whether for a process or for those before them: that bounds memory, however slow one
   part is. Where columns go from file to file, or files are small, nothing is gained by handing parts on, and all is done here.

Where a process is killed (want of memory, mostly), the pass ends with an error, and the writer leaves the output as it was. Where
this process is killed, the others end with it; Ctrl-C is for this one alone, which ends them."""

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
from typing import Any, NamedTuple, Protocol, cast

from comity.dataset.files.formats import Part, Reader, Writer
from comity.dataset.files.gc_pause import gc_paused
from comity.dataset.records import DatasetError, Record, Unreadable

SMALL = 16 * 2**20  # octets: files that together have fewer are done before other processes have started
AHEAD = 1  # parts a process that wait for it, or for their place in the output

Result = Any  # what a pass finds out: it has `merge(other)`
Note = dict[str, Any]  # a line of a log


class Outcome(NamedTuple):
    """The outcome of a pass over some records. It can be pickled."""

    records: Any  # those to be written: a list of Records; of `columns` what a Writer takes in `encode_columns`
    result: Result
    notes: Sequence[Note] = ()
    unreadable: Sequence[Unreadable] = ()


class Work(Protocol):
    """A pass. It can be pickled: each process has a copy, and nothing of it comes back but the outcome."""

    @property
    def fields(self) -> Sequence[str] | None:
        """The fields that it reads; None: all."""

    def __call__(self, records: list[Record]) -> Outcome: ...


class ColumnWork(Work, Protocol):
    """A pass that can also take columns where a Reader has them (`read_columns`), which is faster. The outcome is the same."""

    def columns(self, batch: Any, number: int) -> Outcome:
        """`batch`: a pyarrow.RecordBatch. `number`: of its first row in the file."""


class Unread(NamedTuple):
    """A record that could not be read, and of which file."""

    reader: Reader
    unreadable: Unreadable


class PartOutput(NamedTuple):
    """The output of one part."""

    encoded: list[Any]  # by the writer's `encode`
    results: list[Result]
    notes: list[Note]
    unreadable: list[Unreadable]


class Sinks(NamedTuple):
    """Takers of what comes out beside the records."""

    result: Callable[[Result], object]
    notes: Callable[[list[Note]], object] = lambda _: None
    unreadable: Callable[[Unread], object] = lambda _: None
    progress: Callable[[int], object] = lambda _: None  # octets that are done


def usable_cores() -> int:
    return len(os.sched_getaffinity(0))


def run(work: Work, readers: Sequence[Reader], sinks: Sinks, *, writer: Writer | None = None, workers: int | None = None) -> None:
    """One pass. `writer` is entered. `workers`: processes; 1: this one alone; None: as many as there are cores, where that is
    faster: not for small files, nor where columns go from file to file, which costs less than handing them on.

    DatasetError, whatever of it has been written: where a file cannot be read, or a process was killed."""
    task = _Task(work, tuple(readers), writer.encode if writer else None, getattr(writer, "encode_columns", None))
    if workers is None:
        is_small = sum(reader.size for reader in readers) < SMALL
        is_by_columns = getattr(writer, "takes_columns", False) and all(map(task.by_columns, readers))
        workers = 1 if is_small or is_by_columns else usable_cores()
    outputs = (_alone if workers == 1 else _shared(workers))(task, _parts(readers))
    with closing(outputs):
        for number, part, output in outputs:
            for encoded in output.encoded:
                assert writer
                writer.write(encoded)
            for result in output.results:
                sinks.result(result)
            sinks.notes(output.notes)
            for unreadable in output.unreadable:
                sinks.unreadable(Unread(readers[number], unreadable))
            sinks.progress(part.octets)


Numbered = tuple[int, Part]  # number of the reader


def _parts(readers: Iterable[Reader]) -> Iterator[Numbered]:
    return ((number, part) for number, reader in enumerate(readers) for part in reader.parts())


class _Task(NamedTuple):
    work: Work
    readers: tuple[Reader, ...]
    encode: Callable[[Sequence[Record]], Any] | None
    encode_columns: Callable[[Any], Any] | None

    @gc_paused()
    def done(self, number: int, part: Part) -> PartOutput:
        output = PartOutput([], [], [], [])
        for outcome in self._outcomes(self.readers[number], part):
            if self.encode and len(outcome.records):
                output.encoded.append(self._encoded(outcome.records, self.encode))
            if outcome.result is not None:
                output.results.append(outcome.result)
            output.notes.extend(outcome.notes)
            output.unreadable.extend(outcome.unreadable)
        return output

    def by_columns(self, reader: Reader) -> bool:
        return hasattr(reader, "read_columns") and hasattr(self.work, "columns")

    def _encoded(self, records: Any, encode: Callable[[Sequence[Record]], Any]) -> Any:
        if isinstance(records, list):
            return encode(records)
        assert self.encode_columns
        return self.encode_columns(records)

    def _outcomes(self, reader: Reader, part: Part) -> Iterator[Outcome]:
        if self.by_columns(reader):
            columnar: Any = reader
            work = cast(ColumnWork, self.work)
            for batch, row in columnar.read_columns(part, self.work.fields):
                yield Outcome([], None, unreadable=[batch]) if isinstance(batch, Unreadable) else work.columns(batch, row)
            return
        for batch in reader.read(part, self.work.fields):
            outcome = self.work([record for record in batch if not isinstance(record, Unreadable)])
            unreadable = [record for record in batch if isinstance(record, Unreadable)]
            yield outcome._replace(unreadable=[*unreadable, *outcome.unreadable]) if unreadable else outcome


def _alone(task: _Task, parts: Iterator[Numbered]) -> Generator[tuple[int, Part, PartOutput], None, None]:
    for number, part in parts:
        yield number, part, task.done(number, part)


def _shared(workers: int) -> Callable[[_Task, Iterator[Numbered]], Generator[tuple[int, Part, PartOutput], None, None]]:
    def outputs(task: _Task, parts: Iterator[Numbered]) -> Generator[tuple[int, Part, PartOutput], None, None]:
        # Not "fork": a copy of a process with threads (pyarrow has some) may wait for ever for a lock that one of them held.
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (task,))
        waiting: deque[tuple[int, Part, Future[PartOutput]]] = deque()
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

    return outputs


def _submitted(pool: ProcessPoolExecutor, number: int, part: Part) -> Future[PartOutput]:
    """The processes start here: Ctrl-C is for this one alone, which ends them."""
    if threading.current_thread() is not threading.main_thread():
        return pool.submit(_do, number, part)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_do, number, part)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _next(waiting: deque[tuple[int, Part, Future[PartOutput]]]) -> tuple[int, Part, PartOutput]:
    number, part, future = waiting.popleft()
    return number, part, future.result()


_task: _Task  # of this process


def _begin(task: _Task) -> None:
    """Begin the work of a process that has just started."""
    global _task
    _task = task
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End with the process that gives the work, or it would wait for ever once that is killed."""
    parent = parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _do(number: int, part: Part) -> PartOutput:
    return _task.done(number, part)
