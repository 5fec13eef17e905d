"""Garbage collection while crawls run: COMITY_GC.

Objects that exist when a crawl begins stay until its end, and waiting requests have no cycles. By
its defaults Python looks through all of them again and again, which takes a fifth of the time of a
crawl. So while any crawl runs, older objects are frozen, and young objects are looked through every
50,000 instead of every 700. The older generations follow as many times later as before: responses
and failures that refer to each other are found after some hundred pages.

A process that forks may have frozen the objects that it shares with its children. They stay frozen:
to look through them once, after the crawl, costs more than a short crawl, and copies the shared
memory. comity checks for such objects once in a process, because Python counts them one by one.

Twisted drops cancelled timers only when another of its timers is due. No timer of Scrapy or comity
is due within four minutes, so the timers of all connections and responses of that time would be
kept. So this module sets a timer."""

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
FEW = 10_000  # objects; fewer count as not shared: Python 3.12 itself freezes some hundred


class GarbageCollection:
    """Extension: sets the collector for all crawls of this process.

    The end of the last crawl restores the collector."""

    _crawls: ClassVar[set[GarbageCollection]] = set()
    _thresholds: ClassVar[tuple[int, int, int]]
    _is_shared: ClassVar[bool | None] = None  # True if others froze objects; None: not checked yet
    _timer: ClassVar[LoopingCall | None] = None  # it has nothing to do but be due

    def __init__(self, crawler: Crawler) -> None:
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _open(self) -> None:
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

    def _close(self) -> None:
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
