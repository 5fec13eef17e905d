"""The queue of a crawl on disk. A crawl with a JOBDIR can be stopped or killed, and continues.

A body is a pickle, as in Scrapy's own JOBDIR, so code in this folder can run as the operator. This
file is the only one that is unpickled. Data of sites never gets into it as a pickle."""

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
from comity.database import DatabaseKind, checksum, open_database, transaction
from comity.gc_pause import gc_paused
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
INTEGERS = range(-(2**63), 2**63)  # the integers of SQLite
_VERBATIM = "verbatim_url"  # key of request.meta: Scrapy takes the URL as it is
IDS = range(2**62)  # valid ids: the following ones are integers of SQLite too

# `id` is the order of arrival. `seen` is read as a whole at the start and searched in memory, so an
# index would have a cost and no use.
SCHEMA = """
CREATE TABLE waiting (
    id INTEGER PRIMARY KEY, origin TEXT NOT NULL, priority INTEGER NOT NULL, body BLOB NOT NULL,
    sum BLOB NOT NULL
);
CREATE TABLE seen (fingerprint BLOB NOT NULL);
CREATE TABLE taken_over (mark INTEGER NOT NULL);
"""
KIND = DatabaseKind(
    subject="JOBDIR:",
    name="queue of comity",
    remedy=REMEDY,
    application_id=APPLICATION_ID,
    schema=SCHEMA,
    alone="set JOBDIR to a folder of this crawl's own",
)


