"""Which fields of ACAP decide (ACAP 1.0 section-2.2, section-2.3, section-2.4.5, section-2.5).

rules = Rules(agent, files)        the fields that bind one agent, compiled
rules.matching(target)             those that apply to one resource
Matching.decide(usage)             the one that decides, with what it permits"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from comity.policies.formats.acap.grammar import WHOLE_SITE, Acap, Field, Record
from comity.policies.formats.acap.usages import PRESENT_USAGES, Stated, levels
from comity.policies.patterns import PatternIndex, matches, normal_target
from comity.policies.values import Agent, Verdict


def narrowest(patterns: Iterable[str]) -> set[str]:
    """Those that no other one is narrower than, by the comparison of section-2.4.5.

    Where two patterns first differ, an ordinary character is narrower than `*`, that than the final `$`, and that than the
    end of the pattern; two ordinary characters tell nothing."""
    ordered = sorted(set(patterns))
    found: set[str] = set()
    ranges = [(0, len(ordered), 0)] if ordered else []  # in the list, and the characters that are the same within
    while ranges:
        start, end, at = ranges.pop()
        first, last = ordered[start], ordered[end - 1]
        if end - start == 1:
            found.add(first)
            continue
        while first[at : at + 1] == last[at : at + 1]:
            at += 1
        branches: dict[str, tuple[int, int, int]] = {}
        while start < end:
            char = ordered[start][at : at + 1]
            branch = start, bisect_right(ordered, char, start, end, key=lambda pattern: pattern[at : at + 1]), at + 1
            branches[char] = branch
            start = branch[1]
        ordinary = [branch for char, branch in branches.items() if char not in ("", "*", "$")]
        ranges += ordinary or [branches.get("*") or branches.get("$") or branches[""]]
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
    pattern: str  # as it is compared
    grants: bool  # a permission that can be honoured; any other field refuses where it decides
    purposes: frozenset[str]  # of the agent, that its sub-record matches; empty: it is general


MAX_MATCHED = 256  # sets of patterns whose answers are kept: most URLs of a site match what others have matched
MAX_PATTERNS = 64  # of such a set
MAX_COMPARED = 4096  # pairs of patterns; where there are more, it cannot be determined which is narrower

_ALL = ("/", "/*", WHOLE_SITE)  # patterns that every resource matches

_Fields = dict[str, list[_Bound]]  # usage -> fields
_Patterns = dict[str, list[_Bound]]  # pattern -> fields of one usage


class Rules:
    """What the records of a site say to one agent."""

    def __init__(self, agent: Agent, files: Iterable[Acap]) -> None:
        records = [record for file in files for record in file.records]
        anybody = [record for record in records if "*" in record.crawlers]
        named = [
            record
            for record in records
            if record.is_unreadable or ("*" not in record.crawlers and any(names(crawler, agent) for crawler in record.crawlers))
        ]
        self.records = (*named, *(record for record in anybody if not record.is_unreadable))
        self._named = _Pool(agent, named)
        self._anybody = _Pool(agent, anybody)
        self._matched: dict[tuple[tuple[int, ...], tuple[int, ...]], Matching] = {}  # by the patterns of both that match

    def matching(self, target: str) -> Matching:
        """`target`: path and query."""
        target = normal_target(target)
        patterns = self._named.matching(target), self._anybody.matching(target)
        matching = self._matched.get(patterns)
        if matching is None:
            matching = Matching(self._named.speaking(patterns[0]), self._anybody.speaking(patterns[1]))
            if len(patterns[0]) + len(patterns[1]) <= MAX_PATTERNS:
                if len(self._matched) >= MAX_MATCHED:
                    self._matched.clear()
                self._matched[patterns] = matching
        return matching

    def everywhere(self) -> Matching:
        """What is refused of all resources, and permitted of any."""
        return Matching(self._named.everywhere(), self._anybody.everywhere())

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
    (section-2.3.1). LENIENT: with a `*` at its end, it goes on in any way."""
    words = crawler.rstrip("*")
    if not any(words.lower() in text.lower() for text in (agent.token, agent.user_agent)):
        return False
    end = _BOUNDARY if words == crawler else ""
    name = re.compile(_BOUNDARY + re.escape(words) + end, re.IGNORECASE)
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
            fields = self._everywhere if bound.pattern == WHOLE_SITE else filed.setdefault(bound.pattern, {})
            fields.setdefault(bound.field.usage, []).append(bound)
        self._fields = list(filed.values())
        self._index = PatternIndex(((pattern, False) for pattern in filed), ignore_case=True)

    def matching(self, target: str) -> tuple[int, ...]:
        """The patterns that match. `target`: normal form."""
        return tuple(self._index.all(target))

    def speaking(self, patterns: Iterable[int]) -> _Speaking:
        found: dict[str, _Patterns] = {usage: {WHOLE_SITE: fields} for usage, fields in self._everywhere.items()}
        for pattern in patterns:
            for usage, fields in self._fields[pattern].items():
                found.setdefault(usage, {})[fields[0].pattern] = fields
        return _Speaking(found)

    def everywhere(self) -> _Speaking:
        """As if it were of one resource: the fields that grant, and where none does, those that refuse all."""
        found: _Fields = {}
        for fields in (self._everywhere, *self._fields):
            for usage, bound in fields.items():
                found.setdefault(usage, []).extend(one for one in bound if one.grants or one.pattern in _ALL)
        granting = {usage: [one for one in bound if one.grants] or bound for usage, bound in found.items()}
        return _Speaking({usage: {WHOLE_SITE: bound} for usage, bound in granting.items() if bound})

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
    last: tuple[str, ...] = ()
    common: frozenset[str] = frozenset()
    for field in (field for record in records for field in record.fields):
        if field.purposes is not last:  # most follow one of the same sub-record
            last = field.purposes
            common = frozenset(purpose for purpose in purposes if any(_purpose_matches(pattern, purpose) for pattern in last))
        says = (*field[:4], bool(field.unusable), common)
        if (common or not field.purposes) and says not in seen:
            seen.add(says)
            grants = field.verdict is Verdict.ALLOW and not field.unusable
            yield _Bound(field, field.pattern.lower(), grants, common)


