"""The check of the database of the shared state, before a crawl begins.

A crawl relies on a database that keeps the calls that it has acknowledged. All faults of a server
are reported at once, each with its remedy."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from comity.cluster.address import PASSWORD, SETTING
from comity.cluster.errors import StateError
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.connection import database_class, open_database
from comity.cluster.sql.database import Database
from comity.cluster.sql.schema import DATA_VERSION, NAME
from comity.cluster.sql.sqlite import OLDEST as OLDEST_SQLITE
from comity.cluster.steps.line import PATIENCE
from comity.policies import PolicyError

OLDEST = 13  # the oldest release of PostgreSQL that its makers maintained when this was written
_SETTINGS = (
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "server_version_num",
    "server_version",
    "server_encoding",
    "transaction_read_only",
)
# File systems of other machines: the locks and the shared memory of SQLite do not work there.
_REMOTE = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "ceph", "glusterfs", "lustre", "afs")

# Texts of errors, in lower case, and their remedies.
_REMEDIES = (
    ("password authentication", f"set the environment variable {PASSWORD}"),
    ("no password supplied", f"set the environment variable {PASSWORD}"),
    ("pg_hba.conf", "let this user and this machine connect in pg_hba.conf"),
    ('database "', "create the database: CREATE DATABASE"),
    ('role "', "write the name of a user of the server"),
    ("permission denied", f"let the user create the schema {NAME}: GRANT CREATE ON DATABASE"),
    ("too many", "raise `max_connections`: a worker takes three"),
    ("starting up", "the server reads its files: start again when it has"),
    ("name or service not known", "there is no such host: check its spelling"),
    ("nodename nor servname", "there is no such host: check its spelling"),
    ("no address associated", "there is no such host: check its spelling"),
)


def check_database(address: SqlAddress, *, is_dry: bool = False) -> list[str]:
    """Return remarks about the database, and create its tables if it has none.

    `is_dry`: True to change nothing.
    PolicyError, with all faults and their remedies: the crawl cannot rely on the database."""
    remarks: list[str] = []
    faults: list[str] = []
    try:
        db = database_class(address)(address, PATIENCE) if _can_open(address, is_dry) else None
        if db is None:
            return remarks
        try:
            if address.path is None:
                faults += _faults(db)
                remarks += _remarks(db, address)
            else:
                remarks += _remarks_on_file(address.path)
            version = db.version()
            if version not in (None, DATA_VERSION):
                faults.append(
                    f"It has data of version {version}, and this comity knows version"
                    f" {DATA_VERSION}. Use one version of comity for all workers, or another"
                    " database."
                )
        finally:
            db.close()
        if not (faults or is_dry):
            open_database(address).close()
    except database_class(address).failures as error:
        raise _refusal(address, database_class(address).error(error, address)) from None
    except StateError as error:
        raise _refusal(address, error) from None
    if faults:
        lines = "\n".join(f"- {fault}" for fault in faults)
        raise PolicyError(f"{SETTING}: a crawl cannot rely on {address}:\n{lines}")
    return remarks


def _can_open(address: SqlAddress, is_dry: bool) -> bool:  # noqa: FBT001
    """Return True if the database may be opened. PolicyError: SQLite is too old.

    Opening a file that does not exist would make it."""
    if address.path is None:
        return True
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise PolicyError(
            f"{SETTING}: SQLite {sqlite3.sqlite_version} is too old: use a Python with SQLite"
            f" {'.'.join(map(str, OLDEST_SQLITE))} or later"
        )
    return not is_dry or address.path.exists()


def _refusal(address: SqlAddress, error: StateError) -> PolicyError:
    text = str(error).removeprefix(f"{address}: ")
    default = (
        "start the server, or write its address"
        if address.path is None
        else "write the path of a file in a folder that this user can write"
    )
    remedy = next(
        (remedy for words, remedy in _REMEDIES if address.path is None and words in text.lower()),
        default,
    )
    return PolicyError(f"{SETTING}: {address} cannot be used ({text}): {remedy}")


def _faults(db: Database) -> Iterator[str]:
    """Yield the faults of a server."""
    settings = _settings(db)
    if int(settings["server_version_num"]) < OLDEST * 10_000:
        yield (f"It is PostgreSQL {settings['server_version']}. Use PostgreSQL {OLDEST} or later.")
    if db.rows("SELECT pg_is_in_recovery()") == [(True,)]:
        yield "It is a standby, which takes no writes. Write the address of its primary."
    elif settings["transaction_read_only"] != "off":
        yield (
            "It takes no writes (default_transaction_read_only). Set it to `off` for the user of"
            " the crawl."
        )
    if settings["server_encoding"] != "UTF8":
        yield (
            f"Its encoding is {settings['server_encoding']}. Create the database with ENCODING"
            " 'UTF8'."
        )
    if settings["fsync"] != "on":
        yield "It does not wait for its disk, so a fault can destroy its files. Set `fsync = on`."
    if settings["full_page_writes"] != "on":
        yield (
            "It writes pages in parts (full_page_writes), so a fault can destroy its files. Set"
            " `full_page_writes = on`."
        )


def _remarks(db: Database, address: SqlAddress) -> Iterator[str]:
    if _settings(db)["synchronous_commit"] == "off":
        yield (
            f"{address} answers before its log is on disk, so a restart of the server loses the"
            " last requests, which ends the crawl: set `synchronous_commit = on`"
        )


def _settings(db: Database) -> dict[str, str]:
    return {name: str(db.rows(f"SHOW {name}")[0][0]) for name in _SETTINGS}


def _remarks_on_file(path: Path) -> Iterator[str]:
    if (kind := _file_system(path)).startswith(_REMOTE):
        yield (
            f"`{path}` is on a file system of another machine ({kind}), where SQLite cannot lock"
            " it: write a path on a disk of this machine"
        )
    with suppress(OSError):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield (
                f"other users can read `{path}`, and it has requests with their cookies: "
                f"`chmod 600 {path}`"
            )


def _file_system(path: Path) -> str:
    """Return the kind of the file system that has the path; "": unknown."""
    found, length = "", -1
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines():
            _, place, kind, *_ = line.split()
            if len(place) > length and path.is_relative_to(os.fsdecode(place)):
                found, length = kind, len(place)
    return found
