"""Fetches what permissions ask to be used or included with a page (ACAP 1.0 section-2.5.3.2, section-2.5.5.2.5).

They go out like every request of the crawl: judged by the policies of their own site, and at its pace."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from scrapy.http import Request

from comity.crawler.addresses import Reach
from comity.crawler.exchange import PolicyExchange
from comity.policies.urls import origin_of
from comity.policies.values import Fetched

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

MAX_OF_A_PAGE = 4  # resources; a permission that asks for more than these cannot be used
MAX_KEPT = 64
FAILURE_KEPT = 60.0  # seconds


class Resources:
    """Keeps those that were asked for last. One request is under way for a URL."""

    def __init__(self, crawler: Crawler, *, timeout: float, patience: float) -> None:
        """`timeout`: seconds for one resource. `patience`: seconds more for which it may wait for its turn."""
        self._exchange = PolicyExchange(crawler, timeout=timeout, clock=time.time, patience=patience)
        self._kept: OrderedDict[str, tuple[float, Fetched]] = OrderedDict()
        self._flights: dict[str, asyncio.Task[Fetched]] = {}

    def asks_for(self, request: Request) -> bool:
        """Whether the request is for one of them."""
        return self._exchange.made(request)

    async def get(self, urls: Iterable[str], page_url: str, reach: Reach) -> dict[str, Fetched]:
        """What came back for the first MAX_OF_A_PAGE of the URLs. `reach`: of the server of the page."""
        asked = list(urls)[:MAX_OF_A_PAGE]
        origin = origin_of(page_url)
        found = await asyncio.gather(*(self._get(url, None if origin_of(url) == origin else reach) for url in asked))
        return dict(zip(asked, found, strict=True))

    async def _get(self, url: str, led_from: Reach | None) -> Fetched:
        key = f"{led_from.value if led_from else ''} {url}"
        until, fetched = self._kept.get(key, (0.0, None))
        if fetched is not None and time.time() < until:
            self._kept.move_to_end(key)
            return fetched
        if key not in self._flights:
            self._flights[key] = asyncio.create_task(self._fetch(key, url, led_from))
        return await asyncio.shield(self._flights[key])

    async def _fetch(self, key: str, url: str, led_from: Reach | None) -> Fetched:
        try:
            answer = await self._exchange.ask(url, None, led_from)
        except asyncio.CancelledError:
            return Fetched(status=0, error="the crawl is ending")
        finally:
            del self._flights[key]
        fetched = answer.fetched
        if fetched.oversized:
            fetched = Fetched(status=fetched.status, url=fetched.url, error="it is too large")
        self._kept[key] = time.time() + (answer.seconds or FAILURE_KEPT), fetched
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return fetched
