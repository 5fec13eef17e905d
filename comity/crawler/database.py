"""SQLite files of our own, each with its kind in the header: somebody else's is never written to."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

from comity.policies import PolicyError

BUSY = 10.0  # seconds to wait for another process that writes, or opens or closes the file


def open_database(
    path: Path,
    *,
    subject: str,
    kind: str,
    remedy: str,
    application_id: int,
    versions: Sequence[str],
    synchronous: str,
    alone: str = "",
    check_same_thread: bool = True,
) -> sqlite3.Connection:
    """The file, made where it is not there, with a write-ahead log and no transaction open.

    `versions`: what makes each version of the schema out of the one before, the first out of nothing. PolicyError where it
    cannot be used: the subject, what is wrong, the remedy. It is never repaired or removed. `alone`: this process takes it for
    itself, and the remedy where another one has it."""

    def unusable(why: str, remedy: str = remedy) -> PolicyError:
        return PolicyError(f"{subject} `{path}` {' '.join(why.split())}; {remedy}")

    def check(db: sqlite3.Connection) -> int:
        """The version of the schema; 0 where the file is new."""
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != application_id:
            raise unusable(f"is no {kind}")
        if version > len(versions):
            raise unusable("was written by a newer version of comity")
        return int(version)

    def prepare(db: sqlite3.Connection) -> None:
        if alone:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN")  # or another process could make the file between the questions
        check(db)  # before anything is written into what may be somebody else's file
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.execute("BEGIN IMMEDIATE")
        for schema in versions[check(db) :]:
            for statement in schema.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {application_id}")
            db.execute(f"PRAGMA user_version = {len(versions)}")
        db.execute("COMMIT")

    # Of two that want the file alone both may hold a part of it: the one that waits longer gets it.
    busy = random.uniform(0.1, 0.9) if alone else BUSY  # noqa: S311
    give_up = monotonic() + busy
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=check_same_thread)
        except (OSError, sqlite3.Error) as error:
            raise unusable(f"cannot be opened: {error}") from None
        try:
            prepare(db)
        except sqlite3.OperationalError as error:  # locked, read-only, disk full
            db.close()
            # Two that make the log, or one that removes it, do not wait for one another as writers do.
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                if alone:
                    raise unusable("is in use by another crawl", alone) from None
                if monotonic() < give_up:
                    sleep(0.01)
                    continue
            raise unusable(f"cannot be used: {error}") from None
        except sqlite3.DatabaseError as error:  # not a database, malformed
            db.close()
            raise unusable(f"is damaged or is no {kind}: {error}") from None
        except PolicyError:
            db.close()
            raise
        return db
