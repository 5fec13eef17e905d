"""Records as Arrow columns, with typed columns for the tag, and back again without loss.

    encode(records, schema)     a RecordBatch. If the schema is None, the types fit these records
    decode(batch)               the records of a batch
    adapt(batch, schema)        a batch in another schema
    Rows(batch, records, ...)   some rows as columns, and others as records

A null means that the field is missing. Some values would be changed by a column: a value of another
type than the column, an explicit null, half of a surrogate pair. These values are only in the
column EXTRA, which has a JSON object of such fields. So a tag with an unknown schema is a null in
the typed column, and no query can read it as a permission."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from comity.dataset.files.columns.arrow_types import (
    ArrowKind,
    ArrowList,
    ArrowMap,
    ArrowMoment,
    ArrowText,
    ArrowTruth,
    Common,
    Foreign,
    MisfitError,
    Number,
    OneValue,
    Spans,
    Struct,
    Whole,
    rows,
)
from comity.dataset.records import (
    FIELD,
    SPARE_FIELD,
    Batch,
    Record,
    Unreadable,
    parse_json,
)
from comity.dataset.tags.sources import TEXT_FIELDS, is_tag_like
from comity.gc_pause import gc_paused
from comity.policies import tag
from comity.policies.syntax import shapes

EXTRA = "extra_json"
# The maximum number of members of an object that becomes a struct. If there are more, the keys of
# the object are data.
MAX_MEMBERS = 100
MAX_FIELDS = 1_000  # the maximum number of fields of records that become columns
MAX_DEPTH = 8  # the maximum depth of nested lists and objects
_PLAIN_NAME = r'"[^"\\\x00-\x1f]+"'  # JSON has no control characters in names
# A text in EXTRA that has fields with explicit nulls only.
NULLS_ONLY = rf"^\{{{_PLAIN_NAME}:null(,{_PLAIN_NAME}:null)*\}}$"

# The tag


def _kind_of(shape: shapes.Shape) -> ArrowKind:
    """Return the kind of a part of the tag."""
    match shape:
        case shapes.Nullable():
            return _kind_of(shape.shape)
        case shapes.Text():
            return ArrowText()
        case shapes.Truth():
            return ArrowTruth()
        case shapes.Count():
            return Whole()
        case shapes.Constant():
            kind = ArrowTruth() if shape.value is True else Whole()
            return OneValue(kind, shape.value)
        case shapes.Moment():
            return ArrowMoment(shape.suffix)
        case shapes.Names():
            return ArrowList(ArrowText())
        case shapes.Several():
            return ArrowList(_kind_of(shape.member))
        case shapes.Row():
            return Spans()
        case shapes.Keyed():
            member = _kind_of(shape.member)
            assert isinstance(member, Struct)
            return ArrowMap(shape.key, member)
        case shapes.Object():
            return _struct_of(shape)
    raise TypeError(f"no columns for {shape}")


def _struct_of(shape: shapes.Object, common: Collection[str] = ()) -> Struct:
    """Return the kind of an object. `common`: members with values that are often repeated."""
    kinds = {name: _kind_of(member.shape) for name, member in shape.members.items()}
    nullable = [
        name for name, member in shape.members.items() if isinstance(member.shape, shapes.Nullable)
    ]
    return Struct(
        {name: Common(kind) if name in common else kind for name, kind in kinds.items()},
        shape.required,
        nullable,
    )


TAG = _struct_of(tag.TAG, tag.IN_COMMON)

# Schemas


def schema_of(records: Iterable[Record], *, tagged: bool = True) -> pa.Schema:
    """Return the schema of a file that begins with these records.

    `tagged`: True if the schema must have a column for tags, even if no record has a tag."""
    types: dict[str, pa.DataType | None] = {}
    for record in records:
        for name, value in record.items():
            if name in types or (len(types) < MAX_FIELDS and is_name(name)):
                is_tag = isinstance(value, dict) and is_tag_like(value)
                types[name] = (
                    TAG.type if is_tag else _join_types(types.get(name, pa.null()), _type_of(value))
                )
    return complete(
        {name: type_ for name, type_ in types.items() if type_ is not None and _is_known(type_)},
        tagged=tagged,
    )


def complete(types: Mapping[str, pa.DataType], *, tagged: bool) -> pa.Schema:
    """Return the schema of these columns. The columns of comity (tags and EXTRA) come last."""
    tags = [name for name, type_ in types.items() if type_ == TAG.type]
    others = [(name, type_) for name, type_ in types.items() if name not in tags]
    if tagged and not tags:
        tags = [SPARE_FIELD if FIELD in types else FIELD]
    return pa.schema([*others, *((name, TAG.type) for name in tags), (EXTRA, pa.string())])


def schema_with(columns: Iterable[pa.Field]) -> pa.Schema:
    """Return the schema of these columns. EXTRA comes last."""
    return pa.schema(sorted(columns, key=lambda column: column.name == EXTRA))


def is_tag_type(type_: pa.DataType) -> bool:
    """Return True for the type of a column with tags: a struct with `schema` and `uses`.

    `encode` writes all members of a tag. In files of other programs, members may be missing or in
    another order."""
    return pa.types.is_struct(type_) and {"schema", "uses"} <= {field.name for field in type_}


def may_hold_tags(column: pa.Field) -> bool:
    """Return True if `GUESSED` may find a tag in this column."""
    return column.name in TEXT_FIELDS or is_tag_type(column.type)


def is_name(name: str) -> bool:
    """Return True if a column may have this name."""
    return name not in ("", EXTRA) and name.isprintable()


def _type_of(value: Any, depth: int = MAX_DEPTH) -> pa.DataType | None:
    """Return the type for a value. `pa.null()`: any type fits. None: no type fits."""
    if type(value) in _SIMPLE:
        return _SIMPLE[type(value)]
    if not depth:
        return None
    if type(value) is list:
        member: pa.DataType | None = pa.null()
        for inner in value:
            member = _join_types(member, _type_of(inner, depth - 1))
        return None if member is None else pa.list_(member)
    if type(value) is dict and 0 < len(value) <= MAX_MEMBERS and all(map(is_name, value)):
        members = {name: _type_of(inner, depth - 1) for name, inner in value.items()}
        return None if None in members.values() else pa.struct([*members.items()])
    return None


_SIMPLE = {
    type(None): pa.null(),
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
}


def _join_types(first: pa.DataType | None, second: pa.DataType | None) -> pa.DataType | None:
    if first == TAG.type:
        return first
    if first is None or second is None or first == second or pa.types.is_null(second):
        return None if second is None else first
    if pa.types.is_null(first):
        return second
    if {first, second} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_list(first) and pa.types.is_list(second):
        member = _join_types(first.value_type, second.value_type)
        return None if member is None else pa.list_(member)
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        members: dict[str, pa.DataType | None] = {field.name: field.type for field in first}
        for field in second:
            members[field.name] = _join_types(members.get(field.name, pa.null()), field.type)
        return (
            None
            if None in members.values() or len(members) > MAX_MEMBERS
            else pa.struct([*members.items()])
        )
    return None


def _is_known(type_: pa.DataType) -> bool:
    if pa.types.is_list(type_):
        return _is_known(type_.value_type)
    if pa.types.is_struct(type_):
        return all(_is_known(field.type) for field in type_)
    return not pa.types.is_null(type_)


def _kind(type_: pa.DataType) -> ArrowKind:
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return ArrowText(type_)
    if pa.types.is_integer(type_):
        return Whole(type_)
    if type_ in (pa.bool_(), pa.float64()):
        return ArrowTruth() if pa.types.is_boolean(type_) else Number()
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return ArrowList(_kind(type_.value_type), type_)
    if pa.types.is_struct(type_):
        return Struct({field.name: _kind(field.type) for field in type_})
    return Foreign(type_)


def kinds_of(schema: pa.Schema) -> dict[str, ArrowKind]:
    """Return the kinds of all columns except EXTRA.

    A column is read as tags if its members have the names of a tag's members."""
    return {
        field.name: TAG if is_tag_type(field.type) else _kind(field.type)
        for field in schema
        if field.name != EXTRA
    }


