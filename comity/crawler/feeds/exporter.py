"""The extension that writes the feeds: Scrapy's own, but it ends a crawl that loses items."""

from __future__ import annotations

from typing import Any

from scrapy import Spider
from scrapy.extensions.feedexport import FeedExporter, FeedSlot
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.job import job_dir

from comity.crawler.crawl import ITEMS_LOST, Crawl


class Feeds(FeedExporter):
    """Ends the crawl if a feed cannot be written. Scrapy would log each lost item and go on."""

    def item_scraped(self, item: Any, spider: Spider) -> None:
        try:
            super().item_scraped(item, spider)
        except OSError as error:
            self._end(", ".join(slot.uri for slot in self.slots), error)
            if job_dir(self.settings) or Crawl.of(self.crawler).state:
                raise  # so that the page of the item does not count as done

    async def _close_slot(self, slot: FeedSlot, spider: Spider) -> None:
        store = slot.storage.store

        async def watched_store(file: Any) -> None:
            try:
                await ensure_awaitable(store(file))
            except Exception as error:
                self._end(slot.uri, error)
                raise

        slot.storage.store = watched_store  # type: ignore[assignment, method-assign]
        try:
            await super()._close_slot(slot, spider)
        except OSError as error:
            self._end(slot.uri, error)

    def _end(self, feed: str, error: Exception) -> None:
        Crawl.of(self.crawler).end(
            ITEMS_LOST,
            f"{feed} cannot be written ({error}): items are lost. Free space on its disk, or name"
            " another file, and start the crawl again",
        )
