"""An SQLite file of captures: a row for each capture, and a row for each distinct text.

Index(path)          writes: `take` reads the part of the sources that earlier runs have not read
IndexReader(path)    reads, in any number of processes

An index has the captures of the sources of the last `take`. A lost index can be written anew from
the sources. A process that is killed while it writes loses the last second of work. URLs that are
not known as policy files are first listed in the table `elsewhere`. At the end, those that are
targets of redirects or references are read."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import NamedTuple
from urllib.parse import quote

from comity.database import DatabaseKind, UnusableError, checksum, open_database, transaction
from comity.dataset.captures.sources import CaptureSource, Elsewhere, FileCapture, SourceEntry
from comity.dataset.execution.sorted_runs import chunks
from comity.dataset.files.warc.records import Damage
from comity.policies import PolicyError, Site
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of

APPLICATION_ID = 0x636F6D63  # "comc"
SAVE_AFTER = 1.0  # seconds of work in a transaction; a killed process loses one transaction
MAX_DAMAGES = 1000  # the maximum number of listed damages of a source; all are counted
DAMAGED = "the index of captures is damaged"
MAX_CAPTURES = 1000  # the maximum number of captures that a query returns
MAX_HOPS = 5  # the maximum number of redirects to follow; RFC 9309 section-2.3.1.2
CACHE = 64 * 2**10  # KiB of the file that stay in memory while it is written
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SCHEMA = """
CREATE TABLE source (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version TEXT NOT NULL,
    end INTEGER NOT NULL, is_whole INTEGER NOT NULL, damages INTEGER NOT NULL
);
CREATE TABLE damage (source INTEGER NOT NULL, offset INTEGER NOT NULL, error TEXT NOT NULL);
CREATE TABLE body (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, deflated BLOB NOT NULL);
CREATE TABLE capture (
    url TEXT NOT NULL, moment INTEGER NOT NULL, source INTEGER NOT NULL,
    offset INTEGER NOT NULL, status INTEGER NOT NULL, media TEXT NOT NULL,
    location TEXT NOT NULL, repeats INTEGER NOT NULL, error TEXT NOT NULL,
    is_unread INTEGER NOT NULL, oversized INTEGER NOT NULL, body INTEGER, sum BLOB NOT NULL,
    PRIMARY KEY (url, moment, source, offset)
) WITHOUT ROWID;
CREATE TABLE elsewhere (
    url TEXT NOT NULL, source INTEGER NOT NULL, offset INTEGER NOT NULL,
    PRIMARY KEY (url, source, offset)
) WITHOUT ROWID;
"""
KIND = DatabaseKind(
    subject="--index",
    name="index of captures",
    remedy="name another file",
    application_id=APPLICATION_ID,
    schema=SCHEMA,
    alone="name another file, or wait until it has ended",
)


class UnreadablePlace(NamedTuple):
    """A damaged place of a source."""

    source: str
    """The name of the source."""
    offset: int
    """Its offset in the source, in octets."""
    error: str
    """The problem, in words. In a WACZ file, with the member and its octet."""

    @property
    def place(self) -> str:
        """The source, with the octet. Offsets of a WACZ file are not octets of the file."""
        is_wacz = self.source.lower().endswith(".wacz")
        return self.source if is_wacz else f"{self.source}, at octet {self.offset}"


class CaptureRow(NamedTuple):
    """A capture, without its body."""

    url: str
    moment: int
    """Microseconds since the epoch."""
    source: int
    """The number of the source in the index."""
    offset: int
    """The offset in the source, in octets."""
    status: int
    """The HTTP status. 0: the answer has none."""
    media: str
    location: str
    """As `FileCapture.location`."""
    repeats: int
    """The moment of the capture with its content, in microseconds. 0: it has its own content."""
    error: str
    """The reason why the answer failed. "" if it did not."""
    is_unread: int
    """1 if there was an answer that cannot be read, else 0."""
    oversized: int
    """1 if the body is cut at MAX_BYTES, else 0."""
    body: int | None
    """The number of the body in the index. None: there is no body."""
    sum: bytes
    """The checksum of the other values."""

    @property
    def is_whole(self) -> bool:
        """True if the row is undamaged, by its checksum."""
        return checksum(*self[:-1]) == self.sum


class Index:
    """An index, for the one process that writes it."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. PolicyError, with the remedy, if it cannot be used."""
        self._path = path
        self._db = open_database(path, KIND)
        self._db.execute(f"PRAGMA cache_size = -{CACHE}")

    def take(
        self, sources: Iterable[CaptureSource], progress: Callable[[int], object] = lambda _: None
    ) -> None:
        """Read each source from the offset at which the last run ended. Drop all other sources.

        `progress`: called with the amount read since its last call, in the unit of the sources'
        sizes. OSError: a source cannot be read."""
        by_name: dict[str, CaptureSource] = {}
        self._db.execute("CREATE TEMP TABLE given (name TEXT PRIMARY KEY) WITHOUT ROWID")
        for source in sources:
            by_name[source.name] = source
            self._db.execute("INSERT OR IGNORE INTO given VALUES (?)", (source.name,))
        self._drop("SELECT id FROM source WHERE name NOT IN (SELECT name FROM given)", ())
        self._db.execute("DROP TABLE given")
        for source in by_name.values():
            self._take(source, progress)
        self._take_wanted(by_name)

    def _take(self, source: CaptureSource, progress: Callable[[int], object]) -> None:
        version = source.version
        self._drop("SELECT id FROM source WHERE name = ? AND version <> ?", (source.name, version))
        self._db.execute(
            "INSERT OR IGNORE INTO source (name, version, end, is_whole, damages)"
            " VALUES (?, ?, 0, 0, 0)",
            (source.name, version),
        )
        select = "SELECT id, end, is_whole FROM source WHERE name = ?"
        source_id, end, is_whole = self._db.execute(select, (source.name,)).fetchone()
        if is_whole:
            progress(source.size)
            return
        progress(end)
        entries = source.read(end)
        is_more = True
        while is_more:
            before = end
            with transaction(self._db):
                is_more, end = self._take_some(source_id, entries, end)
                self._db.execute(
                    "UPDATE source SET end = ?, is_whole = ? WHERE id = ?",
                    (end, not is_more, source_id),
                )
            progress((end if is_more else source.size) - before)

    def _take_some(
        self, source_id: int, entries: Iterator[SourceEntry], end: int
    ) -> tuple[bool, int]:
        """Write entries for SAVE_AFTER seconds.

        Return True if there may be more entries, and the offset of the next entry."""
        save_at = monotonic() + SAVE_AFTER
        for offset, entry_end, content in entries:
            end = entry_end
            if isinstance(content, FileCapture):
                self._write(source_id, offset, content)
            elif isinstance(content, Elsewhere):
                self._db.execute(
                    "INSERT OR IGNORE INTO elsewhere VALUES (?, ?, ?)",
                    (content.url, source_id, offset),
                )
            else:
                self._note(source_id, content)
            if monotonic() > save_at:
                return True, end
        return False, end

    def _write(self, source_id: int, offset: int, capture: FileCapture) -> None:
        answer = capture.answer
        assert answer.fetched_at
        row = (
            capture.url,
            microseconds(answer.fetched_at),
            source_id,
            offset,
            answer.status,
            answer.header(b"content-type").decode("latin-1"),
            capture.location,
            microseconds(capture.repeats) if capture.repeats else 0,
            answer.error,
            int(capture.is_unread),
            int(answer.oversized),
            self._body(answer.body) if answer.body else None,
        )
        self._db.execute(
            "INSERT OR REPLACE INTO capture VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, checksum(*row)),
        )

    def _body(self, body: bytes) -> int:
        digest = hashlib.sha256(body).digest()
        row = self._db.execute("SELECT id FROM body WHERE sha256 = ?", (digest,)).fetchone()
        if row is None:
            insert = "INSERT INTO body (sha256, deflated) VALUES (?, ?) RETURNING id"
            row = self._db.execute(insert, (digest, zlib.compress(body, 6))).fetchone()
        return int(row[0])

    def _note(self, source_id: int, damage: Damage) -> None:
        self._db.execute("UPDATE source SET damages = damages + 1 WHERE id = ?", (source_id,))
        self._db.execute(
            "INSERT INTO damage SELECT ?1, ?2, ?3"
            " WHERE (SELECT count(*) FROM damage WHERE source = ?1) < ?4",
            (source_id, damage.offset, damage.error, MAX_DAMAGES),
        )

    def _drop(self, query: str, arguments: tuple[object, ...]) -> None:
        """Drop the captures of the sources that a query selects.

        The texts (table `body`) stay, because most of them are in the new captures too."""
        ids = [source_id for (source_id,) in self._db.execute(query, arguments)]
        with transaction(self._db):
            for table in ("capture", "elsewhere", "damage"):
                self._db.executemany(
                    f"DELETE FROM {table} WHERE source = ?",  # noqa: S608
                    [(source_id,) for source_id in ids],
                )
            self._db.executemany(
                "DELETE FROM source WHERE id = ?", [(source_id,) for source_id in ids]
            )

    def _take_wanted(self, sources: dict[str, CaptureSource]) -> None:
        """Read the targets of redirects and references in policy files, and their redirects."""
        if self._db.execute("SELECT 1 FROM elsewhere LIMIT 1").fetchone() is None:
            return
        self._take_all(sources, self._references())
        for _ in range(MAX_HOPS):
            if not self._take_all(
                sources,
                self._db.execute("SELECT DISTINCT location FROM capture WHERE location <> ''"),
            ):
                break

    def _take_all(self, sources: dict[str, CaptureSource], urls: Iterable[tuple[str]]) -> int:
        """Read the captures of these URLs from `elsewhere`. Return their number."""
        self._db.execute("CREATE TEMP TABLE wanted (url TEXT PRIMARY KEY) WITHOUT ROWID")
        self._db.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", urls)
        rows = self._db.execute(
            "SELECT url, source, offset, name FROM wanted JOIN elsewhere USING (url)"
            " JOIN source ON source.id = source ORDER BY source, offset"
        ).fetchall()
        self._db.execute("DROP TABLE wanted")
        for chunk in chunks(rows, 1000):
            with transaction(self._db):
                for url, source_id, offset, name in chunk:
                    if (capture := sources[name].read_at(offset)) is not None:
                        self._write(source_id, offset, capture)
                    key = (url, source_id, offset)
                    self._db.execute(
                        "DELETE FROM elsewhere WHERE url = ? AND source = ? AND offset = ?", key
                    )
        return len(rows)

    def _references(self) -> Iterator[tuple[str]]:
        """Yield the URLs that policy files refer to, for any agent."""
        query = (
            "SELECT url, deflated"
            " FROM (SELECT DISTINCT url, body FROM capture WHERE body IS NOT NULL)"
            " JOIN body ON id = body"
        )
        for url, deflated in self._db.execute(query):
            site = Site(origin_of(url), {url: Fetched(status=200, body=_inflate(deflated))})
            yield from ((reference.url,) for reference in site.referred_files if reference.url)

    def close(self) -> None:
        """Close the index as one file without a log beside it, readable on a read-only disk."""
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()


