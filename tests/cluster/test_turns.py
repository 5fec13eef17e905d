"""The pace of hosts on a server: turns of several processes, by a clock of the server that the tests move; and the same as the
pace file grants, over chance windows and moments."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import time
from hashlib import sha1
from pathlib import Path
from time import monotonic
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.cluster.address import pace_key
from comity.cluster.queue import QueuedRequest
from comity.cluster.redis import connection as connection_module
from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.connection import StateConnection
from comity.cluster.redis.scripts import Script, script
from comity.cluster.steps import turns as turns_module
from comity.cluster.steps.line import LineConnection
from comity.cluster.steps.queue import StepQueue
from comity.cluster.steps.turns import StepTurns
from comity.gate.pace.ledger import FAILING, PENALTY, Grant, PaceLimit, RateLedger
from comity.policies.syntax.windows import Window
from tests.redis_server import Server

NOW = 1_800_000_000.0
TTL = 10.0
HOST = "example.org"
SCOPE = "http://example.org /a"
DELAY = (Window(1, 2),)
FEW = PaceLimit(f"{SCOPE} (in flight)", (Window(2, 0.0),), through=True)


class Clock:
    """The clock of the server, as the scripts see it."""

    def __init__(self, server: Server) -> None:
        self._client = server.client()
        self.now = NOW
        self.set(NOW)

    def set(self, now: float) -> None:
        self.now = now
        self._client.set("clock", f"{now * 1e6:.0f}")


@pytest.fixture
def clock(server: Server, monkeypatch: pytest.MonkeyPatch) -> Clock:
    def found(step: str) -> Script:
        return by_the_clock(script(step)) if step.startswith("pace") else script(step)

    monkeypatch.setattr(connection_module, "script", found)
    monkeypatch.setattr(
        turns_module, "monotonic", lambda: 0.0
    )  # what passes between an answer and the look at it is no wait
    return Clock(server)


def by_the_clock(script: Script) -> Script:
    read = "local time = redis.call('TIME')\n  return time[1] * 1000000 + time[2]"
    assert read in script.text
    text = script.text.replace(read, "return tonumber(redis.call('GET', 'clock'))")
    return Script(script.name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class Process:
    """A worker's turns, with answers that are waited for."""

    def __init__(self, connection: LineConnection, *, ttl: float = TTL) -> None:
        self.connection = connection
        self.turns = StepTurns(connection, owner_ttl=ttl)
        self.turns.on_answer = lambda limits: self._answered.set()
        self._answered = asyncio.Event()

    async def acquire(self, *limits: PaceLimit, now: float = NOW) -> Grant:
        """What the server says now, and not what it has said before."""
        self.turns._refused.clear()
        self._answered.clear()
        grant = self.turns.acquire(limits, now)
        if grant == Grant(None, math.inf):
            await self._answered.wait()
            grant = self.turns.acquire(limits, now)
        return grant

    async def told(self) -> None:
        """Until the server has heard of everything."""
        await self.connection.call("pace rests", pace_key(HOST))


@asynccontextmanager
async def processes(server: Server, number: int = 2) -> AsyncIterator[list[Process]]:
    connections = [server.connection() for _ in range(number)]
    all_of_them = [Process(connection) for connection in connections]
    try:
        yield all_of_them
    finally:
        for process in all_of_them:
            process.turns.close()
            await process.connection.close()


def number(grant: Grant) -> int:
    assert grant.number is not None
    return grant.number


def wait(grant: Grant, clock: Clock) -> float:
    """Seconds until it is to be asked again, where it is not now."""
    assert grant.number is None
    return round(grant.due - NOW, 2)


Test = Callable[[list[Process], Clock], Awaitable[None]]


def run(server: Server, clock: Clock, test: Test, count: int = 2) -> None:
    async def runs() -> None:
        async with processes(server, count) as them:
            await test(them, clock)

    asyncio.run(runs())


