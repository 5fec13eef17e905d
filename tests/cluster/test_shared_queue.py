"""What the scheduler has of a queue that several workers share, against a real server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Spider
from scrapy.http import Request
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from comity.cluster.neighbours import Neighbours
from comity.cluster.queue import Lease, QueuedRequest
from comity.cluster.steps.queue import StepQueue
from comity.cluster.steps.turns import StepTurns
from comity.crawler.frontier.leased_hosts import REQUESTS
from comity.crawler.frontier.queue import Aside
from comity.crawler.frontier.request_bodies import pack, unpack
from comity.crawler.frontier.shared_queue import SharedQueue
from comity.gate.options.agreement import Agreement
from comity.policies import PolicyError
from comity.policies.syntax.urls import host_name
from tests.redis_server import DEADLINE, Server, call_for

A, B = "https://a.example", "https://b.example"
SPIDER = Spider("pages")


@pytest.fixture(autouse=True)
def _own_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker looks at the shards itself, so that its turns do not depend on the time."""
    for module in ("host_share", "shared_queue"):
        monkeypatch.setattr(f"comity.crawler.frontier.{module}.LOOK_AGE", 0.0)


class Worker:
    """One worker, whose scheduler does nothing by itself."""

    def __init__(self, server: Server, name: str, most: int, **options: float) -> None:
        self.connection = server.connection("crawl", **options)
        StepTurns(self.connection)  # they look which server it is
        crawler = get_crawler()
        crawler.stats = self.stats = MemoryStatsCollector(crawler)
        redis = StepQueue(self.connection, name, ttl=30)
        self.neighbours = Neighbours(str(server.address()), name, server.folder / "workers")
        rest: Any = lambda host, seconds: None  # noqa: E731
        self.queue = SharedQueue(
            crawler,
            redis,
            self.neighbours,
            rest=rest,
            most=most,
            agreement=Agreement.of(crawler.settings, SPIDER.name),
            again_after=60,
        )
        self.queue.begin(cast(Any, self))
        self.has_room = True
        self.here: dict[int, str] = {}  # key -> origin
        self.slow: set[str] = set()  # hosts for which nobody waits

    def receive(self, key: int, origin: str, priority: int) -> None:
        self.here[key] = origin

    def forget(self, host: str) -> list[int]:
        keys = [key for key, origin in self.here.items() if host_name(origin) == host]
        for key in keys:
            del self.here[key]
        return keys

    def waiting(self, host: str) -> int:
        return sum(host_name(origin) == host for origin in self.here.values())

    def aside(self, host: str) -> Aside | None:
        return Aside(1000.0, "it is slow") if host in self.slow else None

    def put(self, *urls: str) -> None:
        for url in urls:
            request = Request(url)
            assert self.queue.put(url.rpartition("/")[0], request, url.encode())

    async def turn(self) -> None:
        """What the queue does again and again, once."""
        await self.queue._set_unreadable_aside()
        await self.queue._send()
        self.queue._share._lease_at = self.queue._share._balance_at = 0.0
        await self.queue._share.refill()

    @property
    def urls(self) -> list[str]:
        return sorted(self.queue.get(key).url for key in self.here)

    def done(self) -> None:
        """All that is here."""
        for key in self.here:
            self.queue.mark_done(key)
        self.here = {}


@asynccontextmanager
async def working(server: Server, *names: str, most: int = 0) -> AsyncIterator[list[Worker]]:
    workers = [Worker(server, name, most) for name in names]
    try:
        for worker in workers:
            await worker.queue.open(SPIDER)
            for task in worker.queue._tasks:  # the test does in its order what they do
                task.cancel()
        yield workers
    finally:
        for worker in workers:
            await worker.queue.close()
            await worker.connection.close()
            worker.neighbours.vanish()


