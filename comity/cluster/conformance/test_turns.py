"""The pace of hosts: starts under limits, of several workers that know nothing of each other.

Windows are long, and a wait may differ by SLACK, so that the load of the machine decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from comity.cluster.conformance.harness import Harness
from comity.cluster.conformance.workers import (
    TURNS_TTL,
    Turns,
    ask,
    eventually,
    rows,
    turns,
    workers,
)
from comity.gate.pace.ledger import ASK_THROUGH, PENALTY, PaceLimit
from comity.policies.syntax.windows import Window

NOW = 1_800_000_000.0
SLACK = 20.0


def limit_of(host: str, requests: int = 1, seconds: float = 3600) -> PaceLimit:
    return PaceLimit(host, (Window(requests, seconds),))


def flying_of(host: str) -> PaceLimit:
    return PaceLimit(f"http://{host} /a (in flight)", (Window(2, 0.0),), through=True)


async def waits(harness: Harness, seconds: float, *limits: PaceLimit) -> None:
    """Check how long other workers wait for a start; 0: they do not."""
    wait, _ = await ask(harness, *limits)
    assert wait == pytest.approx(seconds, abs=SLACK if seconds else 0.0)


async def soon_waits(harness: Harness, seconds: float, *limits: PaceLimit) -> None:
    """Wait until other workers wait so long: the store may hear of a start later."""

    async def holds() -> bool:
        wait, _ = await ask(harness, *limits)
        return abs(wait - seconds) <= (SLACK if seconds else 0.0)

    await eventually(holds)


def test_a_start_counts_for_every_worker(harness: Harness, host: str) -> None:
    async def run() -> None:
        async with turns(harness) as one:
            limit = limit_of(host, 2)
            first = await one.start(limit)
            second = await one.start(limit)
            one.ledger.settle(first, 0)
            one.ledger.settle(second, 0)
            await soon_waits(harness, 3600, limit)
            await waits(harness, 0, limit_of(f"b.{host}"))

    asyncio.run(run())


def test_workers_that_ask_at_once_get_as_many_starts_as_there_are(
    harness: Harness, host: str
) -> None:
    async def start(limit: PaceLimit) -> bool:
        async with turns(harness) as one:
            grant = await one.acquire(limit)
            if grant.number is not None:
                one.ledger.settle(grant.number, 0)
            return grant.number is not None

    async def run() -> None:
        limit = limit_of(host, 3)
        started = await asyncio.gather(*(start(limit) for _ in range(12)))
        assert sum(started) == 3

    asyncio.run(run())


def test_a_request_that_never_went_out_counts_as_nothing(harness: Harness, host: str) -> None:
    async def run() -> None:
        async with turns(harness) as one:
            limits = limit_of(host), limit_of(f"http://{host} /a"), flying_of(host)
            one.ledger.end(await one.start(*limits))
            await soon_waits(harness, 0, *limits)
            number = await one.start(*limits)
            one.ledger.settle(number, 0)
            one.ledger.end(number)
            await soon_waits(harness, 3600, *limits)

    asyncio.run(run())


def test_a_start_is_one_of_all_its_limits_or_of_none(harness: Harness, host: str) -> None:
    async def run() -> None:
        of_host, scope = limit_of(host, 2), limit_of(f"http://{host} /a", 1, 7200)
        async with turns(harness) as one:
            one.ledger.settle(await one.start(of_host, scope), 0)
            await soon_waits(harness, 7200, of_host, scope)
            _, slower = await ask(harness, of_host, scope)
            assert slower == scope
            await waits(harness, 0, of_host)  # the refused start has used nothing up

    asyncio.run(run())


def test_as_many_are_in_flight_as_may_be_over_all_workers(harness: Harness, host: str) -> None:
    """A request is in flight until its end, and not only until its headers."""

    async def run() -> None:
        free, flying = limit_of(host, 99, 1.0), flying_of(host)
        async with turns(harness) as one, turns(harness) as other:
            first = await one.start(free, flying)
            second = await other.start(free, flying)
            one.ledger.settle(first, 0)
            wait, slower = await ask(harness, free, flying)
            assert (wait <= ASK_THROUGH, slower) == (True, flying)
            one.ledger.end(first)
            await soon_waits(harness, 0, free, flying)
            other.ledger.settle(second, 0)
            other.ledger.end(second)

    asyncio.run(run())


def test_a_penalty_holds_for_all_workers_and_grows(harness: Harness, host: str) -> None:
    async def run() -> None:
        async with turns(harness) as one, turns(harness) as other:
            assert one.ledger.back_off(host, None, NOW) == NOW + PENALTY
            assert one.ledger.penalty(host, NOW) == NOW + PENALTY
            await soon_waits(harness, PENALTY, limit_of(host))
            await waits(harness, PENALTY, limit_of(f"http://{host} /a"))
            await waits(harness, 0, limit_of(f"b.{host}"))
            rested: asyncio.Future[float] = asyncio.get_running_loop().create_future()
            other.ledger.rests = lambda host, until: rested.set_result(until)
            other.ledger.back_off(host, 5.0, NOW)  # it does not shorten the penalty
            assert await rested - NOW == pytest.approx(PENALTY, abs=SLACK)
            other.ledger.rests = lambda host, until: None
            other.ledger.back_off(host, 7200.0, NOW)
            await soon_waits(harness, 7200, limit_of(host))

    asyncio.run(run())


def test_a_leased_host_comes_with_its_penalty(harness: Harness, crawl: str, host: str) -> None:
    async def run() -> None:
        async with turns(harness) as one, workers(harness, crawl) as (queue,):
            one.ledger.back_off(host, 3600.0, NOW)
            await soon_waits(harness, 3600, limit_of(host))
            await queue.put(rows(queue, range(2), host))
            (lease,) = await queue.lease(1, 1)
            assert lease.rests == pytest.approx(3600, abs=SLACK)

    asyncio.run(run())


def test_the_pace_of_a_host_is_known(harness: Harness, crawl: str, host: str) -> None:
    async def run() -> None:
        async with turns(harness) as one, workers(harness, crawl) as (queue,):
            assert await queue.pauses([host]) == [0.0]
            one.ledger.settle(await one.start(limit_of(host, 1, 50.0)), 0)
            await soon_waits(harness, 50, limit_of(host, 1, 50.0))
            assert await queue.pauses([host, f"b.{host}"]) == [50.0, 0.0]

    asyncio.run(run())


def test_a_worker_that_leaves_has_no_request_in_flight(harness: Harness, host: str) -> None:
    async def run() -> None:
        limit, unanswered = limit_of(host, 2), limit_of(f"b.{host}")
        async with turns(harness) as one:
            await one.start(limit)
            one.ledger.acquire([unanswered], NOW)
            assert one.ledger.is_used
        async with turns(harness) as other:
            other.ledger.settle(await other.start(limit), 0)
            await soon_waits(harness, 3600, limit)  # both starts count
        await waits(harness, 0, unanswered)

    asyncio.run(run())


# Faults


@pytest.fixture
def clock(harness: Harness) -> Iterator[Harness]:
    """The harness, with a clock that stands still."""
    harness.set_clock(NOW)
    yield harness
    harness.set_clock(None)


def test_a_delay_counts_from_the_headers(clock: Harness, host: str) -> None:
    async def run() -> None:
        async with turns(clock) as one:
            limit = limit_of(host, 1, 200)
            number = await one.start(limit)
            assert (await ask(clock, limit))[0] > 0
            clock.set_clock(NOW + 90)
            one.ledger.settle(number, 0)
            await soon_waits(clock, 200, limit)
            clock.set_clock(NOW + 190)
            await waits(clock, 100, limit)
            clock.set_clock(NOW + 289)
            wait, slower = await ask(clock, limit)
            assert (wait <= 1, slower) == (True, limit)
            clock.set_clock(NOW + 291)
            await waits(clock, 0, limit)

    asyncio.run(run())


def test_a_request_of_a_dead_worker_counts_until_the_worker_was_dead(
    clock: Harness, host: str
) -> None:
    async def run() -> None:
        limit = limit_of(host, 1, 1000)
        async with turns(clock) as dead:
            await dead.start(limit)
            clock.set_clock(NOW + TURNS_TTL + 50)
            await waits(clock, 950, limit)  # a whole window after it was dead

    asyncio.run(run())


def test_signs_of_life_keep_a_request_in_flight(clock: Harness, host: str) -> None:
    async def run() -> None:
        limit = limit_of(host, 1, 200)
        async with turns(clock) as one:
            number = await one.start(limit)
            for seconds in range(0, 600, 30):
                clock.set_clock(NOW + seconds)
                one.ledger.beat(0)
                assert (await ask(clock, limit))[0] > 0
            one.ledger.end(number)
            await soon_waits(clock, 0, limit)

    asyncio.run(run())


def test_a_clock_that_is_set_back_lets_no_start_out_early(clock: Harness, host: str) -> None:
    """A moment that lies ahead counts as now."""

    async def run() -> None:
        limit, rests = limit_of(host, 1, 200), limit_of(f"b.{host}", 1, 10)
        async with turns(clock) as one:
            one.ledger.settle(await one.start(limit), 0)
            one.ledger.back_off(rests.name, 300, NOW)
            await soon_waits(clock, 200, limit)
            await soon_waits(clock, 300, rests)
            clock.set_clock(NOW - 3600)
            await waits(clock, 200, limit)
            await waits(clock, 300, rests)
            clock.set_clock(NOW - 3600 + 201)
            await waits(clock, 0, limit)

    asyncio.run(run())


def test_a_clock_that_is_set_forward_lets_starts_out_and_no_more_than_a_window(
    clock: Harness, host: str
) -> None:
    async def run() -> None:
        limit = limit_of(host, 1, 200)
        async with turns(clock) as one:
            one.ledger.settle(await one.start(limit), 0)
            await soon_waits(clock, 200, limit)
            clock.set_clock(NOW + 86400)
            one.ledger.settle(await Turns(one.ledger).start(limit_of(f"b.{host}")), 0)
            await waits(clock, 0, limit)
            await soon_waits(clock, 3600, limit_of(f"b.{host}"))

    asyncio.run(run())


def test_a_start_whose_answer_was_lost_is_given_back(harness: Harness, host: str) -> None:
    async def run() -> None:
        proxy, url = harness.proxy()
        try:
            state = harness.state("conformance", 10.0, url=url)
            ledger = state.ledger()
            one = Turns(ledger)
            for after in range(4):
                limit = limit_of(f"{after}.{host}")
                proxy.lose_answer(after)
                grant = await one.acquire(limit)
                proxy.pass_all()
                if grant.number is None:
                    await soon_waits(harness, 0, limit)
                else:
                    ledger.end(grant.number)
            ledger.close()
            await state.close()
            assert proxy.lost > 0
        finally:
            proxy.close()

    asyncio.run(run())


def test_on_a_full_server_the_pace_goes_on(harness: Harness, host: str) -> None:
    """The crawl has to go on, so that it leaves less."""

    async def run() -> None:
        async with turns(harness) as one:
            limit, flying = limit_of(host), flying_of(host)
            harness.fill()
            try:
                number = await one.start(limit, flying)
                one.ledger.beat(NOW)
                one.ledger.settle(number, NOW)
                one.ledger.end(number)
                one.ledger.back_off(f"b.{host}", 600, NOW)
                await soon_waits(harness, 3600, limit, flying)
                await soon_waits(harness, 600, limit_of(f"b.{host}"))
            finally:
                harness.make_room()

    asyncio.run(run())


def test_after_a_restart_of_the_server_starts_still_count(own_harness: Harness, host: str) -> None:
    """Messages that were sent while it was away arrive later."""

    async def run() -> None:
        async with turns(own_harness) as one:
            limit, late = limit_of(host), limit_of(f"b.{host}")
            first, second = await one.start(limit), await one.start(late)
            one.ledger.settle(first, 0)
            await soon_waits(own_harness, 3600, limit)
            own_harness.kill()
            one.ledger.settle(second, 0)
            one.ledger.back_off(f"c.{host}", 7200, NOW)
            own_harness.start()
            await soon_waits(own_harness, 3600, limit)
            await soon_waits(own_harness, 3600, late)
            await soon_waits(own_harness, 7200, limit_of(f"c.{host}"))

    asyncio.run(run())


def test_after_a_fail_over_no_start_comes_early(own_harness: Harness, host: str) -> None:
    async def run() -> None:
        async with turns(own_harness) as one:
            limit = limit_of(host, 1, 600)
            one.ledger.settle(await one.start(limit), 0)
            await soon_waits(own_harness, 600, limit)
            own_harness.promote()
            await soon_waits(own_harness, 600, limit)

    asyncio.run(run())
