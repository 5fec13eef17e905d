"""The counts of a pass. The counts of parts are merged into those of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from comity.dataset.permissions.expiry import EXPIRED, has_passed
from comity.dataset.records import Record
from comity.dataset.tags.sources import GUESSED, TagSource, read
from comity.policies.tag import TagError

SOON = timedelta(days=30)
MAX_POLICIES = 20_000  # copies of policy files that are listed


@dataclass(slots=True)
class Tally:
    """Records of one host, for one use."""

    allowed: int = 0
    refused: int = 0  # by a verdict, or because the permission has ended
    expiring: int = 0  # of those that are allowed: within SOON

    def add(self, other: Tally) -> None:
        self.allowed += other.allowed
        self.refused += other.refused
        self.expiring += other.expiring


class RecordCounts:
    """Counts of records, for `stats` by `read`, for a manifest by `keep` and `drop`. It can be pickled."""

    def __init__(self) -> None:
        self.records = 0  # that were counted
        self.kept = 0
        self.unreadable = 0  # for whoever reads files
        self.causes: Counter[str] = (
            Counter()
        )  # TermsApplied.cause or Expired.cause of those that were dropped; of tags that are not understood
        self.rules: Counter[str] = (
            Counter()
        )  # of each refusal of a use, the rule that decided; EXPIRED where the permission has ended
        self.hosts: dict[str, dict[str, Tally]] = {}  # host -> use -> records
        self.agents: Counter[str] = Counter()  # of records that were kept
        self.policies: dict[str, dict[str, dict[str, Any]]] = {}  # of records that were kept: URL -> SHA-256 -> as in the tag
        self.has_more_policies = False
        self._copy_count = 0

    def read(self, record: Record, now: datetime, source: TagSource = GUESSED) -> None:
        """Count every use that the record's tag lists. Whether the page was fetched again is not asked."""
        self.records += 1
        try:
            tag = read(record, source)
        except TagError as error:
            self.causes[str(error)] += 1
            return
        uses = self.hosts.setdefault(_host(record), {})
        for name, use in tag.uses.items():
            tally = uses.setdefault(name, Tally())
            until = use.qualifiers.until
            if not use.is_allowed:
                tally.refused += 1
                self.rules[tag.reasons_of(use)[0]["rule"]] += 1
            elif has_passed(until, now):
                tally.refused += 1
                self.rules[EXPIRED] += 1
            else:
                tally.allowed += 1
                tally.expiring += until is not None and until - now <= SOON

    def keep(self, tag: Mapping[str, Any]) -> None:
        """A record that comes out, with this tag, which is understood."""
        self.keep_several(
            1, {tag["agent"]: 1}, ((url, copy) for url, policy in tag["policies"].items() for copy in copies_of(policy))
        )

    def keep_several(self, records: int, agents: Mapping[str, int], policies: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Count records that are kept.

        `agents`: of how many of them. `policies`: URL and copy, as their tags have them, each at least once."""
        self.records += records
        self.kept += records
        for agent, number in agents.items():
            self.agents[agent] += number
        for url, policy in policies:
            self._list(url, policy)

    def drop(self, cause: str, records: int = 1) -> None:
        """Count records that do not come out."""
        self.records += records
        self.causes[cause] += records

    def merge(self, other: RecordCounts) -> None:
        for name in ("records", "kept", "unreadable"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("causes", "rules", "agents"):
            getattr(self, name).update(getattr(other, name))
        for host, uses in other.hosts.items():
            tallies = self.hosts.setdefault(host, {})
            for use, tally in uses.items():
                tallies.setdefault(use, Tally()).add(tally)
        for url, copies in other.policies.items():
            for policy in copies.values():
                self._list(url, policy)
        self.has_more_policies |= other.has_more_policies

    def as_json(self) -> dict[str, Any]:
        """Plain data, in a stable order."""
        hosts = {host: {use: asdict(tally) for use, tally in sorted(uses.items())} for host, uses in sorted(self.hosts.items())}
        counters = {"whys": self.causes, "rules": self.rules, "agents": self.agents}
        policies = {url: list(copies.values()) for url, copies in sorted(self.policies.items())}
        numbers = {name: getattr(self, name) for name in ("records", "kept", "unreadable")}
        most_common = {name: dict(counter.most_common()) for name, counter in counters.items()}
        return numbers | most_common | {"hosts": hosts, "policies": policies, "has_more_policies": self.has_more_policies}

    def _list(self, url: str, policy: dict[str, Any]) -> None:
        """List a copy of a policy file, each once, as it was had last."""
        copy = policy["sha256"] or str(policy["status"])
        copies = self.policies.get(url)
        if copies is None or copy not in copies:
            if self._copy_count == MAX_POLICIES:
                self.has_more_policies = True
                return
            self._copy_count += 1
            self.policies.setdefault(url, {})[copy] = policy
        elif (copies[copy]["fetched_at"] or "") < (policy["fetched_at"] or ""):
            copies[copy] = policy


def copies_of(policy: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the copies of a file by which a tag was made, the latest first."""
    if "earlier" not in policy:
        yield policy
        return
    yield {name: value for name, value in policy.items() if name != "earlier"}
    yield from policy["earlier"]


def _host(record: Record) -> str:
    """The host of what answered, with its port; "" where nobody knows."""
    url = record.get("final_url") or record.get("url")
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower() if isinstance(url, str) else ""
    except ValueError:
        return ""
