"""Batches and schemas of other programs, in types that arrow_schema knows.

check_columns(schema)       raise DatasetError if a table cannot be read
readable(batch)             a batch without views of texts and lists
with_zone(batch, columns)   a batch in which moments without a zone get the zone UTC
valid(batch, number)        a batch without rows that have invalid values
proper(schema)              the schema for a new file with the same columns"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.columns.arrow_schema import EXTRA, TAG, complete, is_name, is_tag_type
from comity.dataset.records import FIELD, DatasetError, Unreadable


def proper(schema: pa.Schema) -> pa.Schema:
    """Return the schema for a new file with the same columns, in which a tag column fits any tag.

    In a file of another program, the tag column may lack members that its records did not need."""
    types = {
        field.name: TAG.type if is_tag_type(field.type) else _type_without_views(field.type)
        for field in schema
        if is_name(field.name)
    }
    if FIELD in types and pa.types.is_null(types[FIELD]):
        del types[FIELD]
    return complete(types, tagged=True)


def check_columns(schema: pa.Schema) -> None:
    """Check the columns of a table.

    DatasetError: two columns have the same name, or EXTRA is not text."""
    if repeated := _find_repeated(schema):
        raise DatasetError(f"two of its columns are called `{repeated}`")
    if EXTRA in schema.names and _type_of_extra(schema.field(EXTRA).type) not in _TEXTS:
        raise DatasetError(f"its column {EXTRA} is not text")


def _find_repeated(fields: Iterable[pa.Field]) -> str:
    """Return a repeated name: of two fields (`a`), or of two members of a field (`a.b`).

    "" if no name is repeated."""
    fields = [*fields]
    if repeated := next(
        (name for name, times in Counter(field.name for field in fields).items() if times > 1), ""
    ):
        return repeated
    for field in fields:
        if within := _find_repeated(
            field.type.field(number) for number in range(field.type.num_fields)
        ):
            return f"{field.name}.{within}"
    return ""


def readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without views of texts and lists, and with EXTRA as plain text.

    In a file of another program, EXTRA may be a dictionary or have no value at all."""
    types = {
        name: _type_of_extra(type_) if name == EXTRA else _type_without_views(type_)
        for name, type_ in _types(batch)
    }
    if all(types[name] == type_ for name, type_ in _types(batch)):
        return batch
    return pa.RecordBatch.from_arrays(
        [_cast(batch.column(name), type_) for name, type_ in types.items()], list(types)
    )


def _types(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.DataType]]:
    return ((field.name, field.type) for field in batch.schema)


_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _type_of_extra(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _type_of_extra(type_.value_type)
    return pa.string() if pa.types.is_null(type_) else _type_without_views(type_)


def _type_without_views(type_: pa.DataType) -> pa.DataType:
    """Return the type without views: string_view becomes large_string, list_view becomes list.

    A dictionary of views becomes its values. Arrow has only few functions for views."""
    if pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_binary_view(type_):
        return pa.large_binary()
    if pa.types.is_dictionary(type_):
        value_type = _type_without_views(type_.value_type)
        return type_ if value_type == type_.value_type else value_type
    fields = [type_.field(number) for number in range(type_.num_fields)]
    plain = [field.with_type(_type_without_views(field.type)) for field in fields]
    if plain == fields:
        return type_
    if pa.types.is_struct(type_):
        return pa.struct(plain)
    if pa.types.is_map(type_):
        return pa.map_(plain[0].type[0], plain[0].type[1])
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(plain[0], type_.list_size)
    if pa.types.is_large_list(type_) or pa.types.is_large_list_view(type_):
        return pa.large_list(plain[0])
    return pa.list_(plain[0]) if pa.types.is_list(type_) or pa.types.is_list_view(type_) else type_


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the array in a type from `_type_without_views`.

    Arrow's own cast is not used, because Arrow 26 has a bug: its cast of list views returns lists
    with wrong members."""
    if array.type == type_:
        return array
    if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(type_):
        return _cast(array.dictionary, type_).take(array.indices)
    if pa.types.is_struct(type_):
        fields = [_cast(array.field(number), field.type) for number, field in enumerate(type_)]
        return pa.StructArray.from_arrays(fields, fields=list(type_), mask=array.is_null())
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        of_lists = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        offsets = offsets.cast(pa.int32() if of_lists is pa.ListArray else pa.int64())
        return of_lists.from_arrays(
            offsets, _cast(array.flatten(), type_.value_type), type=type_, mask=array.is_null()
        )
    return array.cast(type_)


def with_zone(batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
    """Return the batch with the zone UTC for moments in these columns that have no zone."""
    for number, field in enumerate(batch.schema):
        if field.name in columns:
            batch = batch.set_column(
                number, field.name, batch.column(number).cast(in_utc(field.type))
            )
    return batch


def in_utc(type_: pa.DataType) -> pa.DataType:
    """Return the type with the zone UTC for each moment without a zone, at any depth."""
    if pa.types.is_timestamp(type_) and type_.tz is None:
        return pa.timestamp(type_.unit, "UTC")
    if pa.types.is_struct(type_):
        return pa.struct([member.with_type(in_utc(member.type)) for member in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(in_utc(type_.value_type)))
    return type_


def valid(batch: pa.RecordBatch, number: int) -> Iterator[tuple[pa.RecordBatch | Unreadable, int]]:
    """Yield the valid rows of a batch, and an Unreadable for each row with an invalid value.

    For example, a text may not be UTF-8. `number`: the number of the first row in its file. Each
    result has the number of its first row."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        if batch.num_rows == 1:
            yield Unreadable(f"row {number}", _stream(batch), str(error).partition("\n")[0]), number
            return
        half = batch.num_rows // 2
        yield from valid(batch.take(pa.array(range(half))), number)
        yield from valid(batch.take(pa.array(range(half, batch.num_rows))), number + half)
    else:
        yield batch, number


def _stream(batch: pa.RecordBatch) -> bytes:
    """Return the batch as an Arrow stream. JSON could not contain its invalid values."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