class _Speaking:
    """The fields of a pool that apply to one resource."""

    def __init__(self, fields: dict[str, _Patterns]) -> None:
        self._fields = fields  # by usage
        self._answers: dict[str, Answer] = {}
        self._granted: dict[str, frozenset[str] | None] = {}
        self._narrowest: dict[tuple[str, ...], set[str]] = {}

    @property
    def usages(self) -> Iterable[str]:
        return self._fields

    def fields(self, usage: str) -> Iterable[_Bound]:
        """Those of the usage itself."""
        patterns = self._fields.get(usage)
        return chain.from_iterable(patterns.values()) if patterns else ()

    def granted(self, usage: str) -> frozenset[str] | None:
        """The purposes for which the usage itself is permitted by any field; None: by none."""
        if usage not in self._granted:
            purposes = [bound.purposes for bound in self.fields(usage) if bound.grants]
            self._granted[usage] = frozenset().union(*purposes) if purposes else None
        return self._granted[usage]

    def own(self, usage: str) -> Answer | None:
        """What the fields of the usage itself say; None: there are none."""
        answer = self._answers.get(usage)
        if answer is None and usage in self._fields:
            answer = self._answers[usage] = _answer(self._deciding(self._fields[usage]))
        return answer

    def _deciding(self, patterns: _Patterns) -> list[_Bound]:
        """The fields of one usage that decide (section-2.4.5)."""
        if WHOLE_SITE in patterns:
            return patterns[WHOLE_SITE]
        if len(patterns) == 1:
            [deciding] = patterns.values()
            return [one for one in deciding if one.purposes] or deciding
        key = tuple(patterns)
        if key not in self._narrowest:
            self._narrowest[key] = narrowest(key)
        # ACAP-16: for the same pattern, the field for a purpose decides.
        return [
            one
            for pattern in self._narrowest[key]
            for one in [bound for bound in patterns[pattern] if bound.purposes] or patterns[pattern]
        ]

    def decide(self, usage: str) -> Answer | None:
        """What its own fields say, else those of the more general usages (ACAP-28, ACAP-29)."""
        for level in levels(usage):
            answer = self.own(level)
            if answer is not None:
                break
        else:
            return None
        present = self.own("present") if answer.usage in PRESENT_USAGES else None
        if present is None or present.verdict is Verdict.ALLOW or answer.verdict is Verdict.DENY:
            return answer
        refusing = {field.pattern.lower() for field in present.fields}
        permitting = {field.pattern.lower() for field in answer.fields}
        if WHOLE_SITE in refusing or len(refusing) * len(permitting) > MAX_COMPARED:
            return present
        # ACAP-29: unless the permission is narrower, or by the same pattern.
        pairs = ((one, other) for one in refusing for other in permitting)
        return present if any(one != other and one in narrowest((one, other)) for one, other in pairs) else answer


