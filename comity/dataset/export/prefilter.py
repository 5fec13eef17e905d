"""Sort the rows of an export by their columns, so that similar records are judged once.

    Prefilter(terms).sort(batch) -> Sorted      rows to keep unchanged, to refuse, and to judge

Only `apply_terms` in comity.dataset.permissions.terms judges, and its argument is a record. To turn
each row of a Parquet file into a record takes many times as long as to copy the columns. But most
rows are equal in all facts on which the judgement depends. Therefore:

1. A row is doubtful if its columns do not show that its tag has a valid form
   (comity.policies.tag.TAG) and that the row consists of its columns alone (EXTRA). It becomes a
   record and is judged alone.
2. A row is particular if the answer depends on more than the facts of step 3: on its other fields
   (lengths, elements that may refuse one of the uses, embedded files, a later fetch of its page),
   or if an export would add a field to it. It becomes a record and is judged alone.
3. All other rows differ only in their facts. For each requested use and for `preserve`, the fact is
   "missing" (the tag does not list the use), the rule that denies it, "ended" or "allow". The first
   row with certain facts becomes a record. Its answer is remembered for all rows with these facts:
   if the record stays unchanged, these rows stay unchanged, and if the record is refused, these
   rows are refused for the same cause. Otherwise each of these rows is judged alone.

Anything unknown here (a new member of the tag, another restriction) makes a row doubtful or
particular. A column never permits or refuses anything by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.files.columns.arrow_schema import decode
from comity.dataset.files.columns.tag_columns import Flat, doubtful_rows, numbers, tag_column
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import CURRENT, LICENSES, Terms
from comity.dataset.records import Unreadable
from comity.dataset.tags.sources import TagSource
from comity.policies import tag as tags
from comity.policies.answers.element_rule import ALL
from comity.policies.answers.qualifiers import MODIFIABLE
from comity.policies.elements.coverage import refusing_actions

# The maximum number of remembered answers. There is one for each combination of facts.
MAX_REMEMBERED = 10_000
# Restrictions that end the permission of a use. All other restrictions depend on the content of the
# record.
_TIMES = ("until", "until_recrawled")
_LIMITS = tuple(
    name
    for name, member in tags.USE.members.items()
    if not member.is_required and name not in _TIMES
)


class Sorted(NamedTuple):
    """The rows of a batch."""

    permitted: pa.BooleanArray
    """True for rows that are kept unchanged: nothing has to be cut or added."""
    refusals: pa.StringArray
    """TermsApplied.cause for rows that are refused. Null for others."""

    @property
    def is_refused(self) -> pa.BooleanArray:
        """True for rows that are refused."""
        return self.refusals.is_valid()

    def without_others(self) -> Self:
        """Return the rows, so that those refused for another cause than a verdict are judged.

        Evidence needs more about them than their cause."""
        is_verdict = pc.starts_with(self.refusals, "deny:")
        return self._replace(refusals=pc.if_else(is_verdict, self.refusals, None))

    @property
    def rest(self) -> pa.BooleanArray:
        """True for rows that must be judged one by one."""
        return pc.and_(pc.invert(self.permitted), self.refusals.is_null())


class Prefilter:
    """Sorts the rows of an export. It can be pickled."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        # Facts -> True if rows with these facts stay unchanged, and the cause if they are refused.
        self._answers: dict[str, tuple[bool, str | None]] = {}

    @property
    def uses(self) -> tuple[str, ...]:
        """The requested uses."""
        return self._terms.uses

    @property
    def tags(self) -> TagSource:
        """The source of the records' tags."""
        return self._terms.tags

    def sort(self, batch: pa.RecordBatch) -> Sorted:
        """Sort the rows of a batch."""
        length = batch.num_rows
        permitted, refusals = _same(length, value=False), pa.nulls(length, pa.string())
        name = tag_column(batch.schema, self._terms.tags)
        if not length or name is None or self._terms.defaults:
            return Sorted(permitted, refusals)
        if self._terms.recrawled and (
            self._terms.last_fetch or not CURRENT.isdisjoint(self._terms.uses)
        ):
            return Sorted(permitted, refusals)
        tag = batch.column(name)
        doubtful = doubtful_rows(batch, tag)
        sure = (
            numbers(length)
            if doubtful is None
            else pc.indices_nonzero(pc.invert(pc.is_in(numbers(length), doubtful)))
        )
        # Null for particular rows.
        facts = _facts(tag if doubtful is None else tag.take(sure), self._terms)
        answers = self._answers_to(facts, batch, sure)
        is_alike = facts.is_valid()
        positions = pc.index_in(numbers(length), sure.filter(is_alike).cast(pa.int64()))
        answer_numbers = facts.filter(is_alike).dictionary_encode().indices.take(positions)
        return Sorted(
            pc.fill_null(
                pa.array([stays for stays, _ in answers], pa.bool_()).take(answer_numbers), False
            ),
            pa.array([refusal for _, refusal in answers], pa.string()).take(answer_numbers),
        )

    def _answers_to(
        self, facts: pa.StringArray, batch: pa.RecordBatch, rows: pa.Array
    ) -> list[tuple[bool, str | None]]:
        """Return an answer for each distinct value of the facts, in the order of first appearance.

        `rows`: for each value in `facts`, the position of its row in `batch`."""
        distinct = [name for name in facts.unique().to_pylist() if name is not None]
        unknown = [name for name in distinct if name not in self._answers]
        if unknown:
            if len(self._answers) + len(unknown) > MAX_REMEMBERED:
                self._answers.clear()
                unknown = distinct
            first = rows.take(pc.index_in(pa.array(unknown), facts))
            self._answers |= zip(unknown, self._judge(batch.take(first)), strict=True)
        return [self._answers[name] for name in distinct]

    def _judge(self, batch: pa.RecordBatch) -> Iterator[tuple[bool, str | None]]:
        """Yield an answer for each row. (False, None): such rows must be judged one by one."""
        for record in decode(batch):
            answer = None if isinstance(record, Unreadable) else apply_terms(record, self._terms)
            yield (
                answer is not None and answer.record is record,
                answer.cause or None if answer else None,
            )


