"""The garbage collector is set while crawls go on, and set back after the last of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import signals
from scrapy.signalmanager import SignalManager

from comity.crawler.garbage import THRESHOLDS, GarbageCollection


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield 701, 11, 12
    gc.unfreeze()
    gc.set_threshold(*before)


def connected() -> Any:
    crawler: Any = SimpleNamespace()
    crawler.signals = SignalManager(crawler)
    crawler.garbage = GarbageCollection(crawler)  # signals hold their receivers weakly
    return crawler


def test_it_is_set_back_after_the_last_crawl(thresholds: tuple[int, int, int]) -> None:
    frozen = gc.get_freeze_count()
    first, second = connected(), connected()
    assert gc.get_threshold() == thresholds
    first.signals.send_catch_log(signals.spider_opened)
    assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count() > frozen
    second.signals.send_catch_log(signals.spider_opened)
    first.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == THRESHOLDS
    second.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0


def test_a_crawl_that_ends_without_having_begun_sets_nothing(thresholds: tuple[int, int, int]) -> None:
    """Scrapy says `spider_closed` of a crawl that another receiver of `spider_opened` has ended, before ours was called."""
    one = connected()
    one.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == thresholds
    other = connected()
    other.signals.send_catch_log(signals.spider_opened)
    assert gc.get_threshold() == THRESHOLDS
    other.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == thresholds
