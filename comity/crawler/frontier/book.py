"""The book of the requests: those that are out, and those that the storage has.

How it works. The scheduler enters each new request (`enter`), and the storage keeps it, if there is
a storage that can. The Entry of the request is then in one place at a time:

    a host queue    The request waits. If the storage has it, only its key waits, until the request
                    is first in its queue (`read`).
    out             The request was handed out (`hand_out`), and is in the engine.
    held            A middleware returns the request (`hold`). The engine is about to put it into
                    the queue again (`take_back`).

When the request has left the engine, it is through (`note_through`): its callback, and the
pipelines of its items, have ended. Then the entry goes, and the book keeps only the key. writes.py
puts the items of requests that are through on the disk. After that the requests are done, and leave
the storage. Without a storage, the book remembers no requests but those that are held."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter

from comity.crawler.scrapy_internals import in_progress
from comity.policies import PolicyError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request
    from scrapy.statscollectors import StatsCollector

    from comity.crawler.frontier.queue import Queue

logger = logging.getLogger(__name__)


class Entry:
    """A request in the book.

    Attributes:
        request: The request.
        key: The key of the request in the storage; None if the storage does not have it.
        fingerprint: The fingerprint of a request that could not be stored. The storage gets it when
            the request is done. None if no filter asks for it.
        held_until: The moment when a held request may go out again, in monotonic seconds.
    """

    __slots__ = ("fingerprint", "held_until", "key", "request")

    def __init__(
        self, request: Request, key: int | None = None, fingerprint: bytes | None = None
    ) -> None:
        self.request = request
        self.key = key
        self.fingerprint = fingerprint
        self.held_until = 0.0


class QueueCounts:
    """The numbers of requests that were entered and handed out, for the statistics.

    A statistic costs as much as the rest of a hand-out, so `write` waits for an idle moment.

    Attributes:
        in_memory: The requests that were entered, and wait in memory only.
        stored: The requests that were entered and stored.
        handed_out: The requests that were handed out.
    """

    def __init__(self, stats: StatsCollector, storage: Queue | None) -> None:
        self._stats = stats
        self._kind = "memory" if storage is None else "shared" if storage.is_shared else "disk"
        self.in_memory = self.stored = self.handed_out = 0

    def write(self) -> None:
        """Add the numbers to the statistics."""
        for kind, number in (("memory", self.in_memory), (self._kind, self.stored)):
            if number:
                self._stats.inc_value("scheduler/enqueued", number)
                self._stats.inc_value(f"scheduler/enqueued/{kind}", number)
        if self.handed_out:
            self._stats.inc_value("scheduler/dequeued", self.handed_out)
            self._stats.inc_value(f"scheduler/dequeued/{self._kind}", self.handed_out)
        self.in_memory = self.stored = self.handed_out = 0


class Book:
    """The requests of the crawl that are out, held or through, and the way into the storage.

    Attributes:
        storage: The storage beyond this process; None if there is none.
        is_shared: True if a stored request waits at the worker that leases its host. False if it
            waits here.
        out: The requests that are out, if there is a storage.
        held: The requests on their way back to the queue.
        through: The keys of the requests that are through, and not done yet. If a request has no
            key, its fingerprint is here, or None.
        counts: The numbers for the statistics.
    """

    def __init__(self, crawler: Crawler, dupefilter: BaseDupeFilter, storage: Queue | None) -> None:
        assert crawler.request_fingerprinter is not None
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._dupefilter = dupefilter
        # The function that makes fingerprints; None if the dupefilter keeps its own.
        self._fingerprint = (
            crawler.request_fingerprinter.fingerprint
            if storage is not None and type(dupefilter) is RFPDupeFilter
            else None
        )
        self.storage = storage
        self.is_shared = storage is not None and storage.is_shared
        self.out: dict[Request, Entry] = {}
        self.held: dict[Request, Entry] = {}
        self.through: list[int | bytes | None] = []
        self.counts = QueueCounts(crawler.stats, storage)

    def enter(
        self, request: Request, origin: str, page: Request, *, is_filtered: bool
    ) -> Entry | None:
        """Enter a new request, and store it if possible. Return None if it was seen before.

        `page`: the request that the duplicate filter compares: `request`, or one for the same page.
        `is_filtered`: False if the request is not compared."""
        fingerprint = None
        if self._fingerprint is None:
            if is_filtered and not request.dont_filter and self._dupefilter.request_seen(page):
                return None
        elif is_filtered:
            assert self.storage is not None
            fingerprint = self._fingerprint(page)
            if self.storage.is_seen(fingerprint):
                return None
        if self.storage is None:
            self.counts.in_memory += 1
            return Entry(request)
        key = self.storage.put(origin, request, fingerprint)
        if key is None:
            self.counts.in_memory += 1
            self._stats.inc_value("scheduler/unserializable")
            return Entry(request, None, fingerprint)
        self.counts.stored += 1
        return Entry(request, key)

    def read(self, key: int) -> Entry | None:
        """Read a stored request. Return None, and log the reason, if it cannot be read."""
        assert self.storage is not None
        try:
            return Entry(self.storage.get(key), key)
        except LookupError as error:
            self._stats.inc_value("comity/scheduler/unreadable")
            logger.error(
                "%(setting)s: %(error)s", {"setting": self.storage.setting, "error": error}
            )
            return None

    def hand_out(self, entry: Entry) -> None:
        """Note that the request is out from now on."""
        self.counts.handed_out += 1
        if self.storage is not None:
            self.out[entry.request] = entry

    def hold(self, request: Request, until: float) -> None:
        """Note that a request that is out comes back, and may go out again at this moment."""
        self.counts.handed_out -= 1
        self._stats.inc_value("comity/scheduler/held")
        entry = self.out.pop(request, None)
        self.held[request] = entry = Entry(request) if entry is None else entry
        entry.held_until = until

    def take_back(self, request: Request) -> Entry | None:
        """Return the entry of a held request that comes back; None if it was not held."""
        return self.held.pop(request, None)

    def forget_stopped(self) -> None:
        """Count held requests as out again if they were stopped on their way back to the queue.

        A handler of `request_scheduled` may raise IgnoreRequest without the scheduler's knowledge.
        """
        with suppress(PolicyError):  # Scrapy does not show which requests are in progress
            progress = in_progress(self._crawler)
            for request in [request for request in self.held if request not in progress]:
                self.hand_out(self.held.pop(request))

    def note_through(self) -> None:
        """Note the requests that have left the engine."""
        if not self.out:
            return
        assert self.storage is not None
        progress = in_progress(self._crawler)
        for request in [request for request in self.out if request not in progress]:
            entry = self.out.pop(request)
            if entry.key is not None:
                self.storage.mark_through(entry.key)
            self.through.append(entry.fingerprint if entry.key is None else entry.key)

    def take_through(self) -> list[int | bytes | None]:
        """Return `through`, which is empty from now on."""
        through, self.through = self.through, []
        return through

    def mark_done(self, through: Iterable[int | bytes | None]) -> None:
        """Tell the storage that these requests, which were in `through`, are done."""
        assert self.storage is not None
        for key in through:
            if isinstance(key, int):
                self.storage.mark_done(key)
            elif key is not None:
                self.storage.mark_seen(key)
