"""The counts that a worker sends, the sums of all workers, and the limits of the crawl."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from comity.cluster.counts import ITEMS, PAGES, CrawlCounts, CrawlLimits
from comity.cluster.queue import Sums
from comity.cluster.redis.connection import StateConnection
from comity.cluster.steps.queue import StepQueue
from comity.gate.options.agreement import LIMITS
from comity.report.whole_crawl import totals
from tests.redis_server import Server


def sums(items: int, pages: int, errors: int, began: float) -> Sums:
    return Sums("running", "", 0.0, began, [items, pages, errors])


@pytest.mark.requirement("STATE-4")
@pytest.mark.parametrize(
    ("limit", "below", "reached"),
    [
        ("TIMEOUT", [(9, 9, 9, 6.9)], (9, 9, 9, 7.0)),
        ("ITEMCOUNT", [(6, 9, 9, 9.0)], (7, 9, 9, 9.0)),
        ("PAGECOUNT", [(9, 6, 9, 9.0)], (9, 8, 9, 9.0)),
        ("ERRORCOUNT", [(9, 9, 6, 9.0)], (9, 9, 7, 9.0)),
        ("TIMEOUT_NO_ITEM", [(0, 9, 9, 3.0), (1, 9, 9, 9.0), (1, 9, 9, 15.9)], (1, 9, 9, 16.0)),
        ("PAGECOUNT_NO_ITEM", [(0, 3, 9, 9.0), (1, 9, 9, 9.0), (1, 15, 9, 9.0)], (1, 16, 9, 9.0)),
    ],
)
def test_limits(limit: str, below: list[Any], reached: Any) -> None:
    assert f"CLOSESPIDER_{limit}" in LIMITS
    limits = CrawlLimits({f"CLOSESPIDER_{limit}": 7.0})
    assert [limits.reached(sums(*values)) for values in below] == [""] * len(below)
    assert limits.reached(sums(*reached)) == f"closespider_{limit.lower()}"


def test_without_limits_nothing_is_compared() -> None:
    assert not CrawlLimits(dict.fromkeys(LIMITS, 0.0))


@pytest.mark.requirement("STATE-4")
def test_the_sums_outlive_the_workers_and_belong_to_their_run(server: Server) -> None:
    async def run() -> None:
        connection = StateConnection(server.address())
        stats: list[dict[str, Any]] = [{}, {}, {}]
        queues = [StepQueue(connection, f"worker:{number}", ttl=30) for number in range(3)]
        counts = [
            CrawlCounts(lambda of=of: of, queue)  # type: ignore[misc]
            for of, queue in zip(stats, queues, strict=True)
        ]
        for queue in queues:
            await queue.open()
            await queue.renew([])
        for number, of in enumerate(stats):
            of |= {ITEMS: number, PAGES: 10, "comity/scheduler/left": 5, "elapsed": 7.0}
            await counts[number].tell(now=True)
            of[PAGES] += 1
            await counts[number].tell()  # too soon
        assert (await queues[0].sums((ITEMS, PAGES))).counts == [3, 30]
        await counts[1].tell(now=True)
        await queues[1].close()
        await queues[0].bury("worker:2")
        await queues[0].bury("worker:2")
        status = await queues[0].status()
        assert status["counts"] == {ITEMS: 3, PAGES: 31}
        assert (status["workers_left"], status["workers_died"]) == (1, 1)
        await queues[0].set_state("ended", "closespider_itemcount")
        await queues[0].set_state("ended", "crawl_ended")
        ended = await queues[0].sums()
        assert (ended.state, ended.reason, ended.counts) == ("ended", "closespider_itemcount", [])
        assert (await queues[0].status())["finish_reason"] == "closespider_itemcount"
        late = StepQueue(connection, "worker:3", ttl=30)
        await late.open()
        assert await queues[0].begin_again()
        await late.tell({PAGES: 100})  # of the run before
        status = await queues[0].status()
        assert (status["state"], status["counts"], status["finish_reason"]) == ("running", {}, None)
        assert (status["workers_left"], status["workers_died"]) == (0, 0)
        await connection.close()

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_another_server_gets_all_counts_again(server: Server) -> None:
    async def run() -> None:
        connection = StateConnection(server.address())
        queue = StepQueue(connection, "worker:1", ttl=30)
        await queue.open()
        await queue.renew([])
        counts = CrawlCounts(lambda: {PAGES: 10}, queue)
        await counts.tell(now=True)
        client: Any = server.client()
        client.delete("comity:{crawl}:told:worker:1")
        await counts.tell(now=True)
        assert (await queue.sums((PAGES,))).counts == [0]
        for changed in connection._calls.changed:
            changed()
        await counts.tell(now=True)
        assert (await queue.sums((PAGES,))).counts == [10]
        await connection.close()

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_totals_count_no_refusal_as_an_error() -> None:
    found = totals(
        {
            "comity/access/deny": 3,
            "comity/access/stopped": 1,
            "comity/access/deny/robots.disallow": 3,
            "downloader/exception_count": 5,
            "downloader/exception_type_count/scrapy.exceptions.IgnoreRequest": 3,
            "spider_exceptions/count": 1,
        }
    )
    assert (found["errors"], found["refused"]) == (3, 4)
    assert found["refused_by_rule"] == {"robots.disallow": 3}
