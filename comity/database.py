"""SQLite files of comity. The header tells the kind, so other programs' files are never changed.

    open_database(path, kind)  open and check a file, and make the tables of a new one
    transaction(db)            write all statements of a block, or none of them

Disks and copies damage files, and SQLite reads damaged files as far as it can. So `open_database`
compares the tables with the expected ones, and checks all pages of a small file. Important rows
have a `checksum`, an SQL function of their other columns."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

logger = logging.getLogger(__name__)

BUSY = 10.0  # seconds to wait for another process that writes, opens or closes the file
# If writes fail for this number of seconds, a crawl that needs the file ends.
PATIENCE = 60.0
# Octets of the largest file that is checked page by page, which takes about 1 ms for each MB.
CHECKED = 64 * 2**20
_OTHERS = 0o077  # the bits of a mode that allow access to the group and to others


def make_private_folder(folder: Path) -> None:
    """Make a folder, and the folders above it, for this user only. Existing ones stay unchanged."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _make_private_file(path: Path) -> None:
    """Make an empty file for this user only, if it does not exist.

    SQLite gives the log beside it the same mode. An existing file stays unchanged, because its mode
    may be intended."""
    make_private_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def connect(
    path: Path,
    prepare: Callable[[sqlite3.Connection], object],
    *,
    busy: float,
    is_patient: bool = True,
    check_same_thread: bool = True,
) -> sqlite3.Connection:
    """Open a file, prepare the connection, and return it.

    A missing file is made for this user only.

    `prepare`: a function that prepares the connection.
    `busy`: seconds to wait for another process.
    `is_patient`: True to wait also for a process that makes or removes the log. SQLite itself only
    waits for writers.
    OSError: the file cannot be opened. Errors of `prepare` are raised too, after the connection is
    closed."""
    give_up = monotonic() + busy
    while True:
        try:
            _make_private_file(path)
            db = sqlite3.connect(
                path, timeout=busy, isolation_level=None, check_same_thread=check_same_thread
            )
        except sqlite3.Error as error:
            raise OSError(str(error)) from None
        try:
            prepare(db)
        except BaseException as error:
            db.close()
            if not (is_patient and is_busy(error) and monotonic() < give_up):
                raise
        else:
            return db
        sleep(0.01)


def is_busy(error: BaseException) -> bool:
    """Return True if an error means that another process uses the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


class transaction:  # noqa: N801  # used like a function; a generator takes thrice as many calls
    """Run a `with` block in a transaction. If it raises an error, no statement takes effect.

    The file is locked from the beginning, so that no other process writes between a read and a
    write of the block."""

    __slots__ = ("_db",)

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            with suppress(sqlite3.Error):  # the connection may be closed
                if self._db.in_transaction:  # it failed, and SQLite has not rolled back itself
                    self._db.execute("ROLLBACK")


def checksum(*columns: int | float | str | bytes | None) -> bytes:
    """Return the checksum of a row. `columns`: its values, in the types of SQLite."""
    return hashlib.blake2b(repr(columns).encode("utf-8", "surrogatepass"), digest_size=8).digest()


Schema = frozenset[tuple[str, str, str, str | None]]


def _schema(db: sqlite3.Connection) -> Schema:
    """Return the type, name, table and text of each table, index, trigger and view.

    The tables of ANALYZE are left out."""
    return frozenset(
        db.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"
        )
    )


@cache
def _schema_made_by(statements: str) -> Schema:
    """Return the schema of a file in which only these statements were executed."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.create_function("checksum", -1, checksum)
        db.executescript(statements)
        return _schema(db)