@pytest.mark.requirement("RATE-2")
def test_what_never_went_out_counts_as_nothing(server: Server, clock: Clock) -> None:
    async def test(them: list[Process], clock: Clock) -> None:
        one, other = them
        limits = PaceLimit(HOST, DELAY), PaceLimit(SCOPE, DELAY), FEW
        first = number(await one.acquire(*limits))
        one.turns.end(first)
        await one.told()
        second = number(await other.acquire(*limits))
        one.turns.settle(first, 0)  # too late, and to no effect
        other.turns.settle(second, 0)
        other.turns.end(second)
        await one.told()
        await other.told()
        clock.set(NOW + 1)
        assert wait(await one.acquire(*limits), clock) == 1

    run(server, clock, test)


@pytest.mark.requirement("RATE-2")
def test_a_worker_that_was_taken_for_dead_has_its_request_in_flight_when_it_goes_on(
    server: Server, clock: Clock
) -> None:
    async def test(them: list[Process], clock: Clock) -> None:
        frozen, other = them
        limit = PaceLimit(HOST, (Window(2, 100),))
        first = number(await frozen.acquire(limit))
        clock.set(NOW + TTL + 1)
        other.turns.end(number(await other.acquire(limit)))
        frozen.turns.beat(0)
        await frozen.told()
        clock.set(NOW + TTL + 100)
        frozen.turns.beat(0)
        await frozen.told()
        number(await other.acquire(limit))
        assert wait(await other.acquire(limit), clock) == TTL
        frozen.turns.settle(first, 0)
        await frozen.told()
        clock.set(NOW + TTL + 199)
        assert wait(await other.acquire(limit), clock) == 1

    run(server, clock, test)


@pytest.mark.requirement("RATE-2")
def test_what_ends_while_it_is_told_to_be_in_flight_has_ended(server: Server, clock: Clock) -> None:
    async def test(them: list[Process], clock: Clock) -> None:
        one, other = them
        limit = PaceLimit(HOST, DELAY)
        first = number(await one.acquire(limit))
        rows = [(first, limit)]
        one.turns.end(first)
        await one.told()
        # As if the sign of life had come to the server later than the end.
        held = one.connection.call(
            "pace hold", pace_key(HOST), one.turns._owner, 10**7, first, HOST, 2 * 10**6
        )
        held.add_done_callback(lambda answer: one.turns._end_late(rows, answer))
        await held
        await one.told()
        number(await other.acquire(limit))

    run(server, clock, test)


@pytest.mark.requirement("RATE-2")
def test_what_the_owner_does_not_know_of_is_settled_when_it_asks(
    server: Server, clock: Clock
) -> None:
    """The answer to its turn was lost, and the end of it came before it."""

    async def test(them: list[Process], clock: Clock) -> None:
        one, other = them
        limit = PaceLimit(HOST, DELAY)
        lost = number(await one.acquire(limit))
        del one.turns._flights[lost], one.turns._flying[HOST]
        assert wait(await other.acquire(limit), clock) == 2
        assert wait(await one.acquire(limit), clock) == 2
        clock.set(NOW + 2)
        number(await other.acquire(limit))

    run(server, clock, test)


def test_a_grant_that_nobody_takes_is_given_back(server: Server, clock: Clock) -> None:
    async def test(them: list[Process], clock: Clock) -> None:
        one, other = them
        limit = PaceLimit(HOST, DELAY)
        asked = asyncio.Event()
        one.turns.on_answer = lambda limits: asked.set()
        assert (
            one.turns.acquire([limit], NOW)
            == one.turns.acquire([limit], NOW)
            == Grant(None, math.inf)
        )
        await asked.wait()
        assert one.turns.is_used
        one.turns._give_back((limit,), one.turns._inquiries[limit,])  # as the timer does
        assert not one.turns.is_used
        await one.told()
        number(await other.acquire(limit))

    run(server, clock, test)


