"""Clients that several processes of one machine count together, such as the workers of a server.

An SQLite file has the counts of each client, and each claim is one transaction. A request in flight
counts as long as its process is alive. Each process creates its own file and locks it. The system
releases the lock when the process ends, even if it is killed. So a locked file means a live
process."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import threading
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from comity.database import connect, transaction
from comity.forks import hold_in_forks
from comity.guard.clients import ClientLimit, CountedClient, Stamps, TooMany
from comity.policies.answers.errors import PolicyError

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x636F6D67  # "comg", in the header of the file
# The maximum number of seconds that a claim waits for the claims of other processes. A claim takes
# less than a millisecond.
BUSY = 1.0
ASK_AGAIN = 1  # seconds to wait if the file cannot be used
SWEPT = 256  # claims between two removals of outdated rows

# `until`: the time at which all moments of a row have left their windows.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS stamps (
    client BLOB NOT NULL, key TEXT NOT NULL, every INTEGER NOT NULL, \
length INTEGER NOT NULL, requests INTEGER NOT NULL,
    moments BLOB NOT NULL, until REAL NOT NULL, PRIMARY KEY (client, key, every)
);
CREATE INDEX IF NOT EXISTS stamps_until ON stamps (until);
CREATE TABLE IF NOT EXISTS in_flight (
    client BLOB NOT NULL, key TEXT NOT NULL, process INTEGER NOT NULL, requests INTEGER NOT NULL,
    PRIMARY KEY (client, key, process)
) WITHOUT ROWID;
"""

_COUNT = """
INSERT INTO in_flight VALUES (?, ?, ?, 1)
ON CONFLICT (client, key, process) DO UPDATE SET requests = requests + 1
"""
_RELEASE = (
    "UPDATE in_flight SET requests = requests - 1 WHERE client = ? AND key = ? AND process = ?"
)
_RELEASED = "DELETE FROM in_flight WHERE client = ? AND key = ? AND process = ? AND requests <= 0"
_FORGET = """
DELETE FROM stamps
WHERE client IN (SELECT client FROM stamps GROUP BY client ORDER BY max(until) LIMIT ?)
"""
# For the file of a process, which is only locked: no journal beside it.
_NO_JOURNAL = "PRAGMA journal_mode = MEMORY"

_Row = tuple[int, int, bytes, float]  # length, requests, moments, until


