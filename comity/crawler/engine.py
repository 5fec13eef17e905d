"""Everything that reaches into Scrapy's engine and downloader beyond their documented interface.

Private names: `engine._slot.nextcall` and `engine._slot.inprogress`. No other module may use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


@contextmanager
def lent_place(crawler: Crawler) -> Iterator[None]:
    """While it is open, what waits does not take one of the CONCURRENT_REQUESTS places from the pages.

    Whatever is in the downloader's `active` set counts, though it may only wait for a policy file or a due time."""
    downloader = crawler.engine.downloader if crawler.engine else None
    if downloader is None or downloader.total_concurrency <= 0:  # 0: no limit
        yield
        return
    downloader.total_concurrency += 1
    try:
        yield
    finally:
        downloader.total_concurrency -= 1
