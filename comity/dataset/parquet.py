"""Parquet: records in typed columns (typed.py), read by row groups and written as they come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comity.dataset.files import Part, Replacement
from comity.dataset.records import TAG_FIELDS, Batch, DatasetError, Record, Unreadable
from comity.dataset.tags import TEXT_FIELDS
from comity.dataset.typed import EXTRA, TAG, adapted, decode, encode, is_tag_type, may_hold_tags, proper, schema_of

ROWS = 2_500  # read at once, at most
OCTETS = 16 * 2**20  # read at once, uncompressed, unless one row alone has more
GROUP_ROWS = 10_000  # of a row group; it is written when it has so many
GROUP_OCTETS = 16 * 2**20  # or so much, before compression
COMPRESSION = {"compression": "zstd", "compression_level": 1}


class Reader:
    """A Parquet file, of ours or of another program. Its parts are its row groups."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def size(self) -> int:
        return self.path.stat().st_size

    @cached_property
    def schema(self) -> pa.Schema:
        """Of a file to be written from this one."""
        with self._opened() as file:
            return proper(file.schema_arrow)

    def parts(self) -> Iterator[Part]:
        with self._opened() as file:
            number, done = 1, 0
            for group in range(file.metadata.num_row_groups):
                found = file.metadata.row_group(group)
                columns = [found.column(place) for place in range(found.num_columns)]
                octets = sum(column.total_compressed_size for column in columns)
                done += octets
                is_last = group == file.metadata.num_row_groups - 1
                yield Part((group, number), octets + self.size - done if is_last else octets)
                number += found.num_rows

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        with self._opened() as file:
            schema = file.schema_arrow
            if any(field.type != TAG.type and (field.name in (tags or ()) or may_hold_tags(field)) for field in schema):
                return True
            groups = range(file.metadata.num_row_groups)
            if any(_may_be_set(file.metadata.row_group(group), key) for group in groups):
                return True
            if EXTRA not in schema.names:
                return False
            pattern = rf"{re.escape(key)}|\\u00[4-7]"  # as it stands, or a letter of it escaped
            found = (batch.column(0) for batch in file.iter_batches(columns=[EXTRA]))
            return any(pc.any(pc.match_substring_regex(column, pattern)).as_py() for column in found)

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        for batch, number in self.read_columns(part, fields):
            yield [batch] if isinstance(batch, Unreadable) else decode(batch, range(number, number + batch.num_rows))

    def read_columns(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[tuple[pa.RecordBatch | Unreadable, int]]:
        """With the number of the first row, from 1."""
        group, number = part.place
        with self._opened() as file:
            columns = _columns(file.schema_arrow, fields)
            try:
                found = file.metadata.row_group(group)
                of_each = max(1, found.total_byte_size // max(1, found.num_rows))
                for batch in file.iter_batches(max(1, min(ROWS, OCTETS // of_each)), [group], columns, use_threads=False):
                    yield batch, number
                    number += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                why = str(error).partition("\n")[0]
                yield Unreadable(f"row {number} and the rest of row group {group}", b"", why), number

    def _opened(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self.path, pre_buffer=False)
        except (OSError, pa.ArrowException) as error:
            why = str(error).partition("\n")[0]
            raise DatasetError(f"{self.path} is no Parquet file, or was cut off while it was written: {why}") from None


def _columns(schema: pa.Schema, fields: Sequence[str] | None) -> list[str] | None:
    """None: all."""
    if fields is None:
        return None
    names = [name for name in fields if name != TAG_FIELDS]
    if len(names) < len(fields):
        tags = [field.name for field in schema if is_tag_type(field.type)]
        names += dict.fromkeys((*tags, *TEXT_FIELDS))
    return [*names, EXTRA]


def _may_be_set(group: Any, key: str) -> bool:
    """Whether a column of this name, which is true or false, is true anywhere in the row group."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema.rpartition(".")[2] == key:
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count:
                return True
            if statistics.null_count < column.num_values and (not statistics.has_min_max or statistics.max is not False):
                return True
    return False


class Rows:
    """Writes record batches to an open file, a row group at a time. The first one says the schema, unless it is given.

    The file can be read after `close` only: Parquet has its table of contents at the end."""

    def __init__(self, file: Any, schema: pa.Schema | None = None) -> None:
        self._file = file
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._octets = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._schema = self._schema or batch.schema
        batch = adapted(batch, self._schema)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._octets += batch.nbytes
        if self._rows >= GROUP_ROWS or self._octets >= GROUP_OCTETS:
            self._flush()

    def close(self) -> None:
        self._flush()
        assert self._writer
        self._writer.close()

    def _flush(self) -> None:
        schema = self._schema or schema_of(())
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, schema, **COMPRESSION)
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, schema))
        self._waiting = []
        self._rows = self._octets = 0


class Writer:
    """A new Parquet file. `schema`: that of a Reader, or of schema_of; None: the first records say it.

    `write` takes what `encode` gave, or any record batch, e.g. one of `read_columns`."""

    takes_columns = True  # of `read_columns`: passes need not make records of them

    def __init__(self, path: Path, schema: pa.Schema | None = None) -> None:
        self.path = path
        self.encode: Callable[[Sequence[Record]], pa.RecordBatch] = partial(encode, schema=schema)
        self._schema = schema
        self._replacement = Replacement(path)

    def __enter__(self) -> Self:
        self._rows = Rows(self._replacement.__enter__(), self._schema)
        return self

    def write(self, encoded: pa.RecordBatch) -> None:
        self._rows.write(encoded)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._replacement.__exit__(kind, error, trace)
            return
        with ExitStack() as stack:
            stack.push(self._replacement)  # which then knows whether the end could be written, too
            self._rows.close()
