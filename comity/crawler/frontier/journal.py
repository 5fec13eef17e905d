"""The queue of a crawl on disk: a crawl with a JOBDIR can be stopped, or killed, and goes on where it was.

A body is a pickle, as in Scrapy's own JOBDIR: whoever can write into the folder can run code as the operator. Nothing is
unpickled but this file, and nothing that a site sends gets into it as a pickle."""

from __future__ import annotations

import logging
import pickle
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

from comity.crawler.frontier.queue import Taker
from comity.database import Kind, open_database, transaction
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Request

logger = logging.getLogger(__name__)

NAME = "comity.sqlite"
APPLICATION_ID = 0x636F6D6A  # "comj", in the header of the file
REMEDY = "set JOBDIR to another folder, or move the file away: then the crawl begins anew"
INTEGERS = range(-(2**63), 2**63)  # of SQLite
IDS = range(2**62)  # so many that the next ones are integers of SQLite too

# `id` is the order of arrival. `seen` is read as a whole at the start and asked in memory: an index would only be paid for.
VERSIONS = (
    """
CREATE TABLE waiting (id INTEGER PRIMARY KEY, origin TEXT NOT NULL, priority INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE seen (fingerprint BLOB NOT NULL);
""",
    """
ALTER TABLE waiting ADD COLUMN sum BLOB NOT NULL DEFAULT '';
UPDATE waiting SET sum = checksum(id, origin, priority, body);
""",
    "CREATE TABLE taken_over (mark INTEGER NOT NULL);",
)
KIND = Kind(
    subject="JOBDIR:",
    name="queue of comity",
    remedy=REMEDY,
    application_id=APPLICATION_ID,
    versions=VERSIONS,
    alone="set JOBDIR to a folder of this crawl's own",
)