# Records


@gc_paused()
def encode(records: Sequence[Record], schema: pa.Schema | None = None) -> pa.RecordBatch:
    """Return records as a batch.

    `schema`: the result of `schema_of` or `proper`. None: `schema_of(records)`."""
    schema = schema or schema_of(records)
    kinds = kinds_of(schema)
    columns: dict[str, list[Any]] = {name: [None] * len(records) for name in schema.names}
    for row, record in enumerate(records):
        rest = {}
        for name, value in record.items():
            try:
                columns[name][row] = kinds[name].fit(value)
            except (KeyError, MisfitError):
                rest[name] = value
        if rest:
            columns[EXTRA][row] = _json(rest)
    return pa.record_batch(
        [pa.array(columns[field.name], field.type) for field in schema], schema=schema
    )


class Rows(NamedTuple):
    """Rows in an order. Some rows are in columns, and the rest are records."""

    batch: pa.RecordBatch
    """The rows in columns."""
    records: Sequence[Record] = ()
    """The other rows."""
    order: pa.Array | None = None
    """The indices of the rows, in the order of the rows. The rows of the batch have the first
    indices, the records the following ones. None: there are no records, and the batch is in
    order."""

    def __len__(self) -> int:
        return int(self.batch.num_rows) + len(self.records)

    @property
    def columns(self) -> pa.RecordBatch:
        """All rows as columns."""
        if self.order is None:
            return self.batch
        table = pa.Table.from_batches([self.batch, encode(self.records, self.batch.schema)])
        return table.take(self.order).combine_chunks().to_batches()[0]