@dataclass(frozen=True)
class DatabaseKind:
    """A kind of file. The header of a file has the `application_id` and the number of its version.

    Attributes:
        subject: The first words of messages about a file.
        name: The name of the kind, for messages.
        remedy: The advice if a file cannot be used.
        application_id: The number of the kind.
        schema: The SQL statements that make the tables. Existing files must have exactly this
            schema, white space included.
        version: The number of the schema. Each change of `schema` increases it. Files of other
            versions are refused.
        synchronous: SQLite's setting. With "NORMAL", a killed process loses nothing, and a power
            cut may lose the last writes.
        alone: The advice if another process uses the file. With it, one process locks the file for
            itself. "" means that several processes may use the file.
    """

    subject: str
    name: str
    remedy: str
    application_id: int
    schema: str
    version: int = 1
    synchronous: str = "NORMAL"
    alone: str = ""

    def prepare(self, db: sqlite3.Connection, *, is_small: bool) -> None:
        """Check the file, and make the tables of a new file.

        `is_small`: True to check all pages.
        UnusableError: the file is of another kind or version, or damaged. sqlite3.Error: SQLite
        cannot use it."""
        db.create_function("checksum", -1, checksum)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        if self.alone:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        # One transaction for all queries, because another process may be making the file. Nothing
        # is written before the check: the file may belong to another program.
        db.execute("BEGIN")
        self.is_new(db)
        if is_small:
            _check_pages(db)
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {self.synchronous}")
        with transaction(db):
            if self.is_new(db):
                for statement in self.schema.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {self.application_id}")
                db.execute(f"PRAGMA user_version = {self.version}")

    def is_new(self, db: sqlite3.Connection) -> bool:
        """Return True if the file is empty, and False if it has the tables of this kind.

        UnusableError: the file is of another kind or version, or its tables differ."""
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not version:
            return True
        if application != self.application_id:
            raise UnusableError(f"is no {self.name}")
        if version != self.version:
            raise UnusableError(
                f"was written by another version of comity: its tables have version {version},"
                f" and this comity uses version {self.version}"
            )
        if _schema(db) != _schema_made_by(self.schema):
            raise UnusableError(
                f"is damaged or is no {self.name}: its tables are not those of version {version}"
            )
        return False


class UnusableError(Exception):
    """A file cannot be used. The message is the reason, without a subject."""


def _check_pages(db: sqlite3.Connection) -> None:
    """Raise UnusableError if a page of the file is damaged."""
    (outcome,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if outcome != "ok":
        raise UnusableError(f"is damaged: {outcome}")


def open_database(
    path: Path, kind: DatabaseKind, *, check_same_thread: bool = True
) -> sqlite3.Connection:
    """Open a file with a write-ahead log, and return the connection, without an open transaction.

    A missing file is made. The file, its log and its new folders are for this user only.
    `check_same_thread`: False to use the connection in several threads.
    PolicyError: the file cannot be used. The message has the subject, the reason and the remedy.
    The file is never repaired or removed."""
    file = Path(os.path.realpath(path))

    def prepare(db: sqlite3.Connection) -> None:
        kind.prepare(db, is_small=file.stat().st_size <= CHECKED)

    # If two processes lock the file for themselves, each may hold a part of the lock. The one that
    # waits longer gets it.
    busy = random.uniform(0.1, 0.9) if kind.alone else BUSY  # noqa: S311
    remedy = kind.remedy
    try:
        db = connect(
            file, prepare, busy=busy, is_patient=not kind.alone, check_same_thread=check_same_thread
        )
    except UnusableError as error:
        cause = str(error)
    except OSError as error:
        cause = f"cannot be opened: {error}"
    except sqlite3.OperationalError as error:  # locked, read-only, disk full
        cause = f"cannot be used: {error}"
        if kind.alone and is_busy(error):
            cause, remedy = "is in use by another crawl", kind.alone
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:  # not a database, malformed
        cause = f"is damaged or is no {kind.name}: {error}"
    else:
        log_mode(path)
        return db
    reason = printable(" ".join(cause.split()).encode("utf-8", "replace"))
    raise PolicyError(f"{kind.subject} `{path}` {reason}; {remedy}")


def log_mode(path: Path) -> None:
    """Log a line if other users of this machine can open the file.

    On Windows the mode does not show it."""
    if sys.platform != "win32" and path.stat().st_mode & _OTHERS:
        logger.info(
            "%(path)s is open to other users of this machine: chmod 600 closes it", {"path": path}
        )
