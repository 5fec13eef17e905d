"""The hosts that this worker has leased, and their requests that wait or are out here.

A host arrives with the first of its requests, and gets more when few are left here. A host without
requests is released. A host that is to leave is released when none of its requests is out.

Each request has a number in this process. The state knows the request by its key."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from comity.cluster.queue import Lease, LeasedRequest
from comity.cluster.state import CrawlQueue
from comity.crawler.frontier.outbox import Outbox
from comity.crawler.frontier.queue import Taker
from comity.crawler.frontier.request_bodies import unpack, url_of
from comity.crawler.scrapy_internals import wake
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Request

logger = logging.getLogger(__name__)

REQUESTS = 32  # requests of a host that wait here at most


@dataclass(slots=True)
class LeasedHost:
    """A host that is leased.

    Attributes:
        numbers: The requests of the host here: those that wait, are out, or are in `through`.
        through: The requests that have left the engine. They are not done before their items are on
            the disk.
        waiting: The number of requests in the state, as far as this worker knows.
        is_leaving: True if the host is given back when none of its requests is out here.
        suspects: The requests that a worker had out when it died. They leave this map when they are
            read.
    """

    numbers: set[int] = field(default_factory=set)
    through: set[int] = field(default_factory=set)
    waiting: int = 0
    is_leaving: bool = False
    suspects: dict[int, LeasedRequest] = field(default_factory=dict)


class RequestHere(NamedTuple):
    """A request that waits here, or is out.

    Attributes:
        host: Its host.
        key: Its key in the state.
        body: The packed request.
    """

    host: str
    key: bytes
    body: bytes


class LeasedHosts:
    """The leased hosts by their names, and the requests of these hosts.

    Attributes:
        taker: The scheduler's part that receives the requests.
        spider: The spider, which has the callbacks of the requests; None before it is opened.
        by_name: The hosts that are leased.
        changed: The names of hosts for which `look_after` may have something to do.
    """

    taker: Taker

    def __init__(
        self,
        crawler: Crawler,
        queue: CrawlQueue,
        outbox: Outbox,
        *,
        rest: Callable[[str, float], object],
        arrived: Callable[[], None],
    ) -> None:
        """Begin without hosts.

        Args:
            rest: called with a host and the seconds for which it gets no requests.
            arrived: called when requests have arrived with a host."""
        self._crawler = crawler
        self._queue = queue
        self._outbox = outbox
        self._rest = rest
        self._arrived = arrived
        self._numbers = count(1)
        # A request stays here when its host is given back while the request is out.
        self._requests: dict[int, RequestHere] = {}
        self._maybe_aside: set[str] = set()  # hosts with some requests that were set aside
        # Held to read a request that has killed a worker. It is read alone, or other requests would
        # be suspected too.
        self._reading = asyncio.Lock()
        self.spider: Spider | None = None
        self.by_name: dict[str, LeasedHost] = {}
        self.changed: set[str] = set()

    # The scheduler calls these methods through SharedQueue.

    def get(self, number: int) -> Request:
        """Return the request. LookupError: it cannot be read, and is set aside."""
        assert self.spider
        request = self._requests[number]
        try:
            return unpack(request.body, self.spider)
        except ValueError as error:
            del self._requests[number]
            self._outbox.unreadable.setdefault(request.host, {})[request.key] = str(error)
            if host := self.by_name.get(request.host):
                host.numbers.discard(number)
                self.changed.add(request.host)
            raise LookupError(
                f"a request to {request.host} cannot be read, and is set aside:"
                f" {printable(str(error))}"
            ) from error

    def mark_through(self, number: int) -> None:
        request = self._requests.get(number)
        if request is not None and (host := self.by_name.get(request.host)):
            host.through.add(number)
            self.changed.add(request.host)

    def mark_done(self, number: int) -> None:
        request = self._requests.pop(number, None)
        if request is not None:
            self._outbox.done.setdefault(request.host, []).append(request.key)
            if host := self.by_name.get(request.host):
                host.numbers.discard(number)
                host.through.discard(number)
                self.changed.add(request.host)

    def set_aside(self, name: str) -> None:
        self._maybe_aside.add(name)
        self.changed.add(name)

    # The tasks of SharedQueue call these methods.

    def count_put(self, name: str) -> None:
        """Count a request of the host that waits in the state from now on."""
        if host := self.by_name.get(name):
            host.waiting += 1
            self.changed.add(name)

    def is_busy(self, name: str) -> bool:
        """Return True if a request of the leased host is out, or was done and not reported."""
        return name in self._outbox.done or self.taker.waiting(name) < len(
            self.by_name[name].numbers
        )

    def add(self, lease: Lease) -> None:
        """Add a leased host with its requests."""
        self.drop(lease.host)  # this worker may have had an earlier lease, which has ended
        self.by_name[lease.host] = LeasedHost()
        self._receive(lease)

    def _receive(self, lease: Lease) -> None:
        host = self.by_name[lease.host]
        host.waiting = lease.waiting
        if lease.rests > 0:
            self._rest(lease.host, lease.rests)
        for request in lease.requests:
            number = next(self._numbers)
            self._requests[number] = RequestHere(lease.host, request.key, request.body)
            host.numbers.add(number)
            if request.reads < 0:
                self._pass_on(number, request)
            else:
                host.suspects[number] = request
        if host.suspects:
            self.changed.add(lease.host)
        if lease.requests:
            self._arrived()

    def _pass_on(self, number: int, request: LeasedRequest) -> None:
        """Let the scheduler have the request."""
        self.taker.receive(number, origin_or_empty(url_of(request.body)), request.priority)

    def drop(self, name: str) -> None:
        """Let other workers have the host, if it is leased.

        Requests that are out stay out, and are done for all workers."""
        host = self.by_name.pop(name, None)
        if host is not None:
            self._forget_waiting(name, host)

    def _forget_waiting(self, name: str, host: LeasedHost) -> None:
        """Forget the requests of the host that are not out."""
        for number in [*self.taker.forget(name), *host.suspects]:
            self._requests.pop(number, None)
            host.numbers.discard(number)
        host.suspects.clear()

    async def look_after(self, name: str) -> bool:
        """Get more requests of a host with few requests here. Release it if it has none.

        Return True if it was released."""
        host = self.by_name.get(name)
        if host is None:
            self._maybe_aside.discard(name)
            return False
        if host.suspects and not host.is_leaving:
            await self._read(name, host)
            if self.by_name.get(name) is not host:  # the host was given back meanwhile
                return False
        if host.is_leaving:
            self._forget_waiting(name, host)
        elif name in self._maybe_aside and await self._is_given_back(name):
            return False
        in_work = len(host.numbers - host.through)
        if not host.is_leaving and host.waiting and in_work < REQUESTS // 2:
            lease = await self._queue.more(name, REQUESTS - in_work)
            if lease is None:
                self.drop(name)
            elif name in self.by_name:  # else it was given back meanwhile, with these requests
                self._receive(lease)
                if not lease.requests:  # the next requests are unreadable
                    self.changed.add(name)
        elif self._outbox.has_news_of(name):
            # The next flush has to report requests of the host first. If it were released before,
            # they would go out again.
            self.changed.add(name)
        elif not host.numbers and (host.is_leaving or not host.waiting):
            del self.by_name[name]
            await self._queue.release(name)
            return True
        return False

    async def _is_given_back(self, name: str) -> bool:
        """Give the host back if all its requests are set aside and none is out.

        Return True if the host was given back."""
        aside = self.taker.aside(name)
        if aside is None:
            self._maybe_aside.discard(name)
            return False
        if self.is_busy(name):
            return False  # the host is looked at again when its requests are done
        self._maybe_aside.discard(name)
        logger.warning(
            "COMITY_STATE: requests to %(host)s are set aside: %(why)s (COMITY_MAX_DELAY);"
            " it keeps them",
            {"host": name, "why": aside.reason},
        )
        self.drop(name)
        await self._queue.set_aside(name, aside.seconds)
        return True

    async def _read(self, name: str, host: LeasedHost) -> None:
        """Read the requests that a worker had when it died, and let the readable ones arrive.

        The state is told before and after. If this worker dies in between, the next worker knows
        which of the requests may have killed it."""
        fresh = {number: request for number, request in host.suspects.items() if not request.reads}
        alone = [{number: request} for number, request in host.suspects.items() if request.reads]
        for group in filter(None, [fresh, *alone]):
            async with self._reading if group is not fresh else nullcontext():
                keys = [request.key for request in group.values()]
                await self._queue.read(name, keys, is_done=False)
                readable = {
                    number: self._is_readable(number)
                    for number in group
                    if number in self._requests
                }
                await self._queue.read(name, keys, is_done=True)
            for number, is_readable in readable.items():
                if host.suspects.pop(number, None) is not None and is_readable:
                    self._pass_on(number, group[number])
        wake(self._crawler)

    def _is_readable(self, number: int) -> bool:
        try:
            self.get(number)
        except LookupError as error:
            assert self._crawler.stats is not None
            self._crawler.stats.inc_value("comity/scheduler/unreadable")
            logger.error("COMITY_STATE: %(error)s", {"error": error})
            return False
        return True
