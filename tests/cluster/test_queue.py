"""The queue of a crawl on a server: several workers of one process, and what becomes of the hosts of those that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from comity.cluster.address import shard_of
from comity.cluster.conformance.workers import TTL, A, B, bodies, finish, keys, reads, row, rows
from comity.cluster.errors import StateError, StateLostError
from comity.cluster.queue import QueuedRequest
from comity.cluster.steps import queue as queue_module
from comity.cluster.steps.line import Call
from comity.cluster.steps.queue import COMPARE_EACH, StepQueue
from comity.policies import PolicyError
from tests.redis_server import Server


@asynccontextmanager
async def workers(server: Server, *names: str, ttl: float = TTL) -> AsyncIterator[list[StepQueue]]:
    connections = [server.connection() for _ in names]
    try:
        queues = [
            StepQueue(connection, name, ttl)
            for connection, name in zip(connections, names, strict=True)
        ]
        for queue in queues:
            await queue.open(shards=4)
        yield queues
    finally:
        for connection in connections:
            await connection.close()


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
            assert not (await one._crawl("crawl noted", 30000))[1:]  # it is asked to look
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
    server.client().hset(
        "comity:{crawl}:meta", mapping={"version": 7, "shards": 4, "state": "running", "run": 1}
    )

    async def begin() -> None:
        async with workers(server, "one"):
            pass

    async def delete() -> None:
        connection = server.connection()
        try:
            await StepQueue(connection, "operator", TTL).delete()
        finally:
            await connection.close()

    for call in (begin, delete):
        with pytest.raises(
            PolicyError,
            match="has data of version 7, and this comity knows version 2: continue with the comity",
        ):
            asyncio.run(call())
    assert server.client().hlen("comity:{crawl}:meta") > 1


async def lose(queue: StepQueue, message: str) -> None:
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
                monkeypatch.setattr("comity.cluster.steps.queue.LAG", age)
                await one.put(rows(one, [put]))
                await one.look()
            for changed in one._connection._calls.changed:
                changed()
            server.client().hset(counts, "put", 2)
            await one.look()
            server.client().hset(counts, "put", 1)
            await lose(one, "of 2 requests that were put, 1 are gone")

    asyncio.run(run())


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
            await StepQueue(
                one._connection, "operator", TTL
            ).delete()  # all of its runs, swept or not

    asyncio.run(run())
    assert [key for key in server.client().scan_iter() if b":put:" not in key] == []


def start(queue: StepQueue, number: int) -> QueuedRequest:
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
                server.set_begin(number, 1000.0 * number)
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
            server.set_begin(4, 4000.0)
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
    monkeypatch.setattr(queue_module, "FORGOTTEN", 2)

    async def run() -> None:
        async with workers(server, "one") as (one,):
            await one.put(rows(one, range(900)))
            await finish(one)
            await one.finish()
            server.set_begin(1, 1000.0)
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
            await StepQueue(one._connection, "operator", TTL).delete()
            assert await two.exchange({"d": b"5"}) == {}
            async with workers(server, "four") as (four,):
                assert await four.exchange({}) == {}

    asyncio.run(run())


@pytest.mark.requirement("REACH-1")
def test_a_worker_that_leaves_gives_no_later_sign_of_life(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with workers(server, "one", "two") as (one, two):
            line, gate = one._connection._beats, asyncio.Event()
            send = line._send_batch

            async def sends(calls: list[Call]) -> None:
                await gate.wait()
                await send(calls)

            monkeypatch.setattr(line, "_send_batch", sends)
            renewing = asyncio.create_task(one.renew([]))
            await asyncio.sleep(0)
            renewing.cancel()  # as a worker does that leaves
            leaving = asyncio.create_task(one.close())
            await asyncio.sleep(0)
            await one.sums()  # its call comes after those of `close`
            gate.set()
            sending = line._task
            assert sending is not None
            await asyncio.wait([renewing, leaving, sending])
            assert (await two.status())["workers"] == {}

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
            await StepQueue(one._connection, "operator", TTL).delete()

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
