"""The choice of the fields of ACAP that decide.

    records_for(agent, files)          the records that bind one agent
    rules = AcapRules(agent, files)    their fields, compiled once for all purposes
    rules.for_purposes(purposes)       the fields for requests with these purposes
    PurposeView.matching(target)       the fields that apply to one resource
    Matching.decide(usage)             the decision of the fields, with its qualifiers

The rules are in ACAP 1.0 section-2.2, section-2.3, section-2.4.5 and section-2.5. Neither the order
of the fields nor their qualifiers matter (section-2.2, section-2.4.5). These steps do, from the
inside out:

1. Records that name the agent are one pool of fields, records for any crawler another
   (section-2.3.1, ACAP-49). Records whose addressee is unreadable count as naming the agent.
2. A field of a pool applies if its pattern matches the resource (section-2.8), and if its
   sub-record is for a purpose of the request or it is in no sub-record (section-2.3.3). A
   permission that cannot be honoured applies too: it refuses.
3. Among the fields of one usage the narrowest pattern decides (section-2.4.5), and with equal
   patterns the fields for a purpose (ACAP-16). A prohibition whose resources cannot be read is of
   the whole site, and decides before all others. If several fields decide, any refusal refuses, and
   the qualifiers of all permissions apply (ACAP-47).
4. Within a pool the fields of the usage decide. If there are none and the usage begins with
   `present`, the fields of `present` do; if there are none either, those of `other` (section-2.5.5,
   section-2.5.6, ACAP-28). But a permission of a `present-` usage gives way to a refusal of
   `present` by a narrower pattern, or by one that cannot be compared (ACAP-29).
5. A refusal by name decides. A permission by name lifts the refusals for any crawler of the same
   usage and of more general ones (section-2.2, ACAP-45), for its own purposes and for none
   (ACAP-46). Fields for any crawler that it does not lift apply as well. If the first pool has no
   answer, the other one decides (ACAP-11).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from comity.bounded import Bounded
from comity.policies.agent import Agent
from comity.policies.answers.decision import UseDecision, Verdict
from comity.policies.formats.acap.grammar import WHOLE_SITE, Acap, CrawlerRecord, Field
from comity.policies.formats.acap.usages import PRESENT_USAGES, FieldQualifiers, levels
from comity.policies.syntax.path_patterns import (
    PatternIndex,
    covers,
    foldings,
    matches,
    normal_target,
)


def narrowest(patterns: Iterable[str]) -> set[str]:
    """Return the narrowest patterns: those for which no other pattern is narrower (section-2.4.5).

    The first difference of two patterns decides. An ordinary character is narrower than `*`, `*` is
    narrower than the final `$`, and `$` is narrower than the end of the pattern. If both characters
    are ordinary, neither pattern is narrower. Of `/a*`, `/ab` and `/c`, the narrowest are `/ab` and
    `/c`.
    """
    ordered = sorted(set(patterns))
    narrow: set[str] = set()
    # Ranges of `ordered` with patterns that may still be the narrowest: start, end, and the number
    # of leading characters that all patterns of the range share.
    ranges = [(0, len(ordered), 0)] if ordered else []
    while ranges:
        start, end, length = ranges.pop()
        first, last = ordered[start], ordered[end - 1]
        if end - start == 1:
            narrow.add(first)
            continue
        length = _shared_length(first, last, length)
        branches: dict[str, tuple[int, int, int]] = {}
        while start < end:
            char = ordered[start][length : length + 1]
            branch = (
                start,
                bisect_right(
                    ordered, char, start, end, key=lambda pattern: pattern[length : length + 1]
                ),
                length + 1,
            )
            branches[char] = branch
            start = branch[1]
        ordinary = [branch for char, branch in branches.items() if char not in ("", "*", "$")]
        ranges += ordinary or [branches.get("*") or branches.get("$") or branches[""]]
    return narrow


def _shared_length(first: str, last: str, least: int) -> int:
    """Return the number of leading characters that two texts share.

    The caller knows that they share `least` or more. The search is binary, because patterns can be
    long and differ only at their ends.
    """
    most = min(len(first), len(last))
    while least < most:
        middle = (least + most + 1) // 2
        if first[least:middle] == last[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


MAX_REASONS = 100  # maximum reasons of a decision, because the tag of each item contains them


class UsageAnswer(NamedTuple):
    """The answer of the fields on one usage of one resource.

    Attributes:
        fields: The deciding fields. If any of them refuses, only the refusing fields, with
            prohibitions before permissions that cannot be honoured.
        usage: The usage of these fields: the usage in question, or a more general one.
        qualifiers: The qualifiers of a permission.
    """

    verdict: Verdict
    fields: tuple[Field, ...]
    usage: str
    qualifiers: FieldQualifiers = FieldQualifiers()

    @property
    def named_fields(self) -> tuple[Field, ...]:
        """The fields that are reasons of a decision."""
        return self.fields[:MAX_REASONS]


class _Bound(NamedTuple):
    """A field that binds the agent.

    Attributes:
        pattern: The pattern of the field, by the first result of `foldings`.
        simple: The pattern of the field, by the second result of `foldings`.
        sub_record: The number of the sub-record that contains the field. 0 means that no
            sub-record does.
        grants: True for a permission that can be honoured. Any other field refuses if it decides.
        purposes: The purposes of the request that the sub-record matches. Empty if the field is in
            no sub-record.
    """

    field: Field
    pattern: str
    simple: str
    sub_record: int
    grants: bool
    purposes: frozenset[str] = frozenset()


MAX_VIEWS = 16  # maximum sets of purposes with cached answers
# The maximum number of sets of matching patterns with cached answers. Most URLs of a site match the
# same set of patterns as other URLs.
MAX_MATCHED = 256
MAX_PATTERNS = 64  # maximum patterns of a cached set
# The maximum number of pairs of a refusing and a permitting pattern that are compared. If there are
# more pairs, the refusal decides.
MAX_COMPARED = 4096

_ALL = ("/", "/*", WHOLE_SITE)  # patterns that every resource matches
# The citation if a permission matches the resource by one folding, and not by the other.
_DOUBTFUL = "ACAP 1.0 section-2.8"

_Fields = dict[str, list[_Bound]]  # usage -> fields
_Patterns = dict[str, list[_Bound]]  # pattern -> fields of one usage


class Addressed(NamedTuple):
    """The records that bind one agent.

    Attributes:
        by_name: Records that name the agent, and all unreadable records.
        to_any: Records for any crawler. An unreadable record can be in both lists.
    """

    by_name: list[CrawlerRecord]
    to_any: list[CrawlerRecord]

    @property
    def records(self) -> tuple[CrawlerRecord, ...]:
        return (*self.by_name, *(record for record in self.to_any if not record.is_unreadable))


def records_for(agent: Agent, files: Iterable[Acap]) -> Addressed:
    """Return the records that bind the agent.

    The time is linear in the octets of the files, for any names.
    """
    names, records = CrawlerNames(agent), Addressed([], [])
    for record in (record for file in files for record in file.records):
        is_to_any = "*" in record.crawlers
        if is_to_any:
            records.to_any.append(record)
        if record.is_unreadable or (not is_to_any and any(map(names.mean, record.crawlers))):
            records.by_name.append(record)
    return records


# RFC 9309 section-2.2.1, and digits.
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class CrawlerNames:
    """The names of crawlers that mean the agent (section-2.3.1).

    A name means the agent if its words are whole words of the agent's token or User-Agent.
    LENIENT: if the name ends with `*`, it may end within a word, so `exam*` means `ExampleBot`.
    """

    def __init__(self, agent: Agent) -> None:
        self._texts = tuple(dict.fromkeys((_normal(agent.token), _normal(agent.user_agent))))
        self._answers: dict[str, bool] = {}

    def mean(self, crawler: str) -> bool:
        """Return True if the name means the agent."""
        name = _normal(crawler)
        if name not in self._answers:
            words = name.rstrip("*")
            self._answers[name] = any(
                _has_words(text, words, to_the_end=words == name) for text in self._texts
            )
        return self._answers[name]


def _normal(name: str) -> str:
    """Return a name for comparison: in lower case, with single spaces between its words."""
    return " ".join(name.lower().split())


def _has_words(text: str, words: str, *, to_the_end: bool) -> bool:
    """Return True if a text contains `words`, beginning at the start of a word.

    If `to_the_end` is True, `words` must also end at the end of a word.
    """
    start = text.find(words)
    while start >= 0:
        if _is_boundary(text, start) and (not to_the_end or _is_boundary(text, start + len(words))):
            return True
        start = text.find(words, start + 1)
    return False


def _is_boundary(text: str, index: int) -> bool:
    return not (0 < index < len(text) and text[index - 1] in _WORD and text[index] in _WORD)


class AcapRules:
    """The records of a site that bind one agent."""

    def __init__(self, agent: Agent, files: Iterable[Acap]) -> None:
        bound = records_for(agent, files)
        self.records = bound.records
        self._pools = _Pool(bound.by_name), _Pool(bound.to_any)
        self.asks_purposes = any(pool.asks_purposes for pool in self._pools)
        self.crawl_patterns = frozenset(
            pattern for pool in self._pools for pattern in pool.on_crawling
        )
        self._agent_view = PurposeView(*self._pools, _named_purposes(agent.purposes))
        self._views: Bounded[frozenset[str], PurposeView] = Bounded(MAX_VIEWS)

    def for_purposes(self, purposes: Iterable[str] | None = None) -> PurposeView:
        """Return the view for requests with these purposes. None means the purposes of the agent.

        If no field is in a sub-record, all requests share one view.
        """
        if purposes is None or not self.asks_purposes:
            return self._agent_view
        view_purposes = _named_purposes(purposes)
        if view_purposes not in self._views:
            self._views[view_purposes] = PurposeView(*self._pools, view_purposes)
        return self._views[view_purposes]


def _named_purposes(purposes: Iterable[str]) -> frozenset[str]:
    return frozenset(purpose.strip().lower() for purpose in purposes if purpose.strip())


class PurposeView:
    """The fields that bind one agent's requests with certain purposes."""

    def __init__(self, by_name: _Pool, anybody: _Pool, purposes: frozenset[str]) -> None:
        self.purposes = purposes
        self._by_name = _PoolView(by_name, purposes)
        self._anybody = _PoolView(anybody, purposes)
        self._has_ambiguous = by_name.has_ambiguous or anybody.has_ambiguous
        # A cache: numbers of the matching patterns in both pools, and `simple` -> the fields.
        self._matched: Bounded[tuple[tuple[int, ...], tuple[int, ...], str], Matching] = Bounded(
            MAX_MATCHED
        )
        self._on_crawling: dict[tuple[str, bool, str], Verdict | None] = {}

    def matching(self, target: str) -> Matching:
        """Return the fields that apply to a target. `target` is path and query."""
        full, simple = foldings(normal_target(target))
        if simple == full and not self._has_ambiguous:
            simple = ""
        patterns = self._by_name.pool.matching(full), self._anybody.pool.matching(full), simple
        matching = self._matched.get(patterns)
        if matching is None:
            matching = Matching(
                self._by_name.speaking(patterns[0], simple),
                self._anybody.speaking(patterns[1], simple),
            )
            if len(patterns[0]) + len(patterns[1]) <= MAX_PATTERNS:
                self._matched[patterns] = matching
        return matching

    def everywhere(self) -> Matching:
        """Return the refusals of all resources, and all permissions for any resource."""
        return Matching(self._by_name.everywhere(), self._anybody.everywhere())

    def on_crawling(self, pattern: str, *, by_name: bool, url: str) -> Verdict | None:
        """Return the verdict of the `crawl` fields with exactly this pattern, or None without any.

        `pattern` is in normal form. Records that name the agent come before those for any crawler.
        If `by_name` is True, permissions in records for any crawler do not count. Refusals of all
        files count, and permissions only of the file with the URL `url`.
        """
        key = pattern, by_name, url
        if key not in self._on_crawling:
            verdict = self._by_name.on_crawling(pattern, url)
            if verdict is None:
                verdict = self._anybody.on_crawling(pattern, url)
                verdict = None if by_name and verdict is Verdict.ALLOW else verdict
            self._on_crawling[key] = verdict
        return self._on_crawling[key]


