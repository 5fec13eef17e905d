"""Keeps policy files between crawls and between processes.

A store answers from disk and blocks: PolicyFetcher calls it in a thread of its own. Times are seconds since the epoch."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from comity.crawler.policy_file import STAND_IN, PolicyFile
from comity.policies import PolicyError
from comity.policies.values import Fetched

APPLICATION_ID = 0x636F6D69  # "comi", in the header of the file
VERSION = 1
BUSY = 10.0  # seconds to wait for another process that writes
PRUNED = 2  # files at most that each save drops, so that a store shrinks faster than it grows and nobody waits for it

SCHEMA = """
CREATE TABLE file (
    origin TEXT NOT NULL, path TEXT NOT NULL, written REAL NOT NULL, due REAL NOT NULL,
    copy TEXT, body BLOB, failure TEXT, failing_since REAL, failures INTEGER NOT NULL,
    PRIMARY KEY (origin, path)
) WITHOUT ROWID;
CREATE INDEX file_written ON file (written);
CREATE INDEX file_body ON file (body) WHERE body IS NOT NULL;
CREATE TABLE body (sha256 BLOB PRIMARY KEY, deflated BLOB NOT NULL) WITHOUT ROWID;
"""


class Store(Protocol):
    """Where policy files are kept. OSError where it fails for now."""

    def load(self, origin: str) -> dict[str, PolicyFile]:
        """Path -> what is known of that file."""

    def save(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        """All of them or none."""

    def close(self) -> None: ...


class PolicyStore:
    """An SQLite file. Whatever process is killed, it holds all that was saved."""

    def __init__(self, path: Path) -> None:
        """PolicyError, with what to do about it, where the file cannot be used. It is never repaired or removed."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(f"cannot be opened: {error}") from None
        try:
            self._open()
        except sqlite3.OperationalError as error:  # locked, read-only, disk full
            self._db.close()
            raise self._unusable(f"cannot be used: {error}") from None
        except sqlite3.DatabaseError as error:  # not a database, malformed
            self._db.close()
            raise self._unusable(f"is damaged or is no policy store: {error}") from None
        except PolicyError:
            self._db.close()
            raise

    def _open(self) -> None:
        self._check()  # before anything is written into what may be somebody else's file
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing; a power cut may lose the last answers
        with self._transaction():
            if self._check() == 0:
                for statement in SCHEMA.split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")

    def _check(self) -> int:
        """The version of the schema; 0 where the file is new."""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION_ID:
            raise self._unusable("is no policy store")
        if version > VERSION:
            raise self._unusable("was written by a newer version of comity")
        return int(version)

    def _unusable(self, why: str) -> PolicyError:
        why = " ".join(why.split())
        return PolicyError(
            f"COMITY_STORE `{self.path}` {why}; move the file away, or set COMITY_STORE to a path that can be written"
        )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)

    def load(self, origin: str) -> dict[str, PolicyFile]:
        try:
            rows = self._db.execute(
                "SELECT path, due, copy, deflated, failure, failing_since, failures FROM file"
                " LEFT JOIN body ON body.sha256 = file.body WHERE origin = ?",
                (origin,),
            ).fetchall()
            return {
                path: PolicyFile(
                    due=due,
                    copy=_fetched(copy, zlib.decompress(deflated) if deflated else b"") if copy else None,
                    failure=_fetched(failure) if failure else None,
                    failing_since=_datetime(failing_since),
                    failures=failures,
                )
                for path, due, copy, deflated, failure, failing_since, failures in rows
            }
        except (sqlite3.Error, zlib.error, ValueError, KeyError, TypeError) as error:
            raise OSError(f"{self.path} cannot be read: {error}") from None

    def save(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        try:
            with self._transaction():
                for path, file in files.items():
                    self._write(origin, path, file)
                self._prune(time.time() - STAND_IN)
        except sqlite3.Error as error:
            raise OSError(f"{self.path} cannot be written: {error}") from None

    def _write(self, origin: str, path: str, file: PolicyFile) -> None:
        body = file.copy.body if file.copy else b""
        digest = hashlib.sha256(body).digest() if body else None
        before = self._db.execute("SELECT body FROM file WHERE origin = ? AND path = ?", (origin, path)).fetchone()
        if digest is not None:
            stored = self._db.execute("SELECT 1 FROM body WHERE sha256 = ?", (digest,)).fetchone()
            if stored is None:
                self._db.execute("INSERT INTO body VALUES (?, ?)", (digest, zlib.compress(body, 6)))
        self._db.execute(
            "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                origin,
                path,
                time.time(),
                file.due,
                _json(file.copy) if file.copy else None,
                digest,
                _json(file.failure) if file.failure else None,
                file.failing_since.timestamp() if file.failing_since else None,
                file.failures,
            ),
        )
        if before is not None and before[0] not in (None, digest):
            self._drop_bodies([before])

    def _prune(self, before: float) -> None:
        """Drops what was last written so long ago that it counts no more."""
        rows = self._db.execute("SELECT origin, path, body FROM file WHERE written < ? LIMIT ?", (before, PRUNED)).fetchall()
        self._db.executemany("DELETE FROM file WHERE origin = ? AND path = ?", [row[:2] for row in rows])
        self._drop_bodies([row[2:] for row in rows])

    def _drop_bodies(self, bodies: list[tuple[bytes]]) -> None:
        """Those that no file has any more."""
        self._db.executemany(
            "DELETE FROM body WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM file WHERE file.body = ?1)", bodies
        )

    def close(self) -> None:
        self._db.close()


class _Transaction:
    """BEGIN IMMEDIATE: whoever reads in order to write must not be overtaken by another process."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _json(fetched: Fetched) -> str:
    """Everything but the body."""
    stated: dict[str, Any] = {
        "status": fetched.status,
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in fetched.headers],
        "url": fetched.url,
        "fetched_at": fetched.fetched_at.timestamp() if fetched.fetched_at else None,
        "error": fetched.error,
        "oversized": fetched.oversized,
    }
    return json.dumps({key: value for key, value in stated.items() if value}, separators=(",", ":"))


def _fetched(text: str, body: bytes = b"") -> Fetched:
    stated = json.loads(text)
    return Fetched(
        status=stated.get("status", 0),
        headers=tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in stated.get("headers", ())),
        body=body,
        url=stated.get("url", ""),
        fetched_at=_datetime(stated.get("fetched_at")),
        error=stated.get("error", ""),
        oversized=stated.get("oversized", False),
    )


def _datetime(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
