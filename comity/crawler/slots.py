"""Everything that touches the slots of Scrapy's downloader: they wait for nothing, as requests come to them in their turn.

Private name, and what happens where a Scrapy does not have it: `downloader._get_slot` (Scrapy's own delay adds to ours, and its
queue does not know which hosts wait)."""

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
    """A slot has no delay while a request waits in it, and AutoThrottle's while that is reckoned anew."""

    def __init__(self, crawler: Crawler, pace: Pace) -> None:
        self._crawler = crawler
        self._pace = pace
        self._throttles = crawler.settings.getbool("AUTOTHROTTLE_ENABLED")
        if self._throttles:
            crawler.signals.connect(self._headers_received, signals.headers_received)

    def free(self, request: Request) -> None:
        """Takes Scrapy's own delay off the slot of a request that has had its turn: it would wait twice, in the wrong place.

        To be asked for every request, as Scrapy forgets idle slots and AutoThrottle sets their delays. A slot that the
        project chose itself, by meta and with an entry in DOWNLOAD_SLOTS, stays as it is."""
        downloader = downloader_of(self._crawler)
        if downloader is None:
            return
        key = downloader.get_slot_key(request)
        if (
            "download_slot" in request.meta or key in downloader.per_slot_settings
        ):  # else it is the host's
            host = urlparse_cached(request).hostname or ""
            if key != host and key not in downloader.per_slot_settings:
                request.meta.pop("download_slot", None)  # of the host that redirected here
                key = downloader.get_slot_key(request)
            if key in downloader.per_slot_settings and key != host:
                return
        slot: Slot | None = downloader.slots.get(key)
        if slot is None and hasattr(
            downloader, "_get_slot"
        ):  # it makes the slot, and cleans it up when it is idle
            slot = downloader._get_slot(request)[1]
            if self._throttles and (delay := self._pace.host(request.url).throttle):
                slot.delay = delay
        if slot is not None:
            if self._throttles and slot.delay:
                self._pace.host(request.url).throttled(slot.delay)
            slot.concurrency, slot.delay = sys.maxsize, 0.0

    @contextmanager
    def occupy(self, request: Request) -> Iterator[None]:
        """Count the request for its slot while it waits here: Scrapy's own queue goes on with hosts that have fewer there."""
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
        """AutoThrottle reckons from the delay that it set last."""
        downloader = downloader_of(self._crawler)
        slot = downloader.slots.get(downloader.get_slot_key(request)) if downloader else None
        if slot is not None and slot.delay == 0.0:
            slot.delay = self._pace.host(request.url).throttle
