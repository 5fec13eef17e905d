"""SQLite files of our own, each with its kind in the header: somebody else's is never written to.

    open_database(path, kind)  the file, checked, with the tables of the newest version
    transaction(db)            all of what is written in it, or nothing

Disks and copies damage files, and SQLite reads on where it can. So the tables are compared with ours when a file is opened, a
small file is checked page by page, and a row that something depends on carries its own `checksum`, an SQL function of its other
columns."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

logger = logging.getLogger(__name__)

BUSY = 10.0  # seconds to wait for another process that writes, or opens or closes the file
PATIENCE = 60.0  # seconds for which writes may fail to a file that a crawl cannot do without
CHECKED = (
    64 * 2**20
)  # octets of a file up to which all its pages are checked, which takes about 1 ms for each MB
_OTHERS = 0o077  # mode: whatever the group and others may do


def make_private_folder(folder: Path) -> None:
    """The folder, and those above it, are made for this user alone where they are not there."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _make_private_file(path: Path) -> None:
    """An empty file for this user alone, where there is none; SQLite gives its mode to the log beside it. One that is there stays
    as it is: its mode may be meant for others."""
    make_private_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def connect(
    path: Path,
    prepare: Callable[[sqlite3.Connection], object],
    *,
    busy: float,
    is_patient: bool = True,
    check_same_thread: bool = True,
) -> sqlite3.Connection:
    """A connection to the file, made for this user alone where it is not there, once it is prepared.

    `busy`: seconds to wait for another process. `is_patient`: for one that makes or removes the log too, which does not wait as
    writers do. OSError where it cannot be opened, and what `prepare` raises: then it is closed."""
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
    """Return whether another process has the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all that is written in it, or nothing where it ends with an error.

    The file is locked from the beginning: whoever reads in order to write is not overtaken by another process."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if db.in_transaction:  # else SQLite has done so itself
                db.execute("ROLLBACK")
        raise


def checksum(*columns: int | float | str | bytes | None) -> bytes:
    """Checksum of the columns of a row, as SQLite has them."""
    return hashlib.blake2b(repr(columns).encode("utf-8", "surrogatepass"), digest_size=8).digest()


Schema = frozenset[tuple[str, str, str, str | None]]


def _schema(db: sqlite3.Connection) -> Schema:
    """Type, name, table and text of each table, index, trigger and view. What ANALYZE makes is of no account."""
    return frozenset(
        db.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"
        )
    )


@cache
def _schemas(versions: tuple[str, ...]) -> tuple[Schema, ...]:
    """Schemas of a new file and of each version."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.create_function("checksum", -1, checksum)
        schemas = [_schema(db)]
        for version in versions:
            db.executescript(version)
            schemas.append(_schema(db))
    return tuple(schemas)


@dataclass(frozen=True)
class Kind:
    """A kind of file. Its header has the `application_id` and the number of its version."""

    subject: str  # what a message about a file begins with
    name: str
    remedy: str  # where a file cannot be used
    application_id: int
    versions: tuple[
        str, ...
    ]  # what makes each version of the schema out of the one before, the first out of nothing
    synchronous: str = (
        "NORMAL"  # a killed process loses nothing; a power cut may lose what was written last
    )
    alone: str = (
        ""  # one process takes a file for itself, and this is the remedy where another one has it
    )

    def prepare(self, db: sqlite3.Connection, *, is_small: bool) -> None:
        """Check the file, and bring its tables to the newest version. UnusableError, or what sqlite3 raises."""
        db.create_function("checksum", -1, checksum)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        if self.alone:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN")  # or another process could make the file between the questions
        self._version(db)  # before anything is written into what may be somebody else's file
        if is_small:
            _check_pages(db)
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {self.synchronous}")
        with transaction(db):
            for schema in self.versions[self._version(db) :]:
                for statement in schema.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {self.application_id}")
                db.execute(f"PRAGMA user_version = {len(self.versions)}")

    def _version(self, db: sqlite3.Connection) -> int:
        """The version of the file's schema; 0 where it is new. UnusableError where it is another's, or not as ours made it."""
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != self.application_id:
            raise UnusableError(f"is no {self.name}")
        if version > len(self.versions):
            raise UnusableError("was written by a newer version of comity")
        if version < 0 or _schema(db) != _schemas(self.versions)[version]:
            raise UnusableError(
                f"is damaged or is no {self.name}: its tables are not those of version {version}"
            )
        return int(version)


class UnusableError(Exception):
    """A file cannot be used, and this is why."""


def _check_pages(db: sqlite3.Connection) -> None:
    (outcome,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if outcome != "ok":
        raise UnusableError(f"is damaged: {outcome}")


def open_database(path: Path, kind: Kind, *, check_same_thread: bool = True) -> sqlite3.Connection:
    """The file, made where it is not there, with a write-ahead log and no transaction open.

    PolicyError where it cannot be used: the subject, what is wrong, the remedy. It is never repaired or removed. A new file, its
    log and the folders that it takes are for this user alone."""
    file = Path(os.path.realpath(path))

    def prepare(db: sqlite3.Connection) -> None:
        kind.prepare(db, is_small=file.stat().st_size <= CHECKED)

    # Of two that want the file alone both may hold a part of it: the one that waits longer gets it.
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
    raise PolicyError(
        f"{kind.subject} `{path}` {printable(' '.join(cause.split()).encode('utf-8', 'replace'))}; {remedy}"
    )


def log_mode(path: Path) -> None:
    """Log where the file is open to others."""
    if path.stat().st_mode & _OTHERS:
        logger.info(
            "%(path)s is open to other users of this machine: chmod 600 closes it", {"path": path}
        )
