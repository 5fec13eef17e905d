"""Columns before an export: records that are alike are judged once.

Judgement has one place, `apply_terms` in comity.dataset.permissions.terms, which takes a record. To make a record of each row of
a Parquet file would take many times as long as to copy its columns, and most rows differ in nothing that judgement asks for. So:

1. A row is doubtful where its columns do not show that its tag is valid by its shape (comity.policies.tag.TAG), or that it has
   nothing but its columns (EXTRA). It is made a record and judged by itself.
2. A row is particular where what is asked of it depends on more than the facts of step 3: on its own fields (lengths, elements on
   which one of the uses may be refused, embedded files, when its page was fetched again), or where an export would add something
   to it. It is judged by itself.
3. All others are told apart by their facts alone: of each use that is asked for, and of `preserve`, whether it is listed, by
   which rule it is denied, and whether it has ended. The first row with the same facts is made a record and judged, for all of
   them, and the answer is remembered. If nothing of it changes, all of them stay as they are; if it is refused, all are, and why.

What is not known here (a new member of the tag, another restriction) makes a row doubtful or particular: a column never permits
anything, and never refuses.

    Prefilter(terms).sort(batch) -> Sorted      who stays as it is, who is refused and why, and who is to be judged by itself"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.arrow_schema import EXTRA, NULLS_ONLY, TAG, decode, may_hold_tags
from comity.dataset.files.arrow_types import name_numbers
from comity.dataset.permissions.terms import CURRENT, LICENSES, Terms, apply_terms
from comity.dataset.records import Unreadable
from comity.dataset.tags.sources import InField, TagSource
from comity.policies import tag as tags
from comity.policies.answers.element_rule import ALL
from comity.policies.answers.qualifiers import MODIFIABLE
from comity.policies.elements.coverage import refusing_actions
from comity.policies.syntax import shapes

MAX_REMEMBERED = 10_000  # facts
_TIMES = ("until", "until_recrawled")  # restrictions of a use that say when it ends; all others ask for something of the record
_LIMITS = tuple(name for name, member in tags.USE.members.items() if not member.is_required and name not in _TIMES)
_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # 1 to 9999, in microseconds since 1970


class Sorted(NamedTuple):
    """The rows of a batch."""

    permitted: pa.BooleanArray  # as they are: nothing is to be cut and nothing to be added
    refusals: pa.StringArray  # TermsApplied.cause of those that are refused; null of others

    @property
    def rest(self) -> pa.BooleanArray:
        """The rows that are to be judged one by one."""
        return pc.and_(pc.invert(self.permitted), self.refusals.is_null())


class Prefilter:
    """The first look at the rows of an export. It can be pickled."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._answers: dict[str, tuple[bool, str | None]] = {}  # facts -> whether such rows stay as they are, and why they go

    @property
    def tags(self) -> TagSource:
        return self._terms.tags

    def sort(self, batch: pa.RecordBatch) -> Sorted:
        length = batch.num_rows
        permitted, refusals = _same(False, length), pa.nulls(length, pa.string())
        name = tag_column(batch.schema, self._terms.tags)
        if not length or name is None or self._terms.defaults:
            return Sorted(permitted, refusals)
        if self._terms.recrawled and (self._terms.last_fetch or not CURRENT.isdisjoint(self._terms.uses)):
            return Sorted(permitted, refusals)
        tag = batch.column(name)
        doubtful = _doubts(batch, tag)
        sure = _numbers(length) if doubtful is None else pc.indices_nonzero(pc.invert(pc.is_in(_numbers(length), doubtful)))
        facts = _facts(tag if doubtful is None else tag.take(sure), self._terms)  # null where the row is particular
        answers = self._answers_to(facts, batch, sure)
        is_alike = facts.is_valid()
        positions = pc.index_in(_numbers(length), sure.filter(is_alike).cast(pa.int64()))
        numbers = facts.filter(is_alike).dictionary_encode().indices.take(positions)
        return Sorted(
            pc.fill_null(pa.array([stays for stays, _ in answers], pa.bool_()).take(numbers), False),
            pa.array([refusal for _, refusal in answers], pa.string()).take(numbers),
        )

    def _answers_to(self, facts: pa.StringArray, batch: pa.RecordBatch, rows: pa.Array) -> list[tuple[bool, str | None]]:
        """The answers to the different facts, in their order. `rows`: where they stand in the batch."""
        distinct = [name for name in facts.unique().to_pylist() if name is not None]
        unknown = [name for name in distinct if name not in self._answers]
        if unknown:
            if len(self._answers) + len(unknown) > MAX_REMEMBERED:
                self._answers.clear()
                unknown = distinct
            first = rows.take(pc.index_in(pa.array(unknown), facts))
            self._answers |= zip(unknown, self._judged(batch.take(first)), strict=True)
        return [self._answers[name] for name in distinct]

    def _judged(self, batch: pa.RecordBatch) -> Iterator[tuple[bool, str | None]]:
        """Yield an answer for each row. Neither: all that are like it are to be judged one by one."""
        for record in decode(batch):
            answer = None if isinstance(record, Unreadable) else apply_terms(record, self._terms)
            yield answer is not None and answer.record is record, answer.cause or None if answer else None


