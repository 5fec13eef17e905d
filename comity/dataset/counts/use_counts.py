"""Counts of uses: the records that permit or refuse each use now, and the rules that decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from comity.dataset.counts.distinct import DistinctCount
from comity.dataset.permissions.expiry import EXPIRED, has_passed
from comity.dataset.records import Record, moment_of
from comity.policies.syntax.urls import origin_or_empty
from comity.policies.tag import Tag

USE, RULE, ORIGIN, MONTH = BY = ("use", "rule", "origin", "month")
SOON = timedelta(days=30)


@dataclass(slots=True)
class Tally:
    """The numbers of records that permit and refuse a use."""

    allowed: int = 0
    """Records that permit the use."""
    refused: int = 0
    """Records that refuse the use, or whose permission has ended."""
    expiring: int = 0
    """Records among `allowed` with a permission that ends within SOON."""

    @property
    def records(self) -> int:
        return self.allowed + self.refused

    def add(self, other: Tally) -> None:
        self.allowed += other.allowed
        self.refused += other.refused
        self.expiring += other.expiring


class UseCounts:
    """Counts of uses in groups. A group is a use, a deciding rule, an origin, or a month.

    For each use in a group, there is a Tally. A rule is the one that decides about the use. A month
    is that of `fetched_at`. Counts can be merged and pickled."""

    def __init__(self, by: str = USE) -> None:
        self.by = by  # one of BY
        self.records = 0
        self.unreadable = 0
        self.causes: Counter[str] = Counter()  # cause -> records without a valid tag
        self.refusing: Counter[str] = Counter()  # rule -> uses of records that it refuses
        self.origins = DistinctCount()
        self.groups: dict[str, dict[str, Tally]] = {}  # group -> use -> records

    def read(self, record: Record, tag: Tag, uses: frozenset[str], now: datetime) -> None:
        """Count these uses of a record. If `uses` is empty, count all uses in its tag.

        A permission that lasts until the page is fetched again counts as one that has not ended."""
        origin = origin_of(record.get("final_url"), record.get("url"))
        self.records += 1
        self.origins.add(origin)
        group = {ORIGIN: origin, MONTH: month_of(record.get("fetched_at"))}.get(self.by, "")
        for name in tag.uses.keys() & uses if uses else tag.uses:
            use = tag.uses[name]
            until = use.qualifiers.until
            has_ended = use.is_allowed and has_passed(until, now)
            rule = EXPIRED if has_ended else tag.reasons_of(use)[0]["rule"]
            is_allowed = use.is_allowed and not has_ended
            is_soon = is_allowed and until is not None and until - now <= SOON
            self.count(group, name, rule, Tally(is_allowed, not is_allowed, is_soon))

    def drop(self, cause: str) -> None:
        """Count a record whose tag is missing or invalid."""
        self.records += 1
        self.causes[cause] += 1

    def count(self, group: str, use: str, rule: str, tally: Tally) -> None:
        """Count records by their verdict on a use.

        `rule`: the rule that decides. `group`: the origin or month of the records, if the counts
        are by origin or month. Otherwise it is not used."""
        if tally.refused:
            self.refusing[rule] += tally.refused
        group = {USE: use, RULE: rule}.get(self.by, group)
        uses = self.groups.setdefault(group, {})
        if use in uses:
            uses[use].add(tally)
        else:
            uses[use] = tally

    def merge(self, other: UseCounts) -> None:
        self.records += other.records
        self.unreadable += other.unreadable
        self.causes.update(other.causes)
        self.refusing.update(other.refusing)
        self.origins.merge(other.origins)
        for group, uses in other.groups.items():
            tallies = self.groups.setdefault(group, {})
            for use, tally in uses.items():
                tallies.setdefault(use, Tally()).add(tally)

    def sorted_groups(self) -> list[tuple[str, dict[str, Tally]]]:
        """Return the groups: uses by name, months from the latest, others from the largest."""
        groups = sorted(self.groups.items())
        if self.by == MONTH:
            return groups[::-1]
        if self.by != USE:
            groups.sort(key=lambda group: -max(tally.records for tally in group[1].values()))
        return groups

    @property
    def columns(self) -> list[str]:
        """The names of the columns of `rows`."""
        return list(dict.fromkeys((self.by, "use", *Tally.__slots__)))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each group and use."""
        for group, uses in self.sorted_groups():
            for use, tally in sorted(uses.items()):
                numbers = {name: getattr(tally, name) for name in Tally.__slots__}
                yield {self.by: group, "use": use, **numbers}

    def as_json(self) -> dict[str, Any]:
        """Return plain data in a stable order."""
        return {
            "records": self.records,
            "unreadable": self.unreadable,
            "origins": self.origins.number,
            "whys": _most_common(self.causes),
            "rules": _most_common(self.refusing),
            "rows": list(self.rows()),
        }


def origin_of(final_url: Any, url: Any) -> str:
    """Return the origin of the page that answered. "" if the record has no http or https URL."""
    answered = final_url or url
    return origin_or_empty(answered) if isinstance(answered, str) else ""


def month_of(fetched_at: Any) -> str:
    """Return the month of a date in UTC, such as 2024-05. "" for records without a date."""
    moment = moment_of(fetched_at)
    return f"{moment:%Y-%m}" if moment else ""


def _most_common(counter: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda entry: (-entry[1], entry[0])))
