"""The pace file: processes that crawl the same host share what it allows.

Before a request goes out, it asks for a start here, in one transaction, under all limits that it has to keep: it may start now,
or it learns when to ask again. Nothing is booked for the future, so what a killed process leaves behind is no more than the
requests that it had in flight."""

from __future__ import annotations

import logging
import random
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import isnan
from pathlib import Path
from time import monotonic, time
from typing import NamedTuple, Protocol

from comity.database import PATIENCE, Kind, is_busy, open_database, transaction
from comity.policies.answers.rates import MAX_SECONDS
from comity.policies.syntax.windows import DAY, MAX_STAMPS, Window, earliest

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x636F6D70  # "comp", in the header of the file
BUSY = 5  # milliseconds that a call waits for another process that writes
ASK_AGAIN = (0.005, 0.020)  # seconds; when it still writes
ASK_THROUGH = 0.05  # seconds between two looks whether a request of another process is through
FAILING = 1.0  # seconds until the next try where the file cannot be written
SLACK = 1.0  # seconds; what lies further in the future was written before the clock was set back
REMEDY = "Free space on its disk, or set COMITY_STORE to a path on another disk, and start the crawl again"
PENALTY = 60.0  # seconds; the first one, where the host does not say how long
SWEPT = 1000  # starts that are looked through at each sign of life

# What calls of SQLite raise; and what is done with values of a damaged file, which may be of any type.
_FAILURES = (sqlite3.Error, TypeError, ValueError, OverflowError)

# `host`: the name of the limit. A grant, `turn`, has a row for each of its limits.
# `at`: when the start was settled; NULL while it is in flight. `keep`: seconds that it counts after that.
# `beat`: the last sign of life. `step`: seconds; the last penalty whose length the host did not say.
VERSIONS = (
    """
CREATE TABLE start (
    host TEXT NOT NULL, owner INTEGER NOT NULL, turn INTEGER NOT NULL, at REAL, keep REAL NOT NULL,
    PRIMARY KEY (host, owner, turn)
) WITHOUT ROWID;
CREATE TABLE owner (owner INTEGER PRIMARY KEY, beat REAL NOT NULL);
CREATE TABLE penalty (host TEXT PRIMARY KEY, began REAL NOT NULL, until REAL NOT NULL, step REAL NOT NULL) WITHOUT ROWID;
""",
)
KIND = Kind(
    subject="pace file",
    name="pace file",
    remedy="move the file away, or set COMITY_STORE to a path in a folder that can be written",
    application_id=APPLICATION_ID,
    versions=VERSIONS,
    synchronous="OFF",  # a killed process loses nothing
)


@dataclass(frozen=True, slots=True)
class Limit:
    """The windows that starts under one name have to keep."""

    name: str  # the same in every process: of a host, or of whatever else has limits of its own
    windows: tuple[Window, ...]
    through: bool = (
        False  # a start counts until the request is through, body and all, and no longer
    )
    key: str = field(init=False)  # the name as SQLite takes it
    keep: float = field(init=False)  # seconds that a settled start counts

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _key(self.name))
        object.__setattr__(
            self, "keep", max((window.part().seconds for window in self.windows), default=0.0)
        )


class Grant(NamedTuple):
    """The outcome of asking for a start."""

    number: int | None  # of the start, to be settled and ended; None: not now
    due: float  # when to ask again
    limit: Limit | None = None  # that lets it wait longest; None: nobody knows


class Ledger(Protocol):
    """The starts of requests, of all processes that share it, and the penalties of hosts. Nothing of it waits or raises: where it
    fails there is no grant. Times are seconds since the epoch.

    One that is elsewhere does not answer at once: then `acquire` returns a grant without number that is due never (`inf`), and
    `on_answer` is called, with the limits, when it is to be asked again."""

    on_answer: Callable[[Sequence[Limit]], object]
    rests: Callable[
        [str, float], object
    ]  # is called with a host that is not to be asked before a moment, as others were told
    is_remote: bool  # it does not answer at once, and knows of penalties that were not asked for
    ttl: float  # seconds without a sign of life after which a process is dead

    @property
    def is_used(self) -> bool:
        """True where there are grants that count as long as this process gives signs of life."""

    def acquire(self, limits: Sequence[Limit], now: float) -> Grant:
        """A grant to start a request now, under all the limits, each with a name of its own; or when to ask again, which may
        turn out to be too early."""

    def settle(self, grant: int, moment: float) -> None:
        """Count the start from this moment, as the headers came or the request failed."""

    def end(self, grant: int) -> None:
        """Forget what is not settled of a request that has left the downloader: it never went out, or it is through."""

    def back_off(self, host: str, retry_after: float | None, now: float) -> float:
        """The host is not asked before the moment that is returned: `retry_after` seconds from now, where it said so (429 and
        503). Else a minute, and each time double that, up to a day; a minute again after it was quiet for as long as the last
        penalty lasted. What is reported while a penalty runs makes it no shorter, and counts as one with it."""

    def penalty(self, host: str, now: float) -> float:
        """The moment before which the host is not asked; 0.0 where there is none that is known."""

    def beat(self, now: float) -> None:
        """Give a sign of life, so that the grants of this process count on. Twice in `owner_ttl` at least; also drops starts that
        count no more."""

    def close(self) -> object:
        """Let go of everything. What is still in flight counts as settled now."""