@pytest.mark.requirement("RATE-2")
def test_an_answer_that_took_long_is_not_used(server: Server, clock: Clock) -> None:
    async def test(them: list[Process], clock: Clock) -> None:
        one, _ = them
        limit = PaceLimit(HOST, DELAY)
        one.turns.end(number(await one.acquire(PaceLimit("c.example", DELAY))))
        await one.told()  # the server has the scripts: one that it has not comes after those that are called with it
        one.turns.acquire([limit], NOW)
        one.turns._inquiries[limit,].sent -= TTL / 2
        grant = number(await one.acquire(limit))
        assert grant == 3  # the one before was ended
        first = one.turns.acquire([PaceLimit("b.example", DELAY)], NOW)
        assert first.number is None
        await one._answered.wait()
        one.turns._inquiries[PaceLimit("b.example", DELAY),].sent -= (
            TTL / 2
        )  # the process stood still since the answer came
        assert one.turns.acquire([PaceLimit("b.example", DELAY)], NOW) == Grant(None, math.inf)

    run(server, clock, test)


@pytest.mark.requirement("RATE-4")
def test_a_penalty_holds_for_all_and_grows(server: Server, clock: Clock) -> None:
    async def test(them: list[Process], clock: Clock) -> None:
        one, other = them
        assert one.turns.back_off(HOST, None, NOW) == NOW + PENALTY
        assert one.turns.penalty(HOST, NOW) == NOW + PENALTY
        await one.told()
        refused = await other.acquire(PaceLimit(SCOPE, DELAY))
        assert (wait(refused, clock), refused.limit) == (PENALTY, None)
        assert wait(await other.acquire(PaceLimit(HOST, ())), clock) == PENALTY
        number(await other.acquire(PaceLimit("example.com", DELAY)))
        longer: list[float] = []
        other.turns.rests = lambda host, until: longer.append(round(until - NOW - PENALTY))
        clock.set(NOW + PENALTY)
        assert other.turns.back_off(HOST, None, NOW + PENALTY) == NOW + 2 * PENALTY
        await other.told()
        assert longer == [2 * PENALTY]
        assert round(other.turns.penalty(HOST, NOW + PENALTY) - NOW) == 3 * PENALTY
        assert one.turns.back_off(HOST, 5.0, NOW + PENALTY) == NOW + PENALTY + 5
        queue = StepQueue(one.connection, "one", 10)
        await queue.open()
        await queue.put([QueuedRequest(HOST, None, queue.new_key(), 0, b"")])
        (lease,) = await queue.lease(1, 1)
        assert round(lease.rests) == 2 * PENALTY

    run(server, clock, test)


@pytest.mark.requirement("RATE-2")
def test_who_leaves_has_nothing_in_flight_any_more(server: Server, clock: Clock) -> None:
    async def test(them: list[Process], clock: Clock) -> None:
        one, other = them
        limit = PaceLimit(HOST, (Window(2, 100),))
        number(await one.acquire(limit))
        await one.acquire(PaceLimit("b.example", DELAY))
        one.turns.acquire([PaceLimit("c.example", DELAY)], NOW)  # not answered yet
        one.turns.close()
        await one.told()
        number(await other.acquire(limit))
        assert wait(await other.acquire(limit), clock) == 100
        number(await other.acquire(PaceLimit("c.example", DELAY)))
        assert server.client().zcard(f"{pace_key(HOST)}:beat") == 1

    run(server, clock, test)


@pytest.mark.requirement("RATE-2")
def test_after_the_server_was_started_anew_a_whole_window_is_waited(own_server: Server) -> None:
    """It may have lost its last second."""

    async def test() -> None:
        async with processes(own_server) as (one, _):
            limit, other = (
                PaceLimit(HOST, (Window(10, 60),)),
                PaceLimit("b.example", (Window(1, 60),)),
            )
            number(await one.acquire(limit))
            own_server.kill()
            own_server.start()
            while (grant := await one.acquire(limit)).due - NOW <= FAILING:
                assert grant.number is None  # it is away still
            assert 59 < grant.due - NOW <= 60
            assert 59 < (await one.acquire(other)).due - NOW <= 60

    asyncio.run(test())


@pytest.mark.requirement("RATE-2")
def test_after_the_data_were_erased_a_whole_window_is_waited(server: Server, clock: Clock) -> None:
    """The starts of before are gone with them."""

    async def test(them: list[Process], clock: Clock) -> None:
        one, other = them
        limit = PaceLimit(HOST, DELAY)
        one.turns.settle(number(await one.acquire(limit)), 0)
        for process in them:
            await process.told()
        server.client().flushall()
        clock.set(NOW + 1)
        assert wait(await other.acquire(limit), clock) == 2
        clock.set(NOW + 3)
        number(await one.acquire(limit))

    run(server, clock, test)