def _purpose_matches(pattern: str, purpose: str) -> bool:
    """Return True if the pattern matches the whole purpose (ACAP-15)."""
    literal, star, rest = pattern.removesuffix("$").partition("*")
    if not star:
        return literal == purpose
    return purpose.startswith(literal) and matches(f"*{rest}$", purpose, len(literal))


class _Pool:
    """The fields of the records that name the agent, or of the records for any crawler.

    Fields of sub-records are included, for all purposes.
    """

    def __init__(self, records: Iterable[CrawlerRecord]) -> None:
        self.everywhere: _Fields = {}
        # Pattern in normal form, as in the file -> fields of the usage `crawl` with this pattern.
        self.on_crawling: dict[str, list[_Bound]] = {}
        self.sub_records: list[tuple[str, ...]] = [()]  # number of a sub-record -> its purposes
        filed: dict[str, _Fields] = {}
        for bound in self._distinct_fields(records):
            fields = (
                self.everywhere
                if bound.pattern == WHOLE_SITE
                else filed.setdefault(bound.pattern, {})
            )
            fields.setdefault(bound.field.usage, []).append(bound)
            if bound.field.usage == "crawl" and bound.pattern != WHOLE_SITE:
                self.on_crawling.setdefault(bound.field.pattern, []).append(bound)
        self.fields = list(filed.values())
        self.asks_purposes = len(self.sub_records) > 1
        # True if the two foldings of any pattern differ.
        self.has_ambiguous = any(
            field.pattern != field.simple
            for by_usage in self.fields
            for fields in by_usage.values()
            for field in fields
        )
        self._index = PatternIndex(list(filed))

    def matching(self, target: str) -> tuple[int, ...]:
        """Return the numbers of the patterns that match a folded target."""
        return tuple(self._index.all(target))

    def _distinct_fields(self, records: Iterable[CrawlerRecord]) -> Iterator[_Bound]:
        """Yield the fields of records, and of equal fields only the first."""
        seen: set[tuple[object, ...]] = set()
        folded: dict[str, tuple[str, str]] = {}  # many fields may share one long pattern
        sub_record = 0
        for field in (field for record in records for field in record.fields):
            # Fields of one sub-record share one `purposes` tuple, and most of them are neighbours.
            if field.purposes is not self.sub_records[sub_record]:
                sub_record = len(self.sub_records) if field.purposes else 0
                if field.purposes:
                    self.sub_records.append(field.purposes)
            # Equal `crawl` fields of different files are different: see `PurposeView.on_crawling`.
            says = (
                *field[:4],
                bool(field.unusable),
                sub_record,
                field.usage == "crawl" and field.url,
            )
            if says not in seen:
                seen.add(says)
                grants = field.verdict is Verdict.ALLOW and not field.unusable
                if field.pattern not in folded:
                    folded[field.pattern] = foldings(field.pattern)
                yield _Bound(field, *folded[field.pattern], sub_record, grants)


