"""The timer that wakes the engine when the next host queue is due."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import CallLaterResult, call_later

from comity.crawler.scrapy_internals import wake

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class WakeTimer:
    """Wakes the engine at one moment, which `set` may change."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._call: CallLaterResult | None = None
        self._due = 0.0  # monotonic seconds

    def set(self, due: float | None) -> None:
        """Wake the engine at this moment and at no other. `due`: monotonic seconds; None: never."""
        if self._call is not None:
            if due == self._due:
                return
            self._call.cancel()
            self._call = None
        if due is not None:
            self._due = due
            self._call = call_later(max(0.0, due - monotonic()), self._wake)

    def _wake(self) -> None:
        self._call = None
        wake(self._crawler)
