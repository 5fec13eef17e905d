"""The extension that writes the feeds: Scrapy's own, but it ends a crawl that loses items."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.job import job_dir
from twisted.internet.task import LoopingCall

from comity.crawler.crawl import ITEMS_LOST, Crawl
from comity.crawler.feeds.items_folder import WORKER, PartStorage, WorkerManifest, manifest_of
from comity.crawler.frontier.item_barrier import EACH, is_full, is_in_parts
from comity.crawler.scrapy_internals import next_batch


class Feeds(FeedExporter):
    """Ends the crawl if a feed cannot be written. Scrapy would log each lost item and go on.

    It completes the parts of COMITY_ITEMS in a crawl without JOBDIR and COMITY_STATE, or without
    comity's scheduler. Otherwise the item barrier completes them."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._options = Crawl.of(crawler).options
        self._manifest: WorkerManifest | None = None
        self._tick: AsyncioLoopingCall | LoopingCall | None = None
        self._closings: set[asyncio.Task[None]] = set()

    @property
    def _is_kept(self) -> bool:
        """True if the pages of lost items are fetched again."""
        return bool(job_dir(self.settings) or Crawl.of(self.crawler).state)

    def open_spider(self, spider: Spider) -> Any:
        """Open the feeds. Scrapy awaits the result, if it is not None."""
        super().open_spider(spider)
        worker = next((feed[WORKER] for feed in self.feeds.values() if WORKER in feed), None)
        if worker is None:
            return None
        self._manifest = manifest_of(self.crawler, worker)
        if not self._is_kept or Crawl.of(self.crawler).scheduler is None:
            self._tick = create_looping_call(self._begin_parts)
            self._tick.start(max(EACH, self._options.part_seconds), now=False)
        return self._watch_manifest(self._manifest.begin())

    async def _watch_manifest(self, writing: Awaitable[None]) -> None:
        try:
            await writing
        except Exception as error:  # the library of an object store may raise any
            self._end("COMITY_ITEMS", error)

    def _begin_parts(self) -> None:
        for slot in [*self.slots]:
            if is_in_parts(slot) and slot.itemcount:
                self._begin_part(slot)

    def _begin_part(self, slot: FeedSlot) -> None:
        closing = next_batch(self, slot)
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)

    def item_scraped(self, item: Any, spider: Spider) -> None:
        try:
            super().item_scraped(item, spider)
        except OSError as error:
            self._end(", ".join(slot.uri for slot in self.slots), error)
            if self._is_kept:
                raise  # so that the page of the item does not count as done
        for slot in [*self.slots] if self._tick is not None else ():
            if is_full(slot, self._options.part_octets):
                self._begin_part(slot)

    async def close_spider(self, spider: Spider, reason: str = "") -> None:
        if self._tick is not None:
            self._tick.stop()
        await super().close_spider(spider)
        await asyncio.gather(*self._closings)
        if self._manifest is not None:
            await self._watch_manifest(self._manifest.end(reason))

    async def _close_slot(self, slot: FeedSlot, spider: Spider) -> None:
        storage = slot.storage
        store = storage.store

        async def watched_store(file: Any) -> None:
            try:
                await ensure_awaitable(store(file))
                if self._manifest is not None and isinstance(storage, PartStorage):
                    await self._manifest.add(storage.part(slot.itemcount))
            except Exception as error:
                self._end(slot.uri, error)
                raise

        storage.store = watched_store  # type: ignore[assignment, method-assign]
        try:
            await super()._close_slot(slot, spider)
        except OSError as error:
            self._end(slot.uri, error)

    def _end(self, feed: str, error: Exception) -> None:
        Crawl.of(self.crawler).end(
            ITEMS_LOST,
            f"{feed} cannot be written ({error}): items are lost. Free space on its disk, or name"
            " another file or folder, and start the crawl again",
        )
