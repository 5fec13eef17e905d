"""The pace file: processes that crawl the same host share its limits.

Before a request goes out, `acquire` checks all its limits in one transaction. Either the request
starts now, or the answer is the moment to ask again. No start is booked for the future. So a killed
process leaves nothing in the file except its starts so far."""

from __future__ import annotations

import logging
import random
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isnan
from pathlib import Path
from time import monotonic, time
from typing import NamedTuple, Protocol, TypeVar

from comity.database import PATIENCE, DatabaseKind, is_busy, open_database, transaction
from comity.policies.answers.rates import MAX_SECONDS
from comity.policies.syntax.windows import DAY, MAX_STAMPS, Window, earliest

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x636F6D70  # "comp", in the header of the file
BUSY = 5  # milliseconds that a call waits for another process that writes
ASK_AGAIN = (0.005, 0.020)  # seconds until the next try if the other process still writes
ASK_THROUGH = 0.05  # seconds between two checks if a request of another process has ended
FAILING = 1.0  # seconds until the next try if the file cannot be written
# The maximum seconds that a moment in the file may be ahead of the clock. If it is further ahead,
# the clock was set back after it was written.
SLACK = 1.0
REMEDY = (
    "Free space on its disk, or set COMITY_STORE to a path on another disk,"
    " and start the crawl again"
)
PENALTY = 60.0  # seconds of the first penalty if the host does not say how long
SWEPT = 1000  # the maximum number of starts that are checked for removal at each sign of life

T = TypeVar("T")

# The errors of SQLite calls, and of work on values of a damaged file, which may have any type.
_FAILURES = (sqlite3.Error, TypeError, ValueError, OverflowError)

# `host`: the name of the limit. A grant, `turn`, has a row for each of its limits.
# `at`: the moment when the start was settled; NULL while it is in flight.
# `keep`: the seconds that the start counts after `at`. `beat`: the last sign of life.
# `step`: the seconds of the last penalty without a length stated by the host.
SCHEMA = """
CREATE TABLE start (
    host TEXT NOT NULL, owner INTEGER NOT NULL, turn INTEGER NOT NULL, at REAL, keep REAL NOT NULL,
    PRIMARY KEY (host, owner, turn)
) WITHOUT ROWID;
CREATE TABLE owner (owner INTEGER PRIMARY KEY, beat REAL NOT NULL);
CREATE TABLE penalty (
    host TEXT PRIMARY KEY, began REAL NOT NULL, until REAL NOT NULL, step REAL NOT NULL
) WITHOUT ROWID;
"""
# The starts of a host, and a row without an owner if the host has a penalty.
STARTS = """
SELECT owner, turn, at, keep FROM start WHERE host = ?1
UNION ALL SELECT NULL, NULL, NULL, NULL FROM penalty WHERE host = ?1
"""
KIND = DatabaseKind(
    subject="pace file",
    name="pace file",
    remedy="move the file away, or set COMITY_STORE to a path in a folder that can be written",
    application_id=APPLICATION_ID,
    schema=SCHEMA,
    synchronous="OFF",  # a killed process loses nothing
)


@dataclass(frozen=True, slots=True)
class PaceLimit:
    """The windows that starts under one name have to keep.

    Attributes:
        name: The name of a host or scope. All processes use equal names.
        windows: The numbers of requests in periods that the limit permits.
        through: True if a start counts until the body of the answer has arrived, and no longer.
        key: The name, in characters that SQLite accepts.
        keep: The seconds for which a settled start counts.
    """

    name: str
    windows: tuple[Window, ...]
    through: bool = False
    key: str = field(init=False)
    keep: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _key(self.name))
        object.__setattr__(
            self, "keep", max((window.part().seconds for window in self.windows), default=0.0)
        )


class Grant(NamedTuple):
    """The answer to a request for a start.

    Attributes:
        number: The number of the start, for `settle` and `end`; None if it may not start now.
        due: The moment to ask again, in seconds since the epoch.
        limit: The limit with the longest wait; None if that is unknown.
    """

    number: int | None
    due: float
    limit: PaceLimit | None = None


