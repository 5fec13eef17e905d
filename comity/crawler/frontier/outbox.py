"""The news for COMITY_STATE: requests that are new, done or unreadable at this worker.

Each TICK of shared_queue.py, the new requests are sent to the server together. After the server has
confirmed them, it is told which requests are done. So no request is done before its children, the
requests found in its response, are there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import TYPE_CHECKING, Any

from comity.cluster.errors import StateFullError
from comity.cluster.queue import QueuedRequest
from comity.cluster.state import CrawlQueue

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector


class Outbox:
    """The news that the server was not told yet.

    Attributes:
        new: The requests that the server does not have, by their numbers.
        done: Host -> the keys of its requests that are done.
        unreadable: Host -> the keys of its requests that are to be set aside, and the reasons.
        is_full: True if the server had no room for the last new requests.
    """

    def __init__(self, queue: CrawlQueue, stats: StatsCollector) -> None:
        self._queue = queue
        self._stats = stats
        self._numbers = count(1)
        self.new: dict[int, QueuedRequest] = {}
        self.done: dict[str, list[bytes]] = {}
        self.unreadable: dict[str, dict[bytes, str]] = {}
        self.is_full = False

    def put(self, row: QueuedRequest) -> int:
        """Add a new request, and return its number."""
        number = next(self._numbers)
        self.new[number] = row
        return number

    def has_news_of(self, host: str) -> bool:
        """Return True if the server was not told everything about requests of the host."""
        return host in self.done or host in self.unreadable

    async def send(self, *, put: Callable[[str], None]) -> None:
        """Put the new requests, then tell the server which earlier requests are done.

        `put`: called with the host of each request that waits at the server from now on."""
        new, done = dict(self.new), self.done
        self.done = {}
        try:
            if new:
                answers = await self._queue.put([*new.values()])
                self.is_full = False
                for (number, row), is_new in zip(new.items(), answers, strict=True):
                    del self.new[number]
                    if is_new:
                        put(row.host)
                    else:
                        self._stats.inc_value("dupefilter/filtered")
            failed = await failures(
                {host: self._queue.ack(host, keys) for host, keys in done.items()}
            )
            done = {host: keys for host, keys in done.items() if host in failed}
            for error in failed.values():
                raise error
        except StateFullError:
            self.is_full = True
            raise
        finally:
            for host, keys in done.items():
                self.done[host] = [*keys, *self.done.get(host, ())]

    async def set_aside(self, *, told: Callable[[str], None]) -> None:
        """Set aside the requests that cannot be read. `told`: called with each of their hosts."""
        for host, whys in [*self.unreadable.items()]:
            await self._queue.give_up(host, whys)
            del self.unreadable[host]
            told(host)


async def failures(calls: dict[str, Coroutine[Any, Any, None]]) -> dict[str, BaseException]:
    """Await calls together, and return the errors of those that failed, by name."""
    outcomes = await asyncio.gather(*calls.values(), return_exceptions=True)
    return {
        name: outcome
        for name, outcome in zip(calls, outcomes, strict=True)
        if isinstance(outcome, BaseException)
    }
