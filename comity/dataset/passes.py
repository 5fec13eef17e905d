"""Passes over all records of some files, in processes of this machine or by an engine.

    run(work, readers, sinks)               pass the results of `work` to `sinks`, in their order
    run(work, readers, sinks, writer=...)   also write the records that `work` returns

A dataset may be larger than memory. To decode, judge and encode its records takes far longer than
to read its octets. Therefore:

1. A Reader finds the parts of its file. A part is a few MB of whole records. The main process finds
   the parts in the order of the files, each part only when it is needed, and does not decode them.
2. A process takes a part, reads it, gives each batch of records to its copy of `work`, and encodes
   the output for the writer. `work` must be picklable. It may cache, but its outcome for a batch
   must not depend on earlier batches.
3. The main process receives the outcomes in the order of the parts. It alone writes, and merges
   results. So the output has the records in the order of the input, and equal inputs give equal
   files for any number of processes.
4. About one part for each process is queued, in work, or finished and not yet written. This bounds
   the memory, even if one part is slow. If columns are copied from file to file, or files
   are small, more processes are not faster, and the main process does all the work.
5. If the output is a folder, each file of the output is written by one process
   (comity.dataset.export.folder_export). This process runs a pass over one input file, and returns
   only results to the main process.

If a process is killed, usually for lack of memory, another process repeats its part. If processes
are killed TRIES times for a part, the pass ends with an error, and the output is unchanged. If the
main process is killed, the other processes end too. Ctrl-C does not reach them: the main process
ends them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from comity.dataset.execution.executors import PROCESSES, in_order, usable_cores
from comity.dataset.files.formats import Part, Reader, Writer
from comity.dataset.records import Batch, Record, Unreadable
from comity.gc_pause import gc_paused

# Octets. A pass over files of fewer octets in total ends before other processes have started.
SMALL = 16 * 2**20
WHOLE = "whole"  # position of a part that is a whole file

Result = Any  # the result of a pass: it has a method `merge(other)`
Note = dict[str, Any]  # a line of a log


class Outcome(NamedTuple):
    """The outcome of a pass over some records. It can be pickled."""

    records: Any
    """The records to write: a list of Records. From `columns`, the argument of a Writer's
    `encode_columns`."""
    result: Result
    """The result of the pass for these records."""
    notes: Sequence[Note] = ()
    """The lines of the log."""
    unreadable: Sequence[Unreadable] = ()
    """The records that the pass cannot read."""
    evidence: Any = None
    """An Evidence (comity.dataset.evidence). None: the pass collects none."""
    entries: int = 0
    """The number of entries of the file that were read, if `evidence` numbers them from 0. 0: it
    has their numbers in the file."""


class Work(Protocol):
    """A pass. It can be pickled. Each process has a copy, and returns outcomes only."""

    @property
    def fields(self) -> Sequence[str] | None:
        """The fields of records that the pass needs. None: all fields."""

    def __call__(self, records: list[Record]) -> Outcome:
        """Do the work on a batch of records."""


class ColumnWork(Work, Protocol):
    """A pass that can also process columns, for a Reader with `read_columns`.

    `columns` is faster than `__call__`, and has the same outcome."""

    def columns(self, batch: Any, number: int) -> Outcome:
        """Do the work on a pyarrow.RecordBatch. `number`: the number of its first row in the
        file."""


class UnreadRecord(NamedTuple):
    """A record that could not be read, and the reader of its file."""

    reader: Reader
    """The reader of the file."""
    unreadable: Unreadable
    """The octets, their place and the problem."""


class PartOutput(NamedTuple):
    """The output of one part."""

    encoded: list[Any]
    """The results of the writer's `encode`."""
    results: list[Result]
    """The results of the pass, one for each batch."""
    notes: list[Note]
    """The lines of the log."""
    unreadable: list[Unreadable]
    """The records that cannot be read."""
    evidence: list[tuple[int, Any]]
    """The evidence, each with the number to add to the numbers of its records."""
    entries: int = 0
    """The number of entries in the part, if `evidence` numbers them within the part."""


class Sinks(NamedTuple):
    """The functions that are called with the output of a pass, except the records to write."""

    result: Callable[[Result], object]
    """Called with each result."""
    notes: Callable[[list[Note]], object] = lambda _: None
    """Called with the lines of the log."""
    unreadable: Callable[[UnreadRecord], object] = lambda _: None
    """Called with each record that cannot be read."""
    progress: Callable[[int], object] = lambda _: None
    """Called with the number of octets that were processed since its last call."""
    evidence: Callable[[Path, int, Any], object] = lambda _, __, ___: None
    """Called with the path of the file, the number to add to the numbers of records, and an
    Evidence."""