class Ledger(Protocol):
    """The starts of requests of all processes that share it, and the penalties of hosts.

    No method waits or raises. If the ledger fails, there is no grant. Moments are seconds since the
    epoch.

    A remote ledger does not answer at once. Its `acquire` returns a grant without a number, with
    `due` = `inf`. When the answer is there, the ledger calls `on_answer`: then call `acquire`
    again.

    Attributes:
        on_answer: Called with the limits for which `acquire` is to be called again.
        rests: Called when a host told another process to wait, with the host and the moment before
            which no process may ask it.
        is_remote: True if the ledger does not answer at once, and calls `on_answer` and `rests`.
        ttl: Seconds without a sign of life after which a process counts as dead.
    """

    on_answer: Callable[[Sequence[PaceLimit]], object]
    rests: Callable[[str, float], object]
    is_remote: bool
    ttl: float

    @property
    def is_used(self) -> bool:
        """True if this process has requests in flight in the ledger, and so has to call `beat`."""

    def acquire(self, limits: Sequence[PaceLimit], now: float) -> Grant:
        """Return a Grant: the request starts now under all the limits, or asks again at `due`.

        The limits have different names. At `due`, the request may have to wait again.
        """

    def settle(self, grant: int, moment: float) -> None:
        """Count the start from this moment, when the headers arrived or the request failed."""

    def end(self, grant: int) -> None:
        """Forget the unsettled start of a request that has ended, or that never went out."""

    def back_off(self, host: str, retry_after: float | None, now: float) -> float:
        """Note that the host asks for a pause, and return the moment when the pause ends.

        `retry_after`: the seconds that the host asked for (429 and 503). If it is None, the pause
        is a minute, and each further pause is twice as long, up to a day. A pause is a minute again
        if no pause was needed for as long as the last one.

        A call during a pause never shortens the pause, and does not count as a further pause.
        """

    def penalty(self, host: str, now: float) -> float:
        """Return the moment before which the host may not be asked; 0.0 if none is known."""

    def beat(self, now: float) -> None:
        """Give a sign of life, so that other processes still count this process's requests.

        Call this method at least twice in `ttl` seconds. It also drops starts that no longer count.
        """

    def close(self) -> object:
        """Close the ledger. Starts that are still in flight count as settled now."""


