"""One policy file from one fetch to the next: how long it counts, and when it is asked for again.

Times are seconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from comity.gate.fetching.freshness import DAY, lifetime, refreshed, retry_after
from comity.gate.fetching.reach import Reach
from comity.policies.answers.fetched import Fetched, stands_in_until

FIRST_BACK_OFF = 5.0  # seconds after the first failure; doubled with each one that follows


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """The last answer that counted, and what went wrong since."""

    due: float  # when it is to be asked for again
    copy: Fetched | None = (
        None  # what the server said last, that there is no file included; None: it never said anything
    )
    failure: Fetched | None = None  # why it cannot be had now; None: it can
    failing_since: datetime | None = None
    failures: int = 0  # in a row
    reach: Reach = Reach.PUBLIC  # of the server that gave the copy, for what the copy names (SEC-2)

    def is_due(self, now: float) -> bool:
        """A time that lies further ahead than any that is ever set was written before the clock was put back."""
        return not now < self.due <= now + DAY

    def due_if_before(self, moment: float) -> PolicyFile:
        """Due at once, if it was last confirmed before. A server that fails is asked when it wants to be."""
        confirmed = self.copy.fetched_at if self.copy else None
        is_old = self.failure is None and (confirmed is None or confirmed.timestamp() < moment)
        return replace(self, due=0.0) if is_old and moment else self

    def current(self, now: float) -> Fetched:
        """The answer that counts at this time."""
        if self.failure is None:
            assert self.copy
            return self.copy
        return (
            replace(self.copy, unreachable_since=self.failing_since)
            if self.copy and now < stands_in_until(self.copy)
            else self.failure
        )

    def counts_until(self, now: float) -> float:
        """The moment until which `current` stays the same, if nobody asks the server."""
        until = stands_in_until(self.copy)
        return min(self.due, until) if self.failure and now < until else self.due

    def failed(
        self, failure: Fetched, now: float, at_least: float = 0.0, at_most: float = DAY
    ) -> PolicyFile:
        """Return the file after it could not be fetched.

        The wait until the next attempt is the one that the server asks for, or twice the last one. `at_least`: seconds of that
        wait. `at_most`: seconds of a wait that the server does not ask for."""
        wait = retry_after(failure.headers, now) or min(
            FIRST_BACK_OFF * 2 ** min(self.failures, 20), at_most
        )
        wait = max(wait, at_least)
        since = self.failing_since or datetime.fromtimestamp(now, UTC)
        return replace(
            self, due=now + wait, failure=failure, failing_since=since, failures=self.failures + 1
        )

    def confirmed(
        self, headers: tuple[tuple[bytes, bytes], ...], at_most: float, now: float
    ) -> PolicyFile:
        """After a 304 with these headers. `at_most`: seconds for which the redirects that led there count."""
        assert self.copy
        headers = refreshed(self.copy.headers, headers)
        copy = replace(self.copy, headers=headers, fetched_at=datetime.fromtimestamp(now, UTC))
        return PolicyFile(
            due=now + min(lifetime(headers, now), at_most), copy=copy, reach=self.reach
        )
