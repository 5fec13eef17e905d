"""Items are on the disk before their pages count as done.

How it works. A page is through when its callback and the pipelines of its items have ended. Its
items may still be in the buffer of a feed or pipeline, and `kill -9` loses a buffer. Therefore the
scheduler notes the pages that are through, calls `ItemBarrier.store` to put all items on the disk,
and then marks the noted pages as done. Pages that are through only after the call wait for the next
one.

A feed is stored in one of two ways (comity/crawler/feeds/storage.py decides which):

    added to        The file can be read up to any whole record. Its buffer is written, and the
                    file is put on the disk.
    in parts        The file can be read, or is uploaded, only when it is complete. It is completed,
                    and the next items go to another file, as with Scrapy's own batches. A part of
                    COMITY_PART_OCTETS is completed at once.

If a feed fails, it has lost items for good. Then no further page is marked as done, and the crawl
ends. When it is started again, it fetches the pages of these items once more."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from io import UnsupportedOperation
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import signals

from comity.crawler.scrapy_internals import feed_exporter, next_batch

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.extensions.feedexport import FeedExporter, FeedSlot

Flush = Callable[[], Awaitable[object] | None]  # writes the items that a pipeline holds

STORED = "comity_stored"  # option of a feed: PARTS, or a format whose files are added to
PARTS = "parts"
EACH = 1.0  # seconds between two times, at least
# Greatest number of pages that wait for a part of a feed to be completed. A worker cannot release
# their hosts before.
MOST_PAGES = 2_500
FAILED = "feedexport/failed_count/"  # begins Scrapy's statistics of files that could not be stored
NO_DISK = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)  # errors of fsync() for a pipe or a terminal


class ItemsLostError(OSError):
    """A feed has lost items."""


class ItemBarrier:
    """The step between pages that are through and pages that are done."""

    def __init__(
        self,
        crawler: Crawler,
        flushes: Sequence[Flush],
        part_seconds: float,
        part_octets: int,
    ) -> None:
        """`flushes`: functions of pipelines that buffer items; more may be added later.

        `part_seconds`: seconds that a part of a feed grows, at least. `part_octets`: the size at
        which a part is complete. 0: any size."""
        self._crawler = crawler
        self._flushes = flushes
        self._part_seconds = part_seconds
        self._part_octets = part_octets
        self._exporter: FeedExporter | None = None
        self._batches: dict[str, int] = {}  # feed -> items of a batch; 0: any number
        self._stored: WeakKeyDictionary[FeedSlot, int] = WeakKeyDictionary()  # items on the disk
        self._stored_at = monotonic()
        self._is_storing = False
        self._closings: set[asyncio.Task[None]] = set()  # tasks that close parts and batches
        self._error: Exception | None = None  # the error of a feed that has lost items
        self.has_failed = False  # True if ItemsLostError was raised

    def open(self) -> None:
        """Watch the feeds, before the first item comes.

        The barrier begins the batches of FEED_EXPORT_BATCH_ITEM_COUNT itself: Scrapy does not tell
        when a batch is stored."""
        self._exporter = feed_exporter(self._crawler)
        if self._exporter is None:
            return
        for uri, feed in self._exporter.feeds.items():
            self._batches[uri], feed["batch_item_count"] = feed["batch_item_count"], 0
        self._crawler.signals.disconnect(self._exporter.item_scraped, signals.item_scraped)
        self._crawler.signals.connect(self._hand_to_feeds, signals.item_scraped)

    def _hand_to_feeds(self, item: Any, spider: Spider) -> None:
        """Hand an item to the feeds. Scrapy logs the error of a feed and goes on."""
        assert self._exporter is not None
        try:
            self._exporter.item_scraped(item, spider)
        except OSError as error:
            self._error = self._error or error
            raise
        for slot in [*self._exporter.slots]:
            is_whole = 0 < self._batches[slot.uri_template] <= slot.itemcount
            if is_whole or is_full(slot, self._part_octets):
                self._closings.add(next_batch(self._exporter, slot))

    @property
    def is_clear(self) -> bool:
        """True if no feed and no pipeline can hold an item of a page that is through."""
        if self._is_storing or self._closings or self._error or self._flushes:
            return False
        return self._exporter is None or not self._files_to_store(self._exporter)

    def is_due(self, pages: int, *, is_idle: bool) -> bool:
        """Return True if it is time to call `store`.

        `pages`: the number of pages that are through. `is_idle`: True if no page waits or is out
        here, so that no part of a feed would grow."""
        slots = self._exporter.slots if self._exporter is not None else ()
        grows = any(map(is_in_parts, slots)) and pages < MOST_PAGES and not is_idle
        seconds = self._part_seconds if grows else EACH
        is_over = monotonic() >= self._stored_at + seconds
        return is_over and not (self._is_storing or self.has_failed)

    def _files_to_store(self, exporter: FeedExporter) -> list[FeedSlot]:
        """Return the files that have items which are not on the disk yet."""
        return [slot for slot in exporter.slots if slot.itemcount > self._stored.get(slot, 0)]

    async def store(self) -> None:
        """Put the items of all pages that are through on the disk.

        ItemsLostError: a feed has lost items. Any other error is a pipeline's: the next time
        may succeed."""
        self._is_storing = True
        try:
            if self._exporter is not None:
                await self._store_feeds(self._exporter)
            for flush in self._flushes:
                if (flushed := flush()) is not None:
                    await flushed
        finally:
            self._is_storing = False
            self._stored_at = monotonic()

    async def _store_feeds(self, exporter: FeedExporter) -> None:
        counts: dict[FeedSlot, int] = {}
        with ExitStack() as stack:
            try:
                descriptors: list[int] = []
                for slot in self._files_to_store(exporter):
                    if is_in_parts(slot):
                        self._closings.add(next_batch(exporter, slot))
                        continue
                    assert slot.file is not None
                    slot.file.flush()
                    counts[slot] = slot.itemcount
                    with suppress(UnsupportedOperation):  # a file in memory
                        # A copy, because the next batch may close the file meanwhile.
                        descriptors.append(os.dup(slot.file.fileno()))
                        stack.callback(os.close, descriptors[-1])
                closings, self._closings = self._closings, set()
                await asyncio.gather(asyncio.to_thread(put_on_disk, descriptors), *closings)
            except Exception as error:  # the library of a storage may raise any
                self._error = self._error or error
        assert self._crawler.stats is not None
        if self._error is None and any(map(_is_failure, self._crawler.stats.get_stats())):
            self._error = OSError("a feed could not be stored")
        if self._error is not None:
            self.has_failed = True
            raise ItemsLostError(f"items are lost: {self._error}")
        self._stored.update(counts)


def is_in_parts(slot: FeedSlot) -> bool:
    return bool(slot.feed_options.get(STORED) == PARTS)


def is_full(slot: FeedSlot, octets: int) -> bool:
    """Return True if a file is a part with so many octets. `octets`: 0 for any number."""
    if not octets or slot.file is None or not slot.itemcount or not is_in_parts(slot):
        return False
    try:
        return slot.file.tell() >= octets
    except (OSError, ValueError):  # a file that is packed, or in memory
        return False


def _is_failure(statistic: str) -> bool:
    return statistic.startswith(FAILED)


def put_on_disk(descriptors: Sequence[int]) -> None:
    """Put files on the disk. OSError: it fails. Pipes are skipped, as they have no disk."""
    for descriptor in descriptors:
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in NO_DISK:
                raise
