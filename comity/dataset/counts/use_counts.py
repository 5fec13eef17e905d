"""Counts of uses: the records that permit or refuse each use now, and the rules that decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from comity.dataset.counts.distinct import DistinctCount
from comity.dataset.counts.groups import Groups
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


class Place(NamedTuple):
    """The place of records in the counts."""

    origin: str
    """The origin of their page. "": they have no http or https URL."""
    month: str = ""
    """The month of their fetch, such as 2024-05. "": it is unknown, or not counted."""

    def group(self, by: str) -> str:
        return self.month if by == MONTH else self.origin


@dataclass(slots=True)
class Group:
    """The records of a use, a deciding rule, an origin or a month."""

    records: int = 0
    """The records of an origin or of a month. 0 for a use and for a rule."""
    uses: dict[str, Tally] = field(default_factory=dict)
    """Use -> its records."""

    def add(self, use: str, tally: Tally) -> None:
        self.uses.setdefault(use, Tally()).add(tally)

    def merge(self, other: Group) -> None:
        self.records += other.records
        for use, tally in other.uses.items():
            self.add(use, tally)

    @property
    def most(self) -> int:
        """The number of records of the use that most records have."""
        return max((tally.records for tally in self.uses.values()), default=0)


class UseCounts:
    """Counts of uses in groups. A group is a use, a deciding rule, an origin, or a month.

    For each use in a group, there is a Tally. A rule is the one that decides about the use. A month
    is that of `fetched_at`. Counts can be merged and pickled."""

    def __init__(self, by: str = USE, also: Iterable[str] = ()) -> None:
        """`by`: the groups of `rows`, one of BY. `also`: other groups that are counted too."""
        self.by = by
        self.records = 0
        self.unreadable = 0
        self.unread = 0  # records that were tagged without their page
        self.causes: Counter[str] = Counter()  # cause -> records without a valid tag
        self.refusing: Counter[str] = Counter()  # rule -> uses of records that it refuses
        self.origins = DistinctCount()
        self.tables: dict[str, Groups[str, Group]] = {
            name: Groups(Group) for name in dict.fromkeys((by, *also))
        }

    def read(self, record: Record, tag: Tag, uses: frozenset[str], now: datetime) -> None:
        """Count these uses of a record. If `uses` is empty, count all uses in its tag.

        A permission that lasts until the page is fetched again counts as one that has not ended."""
        place = Place(
            origin_of(record.get("final_url"), record.get("url")),
            month_of(record.get("fetched_at")) if MONTH in self.tables else "",
        )
        self.unread += "is_unread" in tag.raw
        self.note(place)
        for name in tag.uses.keys() & uses if uses else tag.uses:
            use = tag.uses[name]
            until = use.qualifiers.until
            has_ended = use.is_allowed and has_passed(until, now)
            rule = EXPIRED if has_ended else tag.reasons_of(use)[0]["rule"]
            is_allowed = use.is_allowed and not has_ended
            is_soon = is_allowed and until is not None and until - now <= SOON
            tally = Tally(is_allowed, not is_allowed, is_soon)
            self.count(name, rule, tally)
            for by in self.places:
                self.tables[by][place.group(by)].add(name, tally)

    def drop(self, cause: str) -> None:
        """Count a record whose tag is missing or invalid."""
        self.records += 1
        self.causes[cause] += 1

    def note(self, place: Place, records: int = 1) -> None:
        """Count records with a valid tag."""
        self.records += records
        self.origins.add(place.origin)
        for by in self.places:
            self.tables[by][place.group(by)].records += records

    @property
    def places(self) -> list[str]:
        """The groups that are counted and that depend on the record, not on its tag."""
        return [by for by in (ORIGIN, MONTH) if by in self.tables]

    def count(self, use: str, rule: str, tally: Tally) -> None:
        """Count records by their verdict on a use, apart from `places`.

        `rule`: the rule that decides."""
        if tally.refused:
            self.refusing[rule] += tally.refused
        for by, group in ((USE, use), (RULE, rule)):
            if by in self.tables:
                self.tables[by][group].add(use, tally)

    def merge(self, other: UseCounts) -> None:
        for name in ("records", "unreadable", "unread"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.causes.update(other.causes)
        self.refusing.update(other.refusing)
        self.origins.merge(other.origins)
        for name, groups in other.tables.items():
            self.tables[name].merge(groups)

    @property
    def groups(self) -> dict[str, dict[str, Tally]]:
        """Group -> use -> records, for the groups of `by`."""
        return {name: group.uses for name, group in self.tables[self.by].items()}

    def sorted_groups(self) -> Iterator[tuple[str, dict[str, Tally]]]:
        """Yield the groups: uses by name, months from the latest, others from the largest."""
        groups = self.tables[self.by]
        pairs = groups.items() if self.by in (USE, MONTH) else groups.by_size(lambda one: one.most)
        ordered = reversed([*pairs]) if self.by == MONTH else pairs
        return ((name, group.uses) for name, group in ordered)

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
