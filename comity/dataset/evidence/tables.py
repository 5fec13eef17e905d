"""Evidence as Arrow tables, which processes pass on and which are merged in bounded memory.

Evidence(refused, counts)       the evidence about a batch of records
evidence_of(found)              the evidence about records
CopyCounts()                    the counts of all copies, by an external sort"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import IO, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.evidence.decisions import Found
from comity.dataset.evidence.schema import POLICY_COLUMNS, REFUSED_COLUMNS, VERDICTS
from comity.policies.syntax.printable import without_passwords

# The columns of OUT.refused without `file`. `record` is null if the record is known by its number.
REFUSALS = pa.schema([("number", pa.int64()), *[*REFUSED_COLUMNS][1:]])
COPY = ("url", "status", "sha256", "fetched_at")  # the columns that identify a copy
# One row counts the records whose tags name the copy: its use and verdict are null. The other rows
# count the decisions by statements of the copy.
COUNTS = pa.schema(
    [
        *(POLICY_COLUMNS.field(name) for name in COPY),
        *(("use", pa.string()), ("verdict", pa.string())),
        *(("records", pa.int64()), ("refused", pa.int64())),
    ]
)
KEYS = (*COPY, "use", "verdict")
ORDER = [(name, "ascending") for name in ("url", "fetched_at", "sha256", "status", *KEYS[4:])]
PENDING = 200_000  # rows of counts in memory before they are added up or written to the disk
CHUNK = 4_000  # rows of a run that are in memory while runs are merged

Sources = Callable[[Sequence[tuple[str, datetime]]], Sequence[str | None]]


class Evidence(NamedTuple):
    """The evidence about a batch of records. It can be pickled."""

    refused: pa.RecordBatch
    """The refused uses, as REFUSALS, in the order of the records."""
    counts: pa.RecordBatch
    """The counts of the copies, as COUNTS."""

    def numbered(self, numbers: Sequence[int]) -> Self:
        """Return the evidence with other numbers. `numbers`: the new number for each number."""
        column = pa.array(numbers, pa.int64()).take(self.refused.column(0))
        columns = [column, *self.refused.columns[1:]]
        return self._replace(refused=pa.RecordBatch.from_arrays(columns, schema=REFUSALS))

    def rows(self, file: str, before: int) -> pa.RecordBatch:
        """Return the rows of OUT.refused. `before`: the number of earlier records in the file."""
        number, record, *others = self.refused.columns
        text = pc.add(number, before).cast(pa.string())
        files = pa.repeat(pa.scalar(file), len(number))
        return pa.RecordBatch.from_arrays(
            [files, pc.coalesce(record, text), *others], schema=REFUSED_COLUMNS
        )


def evidence_of(found: Found) -> Evidence:
    """Return the evidence about records."""
    refused = [
        (
            place.number,
            place.name or None,
            plain(place.url),
            place.captured_at,
            decision.use,
            plain(decision.rule),
            plain(decision.agent),
            plain(decision.line),
            plain(decision.policy_url),
            decision.policy_sha256,
            decision.policy_fetched_at,
            is_dropped,
        )
        for place, decision, is_dropped in found.refused
    ]
    counts = [
        (plain(copy.url), *copy[1:], use, verdict, records, refusals)
        for copy, use, verdict, records, refusals in found.counts()
    ]
    return Evidence(batch_of(refused, REFUSALS), batch_of(counts, COUNTS))


def batch_of(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of rows."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def plain(text: str) -> str:
    """Return the text with escapes for halves of surrogate pairs, which UTF-8 does not have."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class CopyCounts:
    """The counts of any number of copies. Sorted runs are in a temporary file.

    Enter it by `with`, which removes the file."""

    def __init__(self) -> None:
        self._pending: list[pa.Table] = []
        self._rows = 0
        self._runs: list[list[tuple[int, int]]] = []  # run -> offset and length of each chunk

    def __enter__(self) -> Self:
        # __exit__ closes it. Few counts stay in memory.
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(2**20)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, counts: pa.RecordBatch) -> None:
        """Add the counts of some records, as COUNTS."""
        if not counts.num_rows:
            return
        self._pending.append(pa.Table.from_batches([counts]))
        self._rows += counts.num_rows
        if self._rows > PENDING:
            table = self._sum()
            if table.num_rows > PENDING // 2:
                self._spill(table)
            else:
                self._pending, self._rows = [table], table.num_rows

    def _sum(self) -> pa.Table:
        """Add up the pending counts, and return them sorted."""
        table = _sorted_sum(self._pending)
        self._pending, self._rows = [], 0
        return table

    def _spill(self, table: pa.Table) -> None:
        urls, run, start = table["url"], [], 0
        while start < table.num_rows:
            end = min(start + CHUNK, table.num_rows)
            while end < table.num_rows and urls[end] == urls[end - 1]:  # a URL is in one chunk
                end += 1
            [batch] = table.slice(start, end - start).combine_chunks().to_batches()
            octets = batch.serialize()
            run.append((self._file.tell(), octets.size))
            self._file.write(octets)
            start = end
        self._runs.append(run)

    def _chunks(self, run: Sequence[tuple[int, int]]) -> Iterator[pa.Table]:
        for offset, length in run:
            self._file.seek(offset)
            batch = pa.ipc.read_record_batch(pa.py_buffer(self._file.read(length)), COUNTS)
            yield pa.Table.from_batches([batch])

    def sums(self) -> Iterator[pa.Table]:
        """Yield all counts, added up and sorted by ORDER. A URL is in one table."""
        if self._pending:
            table = self._sum()
            if not self._runs:
                yield table
                return
            self._spill(table)
        heads = [_Head(self._chunks(run)) for run in self._runs]
        while heads := [head for head in heads if head.is_more()]:
            last = min(head.last for head in heads)
            yield _sorted_sum([head.until(last) for head in heads])


