"""The garbage collector is set while crawls go on, and set back after the last of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest
from scrapy import Spider, signals
from scrapy.signalmanager import SignalManager

from comity.crawler import garbage
from comity.crawler.garbage import COLLECT_EVERY, SHARE, THRESHOLDS, GarbageCollection

if TYPE_CHECKING:
    from tests.conftest import Crawled


@pytest.fixture(autouse=True)
def thresholds(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int, int]]:
    monkeypatch.setattr(GarbageCollection, "_is_shared", None)  # as in a new process
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    gc.unfreeze()  # what conftest.py has frozen
    yield 701, 11, 12
    gc.freeze()
    gc.set_threshold(*before)


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """A loop for the timer. It does not run."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield
    asyncio.set_event_loop(None)


def connected() -> Any:
    crawler: Any = SimpleNamespace()
    crawler.signals = SignalManager(crawler)
    crawler.garbage = GarbageCollection(crawler)  # signals hold their receivers weakly
    return crawler


def test_it_is_set_back_after_the_last_crawl(thresholds: tuple[int, int, int]) -> None:
    first, second = connected(), connected()
    assert gc.get_threshold() == thresholds
    first.signals.send_catch_log(signals.spider_opened)
    assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count() > garbage.FEW
    second.signals.send_catch_log(signals.spider_opened)
    first.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == THRESHOLDS
    second.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0


def test_what_others_have_frozen_stays_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    one = connected()
    one.signals.send_catch_log(signals.spider_opened)
    assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count() <= frozen
    one.signals.send_catch_log(signals.spider_closed)
    assert garbage.FEW < gc.get_freeze_count() <= frozen


def test_a_crawl_that_ends_without_having_begun_sets_nothing(
    thresholds: tuple[int, int, int],
) -> None:
    """Scrapy says `spider_closed` of a crawl that another receiver of `spider_opened` has ended, before ours was called."""
    one = connected()
    one.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == thresholds
    other = connected()
    other.signals.send_catch_log(signals.spider_opened)
    assert gc.get_threshold() == THRESHOLDS
    other.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == thresholds


class Cancels(Spider):
    """Cancels timers, and looks whether they are kept."""

    name = "cancels"

    def __init__(self) -> None:
        super().__init__()
        self._every, garbage.DROP_EVERY = garbage.DROP_EVERY, 0.01

    def closed(self) -> None:
        garbage.DROP_EVERY = self._every

    async def start(self) -> AsyncIterator[dict[str, int]]:
        from twisted.internet import reactor

        timers: list[Any] = [reactor.callLater(300, int) for _ in range(100)]  # type: ignore[arg-type]
        kept = [ref(timer) for timer in timers]
        while timers:
            timers.pop().cancel()
        for _ in range(1000):
            if not any(timer() for timer in kept):
                break
            await asyncio.sleep(0.01)  # until another timer is due
        yield {"kept": len([timer for timer in kept if timer()])}


@pytest.mark.parametrize("mode", ["reactor"], indirect=True)
def test_timers_that_were_cancelled_are_not_kept(crawl: Callable[..., Crawled]) -> None:
    [item] = crawl(Cancels).items
    assert item["kept"] == 0


class Cycle:
    """An object that refers to itself, as Twisted's objects for a connection do."""

    def __init__(self) -> None:
        self.itself = self


class Drops(Spider):
    """Drops an object that has grown old, and looks whether it is kept."""

    name = "drops"

    def __init__(self) -> None:
        super().__init__()
        self._before = garbage.DROP_EVERY, garbage.COLLECT_EVERY
        garbage.DROP_EVERY, garbage.COLLECT_EVERY = 0.01, 0.0

    def closed(self) -> None:
        garbage.DROP_EVERY, garbage.COLLECT_EVERY = self._before

    async def start(self) -> AsyncIterator[dict[str, bool]]:
        cycle: Cycle | None = Cycle()
        kept = ref(cycle)
        gc.collect(1)  # the object survives, and is in the oldest generation
        cycle = None
        gc.collect(1)
        is_old = kept() is not None
        for _ in range(1000):
            if not kept():
                break
            await asyncio.sleep(0.01)  # until the timer is due
        yield {"old": is_old, "kept": kept() is not None}


@pytest.mark.parametrize("mode", ["reactor", "no-reactor"], indirect=True)
def test_old_objects_that_were_dropped_are_not_kept(crawl: Callable[..., Crawled]) -> None:
    """Otherwise the memory of a crawl grows with each connection that is closed."""
    [item] = crawl(Drops).items
    assert item["old"]
    assert not item["kept"]


def test_collections_take_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, cpu, collected = 1000.0, 0.0, list[float]()
    takes = 0.01  # CPU seconds of a collection

    def collect() -> None:
        nonlocal cpu
        collected.append(now)
        cpu += takes

    monkeypatch.setattr(garbage, "monotonic", lambda: now)
    monkeypatch.setattr(garbage, "thread_time", lambda: cpu)
    monkeypatch.setattr(gc, "collect", collect)
    monkeypatch.setattr(GarbageCollection, "_collect_at", now, raising=False)
    GarbageCollection._collect()
    now += COLLECT_EVERY - 1
    GarbageCollection._collect()
    assert len(collected) == 1
    now += 1
    takes = 2.0
    GarbageCollection._collect()
    now += takes / SHARE - 1
    GarbageCollection._collect()
    assert len(collected) == 2
    now += 1
    GarbageCollection._collect()
    assert len(collected) == 3
