"""Read and write Parquet files: records in typed columns (arrow_schema.py), in row groups."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comity.dataset.files import formats
from comity.dataset.files.columns import arrow_schema
from comity.dataset.files.columns.arrow_foreign import (
    check_columns,
    in_utc,
    proper,
    readable,
    valid,
    with_zone,
)
from comity.dataset.files.columns.arrow_schema import (
    EXTRA,
    TAG,
    adapt,
    decode,
    encode,
    is_tag_type,
    may_hold_tags,
    schema_of,
)
from comity.dataset.files.formats import Part
from comity.dataset.files.places import is_local
from comity.dataset.files.replacement import Replacement
from comity.dataset.records import TAG_FIELDS, Batch, DatasetError, Record, Unreadable
from comity.dataset.tags.sources import TEXT_FIELDS

# The maximum size of a batch that is read: this many rows, and about this many octets without
# compression. A batch has at least one row, even if that row is larger.
ROWS = 2_500
OCTETS = 16 * 2**20
# A row group that is written ends after this many rows, or this many octets in memory.
GROUP_ROWS = 10_000
GROUP_OCTETS = 16 * 2**20
# Exceptions of pyarrow for an invalid file, e.g. ValueError for names that are not UTF-8.
FAILURES = (OSError, pa.ArrowException, ValueError)
COMPRESSION = {"compression": "zstd", "compression_level": 1}


class ColumnReader(formats.Reader):
    """A file of records in Arrow columns."""

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        for batch, number in self.read_columns(part, fields):
            yield (
                [batch]
                if isinstance(batch, Unreadable)
                else decode(batch, range(number, number + batch.num_rows))
            )

    @abstractmethod
    def read_columns(
        self, part: Part, fields: Sequence[str] | None = None
    ) -> Iterator[tuple[pa.RecordBatch | Unreadable, int]]:
        """Yield batches, each with the number of its first row. The first row of a file is 1.

        `fields`: the fields to read. None: all. If a batch cannot be read, an Unreadable is in the
        place of the rest of its row group or record batch."""


class Reader(ColumnReader):
    """A Parquet file of comity or of another program. Its parts are its row groups."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema for a new file with the records of this file."""
        with self._open() as file:
            return proper(file.schema_arrow)

    @cached_property
    def column_names(self) -> Sequence[str]:
        """The names of the columns. Empty if the file has no rows."""
        with self._open() as file:
            return proper(file.schema_arrow).names if file.metadata.num_rows else ()

    def parts(self) -> Iterator[Part]:
        groups = self._group_rows()
        # An average, because pyarrow 26 crashes the process when it is asked for the sizes of
        # columns in a damaged file.
        octets_per_row = self.size // max(1, sum(groups))
        number, done = 1, 0
        for group, rows in enumerate(groups):
            octets = min(rows * octets_per_row, self.size - done)
            is_last = group == len(groups) - 1
            yield Part((group, number), self.size - done if is_last else octets)
            done += octets
            number += rows

    def _group_rows(self) -> list[int]:
        """Return the number of rows of each row group.

        The metadata of the file takes some MB of memory until this method returns."""
        with self._open() as file:
            return [
                file.metadata.row_group(group).num_rows
                for group in range(file.metadata.num_row_groups)
            ]

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        with self._open() as file:
            schema = file.schema_arrow
            if any(
                field.type != TAG.type and (field.name in (tags or ()) or may_hold_tags(field))
                for field in schema
            ):
                return True
            if any(_is_set(file, path) for path in _leaves(file) if path.rpartition(".")[2] == key):
                return True
            if EXTRA not in schema.names:
                return False
            pattern = rf"{re.escape(key)}|\\u00[4-7]"  # the key, or any escaped letter
            extras = (readable(batch).column(0) for batch in file.iter_batches(columns=[EXTRA]))
            return any(
                pc.any(pc.match_substring_regex(column, pattern)).as_py() for column in extras
            )

    def read_columns(
        self, part: Part, fields: Sequence[str] | None = None
    ) -> Iterator[tuple[pa.RecordBatch | Unreadable, int]]:
        group, number = part.position
        with self._open() as file:
            columns = columns_for(file.schema_arrow, fields)
            try:
                without_zone = _written_in_utc(file)
                metadata = file.metadata.row_group(group)
                octets_per_row = max(1, metadata.total_byte_size // max(1, metadata.num_rows))
                for batch in file.iter_batches(
                    max(1, min(ROWS, OCTETS // octets_per_row)), [group], columns, use_threads=False
                ):
                    yield from valid(with_zone(readable(batch), without_zone), number)
                    number += batch.num_rows
            except FAILURES as error:
                message = str(error).partition("\n")[0]
                yield (
                    Unreadable(f"row {number} and the rest of row group {group}", b"", message),
                    number,
                )
        pa.default_memory_pool().release_unused()

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        """Open the file. DatasetError: the file or its metadata cannot be read."""
        try:
            source = self.path if is_local(self.path) else self.path.open("rb")
            with pq.ParquetFile(
                source, pre_buffer=not is_local(self.path), coerce_int96_timestamp_unit="us"
            ) as file:
                check_columns(file.schema_arrow)
                yield file
        except DatasetError as error:
            raise DatasetError(f"{self.path} cannot be used: {error}") from None
        except FAILURES as error:
            message = str(error).partition("\n")[0]
            raise DatasetError(
                f"{self.path} is not a Parquet file, or was cut off while it was written: {message}"
            ) from None


def columns_for(schema: pa.Schema, fields: Sequence[str] | None) -> list[str] | None:
    """Return the names of the columns to read for these fields.

    If `fields` is None, return None, which means all columns. TAG_FIELDS in `fields` stands for all
    columns that may have a tag."""
    if fields is None:
        return None
    names = [name for name in fields if name != TAG_FIELDS]
    if len(names) < len(fields):
        tags = [field.name for field in schema if is_tag_type(field.type)]
        names += dict.fromkeys((*tags, *TEXT_FIELDS))
    return [*names, EXTRA]


def _leaves(file: pq.ParquetFile) -> Iterator[str]:
    return (file.schema.column(number).path for number in range(len(file.schema)))


def _written_in_utc(file: pq.ParquetFile) -> frozenset[str]:
    """Return the names of tag columns with moments in the form of Spark and Impala (INT96).

    INT96 has no time zone. These moments are in UTC."""
    tags = {
        field.name
        for field in file.schema_arrow
        if is_tag_type(field.type) and in_utc(field.type) != field.type
    }
    # Return without a ParquetSchema, which keeps some MB until the garbage collector runs.
    if not tags:
        return frozenset()
    leaves = (file.schema.column(number) for number in range(len(file.schema)))
    return frozenset(
        name
        for leaf in leaves
        if leaf.physical_type == "INT96" and (name := leaf.path.partition(".")[0]) in tags
    )


def _is_set(file: pq.ParquetFile, path: str) -> bool:
    """Return True if a column has the value true in any row, or has no boolean values.

    `path`: the path of a leaf of the schema, within lists and structs."""
    for batch in file.iter_batches(columns=[path]):
        column = batch.column(0)
        while not pa.types.is_boolean(column.type):
            if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                column = pc.list_flatten(column)
            elif pa.types.is_struct(column.type) and column.type.num_fields:
                column = column.field(0)
            else:
                return True
        if pc.any(column).as_py():
            return True
    return False


class RowGroupWriter:
    """Writes record batches to an open file, one row group at a time.

    A Parquet file can be read only after `close`, because it has its table of contents at the end.
    At the end of `with`, the file is completed. After an error it is left incomplete."""

    def __init__(self, file: Any, schema: pa.Schema | None = None) -> None:
        """`schema`: the schema of the file. None: that of the first batch."""
        self._file = file
        self._schema = schema
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._octets = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._schema = self._schema or batch.schema
        batch = adapt(batch, self._schema)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._octets += batch.nbytes
        if self._rows >= GROUP_ROWS or self._octets >= GROUP_OCTETS:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            # An open ParquetWriter writes the end of the file when it is deleted. The file is
            # closed then, and Python would print a traceback for the failed write.
            if isinstance(self._writer, pq.ParquetWriter):
                self._writer.is_open = False

    def close(self) -> None:
        """Write the pending rows, and the end of the file."""
        self._flush()
        assert self._writer
        self._writer.close()

    def _opened(self, schema: pa.Schema) -> Any:
        """Return a pyarrow writer for a file with this schema."""
        return pq.ParquetWriter(self._file, schema, **COMPRESSION)

    def _flush(self) -> None:
        schema = self._schema or schema_of(())
        if self._writer is None:
            self._writer = self._opened(schema)
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, schema))
        self._waiting = []
        self._rows = self._octets = 0


def encode_columns(rows: arrow_schema.Rows) -> pa.RecordBatch:
    return rows.columns


class Writer:
    """A new Parquet file.

    The argument of `write` is a result of `encode`, or any record batch, e.g. from
    `read_columns`."""

    takes_columns = True  # batches from `read_columns` are written without a conversion

    def __init__(self, path: Path, schema: pa.Schema | None = None) -> None:
        """`schema`: that of a Reader, or a result of schema_of. None: that of the first records."""
        self.path = path
        self.encode: Callable[[Sequence[Record]], pa.RecordBatch] = partial(encode, schema=schema)
        self.encode_columns = encode_columns
        self._schema = schema
        self._replacement = Replacement(path)

    def __enter__(self) -> Self:
        with ExitStack() as files:
            file = files.enter_context(self._replacement)
            self._rows = files.enter_context(self._row_writer(file))
            self._files = files.pop_all()
        return self

    def _row_writer(self, file: Any) -> RowGroupWriter:
        return RowGroupWriter(file, self._schema)

    def write(self, encoded: pa.RecordBatch) -> None:
        self._rows.write(encoded)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.__exit__(kind, error, trace)
