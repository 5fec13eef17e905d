"""Passes over all records of some files, in several processes of one machine, or by an engine on several machines.

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
4. No more than one part a process waits, whether for a process or for those before it: that bounds memory, however slow one
   part is. Where columns go from file to file, or files are small, nothing is gained by handing parts on, and all is done here.
5. A folder of files is written by the processes themselves, a file each (comity.dataset.export.folder_export): each runs a pass
   over one file, and nothing but what was found out comes back.

Where a process is killed (want of memory, mostly), its part goes to another one; where that happens again and again, the pass
ends with an error, and the writer leaves the output as it was. Where this process is killed, the others end with it; Ctrl-C is
for this one alone, which ends them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol, cast

from comity.dataset.execution.executors import PROCESSES, in_order, usable_cores
from comity.dataset.files.formats import Part, Reader, Writer
from comity.dataset.files.gc_pause import gc_paused
from comity.dataset.records import Record, Unreadable

SMALL = (
    16 * 2**20
)  # octets: files that together have fewer are done before other processes have started
WHOLE = "whole"  # position of a part that is all of its file

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
        """Do the work of a batch. `batch`: a pyarrow.RecordBatch. `number`: of its first row in the file."""


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


def run(
    work: Work,
    readers: Sequence[Reader],
    sinks: Sinks,
    *,
    writer: Writer | None = None,
    workers: int | None = None,
    executor: str = PROCESSES,
) -> None:
    """One pass. `writer` is entered. `workers`: processes; 1: this one alone; None: as many as there are cores, where that is
    faster: not for small files, nor where columns go from file to file, which costs less than handing them on.

    `executor`: one of EXECUTORS. The processes of an engine read whole files by themselves, where nothing has to be written.
    DatasetError, whatever of it has been written: where a file cannot be read, or a process was killed."""
    task = _Task(
        work,
        tuple(readers),
        writer.encode if writer else None,
        getattr(writer, "encode_columns", None),
    )
    if workers is None and executor == PROCESSES:
        is_by_columns = getattr(writer, "takes_columns", False) and all(
            map(task.by_columns, readers)
        )
        workers = 1 if is_small(readers) or is_by_columns else usable_cores()
    by_file = executor != PROCESSES and not writer and len(readers) > 1
    parts: deque[Numbered] = deque()  # of which the outputs are to come
    outputs = in_order(
        task, _noted(_files(readers) if by_file else _parts(readers), parts), executor, workers
    )
    with closing(outputs):
        for output in outputs:
            number, part = parts.popleft()
            for encoded in output.encoded:
                assert writer
                writer.write(encoded)
            for result in output.results:
                sinks.result(result)
            sinks.notes(output.notes)
            for unreadable in output.unreadable:
                sinks.unreadable(Unread(readers[number], unreadable))
            sinks.progress(part.octets)


def is_small(readers: Iterable[Reader]) -> bool:
    return sum(reader.size for reader in readers) < SMALL


Numbered = tuple[int, Part]  # number of the reader


def _parts(readers: Iterable[Reader]) -> Iterator[Numbered]:
    return ((number, part) for number, reader in enumerate(readers) for part in reader.parts())


def _files(readers: Iterable[Reader]) -> Iterator[Numbered]:
    return ((number, Part(WHOLE, reader.size)) for number, reader in enumerate(readers))


def _noted(parts: Iterable[Numbered], pending: deque[Numbered]) -> Iterator[Numbered]:
    for number, part in parts:
        pending.append((number, part._replace(position=None)))
        yield number, part


class _Task(NamedTuple):
    work: Work
    readers: tuple[Reader, ...]
    encode: Callable[[Sequence[Record]], Any] | None
    encode_columns: Callable[[Any], Any] | None

    def __call__(self, task: Numbered) -> PartOutput:
        number, part = task
        if part.position != WHOLE:
            return self.done(number, part)
        file_output = PartOutput([], [], [], [])
        for file_part in self.readers[number].parts():
            output = self.done(number, file_part)
            file_output.notes.extend(output.notes)
            file_output.unreadable.extend(output.unreadable)
            for result in output.results:
                if file_output.results:
                    file_output.results[0].merge(result)
                else:
                    file_output.results.append(result)
        return file_output

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
                yield (
                    Outcome([], None, unreadable=[batch])
                    if isinstance(batch, Unreadable)
                    else work.columns(batch, row)
                )
            return
        for batch in reader.read(part, self.work.fields):
            outcome = self.work([record for record in batch if not isinstance(record, Unreadable)])
            unreadable = [record for record in batch if isinstance(record, Unreadable)]
            yield (
                outcome._replace(unreadable=[*unreadable, *outcome.unreadable])
                if unreadable
                else outcome
            )