class _Head:
    """The next rows of a run."""

    def __init__(self, chunks: Iterator[pa.Table]) -> None:
        self._chunks = chunks
        self._table = COUNTS.empty_table()

    def is_more(self) -> bool:
        """Read a chunk if no rows are left. Return True if there are rows."""
        if not self._table.num_rows:
            self._table = next(self._chunks, self._table)
        return bool(self._table.num_rows)

    @property
    def last(self) -> str:
        """The last URL of the chunk."""
        url: str = self._table["url"][-1].as_py()
        return url

    def until(self, url: str) -> pa.Table:
        """Remove the rows up to a URL from the chunk, and return them."""
        rows = pc.sum(pc.less_equal(self._table["url"], url)).as_py()
        table, self._table = self._table.slice(0, rows), self._table.slice(rows)
        return table


def _sorted_sum(tables: Sequence[pa.Table]) -> pa.Table:
    table = pa.concat_tables(tables).group_by(KEYS, use_threads=False)
    sums = table.aggregate([("records", "sum"), ("refused", "sum")])
    columns = [*(sums[name] for name in KEYS), sums["records_sum"], sums["refused_sum"]]
    return pa.Table.from_arrays(columns, schema=COUNTS).sort_by(ORDER)


def policies_of(sums: pa.Table, sources: Sources) -> pa.RecordBatch:
    """Return the rows of OUT.policies. `sums`: a result of `CopyCounts.sums`.

    `sources`: a function that returns the name of the source for the URL and time of each copy."""
    is_named = sums["use"].is_null()
    decides = pc.and_not(pc.greater(sums["records"], 0), is_named)
    by_copy = pa.table(
        {
            **{name: sums[name] for name in COPY},
            "records": pc.if_else(is_named, sums["records"], 0),
            "refused": sums["refused"],
            "decided": decides.cast(pa.int64()),
        }
    ).group_by(COPY, use_threads=False)
    copies = by_copy.aggregate([(name, "sum") for name in ("records", "refused", "decided")])
    copies = copies.sort_by(ORDER[:4]).combine_chunks()
    decided = sums.filter(decides).combine_chunks()
    # `sums` is sorted by ORDER too, so the decisions have the order of their copies.
    ends = pc.cumulative_sum(copies["decided_sum"]).combine_chunks().cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    members = [_array(decided[name]) for name in ("use", "verdict", "records")]
    structs = pa.StructArray.from_arrays(members, fields=[*VERDICTS.value_type])
    verdicts = pa.ListArray.from_arrays(offsets, structs, type=VERDICTS)
    pairs = zip(copies["url"].to_pylist(), copies["fetched_at"].to_pylist(), strict=True)
    dated = [(row, pair) for row, pair in enumerate(pairs) if pair[1] is not None]
    names: list[str | None] = [None] * copies.num_rows
    for (row, _), name in zip(dated, sources([pair for _, pair in dated]), strict=True):
        names[row] = name and without_passwords(name)
    return pa.RecordBatch.from_arrays(
        [
            *(_array(copies[name]) for name in COPY),
            pa.array(names, pa.string()),
            *(_array(copies[name]) for name in ("records_sum", "refused_sum")),
            verdicts,
        ],
        schema=POLICY_COLUMNS,
    )


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
