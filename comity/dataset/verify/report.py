"""The report on the records of a dataset, by host. Reports on parts can be merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from comity.dataset.counts.groups import Groups
from comity.dataset.passes import Outcome
from comity.dataset.records import Record
from comity.dataset.verify.recheck import recheck
from comity.dataset.verify.result import GAINED, LOST, RESTRICTED, Cause, Rechecked
from comity.dataset.verify.today import FIELDS, Sites, Today

NO_HOST = ""  # the host of records without a URL


@dataclass(slots=True)
class Host:
    """The records of one origin."""

    records: int = 0
    """All records."""
    refused: int = 0
    """Records that today's policies refuse."""
    unknown: int = 0
    """Records whose policies cannot be determined."""
    gained_elements: int = 0
    """Records with parts that the tag refuses and today's files do not."""
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(use, change) -> records."""
    losses: Counter[tuple[str, str, Cause]] = field(default_factory=Counter)
    """(use, change, cause) -> the number of records that have lost the use, or for which the use
    has new conditions."""
    unknown_causes: Counter[Cause] = field(default_factory=Counter)
    """Cause -> unknown records."""

    def add(self, rechecked_record: Rechecked) -> None:
        self.records += 1
        self.refused += bool(rechecked_record.refusals) and not rechecked_record.is_unknown
        self.unknown += rechecked_record.is_unknown
        self.gained_elements += rechecked_record.gained_elements
        if rechecked_record.is_unknown:
            self.unknown_causes.update(rechecked_record.refusals)
        for use in rechecked_record.uses:
            if use.change in (GAINED, LOST, RESTRICTED):
                self.changes[use.use, use.change] += 1
            if use.change in (LOST, RESTRICTED):
                # The text is the end of the permission, which differs from record to record.
                cause = use.cause._replace(text="") if use.cause.rule == "expired" else use.cause
                self.losses[use.use, use.change, cause] += 1

    def merge(self, other: Host) -> None:
        for name in ("records", "refused", "unknown", "gained_elements"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.changes.update(other.changes)
        self.losses.update(other.losses)
        self.unknown_causes.update(other.unknown_causes)

    def as_json(self) -> dict[str, Any]:
        rights: dict[str, dict[str, int]] = {}
        for (use, change), count in sorted(self.changes.items()):
            rights.setdefault(use, {})[change] = count
        return {
            "records": self.records,
            "compliant": self.records - self.refused - self.unknown,
            "refused": self.refused,
            "unknown": self.unknown,
            "gained_elements": self.gained_elements,
            "rights": rights,
            "losses": [
                {"use": use, "change": change, "records": count} | cause._asdict()
                for (use, change, cause), count in self.losses.most_common()
            ],
            "why_unknown": [
                {"records": count} | cause._asdict()
                for cause, count in self.unknown_causes.most_common()
            ],
        }


class VerifyReport:
    """The report on a dataset. It can be merged and pickled."""

    def __init__(self) -> None:
        self.hosts: Groups[str, Host] = Groups(Host)  # origin or NO_HOST -> its records
        self.agents: Counter[str] = Counter()  # token in the tag -> records
        self.altered: list[str] = []  # files and folders that differ from their manifests
        self.unreadable = 0
        self.records = 0
        self.refused = 0
        self._unknown = 0

    @property
    def unknown(self) -> int:
        """The number of records with unknown policies, and of unreadable records."""
        return self._unknown + self.unreadable

    @property
    def is_compliant(self) -> bool:
        return not self.refused and not self.unknown and not self.altered

    def add(self, rechecked_record: Rechecked) -> None:
        self.records += 1
        self.refused += bool(rechecked_record.refusals) and not rechecked_record.is_unknown
        self._unknown += rechecked_record.is_unknown
        self.hosts[rechecked_record.origin or NO_HOST].add(rechecked_record)
        if rechecked_record.agent:
            self.agents[rechecked_record.agent] += 1

    def merge(self, other: VerifyReport) -> None:
        self.hosts.merge(other.hosts)
        for name in ("records", "refused", "_unknown", "unreadable"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.agents.update(other.agents)
        self.altered += other.altered

    def worst_hosts(self, number: int) -> list[tuple[str, Host]]:
        """Return the hosts with the most non-compliant records, at most `number` of them."""
        return self.hosts.largest(number, lambda host: host.refused + host.unknown)

    def totals(self) -> dict[str, Any]:
        """Return the totals, without the hosts."""
        compliant = self.records + self.unreadable - self.refused - self.unknown
        return {
            "records": self.records + self.unreadable,
            "compliant": compliant,
            "refused": self.refused,
            "unknown": self.unknown,
            "unreadable": self.unreadable,
            "agents": dict(self.agents.most_common()),
            **({"altered": self.altered} if self.altered else {}),
        }

    def as_json(self) -> dict[str, Any]:
        return self.totals() | {
            "hosts": {name: host.as_json() for name, host in self.hosts.items()}
        }


class Verify:
    """A pass that returns a VerifyReport, and a note for each record that is not compliant.

    A note has `url`, `unknown` (True if today's policies are unknown) and `why`, the reasons."""

    def __init__(self, sites: Sites, today: Today) -> None:
        """`sites`: returns today's policies of an origin. It must be picklable."""
        self._sites = sites
        self._today = today

    @property
    def fields(self) -> Sequence[str] | None:
        return None if self._today.tags.fields is None else (*FIELDS, *self._today.tags.fields)

    def __call__(self, records: list[Record]) -> Outcome:
        report, notes = VerifyReport(), []
        for record in records:
            rechecked_record = recheck(record, self._sites, self._today)
            report.add(rechecked_record)
            if rechecked_record.refusals:
                notes.append(
                    {
                        "url": rechecked_record.url,
                        "unknown": rechecked_record.is_unknown,
                        "why": list(_explanations(rechecked_record)),
                    }
                )
        return Outcome([], report, notes)


def _explanations(rechecked_record: Rechecked) -> Iterable[str]:
    refused = {use.cause: use for use in reversed(rechecked_record.uses)}
    for cause in rechecked_record.refusals:
        yield f"{refused[cause].use}: {cause}" if cause in refused else str(cause)
