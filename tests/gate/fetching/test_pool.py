"""Connections that wait for their next request, against servers that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest

from comity.gate.fetching import pool as pool_module
from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.network import Channel, Destination, Route
from comity.gate.fetching.pool import Pool
from comity.gate.fetching.reach import Reach
from tests.gate.fetching.conftest import Peer, Server, answer, options

Serving = Callable[..., Server]
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def answers_all(peer: Peer) -> None:
    while True:
        peer.read()
        peer.send(answer(b"x"))


def run(server: Server, test: Callable[[Pool, Callable[[], Awaitable[Channel]]], object]) -> None:
    """Run the test with a pool that has a user, and a function that makes used connections."""
    parts = urlsplit(server.origin)
    assert parts.port

    async def all_of_it() -> None:
        client = PolicyClient(options())
        route = Route(Destination("http", "127.0.0.1", parts.port or 0))

        channels: list[Channel] = []

        async def connect() -> Channel:
            channel = await client.network.connect(route, None)
            channels.append(channel)
            [future] = channel.connection.ask([REQUEST])
            await future
            return channel

        client.pool.join()
        try:
            await test(client.pool, connect)  # type: ignore[misc]
        finally:
            client.pool.leave()
            for channel in channels:
                channel.connection.close()
            await asyncio.sleep(0)  # the sockets are closed in the next turn of the loop

    asyncio.run(all_of_it())


@pytest.mark.requirement("RFC-7")
def test_the_newest_connection_is_taken_first(serving: Serving) -> None:
    async def test(pool: Pool, connect: Callable[[], Awaitable[Channel]]) -> None:
        first, second = await connect(), await connect()
        pool.give(first)
        pool.give(second)
        route = first.route
        assert pool.take(route, None) is second
        assert pool.take(route, None) is first
        assert pool.take(route, None) is None
        pool.give(first)
        assert pool.take(route._replace(bind_address=("127.0.0.2", 0)), None) is None

    run(serving(answers_all), test)


@pytest.mark.requirement("SEC-7")
def test_a_site_gets_no_connection_to_where_it_may_not_lead(serving: Serving) -> None:
    async def test(pool: Pool, connect: Callable[[], Awaitable[Channel]]) -> None:
        channel = await connect()
        assert channel.reach is Reach.LOOPBACK
        pool.give(channel)
        assert pool.take(channel.route, Reach.PUBLIC) is None
        assert pool.take(channel.route, Reach.LOOPBACK) is channel

    run(serving(answers_all), test)


@pytest.mark.requirement("RFC-7")
def test_connections_that_cannot_be_used_are_ended(serving: Serving) -> None:
    def answers_once(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"x", 200, "Connection: close"))
        peer.wait_for_the_end()

    async def test(pool: Pool, connect: Callable[[], Awaitable[Channel]]) -> None:
        channel = await connect()
        pool.give(channel)
        assert pool.take(channel.route, None) is None

    run(serving(answers_once), test)


@pytest.mark.requirement("RFC-7")
def test_idle_connections_end(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pool: Pool, connect: Callable[[], Awaitable[Channel]]) -> None:
        first, second = await connect(), await connect()
        monkeypatch.setattr(pool_module, "MAX_SECONDS", 0)
        pool.give(first)
        pool.give(second)
        later = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0, later.set_result, None)  # after that of the pool
        await later
        assert not first.connection.is_reusable
        assert not second.connection.is_reusable
        assert pool.take(first.route, None) is None

    run(serving(answers_all), test)


@pytest.mark.requirement("RFC-7")
def test_the_oldest_connection_ends_when_there_are_too_many(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MAX_CONNECTIONS", 2)

    async def test(pool: Pool, connect: Callable[[], Awaitable[Channel]]) -> None:
        channels = [await connect() for _ in range(3)]
        for channel in channels:
            pool.give(channel)
        assert [channel.connection.is_reusable for channel in channels] == [False, True, True]

    run(serving(answers_all), test)


@pytest.mark.requirement("RFC-7")
def test_without_users_no_connection_waits(serving: Serving) -> None:
    async def test(pool: Pool, connect: Callable[[], Awaitable[Channel]]) -> None:
        waiting, later = await connect(), await connect()
        pool.give(waiting)
        pool.leave()
        assert not waiting.connection.is_reusable
        pool.give(later)
        assert not later.connection.is_reusable
        pool.join()

    run(serving(answers_all), test)