def run(
    work: Work,
    readers: Sequence[Reader],
    sinks: Sinks,
    *,
    writer: Writer | None = None,
    workers: int | None = None,
    executor: str = PROCESSES,
) -> None:
    """Run one pass over the records of all readers.

    `writer`: receives the records. The caller has entered it by `with`. None: no record is written.
    `workers`: the number of processes. 1 means this process only. None means the number of cores,
    except that small files, and columns that are copied from file to file, are processed by this
    process only, because copying them to another process would take longer. `executor`: one of
    EXECUTORS. If nothing is written, a task of an engine is a whole file instead of a part.

    DatasetError: a file cannot be read, or processes were killed TRIES times. `writer` may have
    received a part of the records."""
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
    parts: deque[Numbered] = deque()  # parts without output yet
    entries: Counter[int] = Counter()  # index of the reader -> entries of earlier parts
    outputs = in_order(
        task, _note_parts(_files(readers) if by_file else _parts(readers), parts), executor, workers
    )
    with closing(outputs):
        for output in outputs:
            number, part = parts.popleft()
            for encoded in output.encoded:
                assert writer
                writer.write(encoded)
            for result in output.results:
                sinks.result(result)
            for before, evidence in output.evidence:
                sinks.evidence(readers[number].path, entries[number] + before, evidence)
            entries[number] += output.entries
            sinks.notes(output.notes)
            for unreadable in output.unreadable:
                sinks.unreadable(UnreadRecord(readers[number], unreadable))
            sinks.progress(part.octets)


def is_small(readers: Iterable[Reader]) -> bool:
    """Return True if these files are too small to gain from several processes."""
    return sum(reader.size for reader in readers) < SMALL


Numbered = tuple[int, Part]  # the index of the reader, and a part of its file


def _parts(readers: Iterable[Reader]) -> Iterator[Numbered]:
    return ((number, part) for number, reader in enumerate(readers) for part in reader.parts())


def _files(readers: Iterable[Reader]) -> Iterator[Numbered]:
    return ((number, Part(WHOLE, reader.size)) for number, reader in enumerate(readers))


def _note_parts(parts: Iterable[Numbered], pending: deque[Numbered]) -> Iterator[Numbered]:
    """Yield the parts, and append each to `pending` without its position."""
    for number, part in parts:
        pending.append((number, part._replace(position=None)))
        yield number, part


def readable(batch: Batch) -> list[int]:
    """Return the indices of the records in a batch."""
    return [index for index, record in enumerate(batch) if not isinstance(record, Unreadable)]


class _Task(NamedTuple):
    work: Work
    readers: tuple[Reader, ...]
    encode: Callable[[Sequence[Record]], Any] | None
    encode_columns: Callable[[Any], Any] | None

    def __call__(self, task: Numbered) -> PartOutput:
        number, part = task
        if part.position != WHOLE:
            return self.run_part(number, part)
        file_output = PartOutput([], [], [], [], [])
        for file_part in self.readers[number].parts():
            output = self.run_part(number, file_part)
            file_output.notes.extend(output.notes)
            file_output.unreadable.extend(output.unreadable)
            for result in output.results:
                if file_output.results:
                    file_output.results[0].merge(result)
                else:
                    file_output.results.append(result)
        return file_output

    @gc_paused()
    def run_part(self, number: int, part: Part) -> PartOutput:
        """Do the work on one part of the file with this index."""
        output, entries = PartOutput([], [], [], [], []), 0
        for outcome in self._outcomes(self.readers[number], part):
            if self.encode and len(outcome.records):
                output.encoded.append(self._encode(outcome.records, self.encode))
            if outcome.result is not None:
                output.results.append(outcome.result)
            output.notes.extend(outcome.notes)
            output.unreadable.extend(outcome.unreadable)
            if outcome.evidence is not None:
                # Records of columns have their numbers. The first record of a file is 1.
                before = entries + 1 if outcome.entries else 0
                output.evidence.append((before, outcome.evidence))
            entries += outcome.entries
        return output._replace(entries=entries)

    def by_columns(self, reader: Reader) -> bool:
        """Return True if the work is done on columns of this file."""
        return hasattr(reader, "read_columns") and hasattr(self.work, "columns")

    def _encode(self, records: Any, encode: Callable[[Sequence[Record]], Any]) -> Any:
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
            if outcome.evidence is not None:
                outcome = outcome._replace(
                    evidence=outcome.evidence.numbered(readable(batch)), entries=len(batch)
                )
            yield (
                outcome._replace(unreadable=[*unreadable, *outcome.unreadable])
                if unreadable
                else outcome
            )
