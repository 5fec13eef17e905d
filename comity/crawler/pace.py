"""How often each host is asked: the slowest of what its policies, the operator and the project say.

A delay counts from the moment when the headers of the answer came, or the request failed. Counted from hand-out, a slow
connection would bring two requests closer together at the server than the delay says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.http import Request

from comity.crawler.engine import closing, in_downloader
from comity.crawler.fetcher import ClosingError
from comity.policies import Agent, Decision, Site

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.lanes import Lane

TICK = 1.0  # seconds; how soon what waits in place notices that the crawl is ending
SWEEP = 1024  # hosts; the least number at which the idle ones are forgotten


def asked_delay(site: Site, agent: Agent) -> float:
    """Seconds between two requests that the site asks for; 0 where it states nothing."""
    rules = site.rates(agent)
    if rules is None:
        return 0.0
    rate = rules.request_rate
    return max(rules.crawl_delay or 0.0, rate.seconds / rate.requests if rate else 0.0)


@dataclass(slots=True, eq=False)
class Host:
    """The pace of one host name; the origins on it share it."""

    floor: float  # seconds between two requests, whatever the site says
    ceiling: int  # requests in flight, where no delay is asked
    delays: dict[str, float] = field(default_factory=dict)  # origin -> seconds
    delay: float = 0.0  # the longest
    in_flight: int = 0
    last: float = float("-inf")  # when the last answer came
    lanes: int = 0  # that wait or may wait for it
    awaited: int = 0  # requests that wait in the middleware: they come before what waits in lanes
    line: asyncio.Lock = field(default_factory=asyncio.Lock)  # in which they wait
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    parked: list[Lane] = field(default_factory=list)  # lanes that wait until a request is through

    def states(self, origin: str, delay: float) -> None:
        if self.delays.get(origin) != delay:
            self.delays[origin] = delay
            self.delay = max(self.floor, *self.delays.values())

    @property
    def full(self) -> bool:
        return self.in_flight >= (1 if self.delay > 0 else self.ceiling)

    @property
    def free_at(self) -> float:
        return self.last + self.delay


@dataclass(slots=True, eq=False)
class Flight:
    """A request that is out, and by which decision."""

    url: str
    method: str
    decision: Decision
    site: Site | None  # None: the URL has no origin
    host: Host | None  # that it occupies; None: none, or no more
    handed_out: bool  # by our scheduler, which would take it back
    claimed: bool  # it came to the middleware
    answered: bool = False  # the headers came

    def judged(self, request: Request) -> bool:
        """Whether the decision is about the request as it is."""
        return self.url == request.url and self.method == request.method


class Pace:
    """The hosts, and the requests that are out. `freed` is called with a host that can be asked again."""

    def __init__(self, crawler: Crawler, *, min_delay: float) -> None:
        self.freed: Callable[[Host], None] | None = None
        self._crawler = crawler
        settings = crawler.settings
        self._floor = max(min_delay, settings.getfloat("DOWNLOAD_DELAY"))
        self._ceiling = max(1, settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"))
        self._slots = settings.getdict("DOWNLOAD_SLOTS")
        self._hosts: dict[str, Host] = {}
        self._sweep_at = SWEEP
        self._flights: dict[Request, Flight] = {}
        crawler.signals.connect(self._headers_received, signals.headers_received)
        crawler.signals.connect(self._left_downloader, signals.request_left_downloader)

    def host(self, url: str) -> Host:
        name = urlsplit(url).hostname or ""
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= self._sweep_at:
                self._sweep()
            slot = self._slots.get(name, {})
            floor = max(self._floor, float(slot.get("delay", 0.0)))
            host = self._hosts[name] = Host(floor=floor, ceiling=max(1, int(slot.get("concurrency", self._ceiling))), delay=floor)
        return host

    def _sweep(self) -> None:
        """Forgets hosts that could be asked at once and that nothing waits for."""
        now = monotonic()
        self._hosts = {
            name: host for name, host in self._hosts.items() if host.lanes or host.in_flight or host.awaited or host.free_at > now
        }
        self._sweep_at = max(SWEEP, 2 * len(self._hosts))

    def book(self, request: Request, decision: Decision, site: Site | None, host: Host | None, *, handed_out: bool) -> None:
        """The request goes out now; with a host, it occupies it."""
        self.release(request)
        self._flights[request] = Flight(
            request.url, request.method, decision, site, host, handed_out=handed_out, claimed=not handed_out
        )
        if host is not None:
            host.in_flight += 1

    def claim(self, request: Request) -> Flight | None:
        """How a request was judged when the scheduler handed it out; None where it comes from elsewhere, or once more."""
        flight = self._flights.get(request)
        if flight is None:
            return None
        if flight.claimed:
            self._forget(request)
            return None
        flight.claimed = True
        return flight

    def was_handed_out(self, request: Request) -> bool:
        flight = self._flights.get(request)
        return flight is not None and flight.handed_out

    async def turn(self, request: Request, decision: Decision, site: Site | None, host: Host) -> None:
        """Waits in place until the host may be asked, and books the request. Raises ClosingError when the crawl ends."""
        host.awaited += 1
        try:
            async with host.line:
                while True:
                    if closing(self._crawler):
                        raise ClosingError
                    if host.full:
                        self.reap()
                    wait = TICK if host.full else host.free_at - monotonic()
                    if wait <= 0:
                        break
                    host.freed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(min(wait, TICK)):
                            await host.freed.wait()
                self.book(request, decision, site, host, handed_out=False)
        finally:
            host.awaited -= 1
            if not host.full:
                self._announce(host)

    def release(self, request: Request) -> None:
        """The request occupies its host no more. It may be asked for its flight until it is reaped."""
        flight = self._flights.get(request)
        if flight is not None and flight.host is not None:
            host, flight.host = flight.host, None
            host.in_flight -= 1
            self._announce(host)

    def reap(self) -> bool:
        """Releases what left the downloader without reaching the network (refused or answered by another middleware).

        True where it freed a host."""
        active = in_downloader(self._crawler)
        freed = False
        for request in [request for request in self._flights if request not in active]:
            freed = freed or self._flights[request].host is not None
            self._forget(request)
        return freed

    def _forget(self, request: Request) -> None:
        self.release(request)
        del self._flights[request]

    def _announce(self, host: Host) -> None:
        host.freed.set()
        if self.freed is not None:
            self.freed(host)

    def _headers_received(self, request: Request) -> None:
        flight = self._flights.get(request)
        if flight is not None and flight.host is not None:
            flight.answered = True
            flight.host.last = monotonic()

    def _left_downloader(self, request: Request) -> None:
        flight = self._flights.get(request)
        if flight is not None and flight.host is not None:
            if not flight.answered:
                flight.host.last = monotonic()
            self.release(request)