class RateLedger:
    """A Ledger in an SQLite file. Times are seconds since the epoch.

    No call waits longer than BUSY for another process. Where the file cannot be written there is no grant, and what has to be
    written is, with the next call."""

    is_remote = False

    def __init__(self, path: Path, *, owner_ttl: float = 10.0) -> None:
        """PolicyError, with what to do about it, where the file cannot be used. `owner_ttl`: seconds without a sign of life
        after which a process is dead."""
        self.path = path
        self.on_answer: Callable[[Sequence[Limit]], object] = lambda limits: None  # is never called
        self.rests: Callable[[str, float], object] = lambda host, until: None  # neither
        self.gives_up: Callable[[str], object] = lambda why: (
            None
        )  # is called if the file fails for PATIENCE seconds
        self.ttl = owner_ttl
        self._db = open_database(path, KIND)
        self._db.execute(f"PRAGMA busy_timeout = {BUSY}")
        self._owner = secrets.randbits(62)
        self._beaten = float("-inf")
        self._grants = 0
        self._flights: dict[
            int, Sequence[Limit]
        ] = {}  # grant -> those under which its start is not settled
        self._late: list[Callable[[], object]] = []  # writes that could not be done
        self._swept = ""  # the host up to which old starts were dropped
        self._warned = False
        self._failing_since: float | None = None  # monotonic; None: the last write succeeded

    @property
    def is_used(self) -> bool:
        return bool(self._flights)

    def acquire(self, limits: Sequence[Limit], now: float) -> Grant:
        grant = self._grants = self._grants + 1
        due, latest = now, None
        try:
            with self._transaction():
                if not self._beaten <= now < self._beaten + self.ttl / 4:
                    self._write_beat(now)
                for limit in limits:
                    if (free := self._due(limit, now)) > due:
                        due, latest = free, limit
                if latest is None:
                    self._insert(grant, limits, None)
        except _FAILURES as error:
            return Grant(None, now + self._failed(error))
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
            with self._transaction():
                until = back_off()
        except _FAILURES as error:
            self._failed(error)
            self._late.append(back_off)
            return now + (PENALTY if wait is None else wait)
        return until

    def penalty(self, host: str, now: float) -> float:
        try:
            until = self._penalty(_key(host), now)[1]
        except _FAILURES as error:
            return now + self._failed(error)
        return until if until > now else 0.0

    def beat(self, now: float) -> None:
        try:
            with self._transaction():
                self._write_beat(now)
                self._sweep(now)
        except _FAILURES as error:
            self._failed(error)

    def close(self, now: float | None = None) -> None:
        """Close the file. What is still in flight counts as settled now."""
        for grant in list(self._flights):
            self.settle(grant, time() if now is None else now)
            self.end(grant)
        self._write(partial(self._db.execute, "DELETE FROM owner WHERE owner = ?", (self._owner,)))
        self._db.close()
        self._warned = True

    # Transactions

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction that begins with the writes that could not be done."""
        with transaction(self._db):
            for write in self._late:
                write()
            yield
        self._failing_since = None
        if self._late:
            self._late = []

    def _write(self, write: Callable[[], object]) -> None:
        try:
            if self._late:
                with self._transaction():
                    write()
            else:
                write()
        except _FAILURES as error:
            self._failed(error)
            self._late.append(write)

    def _failed(self, error: Exception) -> float:
        """Seconds after which it is worth another try."""
        self._beaten = float("-inf")
        if is_busy(error):
            return random.uniform(*ASK_AGAIN)  # noqa: S311  # so that two processes do not meet again and again
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

    def _insert(self, grant: int, limits: Iterable[Limit], settled: float | None) -> None:
        rows = [(limit.key, self._owner, grant, settled, limit.keep) for limit in limits]
        self._db.executemany("INSERT OR REPLACE INTO start VALUES (?, ?, ?, ?, ?)", rows)

    def _due(self, limit: Limit, now: float) -> float:
        """The moment when one more may start: not after now, or later."""
        host, windows, keep = limit.key, limit.windows, limit.keep
        stamps = []
        in_flight, old = 0, False
        rows = self._db.execute(
            "SELECT owner, turn, at, keep FROM start WHERE host = ?", (host,)
        ).fetchall()
        for owner, grant, settled, counts_for in rows:
            stamp = (
                self._ended(owner, grant, now)
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
            due = earliest(
                windows, [*stamps, *[now] * in_flight], 0, now
            )  # if they were all settled now
            assert due is not None
            soon = ASK_THROUGH if limit.through else ASK_AGAIN[0]
            due = min(
                max(due, now + soon), now + self.ttl
            )  # they may be cancelled, or their owner be dead
        return max(due, self._penalty(host, now)[1])

    def _ended(self, owner: int, grant: int, now: float) -> float | None:
        """The moment that a start counts from which nobody will settle any more; None: it is in flight."""
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
        died = float(beat) + self.ttl  # its request may have gone out after its last sign of life
        return died if died <= now else None

    def _write_beat(self, now: float) -> None:
        if now >= self._beaten + self.ttl / 2:  # others may have thought that this process is dead
            for grant, limits in self._flights.items():
                self._insert(grant, limits, None)
        self._db.execute("INSERT OR REPLACE INTO owner VALUES (?, ?)", (self._owner, now))
        self._beaten = now

    def _sweep(self, now: float) -> None:
        """Drops old starts, some hosts a time, so that nobody waits for it."""
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
        """The beginning and the end of the host's penalty, and its last step."""
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
    """The name as SQLite takes it."""
    return host if host.isascii() else host.encode("utf-8", "backslashreplace").decode()
