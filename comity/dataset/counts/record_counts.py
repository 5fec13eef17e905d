"""Counts of the records that a pass has kept or dropped, for the manifest of its output.

Counts of parts can be merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from comity.dataset.counts.distinct import DistinctCount, hashed

MAX_POLICIES = 20_000  # the maximum number of listed copies of policy files; all are counted
NO_COPY = "0"  # the status of a policy file without a copy


class RecordCounts:
    """Counts of kept and dropped records, and the policies of the kept ones. It can be pickled."""

    def __init__(self) -> None:
        self.records = 0  # kept and dropped
        self.kept = 0
        self.unreadable = 0  # the caller that reads files counts these
        # TermsApplied.cause or Expired.cause -> dropped records.
        self.causes: Counter[str] = Counter()
        self.agents: Counter[str] = Counter()  # token -> kept records
        # URL -> SHA-256 -> the copy as in the tags of kept records.
        self.policies: dict[str, dict[str, dict[str, Any]]] = {}
        self.copies = DistinctCount()  # all copies of policy files, listed or not
        # Policy files without a copy: they were not captured, or could not be fetched.
        self.missing_copies = DistinctCount()
        self._copy_count = 0

    def keep(self, tag: Mapping[str, Any]) -> None:
        """Count a record that is kept. `tag`: its valid tag."""
        self.keep_several(
            1,
            {tag["agent"]: 1},
            ((url, copy) for url, policy in tag["policies"].items() for copy in copies_of(policy)),
        )

    def keep_several(
        self,
        records: int,
        agents: Mapping[str, int],
        policies: Iterable[tuple[str, dict[str, Any]]],
    ) -> None:
        """Count records that are kept.

        `records`: the number of records. `agents`: product token of an agent -> the number of these
        records with its tags. `policies`: the URL and the copy of each policy file in the tags of
        these records, at least once."""
        self.records += records
        self.kept += records
        for agent, number in agents.items():
            self.agents[agent] += number
        for url, policy in policies:
            name = _name_of(policy)
            if self._list(url, name, policy):
                copy = hashed(f"{url} {name}")
                self.copies.add_hash(copy)
                if name == NO_COPY:
                    self.missing_copies.add_hash(copy)

    def drop(self, cause: str, records: int = 1) -> None:
        """Count records that are dropped."""
        self.records += records
        self.causes[cause] += records

    def merge(self, other: RecordCounts) -> None:
        for name in ("records", "kept", "unreadable"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("causes", "agents"):
            getattr(self, name).update(getattr(other, name))
        # The merged counts have all copies of `other`, so its copies are only listed below.
        self.copies.merge(other.copies)
        self.missing_copies.merge(other.missing_copies)
        is_full = self._copy_count >= MAX_POLICIES
        for url in other.policies.keys() & self.policies.keys() if is_full else other.policies:
            for name, policy in other.policies[url].items():
                self._list(url, name, policy)

    @property
    def listed_copies(self) -> int:
        """The number of copies in `policies`."""
        return self._copy_count

    def _list(self, url: str, name: str, policy: dict[str, Any]) -> bool:
        """List a copy of a policy file with its latest time. Return True if it was not listed.

        `name`: the result of `_name_of`."""
        copies = self.policies.get(url)
        if copies is None or name not in copies:
            if self._copy_count < MAX_POLICIES:
                self._copy_count += 1
                self.policies.setdefault(url, {})[name] = policy
            return True
        if (copies[name]["fetched_at"] or "") < (policy["fetched_at"] or ""):
            copies[name] = policy
        return False


def _name_of(policy: dict[str, Any]) -> str:
    """Return a text that differs between the copies of a policy file."""
    return policy["sha256"] or str(policy["status"])


def copies_of(policy: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the copies of a policy file in a tag, the latest first."""
    if "earlier" not in policy:
        yield policy
        return
    yield {name: value for name, value in policy.items() if name != "earlier"}
    yield from policy["earlier"]
