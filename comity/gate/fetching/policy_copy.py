"""The state of a policy file between two fetches: the answer that counts, and the next fetch.

Moments are seconds since the epoch, unless they are datetimes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from comity.gate.fetching.freshness import DAY, lifetime, refresh_headers, retry_after
from comity.gate.fetching.reach import Reach
from comity.policies.answers.fetched import Fetched, stands_in_until

T = TypeVar("T")
Headers = tuple[tuple[bytes, bytes], ...]

# Octets of the longest body, and of the longest header section, that origins share.
MAX_SHARED_BODY = 4096
MAX_SHARED_HEADERS = 512
FIRST_BACK_OFF = 5.0  # seconds after the first failure; doubled with each further failure


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """The last answer that counted, and the failures since then.

    Attributes:
        due: The moment when the file is to be fetched again.
        copy: The last answer of the server. A 404 is an answer, too. None means that the server has
            never answered.
        failure: The outcome of the last attempt, if it failed. None means that it succeeded.
        failing_since: The moment of the first failure since the last answer. None means that no
            attempt has failed since.
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

        A file that is due in more than a DAY is due now: the clock must have been set back since
        the fetch.
        """
        return not now < self.due <= now + DAY

    def due_if_before(self, moment: float) -> PolicyFile:
        """Return the file. If its copy was last confirmed before the moment, it is due at once.

        `moment`: 0 means that nothing changes. A file that failed does not change either, so that
        the wait after the failure still applies.
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
        """Return the moment until which `current` returns an equal answer without a fetch."""
        until = stands_in_until(self.copy)
        return min(self.due, until) if self.failure and now < until else self.due

    def after_failure(
        self, failure: Fetched, now: float, at_least: float = 0.0, at_most: float = DAY
    ) -> PolicyFile:
        """Return the file after it could not be fetched.

        The wait until the next attempt is the time that the server asks for (Retry-After). If the
        server asks for none, it is FIRST_BACK_OFF after the first failure, and doubles with each
        further failure.

        `at_least`: the minimum wait in seconds. `at_most`: the maximum wait in seconds; a wait that
        the server asks for may be longer.
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


def shared_body(body: bytes) -> bytes:
    """Return an equal body that another origin has, so that memory has it once.

    Most policy files of small sites are copies of a few hundred texts."""
    return _shared_body(body) if len(body) <= MAX_SHARED_BODY else body


def shared_headers(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the header fields. Fields that other responses have too are in memory once."""
    headers = tuple(fields)
    if sum(len(name) + len(value) for name, value in headers) > MAX_SHARED_HEADERS:
        return headers
    shared: Headers = _shared_fields(tuple(map(_shared_fields, headers)))
    return shared


@lru_cache(maxsize=1024)
def _shared_body(body: bytes) -> bytes:
    return body


@lru_cache(maxsize=4096)
def _shared_fields(fields: T) -> T:
    return fields
