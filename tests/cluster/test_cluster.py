"""The same on a Cluster of three nodes: shards stand on all of them, and all scripts run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from comity.cluster.errors import StateError
from comity.cluster.queue import QueuedRequest
from comity.cluster.redis.check import check_server
from comity.cluster.redis.connection import StateConnection
from comity.cluster.redis.store import RedisStore
from comity.cluster.steps.queue import StepQueue
from comity.cluster.steps.turns import StepTurns
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.pace.ledger import FAILING, Grant, PaceLimit
from comity.policies import PolicyError
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.windows import Window
from tests.redis_server import Cluster, Server

pytestmark = pytest.mark.slow
HOSTS = [f"{number}.example" for number in range(60)]


@pytest.fixture
def cluster(_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), _server.program)
    cluster.start()
    yield cluster
    cluster.stop()


def test_a_crawl_on_a_cluster(cluster: Cluster) -> None:
    assert check_server(cluster.address()) == []
    cluster.nodes[1].client().config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(PolicyError, match=r"- 127\.0\.0\.1:[0-9]+: It evicts requests"):
        check_server(cluster.address())

    async def run() -> None:
        connection = StateConnection(cluster.address())
        turns = StepTurns(connection)
        queue = StepQueue(connection, "one", 30)
        await queue.open()
        rows = [
            QueuedRequest(host, host.encode(), queue.new_key(), 0, host.encode()) for host in HOSTS
        ]
        assert await queue.put(rows) == [True] * len(HOSTS)
        assert all(node.client().dbsize() for node in cluster.nodes)
        assert (await queue.status())["waiting"] == len(HOSTS)
        granted = asyncio.Event()
        turns.on_answer = lambda limits: granted.set()
        leases = await queue.lease(100, 10)
        assert sorted(lease.host for lease in leases) == sorted(HOSTS)
        for lease in leases:
            granted.clear()
            limits = [
                PaceLimit(lease.host, (Window(1, 60),)),
                PaceLimit(f"https://{lease.host} /", (Window(1, 60),)),
            ]
            turns.acquire(limits, 0)
            await granted.wait()
            grant = turns.acquire(limits, 0).number
            assert grant is not None
            turns.settle(grant, 0)
            await queue.ack(lease.host, [entry.key for entry in lease.requests])
        assert await queue.renew(HOSTS) == set()
        assert await queue.is_finished()
        await queue.close(HOSTS)
        await connection.close()

    asyncio.run(run())
    store, other = RedisStore(cluster.address()), RedisStore(cluster.address())
    file = PolicyFile(due=1, copy=Fetched(status=200, body=b"x", fetched_at=datetime.now(UTC)))
    store.save_sites({host: {"/robots.txt": file} for host in HOSTS})
    assert all(other.load(host) == {"/robots.txt": file} for host in HOSTS)
    assert store.claims_fetch(HOSTS[0], 60)
    assert not other.claims_fetch(HOSTS[0], 60)
    store.gives_back(HOSTS[0])
    moment = datetime.now(UTC)
    assert (
        store.session_began("a", b"b", moment)
        == other.session_began("a", b"b", datetime.now(UTC))
        == moment
    )
    assert store.first_taken("https://a.example/", ["search"], moment) == {"search": moment}
    assert store.requests_action("https://a.example/", "take-down", "1", moment)
    store.took_down([url for url, _ in other.take_downs()], moment)
    assert store.take_downs() == []
    store.close()
    other.close()


def test_a_node_that_was_killed_has_lost_nothing(cluster: Cluster) -> None:
    async def run() -> None:
        connection = StateConnection(cluster.address(), patience=2)
        queue = StepQueue(connection, "one", 30)
        await queue.open()
        put = [QueuedRequest(host, host.encode(), queue.new_key(), 0, b"1") for host in HOSTS]
        assert await queue.put(put) == [True] * len(HOSTS)
        cluster.nodes[2].kill()
        more = [QueuedRequest(host, None, queue.new_key(), 0, b"2") for host in HOSTS]
        with pytest.raises(StateError):
            await queue.put(more)
        cluster.nodes[2].start()
        cluster.wait()
        for _ in range(10):
            try:
                assert await queue.put(more) == [True] * len(HOSTS)
                break
            except StateError:
                continue
        leases = await queue.lease(100, 10)
        assert {lease.host: len(lease.requests) for lease in leases} == dict.fromkeys(HOSTS, 2)
        await connection.close()

    asyncio.run(run())


@pytest.mark.requirement("REACH-2", "REACH-3")
def test_a_replica_takes_the_place_of_the_node_that_the_address_names(cluster: Cluster) -> None:
    """What stood on it goes on, and its hosts wait a whole window: the last starts may not have come to the replica."""
    cluster.add_replica()

    async def asked(turns: StepTurns, host: str) -> Grant:
        answered = asyncio.Event()
        turns.on_answer = lambda limits: answered.set()
        limits = [PaceLimit(host, (Window(10, 60),))]
        turns._refused.clear()
        if (grant := turns.acquire(limits, 0)).due == math.inf:
            await answered.wait()
            grant = turns.acquire(limits, 0)
        return grant

    async def run() -> None:
        connection = StateConnection(cluster.address(), patience=2)
        turns, queue = StepTurns(connection), StepQueue(connection, "one", 30)
        await queue.open()
        rows = [
            QueuedRequest(host, host.encode(), queue.new_key(), 0, host.encode()) for host in HOSTS
        ]
        assert await queue.put(rows) == [True] * len(HOSTS)
        assert all([(await asked(turns, host)).number for host in HOSTS])
        client: Any = cluster.nodes[0].client()
        assert client.wait(1, 10000) == 1
        cluster.nodes[0].kill()
        waits = {}
        for host in HOSTS:
            while (grant := await asked(turns, host)).number is None and grant.due <= FAILING:
                pass  # nobody has taken its place yet
            waits[host] = grant.due if grant.number is None else 0.0
        whole = [wait for wait in waits.values() if wait]
        assert 0 < len(whole) < len(HOSTS)
        assert all(
            30 < wait <= 60 for wait in whole
        )  # less what has passed since the answer came, on a busy machine
        leases = await queue.lease(100, 10)
        assert {lease.host for lease in leases} == set(HOSTS)
        turns.close()
        await connection.close()

    asyncio.run(run())