class Forwarder:
    """An address that leads to one server after the other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = StateAddress.parse(
            f"redis://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}", "crawl", {}
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.lead_to(self.server)

    def lead_to(self, server: Server) -> None:
        """From now on; connections that there are come to their end."""
        self.server = server
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self._writers += [writer, inner_writer]
        await asyncio.gather(
            relay(reader, inner_writer), relay(inner_reader, writer), return_exceptions=True
        )


async def relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: bytearray | None = None
) -> None:
    """Pass octets on. `passed` gets a copy of them."""
    while data := await reader.read(2**16):
        if passed is not None:
            passed += data
        writer.write(data)
    writer.close()


def wait_for_copy(primary: Server) -> None:
    """Until its replica has all that it has."""
    client: Any = primary.client()
    while not client.wait(1, 1000):
        pass


@pytest.mark.slow
@pytest.mark.requirement("REACH-3", "RATE-2")
def test_after_a_replica_has_taken_over_a_whole_window_is_waited(
    own_server: Server, replica: Server
) -> None:
    """It may lack the last starts. So may the one before, where it has gone on by itself and is taken again."""

    async def test() -> None:
        async with Forwarder(own_server) as forwarder:
            process = Process(StateConnection(forwarder.address))
            limit = PaceLimit(HOST, (Window(10, 60),))
            number(await process.acquire(limit))
            wait_for_copy(own_server)
            for server in (replica, own_server):
                replica.client().replicaof("NO", "ONE")
                forwarder.lead_to(server)
                while (grant := await process.acquire(limit)).due - NOW <= FAILING:
                    assert grant.number is None  # the connection has come to its end
                assert 59 < grant.due - NOW <= 60
            assert grant.number is None
            process.turns.close()
            await process.connection.close()

    asyncio.run(test())


@pytest.mark.requirement("REACH-3", "RATE-2")
def test_after_the_clock_was_set_forward_a_whole_window_is_waited(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock of the worker that goes back by an hour shows the same as a server's that goes on."""
    behind = 0.0
    monkeypatch.setattr(connection_module, "monotonic", lambda: monotonic() - behind)

    async def test() -> None:
        nonlocal behind
        async with processes(own_server) as (one, other):
            limit = PaceLimit(HOST, (Window(10, 60),))
            for process in (one, other):
                number(await process.acquire(limit))
            behind = 3600
            for process in (one, other):
                dropped = await process.acquire(limit)
                assert dropped.number is None
                assert dropped.due - NOW <= FAILING
            for process in (one, other):
                grant = await process.acquire(limit)
                assert grant.number is None
                assert 59 < grant.due - NOW <= 60

    asyncio.run(test())


@pytest.mark.slow
@pytest.mark.requirement("REACH-3", "RATE-2")
def test_workers_that_come_back_one_after_the_other_wait_once(
    own_server: Server, replica: Server
) -> None:
    async def test() -> None:
        async with Forwarder(own_server) as forwarder, Forwarder(own_server) as late:
            one, two = (
                Process(StateConnection(forwarder.address)),
                Process(StateConnection(late.address)),
            )
            limit = PaceLimit(HOST, (Window(10, 1),))
            for process in (one, two):
                number(await process.acquire(limit))
            wait_for_copy(own_server)
            replica.client().replicaof("NO", "ONE")
            forwarder.lead_to(replica)
            while (await one.acquire(limit)).number is None:
                pass
            late.lead_to(replica)
            while (await two.acquire(limit)).due - NOW == FAILING:
                pass
            number(await one.acquire(limit))
            for process in (one, two):
                process.turns.close()
                await process.connection.close()

    asyncio.run(test())


