"""Judgement of many records at once, for what their columns say plainly: `judged` has to see the rest only.

    sorted_out(batch, terms) -> Sorted      who is permitted as it stands, and who is refused and why
Both decide alike. A row with anything that needs a second look, or that `judged` might not understand, is left to it."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.arrow_schema import EXTRA, TAG, may_hold_tags
from comity.dataset.permissions.terms import CURRENT, LICENSES, Terms
from comity.dataset.tag_sources import InField, TagSource
from comity.policies.tag import AGENT, BASIC_USES, HASH, RULE, USE

_NAMES = ("prohibited_modifications", "prohibited_contexts", "required_contexts")
_RESOURCES = ("must_use", "must_include")
_LENGTHS = ("max_chars", "max_words")
_NULLS_ONLY = r'^\{"[^"\\]+":null(,"[^"\\]+":null)*\}$'  # fields that are there and have no value
_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # 1 to 9999, in microseconds since 1970


class Sorted(NamedTuple):
    """The rows of a batch."""

    kept: pa.BooleanArray  # permitted; nothing is to be cut and nothing to be added
    whys: pa.StringArray  # Judged.why of those that are refused; null of others

    @property
    def rest(self) -> pa.BooleanArray:
        """Those that `judged` has to see."""
        return pc.and_(pc.invert(self.kept), self.whys.is_null())


def sorted_out(batch: pa.RecordBatch, terms: Terms) -> Sorted:
    length = batch.num_rows
    kept, whys = _same(False, length), pa.nulls(length, pa.string())
    name = tag_column(batch.schema, terms.tags)
    if not length or name is None or terms.defaults:
        return Sorted(kept, whys)
    if terms.recrawled and not CURRENT.isdisjoint(terms.uses):
        return Sorted(kept, whys)
    tag = batch.column(name)
    doubts = _doubts(batch, tag)
    if doubts is None:
        return _decided(tag, terms)
    sure = pc.indices_nonzero(pc.invert(pc.is_in(_numbers(length), doubts)))
    found = _decided(tag.take(sure), terms)
    places = pc.index_in(_numbers(length), sure.cast(pa.int64()))
    return Sorted(pc.fill_null(found.kept.take(places), False), found.whys.take(places))


def tag_column(schema: pa.Schema, tags: TagSource) -> str | None:
    """The column in which the tag of every row is; None where that is to be found out row by row."""
    if not isinstance(tags, InField):
        return None
    alike = [tags.name] if tags.name else [field.name for field in schema if may_hold_tags(field)]
    name = alike[0] if len(alike) == 1 else ""
    return name if name in schema.names and schema.field(name).type == TAG.type else None


class _Flat:
    """Lists of structs, as one array of structs, and the row of each."""

    def __init__(self, lists: pa.ListArray) -> None:
        self.lengths = pc.list_value_length(lists)
        self.rows = pc.list_parent_indices(lists)
        self.structs = pc.list_flatten(lists)

    def __getitem__(self, name: str) -> pa.Array:
        return self.structs.field(name)


# Doubts: what the schema of the tag forbids, and the types of the columns do not; and what is not decided here


class _Doubts:
    def __init__(self) -> None:
        self._rows: list[pa.Array] = []

    def unless(self, is_well: pa.Array, rows: pa.Array) -> None:
        """`rows`: of each value. Null is not well."""
        if is_well.null_count or not pc.all(is_well, min_count=0).as_py():
            self._rows.append(rows.filter(pc.invert(pc.fill_null(is_well, False))))

    @property
    def rows(self) -> pa.Array | None:
        return pa.concat_arrays(self._rows) if self._rows else None


def _doubts(batch: pa.RecordBatch, tag: pa.StructArray) -> pa.Array | None:
    doubts = _Doubts()
    rows = _numbers(len(tag))
    doubts.unless(tag.is_valid(), rows)
    if EXTRA in batch.schema.names and (extra := batch.column(EXTRA)).null_count < len(tag):
        doubts.unless(pc.or_(extra.is_null(), pc.fill_null(pc.match_substring_regex(extra, _NULLS_ONLY), True)), rows)
    doubts.unless(pc.equal(tag.field("schema"), 1), rows)
    doubts.unless(_matches(tag.field("agent"), AGENT), rows)
    doubts.unless(tag.field("embedded").is_null(), rows)
    doubts.unless(pc.equal(pc.list_value_length(tag.field("elements")), 0), rows)
    reasons, policies, uses = _Flat(tag.field("reasons")), _Flat(tag.field("policies")), _Flat(tag.field("uses"))
    for flat in (reasons, policies, uses):
        doubts.unless(flat.lengths.is_valid(), rows)
        doubts.unless(flat.structs.is_valid(), flat.rows)
    doubts.unless(_matches(reasons["rule"], RULE), reasons.rows)
    for name in ("spec", "url", "text"):
        doubts.unless(reasons[name].is_valid(), reasons.rows)
    doubts.unless(pc.greater_equal(reasons["line"], 0), reasons.rows)
    doubts.unless(pc.greater_equal(policies["status"], 0), policies.rows)
    doubts.unless(pc.or_(policies["sha256"].is_null(), pc.fill_null(_matches(policies["sha256"], HASH), True)), policies.rows)
    doubts.unless(policies["url"].is_valid(), policies.rows)
    _doubt_repeated(doubts, policies.rows, policies["url"])
    _doubt_repeated(doubts, uses.rows, uses["use"])
    _doubt_uses(doubts, uses, reasons.lengths)
    for use in BASIC_USES:
        doubts.unless(pc.is_in(rows, uses.rows.filter(pc.fill_null(pc.equal(uses["use"], use), False))), rows)
    return doubts.rows


def _doubt_uses(doubts: _Doubts, uses: _Flat, reasons: pa.Array) -> None:
    """`reasons`: how many a row has."""
    doubts.unless(_matches(uses["use"], USE), uses.rows)
    doubts.unless(pc.is_in(uses["verdict"], pa.array(["allow", "deny"])), uses.rows)
    doubts.unless(uses["stated"].is_valid(), uses.rows)
    doubts.unless(pc.greater(pc.list_value_length(uses["because"]), 0), uses.rows)
    because = _Flat(uses["because"])
    rows = uses.rows.take(because.rows)
    doubts.unless(pc.and_(pc.greater_equal(because.structs, 0), pc.less(because.structs, reasons.take(rows))), rows)
    for name in _LENGTHS:
        doubts.unless(_is_null_or(pc.greater_equal(uses[name], 0)), uses.rows)
    for name in (*_NAMES, *_RESOURCES):
        doubts.unless(_is_null_or(pc.equal(pc.list_value_length(uses[name]), 0)), uses.rows)
    until = uses["until"].cast(pa.int64())
    doubts.unless(_is_null_or(pc.and_(pc.greater_equal(until, _YEARS[0]), pc.less_equal(until, _YEARS[1]))), uses.rows)


def _doubt_repeated(doubts: _Doubts, rows: pa.Array, names: pa.Array) -> None:
    """A name that stands twice in a row."""
    counted = pa.table({"row": rows, "name": names}).group_by(["row", "name"], use_threads=False).aggregate([([], "count_all")])
    if len(counted) < len(rows):
        doubts.unless(pc.equal(counted["count_all"].combine_chunks(), 1), counted["row"].combine_chunks())


def _is_null_or(is_well: pa.Array) -> pa.Array:
    return pc.fill_null(is_well, True)


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, rf"\A(?:{pattern})\z")


# Decisions on tags that are valid


def _decided(tag: pa.StructArray, terms: Terms) -> Sorted:
    length = len(tag)
    uses, rules = _Flat(tag.field("uses")), _Rules(_Flat(tag.field("reasons")))
    whys, is_open = pa.nulls(length, pa.string()), rules.names_license
    for name in terms.uses:
        one = _One(uses, name, length)
        says = pc.if_else(one.is_missing, f"not-listed:{name}", pc.if_else(one.is_denied, rules.deciding(one), None))
        whys = pc.coalesce(whys, pc.if_else(is_open, None, says))
        is_open = _any(is_open, one.is_ended(terms), one.is_limited)
    preserve = _One(uses, "preserve", length)
    ended = pc.and_not(preserve.is_ended(terms), preserve.is_denied)
    return Sorted(pc.and_(whys.is_null(), pc.invert(_any(is_open, ended))), whys)


class _One:
    """One use of every row."""

    def __init__(self, uses: _Flat, name: str, length: int) -> None:
        chosen = pc.equal(uses["use"], name)
        self._structs = uses.structs.filter(chosen)
        self._places = pc.index_in(_numbers(length), uses.rows.filter(chosen)) if len(self._structs) < length else None
        self.is_missing = _same(False, length) if self._places is None else self._places.is_null()
        self.is_denied = pc.fill_null(pc.equal(self["verdict"], "deny"), False)

    def __getitem__(self, name: str) -> pa.Array:
        """Null where the row has not the use, or the use has not this."""
        values = self._structs.field(name)
        return values if self._places is None else values.take(self._places)

    def is_ended(self, terms: Terms) -> pa.BooleanArray:
        """Or only `judged` can tell."""
        now = pa.scalar(terms.now, pa.timestamp("us", "UTC"))
        return pc.or_(pc.fill_null(pc.less_equal(self["until"], now), False), pc.fill_null(self["until_recrawled"], False))

    @property
    def is_limited(self) -> pa.BooleanArray:
        return _any(*(self[name].is_valid() for name in _LENGTHS))


class _Rules:
    """The rules of the reasons."""

    def __init__(self, reasons: _Flat) -> None:
        self._starts = pc.subtract(pc.cumulative_sum(reasons.lengths), reasons.lengths)
        self._rules = reasons["rule"]
        licensed = reasons.rows.filter(pc.is_in(self._rules, pa.array([*LICENSES])))
        self.names_license = pc.is_in(_numbers(len(reasons.lengths)), licensed)

    def deciding(self, use: _One) -> pa.StringArray:
        """Why it is denied."""
        first = pc.add(pc.list_element(use["because"], 0), self._starts)
        return pc.binary_join_element_wise("deny", self._rules.take(first), ":")


def _any(*masks: pa.BooleanArray) -> pa.BooleanArray:
    return reduce(pc.or_, masks)


def _numbers(length: int) -> pa.Array:
    return pa.array(range(length), pa.int64())


def _same(value: bool, length: int) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value), length)
