"""The queue of a crawl on a server: several workers of one process, and what becomes of the hosts of those that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from comity.cluster.errors import StateError, StateLostError
from comity.cluster.queue import Lease, QueuedRequest
from comity.cluster.redis.queue import RedisQueue
from comity.policies import PolicyError
from tests.redis_server import Server

TTL = 30.0
A, B = "a.example", "b.example"


@asynccontextmanager
async def workers(server: Server, *names: str, ttl: float = TTL) -> AsyncIterator[list[RedisQueue]]:
    connections = [server.connection() for _ in names]
    try:
        queues = [
            RedisQueue(connection, name, ttl)
            for connection, name in zip(connections, names, strict=True)
        ]
        for queue in queues:
            await queue.open(shards=4)
        yield queues
    finally:
        for connection in connections:
            await connection.close()


def row(
    queue: RedisQueue, number: int, host: str = A, *, priority: int = 0, is_filtered: bool = True
) -> QueuedRequest:
    fingerprint = f"{host} {number}".encode() if is_filtered else None
    return QueuedRequest(host, fingerprint, queue.new_key(), priority, f"request {number}".encode())


def rows(
    queue: RedisQueue, numbers: Iterable[int], host: str = A, *, is_filtered: bool = True
) -> list[QueuedRequest]:
    return [row(queue, number, host, is_filtered=is_filtered) for number in numbers]


def bodies(lease: Lease | None) -> list[int]:
    """The numbers of the requests of `row`."""
    assert lease is not None
    return [int(entry.body.split()[1]) for entry in lease.requests]


def keys(lease: Lease) -> list[bytes]:
    return [entry.key for entry in lease.requests]


def test_a_put_that_is_repeated_happens_once_and_answers_the_same(server: Server) -> None:
    """Its answer was lost; another worker may have done the request meanwhile."""

    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put([row(one, 0, B)])
            put = [row(one, 1), row(one, 2, is_filtered=False), row(one, 1), row(one, 3, B)]
            assert await one.put(put) == [True, True, False, True]
            one._unsure.update(range(4))  # as if no answer had come
            for lease in await two.lease(10, 10):
                await two.ack(lease.host, keys(lease))
            assert await one.put([*put, row(one, 4)]) == [True, True, False, True, True]
            assert (await one.status())["put"] == 5
            assert bodies(await two.more(A, 10)) == [4]
            assert await one.put([row(one, 5)]) == [True]

    asyncio.run(run())


def test_a_crawl_is_paused_resumed_ended_and_deleted(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one") as (one,), workers(server, "operator") as (operator,):
            await one.put(rows(one, range(200)) + rows(one, range(5), B, is_filtered=False))
            await one.renew([])
            await operator.set_state("paused")
            await one.renew([])
            assert (one.state, await one.lease(9, 9)) == ("paused", [])
            await operator.set_state("running")
            await one.renew([])
            assert len(await one.lease(1, 1)) == 1
            with pytest.raises(StateError, match="one work at crawl `crawl`: end it first"):
                await operator.delete()
            await operator.set_state("ended")
            await one.renew([])
            assert one.state == "ended"
            await one.close()
            assert (await operator.status())["workers"] == {}
            await operator.delete()
            with pytest.raises(StateError, match="there is no crawl"):
                await operator.status()
            with pytest.raises(StateError, match="there is no crawl"):
                await operator.set_state("paused")
            await one.renew([])  # it has heard that the crawl ended

    asyncio.run(run())
    assert [key for key in server.client().scan_iter() if b":put:" not in key] == []


def test_data_of_another_version_is_not_touched(server: Server) -> None:
    server.client().hset("comity:{crawl}:meta", mapping={"version": 7, "shards": 4})

    async def run() -> None:
        async with workers(server, "one"):
            pass

    with pytest.raises(
        PolicyError,
        match="has data of version 7, and this comity knows version 1: continue with the comity",
    ):
        asyncio.run(run())


async def lose(queue: RedisQueue, message: str) -> None:
    """Each of these calls tells the worker that requests are gone."""
    for call in (queue.look, queue.is_finished, lambda: queue.lease(9, 9)):
        with pytest.raises(StateLostError, match=message):
            await call()


@pytest.mark.requirement("REACH-2")
def test_a_crawl_that_is_erased_is_not_finished(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one") as (one,), workers(server, "two") as (two,):
            await one.put(rows(one, range(3)))
            assert not await two.is_finished()
            server.client().flushall()
            await lose(two, "the crawl is gone")
            with pytest.raises(StateLostError, match="the crawl is gone"):
                await two.renew([])
            async with workers(server, "three"):
                await lose(one, "another crawl of this name has taken its place")
                with pytest.raises(
                    StateLostError, match="another crawl of this name has taken its place"
                ):
                    await one.renew([])

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["n"], "of 5 requests that were put, 3 are gone"),
        (["due", "leased", f"q:{A}"], "the hosts of 3 requests are gone"),
    ],
)
def test_a_crawl_of_which_keys_are_gone_is_not_finished(
    server: Server, keys: list[str], message: str
) -> None:
    """A server has evicted them."""

    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(3)) + rows(one, range(2), B))
            await two.look()
            shard = two._shard_key(A)
            assert shard != two._shard_key(B)
            server.client().delete(*(f"{shard}:{key}" for key in keys))
            await lose(two, message)

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_a_server_that_evicts_keys_is_not_relied_on_any_more(own_server: Server) -> None:
    async def run() -> None:
        async with workers(own_server, "one") as (one,):
            await one.renew([])
            own_server.client().config_set("maxmemory-policy", "allkeys-lru")
            with pytest.raises(
                StateLostError, match="`allkeys-lru`: set `maxmemory-policy noeviction`"
            ):
                await one.renew([])

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_a_server_that_lacks_what_was_put_last_is_relied_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started anew, or has taken the place of another one. Older requests that it lacks are lost."""

    async def run() -> None:
        async with workers(server, "one") as (one,):
            counts = f"{one._shard_key(A)}:n"
            for put, age in ((1, 0.0), (2, -1.0), (3, -1.0), (4, 60.0)):
                monkeypatch.setattr("comity.cluster.redis.queue.LAG", age)
                await one.put(rows(one, [put]))
                await one.look()
            for changed in one._connection._calls.changed:
                changed()
            server.client().hset(counts, "put", 2)
            await one.look()
            server.client().hset(counts, "put", 1)
            await lose(one, "of 2 requests that were put, 1 are gone")

    asyncio.run(run())


