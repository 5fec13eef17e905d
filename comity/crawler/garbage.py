"""Garbage collection while crawls run: COMITY_GC.

Objects that exist when a crawl begins stay until its end, and waiting requests have no cycles. With
its default thresholds Python's collector looks through all of them again and again, which takes a
fifth of the time of a crawl. While any crawl runs, this module therefore freezes the objects that
exist at the beginning of the first crawl, and starts the collector after 50,000 new objects instead
of 700. Responses and failures that refer to each other are found after some hundred pages.

Python collects the oldest generation after 100 collections of the youngest one, which would be once
in an hour or two. An object that has survived two collections before it is dropped would stay until
then: for example every connection that was kept alive for some minutes, because Twisted's objects
for a connection refer to each other. The memory of a crawl over many hosts would grow by all its
closed connections. So this module collects the oldest generation each minute, or more rarely, so
that this takes at most 0.5 % of one core.

A process that forks may have frozen the objects that it shares with its children. If so, this
module never unfreezes them. One collection of them after the crawl would take longer than a short
crawl, and would copy the shared memory. comity checks for frozen objects once in a process, because
Python counts them one by one.

Twisted drops cancelled timers only when another of its timers is due. No timer of Scrapy or comity
is due within four minutes, so Twisted would keep the timers of all connections and responses of
these minutes. A timer of this module is due every 5 seconds, so that they are dropped. The timer
also starts the collections."""

from __future__ import annotations

import gc
from time import monotonic, thread_time
from typing import TYPE_CHECKING, ClassVar, Self

from scrapy import signals
from scrapy.utils.asyncio import AsyncioLoopingCall
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.task import LoopingCall

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

THRESHOLDS = (50_000, 10, 10)  # of gc.set_threshold
DROP_EVERY = 5.0  # seconds
COLLECT_EVERY = 60.0  # the minimum seconds between two collections of the oldest generation
SHARE = 0.005  # the maximum CPU seconds of these collections in a second
# Fewer frozen objects are no sign of a fork: Python 3.12 itself freezes some hundred.
FEW = 10_000


class GarbageCollection:
    """Extension: configures the garbage collector from the first crawl of this process to the last.

    When the last running crawl ends, the thresholds before are restored."""

    _crawls: ClassVar[set[GarbageCollection]] = set()
    _thresholds: ClassVar[tuple[int, int, int]]
    _is_shared: ClassVar[bool | None] = None  # True if others froze objects; None: not checked yet
    _timer: ClassVar[LoopingCall | AsyncioLoopingCall | None] = None
    _collect_at: ClassVar[float]  # monotonic seconds

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
            GarbageCollection._collect_at = monotonic() + COLLECT_EVERY
            kind = LoopingCall if is_reactor_installed() else AsyncioLoopingCall
            GarbageCollection._timer = kind(self._collect)
            GarbageCollection._timer.start(DROP_EVERY, now=False)
        self._crawls.add(self)

    @classmethod
    def _collect(cls) -> None:
        """Collect all generations if it is time."""
        if monotonic() >= cls._collect_at:
            began = thread_time()
            gc.collect()
            spent = thread_time() - began
            cls._collect_at = monotonic() + max(COLLECT_EVERY, spent / SHARE)

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
