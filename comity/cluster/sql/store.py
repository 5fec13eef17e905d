"""Policy files in the database of the shared state, as `PolicyStore` keeps them on one machine.

It blocks, as PolicyStore does: PolicyFiles calls it in a thread of its own. The files of several
origins are saved all or none."""

from __future__ import annotations

import hashlib
import json
import secrets
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from comity.cluster.address import name_as_key
from comity.cluster.errors import StateError
from comity.cluster.records import ACTION, KEPT, SESSION, TERM, pack_file, unpack_file
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.connection import REPEATS, open_database
from comity.cluster.sql.database import Database
from comity.cluster.steps.line import PATIENCE
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import DIGEST_ROUNDS, REFERENCES, UNREADABLE
from comity.policies.syntax.printable import printable

SECOND = 1_000_000  # microseconds

_Result = TypeVar("_Result")


class SqlStore:
    """Policy files, and the entries that belong to them, for all crawls of a database.

    OSError: a call fails for now."""

    is_shared = True

    def __init__(self, address: SqlAddress, *, patience: float = PATIENCE) -> None:
        """`patience`: seconds that a call waits for another transaction."""
        self.address = address
        self._patience = patience
        self._db: Database | None = None
        self._token = secrets.token_hex(8)  # identifies its claims
        self._claims: set[str] = set()  # origins
        self._is_swept = False

    def _ask(self, verb: str, function: Callable[[Database, int], _Result]) -> _Result:
        """Call the function in a transaction, with the moment in microseconds.

        `verb`: "read" or "written", for the message of a failure."""
        failed: Exception | None = None
        for _ in range(REPEATS):
            try:
                if self._db is None:
                    self._db = open_database(self.address, self._patience)
                with self._db.transaction():
                    return function(self._db, self._db.process().now)
            except UNREADABLE as error:
                raise self._failure(verb, error) from None
            except StateError as error:
                raise self._failure(verb, error) from None
            except Exception as error:
                assert self._db is not None
                if not isinstance(error, self._db.failures):
                    raise
                if not self._db.is_worth_a_repeat(error):
                    self._db.close()
                    self._db = None
                    if failed is not None:
                        raise self._failure(verb, error) from None
                    failed = error  # the server may have been started anew: try it once more
        raise self._failure(verb, failed)

    def _failure(self, verb: str, error: Exception | None) -> OSError:
        reason = printable(" ".join(str(error).split()))
        return OSError(f"{self.address} cannot be {verb}: {reason}")

    def load(self, origin: str) -> dict[str, PolicyFile]:
        def load(db: Database, now: int) -> dict[str, PolicyFile]:
            rows = db.rows(
                "SELECT path, record FROM site WHERE origin = ? AND written >= ?",
                (name_as_key(origin), now - KEPT * SECOND),
            )
            records = {path.decode(): json.loads(record) for path, record in rows}
            digests = sorted({record["body"] for record in records.values() if record.get("body")})
            bodies: dict[str, bytes | None] = dict.fromkeys(digests)
            found = db.rows_in(
                "SELECT digest, deflated FROM body WHERE digest IN ({list})",
                (),
                [bytes.fromhex(digest) for digest in digests],
            )
            bodies |= {digest.hex(): deflated for digest, deflated in found}
            return {path: unpack_file(record, bodies) for path, record in records.items()}

        return self._ask("read", load)

    def save(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        """Save the files of one origin, as `save_sites` does."""
        self.save_sites({origin: files})

    def save_sites(self, sites: Mapping[str, Mapping[str, PolicyFile]]) -> None:
        def save(db: Database, now: int) -> None:
            if not self._is_swept:
                _sweep(db, now)
            _save_bodies(db, sites, now)
            for origin, files in sorted(sites.items()):
                _save_site(db, name_as_key(origin), files, now)

        self._ask("written", save)
        self._is_swept = True

    def first_taken(self, url: str, uses: Iterable[str], moment: datetime) -> dict[str, datetime]:
        names = sorted(set(uses))

        def first(db: Database, now: int) -> dict[str, datetime]:
            key = name_as_key(url)
            db.with_rows(
                "INSERT INTO taken VALUES {list} ON CONFLICT (url, uses)"
                " DO UPDATE SET used = excluded.used",
                [(key, name, moment.timestamp(), now) for name in names],
                repeat=False,
            )
            rows = db.rows_in(
                "SELECT uses, moment FROM taken WHERE url = ? AND uses IN ({list})", (key,), names
            )
            return {name: _moment(seconds) for name, seconds in rows}

        return self._ask("written", first)

    def requests_action(self, url: str, action: str, sha256: str, moment: datetime) -> bool:
        keep = TERM if action == "take-down" else ACTION

        def request(db: Database, now: int) -> bool:
            key = (name_as_key(url), action, sha256)
            where = "url = ? AND action = ? AND file = ?"
            db.rows(f"DELETE FROM action WHERE {where} AND until < ?", (*key, now))
            until = now + keep * SECOND
            is_new = db.rows(
                "INSERT INTO action VALUES (?, ?, ?, ?, NULL, ?) ON CONFLICT DO NOTHING"
                " RETURNING until",
                (*key, moment.timestamp(), until),
            )
            db.rows(
                f"UPDATE action SET until = ? WHERE {where} AND until < ?", (until, *key, until)
            )
            return bool(is_new)

        return self._ask("written", request)

    def take_downs(self) -> list[tuple[str, datetime]]:
        """Return the URLs that sites request to take down, with the last time, oldest first.

        URLs that were taken down are left out."""

        def read(db: Database, now: int) -> list[tuple[str, datetime]]:
            rows = db.rows(
                "SELECT url, max(requested) FROM action WHERE action = 'take-down'"
                " AND done IS NULL GROUP BY url"
            )
            return [(url.decode(), _moment(seconds)) for url, seconds in rows]

        return sorted(self._ask("read", read), key=lambda item: (item[1], item[0]))

    def took_down(self, urls: Iterable[str], moment: datetime) -> None:
        """Note that the URLs are taken down, all of them or none. Requests after `moment` stay."""
        keys = sorted(map(name_as_key, urls))
        seconds = moment.timestamp()
        self._ask(
            "written",
            lambda db, now: db.rows_in(
                "UPDATE action SET done = ? WHERE action = 'take-down' AND done IS NULL"
                " AND requested <= ? AND url IN ({list})",
                (seconds, seconds),
                keys,
            ),
        )

    def session_began(self, host: str, secret: bytes, moment: datetime) -> datetime:
        def salt(db: Database, now: int) -> bytes:
            db.rows(
                "INSERT INTO salt SELECT ?, 1 WHERE NOT EXISTS (SELECT 1 FROM salt)"
                " ON CONFLICT DO NOTHING",
                (secrets.token_bytes(32),),
            )
            row = db.one("SELECT salt FROM salt")
            assert row is not None
            return bytes(row[0])

        digest = hashlib.pbkdf2_hmac("sha256", secret, self._ask("written", salt), DIGEST_ROUNDS)

        def first(db: Database, now: int) -> datetime:
            before = now - SESSION * SECOND
            key = name_as_key(host)
            db.rows("DELETE FROM session WHERE host = ? AND used < ?", (key, before))
            row = db.one(
                "INSERT INTO session VALUES (?, ?, ?, ?) ON CONFLICT (host, digest)"
                " DO UPDATE SET used = excluded.used RETURNING first",
                (key, digest, moment.timestamp(), now),
            )
            assert row is not None
            return _moment(row[0])

        return self._ask("written", first)

    def claims_fetch(self, origin: str, seconds: float) -> bool:
        """Return True if no other process fetches the origin's files now.

        Then load them again, because another process may have saved them before. Other processes
        may fetch them after so many seconds, unless the claim is renewed, or when it is given back.
        """

        def claim(db: Database, now: int) -> bool:
            rows = db.rows(
                "INSERT INTO claim VALUES (?, ?, ?) ON CONFLICT (origin) DO UPDATE SET"
                " token = excluded.token, until = excluded.until"
                " WHERE claim.token = excluded.token OR claim.until <= ? RETURNING origin",
                (name_as_key(origin), self._token, now + max(1, round(seconds * SECOND)), now),
            )
            return bool(rows)

        has_it = self._ask("written", claim)
        if has_it:
            self._claims.add(origin)
        return has_it

    def gives_back(self, origin: str) -> None:
        """Give back the claim: the files are saved, or the fetch failed.

        If another process has claimed them by now, its claim stays."""
        if origin in self._claims:
            self._claims.discard(origin)
            key = (name_as_key(origin), self._token)
            self._ask(
                "written",
                lambda db, now: db.rows("DELETE FROM claim WHERE origin = ? AND token = ?", key),
            )

    def close(self) -> None:
        for origin in list(self._claims):
            with suppress(OSError):
                self.gives_back(origin)
        if self._db is not None:
            self._db.close()
            self._db = None


def _save_bodies(db: Database, sites: Mapping[str, Mapping[str, PolicyFile]], now: int) -> None:
    """Save bodies. They last longer than all records that refer to them."""
    bodies = {
        hashlib.sha256(file.copy.body).digest(): file.copy.body
        for files in sites.values()
        for file in files.values()
        if file.copy and file.copy.body
    }
    for digest, body in sorted(bodies.items()):
        if not db.rows("UPDATE body SET used = ? WHERE digest = ? RETURNING used", (now, digest)):
            db.rows(
                "INSERT INTO body VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (digest, now, zlib.compress(body, 6)),
            )


def _save_site(db: Database, origin: bytes, files: Mapping[str, PolicyFile], now: int) -> None:
    """Save the files of an origin, and drop the old ones.

    Of the files that other files refer to, only the REFERENCES that were written last stay."""
    db.with_rows(
        "INSERT INTO site VALUES {list} ON CONFLICT (origin, path) DO UPDATE SET"
        " written = excluded.written, record = excluded.record",
        [
            (origin, path.encode(), now, pack_file(file).decode())
            for path, file in sorted(files.items())
        ],
        repeat=False,
    )
    db.rows("DELETE FROM site WHERE origin = ? AND written < ?", (origin, now - KEPT * SECOND))
    rows = db.rows("SELECT path FROM site WHERE origin = ? ORDER BY written DESC, path", (origin,))
    named = [path for (path,) in rows if not path.startswith(b"/")]
    db.rows_in(
        "DELETE FROM site WHERE origin = ? AND path IN ({list})", (origin,), named[REFERENCES:]
    )


def _sweep(db: Database, now: int) -> None:
    """Delete all entries after their lifetime."""
    for table, column, seconds in (
        ("site", "written", KEPT),
        ("body", "used", 3 * KEPT),
        ("claim", "until", KEPT),
        ("taken", "used", TERM),
        ("action", "until", 0),
        ("session", "used", SESSION),
    ):
        db.rows(f"DELETE FROM {table} WHERE {column} < ?", (now - seconds * SECOND,))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
