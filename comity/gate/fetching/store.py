"""The store keeps policy files between crawls and between processes.

It also keeps the facts that permissions depend on: first uses, requested actions and sessions.

A store reads and writes the disk, so its methods block. PolicyFiles calls them in a thread of its
own. Moments are seconds since the epoch, unless they are datetimes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from comity.database import DatabaseKind, checksum, open_database, transaction
from comity.gate.fetching.policy_copy import PolicyFile, shared_body, shared_headers
from comity.gate.fetching.reach import Reach
from comity.policies.answers.fetched import STAND_IN, Fetched
from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable

APPLICATION_ID = 0x636F6D69  # "comi", in the header of the file
# The maximum number of old files that are dropped for each saved site. It is more than one, so that
# old files are dropped faster than sites are added.
PRUNED = 2
# Rounds of PBKDF2, so that a thief of the file cannot find short secrets by trial.
DIGEST_ROUNDS = 100_000
PAGE = 1000  # origins that are listed at a time
# The maximum number of referenced files that are kept for an origin. An origin might refer to new
# files every day.
REFERENCES = 20

SCHEMA = """
CREATE TABLE file (
    origin TEXT NOT NULL, path TEXT NOT NULL, written REAL NOT NULL, due REAL NOT NULL,
    copy TEXT, body BLOB, failure TEXT, failing_since REAL, failures INTEGER NOT NULL,
    reach TEXT NOT NULL, sum BLOB NOT NULL,
    PRIMARY KEY (origin, path)
) WITHOUT ROWID;
CREATE INDEX file_written ON file (written);
CREATE INDEX file_body ON file (body) WHERE body IS NOT NULL;
CREATE TABLE body (sha256 BLOB PRIMARY KEY, deflated BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE taken (
    url TEXT NOT NULL, use TEXT NOT NULL, first REAL NOT NULL, sum BLOB NOT NULL,
    PRIMARY KEY (url, use)
) WITHOUT ROWID;
CREATE TABLE action (
    url TEXT NOT NULL, action TEXT NOT NULL, sha256 TEXT NOT NULL, requested REAL NOT NULL,
    done REAL, sum BLOB NOT NULL,
    PRIMARY KEY (url, action, sha256)
) WITHOUT ROWID;
CREATE TABLE salt (salt BLOB NOT NULL, sum BLOB NOT NULL);
INSERT INTO salt VALUES (randomblob(32), '');
UPDATE salt SET sum = checksum(salt);
CREATE TABLE session (
    host TEXT NOT NULL, digest BLOB NOT NULL, first REAL NOT NULL, sum BLOB NOT NULL,
    PRIMARY KEY (host, digest)
) WITHOUT ROWID;
"""
KIND = DatabaseKind(
    subject="COMITY_STORE",
    name="policy store",
    remedy="move the file away, or set COMITY_STORE to a path that can be written",
    application_id=APPLICATION_ID,
    schema=SCHEMA,
)
DAMAGED = "a row is not as it was written"
# The errors of reading values that this class did not write.
UNREADABLE = (
    zlib.error,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


class Store(Protocol):
    """A place for policy files. Its methods raise OSError if it cannot be used at the moment.

    Attributes:
        is_shared: True if several processes share the store and use `claims_fetch`, so that only
            one of them fetches an origin.
    """

    is_shared: bool

    def load(self, origin: str) -> dict[str, PolicyFile]:
        """Return the files of an origin, by path or by the absolute URL of a referenced file."""

    def save_sites(self, sites: Mapping[str, Mapping[str, PolicyFile]]) -> None:
        """Save the files of several origins: all of them or none."""

    def first_taken(self, url: str, uses: Iterable[str], moment: datetime) -> dict[str, datetime]:
        """Return the moment when an item of the URL was first taken for each of these uses.

        For a new use, it is `moment`, which is recorded.
        """

    def requests_action(self, url: str, action: str, sha256: str, moment: datetime) -> bool:
        """Record that a site asks for the action on the URL.

        `sha256`: the checksum of the file that asks. Return False if the same file has asked for it
        before.
        """

    def session_began(self, host: str, secret: bytes, moment: datetime) -> datetime:
        """Return the moment when the host was first seen with this secret.

        For a new secret, it is `moment`, which is recorded. The secret itself is not stored.
        """

    def claims_fetch(self, origin: str, seconds: float) -> bool:
        """Claim the origin for `seconds`, and return True if this process may fetch its files.

        False: another process has claimed it.
        """

    def gives_back(self, origin: str) -> None:
        """End this process's claim. Call it when the files are saved, or the fetch has failed."""

    def close(self) -> None:
        """Close the store."""


class PolicyStore:
    """A store in an SQLite file. It keeps all saved files, even if a process is killed."""

    # Two crawls of one machine may fetch the same file twice, which costs less than coordination.
    is_shared = False

    def __init__(self, path: Path) -> None:
        """Open the file, or create it.

        PolicyError: the file cannot be used; the message says what to do. A damaged file is never
        repaired or removed.
        """
        self.path = path
        self._db = open_database(path, KIND, check_same_thread=False)
        # The digests of bodies that this transaction has written or found whole.
        self._whole_bodies: set[bytes] = set()

    def load(self, origin: str) -> dict[str, PolicyFile]:
        try:
            rows = self._db.execute(
                "SELECT path, due, copy, file.body, deflated,"
                " failure, failing_since, failures, reach,"
                " sum = checksum(origin, path, copy, file.body,"
                " failure, failing_since, failures, reach)"
                " FROM file LEFT JOIN body ON body.sha256 = file.body WHERE origin = ?",
                (origin,),
            ).fetchall()
            return {
                path: policy_file(
                    due=due,
                    copy=fetched_of_json(copy, body_of(digest, deflated)) if copy else None,
                    failure=fetched_of_json(failure) if failure else None,
                    failing_since=_datetime(failing_since),
                    failures=failures,
                    reach=reach,
                )
                for (
                    path,
                    due,
                    copy,
                    digest,
                    deflated,
                    failure,
                    failing_since,
                    failures,
                    reach,
                    is_whole,
                ) in rows
                if _check(is_whole)
            }
        except (sqlite3.Error, *UNREADABLE) as error:
            raise self._unreadable(error) from None

    def origins(self) -> Iterator[str]:
        """Yield the origins with stored files, sorted; changes made meanwhile may show."""
        last = ""
        while True:
            try:
                rows = self._db.execute(
                    "SELECT DISTINCT origin FROM file WHERE origin > ? ORDER BY origin LIMIT ?",
                    (last, PAGE),
                ).fetchall()
            except sqlite3.Error as error:
                raise self._unreadable(error) from None
            if not rows:
                return
            yield from (origin for (origin,) in rows)
            (last,) = rows[-1]

    def version(self) -> str:
        """Return a text that changes with each save."""
        try:
            return repr(self._db.execute("SELECT count(*), max(written) FROM file").fetchone())
        except sqlite3.Error as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> OSError:
        return OSError(f"{self.path} cannot be read: {printable(str(error))}")

    def _unwritable(self, error: Exception) -> OSError:
        return OSError(f"{self.path} cannot be written: {printable(str(error))}")

    def save(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        """Save the files of one origin."""
        self.save_sites({origin: files})

    def save_sites(self, sites: Mapping[str, Mapping[str, PolicyFile]]) -> None:
        self._whole_bodies = set()
        try:
            with transaction(self._db):
                for origin, files in sites.items():
                    self._write(origin, files)
                self._prune_old(time.time() - STAND_IN, PRUNED * len(sites))
        except sqlite3.Error as error:
            raise self._unwritable(error) from None

    def _write(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        """Write the files of an origin, and drop its bodies and rows that they replace."""
        before = dict(
            self._db.execute("SELECT path, body FROM file WHERE origin = ?", (origin,)).fetchall()
        )
        rows = [self._row(origin, path, file) for path, file in files.items()]
        self._db.executemany(
            "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
        )
        bodies = {path: digest for _, path, _, _, _, digest, *_ in rows}
        replaced = {body for path, body in before.items() if body != bodies.get(path, body)}
        self._drop_bodies([(body,) for body in replaced if body is not None])
        self._prune(origin, before.keys() - files.keys(), len(before.keys() | files.keys()))

    def _row(self, origin: str, path: str, file: PolicyFile) -> tuple[Any, ...]:
        """Return the columns of a file, and write its body."""
        body = file.copy.body if file.copy else b""
        columns = (
            fetched_as_json(file.copy) if file.copy else None,
            self._write_body(body) if body else None,
            fetched_as_json(file.failure) if file.failure else None,
            file.failing_since.timestamp() if file.failing_since else None,
            file.failures,
            file.reach.value,
        )
        # Computed here, because calls from SQL take longer.
        whole = checksum(origin, path, *columns)
        return origin, path, time.time(), float(file.due), *columns, whole

    def _write_body(self, body: bytes) -> bytes:
        """Write a body, unless it is stored and whole. Return its digest."""
        digest = hashlib.sha256(body).digest()
        if digest not in self._whole_bodies:
            stored = self._db.execute(
                "SELECT deflated FROM body WHERE sha256 = ?", (digest,)
            ).fetchone()
            if stored is None or not _holds(stored[0], digest):
                self._db.execute(
                    "INSERT OR REPLACE INTO body VALUES (?, ?)", (digest, zlib.compress(body, 6))
                )
            self._whole_bodies.add(digest)
        return digest

    def _prune(self, origin: str, unsaved: Collection[str], number: int) -> None:
        """Drop damaged rows of an origin, and the oldest references beyond REFERENCES.

        `unsaved`: the paths of its files that were not saved just now. `number`: the number of all
        its files."""
        if unsaved:
            self._db.execute(
                "DELETE FROM file WHERE origin = ?"
                " AND (typeof(due) <> 'real'"
                " OR sum IS NOT checksum(origin, path, copy, body,"
                " failure, failing_since, failures, reach))",
                (origin,),
            )
        if number > REFERENCES:
            self._drop(
                "SELECT origin, path, body FROM file WHERE origin = ? AND path NOT LIKE '/%'"
                " ORDER BY written DESC LIMIT -1 OFFSET ?",
                (origin, REFERENCES),
            )

    def _prune_old(self, before: float, at_most: int) -> None:
        """Drop files that were last written before this moment, which is too long ago to use them.

        `at_most`: the maximum number of files to drop."""
        self._drop(
            "SELECT origin, path, body FROM file WHERE written < ? LIMIT ?", (before, at_most)
        )

    def _drop(self, query: str, arguments: tuple[object, ...]) -> None:
        rows = self._db.execute(query, arguments).fetchall()
        self._db.executemany(
            "DELETE FROM file WHERE origin = ? AND path = ?", [row[:2] for row in rows]
        )
        self._drop_bodies([row[2:] for row in rows])

    def _drop_bodies(self, bodies: list[tuple[bytes]]) -> None:
        """Drop these bodies, unless a file still has them."""
        if not bodies:
            return
        self._whole_bodies.difference_update(*bodies)
        self._db.executemany(
            "DELETE FROM body WHERE sha256 = ?1"
            " AND NOT EXISTS (SELECT 1 FROM file WHERE file.body = ?1)",
            bodies,
        )

    def claims_fetch(self, origin: str, seconds: float) -> bool:
        return True

    def gives_back(self, origin: str) -> None:
        """Do nothing: this store has no claims."""

    def first_taken(self, url: str, uses: Iterable[str], moment: datetime) -> dict[str, datetime]:
        try:
            with transaction(self._db):
                moments = {}
                for use in uses:
                    self._db.execute(
                        "INSERT OR IGNORE INTO taken VALUES (?1, ?2, ?3, checksum(?1, ?2, ?3))",
                        (url, use, moment.timestamp()),
                    )
                    rows = self._db.execute(
                        "SELECT first, sum = checksum(url, use, first)"
                        " FROM taken WHERE url = ? AND use = ?",
                        (url, use),
                    )
                    moments[use] = _moment(*rows.fetchone())
                return moments
        except (sqlite3.Error, *UNREADABLE) as error:
            raise self._unwritable(error) from None

    def requests_action(self, url: str, action: str, sha256: str, moment: datetime) -> bool:
        row = (url, action, sha256, moment.timestamp())
        try:
            return (
                self._db.execute(
                    "INSERT OR IGNORE INTO action"
                    " VALUES (?1, ?2, ?3, ?4, NULL, checksum(?1, ?2, ?3, ?4, NULL))",
                    row,
                ).rowcount
                == 1
            )
        except sqlite3.Error as error:
            raise self._unwritable(error) from None

    def take_downs(self) -> list[tuple[str, datetime]]:
        """Return the URLs that are still to be taken down, and when a site last asked for it.

        The oldest come first.
        """
        try:
            rows = self._db.execute(
                "SELECT url, action, requested, done,"
                " sum = checksum(url, action, sha256, requested, done)"
                " FROM action ORDER BY requested, url"
            ).fetchall()
            moments = {
                url: _moment(requested)
                for url, action, requested, done, is_whole in rows
                if _check(is_whole) and action == "take-down" and done is None
            }
        except (sqlite3.Error, *UNREADABLE) as error:
            raise self._unreadable(error) from None
        return sorted(moments.items(), key=lambda item: (item[1], item[0]))

    def took_down(self, urls: Iterable[str], moment: datetime) -> None:
        """Record that the URLs are taken down: all of them or none.

        Take-downs that a site asked for after `moment` are still to be done.
        """
        rows = [(moment.timestamp(), url) for url in urls]
        try:
            with transaction(self._db):
                self._db.executemany(
                    "UPDATE action SET done = ?1,"
                    " sum = checksum(url, action, sha256, requested, ?1)"
                    " WHERE url = ?2 AND action = 'take-down' AND done IS NULL AND requested <= ?1",
                    rows,
                )
        except sqlite3.Error as error:
            raise self._unwritable(error) from None

    def session_began(self, host: str, secret: bytes, moment: datetime) -> datetime:
        try:
            salt, is_whole = self._db.execute(
                "SELECT salt, sum = checksum(salt) FROM salt"
            ).fetchone()
            _check(is_whole)
            digest = hashlib.pbkdf2_hmac("sha256", secret, salt, DIGEST_ROUNDS)
            with transaction(self._db):
                self._db.execute(
                    "INSERT OR IGNORE INTO session VALUES (?1, ?2, ?3, checksum(?1, ?2, ?3))",
                    (host, digest, moment.timestamp()),
                )
                rows = self._db.execute(
                    "SELECT first, sum = checksum(host, digest, first)"
                    " FROM session WHERE host = ? AND digest = ?",
                    (host, digest),
                )
                return _moment(*rows.fetchone())
        except (sqlite3.Error, *UNREADABLE) as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        self._db.close()


def fetched_as_json(fetched: Fetched) -> str:
    """Return the answer without its body, as JSON."""
    members: dict[str, Any] = {
        "status": fetched.status,
        "headers": [
            [name.decode("latin-1"), value.decode("latin-1")] for name, value in fetched.headers
        ],
        "url": fetched.url,
        "fetched_at": fetched.fetched_at.timestamp() if fetched.fetched_at else None,
        "error": fetched.error,
        "oversized": fetched.oversized,
    }
    return _JSON.encode({key: value for key, value in members.items() if value})


_JSON = json.JSONEncoder(separators=(",", ":"))


def policy_file(
    *,
    due: float,
    copy: Fetched | None,
    failure: Fetched | None,
    failing_since: datetime | None,
    failures: int,
    reach: str,
) -> PolicyFile:
    """Return the file with these columns. ValueError: a value has the wrong type."""
    if type(due) is not float or type(failures) is not int:  # no checksum covers `due`
        raise ValueError(DAMAGED)
    return PolicyFile(
        due=due,
        copy=copy,
        failure=failure,
        failing_since=failing_since,
        failures=failures,
        reach=Reach(reach),
    )


_MEMBERS = {"status": int, "url": str, "error": str, "oversized": bool}


def fetched_of_json(text: str, body: bytes = b"") -> Fetched:
    """Return the answer that `fetched_as_json` wrote. ValueError: a member has the wrong type."""
    members = json.loads(text)
    if any(type(members[name]) is not kind for name, kind in _MEMBERS.items() if name in members):
        raise ValueError(DAMAGED)
    return Fetched(
        status=members.get("status", 0),
        headers=shared_headers(
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in members.get("headers", ())
        ),
        body=shared_body(body),
        url=members.get("url", ""),
        fetched_at=_datetime(members.get("fetched_at")),
        error=members.get("error", ""),
        oversized=members.get("oversized", False),
    )


def _check(is_whole: int) -> bool:
    """Return True. ValueError: the columns of the row do not match its checksum."""
    if not is_whole:
        raise ValueError(DAMAGED)
    return True


def _moment(seconds: float, is_whole: int = 1) -> datetime:
    _check(is_whole)
    return datetime.fromtimestamp(seconds, UTC)


def body_of(digest: bytes | None, deflated: bytes | None) -> bytes:
    """Return the body of a copy; b"" if it has none.

    ValueError: the body is missing or damaged.
    """
    if digest is None:
        return b""
    body = _inflate(deflated) if deflated is not None else b""
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("a body is not as it was written")
    return body


def _inflate(deflated: bytes) -> bytes:
    """Return the octets, at most MAX_BYTES, the length limit of policy files. zlib.error."""
    return zlib.decompressobj().decompress(deflated, MAX_BYTES)


def _holds(deflated: bytes, digest: bytes) -> bool:
    try:
        return hashlib.sha256(_inflate(deflated)).digest() == digest
    except (zlib.error, TypeError):
        return False


def _datetime(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