class _PoolView:
    """The fields of a pool that bind requests with some purposes."""

    def __init__(self, pool: _Pool, purposes: frozenset[str]) -> None:
        self.pool = pool
        self._purposes = purposes
        # A cache: number of a sub-record -> the purposes that it matches.
        self._common: dict[int, frozenset[str]] = {}

    def speaking(self, patterns: Iterable[int], simple: str) -> _Speaking:
        """Return the fields that apply to a target.

        `patterns` are the numbers of the patterns that match it. `simple` is the target by the
        second folding, or "" if no pattern needs it.
        """
        by_usage: dict[str, _Patterns] = {}
        for usage, fields in self.pool.everywhere.items():
            if binding := self._binding(fields, ""):
                by_usage[usage] = {WHOLE_SITE: binding}
        for number in patterns:
            for usage, fields in self.pool.fields[number].items():
                if binding := self._binding(fields, simple):
                    by_usage.setdefault(usage, {})[fields[0].pattern] = binding
        return _Speaking(by_usage)

    def everywhere(self) -> _Speaking:
        """Return the answer for all resources: for each usage its permissions for any resource.

        If a usage has no permission, its refusals of all resources are returned instead.
        """
        by_usage: _Fields = {}
        for fields in (self.pool.everywhere, *self.pool.fields):
            for usage, bound in fields.items():
                bound = self._binding(bound, "")
                by_usage.setdefault(usage, []).extend(
                    field for field in bound if field.grants or field.pattern in _ALL
                )
        granting = {
            usage: [field for field in bound if field.grants] or bound
            for usage, bound in by_usage.items()
        }
        return _Speaking({usage: {WHOLE_SITE: bound} for usage, bound in granting.items() if bound})

    def on_crawling(self, pattern: str, url: str) -> Verdict | None:
        fields = [
            bound
            for bound in self.pool.on_crawling.get(pattern, [])
            if not bound.grants or bound.field.url == url
        ]
        binding = _prefer_purposes(self._binding(fields, ""))
        if not binding:
            return None
        return Verdict.ALLOW if all(bound.grants for bound in binding) else Verdict.DENY

    def _binding(self, fields: list[_Bound], simple: str) -> list[_Bound]:
        """Return the fields in no sub-record, or in a sub-record for a purpose of this view.

        Of equal fields only the first is returned. `simple` is the target by the second folding, or
        "" if no pattern needs it. A permission becomes a refusal if the second folding of its
        pattern does not match `simple`.
        """
        if not self.pool.asks_purposes and not simple:
            return fields
        distinct: dict[tuple[object, ...], _Bound] = {}
        for bound in fields:
            common = self._common_with(bound.sub_record) if bound.sub_record else frozenset[str]()
            if common or not bound.sub_record:
                if simple and bound.grants and not covers(bound.simple, simple):
                    bound = bound._replace(
                        field=bound.field._replace(unusable=_DOUBTFUL), grants=False
                    )
                field = bound.field
                says = field.verdict, field.pattern, field.qualifiers, bool(field.unusable), common
                distinct.setdefault(says, bound._replace(purposes=common) if common else bound)
        return list(distinct.values())

    def _common_with(self, sub_record: int) -> frozenset[str]:
        if sub_record not in self._common:
            patterns = self.pool.sub_records[sub_record]
            common = (
                purpose
                for purpose in self._purposes
                if any(_purpose_matches(pattern, purpose) for pattern in patterns)
            )
            self._common[sub_record] = frozenset(common)
        return self._common[sub_record]


