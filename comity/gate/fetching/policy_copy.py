"""One policy file from one fetch to the next: how long it counts, and when it is fetched again.

Moments are seconds since the epoch, unless they are datetimes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from comity.gate.fetching.freshness import DAY, lifetime, refresh_headers, retry_after
from comity.gate.fetching.reach import Reach
from comity.policies.answers.fetched import Fetched, stands_in_until

FIRST_BACK_OFF = 5.0  # seconds after the first failure; doubled with each further failure


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """The last answer that counted, and the failures since then.

    Attributes:
        due: The moment when the file is to be fetched again.
        copy: The last answer of the server, which may be that there is no file; None if it never
            answered.
        failure: The reason why the file cannot be fetched now; None if it can.
        failing_since: The moment of the first failure since the last answer; None if none failed.
        failures: The number of failures in a row.
        reach: The reach of the server that sent the copy. It limits the addresses that the copy may
            lead to (SEC-2).
    """

    due: float
    copy: Fetched | None = None
    failure: Fetched | None = None
    failing_since: datetime | None = None
    failures: int = 0
    reach: Reach = Reach.PUBLIC

    def is_due(self, now: float) -> bool:
        """Return True if the file is to be fetched again.

        It also is if `due` is more than a DAY ahead: then the clock was set back since.
        """
        return not now < self.due <= now + DAY

    def due_if_before(self, moment: float) -> PolicyFile:
        """Return the file, due at once if it was last confirmed before the moment.

        0: no change. If the server fails, the wait that it asked for still applies.
        """
        confirmed = self.copy.fetched_at if self.copy else None
        is_old = self.failure is None and (confirmed is None or confirmed.timestamp() < moment)
        return replace(self, due=0.0) if is_old and moment else self

    def current(self, now: float) -> Fetched:
        """Return the answer that counts now: the copy while it may be used, or the failure."""
        if self.failure is None:
            assert self.copy
            return self.copy
        return (
            replace(self.copy, unreachable_since=self.failing_since)
            if self.copy and now < stands_in_until(self.copy)
            else self.failure
        )

    def counts_until(self, now: float) -> float:
        """Return the moment until which `current` stays the same, unless the file is fetched."""
        until = stands_in_until(self.copy)
        return min(self.due, until) if self.failure and now < until else self.due

    def after_failure(
        self, failure: Fetched, now: float, at_least: float = 0.0, at_most: float = DAY
    ) -> PolicyFile:
        """Return the file after it could not be fetched.

        The wait until the next attempt is the one that the server asks for, or twice the last one.

        `at_least`: the shortest wait in seconds. `at_most`: the longest wait in seconds, unless the
        server asks for a longer one.
        """
        wait = retry_after(failure.headers, now) or min(
            FIRST_BACK_OFF * 2 ** min(self.failures, 20), at_most
        )
        wait = max(wait, at_least)
        since = self.failing_since or datetime.fromtimestamp(now, UTC)
        return replace(
            self, due=now + wait, failure=failure, failing_since=since, failures=self.failures + 1
        )

    def after_confirmation(
        self, headers: tuple[tuple[bytes, bytes], ...], at_most: float, now: float
    ) -> PolicyFile:
        """Return the file after a 304 with these headers.

        `at_most`: the seconds for which the redirects to the file may be used.
        """
        assert self.copy
        headers = refresh_headers(self.copy.headers, headers)
        copy = replace(self.copy, headers=headers, fetched_at=datetime.fromtimestamp(now, UTC))
        return PolicyFile(
            due=now + min(lifetime(headers, now), at_most), copy=copy, reach=self.reach
        )
