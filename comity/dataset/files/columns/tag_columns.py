"""Find the column with the tags of a batch, and check its tags without making records.

tag_column(schema, tags)    the name of the column that has the tag of every row
doubtful_rows(batch, tag)   the rows for which columns do not show that the tag is valid; they must
                            become records to be checked
Flat(lists)                 the values of lists, and the row of each value"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.columns.arrow_schema import EXTRA, NULLS_ONLY, TAG, may_hold_tags
from comity.dataset.files.columns.arrow_types import name_numbers
from comity.dataset.tags.sources import InField, TagSource
from comity.policies import tag as tags
from comity.policies.syntax import shapes

_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # 1 to 9999, in microseconds since 1970


@lru_cache(maxsize=16)
def numbers(length: int) -> pa.Array:
    """Return the numbers from 0 to below `length`."""
    return pa.array(range(length), pa.int64())


def tag_column(schema: pa.Schema, source: TagSource) -> str | None:
    """Return the name of the column that has the tag of every row.

    None if each row must be searched for its tag."""
    if not isinstance(source, InField):
        return None
    alike = (
        [source.name] if source.name else [field.name for field in schema if may_hold_tags(field)]
    )
    name = alike[0] if len(alike) == 1 else ""
    return name if name in schema.names and schema.field(name).type == TAG.type else None


class Flat:
    """Lists as one array, and the row of each value."""

    def __init__(self, lists: pa.ListArray) -> None:
        self.lengths = pc.list_value_length(lists)
        self.rows = pc.list_parent_indices(lists)
        self.values = pc.list_flatten(lists)

    def __getitem__(self, name: str) -> pa.Array:
        return self.values.field(name)


class _Doubts:
    """Collects doubtful rows: the columns do not show that their tags are valid."""

    def __init__(self) -> None:
        self._rows: list[pa.Array] = []

    def unless(self, is_well: pa.Array, rows: pa.Array) -> None:
        """Add the rows with a false or null value. `rows`: for each value, its row number."""
        if is_well.null_count or not pc.all(is_well, min_count=0).as_py():
            self._rows.append(rows.filter(pc.invert(pc.fill_null(is_well, False))))

    @property
    def rows(self) -> pa.Array | None:
        return pa.concat_arrays(self._rows) if self._rows else None

    def check(self, shape: shapes.Shape, values: pa.Array, rows: pa.Array) -> None:
        """Add the rows with values that may not have the shape. Null has the shape Nullable only.

        `rows`: for each value, the number of its row."""
        if not len(values):
            return
        match shape:
            case shapes.Nullable():
                is_there = values.is_valid()
                self.check(shape.shape, values.filter(is_there), rows.filter(is_there))
            case shapes.Text(values=()):
                self.unless(
                    _matches(values, shape.pattern) if shape.pattern else values.is_valid(), rows
                )
            case shapes.Text():
                self.unless(pc.is_in(values, pa.array(shape.values)), rows)
            case shapes.Count():
                self.unless(pc.greater_equal(values, 0), rows)
            case shapes.Constant():
                self.unless(pc.equal(values, shape.value), rows)
            case shapes.Moment(is_checked=True):
                microseconds = values.cast(pa.int64())
                self.unless(
                    pc.and_(
                        pc.greater_equal(microseconds, _YEARS[0]),
                        pc.less_equal(microseconds, _YEARS[1]),
                    ),
                    rows,
                )
            case shapes.Truth() | shapes.Moment():
                self.unless(values.is_valid(), rows)
            case shapes.Several():
                self.unless(pc.greater_equal(pc.list_value_length(values), shape.at_least), rows)
                flat = Flat(values)
                self.check(shape.member, flat.values, rows.take(flat.rows))
            case shapes.Keyed():
                self.unless(pc.greater_equal(pc.list_value_length(values), shape.at_least), rows)
                flat = Flat(values)
                self._check_keys(shape, rows, flat[shape.key], rows.take(flat.rows))
                self.check(shape.member, flat.values, rows.take(flat.rows))
            case shapes.Object():
                self.unless(values.is_valid(), rows)
                for name, member in shape.members.items():
                    self._check_member(member, values.field(name), rows)
            case shapes.Row():
                self.unless(values.is_valid(), rows)
                for number, part in enumerate(shape.members):
                    self._check_member(
                        shapes.Member(part, is_required=not number), values.field(number), rows
                    )
            case shapes.Names():
                self.unless(values.is_valid(), rows)
                flat = Flat(values)
                rows = rows.take(flat.rows)
                self.unless(
                    _matches(flat.values, shape.pattern)
                    if shape.pattern
                    else flat.values.is_valid(),
                    rows,
                )
                self._check_once(flat.values, flat.rows, rows)
            case _:  # only the record shows whether it is valid
                self.unless(values.is_null(), rows)

    def _check_member(self, member: shapes.Member, values: pa.Array, rows: pa.Array) -> None:
        if not member.is_required:
            is_there = values.is_valid()
            values, rows = values.filter(is_there), rows.filter(is_there)
        self.check(member.shape, values, rows)

    def _check_keys(
        self, shape: shapes.Keyed, rows: pa.Array, keys: pa.Array, rows_of_keys: pa.Array
    ) -> None:
        self.check(shapes.Text(shape.pattern), keys, rows_of_keys)
        for key in shape.required:
            self.unless(
                pc.is_in(rows, rows_of_keys.filter(pc.fill_null(pc.equal(keys, key), False))), rows
            )
        self._check_once(keys, rows_of_keys, rows_of_keys)

    def _check_once(self, names: pa.Array, lists: pa.Array, rows: pa.Array) -> None:
        """Add the rows with a repeated name in a list, or with two null names in a list.

        `lists`: the number of each name's list."""
        pairs = name_numbers(names, lists)
        if pc.count_distinct(pairs, "all").as_py() < len(pairs):
            frequencies = pairs.value_counts()
            first = pc.index_in(frequencies.field("values"), pairs)
            self.unless(pc.equal(frequencies.field("counts"), 1), rows.take(first))


def doubtful_rows(batch: pa.RecordBatch, tag: pa.StructArray) -> pa.Array | None:
    """Return the numbers of the doubtful rows, perhaps with repetitions. None: no row is doubtful.

    A row is doubtful unless its columns show that its tag is valid, and EXTRA has no fields with
    values. `tag`: the column with the tags."""
    doubts = _Doubts()
    rows = numbers(len(tag))
    if EXTRA in batch.schema.names and (extra := batch.column(EXTRA)).null_count < len(tag):
        doubts.unless(
            pc.or_(
                extra.is_null(), pc.fill_null(pc.match_substring_regex(extra, NULLS_ONLY), True)
            ),
            rows,
        )
    doubts.check(tags.TAG, tag, rows)
    reasons = pc.list_value_length(tag.field("reasons"))
    for name in ("uses", "embedded", "elements"):
        statements = Flat(tag.field(name))
        reason_indices = Flat(statements["because"])
        rows = statements.rows.take(reason_indices.rows)
        doubts.unless(pc.less(reason_indices.values, reasons.take(rows)), rows)
    return doubts.rows


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, rf"\A(?:{pattern})\z")
