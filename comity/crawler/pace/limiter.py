"""How often a host is asked: a request waits until all limits of its host let it go out, whoever made it, and those of its scope,
where automation-preferences.txt limits that.

A request in flight counts as started now; its start is settled when its headers arrive, or when it fails. So whatever happens on
the way, the server never sees two requests closer than they may be."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.http import Request
from scrapy.utils.asyncio import CallLaterResult, call_later

from comity.crawler.flights import ClosingError
from comity.crawler.pace.ledger import Budget, Limit
from comity.crawler.scrapy_internals import closing, in_downloader, wake
from comity.policies import Agent, Decision, Site
from comity.policies.syntax.windows import Limits, Window, delay_of, windows_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.frontier.host_queues import Lane

TICK = 1.0  # seconds; how soon what waits in place notices that the crawl is ending
BEAT = 3.0  # seconds between two signs of life in the budget
SWEEP = 1024  # units; the least number at which the idle ones are forgotten


def asked_windows(site: Site, agent: Agent) -> tuple[Window, ...]:
    """What the site asks for; () where it states nothing."""
    return windows_of(site.rates(agent))


@dataclass(slots=True, eq=False)
class Unit:
    """What has a pace of its own: a host name, whose origins share it, or a scope of automation-preferences.txt."""

    name: str
    floor: tuple[Window, ...]  # the operator's own limit, whatever the site says
    ceiling: int  # requests in flight
    asked: dict[str, tuple[Window, ...]] = field(default_factory=dict)  # by origin
    throttle: float = 0.0  # seconds between two requests that AutoThrottle asks for
    concurrent: int | None = None  # requests in flight that the site asks for, over all processes
    windows: tuple[Window, ...] = ()  # all of them
    limits: tuple[Limit, ...] = ()  # the same, as the budget keeps them
    most: int = 1  # requests in flight that they let out
    in_flight: int = 0
    free_at: float = float("-inf")  # not before; monotonic
    last: float = float("-inf")  # when the last start was settled
    lanes: int = 0  # that wait or may wait for it
    awaited: int = 0  # requests that wait in the middleware: they come before what waits in lanes
    line: asyncio.Lock = field(default_factory=asyncio.Lock)  # in which they wait
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    parked: list[Lane] = field(default_factory=list)  # lanes that wait until a request is through
    why: str = "its host is to be left alone"  # where it lets nothing out

    def __post_init__(self) -> None:
        self._limit()

    def states(self, origin: str, windows: tuple[Window, ...], concurrent: int | None = None) -> None:
        if self.asked.get(origin) != windows or self.concurrent != concurrent:
            self.asked[origin] = windows
            self.concurrent = concurrent
            self._limit()

    def throttled(self, delay: float) -> None:
        if self.throttle != delay:
            self.throttle = delay
            self._limit()

    def _limit(self) -> None:
        asked = [window for windows in self.asked.values() for window in windows]
        if self.throttle > 0:
            asked.append(Window(1, self.throttle))
        self.windows = tuple(dict.fromkeys((*self.floor, *asked)))
        self.rests()  # what went out before the limit was known counts too
        self.most = min([self.ceiling, *(window.requests for window in self.windows if window.start is None)])
        self.limits = (Limit(self.name, self.windows),) if self.windows else ()
        if self.concurrent is not None:
            self.most = min(self.most, self.concurrent)
            self.limits += (Limit(f"{self.name} (in flight)", (Window(self.concurrent, 0.0),), through=True),)

    def rests(self) -> None:
        """What the last start alone tells; the rest is asked of the budget."""
        singles = (window.seconds for window in self.windows if window.requests == 1 and window.start is None)
        self.free_at = max(self.free_at, self.last + max(singles, default=0.0))

    @property
    def full(self) -> bool:
        return self.in_flight >= self.most

    def delay(self, now: float) -> float:
        """Seconds between two requests in the long run, at this time of the day (seconds since the epoch)."""
        return delay_of(window for window in self.windows if window.holds(now)) if self.windows else 0.0


@dataclass(slots=True, eq=False)
class Flight:
    """A request that is out, and by which decision."""

    url: str
    method: str
    decision: Decision
    site: Site | None  # None: the URL has no origin
    units: tuple[Unit, ...]  # that it occupies; (): none, or no more
    handed_out: bool  # by our scheduler, which would take it back
    in_downloader: bool  # of Scrapy, which tells what becomes of it; False: `through` will be called
    claimed: bool  # it came to the middleware
    turn: int = 0  # in the budget of the units; 0: they have no limits
    answered: bool = False  # the headers came

    def judged(self, request: Request) -> bool:
        """Whether the decision is about the request as it is."""
        return self.url == request.url and self.method == request.method


class Pace:
    """The units, and the requests that are out. `freed` is called with a unit that can be asked again."""

    def __init__(self, crawler: Crawler, budget: Budget, *, min_delay: float, max_delay: float) -> None:
        self.freed: Callable[[Unit], None] | None = None
        self._crawler = crawler
        self._budget = budget
        settings = crawler.settings
        self._floor = max(min_delay, settings.getfloat("DOWNLOAD_DELAY"))
        self._slowest = Window(1, max_delay)
        self._ceiling = max(1, settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"))
        self._slots = settings.getdict("DOWNLOAD_SLOTS")
        # Where AutoThrottle begins, with each host.
        self._throttle = settings.getfloat("AUTOTHROTTLE_START_DELAY") if settings.getbool("AUTOTHROTTLE_ENABLED") else 0.0
        self._units: dict[str, Unit] = {}
        self._sweep_at = SWEEP
        self._flights: dict[Request, Flight] = {}
        self._beat: CallLaterResult | None = None
        crawler.signals.connect(self._headers_received, signals.headers_received)
        crawler.signals.connect(self._left_downloader, signals.request_left_downloader)

    def close(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
        self._budget.close()

    def host(self, url: str) -> Unit:
        name = urlsplit(url).hostname or ""
        host = self._units.get(name)
        if host is None:
            slot = self._slots.get(name, {})
            floor = max(self._floor, float(slot.get("delay", 0.0)))
            ceiling = max(1, int(slot.get("concurrency", self._ceiling)))
            host = Unit(name, (Window(1, floor),) if floor > 0 else (), ceiling, throttle=self._throttle)
            self._units[name] = host
            self._penalty(host, self._budget.penalty(name, time()))
        return host

    def scope(self, limits: Limits) -> Unit:
        """That of the group that states these limits."""
        scope = self._units.get(limits.key)  # no host name: there is a scheme in it
        if scope is None:
            scope = Unit(limits.key, (), sys.maxsize, why="its request-limit lets nothing out")
            self._units[limits.key] = scope
        windows = (*limits.windows, self._slowest) if limits.unreadable else limits.windows
        scope.states("", windows, limits.concurrent)
        return scope

    def units(self, agent: Agent, url: str, site: Site) -> tuple[Unit, ...]:
        """All that a request to the URL has to wait for: its host, and the scopes that it is in, where these are limited."""
        host = self.host(url)
        host.states(site.origin, asked_windows(site, agent))
        return (host, *map(self.scope, site.limits(agent, url)))

    def _sweep(self) -> None:
        """Forgets units that could be asked at once and that nothing waits for. What limits them stands in the budget."""
        now = monotonic()
        self._units = {
            name: unit for name, unit in self._units.items() if unit.lanes or unit.in_flight or unit.awaited or unit.free_at > now
        }
        self._sweep_at = max(SWEEP, 2 * len(self._units))

    def claim(self, units: tuple[Unit, ...]) -> int | None:
        """A turn of all the units, which is to be booked at once; None: not now, a `free_at` of theirs says when to ask again."""
        limits = units[0].limits if len(units) == 1 else tuple(limit for unit in units for limit in unit.limits)
        if not limits:
            return 0
        now = time()
        claim = self._budget.claim(limits, now)
        if claim.turn is None:
            unit = next((unit for unit in units if claim.limit in unit.limits), units[0])
            unit.free_at = monotonic() + max(claim.due - now, 0.001)
        return claim.turn

    def penalize(self, url: str, retry_after: float | None) -> float:
        """The host answered that it is asked too often. Seconds until it may be asked again.

        `retry_after`: seconds that it wants; None: it does not say."""
        now = time()
        host = self.host(url)
        wait = self._budget.penalize(host.name, retry_after, now) - now
        self._penalty(host, now + wait)
        return wait

    def _penalty(self, host: Unit, not_before: float) -> None:
        wait = not_before - time()
        if wait > 0:
            host.free_at = max(host.free_at, monotonic() + wait)

    def book(
        self,
        request: Request,
        decision: Decision,
        site: Site | None,
        units: tuple[Unit, ...],
        *,
        handed_out: bool,
        in_downloader: bool = True,
        turn: int = 0,
    ) -> None:
        """The request goes out now, and occupies the units."""
        self.release(request)
        self._flights[request] = Flight(
            request.url,
            request.method,
            decision,
            site,
            units,
            handed_out=handed_out,
            in_downloader=in_downloader,
            claimed=not handed_out,
            turn=turn,
        )
        for unit in units:
            unit.in_flight += 1
        if turn and self._beat is None:
            self._beat_on()
        if len(self._units) >= self._sweep_at:  # not when one is made: it would not be in use yet
            self._sweep()

    def _beat_on(self) -> None:
        """Other processes hear that the requests in flight are not those of a dead one."""
        self._beat = None
        if self._budget.is_used:
            self._budget.beat(time())
            self._beat = call_later(BEAT, self._beat_on)

    def flight(self, request: Request) -> Flight | None:
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

    async def turn(
        self,
        request: Request,
        decision: Decision,
        site: Site | None,
        units: tuple[Unit, ...],
        *,
        at_most: float,
        in_downloader: bool = True,
    ) -> float | None:
        """Waits in place until all the units may be asked, and books the request. Raises ClosingError when the crawl ends.

        `at_most`: seconds to wait. Where it would take longer, nothing is booked and the seconds are answered. `in_downloader`:
        the request goes out through Scrapy's downloader; else the caller says by `through` when it is done.

        Who waits stands in line for the last unit, so that a scope holds up nobody outside of it."""
        last = units[-1]
        began = monotonic()
        last.awaited += 1
        try:
            async with last.line:
                while True:
                    if closing(self._crawler):
                        raise ClosingError
                    if any(unit.full for unit in units):
                        self.reap()
                    unit = slowest(units)
                    wait = TICK if unit.full else unit.free_at - monotonic()
                    if wait <= 0:
                        turn = self.claim(units)
                        if turn is not None:
                            break
                        unit = slowest(units)
                        wait = unit.free_at - monotonic()
                    elif not unit.full and monotonic() + wait - began > at_most:
                        return monotonic() + wait - began
                    await self._freed(unit, min(max(wait, 0.0), TICK), ahead=unit is not last)
                self.book(request, decision, site, units, handed_out=False, in_downloader=in_downloader, turn=turn)
                return None
        finally:
            last.awaited -= 1
            if not last.full:
                self._announce(last)

    async def _freed(self, unit: Unit, wait: float, *, ahead: bool) -> None:
        """Waits until something of the unit is through, or so many seconds. `ahead`: before the lanes that wait for it."""
        unit.awaited += ahead
        unit.freed.clear()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await unit.freed.wait()
        finally:
            unit.awaited -= ahead
            if ahead and unit.parked:
                self._announce(unit)
                wake(self._crawler)

    def release(self, request: Request) -> None:
        """The request occupies its units no more. It may be asked for its flight until it is reaped."""
        flight = self._flights.get(request)
        if flight is None or not flight.units:
            return
        units, flight.units = flight.units, ()
        if flight.turn:
            self._budget.end(flight.turn)
        for unit in units:
            unit.in_flight -= 1
            self._announce(unit)

    def _settle(self, flight: Flight) -> None:
        """The request counts from now on."""
        flight.answered = True
        now = monotonic()
        for unit in flight.units:
            unit.last = now
            unit.rests()
        if flight.turn:
            self._budget.settle(flight.turn, time())

    def reap(self) -> bool:
        """Releases what left the downloader without reaching the network (refused or answered by another middleware).

        True where it freed a unit."""
        active = in_downloader(self._crawler)
        freed = False
        gone = [request for request, flight in self._flights.items() if flight.in_downloader and request not in active]
        for request in gone:
            freed = freed or bool(self._flights[request].units)
            self._forget(request)
        return freed

    def _forget(self, request: Request) -> None:
        self.release(request)
        del self._flights[request]

    def _announce(self, unit: Unit) -> None:
        unit.freed.set()
        if self.freed is not None:
            self.freed(unit)

    def _headers_received(self, request: Request) -> None:
        flight = self._flights.get(request)
        if flight is not None and flight.units and not flight.answered:
            self._settle(flight)

    def through(self, request: Request) -> None:
        """A request that did not go through Scrapy's downloader is done, or has failed."""
        self._left_downloader(request)
        self._flights.pop(request, None)

    def _left_downloader(self, request: Request) -> None:
        flight = self._flights.get(request)
        if flight is not None and flight.units:
            if not flight.answered:
                self._settle(flight)
            self.release(request)


def slowest(units: tuple[Unit, ...]) -> Unit:
    """The one to wait for: one that is full, or the one that is free last."""
    return units[0] if len(units) == 1 else max(units, key=lambda unit: (unit.full, unit.free_at))
