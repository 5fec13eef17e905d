"""The queue of a crawl: several workers, and what becomes of the hosts of those that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from comity.cluster.conformance.harness import Harness
from comity.cluster.conformance.workers import (
    TTL,
    A,
    B,
    bodies,
    eventually,
    finish,
    keys,
    reads,
    row,
    rows,
    until_answered,
    workers,
)
from comity.cluster.errors import StateError, StateFullError

NOW = 1_800_000_000.0
SETTINGS = b'{"USER_AGENT": "bot"}'


def test_requests_come_by_priority_and_then_in_order(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            put = [
                row(one, number, priority=priority)
                for number, priority in enumerate([0, 5, 0, -1, 5, 2**60, -(2**60)])
            ]
            assert await one.put(put) == [True] * 7
            (lease,) = await two.lease(10, 4)
            assert (lease.host, lease.waiting) == (A, 3)
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


def test_seen_requests_are_put_once_and_unfiltered_ones_each_time(
    harness: Harness, crawl: str
) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
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
            names = ("waiting", "out", "put", "filtered", "seen", "hosts")
            assert [status[name] for name in names] == [4, 0, 4, 2, 2, 2]
            assert (status["crawl"], status["run"], status["state"]) == (crawl, 1, "running")

    asyncio.run(run())


def test_many_fingerprints_are_seen_once_each(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl) as (one,):
            for begin in range(0, 4000, 2000):
                assert await one.put(rows(one, range(begin, begin + 2000))) == [True] * 2000
            assert await one.put(rows(one, range(4000))) == [False] * 4000
            assert (await one.status())["seen"] == 4000

    asyncio.run(run())


def test_workers_that_put_at_once_put_each_request_once(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 4) as queues:
            answers = await asyncio.gather(
                *(queue.put(rows(queue, range(200))) for queue in queues)
            )
            assert [sum(column) for column in zip(*answers, strict=True)] == [1] * 200
            assert (await queues[0].status())["put"] == 200

    asyncio.run(run())


def test_requests_are_done_when_any_worker_says_so(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
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


def test_requests_that_are_given_back_come_first_again(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            await one.put(rows(one, range(5)))
            await one.lease(1, 3)
            await two.release(A)  # it does not have the lease
            assert await two.lease(1, 9) == []
            await one.release(A)
            (lease,) = await two.lease(1, 9)
            assert bodies(lease) == [0, 1, 2, 3, 4]

    asyncio.run(run())


def test_the_crawl_does_not_wait_for_a_host_that_is_set_aside(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            await one.put(rows(one, range(3)))
            (lease,) = await one.lease(1, 1)
            await two.set_aside(A, 1000)  # it does not have the lease
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
            await one.ack(A, keys(lease))  # it was out
            assert await one.is_finished()
            status = await one.status()
            names = ("waiting", "set_aside", "out", "hosts")
            assert [status[name] for name in names] == [0, 3, 0, 1]
            await two.recall()
            assert not await one.is_finished()
            (lease,) = await two.lease(9, 9)
            assert bodies(lease) == [1, 2, 3]
            await two.ack(A, keys(lease))
            await two.release(A)
            assert await one.is_finished()
            assert (one.left, one.aside) == (0, 0)

    asyncio.run(run())


def test_a_host_that_was_set_aside_is_leased_when_it_is_due(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            await one.put(rows(one, range(2)))
            await one.lease(1, 1)
            await one.set_aside(A, 0)
            (lease,) = await two.lease(1, 9)
            assert bodies(lease) == [0, 1]
            assert sum(shard.aside for shard in await one.look()) == 0

    asyncio.run(run())


def test_a_worker_without_signs_of_life_loses_its_hosts(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with (
            workers(harness, crawl, ttl=0) as (frozen,),
            workers(harness, crawl) as (other,),
        ):
            await frozen.put(rows(frozen, range(3)))
            (lost,) = await frozen.lease(1, 2)
            (lease,) = await other.lease(1, 9)
            assert bodies(lost) == [0, 1]
            assert bodies(lease) == [0, 1, 2]
            assert reads(lease) == {0: 0, 1: 0, 2: -1}
            assert await frozen.renew([A]) == {A}
            assert await frozen.more(A, 1) is None
            await frozen.release(A)
            await frozen.set_aside(A, 1000)
            assert await other.renew([A]) == set()
            await frozen.ack(A, keys(lost))
            await other.ack(A, keys(lease))
            assert await other.is_finished()

    asyncio.run(run())


def test_a_lease_that_has_ended_counts_until_another_worker_takes_the_host(
    harness: Harness, crawl: str
) -> None:
    async def run() -> None:
        async with workers(harness, crawl, ttl=0) as (slow,):
            await slow.put(rows(slow, range(3)))
            await slow.lease(1, 2)
            slow.ttl = TTL
            assert await slow.renew([A]) == set()
            assert bodies(await slow.more(A, 9)) == [2]

    asyncio.run(run())


def test_no_host_has_two_workers(harness: Harness, crawl: str) -> None:
    hosts = [f"{number}.example" for number in range(40)]

    async def run() -> None:
        async with workers(harness, crawl, 3) as queues:
            await queues[0].put(
                [row(queues[0], number, host) for host in hosts for number in range(2)]
            )
            leased: list[str] = []
            while len(leased) < len(hosts):
                for leases in await asyncio.gather(*(queue.lease(7, 5) for queue in queues)):
                    assert len(leases) <= 7
                    leased += [lease.host for lease in leases]
            assert sorted(leased) == sorted(hosts)
            for queue in queues:
                await queue.renew([])
            await queues[0].look()
            assert queues[0].share == 14  # 40 hosts, 3 workers

    asyncio.run(run())


def test_a_host_waits_as_long_as_it_was_released_for_and_is_forgotten_when_empty(
    harness: Harness, crawl: str
) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            await one.put([row(one, 0), row(one, 0, B)])
            await one.lease(2, 1)
            await one.put([row(one, 1)])
            await one.release(A, 3600)
            assert await two.lease(2, 9) == []
            assert [
                (host.host, host.worker, host.waiting, host.out) for host in await two.hosts(9)
            ] == [(A, "", 2, 0), (B, one.worker, 0, 1)]
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


def test_a_host_that_was_free_too_shortly_is_unwanted(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl) as (one,):
            await one.put([row(one, 0)])
            assert await one.lease(1, 1, unwanted=3600) == []
            assert len(await one.lease(1, 1, shards=await one.look())) == 1

    asyncio.run(run())


def test_a_crawl_is_paused_resumed_ended_and_deleted(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl) as (one,), workers(harness, crawl) as (operator,):
            await one.put(rows(one, range(200)) + rows(one, range(5), B, is_filtered=False))
            await one.renew([])
            await operator.set_state("paused")
            await one.renew([])
            assert (one.state, await one.lease(9, 9)) == ("paused", [])
            await operator.set_state("running")
            await one.renew([])
            assert len(await one.lease(1, 1)) == 1
            with pytest.raises(StateError, match=f"{one.worker} work at crawl `{crawl}`"):
                await operator.delete()
            await operator.set_state("ended", "closespider_timeout")
            await operator.set_state("ended", "crawl_ended")
            await one.renew([])
            assert one.state == "ended"
            sums = await one.sums()
            assert (sums.state, sums.reason, sums.counts) == ("ended", "closespider_timeout", [])
            await one.close()
            assert (await operator.status())["workers"] == {}
            await operator.delete()
            for call in (operator.status, operator.sums, operator.settings, operator.delete):
                with pytest.raises(StateError, match="there is no crawl"):
                    await call()
            with pytest.raises(StateError, match="there is no crawl"):
                await operator.set_state("paused")
            await one.renew([])  # it has heard that the crawl ended
        async with workers(harness, crawl) as (new,):
            assert (await new.status())["put"] == 0
            assert await new.put(rows(new, [1])) == [True]

    asyncio.run(run())


def test_the_first_settings_of_a_crawl_count_until_they_are_replaced(
    harness: Harness, crawl: str
) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            with pytest.raises(StateError):
                await one.settings()
            agreed = await asyncio.gather(one.agree(SETTINGS), two.agree(b"{}"))
            assert set(agreed) in ({SETTINGS}, {b"{}"})
            assert await one.settings() == agreed[0]
            assert await two.deploy(b"[]") == agreed[0]
            await one.renew([])
            assert one.is_redeployed
            assert await one.agree(SETTINGS) == b"[]"
            assert not one.is_redeployed
            await one.renew([])
            assert not one.is_redeployed

    asyncio.run(run())


def test_a_finished_crawl_begins_again_once_for_all_workers(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 3) as (old, one, two):
            await old.put(rows(old, range(200)) + rows(old, range(3), B))
            await old.renew([])
            await old.tell({"pages": 5})
            await finish(old)
            assert (await old.finish() or 0.0) < 600
            for queue in (one, two):
                assert await queue.is_finished()
                assert (await queue.finish() or 0.0) < 600
            begun = await asyncio.gather(one.begin_again(), two.begin_again())
            assert sorted(begun) == [False, True]
            assert (one.run, two.run) == (2, 2)
            assert await one.put(rows(one, range(200))) == [True] * 200
            assert await two.put(rows(two, range(200))) == [False] * 200
            await old.renew([])
            assert (old.is_outdated, old.state) == (True, "ended")
            await old.tell({"pages": 7})  # of the run before
            assert await old.finish() is None  # it has the run of the others by now
            assert (old.run, old.is_outdated) == (2, False)
            status = await two.status()
            names = ("run", "put", "state", "finished_seconds", "counts")
            assert [status[name] for name in names] == [2, 200, "running", None, {}]
            assert not two.is_swept
            await two.sweep()
            assert two.is_swept
            await finish(two)
            assert await two.finish() is not None
            assert (await two.status())["state"] == "finished"
            assert await two.begin_again()
            await two.put(rows(two, range(9)))
            for queue in (old, one, two):
                await queue.close()
            await two.delete()
            with pytest.raises(StateError, match="there is no crawl"):
                await two.status()

    asyncio.run(run())


def test_the_end_of_a_crawl_is_as_long_ago_as_the_clock_of_the_store_says(
    harness: Harness, crawl: str
) -> None:
    async def run() -> None:
        async with workers(harness, crawl) as (one,):
            await one.put(rows(one, range(2)))
            await finish(one)
            assert await one.finish() == 0.0
            harness.set_clock(NOW + 100)
            assert await one.finish() == 100.0
            assert (await one.status())["finished_seconds"] == 100.0
            await one.put(rows(one, [500]))
            await finish(one)
            assert await one.finish() == 0.0  # since the last request was done

    harness.set_clock(NOW)
    try:
        asyncio.run(run())
    finally:
        harness.set_clock(None)


def test_a_dead_worker_is_buried_and_its_hosts_go_to_others_at_once(
    harness: Harness, crawl: str
) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 3) as (one, two, three):
            await one.put([*rows(one, range(3)), *rows(one, range(3), B)])
            leases = await one.lease(10, 2)
            assert {lease.host for lease in leases} == {A, B}
            await one.ack(A, keys(next(lease for lease in leases if lease.host == A))[:1])
            await one.renew([A, B])
            await two.renew([])
            assert await two.lease(10, 2) == []
            await three.bury(one.worker)
            assert sorted((lease.host, *bodies(lease)) for lease in await two.lease(10, 5)) == [
                (A, 1, 2),
                (B, 0, 1, 2),
            ]
            assert await one.renew([A, B]) == {A, B}
            await three.bury(one.worker)  # again, as the answer was lost
            assert await two.renew([A, B]) == set()
            assert list((await two.status())["workers"]) == [two.worker]

    asyncio.run(run())


def test_a_request_whose_readers_die_is_set_aside(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
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
                await two.bury(one.worker)
            (lease,) = [lease for lease in await one.lease(9, 9) if lease.host == A]
            assert reads(lease) == {0: 0, 2: 0}
            (unreadable,) = await two.unreadable_requests(9)
            assert (unreadable.host, unreadable.body) == (A, b"request 1")
            assert unreadable.why == "3 workers died while they read it"
            await one.ack(A, keys(lease))
            await one.release([A, B])
            await finish(one)
            status = await two.status()
            names = ("state", "waiting", "out", "done", "unreadable")
            assert [status[name] for name in names] == ["finished", 0, 0, 3, 1]
            assert await two.retry() == 1
            (lease,) = await one.lease(9, 9)
            assert reads(lease) == {1: -1}
            await one.ack(A, keys(lease))
            await one.release(A)
            assert await one.is_finished()
            assert await two.unreadable_requests(9) == []

    asyncio.run(run())


def test_unreadable_requests_do_not_hide_those_behind_them(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            await one.put(rows(one, range(4)))
            (lease,) = await one.lease(1, 2)
            for _ in range(3):
                await one.read(A, keys(lease), is_done=False)
            await two.bury(one.worker)
            (lease,) = await two.lease(1, 2)
            assert bodies(lease) == [2, 3]
            await two.release(A)
            assert (await two.status())["unreadable"] == 2

    asyncio.run(run())


def test_a_worker_sets_a_request_aside_wherever_it_is(harness: Harness, crawl: str) -> None:
    """It is out, waits again, or waits for a host that is set aside."""

    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
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
            names = ("waiting", "out", "set_aside", "unreadable", "done")
            assert [status[name] for name in names] == [0, 0, 0, 3, 0]
            await one.ack(A, [out])
            status = await two.status()
            assert (status["unreadable"], status["done"]) == (2, 1)

    asyncio.run(run())


def test_tries_of_an_origin_are_those_of_all_workers(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
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

    asyncio.run(run())


def test_the_sums_outlive_the_workers(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 3) as queues:
            one, two, three = queues
            for number, queue in enumerate(queues):
                await queue.renew([])
                await queue.tell({"items": number, "pages": 10})
            assert (await one.sums(("items", "pages", "none"))).counts == [3, 30, 0]
            for _ in range(2):
                await two.tell({"pages": 11})  # again, as the answer was lost
            await two.close()
            for _ in range(2):
                await one.bury(three.worker)
            status = await one.status()
            assert status["counts"] == {"items": 3, "pages": 31}
            assert (status["workers_left"], status["workers_died"]) == (1, 1)
            sums = await one.sums()
            assert (sums.state, sums.reason, sums.ended) == ("running", "", 0.0)
            assert 0 <= sums.began < 600

    asyncio.run(run())


# Faults


def test_a_put_whose_answer_was_lost_counts_once_and_is_answered_equally(
    harness: Harness, crawl: str
) -> None:
    """Another worker may have done the requests before the call is repeated."""

    async def run() -> None:
        proxy, url = harness.proxy()
        try:
            async with (
                workers(harness, crawl, url=url) as (one,),
                workers(harness, crawl) as (two,),
            ):
                put, left = 0, 0
                for after in range(6):  # the answers that arrive before the lost one
                    new = [row(one, 10 * after), row(one, 10 * after + 1, is_filtered=False)]
                    batch = [*new, row(one, 10 * after), row(one, 10 * after, B)]
                    proxy.lose_answer(after)
                    try:
                        answer = await one.put(batch)
                    except StateError:
                        left += 1
                        proxy.pass_all()
                        for lease in await two.lease(9, 9):
                            await two.ack(lease.host, keys(lease))
                            await two.release(lease.host)
                        answer = await until_answered(partial(one.put, batch))
                    proxy.pass_all()
                    assert answer == [True, True, False, True]
                    put += 3
                    assert (await two.status())["put"] == put
                    await finish(two)
                assert proxy.lost >= left > 0
                assert (await two.status())["done"] == put
        finally:
            proxy.close()

    asyncio.run(run())


def test_calls_whose_answer_was_lost_can_be_repeated(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        proxy, url = harness.proxy()
        try:
            async with (
                workers(harness, crawl, url=url, ttl=TTL) as (one,),
                workers(harness, crawl) as (two,),
            ):
                for after in range(3):
                    await two.put(rows(two, range(10 * after, 10 * after + 4)))
                    (lease,) = await until_answered(lambda: one.lease(1, 2))
                    calls: list[Callable[[], Awaitable[object]]] = [
                        partial(one.ack, A, keys(lease)),
                        lambda: one.tell({"pages": 3}),
                        lambda: one.renew([A]),
                        lambda: one.release(A, 0.0),
                        lambda: one.bury("nobody"),
                    ]
                    for call in calls:
                        proxy.lose_answer(after)
                        await until_answered(call)
                        proxy.pass_all()
                    assert (await two.sums(["pages"])).counts == [3]
                    (rest,) = await two.lease(1, 9)
                    assert len(rest.requests) == 2
                    await two.ack(A, keys(rest))
                    await two.release(A)
                assert proxy.lost > 0
                status = await two.status()
                assert (status["put"], status["done"]) == (12, 12)
        finally:
            proxy.close()

    asyncio.run(run())


def test_a_full_server_takes_no_requests_and_all_else_goes_on(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl, 2) as (one, two):
            await one.put(rows(one, range(20)) + rows(one, range(20), B))
            (lease,) = await one.lease(1, 5)
            harness.fill()
            try:
                with pytest.raises(StateFullError):
                    await one.put(rows(one, range(100, 105)))
                assert await one.renew([lease.host]) == set()
                assert len((await two.lease(1, 3))[0].requests) == 3
                assert await one.more(lease.host, 5) is not None
                await one.ack(lease.host, keys(lease))
                await one.set_aside(lease.host, 1000)
                await two.recall()
                await one.tell({"pages": 1})
            finally:
                harness.make_room()
            assert await one.put(rows(one, range(100, 105))) == [True] * 5
            status = await one.status()
            assert (status["put"], status["done"], status["out"]) == (45, 5, 3)

    asyncio.run(run())


def test_nothing_confirmed_is_lost_when_the_server_is_killed(
    own_harness: Harness, crawl: str
) -> None:
    """Requests that were put are there, those that were done are not."""

    async def run() -> None:
        async with workers(own_harness, crawl) as (one,):
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
                own_harness.kill()
                (answer,) = await asyncio.gather(task, return_exceptions=True)
                own_harness.start()
                if isinstance(answer, StateError):
                    answer = await until_answered(partial(one.put, unanswered))
                assert answer == [True] * 100
                put.update(range(number - 100, number))
            left: set[int] = {0}
            while (more := await one.more(A, 100)) and more.requests:
                left.update(bodies(more))
            assert left == put - done
            assert (await one.status())["put"] == len(put)

    asyncio.run(run())


def test_a_server_that_stood_still_has_done_each_call_once(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl) as (one,), workers(harness, crawl) as (two,):
            await one.put(rows(one, range(5)))
            batch = rows(one, range(100, 110))
            harness.pause()
            try:
                with pytest.raises(StateError):
                    await one.put(batch)
            finally:
                harness.resume()
            assert await until_answered(lambda: one.put(batch)) == [True] * 10
            (lease,) = await until_answered(lambda: two.lease(1, 99))
            assert bodies(lease) == [*range(5), *range(100, 110)]

    asyncio.run(run())


def test_after_a_fail_over_the_crawl_goes_on(own_harness: Harness, crawl: str) -> None:
    """Requests that were put again count once, if the replica has them."""

    async def run() -> None:
        async with workers(own_harness, crawl) as (one,):
            await one.renew([])
            assert await one.put(rows(one, range(50))) == [True] * 50
            (lease,) = await one.lease(1, 10)
            own_harness.promote()

            async def goes_on() -> bool:
                try:
                    await one.renew([A])
                    await one.ack(A, keys(lease))
                    await one.put(rows(one, range(50)))
                except StateError:
                    return False
                return True

            await eventually(goes_on)
            left: set[int] = set()
            await one.release(A)
            (rest,) = await one.lease(1, 99)
            left.update(bodies(rest))
            assert left == set(range(10, 50))
            await one.ack(A, keys(rest))
            await one.release(A)
            await eventually(one.is_finished)

    asyncio.run(run())
