"""Garbage collection while crawls go on: COMITY_GC.

What a crawl has loaded stays until its end, and the requests that wait have no cycles: by its defaults Python looks through all of
them again and again, which takes a fifth of the time of a crawl. So while any crawl goes on, what there was before it is left out,
and the youngest objects are looked through every 50,000 instead of every 700. The older generations follow as often as
before: responses and failures that refer to each other are found a few hundred pages later at most."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, ClassVar

from scrapy import signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

THRESHOLDS = (50_000, 10, 10)  # of gc.set_threshold


class GarbageCollection:
    """Sets the collector for all crawls of this process, and sets it back when the last one has ended."""

    _crawls: ClassVar[int] = 0
    _thresholds: ClassVar[tuple[int, int, int]]

    @classmethod
    def connect(cls, crawler: Crawler) -> None:
        crawler.signals.connect(cls._opened, signals.spider_opened)
        crawler.signals.connect(cls._closed, signals.spider_closed)

    @classmethod
    def _opened(cls) -> None:
        cls._crawls += 1
        if cls._crawls == 1:
            cls._thresholds = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)
            gc.freeze()

    @classmethod
    def _closed(cls) -> None:
        cls._crawls -= 1
        if not cls._crawls:
            gc.unfreeze()
            gc.set_threshold(*cls._thresholds)
