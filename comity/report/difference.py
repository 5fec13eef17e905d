"""The changes from one report to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from comity.report.value import NamedCount, Report, ReportedRefusal

MOST = 50  # changes of one kind in a section


@dataclass(frozen=True, slots=True)
class Change:
    """A figure before and now; None if there was none.

    Attributes:
        name: The name of the figure.
        before: The figure before; None if there was none.
        now: The figure now; None if there is none.
    """

    name: str
    before: float | None
    now: float | None

    @property
    def size(self) -> float:
        return abs((self.now or 0) - (self.before or 0))

    @property
    def old(self) -> str:
        return _figure(self.before)

    @property
    def new(self) -> str:
        return _figure(self.now)

    @property
    def delta(self) -> str:
        difference = (self.now or 0) - (self.before or 0)
        return f"{difference:+,g}" if isinstance(difference, float) else f"{difference:+,}"


@dataclass(frozen=True, slots=True)
class Section:
    """Changes of one kind, the greatest first.

    Attributes:
        title: The heading.
        what: The names of the figures in general.
        changes: The changes, at most MOST.
    """

    title: str
    what: str
    changes: list[Change]


def difference(old: Report, new: Report) -> list[Section]:
    """Return the sections with changes; [] if nothing has changed."""
    return [section for section in _sections(old, new) if section.changes]


def as_json(sections: Sequence[Section]) -> list[dict[str, Any]]:
    return [asdict(section) for section in sections]


def _sections(old: Report, new: Report) -> Iterator[Section]:
    yield _section("Totals", "Count", old.counts, new.counts)
    yield _section("Refused requests", "Rule", _rules(old.refusals), _rules(new.refusals))
    yield _section("Lines that refuse", "Line", _lines(old.refusals), _lines(new.refusals))
    yield _section(
        "Hosts: refused requests", "Host", _hosts(old, "refused"), _hosts(new, "refused")
    )
    yield _section("Hosts: requests sent", "Host", _hosts(old, "sent"), _hosts(new, "sent"))
    before, now = (
        {"measured": report.pace.gaps, "below the limit": report.pace.below}
        for report in (old, new)
    )
    yield _section("Pace", "Gaps", before, now)
    yield _section("Uses", "Use and verdict", _uses(old), _uses(new))
    yield _section(
        "Why uses are refused", "Rule", _rules(old.use_refusals), _rules(new.use_refusals)
    )
    yield _section("Policy files", "File", _files(old), _files(new))
    yield _section("Sites without readable policies", "Site", _unreachable(old), _unreachable(new))
    yield _section("Licences", "Licence", _by_name(old.licences.rows), _by_name(new.licences.rows))
    yield _section(
        "Attributions",
        "Attribution",
        _by_name(old.attributions.rows),
        _by_name(new.attributions.rows),
    )
    yield _section("Actions that sites request", "Action", old.actions.number, new.actions.number)


def _section(title: str, what: str, before: Mapping[str, int], now: Mapping[str, int]) -> Section:
    changes = [
        Change(name, before.get(name), now.get(name))
        for name in dict.fromkeys((*before, *now))
        if before.get(name) != now.get(name)
    ]
    return Section(title, what, sorted(changes, key=lambda change: -change.size)[:MOST])


def _by_name(rows: Sequence[NamedCount]) -> dict[str, int]:
    return {row.name: row.count for row in rows}


def _rules(refusals: Sequence[ReportedRefusal]) -> dict[str, int]:
    return {refusal.rule: refusal.count for refusal in refusals}


def _lines(refusals: Sequence[ReportedRefusal]) -> dict[str, int]:
    return {
        f"{line.url}:{line.line}: {line.text}": line.count
        for refusal in refusals
        for line in refusal.lines
    }


def _hosts(report: Report, name: str) -> dict[str, int]:
    return {host.host: getattr(host, name) for host in report.hosts.listed}


def _uses(report: Report) -> dict[str, int]:
    words = {
        "allow": "allowed",
        "deny": "refused",
        "allow_default": "allowed by default",
        "deny_default": "refused by default",
    }
    return {
        f"{use.use}: {word}": getattr(use, field)
        for use in report.uses
        for field, word in words.items()
    }


def _files(report: Report) -> dict[str, int]:
    words = {"present": "present", "absent": "absent", "unreachable": "could not be fetched"}
    return {
        f"{file.name}: {word}": getattr(file, field)
        for file in report.files
        for field, word in words.items()
    }


def _unreachable(report: Report) -> dict[str, int]:
    return {site.origin: 1 for site in report.unreachable.listed}


def _figure(number: float | None) -> str:
    return "–" if number is None else f"{number:,}"