def tag_column(schema: pa.Schema, tags: TagSource) -> str | None:
    """The column in which the tag of every row is; None where that is to be found out row by row."""
    if not isinstance(tags, InField):
        return None
    alike = [tags.name] if tags.name else [field.name for field in schema if may_hold_tags(field)]
    name = alike[0] if len(alike) == 1 else ""
    return name if name in schema.names and schema.field(name).type == TAG.type else None


class _Flat:
    """Lists as one array, and the row of each value."""

    def __init__(self, lists: pa.ListArray) -> None:
        self.lengths = pc.list_value_length(lists)
        self.rows = pc.list_parent_indices(lists)
        self.values = pc.list_flatten(lists)

    def __getitem__(self, name: str) -> pa.Array:
        return self.values.field(name)


# Doubts: what the columns do not show to be valid


class _Doubts:
    def __init__(self) -> None:
        self._rows: list[pa.Array] = []

    def unless(self, is_well: pa.Array, rows: pa.Array) -> None:
        """Doubt the rows whose value is not true. `rows`: of each value."""
        if is_well.null_count or not pc.all(is_well, min_count=0).as_py():
            self._rows.append(rows.filter(pc.invert(pc.fill_null(is_well, False))))

    @property
    def rows(self) -> pa.Array | None:
        return pa.concat_arrays(self._rows) if self._rows else None

    def check(self, shape: shapes.Shape, values: pa.Array, rows: pa.Array) -> None:
        """Doubt the rows whose values may not be of the shape. Null is of no shape but Nullable."""
        if not len(values):
            return
        match shape:
            case shapes.Nullable():
                is_there = values.is_valid()
                self.check(shape.shape, values.filter(is_there), rows.filter(is_there))
            case shapes.Text(values=()):
                self.unless(_matches(values, shape.pattern) if shape.pattern else values.is_valid(), rows)
            case shapes.Text():
                self.unless(pc.is_in(values, pa.array(shape.values)), rows)
            case shapes.Count():
                self.unless(pc.greater_equal(values, 0), rows)
            case shapes.Constant():
                self.unless(pc.equal(values, shape.value), rows)
            case shapes.Moment(is_checked=True):
                microseconds = values.cast(pa.int64())
                self.unless(pc.and_(pc.greater_equal(microseconds, _YEARS[0]), pc.less_equal(microseconds, _YEARS[1])), rows)
            case shapes.Truth() | shapes.Moment():
                self.unless(values.is_valid(), rows)
            case shapes.Several():
                self.unless(pc.greater_equal(pc.list_value_length(values), shape.at_least), rows)
                flat = _Flat(values)
                self.check(shape.member, flat.values, rows.take(flat.rows))
            case shapes.Keyed():
                self.unless(pc.greater_equal(pc.list_value_length(values), shape.at_least), rows)
                flat = _Flat(values)
                self._check_keys(shape, rows, flat[shape.key], rows.take(flat.rows))
                self.check(shape.member, flat.values, rows.take(flat.rows))
            case shapes.Object():
                self.unless(values.is_valid(), rows)
                for name, member in shape.members.items():
                    self._check_member(member, values.field(name), rows)
            case shapes.Row():
                self.unless(values.is_valid(), rows)
                for number, part in enumerate(shape.members):
                    self._check_member(shapes.Member(part, is_required=not number), values.field(number), rows)
            case shapes.Names():
                self.unless(values.is_valid(), rows)
                flat = _Flat(values)
                rows = rows.take(flat.rows)
                self.unless(_matches(flat.values, shape.pattern) if shape.pattern else flat.values.is_valid(), rows)
                self._check_once(flat.values, flat.rows, rows)
            case _:  # only the record shows whether it is valid
                self.unless(values.is_null(), rows)

    def _check_member(self, member: shapes.Member, values: pa.Array, rows: pa.Array) -> None:
        if not member.is_required:
            is_there = values.is_valid()
            values, rows = values.filter(is_there), rows.filter(is_there)
        self.check(member.shape, values, rows)

    def _check_keys(self, shape: shapes.Keyed, rows: pa.Array, keys: pa.Array, rows_of_keys: pa.Array) -> None:
        self.check(shapes.Text(shape.pattern), keys, rows_of_keys)
        for key in shape.required:
            self.unless(pc.is_in(rows, rows_of_keys.filter(pc.fill_null(pc.equal(keys, key), False))), rows)
        self._check_once(keys, rows_of_keys, rows_of_keys)

    def _check_once(self, names: pa.Array, lists: pa.Array, rows: pa.Array) -> None:
        """Doubt the rows with a name that stands twice in a list, or two that are null. `lists`: numbers of their lists."""
        pairs = name_numbers(names, lists)
        if pc.count_distinct(pairs, "all").as_py() < len(pairs):
            frequencies = pairs.value_counts()
            first = pc.index_in(frequencies.field("values"), pairs)
            self.unless(pc.equal(frequencies.field("counts"), 1), rows.take(first))