def _prefer_purposes(fields: Sequence[_Bound]) -> Sequence[_Bound]:
    """Return the fields for a purpose if there are any, else all (ACAP-16).

    All fields have one pattern.
    """
    return [bound for bound in fields if bound.purposes] or fields


class _Speaking:
    """The fields of a pool that apply to one resource."""

    def __init__(self, fields: dict[str, _Patterns]) -> None:
        self._fields = fields  # usage -> pattern -> fields
        self._answers: dict[str, UsageAnswer] = {}
        self._granted: dict[str, frozenset[str] | None] = {}
        self._narrowest: dict[tuple[str, ...], set[str]] = {}

    @property
    def usages(self) -> Iterable[str]:
        return self._fields

    def fields(self, usage: str) -> Iterable[_Bound]:
        """Return the fields of the usage itself."""
        patterns = self._fields.get(usage)
        return chain.from_iterable(patterns.values()) if patterns else ()

    def granted_purposes(self, usage: str) -> frozenset[str] | None:
        """Return the purposes for which fields permit the usage itself, or None if no field does.

        An empty set means that only fields in no sub-record permit it.
        """
        if usage not in self._granted:
            purposes = [bound.purposes for bound in self.fields(usage) if bound.grants]
            self._granted[usage] = frozenset().union(*purposes) if purposes else None
        return self._granted[usage]

    def decide_by_own_fields(self, usage: str) -> UsageAnswer | None:
        """Return the answer of the fields of the usage itself, or None if there are none."""
        answer = self._answers.get(usage)
        if answer is None and usage in self._fields:
            answer = self._answers[usage] = _answer(self._deciding_fields(self._fields[usage]))
        return answer

    def _deciding_fields(self, patterns: _Patterns) -> list[_Bound]:
        """Return the fields of one usage that decide (section-2.4.5)."""
        if WHOLE_SITE in patterns:
            return patterns[WHOLE_SITE]
        if len(patterns) == 1:
            [deciding] = patterns.values()
            return list(_prefer_purposes(deciding))
        key = tuple(patterns)
        if key not in self._narrowest:
            self._narrowest[key] = narrowest(key)
        return [
            bound
            for pattern in self._narrowest[key]
            for bound in _prefer_purposes(patterns[pattern])
        ]

    def decide(self, usage: str) -> UsageAnswer | None:
        """Return the answer of the usage's own fields, or else of the fields of a general usage.

        See ACAP-28 and ACAP-29.
        """
        for level in levels(usage):
            answer = self.decide_by_own_fields(level)
            if answer is not None:
                break
        else:
            return None
        present = self.decide_by_own_fields("present") if answer.usage in PRESENT_USAGES else None
        if present is None or present.verdict is Verdict.ALLOW or answer.verdict is Verdict.DENY:
            return answer
        refusing, permitting = _folded_patterns(present.fields), _folded_patterns(answer.fields)
        if WHOLE_SITE in refusing or len(refusing) * len(permitting) > MAX_COMPARED:
            return present
        # ACAP-29: `present` decides unless each permission has a narrower pattern than each
        # refusal, or an equal one.
        pairs = ((refusal, permission) for refusal in refusing for permission in permitting)
        return (
            present
            if any(
                pattern != other and pattern in narrowest((pattern, other))
                for pattern, other in pairs
            )
            else answer
        )


