"""Counts the events of a crawl, in bounded memory, and reports on it at any time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from time import monotonic, time
from typing import Any

from comity.bounded import Bounded
from comity.gate.run.observer import Observer, Paced
from comity.policies import ActionRequest, Decision, Reason, Verdict
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import host_name
from comity.policies.vocabulary.use_rows import UseRows
from comity.report.hosts import Gap, HostCounts
from comity.report.items import (
    MAX_NAMES,
    SHOWN_ROWS,
    ItemCounts,
    RuleCount,
    line_of,
    ranking_of,
    refusals_of,
)
from comity.report.tallies import KeyTally
from comity.report.value import (
    NamedCount,
    Report,
    ReportedAction,
    ReportedFile,
    ReportedSite,
    ReportedUnreachable,
    Timeline,
)

MAX_SITES = 20_000  # sites whose files are remembered, so that another look at them counts once
MAX_ACTIONS = 200  # actions in the list
BUCKETS = 240  # numbers in the timeline, at most
OTHER_FILES = "files that these name"


class SiteCounts:
    """The policy files of sites: present, absent or unreachable.

    Attributes:
        number: The number of sites.
        unreachable: The number of sites whose policies could not be fetched.
    """

    def __init__(self) -> None:
        self._sites: Bounded[str, tuple[tuple[tuple[str, Availability], ...], str]] = Bounded(
            MAX_SITES
        )
        self._files: Counter[tuple[str, Availability]] = Counter()
        self._reasons: KeyTally[str] = KeyTally(MAX_NAMES)
        self._shapes: dict[Any, Any] = {}  # one object for equal shapes, to save memory
        self.number = 0
        self.unreachable = 0

    def looked_up(self, origin: str, files: Mapping[str, Fetched], error: str) -> None:
        states = []
        for url, file in files.items():
            path = url.removeprefix(origin)
            states.append((path if path in WELL_KNOWN else OTHER_FILES, availability(file)))
        shape = tuple(states)
        shape = self._shapes.setdefault(shape, shape) if len(self._shapes) < MAX_SITES else shape
        before = self._sites.get(origin)
        if before is None:
            self.number += 1
        else:
            self._files.subtract(before[0])
            if before[1]:
                self.unreachable -= 1
                self._reasons.add(before[1], -1)
        self._files.update(shape)
        if error:
            self.unreachable += 1
            self._reasons.add(error)
        self._sites[origin] = shape, error

    def fill(self, report: Report) -> None:
        names = dict.fromkeys((*WELL_KNOWN, OTHER_FILES))
        report.files = [
            ReportedFile(
                name=name, **{state.value: self._files[name, state] for state in Availability}
            )
            for name in names
            if any(self._files[name, state] for state in Availability)
        ]
        lost = [
            ReportedSite(origin=printable(origin), why=printable(error))
            for origin, (_, error) in self._sites.items()
            if error
        ]
        reasons = ranking_of(self._reasons, 10)
        reasons.rows = [row for row in reasons.rows if row.count > 0]
        report.unreachable = ReportedUnreachable(
            number=self.unreachable, listed=lost[:SHOWN_ROWS], reasons=reasons
        )
        report.counts["sites"] = self.number


class Collector(Observer):
    """Counts the events of a crawl."""

    def __init__(self, rows: UseRows | None = None) -> None:
        """`rows`: the rows in which uses are counted; None: those of the shipped table."""
        self.began_at = time()
        self.began = monotonic()
        self.hosts = HostCounts()
        self.sites = SiteCounts()
        self.items = ItemCounts(rows)
        # (verdict, rule) of decisions about requests.
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.refused: dict[str, RuleCount] = {}
        self.stopped_rules: dict[str, RuleCount] = {}
        self.statuses: Counter[int] = Counter()
        self.actions: Counter[str] = Counter()
        self._action_list: list[ActionRequest] = []
        self._actions_not_arranged = 0
        self._width = 1.0  # seconds
        self._sent: list[int] = []
        self._refused_at: list[int] = []

    # The events

    def decided(self, url: str, decision: Decision) -> None:
        reason, verdict = decision.reasons[0], decision.verdict
        self.verdicts[verdict.value, reason.rule] += 1
        name = host_name(url)
        host = self.hosts.count_of(name)
        if verdict is Verdict.ALLOW:
            host.allowed += 1
            return
        host.refused += 1
        _count(self.refused, reason, name, url)
        index = self._bucket(monotonic())
        self._refused_at[index] += 1

    def stopped(self, url: str, decision: Decision) -> None:
        name = host_name(url)
        self.hosts.count_of(name).stopped += 1
        _count(self.stopped_rules, decision.reasons[0], name, url)

    def starting(self, limiters: Sequence[Paced]) -> list[Gap | None]:
        now = monotonic()
        return [self.hosts.gap(limiter, now) for limiter in limiters]

    def settled(self, limiters: Sequence[Paced], start: list[Gap | None]) -> None:
        now = monotonic()
        parts = [inf if gap is None else gap.part for gap in start]
        narrowest = parts.index(min(parts))  # the host's own if there is no gap
        for number, (limiter, gap) in enumerate(zip(limiters, start, strict=True)):
            self.hosts.settle(limiter, gap, now, is_counted=number == narrowest)
        self.hosts.count_of(limiters[0].name).sent += 1
        index = self._bucket(now)
        self._sent[index] += 1

    def received(self, url: str, status: int) -> None:
        self.statuses[status] += 1
        self.hosts.count_of(host_name(url)).answered += 1

    def asked_for_files(self, origin: str, requests: int) -> None:
        self.hosts.count_of(host_name(origin)).files += requests

    def looked_up(self, origin: str, files: Mapping[str, Fetched], error: str) -> None:
        self.sites.looked_up(origin, files, error)

    def backed_off(self, url: str, status: int) -> None:
        self.hosts.count_of(host_name(url)).backed_off += 1

    def tagged(self, tag: Mapping[str, Any], url: str = "") -> None:
        self.items.add_tag(tag, url=url)

    def asked_to_act(self, request: ActionRequest) -> None:
        self.actions[request.action] += 1
        self._actions_not_arranged += not request.arranged
        if len(self._action_list) < MAX_ACTIONS:
            self._action_list.append(request)

    def _bucket(self, now: float) -> int:
        """Return the number of the bucket of this moment. If there are too many, merge pairs."""
        while (index := int((now - self.began) / self._width)) >= BUCKETS:
            self._sent, self._refused_at = _pairs(self._sent), _pairs(self._refused_at)
            self._width *= 2
        if index >= len(self._sent):
            more = [0] * (index + 1 - len(self._sent))
            self._sent += more
            self._refused_at += more
        return index

    # The results

    def fill(self, report: Report) -> None:
        """Put all counts into the report."""
        report.began = moment(self.began_at)
        report.until = moment(time())
        report.timeline = Timeline(
            seconds=self._width, sent=[*self._sent], refused=[*self._refused_at]
        )
        report.hosts, report.pace = self.hosts.hosts(), self.hosts.pace(self.began)
        report.statuses = [
            NamedCount(str(status), count) for status, count in sorted(self.statuses.items())
        ]
        report.refusals, report.stopped = refusals_of(self.refused), refusals_of(self.stopped_rules)
        totals = self.totals()
        report.counts = {
            **totals,
            "gaps": report.pace.gaps,
            "failed": max(0, totals["sent"] - totals["answered"]),
        }
        self.sites.fill(report)
        self.items.fill(report)
        report.actions.number = dict(sorted(self.actions.items()))
        report.actions.not_arranged = self._actions_not_arranged
        report.actions.listed = [
            ReportedAction(
                action=request.action,
                url=printable(request.url),
                is_arranged=request.arranged,
                line=line_of(_key(request.reason)),
            )
            for request in self._action_list
        ]

    def totals(self) -> dict[str, int]:
        """Return the sums over all hosts. Another thread than the one that counts may call it."""
        return self.hosts.total()


def moment(seconds: float) -> str:
    """Return the time in ISO 8601. `seconds`: since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _count(rules: dict[str, RuleCount], reason: Reason, host: str, url: str) -> None:
    rule = rules.get(reason.rule)
    if rule is None:
        rule = rules[reason.rule] = RuleCount()
    rule.hosts.add(host)
    rule.add(_key(reason), url)


def _key(reason: Reason) -> tuple[str, str, int, str]:
    source = reason.source
    part = "" if source.part == "body" else source.part
    # A rule about the request itself has the URL of each request, but always the same meaning. An
    # offer with equal terms is counted once for all URLs.
    url = "" if part in ("request", "offer") else source.url
    return url, part, source.line, source.text


def _pairs(numbers: list[int]) -> list[int]:
    return [sum(numbers[index : index + 2]) for index in range(0, len(numbers), 2)]