def _doubts(batch: pa.RecordBatch, tag: pa.StructArray) -> pa.Array | None:
    """The rows; None where there are none."""
    doubts = _Doubts()
    rows = _numbers(len(tag))
    if EXTRA in batch.schema.names and (extra := batch.column(EXTRA)).null_count < len(tag):
        doubts.unless(pc.or_(extra.is_null(), pc.fill_null(pc.match_substring_regex(extra, NULLS_ONLY), True)), rows)
    doubts.check(tags.TAG, tag, rows)
    reasons = pc.list_value_length(tag.field("reasons"))
    for name in ("uses", "embedded", "elements"):
        statements = _Flat(tag.field(name))
        reason_indices = _Flat(statements["because"])
        rows = statements.rows.take(reason_indices.rows)
        doubts.unless(pc.less(reason_indices.values, reasons.take(rows)), rows)
    return doubts.rows


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, rf"\A(?:{pattern})\z")


# Facts of tags that are valid


def _facts(tag: pa.StructArray, terms: Terms) -> pa.StringArray:
    """The facts by which rows are told apart; null of those that are particular."""
    length = len(tag)
    uses, rules = _Flat(tag.field("uses")), _Rules(_Flat(tag.field("reasons")))
    facts, is_refused, is_particular = [], _same(False, length), _same(False, length)
    requested = [_Use(uses, name, length, terms) for name in terms.uses]
    for use in requested:
        facts.append(use.facts(rules))
        is_particular = pc.or_(is_particular, pc.and_not(use.ends_by_record, is_refused))
        is_refused = _any(is_refused, use.is_missing, use.is_denied, use.is_ended)
    preserve = _Use(uses, "preserve", length, terms)
    facts.append(preserve.facts(rules))
    asks = _any(
        rules.names_license,
        preserve.ends_by_record,
        _has_refused_elements(tag, terms),
        tag.field("embedded").is_valid(),
        *(use.is_limited for use in requested),
        *(_Use(uses, name, length, terms).prohibits_modifications for name in (MODIFIABLE if terms.modifications else ())),
    )
    is_particular = pc.or_(is_particular, pc.and_not(asks, is_refused))
    return pc.if_else(is_particular, None, pc.binary_join_element_wise(*facts, " "))