async def finish(queue: RedisQueue) -> None:
    """Everything that waits is done."""
    for lease in await queue.lease(99, 999):
        await queue.ack(lease.host, keys(lease))
        await queue.release(lease.host)
    assert await queue.is_finished()


def age(server: Server, seconds: float) -> None:
    """Let the crawl have been finished for so long."""
    now = server.client().time()
    server.client().hset("comity:{crawl}:meta", "finished", str(round((now[0] - seconds) * 1000)))


@pytest.mark.requirement("REACH-1")
def test_a_finished_crawl_begins_again_once_for_all_workers(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "old") as (old,), workers(server, "one", "two") as (one, two):
            await old.put(rows(old, range(200)) + rows(old, range(3), B))
            assert await old.finish() == 0.0  # as far as that worker has seen nothing yet
            await finish(old)
            assert await old.finish() == 0.0
            age(server, 5)
            for queue in (one, two):
                assert await queue.is_finished()
                assert 4 < (await queue.finish() or 0.0) < 600
            assert [await queue.begin_again() for queue in (one, two)] == [True, False]
            assert (one.run, two.run) == (2, 2)
            assert await one.put(rows(one, range(200))) == [True] * 200
            assert await two.put(rows(two, range(200))) == [False] * 200
            assert await old.finish() is None  # it has the run of the others by now
            assert old.run == 2
            status = await two.status()
            assert (status["run"], status["put"], status["state"], status["finished_seconds"]) == (
                2,
                200,
                "running",
                None,
            )
            assert not two.is_swept
            await two.sweep()
            assert two.is_swept
            left = {
                key
                for key in server.client().scan_iter("comity:{crawl:*}*")
                if not key.startswith(b"comity:{crawl:2:")
            }
            assert all(b":put:" in key for key in left)
            await finish(two)
            assert await two.finish() == 0.0
            age(server, 7)
            await two.put(rows(two, [500]))
            await finish(two)
            assert await two.finish() == 0.0  # since the last request was done
            age(server, 9)
            status = await two.status()
            assert status["state"] == "finished"
            assert 8 < status["finished_seconds"] < 600
            assert await two.begin_again()
            await two.put(rows(two, range(9)))
            for queue in (old, one, two):
                await queue.close()
            await RedisQueue(
                one._connection, "operator", TTL
            ).delete()  # all of its runs, swept or not

    asyncio.run(run())
    assert [key for key in server.client().scan_iter() if b":put:" not in key] == []


@pytest.mark.requirement("REACH-2")
def test_a_worker_sets_a_request_aside_wherever_it_is(server: Server) -> None:
    """Out, waiting again, or waiting for a host that is set aside. A worker that was taken for dead may have done it."""

    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(3)))
            (lease,) = await one.lease(1, 9)
            out, waiting, aside = keys(lease)
            await one.give_up(A, {out: "it is\nodd", b"unknown": "it is odd"})
            await one.release(A)
            await one.give_up(A, {waiting: "it is odd"})
            await two.lease(1, 9)
            await two.set_aside(A, 1000)
            await one.give_up(A, {aside: "it is odd", out: "again"})
            assert await one.is_finished()
            assert sorted(request.why for request in await two.unreadable_requests(9)) == [
                "it is odd",
                "it is odd",
                "it is\ufffdodd",
            ]
            assert len(await two.unreadable_requests(2)) == 2
            status = await two.status()
            assert [
                status[name] for name in ("waiting", "out", "set_aside", "unreadable", "done")
            ] == [0, 0, 0, 3, 0]
            await one.ack(A, [out])
            status = await two.status()
            assert [status[name] for name in ("unreadable", "done")] == [2, 1]
            await one.close()
            await RedisQueue(one._connection, "operator", TTL).delete()

    asyncio.run(run())
    assert [key for key in server.client().scan_iter() if b":put:" not in key] == []


def test_tries_of_an_origin_are_those_of_all_workers(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            tried = [
                (one, 5.0, 10.0),
                (two, 5.0, 10.0),
                (two, 5.0, 20.5),
                (one, 5.0, 20.5),
                (one, 5.0, 40.0),
            ]
            assert [await queue.tries("https://a.example", *when) for queue, *when in tried] == [
                1,
                1,
                2,
                2,
                3,
            ]
            assert await two.tries("https://b.example", 5.0, 40.0) == 1
            assert await two.tries("https://a.example", 50.0, 55.0) == 1  # it was well meanwhile
            assert await one.tries("https://a.example", 50.0, 60.0) == 2
            await one.set_state("ended")
            await one.delete()

    asyncio.run(run())
    assert list(server.client().scan_iter()) == []
