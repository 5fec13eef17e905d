"""The queue of a crawl on a server: several workers of one process, and what becomes of the hosts of those that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from comity.cluster.errors import StateError, StateFullError, StateLostError
from comity.cluster.queue import Lease, QueuedRequest
from comity.cluster.redis import queue as redis_queue
from comity.cluster.redis.address import shard_of
from comity.cluster.redis.queue import COMPARE_EACH, RedisQueue
from comity.cluster.redis.scripts import script
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


def test_requests_come_by_priority_and_then_in_order(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            put = [
                row(one, number, priority=priority)
                for number, priority in enumerate([0, 5, 0, -1, 5, 2**60, -(2**60)])
            ]
            assert await one.put(put) == [True] * 7
            (lease,) = await two.lease(10, 4)
            assert (lease.host, lease.waiting, lease.rests) == (A, 3, 0.0)
            assert [(entry.priority, entry.body) for entry in lease.requests] == [
                (2**53, b"request 5"),
                (5, b"request 1"),
                (5, b"request 4"),
                (0, b"request 0"),
            ]
            assert await one.lease(10, 3) == []
            assert await one.more(A, 3) is None
            assert not await one.is_finished()
            rest = await two.more(A, 10)
            assert rest is not None
            assert (bodies(rest), rest.waiting) == ([2, 3, 6], 0)
            assert not await one.is_finished()
            await two.ack(A, keys(lease) + keys(rest))
            assert await one.is_finished()

    asyncio.run(run())


def test_what_was_seen_is_not_put_and_what_no_filter_asks_for_is(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            assert await one.put([row(one, 1), row(one, 1), row(one, 1, is_filtered=False)]) == [
                True,
                False,
                True,
            ]
            assert await two.put([row(two, 1), row(two, 1, is_filtered=False), row(two, 1, B)]) == [
                False,
                True,
                True,
            ]
            status = await one.status()
            assert {
                name: status[name]
                for name in ("waiting", "out", "put", "filtered", "seen", "hosts")
            } == {
                "waiting": 4,
                "out": 0,
                "put": 4,
                "filtered": 2,
                "seen": 2,
                "hosts": 2,
            }

    asyncio.run(run())


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


def test_many_fingerprints_are_seen_once_each(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one") as (one,):
            for begin in range(0, 4000, 2000):
                assert await one.put(rows(one, range(begin, begin + 2000))) == [True] * 2000
            assert await one.put(rows(one, range(4000))) == [False] * 4000
            assert (await one.status())["seen"] == 4000

    asyncio.run(run())


def test_what_is_done_is_done_whoever_says_so(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(4)))
            (lease,) = await one.lease(1, 2)
            for _ in range(2):
                await two.ack(A, keys(lease)[:1])
            status = await one.status()
            assert (status["waiting"], status["out"], status["done"]) == (2, 1, 1)
            await one.release(A)
            await one.ack(A, keys(lease))  # it waits again by now
            (lease,) = await two.lease(1, 9)
            assert bodies(lease) == [2, 3]
            assert (await one.status())["done"] == 2

    asyncio.run(run())


def test_what_is_given_back_comes_first_again(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(5)))
            await one.lease(1, 3)
            await two.release(A)  # it has nothing to say there
            assert await two.lease(1, 9) == []
            await one.release(A)
            (lease,) = await two.lease(1, 9)
            assert bodies(lease) == [0, 1, 2, 3, 4]

    asyncio.run(run())


def test_nobody_waits_for_a_host_that_is_set_aside(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(3)))
            (lease,) = await one.lease(1, 1)
            await two.set_aside(A, 1000)  # it has nothing to say there
            assert not await one.is_finished()
            await one.set_aside(A, 1000)
            await two.put(rows(two, [3]))  # it comes to those that wait there
            assert await one.is_finished()
            assert (one.left, one.aside) == (4, 4)
            assert await two.lease(9, 9) == []
            (host,) = await one.hosts(9)
            assert (host.host, host.worker, host.waiting, host.out, host.is_aside) == (
                A,
                "",
                4,
                0,
                True,
            )
            await one.ack(A, keys(lease))  # as it was out
            assert await one.is_finished()
            status = await one.status()
            assert (status["waiting"], status["set_aside"], status["out"], status["hosts"]) == (
                0,
                3,
                0,
                1,
            )
            await two.recall()
            assert not await one.is_finished()
            (lease,) = await two.lease(9, 9)
            assert bodies(lease) == [1, 2, 3]
            await two.ack(A, keys(lease))
            await two.release(A)
            assert await one.is_finished()
            assert (one.left, one.aside) == (0, 0)

    asyncio.run(run())


def test_a_host_that_was_set_aside_can_be_leased_when_its_time_has_come(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(2)))
            await one.lease(1, 1)
            await one.set_aside(A, 0)
            (lease,) = await two.lease(1, 9)
            assert bodies(lease) == [0, 1]
            assert sum(shard.aside for shard in await one.look()) == 0

    asyncio.run(run())


def test_a_worker_that_gives_no_signs_of_life_loses_its_hosts(server: Server) -> None:
    async def run() -> None:
        async with (
            workers(server, "frozen", ttl=0) as (frozen,),
            workers(server, "other") as (other,),
        ):
            await frozen.put(rows(frozen, range(3)))
            (lost,) = await frozen.lease(1, 2)
            (lease,) = await other.lease(1, 9)
            assert bodies(lost) == [0, 1]
            assert bodies(lease) == [0, 1, 2]
            assert await frozen.renew([A]) == {A}
            assert await frozen.more(A, 1) is None
            await frozen.release(A)
            await frozen.set_aside(A, 1000)
            assert await other.renew([A]) == set()
            await frozen.ack(A, keys(lost))
            await other.ack(A, keys(lease))
            assert await other.is_finished()

    asyncio.run(run())


def test_a_lease_that_has_ended_counts_until_another_worker_takes_the_host(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "slow", ttl=0) as (slow,):
            await slow.put(rows(slow, range(3)))
            await slow.lease(1, 2)
            slow.ttl = TTL
            assert await slow.renew([A]) == set()
            assert bodies(await slow.more(A, 9)) == [2]

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_a_worker_that_wakes_up_learns_of_all_hosts_that_it_has_lost(server: Server) -> None:
    """It has leased other hosts of their shard meanwhile. So it has the number that it knows."""
    hosts = [host for host in (f"{n}.example" for n in range(99)) if shard_of(host, 4) == 0][:4]

    async def run() -> None:
        async with (
            workers(server, "frozen", ttl=0) as (frozen,),
            workers(server, "other") as (other,),
        ):
            await frozen.put([row(frozen, 0, host) for host in hosts])
            first = {lease.host for lease in await frozen.lease(2, 1)}
            taken = {lease.host for lease in await other.lease(4, 1)}
            assert taken == set(hosts)
            await other.release(first ^ taken)
            frozen.ttl = TTL
            assert {lease.host for lease in await frozen.lease(2, 1)} == first ^ taken
            lost = set()
            for _ in range(COMPARE_EACH):
                lost |= await frozen.renew(first)
            assert lost == first
            assert await other.renew(first) == set()

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_a_lease_of_which_the_worker_knows_nothing_goes_to_others(server: Server) -> None:
    """The answer to `lease` was lost, or the call of `release`. The worker lives, and renews."""

    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            hosts = [f"{number}.example" for number in range(8)]
            await one.put([row(one, 0, host) for host in hosts])
            assert len(await one.lease(8, 1)) == 8
            known = [host for host in hosts if host != hosts[3]]
            assert shard_of(hosts[3], 4) in {shard_of(host, 4) for host in known}
            assert await one.renew(known) == set()
            assert await two.lease(8, 1) == []  # the answer may be on its way
            assert await one.renew(hosts) == set()
            assert await one.renew(known) == set()
            assert await two.lease(8, 1) == []
            assert await one.renew(known) == set()
            (lease,) = await two.lease(8, 1)
            assert lease.host == hosts[3]
            assert reads(lease) == {0: -1}  # no worker has died

    asyncio.run(run())


def test_renewing_is_one_call_of_each_shard(server: Server) -> None:
    """It does not touch the hosts."""

    async def run() -> None:
        async with workers(server, "one") as (one,):
            hosts = [f"{number}.example" for number in range(400)]
            await one.put([row(one, 0, host) for host in hosts])
            assert len(await one.lease(400, 1)) == 400
            client = server.client()
            client.config_resetstat()
            for _ in range(COMPARE_EACH):
                assert await one.renew(hosts) == set()
            stats: Any = client.info("commandstats")
            calls = sum(stats[f"cmdstat_{name}"]["calls"] for name in ("zadd", "zcard", "zrange"))
            assert calls == COMPARE_EACH * 2 * 4 + 4

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_one_look_at_the_shards_serves_all_workers(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            for queue in (one, two):
                await queue.renew([])
                await queue.look(age=TTL)  # the first look of a worker is its own
            await one.put(rows(one, range(3)))
            old = await two.look(age=TTL)
            assert (two.left, two.share) == (0, 0)
            assert old == await one.look(age=TTL)
            new = await two.look()
            assert (two.left, two.share, sum(shard.ready for shard in new)) == (3, 1, 1)
            assert (
                await one.look(age=TTL) == old
            )  # commands and the end of a crawl look by themselves
            two._looked_at -= TTL
            noted = await two.look(age=TTL)
            assert await one.look(age=TTL) == noted
            assert (one.left, one.share) == (3, 1)
            await one.set_state("paused")
            await two.look(age=TTL)
            assert two.state == "paused"
            await one.set_state("running")
            await finish(one)
            await one.begin_again()
            assert sum(shard.put for shard in await one.look(age=TTL)) == 0
            await two.look(age=TTL)
            assert two.is_outdated

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_one_worker_looks_while_others_take_the_last_look(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            for queue in (one, two):
                await queue.look(age=TTL)
            await one.put(rows(one, range(3)))
            key = f"{one.address.prefix}:shards"
            server.client().hset(key, "asked", 1)  # long ago
            assert not (await one._crawl(script("crawl", "noted"), 30000))[
                1:
            ]  # it is asked to look
            await two.look(age=TTL)
            assert two.left == 0
            server.client().hset(key, "asked", 1)  # the worker that was asked is dead
            await two.look(age=TTL)
            assert two.left == 3

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_each_worker_notices_lost_requests_itself(server: Server) -> None:
    """It looks at all shards once in TTL, even if other workers look all the time."""

    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(3)))
            for queue in (one, two):
                await queue.look(age=TTL)
            server.client().delete(f"{one._shard_key(A)}:n")
            await two.look(age=TTL)  # it takes the noted counts
            two._looked_at -= TTL
            with pytest.raises(StateLostError, match="of 3 requests that were put, 3 are gone"):
                await two.look(age=TTL)

    asyncio.run(run())


def test_no_host_has_two_workers(server: Server) -> None:
    hosts = [f"{number}.example" for number in range(40)]

    async def run() -> None:
        async with workers(server, "one", "two", "three") as queues:
            await queues[0].put(
                [row(queues[0], number, host) for host in hosts for number in range(2)]
            )
            leased: list[str] = []
            while len(leased) < len(hosts):
                for leases in await asyncio.gather(*(queue.lease(7, 5) for queue in queues)):
                    assert len(leases) <= 7
                    leased += [lease.host for lease in leases]
            assert sorted(leased) == sorted(hosts)

    asyncio.run(run())


def test_a_host_that_was_released_waits_as_long_as_it_is_to_and_is_forgotten_when_empty(
    server: Server,
) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put([row(one, 0), row(one, 0, B)])
            await one.lease(2, 1)
            await one.put([row(one, 1)])
            await one.release(A, 3600)
            assert await two.lease(2, 9) == []
            assert [
                (host.host, host.worker, host.waiting, host.out) for host in await two.hosts(9)
            ] == [
                (A, "", 2, 0),
                (B, "one", 0, 1),
            ]
            assert (await two.status())["next_due"] <= TTL  # when the lease of the other host ends
            await one.close([B])
            (lease,) = await two.lease(2, 9)
            assert lease.host == B
            await two.ack(B, keys(lease))
            await two.release(B)
            assert [host.host for host in await two.hosts(9)] == [A]
            await two.put([row(two, 2)])  # that brings it forward no more
            assert await two.lease(2, 9) == []

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


def test_in_a_full_memory_nothing_is_put_and_all_else_goes_on(own_server: Server) -> None:
    async def run() -> None:
        async with workers(own_server, "one", "two") as (one, two):
            await one.put(rows(one, range(20)) + rows(one, range(20), B))
            (lease,) = await one.lease(1, 5)
            own_server.client().config_set("maxmemory", 1)
            with pytest.raises(StateFullError, match="used memory > 'maxmemory'"):
                await one.put(rows(one, range(100, 105)))
            assert await one.renew([lease.host]) == set()
            assert len((await two.lease(1, 3))[0].requests) == 3
            assert await one.more(lease.host, 5) is not None
            await one.ack(lease.host, keys(lease))
            await one.set_aside(lease.host, 1000)
            await two.recall()
            own_server.client().config_set("maxmemory", 2**29)
            assert await one.put(rows(one, range(100, 105))) == [True] * 5
            status = await one.status()
            assert (status["put"], status["done"], status["out"]) == (45, 5, 3)

    asyncio.run(run())


def test_data_of_another_version_is_not_touched(server: Server) -> None:
    server.client().hset(
        "comity:{crawl}:meta", mapping={"version": 7, "shards": 4, "state": "running", "run": 1}
    )

    async def begin() -> None:
        async with workers(server, "one"):
            pass

    async def delete() -> None:
        connection = server.connection()
        try:
            await RedisQueue(connection, "operator", TTL).delete()
        finally:
            await connection.close()

    for call in (begin, delete):
        with pytest.raises(
            PolicyError,
            match="has data of version 7, and this comity knows version 2: continue with the comity",
        ):
            asyncio.run(call())
    assert server.client().hlen("comity:{crawl}:meta") > 1


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(own_server: Server) -> None:
    """Requests that were put are there, those that were done are not; what got no answer is repeated."""

    async def run() -> None:
        async with workers(own_server, "one") as (one,):
            put: set[int] = set()
            done: set[int] = set()
            number = 0
            for fall in range(3):
                for _ in range(20):
                    batch = range(number, number := number + 10)
                    assert await one.put(rows(one, batch)) == [True] * 10
                    put.update(batch)
                if fall == 0:
                    assert bodies((await one.lease(1, 1))[0]) == [0]
                    await one.ack(A, [])
                more = await one.more(A, 30)
                assert more is not None
                await one.ack(A, keys(more))
                done.update(bodies(more))
                unanswered = rows(one, range(number, number := number + 100))
                task = asyncio.ensure_future(one.put(unanswered))
                await asyncio.sleep(0)
                own_server.kill()
                await asyncio.gather(task, return_exceptions=True)
                own_server.start()
                while True:
                    try:
                        assert await one.put(unanswered) == [True] * 100
                        break
                    except StateFullError:
                        raise
                    except StateError:
                        continue
                put.update(range(number - 100, number))
            left: set[int] = {0}
            while (more := await one.more(A, 100)) and more.requests:
                left.update(bodies(more))
            assert left == put - done
            assert (await one.status())["put"] == len(put)

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_what_a_dead_worker_had_goes_to_others_at_once(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "m:1:one", "m:2:two", "m:3:three") as (one, two, three):
            await one.put([*rows(one, range(3)), *rows(one, range(3), B)])
            leases = await one.lease(10, 2)
            assert {lease.host for lease in leases} == {A, B}
            await one.ack(A, keys(next(lease for lease in leases if lease.host == A))[:1])
            await one.renew([A, B])
            await two.renew([])
            assert await two.lease(10, 2) == []
            await three.bury("m:1:one")
            assert sorted((lease.host, *bodies(lease)) for lease in await two.lease(10, 5)) == [
                (A, 1, 2),
                (B, 0, 1, 2),
            ]
            assert await one.renew([A, B]) == {A, B}
            await three.bury("m:1:one")  # again, as the answer was lost
            assert await two.renew([A, B]) == set()
            assert list((await two.status())["workers"]) == ["m:2:two"]

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
        (["due", "owner", f"q:{A}"], "the hosts of 3 requests are gone"),
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


def date(server: Server, **moments: float) -> None:
    """Let runs of the crawl have begun at these moments. The name of run 1 is `run_1`."""
    for name, moment in moments.items():
        number = name.removeprefix("run_")
        server.client().hset("comity:{crawl}:runs", number, str(round(moment * 1000)))


def start(queue: RedisQueue, number: int) -> QueuedRequest:
    return row(queue, number)._replace(is_start=True)


@pytest.mark.requirement("STATE-4")
def test_a_run_that_keeps_the_seen_requests_asks_only_its_start_requests_again(
    server: Server,
) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            assert await one.put([start(one, 0), *rows(one, [1, 2])]) == [True] * 3
            assert await two.put([start(two, 0)]) == [False]
            await finish(one)
            await one.finish()
            assert await one.begin_again(since=0.0)
            assert not await two.begin_again(since=0.0)
            assert (one.run, two.run) == (2, 2)
            status = await one.status()
            assert (status["state"], status["put"], status["done"]) == ("running", 0, 0)
            assert (status["filtered"], status["finished_seconds"]) == (0, None)
            # Both workers make the start request, and a page links to it.
            assert await one.put([start(one, 0), *rows(one, [0, 1, 3])]) == [
                True,
                False,
                False,
                True,
            ]
            assert await two.put([start(two, 0), row(two, 2)]) == [False, False]
            await finish(two)
            await two.finish()
            status = await one.status()
            assert (status["put"], status["done"], status["filtered"]) == (2, 2, 4)
            assert (status["state"], status["seen"], one.is_swept) == ("finished", 4, True)

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
@pytest.mark.parametrize("is_swept", [False, True])
def test_a_run_counts_as_seen_the_requests_of_the_runs_since_a_moment(
    server: Server, *, is_swept: bool
) -> None:
    async def run() -> None:
        async with workers(server, "one") as (one,):
            for number, numbers in enumerate(([0, 1], [0, 2], [0, 3]), 1):
                assert await one.put([start(one, 0), *rows(one, numbers)]) == [True, False, True]
                await finish(one)
                await one.finish()
                date(server, **{f"run_{number}": 1000.0 * number})
                if number < 3:
                    assert await one.begin_again(since=0.0)
            assert await one.begin_again(since=2000.0)
            assert not one.is_swept
            if is_swept:
                await one.sweep()
                assert (await one.status())["seen"] == 3
            assert await one.put(rows(one, [1, 2, 3])) == [True, False, False]
            assert await one.put(rows(one, [1, 2, 3])) == [False] * 3
            await one.sweep()
            assert (await one.status())["seen"] == 4
            await finish(one)
            await one.finish()
            date(server, run_4=4000.0)
            assert await one.begin_again(since=4000.1)  # a run counts if it began since then
            assert await one.put(rows(one, range(4))) == [True] * 4
            await finish(one)
            await one.finish()
            assert await one.begin_again()
            assert await one.put(rows(one, range(4))) == [True] * 4

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_requests_that_wait_stay_in_a_run_that_keeps_the_seen_ones(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(3)) + rows(one, range(2), B))
            (lease,) = [lease for lease in await one.lease(9, 1) if lease.host == A]
            await one.set_state("ended", "closespider_pagecount")
            assert await two.begin_again(since=0.0)
            await one.ack(A, keys(lease))  # it has not noticed yet, and its page is done
            await one.close([A, B])
            status = await two.status()
            assert (status["waiting"], status["done"], status["state"]) == (4, 1, "running")
            await finish(two)
            assert [key for lease in await two.lease(9, 9) for key in keys(lease)] == []

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_sweeping_forgets_in_small_steps(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_queue, "FORGOTTEN", 2)

    async def run() -> None:
        async with workers(server, "one") as (one,):
            await one.put(rows(one, range(900)))
            await finish(one)
            await one.finish()
            date(server, run_1=1000.0)
            assert await one.begin_again(since=2000.0)
            assert await one.put(rows(one, range(500))) == [True] * 500
            await one.sweep()
            status = await one.status()
            assert (status["seen"], status["put"]) == (500, 500)
            assert await one.put(rows(one, range(600))) == [False] * 500 + [True] * 100

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_fingerprints_without_a_run_count_as_kept(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one") as (one,):
            await one.put([start(one, 0), row(one, 1)])
            client = server.client()
            for key in client.scan_iter("*:seen:*"):
                client.hset(key, mapping=dict.fromkeys(client.hkeys(key), ""))
            client.hdel("comity:{crawl}:meta", "emptied", "kept")
            await one.open()
            assert await one.put([start(one, 0), row(one, 1)]) == [False, False]
            await finish(one)
            assert await one.begin_again(since=0.0)
            assert await one.put([start(one, 0), row(one, 1)]) == [True, False]

    asyncio.run(run())


@pytest.mark.requirement("STATE-4")
def test_workers_exchange_the_state_of_the_spider(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            assert await one.exchange({}) == {}
            assert await one.exchange({"a": b"1", "b": b"2"}) == {"a": b"1", "b": b"2"}
            assert await two.exchange({"b": b"3"}) == {"a": b"1", "b": b"3"}
            assert await one.exchange({}) == {"b": b"3"}
            assert await one.exchange({}) == {}
            assert await two.exchange({"a": b""}) == {"a": b""}
            assert await one.exchange({"c": b"4"}) == {"a": b"", "c": b"4"}
            await one.begin_again()
            async with workers(server, "three") as (three,):
                assert await three.exchange({}) == {"a": b"", "b": b"3", "c": b"4"}
            for queue in (one, two):
                await queue.close()
            await RedisQueue(one._connection, "operator", TTL).delete()
            assert await two.exchange({"d": b"5"}) == {}
            assert not server.client().exists("comity:{crawl}:state")

    asyncio.run(run())


@pytest.mark.requirement("REACH-1")
def test_a_worker_of_a_run_before_ends(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "frozen") as (frozen,), workers(server, "one") as (one,):
            await one.put(rows(one, range(2)))
            await finish(one)
            await one.finish()
            await one.begin_again()
            await frozen.renew([])
            assert frozen.state == "ended"

    asyncio.run(run())


def reads(lease: Lease | None) -> dict[int, int]:
    """How many workers died while they read each request."""
    assert lease is not None
    return {int(entry.body.split()[1]): entry.reads for entry in lease.requests}


@pytest.mark.requirement("REACH-2")
def test_a_request_whose_readers_die_is_set_aside(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(3)) + rows(one, [0], B))
            for dead in range(3):
                for lease in await one.lease(9, 9):
                    if lease.host == A:
                        assert reads(lease) == dict.fromkeys(range(3), -1 if not dead else 0) | (
                            {1: dead} if dead else {}
                        )
                        await one.read(A, keys(lease), is_done=False)
                        await one.read(
                            A,
                            [entry.key for entry in lease.requests if entry.body != b"request 1"],
                            is_done=True,
                        )
                await two.bury("one")
            (lease,) = [lease for lease in await one.lease(9, 9) if lease.host == A]
            assert reads(lease) == {0: 0, 2: 0}
            (unreadable,) = await two.unreadable_requests(9)
            assert (unreadable.host, unreadable.body) == (A, b"request 1")
            assert unreadable.why == "3 workers died while they read it"
            await one.ack(A, keys(lease))
            await one.release(A)
            await one.release(B)
            await finish(one)
            status = await two.status()
            assert {
                name: status[name] for name in ("state", "waiting", "out", "done", "unreadable")
            } == {
                "state": "finished",
                "waiting": 0,
                "out": 0,
                "done": 3,
                "unreadable": 1,
            }
            assert await two.retry() == 1
            (lease,) = await one.lease(9, 9)
            assert reads(lease) == {1: -1}
            await one.ack(A, keys(lease))
            await one.release(A)
            assert await one.is_finished()
            assert await two.unreadable_requests(9) == []

    asyncio.run(run())


@pytest.mark.requirement("REACH-2")
def test_requests_that_cannot_be_read_do_not_hide_those_behind_them(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            await one.put(rows(one, range(4)))
            (lease,) = await one.lease(1, 2)
            for _ in range(3):
                await one.read(A, keys(lease), is_done=False)
            await two.bury("one")
            (lease,) = await two.lease(1, 2)
            assert bodies(lease) == [2, 3]
            await two.release(A)
            assert (await two.status())["unreadable"] == 2

    asyncio.run(run())


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


@pytest.mark.requirement("REACH-2")
def test_what_a_frozen_worker_had_out_is_suspected(server: Server) -> None:
    async def run() -> None:
        async with workers(server, "frozen", ttl=0) as (frozen,), workers(server, "one") as (one,):
            await frozen.put(rows(frozen, range(2)))
            await frozen.lease(1, 1)
            (lease,) = await one.lease(1, 9)
            assert reads(lease) == {0: 0, 1: -1}

    asyncio.run(run())


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