class Journal:
    """A Queue in one SQLite file: the requests that are not done, and all fingerprints.

    `flush` writes all changes or none. So a request leaves the file only together with, or after,
    the arrival of the requests that it led to. A killed process loses the changes since its last
    flush. The next process gets the requests that were not done then, including those that were
    out. A power cut may also undo the last flushes, each as a whole, and the last one first."""

    setting = "JOBDIR"
    is_shared = False
    run = 1
    is_finished = True  # no request waits elsewhere: the file belongs to this process alone

    def __init__(self, folder: Path) -> None:
        """Open the file for this process alone.

        PolicyError, with what to do about it: it cannot be used. It is never repaired or removed.
        """
        self.path = folder / NAME
        self._spider: Spider | None = None
        self._new: dict[int, tuple[int, str, int, bytes]] = {}  # rows for the next flush
        self._new_seen: list[tuple[bytes]] = []
        self._done: list[tuple[int]] = []
        self._warned = False
        self._db = open_database(self.path, KIND)
        try:
            with gc_paused():
                self.seen: set[bytes] = {
                    seen for (seen,) in self._db.execute("SELECT fingerprint FROM seen")
                }
            (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM waiting").fetchone()
            if last not in IDS:
                raise ValueError("a request has an impossible number")
        except (sqlite3.Error, ValueError) as error:
            self._db.close()
            raise self._damage_error(error) from None
        self._first = self._next = int(last) + 1
        self.has_begun = bool(self.seen or last)

    def _damage_error(self, error: Exception) -> PolicyError:
        return PolicyError(f"JOBDIR: `{self.path}` is damaged: {printable(str(error))}; {REMEDY}")

    def open(self, spider: Spider) -> None:
        """Store callbacks and errbacks as the names of this spider's methods."""
        self._spider = spider

    @property
    def mark(self) -> int | None:
        """The mark of the queue that was taken over, until its files are put aside; then None."""
        try:
            (mark,) = self._db.execute("SELECT max(mark) FROM taken_over").fetchone()
            return None if mark is None else int(mark)
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            raise self._damage_error(error) from None

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
        """Store requests behind the present ones, and the mark, in one transaction.

        Return their number. `filtered`: True to leave out requests that were seen here.
        OSError: it fails, and nothing is stored."""
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
                        _clamp(request.priority),
                        self._pickle(request),
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

    def stored_requests(self) -> Iterator[tuple[int, str, int]]:
        """Yield key, origin and priority of the requests that the last crawl has left.

        They were waiting or out at its end. Higher priority first, in order of arrival within one
        priority. PolicyError: the file is damaged."""
        query = "SELECT id, origin, priority FROM waiting WHERE id < ? ORDER BY priority DESC, id"
        try:
            for key, origin, priority in self._db.execute(query, (self._first,)):
                if not (type(origin) is str and type(priority) is int):
                    raise ValueError("a request waits for no site")
                yield key, origin, priority
        except (sqlite3.Error, ValueError) as error:
            raise self._damage_error(error) from None

    def begin(self, taker: Taker) -> None:
        """Let the stored requests arrive. They are never lost to other processes.

        PolicyError: the file is damaged."""
        with gc_paused():
            for key, origin, priority in self.stored_requests():
                taker.receive(key, origin, priority)

    def is_seen(self, fingerprint: bytes) -> bool:
        return fingerprint in self.seen

    def put(self, origin: str, request: Request, fingerprint: bytes | None) -> int | None:
        """Store a request and return its key. `fingerprint`: None if no filter asks for it.

        None: it cannot be stored, e.g. because its callback is not a method of the spider, and the
        caller has to keep it. Its fingerprint counts as seen in this crawl, but `mark_seen` writes
        it later: a crawl that continues without the request must be free to make it again."""
        if fingerprint is not None:
            self.seen.add(fingerprint)
        try:
            body = self._pickle(request)
        except Exception as error:  # the objects in its meta may raise any
            if not self._warned:
                self._warned = True
                logger.warning(
                    "%(request)s waits in memory, and is lost when the crawl ends, because it"
                    " cannot be stored in JOBDIR: %(reason)s (further requests are not reported)",
                    {"request": request, "reason": error},
                )
            return None
        key = self._next
        self._next += 1
        self._new[key] = (key, origin, _clamp(request.priority), body)
        if fingerprint is not None:
            self._new_seen.append((fingerprint,))
        return key

    def _pickle(self, request: Request) -> bytes:
        members = request.to_dict(spider=self._spider)
        if "_class" in members and load_object(members["_class"]) is not type(request):
            raise ValueError(f"`{members['_class']}` is not its class")
        return pickle.dumps(members, pickle.HIGHEST_PROTOCOL)

    def _unpickle(self, body: bytes) -> Request:
        members = pickle.loads(body)  # noqa: S301  # the file is the operator's own
        if "_class" in members or _VERBATIM in members["meta"]:
            return request_from_dict(members, spider=self._spider)
        # The URL of a Request is escaped. To escape it again takes half of the time of this method.
        # The changed meta is a copy, because cb_kwargs may refer to the request's own.
        members["meta"] = {**members["meta"], _VERBATIM: True}
        request = request_from_dict(members, spider=self._spider)
        del request.meta[_VERBATIM]
        return request

    def get(self, key: int) -> Request:
        """Return the request, as a new object each time.

        LookupError: it cannot be read, e.g. because the spider no longer has its callback, or its
        row is damaged. It stays in the file, for a crawl that can read it."""
        try:
            if (row := self._new.get(key)) is not None:
                body = row[3]
            else:
                query = "SELECT origin, priority, body, sum FROM waiting WHERE id = ?"
                origin, priority, body, stored_sum = self._db.execute(query, (key,)).fetchone()
                if stored_sum != checksum(key, origin, priority, body):
                    raise ValueError("its row has changed since it was written")
            return self._unpickle(body)
        except Exception as error:  # the objects in it may raise any
            raise LookupError(
                f"request {key} of `{self.path}` cannot be read: {printable(str(error))}"
            ) from error

    def mark_through(self, key: int) -> None:
        """Do nothing: the request stays in the file until it is done."""

    def mark_done(self, key: int) -> None:
        """Note that the items of a request that is through are on the disk."""
        self._new.pop(key, None)
        self._done.append((key,))  # even if it is new: a flush that failed may have written it

    def mark_seen(self, fingerprint: bytes) -> None:
        """Note that a request that could not be stored is done."""
        self.seen.add(fingerprint)
        self._new_seen.append((fingerprint,))

    def set_aside(self, host: str) -> None:
        """Do nothing: the requests go on waiting here."""

    async def tries(self, origin: str, since: float, due: float, *, here: int) -> int:
        """Return `here`: the crawl has one process."""
        return here

    def flush(self) -> None:
        """Write the changes since the last flush.

        OSError: it fails for now. Then none of the changes is in the file. All of them are kept in
        memory, are available, and are written by the next flush."""
        if not (self._new or self._new_seen or self._done):
            return
        try:
            with transaction(self._db):
                self._db.executemany(
                    "INSERT OR REPLACE INTO waiting"
                    " VALUES (?1, ?2, ?3, ?4, checksum(?1, ?2, ?3, ?4))",
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
        """Close the file, after a last flush with its OSError. Another crawl may use it then."""
        try:
            self.flush()
        finally:
            self._db.close()


def _clamp(priority: int) -> int:
    return min(max(priority, INTEGERS[0]), INTEGERS[-1])