class Matching:
    """The fields that apply to one resource."""

    def __init__(self, named: _Speaking, anybody: _Speaking) -> None:
        self._named = named
        self._anybody = anybody
        self._answers: dict[str, Answer | None] = {}

    @property
    def usages(self) -> Iterable[str]:
        """Those that the fields name."""
        return dict.fromkeys((*self._named.usages, *self._anybody.usages))

    def fields(self, usage: str) -> Iterator[Field]:
        """All that can speak for the usage, whether they decide or not."""
        for speaking in (self._named, self._anybody):
            for level in levels(usage):
                yield from (bound.field for bound in speaking.fields(level))

    def decide(self, usage: str) -> Answer | None:
        """What holds for one of USAGES; None: nothing is stated."""
        if usage not in self._answers:
            self._answers[usage] = self._decide(usage)
        return self._answers[usage]

    def _decide(self, usage: str) -> Answer | None:
        named = self._named.decide(usage)
        if named is None:
            return self._anybody.decide(usage)
        if named.verdict is Verdict.DENY or not self._anybody.usages:
            return named
        # ACAP-45: a permission stands before what any crawler is told of the same usage and of more general ones.
        # ACAP-46: it does so for its own purposes and for none.
        left: dict[str, _Patterns] = {}
        lifted: frozenset[str] | None = None
        for level in levels(usage):
            granted = self._named.granted(level)
            if granted is not None:
                lifted = granted | (lifted or frozenset())
            for bound in self._anybody.fields(level):
                if lifted is None or (bound.purposes and not bound.purposes <= lifted):
                    left.setdefault(level, {}).setdefault(bound.pattern, []).append(bound)
        anybody = _Speaking(left).decide(usage) if left else None
        if anybody is None:
            return named
        if anybody.verdict is Verdict.DENY:
            return anybody
        return named._replace(fields=named.fields + anybody.fields, qualifiers=named.qualifiers.conjoined(anybody.qualifiers))


def _answer(deciding: list[_Bound]) -> Answer:
    if len(deciding) == 1:
        [first] = deciding
        return Answer(Verdict.ALLOW if first.grants else Verdict.DENY, (first.field,), first.field.usage, first.field.qualifiers)
    refusing = [one for one in deciding if not one.grants]
    fields = [one.field for one in refusing or deciding]
    fields.sort(key=lambda field: (field.verdict is Verdict.ALLOW, field.url, field.line))
    qualifiers = fields[0].qualifiers.conjoined(*(field.qualifiers for field in fields[1:]))
    return Answer(Verdict.DENY if refusing else Verdict.ALLOW, tuple(fields), fields[0].usage, qualifiers)
