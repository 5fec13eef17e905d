"""Read and write Arrow IPC: record batches as they are in memory (Feather 2, caches of `datasets`).

A file has one of two forms. A stream is a sequence of messages: the schema, dictionaries and record
batches. The file form begins with `ARROW1`, and has a table of contents at its end. See
https://arrow.apache.org/docs/format/Columnar.html, section "IPC".

A record batch may be larger than memory. If it is not compressed, it is mapped into memory, and
only the pages of its current rows are read."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.columns import parquet
from comity.dataset.files.columns.arrow_foreign import check_columns, proper, readable, valid
from comity.dataset.files.columns.arrow_schema import EXTRA, TAG, may_hold_tags
from comity.dataset.files.columns.parquet import (
    FAILURES,
    OCTETS,
    ROWS,
    ColumnReader,
    RowGroupWriter,
    columns_for,
)
from comity.dataset.files.formats import Part, format_of
from comity.dataset.files.places import is_local
from comity.dataset.records import DatasetError, Unreadable

PART = 4 * 2**20  # octets of record batches that are read together, if there are several
# The maximum number of octets of a record batch that must be unpacked, or copied to be read.
MAX_BATCH = 2**31
_MAGIC, _FEATHER_1 = b"ARROW1", b"FEA1"
_FILE_END = 4 + len(_MAGIC)  # octets behind the table of contents of the file form

Range = tuple[int, int]  # the offsets at which a message begins and ends


class _Message(NamedTuple):
    """A record batch in the file."""

    place: Range
    """Its message."""
    rows: int
    """The number of its rows."""
    is_packed: bool
    """True if it is compressed."""
    error: str
    """The reason why it must not be read. "" if it may be read."""


class _Place(NamedTuple):
    """The position of a part."""

    row: int
    """The number of the first row."""
    number: int
    """The number of the first record batch. The first of a file is 0."""
    context: tuple[Range, ...]
    """The messages that reading needs: the schema, and the dictionaries so far."""
    batches: tuple[_Message, ...]
    """The record batches of the part."""


class Reader(ColumnReader):
    """A file of Arrow IPC, of comity or of another program. Its parts are some record batches."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema for a new file with the records of this file."""
        return proper(self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        with self._open() as file:
            if self.is_stream:
                message = self._next(file)
                if message is None or message.type != "schema":
                    raise DatasetError(f"{self.path} is not Arrow IPC: it has no schema")
                schema = pa.ipc.read_schema(message)
            else:
                schema = pa.ipc.open_file(file).schema
            check_columns(schema)
            return schema

    @cached_property
    def is_stream(self) -> bool:
        """True if the file is a stream. False if it has the file form."""
        with self.path.open("rb") as file:
            return file.read(len(_MAGIC)) != _MAGIC

    @cached_property
    def column_names(self) -> Sequence[str]:
        """The names of the columns. Empty if the file has no rows."""
        has_rows = any(batch.rows for part in self.parts() for batch in part.position.batches)
        return self.schema.names if has_rows else ()

    def parts(self) -> Iterator[Part]:
        context: list[Range] = []
        pending: list[_Message] = []
        row, number, done = 1, 0, 0
        with self._open() as file:
            for message, start in self._messages(file):
                end = file.tell()
                is_batch = message.type == "record batch"
                if is_batch:
                    pending.append(_stated(message, (start, end)))
                # Batches before and after a new dictionary are in different parts.
                if pending and (not is_batch or end - pending[0].place[0] >= PART):
                    yield Part(_Place(row, number, tuple(context), tuple(pending)), end - done)
                    row += sum(batch.rows for batch in pending)
                    number, done, pending = number + len(pending), end, []
                if not is_batch:
                    if message.type != "schema" and (error := _stated(message).error):
                        raise DatasetError(f"{self.path}: the dictionary at octet {start}: {error}")
                    context.append((start, end))
        yield Part(_Place(row, number, tuple(context), tuple(pending)), self.size - done)

    def _messages(self, file: Any) -> Iterator[tuple[pa.ipc.Message, int]]:
        """Yield the messages, each with the offset at which it begins.

        In the file form, these are the messages of the table of contents, because a file of Polars
        has its schema in another form."""
        if self.is_stream:
            start = file.tell()
            while message := self._next(file):
                yield message, start
                start = file.tell()
            return
        for start in _places(file, self.size):
            file.seek(start)
            if message := self._next(file):
                yield message, start

    def _next(self, file: Any) -> pa.ipc.Message | None:
        """Return the next message. None at the end. DatasetError: the file is cut off."""
        start = file.tell()
        try:
            return pa.ipc.read_message(file)
        except EOFError:
            if file.tell() > start:  # the end is marked
                return None
            raise DatasetError(
                f"{self.path} was cut off while it was written: the end is missing at octet {start}"
            ) from None
        except FAILURES as error:
            raise self._damaged(start, error) from None

    def _damaged(self, start: int, error: Exception) -> DatasetError:
        message = str(error).partition("\n")[0]
        return DatasetError(
            f"{self.path} is not Arrow IPC, or was cut off while it was written: at octet {start}:"
            f" {message}"
        )

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        names = [
            field.name
            for field in self._schema
            if field.name in (tags or ()) or may_hold_tags(field) or field.name == EXTRA
        ]
        if any(name == EXTRA or self._schema.field(name).type != TAG.type for name in names):
            return True
        return any(
            isinstance(batch, Unreadable) or any(_is_set(batch.column(name), key) for name in names)
            for part in self.parts()
            for batch, _ in self.read_columns(part, names)
        )

    def read_columns(
        self, part: Part, fields: Sequence[str] | None = None
    ) -> Iterator[tuple[pa.RecordBatch | Unreadable, int]]:
        place: _Place = part.position
        wanted = columns_for(self._schema, fields)
        names = [name for name in self._schema.names if wanted is None or name in wanted]
        row = place.row
        with self._open() as file:
            for number, message in enumerate(place.batches, place.number):
                first = row
                try:
                    for batch in _slices(_sound(self._batch(file, place, number, names))):
                        yield from valid(readable(batch), row)
                        row += batch.num_rows
                except FAILURES as error:
                    text = str(error).partition("\n")[0]
                    where = f"row {row} and the rest of record batch {number}"
                    at = f"{where}, at octet {message.place[0]}"
                    yield Unreadable(at, b"", text), row
                row = first + message.rows
        pa.default_memory_pool().release_unused()

    def _batch(self, file: Any, place: _Place, number: int, names: Sequence[str]) -> pa.RecordBatch:
        """Return a record batch with these columns. `number`: its index in the file.

        One of FAILURES: it cannot be read."""
        context, message = place.context, place.batches[number - place.number]
        if message.error:
            raise ValueError(message.error)
        is_copied = self.is_stream and (len(context) > 1 or message.is_packed)
        if is_copied and message.place[1] - message.place[0] > MAX_BATCH:
            raise ValueError(f"it has more than {MAX_BATCH} octets: write smaller record batches")
        if self.is_stream and not is_copied:
            file.seek(message.place[0])
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(file), self._schema)
            return batch.select(names)
        # Without fields, pyarrow would read all.
        included = [self._schema.names.index(name) for name in names or self._schema.names]
        options = pa.ipc.IpcReadOptions(included_fields=included, use_threads=False)
        if is_copied:
            ranges = (*context, message.place)
            octets = b"".join(file.read_at(end - start, start) for start, end in ranges)
            batch = pa.ipc.open_stream(pa.py_buffer(octets), options=options).read_next_batch()
        else:
            batch = pa.ipc.open_file(file, options=options).get_batch(number)
        return batch.select(names)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Open the file before its first message. DatasetError: it cannot be read."""
        source = self.path.open("rb") if not is_local(self.path) else None
        try:
            with pa.PythonFile(source) if source else pa.memory_map(str(self.path)) as file:
                if not self.is_stream:
                    file.seek(max(0, self.size - len(_MAGIC)))
                    if file.read(len(_MAGIC)) != _MAGIC or self.size <= len(_MAGIC):
                        raise DatasetError(
                            f"{self.path} was cut off while it was written:"
                            f" there is no `ARROW1` at its end, octet {self.size}"
                        )
                    file.seek(0)
                elif file.read_at(len(_FEATHER_1), 0) == _FEATHER_1:
                    raise DatasetError(
                        f"{self.path} is Feather 1: write it with pyarrow.feather.write_feather"
                    )
                yield file
        except FAILURES as error:
            raise self._damaged(0, error) from None
        finally:
            if source:
                source.close()


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch. pa.ArrowException: to read its values would read other memory.

    Texts that are not UTF-8 are no reason for an error."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        for column in batch.columns:
            column.view(_as_octets(column.type)).validate(full=True)
    return batch


def _as_octets(type_: pa.DataType) -> pa.DataType:
    """Return the type with octets in the place of texts, at any depth."""
    for is_text, octets in (
        (pa.types.is_string, pa.binary()),
        (pa.types.is_large_string, pa.large_binary()),
        (pa.types.is_string_view, pa.binary_view()),
    ):
        if is_text(type_):
            return octets
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_as_octets(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_as_octets(type_.value_type)))
    return type_


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in pieces of up to ROWS rows and about OCTETS octets."""
    octets_per_row = max(1, batch.nbytes // max(1, batch.num_rows))
    rows = max(1, min(ROWS, OCTETS // octets_per_row))
    if batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        # A slice would keep the octets of the whole batch, even when it is pickled.
        end = min(start + rows, batch.num_rows)
        yield batch.take(pa.array(range(start, end), pa.int64()))


def _is_set(array: pa.Array, key: str) -> bool:
    """Return True if a member `key`, at any depth, is true in any row or is not boolean."""
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _is_set(pc.list_flatten(array), key)
    if not pa.types.is_struct(array.type):
        return False
    for field in array.type:
        member = array.field(field.name)
        if field.name == key and (not pa.types.is_boolean(field.type) or pc.any(member).as_py()):
            return True
        if _is_set(member, key):
            return True
    return False


# What a record batch states about itself, before it is unpacked


def _stated(message: pa.ipc.Message, place: Range = (0, 0)) -> _Message:
    """Return the facts about a record batch, or about the batch with the values of a dictionary."""
    batch = _Table.root(message.metadata.to_pybytes()).table(2)
    if message.type == "dictionary":
        batch = batch.table(1)
    rows, buffers, is_packed = batch.number(0), batch.rows(2, "<qq"), batch.has(3)
    size, body = 0, message.body
    try:
        for offset, length in buffers:
            unpacked = body.slice(offset, 8).to_pybytes() if is_packed and length >= 8 else b""
            stated = struct.unpack("<q", unpacked)[0] if unpacked else length
            size += length if stated == -1 else stated
    except (struct.error, IndexError, ValueError) as damage:
        return _Message(place, max(rows, 0), is_packed, f"its buffers are damaged: {damage}")
    error = ""
    if rows < 0 or size < 0 or rows > 8 * size + ROWS:
        # Rows of nulls, or of one repeated value, would fill the memory.
        error, rows = f"it states {rows} rows in {size} octets", 0
    elif is_packed and size > MAX_BATCH:
        error = f"it has {size} octets when it is unpacked: write smaller record batches"
    return _Message(place, rows, is_packed, error)


def _places(file: Any, size: int) -> list[int]:
    """Return the offsets of the dictionaries and the record batches in the file form.

    One of FAILURES: the table of contents is damaged."""
    pa.ipc.open_file(file)  # checks the table of contents
    length = struct.unpack("<i", file.read_at(4, size - _FILE_END))[0]
    contents = _Table.root(file.read_at(length, size - _FILE_END - length))
    return [offset for field in (2, 3) for offset, *_ in contents.rows(field, "<qi4xq")]


class _Table(NamedTuple):
    """A table of FlatBuffers, the format of the heads of messages. pyarrow has checked it."""

    octets: bytes
    position: int

    @classmethod
    def root(cls, octets: bytes) -> _Table:
        return cls(octets, struct.unpack_from("<I", octets)[0])

    def _place(self, field: int) -> int:
        """Return the offset of a field. 0 if it is absent."""
        table = self.position - struct.unpack_from("<i", self.octets, self.position)[0]
        if 4 + 2 * field >= struct.unpack_from("<H", self.octets, table)[0]:
            return 0
        offset: int = struct.unpack_from("<H", self.octets, table + 4 + 2 * field)[0]
        return self.position + offset if offset else 0

    def has(self, field: int) -> bool:
        return bool(self._place(field))

    def number(self, field: int) -> int:
        place = self._place(field)
        return int(struct.unpack_from("<q", self.octets, place)[0]) if place else 0

    def table(self, field: int) -> _Table:
        place = self._place(field)
        return _Table(self.octets, place + struct.unpack_from("<I", self.octets, place)[0])

    def rows(self, field: int, form: str) -> list[tuple[int, ...]]:
        """Return a list of structs. `form`: the members of one, for the module `struct`."""
        place = self._place(field)
        if not place:
            return []
        place += struct.unpack_from("<I", self.octets, place)[0]
        count = struct.unpack_from("<I", self.octets, place)[0]
        octets = self.octets[place + 4 : place + 4 + count * struct.calcsize(form)]
        return [*struct.iter_unpack(form, octets)]


# Writing


def without_dictionaries(type_: pa.DataType) -> pa.DataType:
    """Return the type with plain values in the place of dictionaries, at any depth."""
    if pa.types.is_dictionary(type_):
        return type_.value_type
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(without_dictionaries(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(without_dictionaries(type_.value_type)))
    return type_


class BatchWriter(RowGroupWriter):
    """Writes record batches to an open file of Arrow IPC, some at a time."""

    def __init__(self, file: Any, schema: pa.Schema | None, *, is_stream: bool) -> None:
        if schema is not None:
            types = [without_dictionaries(field.type) for field in schema]
            schema = pa.schema([*zip(schema.names, types, strict=True)])
        super().__init__(file, schema)
        self._is_stream = is_stream

    def write(self, batch: pa.RecordBatch) -> None:
        # A dictionary may change between batches, which the file form does not permit.
        types = [without_dictionaries(field.type) for field in batch.schema]
        if types != batch.schema.types:
            batch = batch.cast(pa.schema([*zip(batch.schema.names, types, strict=True)]))
        super().write(batch)

    def _opened(self, schema: pa.Schema) -> Any:
        # `datasets` maps a stream into memory, which works only without compression.
        if self._is_stream:
            return pa.ipc.new_stream(self._file, schema)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        return pa.ipc.new_file(self._file, schema, options=options)


class Writer(parquet.Writer):
    """A new file of Arrow IPC: a stream if its name ends with .arrows, or if it is an .arrow file
    and the records come from streams."""

    takes_sources = True

    def __init__(
        self, path: Path, schema: pa.Schema | None = None, sources: Sequence[Path] = ()
    ) -> None:
        """`schema`: as for Parquet. `sources`: the files with the records."""
        super().__init__(path, schema)
        name = path.name.lower()
        self._is_stream = name.endswith(".arrows") or (
            name.endswith(".arrow")
            and bool(sources)
            and all(format_of(source) == "arrow" and Reader(source).is_stream for source in sources)
        )

    def _row_writer(self, file: Any) -> BatchWriter:
        return BatchWriter(file, self._schema, is_stream=self._is_stream)
