"""The nonces of signatures that were used: in memory, or in a file that several processes share.

proofs = Proofs(agents, directories, nonces=SharedNonces(Path("/run/site/nonces.sqlite")))"""

from __future__ import annotations

import heapq
import logging
import os
import sqlite3
import threading
from collections import defaultdict
from pathlib import Path
from typing import Protocol

from comity.database import DatabaseKind, open_database, transaction
from comity.forks import hold_in_forks
from comity.policies.answers.errors import PolicyError

logger = logging.getLogger(__name__)

MAX_NONCES = 100_000  # nonces of a directory, until their signatures expire
USED = "its nonce was used before"
TOO_MANY = "too many nonces are in use"
UNKNOWN = "the used nonces cannot be looked up"
BUSY = 1000  # milliseconds that a request waits for those of other processes

KIND = DatabaseKind(
    subject="SharedNonces: the file",
    name="file with nonces",
    remedy="write a path in a folder that can be written, or remove the file while no server runs",
    application_id=0x636F6D6E,  # "comn"
    schema="""
CREATE TABLE nonce (
    pool TEXT NOT NULL, key BLOB NOT NULL, expires INTEGER NOT NULL, PRIMARY KEY (pool, key)
) WITHOUT ROWID;
CREATE INDEX nonce_expires ON nonce (expires);
CREATE TABLE pool (pool TEXT NOT NULL PRIMARY KEY, nonces INTEGER NOT NULL) WITHOUT ROWID;
""",
)
_COUNT = """
INSERT INTO pool VALUES (?, 1) ON CONFLICT (pool) DO UPDATE SET nonces = nonces + 1
"""


class UsedNonces(Protocol):
    """The nonces of verified signatures, until these expire."""

    def use(self, pool: str, key: bytes, expires: int, now: float) -> str:
        """Note a nonce, and return "". Otherwise return the reason why it proves nothing: USED, or
        another one, which may be over later.

        `pool`: no other pool can fill it. `key`: a digest of directory, `keyid` and nonce.
        `expires`: the end of its signature. Both times are seconds since the epoch. `Proofs` makes
        only one call at a time."""


class Nonces:
    """Nonces in the memory of this process."""

    def __init__(self, most: int = MAX_NONCES) -> None:
        """`most`: the greatest number of nonces in a pool."""
        self._most = most
        self._used = defaultdict[str, set[bytes]](set)
        self._ends = defaultdict[str, list[tuple[int, bytes]]](list)  # heaps

    def use(self, pool: str, key: bytes, expires: int, now: float) -> str:
        used, ends = self._used[pool], self._ends[pool]
        while ends and ends[0][0] <= now:
            used.discard(heapq.heappop(ends)[1])
        if key in used:
            return USED
        if len(used) >= self._most:
            return TOO_MANY
        used.add(key)
        heapq.heappush(ends, (expires, key))
        return ""


class SharedNonces:
    """Nonces in a SQLite file on a disk of this machine, for the workers of a server."""

    def __init__(self, path: Path, most: int = MAX_NONCES) -> None:
        """`path`: the file. A missing file is created. `most`: as in `Nonces`.

        PolicyError: the file cannot be used."""
        self._path = path
        self._most = most
        self._open().close()
        self._db: sqlite3.Connection | None = None  # of the process `_pid`
        self._pid = 0
        self._has_failed = False
        self._lock = threading.Lock()  # several Proofs may share the nonces
        # A transaction that another thread has begun could never end in a forked process.
        hold_in_forks(self._lock)

    def _open(self) -> sqlite3.Connection:
        db = open_database(self._path, KIND, check_same_thread=False)
        db.execute(f"PRAGMA busy_timeout = {BUSY}")
        return db

    def _connection(self) -> sqlite3.Connection:
        """Return the connection of this process."""
        if self._db is None or self._pid != os.getpid():
            if self._db is not None:
                # SQLite takes one lock for all connections of a process to a file. The copy of the
                # parent's connection seems to have it, so a second one would take none.
                self._db.close()
            self._db, self._pid = self._open(), os.getpid()
        return self._db

    def use(self, pool: str, key: bytes, expires: int, now: float) -> str:
        try:
            with self._lock:
                db = self._connection()
                with transaction(db):
                    return self._use(db, pool, key, expires, now)
        except (PolicyError, sqlite3.Error) as error:
            if not self._has_failed:
                self._has_failed = True
                logger.error(
                    "nonces `%s` cannot be used (%s): until they can, signatures prove nothing",
                    self._path,
                    error,
                )
            return UNKNOWN

    def _use(self, db: sqlite3.Connection, pool: str, key: bytes, expires: int, now: float) -> str:
        ended = "SELECT count(*), pool FROM nonce WHERE expires <= ? GROUP BY pool"
        if counts := db.execute(ended, (now,)).fetchall():
            db.execute("DELETE FROM nonce WHERE expires <= ?", (now,))
            db.executemany("UPDATE pool SET nonces = nonces - ? WHERE pool = ?", counts)
        row = (pool, key)
        if db.execute("SELECT 1 FROM nonce WHERE pool = ? AND key = ?", row).fetchone():
            return USED
        counted = db.execute("SELECT nonces FROM pool WHERE pool = ?", (pool,)).fetchone()
        if counted and counted[0] >= self._most:
            return TOO_MANY
        db.execute("INSERT INTO nonce VALUES (?, ?, ?)", (*row, expires))
        db.execute(_COUNT, (pool,))
        return ""
