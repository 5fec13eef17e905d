"""Workers of a crawl in the process of the tests: queues with rows of requests, and ledgers."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from comity.cluster.conformance.harness import Harness
from comity.cluster.errors import StateError
from comity.cluster.queue import Lease, QueuedRequest
from comity.cluster.state import CrawlQueue
from comity.gate.pace.ledger import Grant, Ledger, PaceLimit

TTL = 30.0  # of queues
TURNS_TTL = 100.0  # of ledgers
DEADLINE = 120.0  # seconds until something is to be seen that a server or a process does
A, B = "a.example", "b.example"
T = TypeVar("T")


@asynccontextmanager
async def workers(
    harness: Harness, crawl: str, number: int = 1, *, ttl: float = TTL, url: str = ""
) -> AsyncIterator[list[CrawlQueue]]:
    """Yield the queues of so many workers, which have opened the crawl."""
    states = [harness.state(crawl, ttl, url=url) for _ in range(number)]
    try:
        queues = [state.queue() for state in states]
        for queue in queues:
            await queue.open()
        yield queues
    finally:
        for state in states:
            await state.close()


def row(
    queue: CrawlQueue, number: int, host: str = A, *, priority: int = 0, is_filtered: bool = True
) -> QueuedRequest:
    fingerprint = f"{host} {number}".encode() if is_filtered else None
    return QueuedRequest(host, fingerprint, queue.new_key(), priority, f"request {number}".encode())


def rows(
    queue: CrawlQueue, numbers: Iterable[int], host: str = A, *, is_filtered: bool = True
) -> list[QueuedRequest]:
    return [row(queue, number, host, is_filtered=is_filtered) for number in numbers]


def bodies(lease: Lease | None) -> list[int]:
    """Return the numbers of the requests of `row`."""
    assert lease is not None
    return [int(entry.body.split()[1]) for entry in lease.requests]


def keys(lease: Lease | None) -> list[bytes]:
    assert lease is not None
    return [entry.key for entry in lease.requests]


def reads(lease: Lease) -> dict[int, int]:
    """Return how many workers died while they read each request."""
    return {int(entry.body.split()[1]): entry.reads for entry in lease.requests}


async def finish(queue: CrawlQueue) -> None:
    """Do all requests that wait."""
    for lease in await queue.lease(99, 999):
        await queue.ack(lease.host, keys(lease))
        await queue.release(lease.host)
    assert await queue.is_finished()


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until another process, or the server, has brought it about."""
    deadline = time.monotonic() + DEADLINE
    while not await holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)  # between two looks


async def until_answered(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat the call until the server answers, as workers do."""
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            return await call()
        except StateError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)  # between two tries


class Turns:
    """The ledger of one worker. It is a new one, so it remembers no earlier refusal."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._answered = asyncio.Event()
        ledger.on_answer = lambda limits: self._answered.set()

    async def acquire(self, *limits: PaceLimit) -> Grant:
        """Return the answer of the store."""
        async with asyncio.timeout(DEADLINE):
            while True:
                self._answered.clear()
                grant = self.ledger.acquire(limits, time.time())
                if grant.number is not None or grant.due < math.inf:
                    return grant
                await self._answered.wait()

    async def start(self, *limits: PaceLimit) -> int:
        """Return the number of a grant, which there is."""
        grant = await self.acquire(*limits)
        assert grant.number is not None, f"{grant.due - time.time():.3f} s to wait"
        return grant.number


@asynccontextmanager
async def turns(harness: Harness, *, ttl: float = TURNS_TTL) -> AsyncIterator[Turns]:
    """Yield the ledger of a worker, which leaves at the end."""
    state = harness.state("conformance", ttl)
    ledger = state.ledger()
    try:
        yield Turns(ledger)
    finally:
        ledger.close()
        await state.close()


async def ask(harness: Harness, *limits: PaceLimit) -> tuple[float, PaceLimit | None]:
    """Return the seconds to wait for a start, and the limit that makes it wait; 0.0, None: none.

    It asks as a worker of its own, which does not use the start."""
    async with turns(harness) as other:
        grant = await other.acquire(*limits)
        if grant.number is not None:
            other.ledger.end(grant.number)
            return 0.0, None
        return grant.due - time.time(), grant.limit