# Facts of valid tags


def _facts(tag: pa.StructArray, terms: Terms) -> pa.StringArray:
    """Return the facts of each row as a text, e.g. "allow ended" (for a use and `preserve`).

    Null for particular rows."""
    length = len(tag)
    uses, rules = Flat(tag.field("uses")), _Rules(Flat(tag.field("reasons")))
    facts, is_refused, is_particular = [], _same(length, value=False), _same(length, value=False)
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
        *(
            _Use(uses, name, length, terms).prohibits_modifications
            for name in (MODIFIABLE if terms.modifications else ())
        ),
    )
    is_particular = pc.or_(is_particular, pc.and_not(asks, is_refused))
    return pc.if_else(is_particular, None, pc.binary_join_element_wise(*facts, " "))


def _has_refused_elements(tag: pa.StructArray, terms: Terms) -> pa.BooleanArray:
    """Return True for rows with an element whose prohibited actions may refuse one of the uses."""
    words = frozenset(
        (ALL, *(word for use in terms.uses for word in refusing_actions(use, terms.vocabulary)))
    )
    elements = Flat(tag.field("elements"))
    actions = Flat(elements["deny"])
    refused = pc.is_in(actions.values, pa.array(sorted(words), pa.string()))
    return pc.is_in(numbers(len(tag)), elements.rows.take(actions.rows.filter(refused)))


class _Use:
    """One use, in every row."""

    def __init__(self, uses: Flat, name: str, length: int, terms: Terms) -> None:
        chosen = pc.equal(uses["use"], name)
        self._structs = uses.values.filter(chosen)
        self._positions = (
            pc.index_in(numbers(length), uses.rows.filter(chosen))
            if len(self._structs) < length
            else None
        )
        self.is_missing = (
            _same(length, value=False) if self._positions is None else self._positions.is_null()
        )
        self.is_denied = pc.fill_null(pc.equal(self["verdict"], "deny"), False)
        now = pa.scalar(terms.now, pa.timestamp("us", "UTC"))
        self.is_ended = pc.and_not(
            pc.fill_null(pc.less_equal(self["until"], now), False), self.is_denied
        )

    def __getitem__(self, name: str) -> pa.Array:
        """Return a member of the use for each row. Null if the row lacks the use or the member."""
        values = self._structs.field(name)
        return values if self._positions is None else values.take(self._positions)

    @property
    def ends_by_record(self) -> pa.BooleanArray:
        """True for rows in which other records decide whether the use has ended."""
        return pc.and_not(pc.fill_null(self["until_recrawled"], False), self.is_denied)

    @property
    def is_limited(self) -> pa.BooleanArray:
        """True for rows with a restriction that depends on the content of the record."""
        return _any(*(_is_something(self[name]) for name in _LIMITS))

    @property
    def prohibits_modifications(self) -> pa.BooleanArray:
        """True for rows in which the use prohibits a modification."""
        return _is_something(self["prohibited_modifications"])

    def facts(self, rules: _Rules) -> pa.StringArray:
        """Return for each row: "missing", the rule that denies the use, "ended" or "allow"."""
        first = pc.if_else(
            self.is_denied, pc.add(pc.list_element(self["because"], 0), rules.starts), None
        )
        ends = pc.if_else(self.is_ended, "ended", "allow")
        return pc.if_else(self.is_missing, "missing", pc.coalesce(rules.rules.take(first), ends))


def _is_something(values: pa.Array) -> pa.BooleanArray:
    return (
        pc.fill_null(pc.greater(pc.list_value_length(values), 0), False)
        if pa.types.is_list(values.type)
        else values.is_valid()
    )


class _Rules:
    """The rules of the reasons of all rows."""

    def __init__(self, reasons: Flat) -> None:
        # Index of the first reason of each row.
        self.starts = pc.subtract(pc.cumulative_sum(reasons.lengths), reasons.lengths)
        self.rules = reasons["rule"]
        licensed = reasons.rows.filter(pc.is_in(self.rules, pa.array([*LICENSES])))
        self.names_license = pc.is_in(numbers(len(reasons.lengths)), licensed)


def _any(*masks: pa.BooleanArray) -> pa.BooleanArray:
    return reduce(pc.or_, masks)


def _same(length: int, *, value: bool) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value), length)
