"""Counts of tags, of a crawl or of a dataset.

They count uses and verdicts, the lines that refuse, licences, attributions and elements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from comity.dataset.passes import Outcome
from comity.dataset.permissions.expiry import EXPIRED, has_passed
from comity.dataset.permissions.terms import ARRANGEMENT, LICENSES
from comity.dataset.records import Record, Unreadable
from comity.dataset.tags.sources import GUESSED, TagSource, read
from comity.dataset.verify.origins import page_url
from comity.policies.answers.rule import RULES
from comity.policies.syntax.printable import printable
from comity.policies.tag import TagError
from comity.policies.vocabulary.use_rows import UseRows, named
from comity.report.tallies import KeyTally
from comity.report.value import (
    Line,
    NamedCount,
    Ranking,
    Report,
    ReportedElement,
    ReportedRefusal,
    ReportedUse,
)

MAX_LINES = 100  # lines of a rule that are counted separately
SHOWN_LINES = 8  # lines of a rule in a report
SHOWN_URLS = 3  # URLs of a line
MAX_URL = 2_000  # characters of such a URL
SHOWN_ROWS = 50  # hosts, licences and selectors in a report
MAX_NAMES = 500  # licences, attributions, uses and selectors that are counted separately
SHOWN_USES = 60  # uses in a report
SUMMARIES = {EXPIRED: "the permission has ended since"}

Key = tuple[str, str, int, str]  # URL, part, line, text


class RuleCount:
    """The refusals by one rule.

    Attributes:
        urls: Line -> the first URLs that it refused. Lines that are counted together have none.
    """

    __slots__ = ("count", "hosts", "lines", "urls")

    def __init__(self) -> None:
        self.count = 0
        self.urls: dict[Key, tuple[str, ...]] = {}
        self.lines: KeyTally[Key] = KeyTally(MAX_LINES)
        self.hosts: KeyTally[str] = KeyTally(MAX_LINES)

    def add(self, key: Key, url: str) -> None:
        """Count a refusal by a line. `url`: of the refused page; "" if it is unknown."""
        self.count += 1
        self.lines.add(key)
        self._add_urls(key, (url[:MAX_URL],) if url else ())

    def _add_urls(self, key: Key, urls: tuple[str, ...]) -> None:
        known = self.urls.get(key, ())
        if len(known) < SHOWN_URLS and urls:
            self.urls[key] = tuple(dict.fromkeys((*known, *urls)))[:SHOWN_URLS]
            if len(self.urls) > 2 * MAX_LINES:
                self.urls = {key: urls for key, urls in self.urls.items() if key in self.lines}

    def update(self, other: RuleCount) -> None:
        self.count += other.count
        self.lines.update(other.lines)
        for key, urls in other.urls.items():
            self._add_urls(key, urls)
        self.hosts.update(other.hosts)


def refusals_of(rules: Mapping[str, RuleCount]) -> list[ReportedRefusal]:
    """Return the refusals by rule. The rule that refused most is first."""
    refusals = []
    for name, rule in sorted(rules.items(), key=lambda item: (-item[1].count, item[0])):
        entry = RULES.get(name)
        refusals.append(
            ReportedRefusal(
                rule=printable(name),
                spec=entry.spec if entry else "",
                summary=entry.summary if entry else SUMMARIES.get(name, ""),
                count=rule.count,
                hosts=ranking_of(rule.hosts, SHOWN_LINES),
                lines=[
                    line_of(key, count, rule.urls.get(key, ()))
                    for key, count in rule.lines.largest(SHOWN_LINES)
                ],
                other_lines=rule.lines.rest(SHOWN_LINES),
            )
        )
    return refusals


def line_of(key: Key, count: int = 0, urls: Iterable[str] = ()) -> Line:
    url, part, line, text = key
    return Line(
        url=printable(url),
        part=printable(part),
        line=line,
        text=printable(text),
        count=count,
        urls=list(map(printable, urls)),
    )


def ranking_of(tally: KeyTally[str], number: int = SHOWN_ROWS) -> Ranking:
    return Ranking(
        [NamedCount(printable(name), count) for name, count in tally.largest(number)],
        tally.rest(number),
    )


class ItemCounts:
    """Counts of tags. They can be pickled, and merged."""

    def __init__(self, rows: UseRows | None = None) -> None:
        """`rows`: the rows in which uses are counted; None: those of the shipped table."""
        self.items = 0
        self.untagged = 0  # items whose tag is missing or unreadable, which are in `items` too
        self._rows = rows or UseRows()
        self.unreadable = 0
        self.causes: KeyTally[str] = KeyTally(MAX_NAMES)  # why tags are missing or unreadable
        self.agents: KeyTally[str] = KeyTally(MAX_NAMES)
        # (row of uses, verdict, True if it is stated).
        self.uses: KeyTally[tuple[str, str, bool]] = KeyTally(MAX_NAMES)
        # (row of uses that has several words, term of a tag).
        self.terms: KeyTally[tuple[str, str]] = KeyTally(MAX_NAMES)
        self.rules: dict[str, RuleCount] = {}  # the refusals of uses
        self.licences: KeyTally[str] = KeyTally(MAX_NAMES)
        self.attributions: KeyTally[str] = KeyTally(MAX_NAMES)
        self.with_elements = 0
        # (selector, actions, line).
        self.elements: KeyTally[tuple[str, str, Key]] = KeyTally(MAX_NAMES)

    def add_tag(
        self, tag: Mapping[str, Any], expired: Collection[str] = (), *, url: str = ""
    ) -> None:
        """Count a tag, as it is in an item.

        `url`: URL of the item's page; "" if it is unknown.
        `expired`: uses that the tag permits, but whose permission has ended."""
        self.items += 1
        reasons = tag["reasons"]
        uses = tag["uses"]
        if expired:
            uses = uses | {name: uses[name] | {"verdict": "deny"} for name in expired}
        for row, members in self._rows.of(uses).items():
            use = uses[members[0]]
            self.uses.add((row, use["verdict"], use["stated"]))
            if row in self._rows.shared:
                for term in members:
                    self.terms.add((row, term))
            if use["verdict"] == "deny":
                reason = reasons[use["because"][0]]
                rule = EXPIRED if members[0] in expired else reason["rule"]
                count = self.rules.get(rule)
                if count is None:
                    count = self.rules[rule] = RuleCount()
                count.add(_key(reason), url)
        licences, attributions = set(), set()
        for use in uses.values():
            if use["verdict"] == "deny":
                continue
            for number in use["because"]:
                reason = reasons[number]
                if reason["rule"] in LICENSES:
                    licences.add(reason["text" if reason["rule"] == ARRANGEMENT else "url"])
            for resource in use.get("must_include", ()):
                attributions.add(resource["content"] or resource["url"] or resource["extract"])
        for licence in licences:
            self.licences.add(licence)
        for attribution in attributions:
            self.attributions.add(attribution)
        if tag["elements"]:
            self.with_elements += 1
            for element in tag["elements"]:
                reason = reasons[element["because"][0]]
                self.elements.add((element["selector"], ", ".join(element["deny"]), _key(reason)))

    def merge(self, other: ItemCounts) -> None:
        for name in ("items", "untagged", "unreadable", "with_elements"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("causes", "agents", "uses", "terms", "licences", "attributions", "elements"):
            getattr(self, name).update(getattr(other, name))
        for rule, count in other.rules.items():
            self.rules.setdefault(rule, RuleCount()).update(count)

    def fill(self, report: Report) -> None:
        """Put the counts into the report."""
        uses: dict[str, ReportedUse] = {}
        terms: dict[str, set[str]] = {}
        for row, term in self.terms.counts:
            terms.setdefault(row, set()).add(term)
        for (row, verdict, is_stated), count in self.uses.counts.items():
            if row not in uses:
                name, words = named(row, terms.get(row, ()))
                uses[row] = ReportedUse(use=printable(name), words=list(map(printable, words)))
            use = uses[row]
            field = verdict if is_stated else f"{verdict}_default"
            setattr(use, field, getattr(use, field) + count)
        report.uses = sorted(
            uses.values(), key=lambda use: (use.use not in report.uses_declared, use.use)
        )[:SHOWN_USES]
        report.use_refusals = refusals_of(self.rules)
        report.licences, report.attributions = (
            ranking_of(self.licences),
            ranking_of(self.attributions),
        )
        report.elements.items = self.with_elements
        report.elements.listed = [
            ReportedElement(
                selector=printable(selector),
                actions=printable(actions),
                items=count,
                line=line_of(key),
            )
            for (selector, actions, key), count in self.elements.largest(SHOWN_ROWS)
        ]
        report.elements.others = self.elements.rest(SHOWN_ROWS)
        report.counts["items"] = self.items
        report.counts["untagged"] = self.untagged


def _key(reason: Mapping[str, Any]) -> Key:
    return reason["url"], reason.get("part", ""), reason["line"], reason["text"]


class ItemsPass(NamedTuple):
    """A pass over the records of a dataset that counts their tags.

    Attributes:
        now: The moment of the count, aware.
        tags: The places of tags in records.
    """

    now: datetime
    tags: TagSource = GUESSED

    @property
    def fields(self) -> tuple[str, ...] | None:
        return self.tags.fields

    def __call__(self, records: list[Record]) -> Outcome:
        counts = ItemCounts()
        for record in records:
            self._count(record, counts)
        return Outcome([], counts)

    def _count(self, record: Record | Unreadable, counts: ItemCounts) -> None:
        assert isinstance(record, dict)
        try:
            tag = read(record, self.tags)
        except TagError as error:
            counts.items += 1
            counts.untagged += 1
            counts.causes.add(str(error))
            return
        counts.agents.add(tag.raw["agent"])
        counts.add_tag(
            tag.raw,
            {name for name, use in tag.uses.items() if has_passed(use.qualifiers.until, self.now)},
            url=page_url(record),
        )
