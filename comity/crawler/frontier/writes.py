"""The writes of the book: requests that are through are done when their items are on the disk.

How it works. Each FLUSH seconds, the book notes which requests are through. If no feed and no
pipeline can hold an item of their pages, these requests are done at once. Otherwise the item
barrier (item_barrier.py) puts the items on the disk first, from time to time. Then the storage
writes the requests that were put, and those that are done.

So a request leaves the storage together with the requests found in its response, or after them.
When a killed crawl is started again, it repeats the requests that were not done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sized
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import CallLaterResult, call_later

from comity.crawler.crawl import CANNOT_WRITE, ITEMS_LOST, Crawl
from comity.crawler.frontier.book import Book
from comity.crawler.frontier.complaints import Complaints
from comity.crawler.frontier.item_barrier import ItemBarrier, ItemsLostError
from comity.crawler.frontier.queue import Queue
from comity.database import PATIENCE

if TYPE_CHECKING:
    from scrapy import Spider

logger = logging.getLogger(__name__)

FLUSH = 0.05  # seconds between two writes


class Writes:
    """Writes the book into its storage while the crawl goes on, and a last time at the end."""

    def __init__(
        self, crawl: Crawl, barrier: ItemBarrier, book: Book, storage: Queue, waiting: Sized
    ) -> None:
        """`waiting`: the requests that wait here."""
        self._crawl = crawl
        self._barrier = barrier
        self._book = book
        self._storage = storage
        self._waiting = waiting
        self._tick: CallLaterResult | None = None
        self._storing: asyncio.Task[None] | None = None
        self._complaints = Complaints(storage.setting)
        self._failing_since: float | None = None  # monotonic seconds; None: the last write worked

    def open(self, spider: Spider) -> Awaitable[None] | None:
        """Open the storage. If an awaitable is returned, it is open when that was awaited."""
        self._barrier.open()
        return self._storage.open(spider)

    def write(self) -> None:
        """Write the changes, now and again each FLUSH seconds."""
        self._tick = call_later(FLUSH, self.write)
        self._book.note_through()
        if through := self._book.through:
            if self._barrier.is_clear:
                self._book.mark_done(self._book.take_through())
            elif self._barrier.is_due(
                len(through), is_idle=not (self._book.out or self._book.held or self._waiting)
            ):
                self._storing = asyncio.create_task(self._store())
        try:
            self._storage.flush()
            self._failing_since = None
        except OSError as error:
            self._complaints.log(f"{error}; comity tries again")
            self._give_up_if_it_fails_on(error)

    def _give_up_if_it_fails_on(self, error: OSError) -> None:
        """End the crawl if its file in JOBDIR could not be written for PATIENCE seconds.

        If the process were killed later, more and more work would be lost. A shared state never
        ends the crawl, because its server may be back at any time."""
        if self._failing_since is None:
            self._failing_since = monotonic()
        elif not self._storage.is_shared and monotonic() >= self._failing_since + PATIENCE:
            self._crawl.end(
                CANNOT_WRITE,
                f"{self._storage.setting}: {error}. Free space on its disk, and start the crawl"
                " again: it goes on with what was written last",
            )

    async def _store(self) -> None:
        """Put the items of requests that are through on the disk, then count them as done."""
        through = self._book.take_through()
        try:
            await self._barrier.store()
        except ItemsLostError as error:
            self._crawl.end(
                ITEMS_LOST,
                f"{self._storage.setting}: {error}. If you start the crawl again, it fetches their"
                " pages once more",
            )
        except Exception as error:  # the flush of a pipeline may raise any
            self._book.through[:0] = through
            self._complaints.log(f"{error}; comity tries again")
        else:
            self._book.mark_done(through)

    async def close(self) -> None:
        """Write for the last time, and close the storage. Scrapy closes its feeds later."""
        if self._tick is not None:
            self._tick.cancel()
        try:
            await self._store_last()
            if (closing := self._storage.close()) is not None:
                await closing
        except OSError as error:
            logger.error(
                "%(setting)s: %(error)s; it lacks the latest changes",
                {"setting": self._storage.setting, "error": error},
            )

    async def _store_last(self) -> None:
        """Let all requests that are through be done."""
        if self._storing is not None:
            await self._storing
        self._book.note_through()
        if not self._barrier.has_failed:
            await self._store()
        if self._book.through:
            logger.warning(
                "%(setting)s: the items of %(number)d pages are not stored. If you start the crawl"
                " again, it fetches these pages again",
                {"setting": self._storage.setting, "number": len(self._book.through)},
            )