moments = st.builds(time, st.integers(0, 23), st.sampled_from([0, 30]))
windows = st.lists(
    st.one_of(
        st.builds(Window, st.integers(1, 4), st.sampled_from([0.5, 1.0, 3.0, 20.0])),
        st.builds(Window, st.sampled_from([100, 1000]), st.sampled_from([10.0, 60.0])),
        st.builds(Window, st.integers(1, 2), st.sampled_from([60.0, 7200.0]), moments, moments),
    ),
    min_size=1,
    max_size=3,
)
hosts = st.sampled_from(["a", "b"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("acquire"), st.integers(0, 2), hosts),
        st.tuples(st.just("acquire all"), st.integers(0, 2), hosts),
        st.tuples(st.just("settle"), st.integers(0, 9), st.none()),
        st.tuples(st.just("end"), st.integers(0, 9), st.none()),
        st.tuples(
            st.just("wait"), st.sampled_from([0.01, 0.5, 1.0, 2.5, 9.0, 11.0, 3000.0]), st.none()
        ),
        st.tuples(st.just("back off"), st.sampled_from([None, 2.0, 30.0]), hosts),
        st.tuples(st.just("die"), st.integers(1, 2), st.none()),
    ),
    max_size=30,
)


@pytest.mark.requirement("RATE-2")
def test_turns_are_granted_as_the_pace_file_grants_them(
    server: Server, clock: Clock, tmp_path: Path
) -> None:
    """The same to the microsecond, whoever asks, settles, ends and dies."""
    names = map(str, itertools.count())

    @given(windows, st.integers(1, 3), steps)
    def check(
        limits: list[Window], flying: int, steps: list[tuple[str, float | int | None, str | None]]
    ) -> None:
        asyncio.run(compare(limits, flying, steps))

    async def compare(
        limits: list[Window], flying: int, steps: list[tuple[str, float | int | None, str | None]]
    ) -> None:
        example = next(names)
        clock.set(NOW)
        path = tmp_path / f"{example}.sqlite"
        ledgers = [RateLedger(path, owner_ttl=TTL) for _ in range(3)]
        alive = [True] * 3
        grants: list[tuple[int, int, int]] = []  # whose, in the file, at the server

        def limits_of(host: str, *, scoped: bool) -> list[PaceLimit]:
            name = f"{host}{example}.example"
            of_scope = [
                PaceLimit(f"http://{name} /a", (Window(2, 5.0),)),
                PaceLimit(f"http://{name} /a (in flight)", (Window(flying, 0.0),), through=True),
            ]
            return [PaceLimit(name, tuple(limits)), *(of_scope if scoped else ())]

        async with processes(server, 3) as them:
            for what, which, host in steps:
                if what.startswith("acquire"):
                    assert isinstance(which, int)
                    assert host is not None
                    if not alive[which]:
                        continue
                    asked = limits_of(host, scoped=what == "acquire all")
                    expected = ledgers[which].acquire(asked, clock.now)
                    grant = await them[which].acquire(*asked, now=clock.now)
                    assert (grant.number is None) == (expected.number is None)
                    if grant.number is not None and expected.number is not None:
                        grants.append((which, expected.number, grant.number))
                    else:
                        # The clock of this process goes on meanwhile, and that of the test does not.
                        assert abs(grant.due - max(expected.due, clock.now + 0.001)) < 0.05 * 4
                elif what in ("settle", "end") and grants:
                    assert isinstance(which, int)
                    whose, mine, theirs = grants[which % len(grants)]
                    if alive[whose]:
                        if what == "settle":
                            ledgers[whose].settle(mine, clock.now)
                            them[whose].turns.settle(theirs, 0)
                        else:
                            ledgers[whose].end(mine)
                            them[whose].turns.end(theirs)
                        await them[whose].told()
                elif what == "wait":
                    assert which is not None
                    clock.set(clock.now + which)
                elif what == "back off":
                    assert host is not None
                    name = f"{host}{example}.example"
                    ledgers[0].back_off(name, which, clock.now)
                    them[0].turns.back_off(name, which, clock.now)
                    await them[0].told()
                elif what == "die":
                    assert isinstance(which, int)
                    alive[which] = False
                for each in range(3):
                    if alive[each]:
                        ledgers[each].beat(clock.now)
                        them[each].turns.beat(clock.now)
                        await them[each].told()
            for ledger in ledgers:
                ledger.close(clock.now)

    check()
