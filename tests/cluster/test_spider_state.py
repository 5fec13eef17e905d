"""The state of a spider that several workers share, on a real server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from comity.cluster.plain_values import MAX_DEPTH
from comity.cluster.spider_state import SpiderState
from comity.cluster.steps.queue import StepQueue
from tests.cluster.test_queue import workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.redis_server import Server


@asynccontextmanager
async def states(server: Server, *names: str) -> AsyncIterator[list[SpiderState]]:
    async with workers(server, *names) as queues:
        yield [SpiderState(queue) for queue in queues]


@pytest.mark.requirement("STATE-4")
def test_the_last_value_of_a_key_counts_for_all_workers(server: Server) -> None:
    plain = {"n": 1, "text": "é", "bytes": b"\0", "list": [1, (2, None)], "dict": {1: True}}

    async def run() -> None:
        async with states(server, "one", "two") as (one, two):
            one.values.update(plain)
            await one.send()
            assert two.values == {}
            await two.exchange()
            assert two.values == plain
            two.values["list"].append(3)
            del two.values["n"]
            two.values["new"] = 1.5
            await two.send()
            one.values["text"] = "own"
            await one.exchange()
            assert one.values["list"] == [1, (2, None), 3]
            assert "n" not in one.values
            one.values["n"] = 2
            await one.exchange()
            await two.exchange()
            assert one.values == two.values
            assert (one.values["n"], one.values["text"], one.values["new"]) == (2, "own", 1.5)
        async with states(server, "three") as (three,):
            await three.exchange()
            assert three.values == one.values

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_a_change_that_is_made_while_others_are_sent_is_kept(server: Server) -> None:
    async def run() -> None:
        async with states(server, "one", "two") as (one, two):
            one.values["a"] = one.values["b"] = 1
            await one.send()
            two.values["c"] = 1
            sent = asyncio.create_task(two.exchange())
            await asyncio.sleep(0)
            two.values.update(a=2, c=2)  # before the answer
            await sent
            assert two.values == {"a": 2, "b": 1, "c": 2}
            await two.send()
            await one.exchange()
            assert one.values == two.values

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_another_server_gets_the_values_of_each_worker_again(server: Server) -> None:
    async def run() -> None:
        async with states(server, "one", "two") as (one, two):
            one.values.update(a=1, b=1)
            await one.exchange()
            await two.exchange()
            two.values["b"] = 2
            await two.exchange()
            await one.exchange()
            server.client().delete("comity:{crawl}:state", "comity:{crawl}:changed")
            for state in (one, two):
                for changed in queue_of(state)._connection._calls.changed:
                    changed()
            await one.exchange()
            await two.exchange()
            async with states(server, "three") as (three,):
                await three.exchange()
                assert three.values == {"a": 1, "b": 2}

    asyncio.run(run())


def queue_of(state: SpiderState) -> StepQueue:
    assert isinstance(state._queue, StepQueue)
    return state._queue


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 0


@pytest.mark.requirement("STATE-4", "REACH-5")
@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("set", {1}, "it has a set"),
        ("deep", nested(MAX_DEPTH + 1), "containers in each other"),
        ("text", "\ud800", "surrogates"),
        ("\ud800", 1, "surrogates"),
        (1, 1, "its key is not a text"),
        ("large", 2**70, "out of range"),
    ],
)
def test_other_than_plain_values_stay_here_and_the_log_says_so_once(
    server: Server, caplog: pytest.LogCaptureFixture, key: Any, value: Any, why: str
) -> None:
    async def run() -> None:
        async with states(server, "one", "two") as (one, two):
            one.values |= {key: value, "plain": 1}
            await one.send()
            await one.exchange()
            await two.exchange()
            assert two.values == {"plain": 1}

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    [record] = caplog.records
    assert "in the state of the spider stays in this process only" in record.getMessage()
    assert why in record.getMessage()


@pytest.mark.requirement("STATE-4")
def test_a_value_that_cannot_be_read_is_left_out_and_stays(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with states(server, "one") as (one,):
            await one._queue.exchange({"bad": b"\xc1", "good": b"\x01"})
            queue_of(one)._change = 0
            await one.exchange()
            await one.exchange()
            assert one.values == {"good": 1}
            assert server.client().hget("comity:{crawl}:state", "bad") == b"\xc1"

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    [record] = caplog.records
    assert "`bad` in the state of the spider cannot be read, and is left out" in record.getMessage()