def _has_refused_elements(tag: pa.StructArray, terms: Terms) -> pa.BooleanArray:
    """Return of each row whether an action is prohibited on an element that may refuse one of the uses."""
    words = frozenset((ALL, *(word for use in terms.uses for word in refusing_actions(use, terms.vocabulary))))
    elements = _Flat(tag.field("elements"))
    actions = _Flat(elements["deny"])
    refused = pc.is_in(actions.values, pa.array(sorted(words), pa.string()))
    return pc.is_in(_numbers(len(tag)), elements.rows.take(actions.rows.filter(refused)))


class _Use:
    """One use of every row."""

    def __init__(self, uses: _Flat, name: str, length: int, terms: Terms) -> None:
        chosen = pc.equal(uses["use"], name)
        self._structs = uses.values.filter(chosen)
        self._positions = pc.index_in(_numbers(length), uses.rows.filter(chosen)) if len(self._structs) < length else None
        self.is_missing = _same(False, length) if self._positions is None else self._positions.is_null()
        self.is_denied = pc.fill_null(pc.equal(self["verdict"], "deny"), False)
        now = pa.scalar(terms.now, pa.timestamp("us", "UTC"))
        self.is_ended = pc.and_not(pc.fill_null(pc.less_equal(self["until"], now), False), self.is_denied)

    def __getitem__(self, name: str) -> pa.Array:
        """Null where the row has not the use, or the use has not this."""
        values = self._structs.field(name)
        return values if self._positions is None else values.take(self._positions)

    @property
    def ends_by_record(self) -> pa.BooleanArray:
        """Return of each use whether other records decide if it has ended."""
        return pc.and_not(pc.fill_null(self["until_recrawled"], False), self.is_denied)

    @property
    def is_limited(self) -> pa.BooleanArray:
        return _any(*(_is_something(self[name]) for name in _LIMITS))

    @property
    def prohibits_modifications(self) -> pa.BooleanArray:
        return _is_something(self["prohibited_modifications"])

    def facts(self, rules: _Rules) -> pa.StringArray:
        first = pc.if_else(self.is_denied, pc.add(pc.list_element(self["because"], 0), rules.starts), None)
        ends = pc.if_else(self.is_ended, "ended", "allow")
        return pc.if_else(self.is_missing, "missing", pc.coalesce(rules.rules.take(first), ends))


def _is_something(values: pa.Array) -> pa.BooleanArray:
    return (
        pc.fill_null(pc.greater(pc.list_value_length(values), 0), False) if pa.types.is_list(values.type) else values.is_valid()
    )


class _Rules:
    """The rules of the reasons."""

    def __init__(self, reasons: _Flat) -> None:
        self.starts = pc.subtract(pc.cumulative_sum(reasons.lengths), reasons.lengths)  # of each row
        self.rules = reasons["rule"]
        licensed = reasons.rows.filter(pc.is_in(self.rules, pa.array([*LICENSES])))
        self.names_license = pc.is_in(_numbers(len(reasons.lengths)), licensed)


def _any(*masks: pa.BooleanArray) -> pa.BooleanArray:
    return reduce(pc.or_, masks)


@lru_cache(maxsize=16)
def _numbers(length: int) -> pa.Array:
    return pa.array(range(length), pa.int64())


def _same(value: bool, length: int) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value), length)
