"""The slots of Scrapy's downloader: requests do not wait in them, because they come in their turn.

All code that touches the slots is here. It uses the private name `downloader._get_slot`. With a
Scrapy that does not have it, Scrapy's own delay adds to ours, and Scrapy's queue does not know
which hosts wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.http import Request
from scrapy.utils.httpobj import urlparse_cached

from comity.crawler.scrapy_internals import downloader_of
from comity.gate.pace.pace import Pace

if TYPE_CHECKING:
    from scrapy.core.downloader import Slot
    from scrapy.crawler import Crawler


class Slots:
    """Removes the delays of slots while requests wait in them, and restores AutoThrottle's delay.

    AutoThrottle needs its last delay to compute the next one."""

    def __init__(self, crawler: Crawler, pace: Pace) -> None:
        self._crawler = crawler
        self._pace = pace
        self._throttles = crawler.settings.getbool("AUTOTHROTTLE_ENABLED")
        if self._throttles:
            crawler.signals.connect(self._headers_received, signals.headers_received)

    def free(self, request: Request) -> None:
        """Take Scrapy's own delay off the slot of a request that has had its turn.

        With the delay, the request would wait twice, in the wrong place.

        Call this for every request, because Scrapy forgets idle slots and AutoThrottle sets their
        delays. A slot that the project has chosen itself, by meta and with an entry in
        DOWNLOAD_SLOTS, stays as it is."""
        downloader = downloader_of(self._crawler)
        if downloader is None:
            return
        key = downloader.get_slot_key(request)
        # In all other cases the key is the host.
        if "download_slot" in request.meta or key in downloader.per_slot_settings:
            host = urlparse_cached(request).hostname or ""
            if key != host and key not in downloader.per_slot_settings:
                request.meta.pop("download_slot", None)  # the slot of the host that redirected here
                key = downloader.get_slot_key(request)
            if key in downloader.per_slot_settings and key != host:
                return
        slot: Slot | None = downloader.slots.get(key)
        # `_get_slot` makes the slot, and cleans it up when it is idle.
        if slot is None and hasattr(downloader, "_get_slot"):
            slot = downloader._get_slot(request)[1]
            if self._throttles and (delay := self._pace.host(request.url).throttle):
                slot.delay = delay
        if slot is not None:
            if self._throttles and slot.delay:
                self._pace.host(request.url).throttled(slot.delay)
            slot.concurrency, slot.delay = sys.maxsize, 0.0

    @contextmanager
    def occupy(self, request: Request) -> Iterator[None]:
        """Count the request for its slot while it waits here.

        Scrapy's own queue prefers hosts with fewer requests in their slots."""
        downloader = downloader_of(self._crawler)
        if downloader is None or not hasattr(downloader, "_get_slot"):
            yield
            return
        slot: Slot = downloader._get_slot(request)[1]
        slot.active.add(request)
        try:
            yield
        finally:
            slot.active.discard(request)

    def _headers_received(self, request: Request) -> None:
        """Give the slot the delay that AutoThrottle set last, from which it computes the next."""
        downloader = downloader_of(self._crawler)
        slot = downloader.slots.get(downloader.get_slot_key(request)) if downloader else None
        if slot is not None and slot.delay == 0.0:
            slot.delay = self._pace.host(request.url).throttle
