"""Garbage collection while crawls go on: COMITY_GC.

What is there when a crawl begins stays until its end, and requests that wait have no cycles: by its defaults Python looks
through all of them again and again, for a fifth of the time of a crawl. So while any crawl goes on, what was there before is left
out, and young objects are looked through every 50,000 instead of every 700. The older generations follow as many times later as
before: responses and failures that refer to each other are found after some hundred pages.

A process that forks may have frozen what it shares with others. That is left as it is: to look through it once, after the crawl,
costs more than a short crawl, and copies the memory that is shared. Whether there is any is asked once in a process, as Python
counts it object by object.

Twisted drops timers that were cancelled only when another of its timers is due, and nothing of Scrapy or comity sets one that is
due before four minutes are over: the timers of all connections and responses of that time would be kept. So one is set."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, ClassVar, Self

from scrapy import signals
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.task import LoopingCall

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

THRESHOLDS = (50_000, 10, 10)  # of gc.set_threshold
DROP_EVERY = 5.0  # seconds
FEW = 10_000  # objects; Python 3.12 itself freezes some hundred


class GarbageCollection:
    """Extension: sets the collector for all crawls of this process, and sets it back when the last one has ended."""

    _crawls: ClassVar[set[GarbageCollection]] = set()
    _thresholds: ClassVar[tuple[int, int, int]]
    _is_shared: ClassVar[bool | None] = None  # others have frozen something; None: not asked yet
    _timer: ClassVar[LoopingCall | None] = None  # it does nothing but be due

    def __init__(self, crawler: Crawler) -> None:
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _opened(self) -> None:
        if not self._crawls:
            GarbageCollection._thresholds = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)
            if self._is_shared is None:
                GarbageCollection._is_shared = gc.get_freeze_count() >= FEW
            if not self._is_shared:
                gc.freeze()
            if is_reactor_installed():
                GarbageCollection._timer = LoopingCall(int)
                GarbageCollection._timer.start(DROP_EVERY, now=False)
        self._crawls.add(self)

    def _closed(self) -> None:
        if self not in self._crawls:
            return
        self._crawls.remove(self)
        if not self._crawls:
            if self._timer is not None:
                self._timer.stop()
                GarbageCollection._timer = None
            if not self._is_shared:
                gc.unfreeze()
            gc.set_threshold(*self._thresholds)