class IndexReader:
    """An index, for any number of readers."""

    def __init__(self, path: Path) -> None:
        """Open the file. PolicyError: it is not an index, or it cannot be read."""
        try:
            self._db = sqlite3.connect(
                f"file:{quote(str(path.resolve()))}?mode=ro",
                uri=True,
                check_same_thread=False,
                isolation_level=None,
            )
            is_new = KIND.is_new(self._db)
        except UnusableError as error:
            raise PolicyError(f"`{path}` {error}: name another file") from None
        except sqlite3.Error as error:
            raise PolicyError(
                f"the index of captures `{path}` cannot be read: {printable(str(error))}"
            ) from None
        if is_new:
            raise PolicyError(f"`{path}` is no index of captures: name another file")
        self._names = dict(self._db.execute("SELECT id, name FROM source"))
        # One transaction for all queries, so that SQLite checks the lock once. Nothing writes now.
        self._db.execute("BEGIN")

    def source(self, row: CaptureRow) -> str:
        """Return the name of the source of a capture."""
        name: str = self._names[row.source]
        return name

    def captures(
        self, urls: Sequence[str], after: int, until: int
    ) -> dict[str, list[CaptureRow]] | None:
        """Return the captures of each URL with `after` < moment <= `until`, the latest first.

        The moments are in microseconds. None if there are more than MAX_CAPTURES in total."""
        marks = ", ".join("?" * len(urls))
        query = (
            f"SELECT * FROM capture WHERE url IN ({marks}) AND moment > ? AND moment <= ?"  # noqa: S608
            " ORDER BY moment DESC, source DESC, offset DESC LIMIT ?"
        )
        rows = self._db.execute(query, (*urls, after, until, MAX_CAPTURES + 1)).fetchall()
        if len(rows) > MAX_CAPTURES:
            return None
        captures: dict[str, list[CaptureRow]] = {url: [] for url in urls}
        for row in map(CaptureRow._make, rows):
            captures[row.url].append(row)
        return captures

    def nearest(self, url: str, after: int, until: int) -> Iterator[CaptureRow]:
        """Return the captures of a URL with `after` < moment <= `until`, the latest first.

        The moments are in microseconds. At most MAX_CAPTURES captures are returned."""
        query = (
            "SELECT * FROM capture WHERE url = ? AND moment > ? AND moment <= ?"
            " ORDER BY moment DESC, source DESC, offset DESC LIMIT ?"
        )
        return map(CaptureRow._make, self._db.execute(query, (url, after, until, MAX_CAPTURES)))

    def body(self, number: int) -> bytes:
        """Return the body with this number. ValueError: it is damaged, or it does not exist."""
        stored = self._db.execute(
            "SELECT sha256, deflated FROM body WHERE id = ?", (number,)
        ).fetchone()
        try:
            body = _inflate(stored[1]) if stored else b""
        except zlib.error:
            body = b""
        if not stored or hashlib.sha256(body).digest() != stored[0]:
            raise ValueError(DAMAGED)
        return body

    @property
    def versions(self) -> dict[str, str]:
        """The name of each source -> its version, sorted by name."""
        return dict(self._db.execute("SELECT name, version FROM source ORDER BY name"))

    def find(self, url: str, moment: int) -> CaptureRow | None:
        """Return the capture that answered a request, by its URL and the moment of its answer.

        None if it is not in the index. The answer may be that of a redirect's target."""
        return self._find(url, moment, ())

    def _find(self, url: str, moment: int, on_the_way: tuple[str, ...]) -> CaptureRow | None:
        query = (
            "SELECT * FROM capture WHERE url = ? AND moment = ?"
            " ORDER BY source DESC, offset DESC LIMIT 1"
        )
        for row in map(CaptureRow._make, self._db.execute(query, (url, moment))):
            if not row.location or row.repeats:
                return row
        if len(on_the_way) == MAX_HOPS:
            return None
        query = "SELECT DISTINCT location FROM capture WHERE url = ? AND location <> ''"
        locations = [location for (location,) in self._db.execute(query, (url,))]
        for location in locations:
            target = location not in on_the_way and self._find(location, moment, (*on_the_way, url))
            if target:
                return target
        return None

    def moments(self, origin: str) -> list[int]:
        """Return the moments of the captures of an origin's files, the earliest first."""
        query = (
            "SELECT DISTINCT moment FROM capture"
            " WHERE url >= ?1 || '/' AND url < ?1 || '0' ORDER BY moment"
        )
        return [moment for (moment,) in self._db.execute(query, (origin,))]

    @property
    def unreadable(self) -> tuple[int, list[UnreadablePlace]]:
        """The number of damaged places, and the first ones of each source."""
        (count,) = self._db.execute("SELECT coalesce(sum(damages), 0) FROM source").fetchone()
        query = (
            "SELECT name, offset, error FROM damage JOIN source ON source.id = source"
            " ORDER BY name, offset"
        )
        return count, list(map(UnreadablePlace._make, self._db.execute(query)))

    def count(self) -> int:
        """Return the number of captures."""
        (count,) = self._db.execute("SELECT count(*) FROM capture").fetchone()
        return int(count)

    def close(self) -> None:
        self._db.close()


def microseconds(moment: datetime) -> int:
    """Return an aware moment in microseconds since the epoch."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def _inflate(deflated: bytes) -> bytes:
    """Return the octets, at most MAX_BYTES of them. zlib.error: they are damaged."""
    return zlib.decompressobj().decompress(deflated, MAX_BYTES)
