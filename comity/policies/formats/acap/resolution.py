"""Which fields of ACAP decide (ACAP 1.0 section-2.2, section-2.3, section-2.4.5, section-2.5).

rules = Rules(agent, files)        the fields that bind one agent, compiled
rules.matching(target)             those that apply to one resource
Matching.decide(usage)             the one that decides, with what it permits"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from comity.policies.formats.acap.grammar import WHOLE_SITE, Acap, Field, Record
from comity.policies.formats.acap.usages import PRESENT_USAGES, Stated, levels
from comity.policies.patterns import PatternIndex, matches, normal_target
from comity.policies.values import Agent, Verdict


def narrowest(patterns: Collection[str]) -> set[str]:
    """Those that no other one is narrower than, by the comparison of section-2.4.5.

    Where two patterns first differ, an ordinary character is narrower than `*`, that than the final `$`, and that than the
    end of the pattern; two ordinary characters tell nothing."""
    if len(patterns) == 1:
        return set(patterns)
    found: set[str] = set()
    groups = [sorted(set(patterns))]
    while groups:
        group = groups.pop()
        if len(group) == 1:
            found.add(group[0])
            continue
        first, last = group[0], group[-1]
        at = next((place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
        branches = {char: list(branch) for char, branch in groupby(group, key=lambda pattern: pattern[at : at + 1])}
        ordinary = [branch for char, branch in branches.items() if char not in ("", "*", "$")]
        groups += ordinary or [branches.get("*") or branches.get("$") or branches[""]]
    return found


class Answer(NamedTuple):
    """What the fields say of one usage of one resource."""

    verdict: Verdict
    fields: tuple[Field, ...]  # that decide, all of the same verdict; the first one first
    usage: str  # that they speak of: the one asked for or a more general one
    qualifiers: Stated = Stated()  # where permitted


class _Bound(NamedTuple):
    """A field that binds the agent."""

    field: Field
    purposes: frozenset[str]  # of the agent, that its sub-record matches; empty: it is general

    @property
    def grants(self) -> bool:
        """A permission that can be honoured; any other field refuses where it decides."""
        return self.field.verdict is Verdict.ALLOW and not self.field.unusable


_Fields = dict[str, list[_Bound]]  # usage -> fields


class Rules:
    """What the records of a site say to one agent."""

    def __init__(self, agent: Agent, files: Iterable[Acap]) -> None:
        named: list[Record] = []
        anybody: list[Record] = []
        for record in (record for file in files for record in file.records):
            if "*" in record.crawlers:
                anybody.append(record)
            elif any(names(crawler, agent) for crawler in record.crawlers):
                named.append(record)
        self.records = (*named, *anybody)
        self._named = _Pool(agent, named)
        self._anybody = _Pool(agent, anybody)

    def matching(self, target: str) -> Matching:
        """`target`: path and query."""
        target = normal_target(target)
        return Matching(self._named.matching(target), self._anybody.matching(target))

    def crawl_patterns(self, *, by_name: bool) -> dict[str, Verdict]:
        """Pattern, in normal form -> what the fields on crawling say of it, named records before those for any crawler.

        `by_name`: permissions of the records for any crawler are left out."""
        anybody = self._anybody.crawl_patterns()
        if by_name:
            anybody = {pattern: verdict for pattern, verdict in anybody.items() if verdict is Verdict.DENY}
        return anybody | self._named.crawl_patterns()


_TOKEN = r"[A-Za-z0-9_-]"  # noqa: S105  # what product tokens are made of, RFC 9309 section-2.2.1
_BOUNDARY = rf"(?:(?<!{_TOKEN})|(?!{_TOKEN}))"


def names(crawler: str, agent: Agent) -> bool:
    """Whether a crawler's name in a record means the agent: it is all or some whole words of its name or User-Agent
    (section-2.3.1)."""
    name = re.compile(_BOUNDARY + re.escape(crawler) + _BOUNDARY, re.IGNORECASE)
    return any(name.search(text) for text in (agent.token, agent.user_agent))


def _purpose_matches(pattern: str, purpose: str) -> bool:
    """The whole purpose has to match (ACAP-15)."""
    literal, star, rest = pattern.removesuffix("$").partition("*")
    if not star:
        return literal == purpose
    return purpose.startswith(literal) and matches(f"*{rest}$", purpose, len(literal))


class _Pool:
    """The fields of the records that name the agent, or of those that address any crawler."""

    def __init__(self, agent: Agent, records: Iterable[Record]) -> None:
        self._everywhere: _Fields = {}
        filed: dict[str, _Fields] = {}
        for bound in _binding(agent, records):
            pattern = bound.field.pattern
            fields = self._everywhere if pattern == WHOLE_SITE else filed.setdefault(pattern.lower(), {})
            fields.setdefault(bound.field.usage, []).append(bound)
        self._fields = list(filed.values())
        self._index = PatternIndex(((pattern, False) for pattern in filed), ignore_case=True)

    def matching(self, target: str) -> _Fields:
        found: _Fields = {usage: list(fields) for usage, fields in self._everywhere.items()}
        for number in self._index.all(target):
            for usage, fields in self._fields[number].items():
                found.setdefault(usage, []).extend(fields)
        return found

    def crawl_patterns(self) -> dict[str, Verdict]:
        patterns: dict[str, Verdict] = {}
        for bound in (bound for fields in self._fields for bound in fields.get("crawl", ())):
            pattern = bound.field.pattern
            if not bound.grants or patterns.get(pattern) is not Verdict.DENY:
                patterns[pattern] = Verdict.ALLOW if bound.grants else Verdict.DENY
        return patterns


def _binding(agent: Agent, records: Iterable[Record]) -> Iterator[_Bound]:
    """The fields for any purpose and for those of the agent; of fields that say the same, the first."""
    seen: set[tuple[object, ...]] = set()
    purposes = [purpose.lower() for purpose in agent.purposes]
    matched: dict[tuple[str, ...], frozenset[str]] = {}
    for field in (field for record in records for field in record.fields):
        if field.purposes not in matched:
            matched[field.purposes] = frozenset(
                purpose for purpose in purposes if any(_purpose_matches(pattern, purpose) for pattern in field.purposes)
            )
        common = matched[field.purposes]
        says = (*field[:4], bool(field.unusable), common)
        if (common or not field.purposes) and says not in seen:
            seen.add(says)
            yield _Bound(field, common)


class Matching:
    """The fields that apply to one resource."""

    def __init__(self, named: _Fields, anybody: _Fields) -> None:
        self._named = named
        self._anybody = anybody

    @property
    def usages(self) -> Iterable[str]:
        """Those that the fields name."""
        return dict.fromkeys((*self._named, *self._anybody))

    def fields(self, usage: str) -> Iterator[Field]:
        """All that can speak for the usage, whether they decide or not."""
        for fields in (self._named, self._anybody):
            for level in levels(usage):
                yield from (bound.field for bound in fields.get(level, ()))

    def decide(self, usage: str) -> Answer | None:
        """What holds for one of USAGES; None: nothing is stated."""
        named = _decide(self._named, usage)
        if named is None:
            return _decide(self._anybody, usage)
        if named.verdict is Verdict.DENY or not self._anybody:
            return named
        # ACAP-45: a permission stands before what any crawler is told of the same usage and of more general ones.
        # ACAP-46: it does so for its own purposes and for none.
        left: _Fields = {}
        lifted: frozenset[str] | None = None
        for level in levels(usage):
            for purposes in (bound.purposes for bound in self._named.get(level, ()) if bound.grants):
                lifted = purposes | (lifted or frozenset())
            left[level] = [bound for bound in self._anybody.get(level, ()) if lifted is None or bound.purposes - lifted]
        anybody = _decide(left, usage)
        if anybody is None:
            return named
        if anybody.verdict is Verdict.DENY:
            return anybody
        return named._replace(fields=named.fields + anybody.fields, qualifiers=named.qualifiers.conjoined(anybody.qualifiers))


def _decide(fields: Mapping[str, list[_Bound]], usage: str) -> Answer | None:
    """What one pool says of a usage: by fields of its own, else by those of the more general ones (ACAP-28, ACAP-29)."""
    answers = (_resolve(fields[level]) for level in levels(usage) if fields.get(level))
    answer = next(answers, None)
    if answer is None or answer.verdict is Verdict.DENY or usage not in PRESENT_USAGES or answer.usage != usage:
        return answer
    present = _resolve(fields["present"]) if fields.get("present") else None
    if present is None or present.verdict is Verdict.ALLOW:
        return answer
    for refusing in (field.pattern.lower() for field in present.fields):
        for permitting in (field.pattern.lower() for field in answer.fields):
            # ACAP-29: unless the permission is narrower, or by the same pattern.
            if refusing == WHOLE_SITE or (refusing != permitting and refusing in narrowest((refusing, permitting))):
                return present
    return answer


def _resolve(bound: list[_Bound]) -> Answer:
    """What fields of the same usage say together (section-2.4.5)."""
    by_pattern: dict[str, list[_Bound]] = {}
    for one in bound:
        by_pattern.setdefault(one.field.pattern.lower(), []).append(one)
    deciding = by_pattern.pop(WHOLE_SITE, None) or []
    if not deciding:
        for pattern in narrowest(by_pattern):
            # ACAP-16: for the same pattern, the field for a purpose decides.
            deciding += [one for one in by_pattern[pattern] if one.purposes] or by_pattern[pattern]
    refusing = [one for one in deciding if not one.grants]
    speaking = sorted(refusing or deciding, key=lambda one: (one.field.verdict is Verdict.ALLOW, one.field.url, one.field.line))
    qualifiers = speaking[0].field.qualifiers
    for one in speaking[1:]:
        qualifiers = qualifiers.conjoined(one.field.qualifiers)
    return Answer(
        Verdict.DENY if refusing else Verdict.ALLOW,
        tuple(one.field for one in speaking),
        speaking[0].field.usage,
        qualifiers,
    )
