"""The counts of this worker, as the server of COMITY_STATE gets them, and the limits of the crawl.

The counts are the statistics that count events. The server has the counts of each worker, and adds
them up. They are sent before the server is told which requests are done. So whatever is done is
counted, even if the worker is killed in the next moment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from comity.cluster.queue import Sums
from comity.cluster.state import CrawlQueue

EACH = 0.5  # seconds between two times that counts are sent, if no request is done
# Statistics that count events. Others are about a moment, or about one process.
_COUNTED = re.compile(
    r"(comity/(?!scheduler/(left|set-aside)$)|downloader/|dupefilter/|item_|log_count/|offsite/"
    r"|response_received_count$|retry/|spider_exceptions/|httperror/|httpcache/|file_|image_)"
)
ITEMS, PAGES, ERRORS = "item_scraped_count", "response_received_count", "spider_exceptions/count"


class CrawlCounts:
    """The counts of this worker, and those of them that the server has."""

    def __init__(self, stats: Callable[[], Mapping[str, Any]], queue: CrawlQueue) -> None:
        """`stats`: returns the statistics of this worker."""
        self._stats = stats
        self._queue = queue
        self._told: dict[str, int] = {}
        self._told_at = 0.0
        queue.on_change(self._told.clear)  # another server may lack the last ones

    def _news(self) -> dict[str, int]:
        told = self._told
        return {
            name: value
            for name, value in self._stats().items()
            if type(value) is int and told.get(name) != value and _COUNTED.match(name)
        }

    async def tell(self, *, now: bool = False) -> None:
        """Send the counts that have changed. `now`: True to send them before EACH is over."""
        if not now and monotonic() < self._told_at + EACH:
            return
        self._told_at = monotonic()
        if news := self._news():
            await self._queue.tell(news)
            self._told |= news


class CrawlLimits:
    """The limits CLOSESPIDER_* of the whole crawl. False if none is set."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        """`limits`: the settings by their names; 0: no limit."""
        self._limits = {name: limit for name, limit in limits.items() if limit}
        self._items = -1  # items of the crawl when their number changed last, and then:
        self._pages = 0
        self._seconds = 0.0

    def __bool__(self) -> bool:
        return bool(self._limits)

    def reached(self, sums: Sums) -> str:
        """Return the finish reason for the limit that is reached; "": none is.

        `sums`: those of ITEMS, PAGES and ERRORS."""
        items, pages, errors = sums.counts
        if items != self._items:
            self._items, self._pages, self._seconds = items, pages, sums.began
        values = {
            "TIMEOUT": sums.began,
            "ITEMCOUNT": items,
            "PAGECOUNT": pages,
            "ERRORCOUNT": errors,
            "TIMEOUT_NO_ITEM": sums.began - self._seconds,
            "PAGECOUNT_NO_ITEM": pages - self._pages,
        }
        for name, value in values.items():
            limit = self._limits.get(f"CLOSESPIDER_{name}")
            if limit and value >= limit:
                return f"closespider_{name.lower()}"
        return ""