@pytest.mark.requirement("REACH-2")
def test_what_a_server_has_lost_is_put_again(own_server: Server) -> None:
    """The page that leads there comes again, as the word that it is done was lost too."""

    async def run() -> None:
        async with working(own_server, "one") as (one,):
            one.put(f"{A}/1")
            await one.turn()
            assert one.queue.is_seen(f"{A}/1".encode())
            own_server.kill()
            for file in own_server.folder.glob("appendonly*/*"):
                file.unlink()
            own_server.start()
            with suppress(OSError):
                await one.turn()
            await one.queue._queue.open()
            assert not one.queue.is_seen(f"{A}/1".encode())
            one.put(f"{A}/1")
            await one.turn()
            assert (await one.queue._queue.status())["put"] == 1

    asyncio.run(run())


@pytest.mark.requirement("REACH-1")
def test_a_host_is_of_one_worker_until_nothing_of_it_is_left(server: Server) -> None:
    async def run() -> None:
        async with working(server, "one", "two") as (one, two):
            one.put(f"{A}/1", f"{A}/2")
            await one.turn()
            two.put(f"{A}/2", f"{A}/3")
            await two.turn()
            assert one.urls == [f"{A}/1", f"{A}/2"]
            assert two.urls == []
            assert two.stats.get_value("dupefilter/filtered") == 1
            one.done()
            for _ in range(3):
                await one.turn()
            await two.turn()
            assert one.urls + two.urls == [f"{A}/3"]

    asyncio.run(run())


@pytest.mark.requirement("REACH-1", "RATE-1")
def test_a_host_is_the_same_with_a_dot_behind_its_name(server: Server) -> None:
    async def run() -> None:
        async with working(server, "one", "two") as (one, two):
            one.put(f"{A}/1")
            await one.turn()
            two.put(f"{A}./2")
            await two.turn()
            assert (one.urls, two.urls) == ([f"{A}/1"], [])

    asyncio.run(run())


@pytest.mark.requirement("REACH-1")
def test_a_host_for_which_nobody_waits_is_given_back_once_nothing_of_it_is_out(
    server: Server,
) -> None:
    async def run() -> None:
        async with working(server, "one") as (one,):
            one.put(f"{A}/1", f"{A}/2", f"{B}/1")
            for _ in range(2):
                await one.turn()
            one.queue.set_aside("a.example")  # some wait for others, so the scheduler says no
            await one.turn()
            assert one.urls == [f"{A}/1", f"{A}/2", f"{B}/1"]
            out = min(key for key, origin in one.here.items() if origin == A)
            del one.here[out]
            one.slow.add("a.example")
            one.queue.set_aside("a.example")
            await one.turn()
            assert one.urls == [f"{A}/2", f"{B}/1"]
            one.queue.mark_done(out)
            for _ in range(3):
                await one.turn()
            assert one.urls == [f"{B}/1"]
            one.done()
            for _ in range(3):
                await one.turn()
            await one.queue._look_now()
            await one.queue._look_now()
            assert one.queue.is_finished
            assert one.stats.get_value("comity/scheduler/set-aside") == 1

    asyncio.run(run())


