"""The statements behind a tag, as rows of the evidence. This module needs no pyarrow.

decisions(tag, uses)    the statement that decides each use
copies(tag)             the copies of policy files that the tag names
Found()                 the evidence about some records"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from comity.dataset.permissions.terms import TermsApplied
from comity.dataset.records import moment_of


class Copy(NamedTuple):
    """A copy of a policy file."""

    url: str
    status: int
    sha256: str | None
    fetched_at: datetime | None


class Decision(NamedTuple):
    """The verdict on a use, and the statement that decides."""

    use: str
    """The use. "" if the record is dropped for another cause than a use."""
    verdict: str
    """allow or deny."""
    rule: str
    """The rule of the statement, or the other cause."""
    agent: str = ""
    """The product token for which the statement decides: ours, or that of another crawler."""
    line: str = ""
    """The place of the statement and its text."""
    policy_url: str = ""
    """The URL of the statement."""
    policy_sha256: str | None = None
    """The SHA-256 of the copy with the statement."""
    policy_fetched_at: datetime | None = None
    """The fetch time of the copy with the statement."""
    policy_status: int | None = None
    """The status of the copy with the statement. None: the tag names no copy for the URL."""

    @property
    def copy(self) -> Copy | None:
        """The copy with the statement."""
        if self.policy_status is None:
            return None
        return Copy(self.policy_url, self.policy_status, self.policy_sha256, self.policy_fetched_at)


def decisions(tag: Mapping[str, Any], uses: Iterable[str]) -> list[Decision]:
    """Return the decision about each of the uses that the tag has."""
    found = []
    for use in uses:
        if (decided := tag["uses"].get(use)) is not None:
            reason = tag["reasons"][decided["because"][0]]
            found.append(by_reason(tag, use, decided["verdict"], reason["rule"], reason))
    return found


def refusals(answer: TermsApplied, uses: Sequence[str]) -> list[Decision]:
    """Return the decisions that refuse a record for these uses. `answer`: see apply_terms."""
    if answer.read is None:
        return [Decision("", "deny", answer.cause)]
    tag = answer.read.raw
    found = [decision for decision in decisions(tag, uses) if decision.verdict == "deny"]
    kind, _, use = answer.cause.partition(":")
    if kind == "deny":
        return found
    use, rule = (use, kind) if use in uses else ("", answer.cause)
    if not answer.reasons:
        return [*found, Decision(use, "deny", rule)]
    return [*found, by_reason(tag, use, "deny", rule, answer.reasons[0])]


def by_reason(
    tag: Mapping[str, Any], use: str, verdict: str, rule: str, reason: Mapping[str, Any]
) -> Decision:
    """Return a decision that a reason of the tag explains. `rule`: the rule or cause to name."""
    url = reason["url"]
    agent = reason.get("agent") or tag["agent"]
    decision = Decision(use, verdict, rule, agent, line_of(reason), url)
    policy = tag["policies"].get(url)
    if policy is None:
        return decision
    if "fetched_at" in reason:  # the tag has several copies of the file
        several = (
            copy for copy in _copies_of(policy) if copy["fetched_at"] == reason["fetched_at"]
        )
        policy = next(several, policy)
    return decision._replace(
        policy_sha256=policy["sha256"],
        policy_fetched_at=moment_of(policy["fetched_at"]),
        policy_status=policy["status"],
    )


def line_of(reason: Mapping[str, Any]) -> str:
    """Return the place of a statement and its text: "line 4: Disallow: /private"."""
    line = f"line {reason['line']}" if reason["line"] else ""
    place = ", ".join(filter(None, (reason.get("part", ""), line)))
    return ": ".join(filter(None, (place, reason["text"])))


def copies(policies: Mapping[str, Any]) -> Iterator[Copy]:
    """Yield the copies in the member `policies` of a tag."""
    for url, policy in policies.items():
        for copy in _copies_of(policy):
            yield Copy(url, copy["status"], copy["sha256"], moment_of(copy["fetched_at"]))


def _copies_of(policy: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield policy
    yield from policy.get("earlier", ())


class Place(NamedTuple):
    """A record of the input."""

    number: int
    """The number of the record among those that are judged together. It becomes that in the
    file."""
    url: str = ""
    """The URL of the page."""
    captured_at: datetime | None = None
    """The moment of the capture."""
    name: str = ""
    """The WARC-Record-ID. "" if the record is known by its number."""


class Found:
    """The evidence about some records."""

    def __init__(self, uses: Sequence[str]) -> None:
        """`uses`: the uses that were asked for."""
        self.refused: list[tuple[Place, Decision, bool]] = []
        self._uses = uses
        self._kept: Counter[int] = Counter()  # id of the policies of a tag -> records
        self._policies: dict[int, Mapping[str, Any]] = {}
        # A copy, a use and a verdict -> the records that stay, and the rows of `refused`.
        self._decided: dict[tuple[Copy, str, str], list[int]] = {}

    def keep(self, place: Place, tag: Mapping[str, Any]) -> None:
        """Note a record that is in the output with this tag."""
        policies = tag["policies"]
        key = id(policies)
        self._kept[key] += 1
        self._policies[key] = policies  # it stays alive, so that no other object has this id
        for decision in decisions(tag, self._uses):
            is_refused = decision.verdict == "deny"
            if is_refused:
                self.refused.append((place, decision, False))
            self._count(decision, 1, is_refused)

    def drop(self, place: Place, decisions: Iterable[Decision]) -> None:
        """Note a record that is not in the output, and each decision that refuses it."""
        for decision in decisions:
            self.refused.append((place, decision, True))
            self._count(decision, 0, 1)

    def _count(self, decision: Decision, records: int, refused: int) -> None:
        if (copy := decision.copy) is not None:
            counts = self._decided.setdefault((copy, decision.use, decision.verdict), [0, 0])
            counts[0] += records
            counts[1] += refused

    def counts(self) -> Iterator[tuple[Copy, str | None, str | None, int, int]]:
        """Yield a copy, a use, a verdict, and the numbers of records and of refused uses.

        Use and verdict are None for the number of all records whose tags name the copy."""
        named: Counter[Copy] = Counter()
        for key, records in self._kept.items():
            for copy in dict.fromkeys(copies(self._policies[key])):
                named[copy] += records
        for copy, records in named.items():
            yield copy, None, None, records, 0
        for (copy, use, verdict), (records, refused) in self._decided.items():
            yield copy, use, verdict, records, refused
