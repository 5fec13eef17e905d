"""Fetches of the policies that host queues wait for, so that no queue waits longer than it must.

A fetch begins when a queue wants policies, although the engine may ask for no request meanwhile. At
most ORIGINS_AT_ONCE fetches run at a time, in the order in which they were wanted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from comity.crawler.crawl import Crawl
from comity.crawler.frontier.book import Entry
from comity.crawler.frontier.queue import Queue
from comity.crawler.frontier.waiting.host_queue import HostQueue
from comity.crawler.frontier.waiting.host_queues import HostQueues
from comity.crawler.scrapy_internals import ScrapyRun
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.files import ORIGINS_AT_ONCE
from comity.gate.run.flights import ClosingError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request


class PolicyFailures:
    """Counts how often in a row the policies of each origin could not be fetched."""

    def __init__(self, crawler: Crawler, storage: Queue | None) -> None:
        settings = crawler.settings
        self._retry_times = (
            settings.getint("RETRY_TIMES") if settings.getbool("RETRY_ENABLED") else 0
        )
        self._storage = storage
        # Origin -> the number of failures, and the time when its policies are tried again. The
        # policies are not kept: they take some kilobytes each, and a million hosts may be down.
        self._failures: dict[str, tuple[int, float]] = {}

    async def count(self, origin: str, policies: OriginPolicies) -> None:
        """Count one more failure. Several queues of the origin count a failure once."""
        number, due = self._failures.get(origin, (0, 0.0))
        if policies.fresh_until == due:
            return
        number += 1
        if self._storage is not None:
            number = await self._storage.tries(
                origin, policies.failing_since, policies.fresh_until, here=number
            )
        self._failures[origin] = number, policies.fresh_until

    def forget(self, origin: str) -> None:
        """Forget the failures of an origin: its policies were fetched."""
        self._failures.pop(origin, None)

    def are_final(self, origin: str) -> bool:
        """Return True if the policies were tried RETRY_TIMES more times, and failed each time."""
        return origin in self._failures and self._failures[origin][0] > self._retry_times


class PolicyFetches:
    """Fetches policies for host queues, and dates each queue when its policies are there.

    Attributes:
        failures: The number of failures of each origin.
    """

    def __init__(
        self,
        crawler: Crawler,
        queues: HostQueues,
        storage: Queue | None,
        first: Callable[[HostQueue], Entry | None],
    ) -> None:
        """`first`: returns the first request of a queue; None if the queue is dropped instead."""
        self._crawl = Crawl.of(crawler)
        self._run = ScrapyRun(crawler)
        self._queues = queues
        self._first = first
        self.failures = PolicyFailures(crawler, storage)
        self._wanted: deque[HostQueue] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return the number of queues that wait for their policies."""
        return len(self._wanted) + len(self._tasks)

    def want(self, queue: HostQueue) -> None:
        """Fetch the policies of the queue, which has no date until they are there."""
        self._wanted.append(queue)
        self.start()

    def start(self) -> None:
        """Start the fetches for which there is room. No fetch starts while the crawl ends."""
        while self._wanted and len(self._tasks) < ORIGINS_AT_ONCE and not self._run.is_closing:
            task = asyncio.create_task(self._fetch(self._wanted.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        """Start the next fetch, even if the engine asks for no request meanwhile."""
        self._tasks.discard(task)
        self.start()

    async def _fetch(self, queue: HostQueue) -> None:
        if not queue:  # its host was given back, and the queue dropped
            return
        entry = self._first(queue)
        if entry is None:
            return
        try:
            policies = await self._crawl.policies.get(
                queue.origin, self._crawl.referrals.referrer_reach(entry.request)
            )
        except ClosingError:
            return
        if self.misses_files(policies, entry.request):
            await self.failures.count(queue.origin, policies)
        else:
            self.failures.forget(queue.origin)
        queue.fetched = policies
        if queue:  # an empty queue was dropped meanwhile
            self._queues.date(queue, monotonic())
        self._run.wake()

    def misses_files(self, policies: OriginPolicies, request: Request) -> bool:
        """Return True if the request should wait for policy files that cannot be fetched now.

        Without these files it would be refused, or its page could not be used."""
        if policies.barred_for is not None:
            return False
        return policies.unreachable or self._crawl.access.awaits_files(policies.site, request)

    async def close(self) -> None:
        """End all fetches, and start no more."""
        self._wanted.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