@pytest.mark.requirement("STATE-2")
def test_requests_whose_items_are_not_stored_yet_hold_up_no_others_and_keep_their_host(
    server: Server,
) -> None:
    """They are out for all other workers, and go to these if this one dies."""

    async def run() -> None:
        async with working(server, "one", "two") as (one, two):
            one.put(*(f"{A}/{number}" for number in range(REQUESTS + 5)))
            await one.turn()
            assert len(one.here) == REQUESTS
            first = dict(one.here)
            for key in first:
                one.queue.mark_through(key)
            one.here.clear()
            await one.turn()
            assert len(one.here) == 5
            one.done()
            await one.turn()
            await two.turn()
            assert two.here == {}
            status = await one.queue._queue.status()
            assert (status["waiting"], status["out"], status["done"]) == (0, REQUESTS, 5)
            for key in first:
                one.queue.mark_done(key)
            await one.turn()
            assert (await one.queue._queue.status())["done"] == REQUESTS + 5
            assert await one.queue._queue.is_finished()

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_a_worker_that_begins_while_the_server_is_away_waits_for_it(
    own_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        worker = Worker(own_server, "one", 0)
        call_for(worker.connection, 0.1)
        own_server.kill()
        opening = asyncio.create_task(worker.queue.open(SPIDER))
        while "comity tries again" not in caplog.text:
            await asyncio.wait([opening], timeout=0.01)  # between two looks at it
            assert not opening.done()
        call_for(worker.connection, DEADLINE)
        await asyncio.to_thread(own_server.start)
        await opening
        await worker.queue.close()
        await worker.connection.close()
        worker.neighbours.vanish()

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_what_is_done_and_not_told_yet_goes_out_no_more(server: Server) -> None:
    """Its host is released once that is told."""

    async def run() -> None:
        async with working(server, "one", "two") as (one, two):
            one.put(f"{A}/1")
            await one.turn()
            one.done()
            await one.queue._share.refill()
            await two.turn()
            assert two.urls == []
            await one.turn()
            await one.turn()
            await two.turn()
            assert two.urls == []
            await two.queue._look_now()
            await two.queue._look_now()
            assert two.queue.is_finished

    asyncio.run(run())


@pytest.mark.requirement("REACH-4")
def test_a_worker_that_has_hosts_leases_no_more_while_too_many_requests_wait(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with working(server, "one", "two", most=3) as (one, two):
            one.put(f"{A}/1", f"{A}/2")
            await one.turn()
            two.put(*(f"{B}/{number}" for number in range(4)))
            await two.turn()
            await one.turn()
            assert len(one.urls) == 2
            assert len(two.urls) == 4  # it had none
            two.put("https://c.example/1")
            await two.turn()
            await one.turn()
            assert len(one.urls) + len(two.urls) == 6
            two.done()
            await two.turn()
            await one.turn()
            assert "https://c.example/1" in one.urls + two.urls

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert (
        "7 requests wait or are out, and COMITY_MAX_WAITING is 3: no more hosts are leased until fewer are left"
        in caplog.text
    )


@pytest.mark.requirement("REACH-4")
def test_a_request_with_more_than_plain_values_is_named(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with working(server, "one") as (one,):
            assert one.queue.put(A, Request(f"{A}/1", meta={"a": SimpleNamespace()}), b"1") is None
            await one.turn()
            assert one.urls == []

    asyncio.run(run())
    assert (
        f"<GET {A}/1> waits in this process only, and is lost with it: its `meta` cannot be sent"
        in caplog.text
    )


@pytest.mark.requirement("REACH-1")
def test_a_paused_crawl_hands_nothing_out_and_an_ended_one_begins_no_more(server: Server) -> None:
    async def run() -> None:
        async with working(server, "one", "two") as (one, two):
            one.put(*(f"{A}/{number}" for number in range(5)))
            await one.turn()
            out = next(iter(one.here))
            del one.here[out]
            await two.queue._queue.set_state("paused")
            await one.queue._renew_now()
            assert one.urls == []
            one.queue.mark_done(out)
            await one.turn()
            assert (await two.queue._queue.status())["waiting"] == 4
            await two.queue._queue.set_state("running")
            await two.turn()
            assert len(two.urls) == 4
            await one.queue._queue.set_state("ended")
            await two.queue._renew_now()
            assert two.queue.is_finished
            with pytest.raises(
                PolicyError,
                match="crawl `crawl` has been ended: resume it with `comity frontier crawl --resume`",
            ):
                await two.queue.open(SPIDER)

    asyncio.run(run())


@pytest.mark.requirement("REACH-1")
def test_a_host_that_is_given_back_while_more_of_it_is_asked_for_goes_to_others(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with working(server, "one", "two") as (one, two):
            one.put(*(f"{A}/{number}" for number in range(40)))
            await one.turn()
            for key in [*one.here][:20]:
                one.queue.mark_done(key)
                del one.here[key]
            more = one.queue._queue.more

            async def answered_late(host: str, number: int) -> Lease | None:
                lease = await more(host, number)
                assert lease
                assert lease.requests
                await two.queue._queue.set_state("paused")
                await one.queue._renew_now()
                return lease

            monkeypatch.setattr(one.queue._queue, "more", answered_late)
            await one.turn()
            assert one.urls == []
            await two.queue._queue.set_state("running")
            await two.turn()
            assert (await two.queue._queue.status())["done"] == 20
            assert len(two.urls) == 20

    asyncio.run(run())


@pytest.mark.requirement("REACH-1")
def test_a_worker_says_that_the_crawl_is_finished_and_begins_it_again_in_time(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with working(server, "one") as (one,):
            one.put(f"{A}/1")
            await turns(one)
            one.done()
            await turns(one)
            await one.queue._look_now()
            assert one.queue.is_finished
        async with working(server, "two") as (two,):
            assert "crawl `crawl` has been finished since 20" in caplog.text
            two.put(f"{A}/1")
            await turns(two)
            assert two.urls == []
        now: Any = server.client().time()
        server.client().hset("comity:{crawl}:meta", "finished", str((now[0] - 61) * 1000))
        async with working(server, "three", "four") as (three, four):
            assert caplog.text.count("`, finished at 20") == 1
            three.put(f"{A}/1")
            four.put(f"{A}/1")
            await turns(three, four)
            assert three.urls + four.urls == [f"{A}/1"]

    with caplog.at_level(logging.INFO):
        asyncio.run(run())


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.requirement("REACH-2")
def test_a_request_that_kills_its_readers_takes_no_other_one_with_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def read(body: bytes, spider: Spider) -> Request:
        request = unpack(body, spider)
        if request.url == f"{A}/deadly":
            raise KilledError
        return request

    async def run() -> None:
        monkeypatch.setattr("comity.crawler.frontier.leased_hosts.unpack", read)
        monkeypatch.setattr("comity.crawler.frontier.host_share.UNWANTED", 0.0)
        names = ["first", "second", "third", "fourth"]
        async with working(server, "last") as (last,):
            last.has_room = False
            for name in names:
                async with working(server, name) as (worker,):
                    if name == "first":
                        worker.put(f"{A}/1", f"{A}/deadly", f"{A}/2", f"{B}/1")
                        await turns(worker)
                        assert len(worker.here) == 4
                    else:
                        with pytest.raises(KilledError):
                            await turns(worker)
                    monkeypatch.setattr(worker.queue, "close", nothing)
                    await last.queue._queue.bury(name)
            last.has_room = True
            await turns(last)
            assert last.urls == [f"{A}/1", f"{A}/2", f"{B}/1"]
            last.done()
            await turns(last)
            await last.queue._look_now()
            assert last.queue.is_finished

    asyncio.run(run())
    assert (
        "1 requests could not be read, and are set aside: `comity frontier crawl` lists them"
        in caplog.text
    )


async def nothing() -> None: ...


@pytest.mark.requirement("REACH-2")
def test_a_request_that_cannot_be_read_is_set_aside(server: Server) -> None:
    async def run() -> None:
        async with working(server, "one") as (one,):
            redis = one.queue._queue
            body = pack(Request(f"{A}/2", callback=SPIDER.parse), SPIDER).replace(
                b"parse", b"share"
            )
            await redis.put([QueuedRequest("a.example", b"2", redis.new_key(), 0, body)])
            one.put(f"{A}/1")
            await turns(one)
            (unreadable,) = [key for key in one.here if key not in readable(one)]
            del one.here[unreadable]
            one.done()
            await turns(one)
            await one.queue._look_now()
            assert one.queue.is_finished
            (request,) = await redis.unreadable_requests(9)
            assert (request.host, request.body) == ("a.example", body)
            assert "`share` is not a public method of the spider" in request.why

    asyncio.run(run())


def readable(worker: Worker) -> list[int]:
    keys = []
    for key in worker.here:
        with suppress(LookupError):
            worker.queue.get(key)
            keys.append(key)
    return keys


def hosts_of(worker: Worker) -> int:
    return len(worker.queue._hosts.by_name)


def forty(page: int = 1) -> list[str]:
    """A page of each of forty hosts."""
    return [f"https://{number}.example/{page}" for number in range(40)]


async def turns(*workers: Worker, number: int = 4) -> None:
    for _ in range(number):
        for worker in workers:
            await worker.turn()


@pytest.mark.requirement("STATE-3")
def test_hosts_are_shared_out_evenly_and_a_worker_that_joins_gets_as_many(server: Server) -> None:
    """The first worker has leased all hosts before the others begin."""

    async def run() -> None:
        async with working(server, "one") as (one,):
            one.put(*forty())
            await turns(one)
            assert hosts_of(one) == 40
            async with working(server, "two", "three") as (two, three):
                await turns(one, two, three)
                shares = sorted(map(hosts_of, (one, two, three)))
                assert sum(shares) == 40
                assert shares[0] >= 12
                async with working(server, "four") as (four,):
                    await turns(one, two, three, four)
                    assert sorted(map(hosts_of, (one, two, three, four))) == [10, 10, 10, 10]
                await turns(one, two, three)
            await turns(one)
            assert hosts_of(one) == 40
            assert (await one.queue._queue.status())["filtered"] == 0

    asyncio.run(run())


@pytest.mark.requirement("STATE-3", "REACH-2")
def test_a_host_with_a_request_that_is_out_is_given_back_once_that_is_done(server: Server) -> None:
    async def run() -> None:
        async with working(server, "one") as (one,):
            one.put(*forty(1), *forty(2))
            await turns(one)
            out = {
                key: origin
                for key, origin in one.here.items()
                if one.queue.get(key).url.endswith("/1")
            }
            idle = {
                key
                for key in out
                if out[key] in (f"https://{number}.example" for number in range(4))
            }
            for key in out.keys() - idle:
                del one.here[key]
            async with working(server, "two") as (two,):
                await turns(one, two)
                assert set(two.here.values()) == {
                    out[key] for key in idle
                }  # those with nothing out
                leaving = [
                    name for name, host in one.queue._hosts.by_name.items() if host.is_leaving
                ]
                assert len(leaving) == 16
                for key in out.keys() - idle:
                    one.queue.mark_done(key)
                await turns(one, two)
                assert (hosts_of(one), hosts_of(two)) == (20, 20)
                urls = one.urls + two.urls
                assert len(urls) == len(set(urls)) == 44  # nothing that was out came again
                assert (await one.queue._queue.status())["done"] == 36

    asyncio.run(run())


@pytest.mark.requirement("STATE-3")
def test_a_request_that_comes_back_does_not_keep_its_host_from_leaving(server: Server) -> None:
    async def run() -> None:
        async with working(server, "one") as (one,):
            one.put(f"{A}/1", f"{A}/2", f"{B}/1", f"{B}/2")
            await turns(one)
            held = {
                key: one.here.pop(key)
                for key in list(one.here)
                if one.queue.get(key).url.endswith("/1")
            }
            async with working(server, "two", "three", "four") as (two, three, four):
                await turns(one, number=1)
                one.queue._hosts.by_name[
                    "a.example"
                ].is_leaving = True  # with two hosts it keeps both, or one of them by chance
                one.here |= held  # somebody has put the requests off
                await turns(one, two, three, four)
                assert "a.example" not in one.queue._hosts.by_name
                assert f"{A}/1" in two.urls + three.urls + four.urls

    asyncio.run(run())


@pytest.mark.requirement("STATE-3")
def test_hosts_that_the_others_have_no_room_for_go_to_a_worker_with_its_share(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with working(server, "one", "busy") as (one, busy):
            busy.has_room = False
            one.put(*forty())
            await turns(one, busy)
            assert (hosts_of(one), hosts_of(busy)) == (20, 0)
            monkeypatch.setattr(
                "comity.crawler.frontier.host_share.UNWANTED", 0.0
            )  # as if they had been free that long
            await turns(one, busy)
            assert (hosts_of(one), hosts_of(busy)) == (40, 0)

    asyncio.run(run())