class SharedClients:
    """All clients of a site, counted by several processes.

    Every SWEPT claims, the recent requests of surplus clients are removed: the `max_clients`
    clients remain that are needed for the longest time. Requests in flight are not removed."""

    def __init__(self, path: Path, *, max_clients: int = 10_000) -> None:
        """`path`: the SQLite file, on a disk of this machine. A missing file is created.

        PolicyError: the file cannot be used."""
        self._path = path
        self._max_clients = max_clients
        self._db: sqlite3.Connection | None = None
        self._process = _Process(path)
        # The processes whose forks this process descends from. It must not end them, so it keeps
        # references to them.
        self._inherited: list[_Process] = []
        self._lock = threading.Lock()
        # A transaction that another thread has begun could never end in a forked process.
        hold_in_forks(self._lock)
        self._late: list[tuple[bytes, tuple[str, ...]]] = []  # requests that must be released
        self._claims = 0
        self._has_failed = False
        try:
            with closing(self._open()) as db:
                self._bury(db, db.execute("SELECT DISTINCT process FROM in_flight").fetchall())
        except (OSError, sqlite3.Error) as error:
            raise PolicyError(
                f"counts `{path}` cannot be used: {error};"
                " write a path in a folder that can be written"
            ) from None

    def claim(self, name: str, limits: Sequence[ClientLimit], now: float) -> TooMany | None:
        if not limits:
            return None
        try:
            with self._transaction() as db:
                refused = self._claim(db, _key(name), limits, now)
        except (OSError, sqlite3.Error) as error:
            self._log_failure(error)
            return TooMany("comity.uncounted", limits[0], "requests that can be counted", ASK_AGAIN)
        return refused

    def release(self, name: str, limits: Sequence[ClientLimit]) -> None:
        self._late.append(
            (_key(name), tuple(limit.key for limit in limits if limit.concurrent is not None))
        )
        try:
            with self._transaction():
                pass
        except (OSError, sqlite3.Error) as error:  # the next claim releases it
            self._log_failure(error)

    def _claim(
        self, db: sqlite3.Connection, name: bytes, limits: Sequence[ClientLimit], now: float
    ) -> TooMany | None:
        rows = self._rows(db, name)
        client = _client(rows)
        client.in_flight.update(self._in_flight(db, name))
        refused = client.claim(limits, now)
        if refused and refused.rule == "comity.concurrent":
            processes = db.execute(
                "SELECT DISTINCT process FROM in_flight WHERE client = ?", (name,)
            ).fetchall()
            if self._bury(db, processes):
                return self._claim(db, name, limits, now)
        until = now + max(
            (window.seconds for limit in limits for window in limit.windows), default=0.0
        )
        for key, stamps in client.stamps.items():
            before = rows.get(key)
            row = (
                stamps.length,
                stamps.requests,
                stamps.moments.tobytes(),
                max(until, before[3] if before else 0.0),
            )
            if before is None or row[:3] != before[:3]:
                db.execute(
                    "INSERT OR REPLACE INTO stamps VALUES (?, ?, ?, ?, ?, ?, ?)", (name, *key, *row)
                )
        keys = [limit.key for limit in limits if limit.concurrent is not None and refused is None]
        if keys:
            self._process.live()
            db.executemany(_COUNT, [(name, key, self._process.number) for key in keys])
        self._claims += 1
        if self._claims % SWEPT == 0:
            self._sweep(db, now)
        return refused

    def _rows(self, db: sqlite3.Connection, name: bytes) -> dict[tuple[str, int], _Row]:
        rows = db.execute(
            "SELECT key, every, length, requests, moments, until FROM stamps WHERE client = ?",
            (name,),
        )
        return {(key, stride): row for key, stride, *row in rows}

    def _in_flight(self, db: sqlite3.Connection, name: bytes) -> dict[str, int]:
        rows = db.execute(
            "SELECT key, sum(requests) FROM in_flight WHERE client = ? GROUP BY key", (name,)
        )
        return dict(rows.fetchall())

    def _bury(self, db: sqlite3.Connection, processes: list[tuple[int]]) -> bool:
        """Remove the requests in flight of dead processes. Return True if one was dead."""
        dead = [
            (number,)
            for (number,) in processes
            if number != self._process.number and not self._process.is_alive(number)
        ]
        db.executemany("DELETE FROM in_flight WHERE process = ?", dead)
        return bool(dead)

    def _sweep(self, db: sqlite3.Connection, now: float) -> None:
        db.execute("DELETE FROM stamps WHERE until <= ?", (now,))
        (clients,) = db.execute("SELECT count(DISTINCT client) FROM stamps").fetchone()
        db.execute(_FORGET, (max(0, clients - self._max_clients),))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the body of `with` in a transaction. Requests in `_late` are released first."""
        with self._lock:
            db = self._connection()
            with transaction(db):
                for name, keys in self._late:
                    rows = [(name, key, self._process.number) for key in keys]
                    db.executemany(_RELEASE, rows)
                    db.executemany(_RELEASED, rows)
                yield db
            self._late.clear()

    def _connection(self) -> sqlite3.Connection:
        """Return the connection of this process.

        This process may be a fork of the process that created the object."""
        if self._process.pid != os.getpid():
            if self._db is not None:
                # SQLite takes one lock for all connections of a process to a file. The copy of the
                # parent's connection seems to have it, so a second one would take none.
                self._db.close()
            self._inherited.append(self._process)
            self._db, self._process, self._late = None, _Process(self._path), []
        if self._db is None:
            self._db = self._open()
        return self._db

    def _open(self) -> sqlite3.Connection:
        """Open the file. Only this user can read a new file, because it names clients."""
        return connect(self._path, _prepare, busy=BUSY, check_same_thread=False)

    def _log_failure(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            logger.error(
                "counts `%s` cannot be used (%s): until they can, requests with limits are refused",
                self._path,
                error,
            )


class _Process:
    """This process. It locks a file, so that other processes can tell that it is alive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.pid = os.getpid()
        self.number = secrets.randbits(62)
        self._lock: sqlite3.Connection | None = None

    def live(self) -> None:
        """Create the file of this process and lock it, once. Then other processes see it alive.

        Another process may find the file before it is locked, and remove it as the file of a dead
        process. In this case, choose another `number`, and create another file."""
        while self._lock is None:
            lock = sqlite3.connect(
                self._file(self.number), isolation_level=None, check_same_thread=False
            )
            lock.execute(_NO_JOURNAL)
            lock.execute("BEGIN EXCLUSIVE")
            if self._file(self.number).exists():
                self._lock = lock
            else:
                lock.close()
                self.number = secrets.randbits(62)

    def is_alive(self, number: int) -> bool:
        """Return True if the process with this number is alive.

        Remove the file of a dead process, and return False."""
        file = self._file(number)
        if not file.exists():
            return False
        with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as lock:
            try:
                lock.execute(_NO_JOURNAL)
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error:
                return True
        file.unlink(missing_ok=True)
        return False

    def _file(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number:x}")


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("BEGIN")  # so that no other process creates the tables between the two queries
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION_ID:
        raise sqlite3.DatabaseError("it belongs to another program")
    db.execute("COMMIT")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = OFF")  # safe if a process is killed
    with transaction(db):
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _client(rows: dict[tuple[str, int], _Row]) -> CountedClient:
    client = CountedClient()
    try:
        for (key, stride), (length, requests, moments, _) in rows.items():
            client.stamps[key, stride] = Stamps(stride, length, requests, array("d", moments))
    except (TypeError, ValueError):
        raise sqlite3.DatabaseError("a row is damaged") from None
    return client


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