def _folded_patterns(fields: Iterable[Field]) -> set[str]:
    """Return the patterns of fields, folded for comparison."""
    return {foldings(pattern)[0] for pattern in {field.pattern for field in fields}}


class Matching:
    """The fields that apply to one resource."""

    def __init__(self, by_name: _Speaking, anybody: _Speaking) -> None:
        self._by_name = by_name
        self._anybody = anybody
        self._answers: dict[str, UsageAnswer | None] = {}
        # A cache: usage -> the decision. Decisions that depend on the page are not cached.
        self.decisions: dict[str, UseDecision] = {}
        # Usage -> its permission on every page, without its end and its resources.
        self.permissions: dict[str, UseDecision] = {}

    @property
    def usages(self) -> Iterable[str]:
        """The usages that the fields name."""
        return dict.fromkeys((*self._by_name.usages, *self._anybody.usages))

    def fields(self, usage: str) -> Iterator[Field]:
        """Yield all fields that can apply to the usage, whether they decide or not."""
        for speaking in (self._by_name, self._anybody):
            for level in levels(usage):
                yield from (bound.field for bound in speaking.fields(level))

    def decide(self, usage: str) -> UsageAnswer | None:
        """Return the answer on one of USAGES, or None if nothing is stated."""
        if usage not in self._answers:
            self._answers[usage] = self._decide(usage)
        return self._answers[usage]

    def _decide(self, usage: str) -> UsageAnswer | None:
        by_name = self._by_name.decide(usage)
        if by_name is None:
            return self._anybody.decide(usage)
        if by_name.verdict is Verdict.DENY or not self._anybody.usages:
            return by_name
        # ACAP-45: a permission in a record that names the agent overrides fields for any crawler,
        # of the same usage and of more general usages.
        # ACAP-46: it overrides fields for its own purposes, and fields in no sub-record.
        general: dict[str, _Patterns] = {}
        lifted: frozenset[str] | None = None
        for level in levels(usage):
            granted = self._by_name.granted_purposes(level)
            if granted is not None:
                lifted = granted | (lifted or frozenset())
            for bound in self._anybody.fields(level):
                if lifted is None or (bound.purposes and not bound.purposes <= lifted):
                    general.setdefault(level, {}).setdefault(bound.pattern, []).append(bound)
        anybody = _Speaking(general).decide(usage) if general else None
        if anybody is None:
            return by_name
        if anybody.verdict is Verdict.DENY:
            return anybody
        return by_name._replace(
            fields=by_name.fields + anybody.fields,
            qualifiers=by_name.qualifiers.conjoined(anybody.qualifiers),
        )


def _answer(deciding: list[_Bound]) -> UsageAnswer:
    if len(deciding) == 1:
        [first] = deciding
        return UsageAnswer(
            Verdict.ALLOW if first.grants else Verdict.DENY,
            (first.field,),
            first.field.usage,
            first.field.qualifiers,
        )
    refusing = [bound for bound in deciding if not bound.grants]
    fields = [bound.field for bound in refusing or deciding]
    fields.sort(key=lambda field: (field.verdict is Verdict.ALLOW, field.url, field.line))
    qualifiers = fields[0].qualifiers.conjoined(*(field.qualifiers for field in fields[1:]))
    return UsageAnswer(
        Verdict.DENY if refusing else Verdict.ALLOW, tuple(fields), fields[0].usage, qualifiers
    )