class Journal:
    """A Queue in one SQLite file: the requests that are not done, and the fingerprints of all there ever were.

    What is put and done is written by `flush`, all of it or none, so a request is gone from the file only together with, or
    after, what it led to. A killed process loses what came after its last flush: the next one gets those requests that were
    not done then, also the ones that were out. A power cut may undo the last flushes too, whole ones and the last first."""

    setting = "JOBDIR"
    is_shared = False
    is_finished = True  # elsewhere: the file is of this process alone

    def __init__(self, folder: Path) -> None:
        """Takes the file for this process alone. PolicyError, with what to do about it, where it cannot be used; it is never
        repaired or removed."""
        self.path = folder / NAME
        self._spider: Spider | None = None
        self._new: dict[int, tuple[int, str, int, bytes]] = {}  # what the next flush writes
        self._new_seen: list[tuple[bytes]] = []
        self._done: list[tuple[int]] = []
        self._warned = False
        self._db = open_database(self.path, KIND)
        try:
            self.seen: set[bytes] = {
                fingerprint for (fingerprint,) in self._db.execute("SELECT fingerprint FROM seen")
            }
            (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM waiting").fetchone()
            if last not in IDS:
                raise ValueError("a request has no number that could be")
        except (sqlite3.Error, ValueError) as error:
            self._db.close()
            raise self._damaged(error) from None
        self._first = self._next = int(last) + 1
        self.has_begun = bool(self.seen or last)

    def _damaged(self, error: Exception) -> PolicyError:
        return PolicyError(f"JOBDIR: `{self.path}` is damaged: {printable(str(error))}; {REMEDY}")

    def open(self, spider: Spider) -> None:
        """Callbacks and errbacks are stored as the names of this spider's methods."""
        self._spider = spider

    @property
    def mark(self) -> int | None:
        """The mark of the queue that was taken over, while its files have not been put aside yet."""
        try:
            (mark,) = self._db.execute("SELECT max(mark) FROM taken_over").fetchone()
            return None if mark is None else int(mark)
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            raise self._damaged(error) from None

    def unmark(self) -> None:
        self._db.execute("DELETE FROM taken_over")

    def take_over(
        self,
        mark: int,
        requests: Iterable[Request],
        fingerprints: Iterable[bytes],
        *,
        filtered: bool,
    ) -> int:
        """Stores requests behind those that are there, all of them or none, and the mark with them. How many these are.

        `filtered`: but those that were seen here. OSError where that fails."""
        assert self._spider is not None
        fingerprinter, seen, count = self._spider.crawler.request_fingerprinter, set(self.seen), 0
        assert fingerprinter is not None
        try:
            with transaction(self._db):
                for request in requests:
                    fingerprint = (
                        fingerprinter.fingerprint(request)
                        if filtered and not request.dont_filter
                        else None
                    )
                    if fingerprint in seen:
                        continue
                    if fingerprint is not None:
                        seen.add(fingerprint)
                    row = (
                        self._next + count,
                        origin_or_empty(request.url),
                        _bounded(request.priority),
                        self._pickled(request),
                    )
                    self._db.execute(
                        "INSERT INTO waiting VALUES (?1, ?2, ?3, ?4, checksum(?1, ?2, ?3, ?4))", row
                    )
                    count += 1
                seen.update(fingerprints)
                self._db.executemany(
                    "INSERT INTO seen VALUES (?)",
                    [(fingerprint,) for fingerprint in seen - self.seen],
                )
                self._db.execute("INSERT INTO taken_over VALUES (?)", (mark,))
        except sqlite3.Error as error:
            raise OSError(f"{self.path} cannot be written: {printable(str(error))}") from None
        self.seen, self.has_begun = seen, True
        self._first = self._next = self._next + count
        return count

    def stored(self) -> Iterator[tuple[int, str, int]]:
        """Key, origin and priority of what was waiting, or was out, when the last crawl ended: higher priority first, in order
        of arrival within one priority. PolicyError where the file turns out to be damaged."""
        query = "SELECT id, origin, priority FROM waiting WHERE id < ? ORDER BY priority DESC, id"
        try:
            for key, origin, priority in self._db.execute(query, (self._first,)):
                if not (type(origin) is str and type(priority) is int):
                    raise ValueError("a request waits for no site")
                yield key, origin, priority
        except (sqlite3.Error, ValueError) as error:
            raise self._damaged(error) from None

    def begin(self, taker: Taker) -> None:
        """Let what is stored arrive. Nothing of it is ever lost to others. PolicyError where the file turns out to be damaged."""
        for key, origin, priority in self.stored():
            taker.arrived(key, origin, priority)

    def is_seen(self, fingerprint: bytes) -> bool:
        return fingerprint in self.seen

    def put(self, origin: str, request: Request, fingerprint: bytes | None) -> int | None:
        """The key of the request from now on. `fingerprint`: None for a request that no filter asks for.

        None where it cannot be stored, e.g. as its callback is no method of the spider: then the caller has to keep it. Its
        fingerprint is seen in this crawl, but not written before `saw` says so: a crawl that goes on without the request
        must be free to ask for it when it is led there again."""
        if fingerprint is not None:
            self.seen.add(fingerprint)
        try:
            body = self._pickled(request)
        except Exception as error:  # whatever the objects in its meta raise
            if not self._warned:
                self._warned = True
                logger.warning(
                    "%(request)s waits in memory, and is lost when the crawl ends, as it cannot be stored in JOBDIR: %(reason)s"
                    " (further ones are not reported)",
                    {"request": request, "reason": error},
                )
            return None
        key = self._next
        self._next += 1
        self._new[key] = (key, origin, _bounded(request.priority), body)
        if fingerprint is not None:
            self._new_seen.append((fingerprint,))
        return key

    def _pickled(self, request: Request) -> bytes:
        members = request.to_dict(spider=self._spider)
        if "_class" in members and load_object(members["_class"]) is not type(request):
            raise ValueError(f"`{members['_class']}` is not its class")
        return pickle.dumps(members, pickle.HIGHEST_PROTOCOL)

    def get(self, key: int) -> Request:
        """The request, as a new object each time. LookupError where it cannot be read, e.g. as the spider has no such callback
        any more, or its row is damaged; it stays in the file, for a crawl that can."""
        try:
            if (row := self._new.get(key)) is not None:
                body = row[3]
            else:
                query = "SELECT body, sum = checksum(id, origin, priority, body) FROM waiting WHERE id = ?"
                body, is_whole = self._db.execute(query, (key,)).fetchone()
                if not is_whole:
                    raise ValueError("its row is not as it was written")
            return request_from_dict(pickle.loads(body), spider=self._spider)  # noqa: S301  the operator's own file
        except Exception as error:  # whatever the objects in it raise
            raise LookupError(
                f"request {key} of `{self.path}` cannot be read: {printable(str(error))}"
            ) from error

    def through(self, key: int) -> None:
        """Do nothing: the request stays in the file until it is done."""

    def done(self, key: int) -> None:
        """The items of a request that is through are on the disk."""
        self._new.pop(key, None)
        self._done.append((key,))  # even then: a flush that failed may have written it

    def saw(self, fingerprint: bytes) -> None:
        """A request that could not be stored is done."""
        self.seen.add(fingerprint)
        self._new_seen.append((fingerprint,))

    def set_aside(self, host: str) -> None:
        """Nothing: the requests go on waiting here."""

    async def tries(self, origin: str, since: float, due: float, *, here: int) -> int:
        """Return `here`: the crawl has one process."""
        return here

    def flush(self) -> None:
        """Writes what was put and done since the last one. OSError where that fails for now: none of it is in the file, all of
        it is kept in memory, can be got, and goes with the next flush."""
        if not (self._new or self._new_seen or self._done):
            return
        try:
            with transaction(self._db):
                self._db.executemany(
                    "INSERT OR REPLACE INTO waiting VALUES (?1, ?2, ?3, ?4, checksum(?1, ?2, ?3, ?4))",
                    self._new.values(),
                )
                self._db.executemany("INSERT INTO seen VALUES (?)", self._new_seen)
                self._db.executemany("DELETE FROM waiting WHERE id = ?", self._done)
        except sqlite3.Error as error:
            raise OSError(f"{self.path} cannot be written: {printable(str(error))}") from None
        self._new.clear()
        self._new_seen.clear()
        self._done.clear()

    def close(self) -> None:
        """Close the file, with a last flush and its OSError. Another crawl may have the file from now on."""
        try:
            self.flush()
        finally:
            self._db.close()


def _bounded(priority: int) -> int:
    return min(max(priority, INTEGERS[0]), INTEGERS[-1])