class RateLedger:
    """A Ledger in an SQLite file.

    No call waits longer than BUSY for another process. If the file cannot be written, there is no
    grant, and the next call makes up for the missing writes.
    """

    is_remote = False

    def __init__(self, path: Path, *, owner_ttl: float = 10.0) -> None:
        """Open the file, or create it.

        `owner_ttl`: seconds without a sign of life after which a process counts as dead.
        PolicyError: the file cannot be used; the message says what to do.
        """
        self.path = path
        # A local ledger answers at once, so it calls neither `on_answer` nor `rests`.
        self.on_answer: Callable[[Sequence[PaceLimit]], object] = lambda limits: None
        self.rests: Callable[[str, float], object] = lambda host, until: None
        # Called with the reason if the file fails for PATIENCE seconds.
        self.gives_up: Callable[[str], object] = lambda why: None
        self.ttl = owner_ttl
        self._db = open_database(path, KIND)
        self._db.execute(f"PRAGMA busy_timeout = {BUSY}")
        self._owner = secrets.randbits(62)
        self._beaten = float("-inf")
        self._grants = 0
        # The number of each grant -> the limits under which its start is not settled.
        self._flights: dict[int, Sequence[PaceLimit]] = {}
        self._late: list[Callable[[], object]] = []  # writes that failed, to be done again
        self._swept = ""  # the host up to which old starts were dropped
        self._warned = False
        self._failing_since: float | None = None  # monotonic; None after a write that succeeded

    @property
    def is_used(self) -> bool:
        return bool(self._flights)

    def acquire(self, limits: Sequence[PaceLimit], now: float) -> Grant:
        grant = self._grants = self._grants + 1
        try:
            due, latest = self._in_transaction(partial(self._start_if_due, grant, limits, now))
        except _FAILURES as error:
            return Grant(None, now + self._note_failure(error))
        if latest is not None:
            return Grant(None, due, latest)
        self._flights[grant] = limits
        return Grant(grant, now)

    def settle(self, grant: int, moment: float) -> None:
        limits = self._flights.pop(grant, ())
        if through := [limit for limit in limits if limit.through]:
            self._flights[grant] = through
        if settled := [limit for limit in limits if not limit.through]:
            self._write(partial(self._insert, grant, settled, moment))

    def end(self, grant: int) -> None:
        if limits := self._flights.pop(grant, None):
            rows = [(limit.key, self._owner, grant) for limit in limits]
            self._write(
                partial(
                    self._db.executemany,
                    "DELETE FROM start WHERE host = ? AND owner = ? AND turn = ?",
                    rows,
                )
            )

    def back_off(self, host: str, retry_after: float | None, now: float) -> float:
        wait = (
            None
            if retry_after is None or isnan(retry_after)
            else min(max(retry_after, 0.0), float(MAX_SECONDS))
        )
        back_off = partial(self._write_penalty, _key(host), wait, now)
        try:
            until = self._in_transaction(back_off)
        except _FAILURES as error:
            self._note_failure(error)
            self._late.append(back_off)
            return now + (PENALTY if wait is None else wait)
        return until

    def penalty(self, host: str, now: float) -> float:
        try:
            until = self._penalty(_key(host), now)[1]
        except _FAILURES as error:
            return now + self._note_failure(error)
        return until if until > now else 0.0

    def beat(self, now: float) -> None:
        try:
            self._in_transaction(partial(self._write_beat_and_sweep, now))
        except _FAILURES as error:
            self._note_failure(error)

    def close(self, now: float | None = None) -> None:
        """Close the file. Starts that are still in flight count as settled now."""
        for grant in list(self._flights):
            self.settle(grant, time() if now is None else now)
            self.end(grant)
        self._write(partial(self._db.execute, "DELETE FROM owner WHERE owner = ?", (self._owner,)))
        self._db.close()
        self._warned = True

    # Transactions

    def _in_transaction(self, work: Callable[[], T]) -> T:
        """Do the writes that failed before, and then the work, in one transaction.

        Return the result of the work."""
        with transaction(self._db):
            for write in self._late:
                write()
            result = work()
        self._failing_since = None
        if self._late:
            self._late = []
        return result

    def _write(self, write: Callable[[], object]) -> None:
        try:
            if self._late:
                self._in_transaction(write)
            else:
                write()
        except _FAILURES as error:
            self._note_failure(error)
            self._late.append(write)

    def _note_failure(self, error: Exception) -> float:
        """Note that a call failed, and return the seconds after which to try again."""
        self._beaten = float("-inf")
        if is_busy(error):
            # At random, so that two processes do not meet again and again.
            return random.uniform(*ASK_AGAIN)  # noqa: S311
        if not self._warned:
            self._warned = True
            logger.error(
                "pace file `%s` fails (%s): hosts that have a rate wait until it can be written",
                self.path,
                error,
            )
        now = monotonic()
        if self._failing_since is None:
            self._failing_since = now
        elif now >= self._failing_since + PATIENCE:
            self.gives_up(f"the pace file `{self.path}` cannot be written ({error}). {REMEDY}")
        return FAILING

    # Rows

    def _start_if_due(
        self, grant: int, limits: Sequence[PaceLimit], now: float
    ) -> tuple[float, PaceLimit | None]:
        """Write the start of a grant if all limits permit it.

        Otherwise return the moment to ask again, and the limit with the longest wait."""
        if not self._beaten <= now < self._beaten + self.ttl / 4:
            self._write_beat(now)
        due, latest = now, None
        for limit in limits:
            if (free := self._due(limit, now)) > due:
                due, latest = free, limit
        if latest is None:
            self._insert(grant, limits, None)
        return due, latest

    def _insert(self, grant: int, limits: Iterable[PaceLimit], settled: float | None) -> None:
        rows = [(limit.key, self._owner, grant, settled, limit.keep) for limit in limits]
        self._db.executemany("INSERT OR REPLACE INTO start VALUES (?, ?, ?, ?, ?)", rows)

    def _due(self, limit: PaceLimit, now: float) -> float:
        """Return the moment when one more request may start; `now` or earlier means at once."""
        host, windows, keep = limit.key, limit.windows, limit.keep
        stamps = []
        in_flight, old, has_penalty = 0, False, False
        for owner, grant, settled, counts_for in self._db.execute(STARTS, (host,)).fetchall():
            if owner is None:
                has_penalty = True
                continue
            stamp = (
                self._counts_from(owner, grant, now)
                if settled is None
                else now
                if settled > now + SLACK
                else settled
            )
            if stamp is None:
                in_flight += 1
                continue
            if stamp != settled:
                row = (stamp, host, owner, grant)
                self._db.execute(
                    "UPDATE start SET at = ? WHERE host = ? AND owner = ? AND turn = ?", row
                )
            stamps.append(stamp)
            old = old or stamp + max(counts_for, keep) <= now
        stamps.sort()
        if old or len(stamps) > MAX_STAMPS:
            needed = stamps[-MAX_STAMPS:][0]
            self._db.execute(
                "DELETE FROM start WHERE host = ? AND (at + max(keep, ?) <= ? OR at < ?)",
                (host, keep, now, needed),
            )
        due = earliest(windows, stamps, in_flight, now)
        if due is None:
            # The earliest moment, if all requests in flight were settled now.
            due = earliest(windows, [*stamps, *[now] * in_flight], 0, now)
            assert due is not None
            soon = ASK_THROUGH if limit.through else ASK_AGAIN[0]
            # Ask again within `ttl`: requests in flight may be cancelled, or their process dead.
            due = min(max(due, now + soon), now + self.ttl)
        return max(due, self._penalty(host, now)[1]) if has_penalty else due

    def _counts_from(self, owner: int, grant: int, now: float) -> float | None:
        """Return the moment from which an unsettled start counts, if its request has ended.

        None: the request is still in flight.
        """
        if owner == self._owner:
            return None if grant in self._flights else now
        (beat,) = self._db.execute(
            "SELECT max(beat) FROM owner WHERE owner = ?", (owner,)
        ).fetchone()
        if beat is None:
            return now
        if beat > now + SLACK:
            self._db.execute("UPDATE owner SET beat = ? WHERE owner = ?", (now, owner))
            return None
        # The request may have gone out after the last sign of life of its process.
        died = float(beat) + self.ttl
        return died if died <= now else None

    def _write_beat_and_sweep(self, now: float) -> None:
        self._write_beat(now)
        self._sweep(now)

    def _write_beat(self, now: float) -> None:
        # Other processes may have taken this one for dead, and its starts in flight for settled.
        if now >= self._beaten + self.ttl / 2:
            for grant, limits in self._flights.items():
                self._insert(grant, limits, None)
        self._db.execute("INSERT OR REPLACE INTO owner VALUES (?, ?)", (self._owner, now))
        self._beaten = now

    def _sweep(self, now: float) -> None:
        """Drop old starts of a few hosts at a time, so that no other process waits for this."""
        end = self._db.execute(
            "SELECT host FROM start WHERE host > ? LIMIT 1 OFFSET ?", (self._swept, SWEPT)
        ).fetchone()
        row = (self._swept, end[0] if end else None, now)
        self._db.execute(
            "DELETE FROM start WHERE host > ?1 AND (host <= ?2 OR ?2 IS NULL) AND at + keep <= ?3",
            row,
        )
        self._swept = end[0] if end else ""
        if not end:
            self._db.execute(
                "DELETE FROM penalty WHERE until + max(until - began, ?) <= ?", (PENALTY, now)
            )

    def _penalty(self, host: str, now: float) -> tuple[float, float, float]:
        """Return the beginning and the end of the host's penalty, and its last step."""
        row = self._db.execute(
            "SELECT began, until, step FROM penalty WHERE host = ?", (host,)
        ).fetchone()
        if row is None:
            return 0.0, 0.0, 0.0
        began, until, step = row
        if began > now + SLACK:
            began, until = now, now + until - began
            self._db.execute(
                "UPDATE penalty SET began = ?, until = ? WHERE host = ?", (began, until, host)
            )
        return began, until, step

    def _write_penalty(self, host: str, wait: float | None, now: float) -> float:
        began, until, step = self._penalty(host, now)
        if until > now:
            until = max(until, now + (wait or 0.0))
        else:
            if now >= until + max(until - began, PENALTY):
                step = 0.0
            if wait is None:
                wait = step = min(2 * step, DAY) or PENALTY
            began, until = now, now + wait
        self._db.execute(
            "INSERT OR REPLACE INTO penalty VALUES (?, ?, ?, ?)", (host, began, until, step)
        )
        return until


def _key(host: str) -> str:
    """Return the name with lone surrogates escaped, because SQLite does not accept them."""
    return host if host.isascii() else host.encode("utf-8", "backslashreplace").decode()