@gc_paused()
def decode(batch: pa.RecordBatch, numbers: Sequence[int] | None = None) -> Batch:
    """Return the records of a batch.

    `numbers`: the numbers of the rows in their file. None: they begin with 1."""
    numbers = numbers or range(1, batch.num_rows + 1)
    columns = {
        name: kind.values(batch.column(name)) for name, kind in kinds_of(batch.schema).items()
    }
    records: Batch = [*rows(batch.num_rows, columns)]
    if EXTRA not in batch.schema.names:
        return records
    for row, text in enumerate(batch.column(EXTRA).to_pylist()):
        if text is not None:
            records[row] = _with_rest(records[row], text, numbers[row])  # type: ignore[arg-type]  # no row was here yet
    return records


def _with_rest(record: Record, text: str, number: int) -> Record | Unreadable:
    try:
        rest = parse_json(text)
        if isinstance(rest, dict) and all(
            rest[name] is None for name in rest.keys() & record.keys()
        ):
            return rest | record
        message = f"{EXTRA} is not an object of further fields"
    except (ValueError, RecursionError) as error:
        message = f"{EXTRA} is no JSON: {error}"
    return Unreadable(f"row {number}", _json({**record, EXTRA: text}).encode(), message)


@gc_paused()
def adapt(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to `schema`, column by column. Values that do not fit are moved to EXTRA."""
    if batch.schema.equals(schema):
        return batch
    columns = {name: batch.column(name) for name in batch.schema.names}
    types = {field.name: field.type for field in schema}
    unlike = [
        name for name, array in columns.items() if name != EXTRA and array.type != types.get(name)
    ]
    if unlike:
        columns |= _convert(batch, schema, unlike)
    elif EXTRA in columns:
        columns[EXTRA] = columns[EXTRA].cast(types[EXTRA])
    return pa.record_batch(
        [
            columns[name] if name in columns else pa.nulls(batch.num_rows, type_)
            for name, type_ in types.items()
        ],
        schema=schema,
    )


def _convert(batch: pa.RecordBatch, schema: pa.Schema, names: Iterable[str]) -> dict[str, pa.Array]:
    """Convert the columns `names`. Return the new columns, and EXTRA with values that do not fit.

    A column that `schema` lacks is moved to EXTRA."""
    kinds, batch_kinds = kinds_of(schema), kinds_of(batch.schema)
    rest: list[Record] = [{} for _ in range(batch.num_rows)]
    columns = {}
    for name in names:
        fitted: list[Any] = [None] * batch.num_rows
        for row, value in enumerate(batch_kinds[name].values(batch.column(name))):
            if value is not None:
                try:
                    fitted[row] = kinds[name].fit(value)
                except (KeyError, MisfitError):
                    rest[row][name] = value
        if name in kinds:
            columns[name] = pa.array(fitted, kinds[name].type)
    return columns | {EXTRA: _extra(batch, rest)}


def _extra(batch: pa.RecordBatch, rest: list[Record]) -> pa.Array:
    texts: list[Any] = (
        batch.column(EXTRA).to_pylist() if EXTRA in batch.schema.names else [None] * batch.num_rows
    )
    for row, fields in enumerate(rest):
        if fields:
            # Join them as text, so that an unreadable text stays as it is.
            texts[row] = (
                _json(fields)
                if texts[row] in (None, "{}")
                else f"{texts[row][:-1]},{_json(fields)[1:]}"
            )
    return pa.array(texts, pa.string())


def _json(value: Any) -> str:
    """Return JSON in ASCII, which can contain half of a surrogate pair."""
    return json.dumps(value, separators=(",", ":"))
