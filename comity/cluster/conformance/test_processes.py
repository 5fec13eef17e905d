"""Workers in processes of their own, which are killed or frozen."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from comity.cluster.conformance.harness import Harness
from comity.cluster.conformance.workers import A, ask, bodies, eventually, keys, rows, workers
from comity.gate.pace.ledger import PaceLimit
from comity.policies.syntax.windows import Window

TTL = 1.0  # of the workers that are killed or frozen


class Worker:
    """A worker in a process of its own.

    Attributes:
        name: Its name in the crawl.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.name: str = self._answer()

    def call(self, name: str, *arguments: Any) -> Any:
        """Have it call the method of its queue, or `start`, and return the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps([name, *arguments])}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)


@contextmanager
def worker(harness: Harness, crawl: str) -> Iterator[Worker]:
    command = [sys.executable, "-m", "comity.cluster.conformance.worker"]
    with subprocess.Popen(  # noqa: S603  # the URL is that of the tests
        [*command, harness.url, crawl, str(TTL)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Worker(process)
        finally:
            process.kill()


def test_the_requests_of_a_killed_worker_go_out_again(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl) as (other,):
            await other.put(rows(other, range(10)))
            with worker(harness, crawl) as killed:
                killed.call("lease", 1, 4)
                killed.signal(signal.SIGKILL)
                found: list[int] = []

                async def is_free() -> bool:
                    for lease in await other.lease(1, 99):
                        found.extend(bodies(lease))
                        await other.ack(A, keys(lease))
                    return bool(found)

                await eventually(is_free)
                assert found == list(range(10))
                await other.release(A)
                assert await other.is_finished()

    asyncio.run(run())


def test_a_worker_of_this_machine_sees_at_once_that_another_one_is_dead(
    harness: Harness, crawl: str
) -> None:
    async def run() -> None:
        state = harness.state(crawl, 3600.0)
        queue = state.queue()
        await queue.open()
        state.neighbours.appear()
        with worker(harness, crawl) as killed:
            with state.neighbours.dead() as dead:
                assert dead == []
            killed.signal(signal.SIGKILL)
            killed.process.wait()
            with state.neighbours.dead() as dead:
                assert dead == [killed.name]
        await state.close()

    asyncio.run(run())


def test_a_frozen_worker_loses_its_hosts_and_learns_of_it(harness: Harness, crawl: str) -> None:
    async def run() -> None:
        async with workers(harness, crawl) as (other,):
            await other.put(rows(other, range(4)))
            with worker(harness, crawl) as frozen:
                frozen.call("lease", 1, 2)
                frozen.signal(signal.SIGSTOP)

                async def is_free() -> bool:
                    return bool(await other.lease(1, 1))

                await eventually(is_free)
                frozen.signal(signal.SIGCONT)
                assert frozen.call("renew", [A]) == [A]
                frozen.call("release", A)
                assert await other.renew([A]) == set()

    asyncio.run(run())


def test_a_start_of_a_killed_worker_counts(harness: Harness, crawl: str, host: str) -> None:
    async def run() -> None:
        limit = PaceLimit(host, (Window(1, 3600),))
        with worker(harness, crawl) as killed:
            killed.call("start", host, 1, 3600)
            killed.signal(signal.SIGKILL)
            killed.process.wait()
            wait, _ = await ask(harness, limit)
            assert 0 < wait <= 3600 + TTL
            async with workers(harness, crawl) as (other,):
                await other.bury(killed.name)
            wait, _ = await ask(harness, limit)
            assert 3500 < wait <= 3600

    asyncio.run(run())
