"""`comity policy history URL`: the changes of a site's policies on a URL, over captures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console
from rich.text import Text

from comity.dataset.captures.captures import PolicyCaptures, SiteAtMoment
from comity.gate.explanation import COLORS, limits_of, location_of, reasons_as_json
from comity.gate.explanation_shape import VERSION
from comity.gate.run.console import add_row, line, table
from comity.policies import Agent, Reason, Verdict
from comity.policies.answers.request import Facts
from comity.policies.syntax.urls import origin_of
from comity.policies.tag import write_conditions

# Captures within it belong to one visit: the files of a site are fetched one after the other.
SPAN = timedelta(hours=1)
_DAY = timedelta(days=1)
ACCESS = "access"
UNSTATED = "not stated"


@dataclass(frozen=True, slots=True)
class PastAnswer:
    """The answer to one question at a moment.

    Attributes:
        verdict: The verdict.
        reasons: The reasons of the verdict, the deciding one first.
        is_stated: False if the site states nothing.
        conditions: The conditions of a permission, as in the tag.
        days: The number of days from the visit on that a permission lasts; None if it ends at a
            date, or does not end.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...]
    is_stated: bool = True
    conditions: dict[str, Any] = field(default_factory=dict)
    days: int | None = None

    @property
    def summary(self) -> str:
        """The answer in words. Equal files give equal words."""
        conditions = {
            name: value
            for name, value in self.conditions.items()
            if name != "until" or self.days is None
        }
        term = f"for {self.days} day{'s' * (self.days != 1)}" if self.days is not None else ""
        details = (
            ", ".join(filter(None, (limits_of(conditions), term))) if self.is_stated else UNSTATED
        )
        return f"{self.verdict.value} ({details})" if details else self.verdict.value

    @property
    def as_json(self) -> dict[str, Any]:
        record = {
            "verdict": self.verdict.value,
            "stated": self.is_stated,
            "reasons": reasons_as_json(self.reasons),
        }
        return record | self.conditions


@dataclass(frozen=True, slots=True)
class Visit:
    """The answers of a site about a URL at a moment.

    Attributes:
        moment: The moment of the last capture.
        captured: The site at that moment.
        answers: The answers, by ACCESS and by use.
    """

    moment: datetime
    captured: SiteAtMoment
    answers: dict[str, PastAnswer]

    def changes(self, before: Visit | None) -> list[str]:
        """Return the names of the answers that have changed. `before`: None for the first visit."""
        return [
            name
            for name, answer in self.answers.items()
            if before and answer.summary != before.answers[name].summary
        ]


def history(
    captures: PolicyCaptures, url: str, facts: Facts, *, declared_only: bool = False
) -> list[Visit]:
    """Return the visits of the captures, with the answers about the URL, in order of time.

    Each visit has an answer for every use that the agent declares. Unless `declared_only`, it also
    has one for every use that a visit states."""
    origin, agent = origin_of(url), captures.agent
    sites = [
        (moment, site)
        for moment in _visits(captures.moments(origin))
        if (site := captures.at(origin, moment))
    ]
    uses: dict[str, None] = dict.fromkeys(agent.uses)
    for moment, captured in () if declared_only else sites:
        page = captured.site.page(agent, url, body=None, facts=facts, now=moment)
        uses |= dict.fromkeys(use for use, answer in page.uses.items() if answer.stated)
    return [
        Visit(moment, captured, _answers(captured, agent, url, facts, uses, moment, sites[0][0]))
        for moment, captured in sites
    ]


def _visits(moments: Iterable[datetime]) -> Iterator[datetime]:
    """Yield the last moment of each visit."""
    first = last = None
    for moment in moments:
        if first is not None and last is not None and moment - first > SPAN:
            yield last
            first = None
        first, last = first or moment, moment
    if last is not None:
        yield last


def _answers(
    captured: SiteAtMoment,
    agent: Agent,
    url: str,
    facts: Facts,
    uses: Iterable[str],
    moment: datetime,
    hour: datetime,
) -> dict[str, PastAnswer]:
    """Return the answers by the files of a visit.

    `moment`: the moment of the visit. `hour`: the time of day for which requests are judged, one
    for all visits. Otherwise a Visit-time would seem to change with the hours of the captures."""
    decision = captured.site.judge(agent, url, facts, hour)
    page = captured.site.page(agent, url, body=None, facts=facts, now=moment)
    answers = {ACCESS: PastAnswer(decision.verdict, decision.reasons)}
    for use in uses:
        answer = page.uses[use]
        term = answer.until - moment if answer.until else None
        # A term counts from the visit on; a date ends at 23:59:59.
        is_counted = term is not None and not term % _DAY
        days = term // _DAY if term is not None and is_counted else None
        answers[use] = PastAnswer(
            answer.verdict, answer.reasons, answer.stated, write_conditions(answer), days
        )
    return answers


def as_json(visits: Sequence[Visit], url: str, agent: Agent) -> dict[str, Any]:
    """Return everything that is known, as JSON values."""
    befores = [None, *visits]
    return {
        "schema": VERSION,
        "url": url,
        "agent": agent.token,
        "dates": [
            {
                "at": visit.moment.isoformat(),
                "answers": {name: answer.as_json for name, answer in visit.answers.items()},
                "changed": visit.changes(before),
                "copies": [
                    {
                        **copy._asdict(),
                        "fetched_at": copy.fetched_at.isoformat() if copy.fetched_at else None,
                    }
                    for copy in visit.captured.copies
                ],
            }
            for before, visit in zip(befores, visits, strict=False)
        ],
    }


def show(visits: Sequence[Visit], url: str, console: Console) -> None:
    """Print the history for people.

    It has a row for each answer that differs from the one before, with the deciding lines."""
    names = list(visits[0].answers)
    rows = table(f"Policies on {url}", "from", "to", "visits", *names)
    changes = table("Changes", "at", "of", "to", "where", "why")
    origin = origin_of(url)
    before: Visit | None = None
    for period in _periods(visits):
        first = period[0]
        changed = first.changes(before)
        cells = [
            Text(
                f"{answer.summary} *" if name in changed else answer.summary,
                COLORS[answer.verdict.value],
            )
            for name, answer in first.answers.items()
        ]
        add_row(rows, _date(first), _date(period[-1]), len(period), *cells)
        for name in changed or (names if before is None else ()):
            answer = first.answers[name]
            reason = answer.reasons[0]
            summary = Text(answer.summary, COLORS[answer.verdict.value])
            location = location_of(answer.as_json["reasons"][0]).removeprefix(origin)
            add_row(
                changes, _date(first), name, summary, location, reason.source.text or reason.rule
            )
        before = first
    console.print(rows)
    console.print(changes)
    if absent := visits[-1].captured.absent:
        console.print(
            line(
                f"There is no copy of {', '.join(absent)}. A file without a copy counts as"
                " never requested: it states nothing if robots.txt was answered"
            )
        )


def _periods(visits: Sequence[Visit]) -> Iterator[list[Visit]]:
    """Yield runs of visits with equal answers."""
    period: list[Visit] = []
    for visit in visits:
        if period and visit.changes(period[-1]):
            yield period
            period = []
        period.append(visit)
    if period:
        yield period


def _date(visit: Visit) -> str:
    return visit.moment.strftime("%Y-%m-%d %H:%M")
