"""The nonces of signatures that were used: in memory, or in a file that several processes share.

proofs = Proofs(agents, directories, nonces=SharedNonces(Path("/run/site/nonces.sqlite")))"""

from __future__ import annotations

import heapq
import logging
import os
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Protocol

from comity.database import DatabaseKind, open_database, transaction
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
""",
)


class UsedNonces(Protocol):
    """The nonces of verified signatures, until these expire."""

    def use(self, pool: str, key: bytes, expires: int, now: float) -> str:
        """Note a nonce, and return "". Otherwise return the reason why it proves nothing: USED, or
        another one, which may be over later.

        `pool`: no other pool can fill it. `key`: a digest of directory, `keyid` and nonce.
        `expires`: the end of its signature. Both times are seconds since the epoch. Only one call
        at a time is made."""


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
        self._pid = os.getpid()
        self._db = self._open()
        # Connections of the parent process, from before a fork. Closing them here would release
        # its locks.
        self._inherited: list[sqlite3.Connection] = []
        self._has_failed = False

    def _open(self) -> sqlite3.Connection:
        db = open_database(self._path, KIND, check_same_thread=False)
        db.execute(f"PRAGMA busy_timeout = {BUSY}")
        return db

    def use(self, pool: str, key: bytes, expires: int, now: float) -> str:
        try:
            if self._pid != os.getpid():
                self._inherited.append(self._db)
                self._db, self._pid = self._open(), os.getpid()
            with transaction(self._db):
                return self._use(pool, key, expires, now)
        except (PolicyError, sqlite3.Error) as error:
            if not self._has_failed:
                self._has_failed = True
                logger.error(
                    "nonces `%s` cannot be used (%s): until they can, signatures prove nothing",
                    self._path,
                    error,
                )
            return UNKNOWN

    def _use(self, pool: str, key: bytes, expires: int, now: float) -> str:
        self._db.execute("DELETE FROM nonce WHERE expires <= ?", (now,))
        row = (pool, key)
        if self._db.execute("SELECT 1 FROM nonce WHERE pool = ? AND key = ?", row).fetchone():
            return USED
        # Counts no further than needed.
        number = "SELECT count(*) FROM (SELECT 1 FROM nonce WHERE pool = ? LIMIT ?)"
        if self._db.execute(number, (pool, self._most)).fetchone()[0] >= self._most:
            return TOO_MANY
        self._db.execute("INSERT INTO nonce VALUES (?, ?, ?)", (*row, expires))
        return ""
