"""The pace of hosts: each request waits until its host may be asked again.

A request needs the limiter of its host name, and one more for each scope that it belongs to, if
automation-preferences.txt limits these scopes. It goes out when all of its limiters let it.

From its start on, `Pace` keeps a record of the request, its Flight. A request in flight occupies
its limiters and counts as started now. Its start is settled when its headers arrive, or when it
fails. So the server never sees two requests closer together than they may be.

Calls that let a request out:

    try_acquire(limiters)     the scheduler picks a request: return a grant, or None for "not now"
    acquire(request, ...)     a request waits in place, in the line of its last limiter
    start(request, ...)       the request goes out and occupies its limiters
    sends(request)            its download begins; False if it needs another turn before that

Calls that follow, until the request is forgotten:

    call                      when                                start counts   limiters   record
    settle_start(request)     its headers arrived                 from now       occupied   kept
    end_flight(request)       it left Scrapy's downloader         from now (1)   freed      kept
    end_and_forget(request)   it is done, outside of Scrapy's     from now (1)   freed      dropped
                              downloader
    lose_turn(request)        it got no answer and is sent again  from now (1)   freed      kept (2)
    free_limiters(request)    it is held, or decided on again     no (3)         freed      kept
    cancel(request)           it never goes out                   no (3)         freed      dropped
    forget_departed()         now and then, for all requests      no (3)         freed      dropped
                              that left Scrapy's downloader

    (1) unless the start was settled before    (2) `sends` returns False for it
    (3) unless the start was settled before: a settled start stays in the ledger

`end_flight` keeps the record because a middleware may still give the request back to the scheduler
(`was_handed_out`); `forget_departed` drops it later. A request that another middleware refuses or
answers leaves the downloader without any call: only `forget_departed` ends it.

The ledger (ledger.py) knows the requests of other processes. Each limiter that has limits asks it.
`Limiter.free_at` and `Limiter.in_flight` only save questions to the ledger with a known answer.

A request that waits in place comes before all requests in the queues of the scheduler, which hands
out nothing under a limiter with `Limiter.awaited` above zero. It also comes before requests that a
downloader middleware keeps, because that middleware may be waiting for it, for a token or a log-in.
Idle limiters are forgotten from time to time."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from operator import itemgetter
from time import monotonic, time
from typing import Any

from comity.gate.http import Request
from comity.gate.pace.ledger import Ledger, Limit
from comity.gate.pace.limiter import Limiter, slowest, windows_for
from comity.gate.run.flights import ClosingError
from comity.gate.run.observer import Observer
from comity.gate.run.surroundings import Run
from comity.gate.settings import Settings
from comity.policies import Agent, Site
from comity.policies.syntax.urls import host_name
from comity.policies.syntax.windows import Limits, Window

logger = logging.getLogger(__name__)

TICK = 1.0  # seconds; how soon what waits in place notices that the crawl is ending
BEATS = 3  # signs of life in the time after which a process without any is dead
SILENCE = 0.75  # the part of this time after which it counts as standing still itself: a busy one is late, but not so late
MAX_HANDOVER = 0.25  # seconds from its turn until a request that is not sent is taken for one that a middleware keeps
SWEEP = 1024  # limiters; the least number at which the idle ones are forgotten


@dataclass(slots=True, eq=False)
class Flight:
    """A request that is out."""

    limiters: tuple[Limiter, ...]  # that it occupies; (): none, or no more
    handed_out: bool  # by our scheduler, which would take it back
    in_downloader: (
        bool  # of Scrapy, which tells what becomes of it; False: `end_and_forget` will be called
    )
    claimed: bool  # it came to the middleware
    grant: int = 0  # of the ledger; 0: its limiters have no limits
    is_settled: bool = False  # its start is: the headers came
    is_sent: bool = False  # its download has begun
    has_lost_turn: bool = False  # to one that waited in place
    started: float = field(default_factory=monotonic)
    observed: Any = None  # what the observer has returned of its start


def call_later(delay: float, func: Callable[[], object]) -> asyncio.TimerHandle:
    """Call the function in so many seconds. Tests put a moved clock in its place."""
    return asyncio.get_running_loop().call_later(delay, func)


class Pace:
    """The limiters, and the requests that are out."""

    def __init__(
        self,
        run: Run,
        ledger: Ledger,
        settings: Settings,
        *,
        min_delay: float,
        max_delay: float,
        observer: Observer = Observer(),  # noqa: B008  # it has no state
    ) -> None:
        """`settings`: the project's own floor and ceiling of hosts (docs/pace.md)."""
        # Called with a limiter that can be asked again; whether something waited for that.
        self.freed: Callable[[Limiter], bool] = lambda limiter: False
        self._run = run
        self._observer = observer
        self._ledger = ledger
        self._ledger.on_answer, self._ledger.rests = self._on_answer, self._rests
        self._floor = max(min_delay, settings.getfloat("DOWNLOAD_DELAY"))
        self._slowest = Window(1, max_delay)
        self._ceiling = max(1, settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"))
        self._slots = settings.getdict("DOWNLOAD_SLOTS")
        # Where AutoThrottle begins, with each host.
        self._throttle = (
            settings.getfloat("AUTOTHROTTLE_START_DELAY")
            if settings.getbool("AUTOTHROTTLE_ENABLED")
            else 0.0
        )
        self._limiters: dict[str, Limiter] = {}
        self._asking: dict[
            tuple[Limit, ...], Limiter
        ] = {}  # those under which the ledger is asked -> who waits for it
        self._sweep_at = SWEEP
        self._flights: dict[Request, Flight] = {}
        self._beat: asyncio.TimerHandle | None = None
        self._beaten = self._stood_still_at = (
            0.0  # monotonic; the last sign of life, and the end of the last standstill
        )

    def close(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
        self._ledger.close()
        for limiter in self._limiters.values():
            limiter.freed.set()  # who waits learns that the crawl ends

    def host(self, url: str) -> Limiter:
        """The limiter of the URL's host name."""
        return self._host(host_name(url))

    def _host(self, name: str) -> Limiter:
        host = self._limiters.get(name)
        if host is None:
            slot = self._slots.get(name, {})
            floor = max(self._floor, float(slot.get("delay", 0.0)))
            ceiling = max(1, int(slot.get("concurrency", self._ceiling)))
            windows = (Window(1, floor),) if floor > 0 else ()
            host = Limiter(
                name,
                windows,
                ceiling,
                throttle=self._throttle,
                is_always_asked=self._ledger.is_remote,
            )
            self._limiters[name] = host
            self._rest_until(host, self._ledger.penalty(name, time()))
        return host

    def scope(self, limits: Limits) -> Limiter:
        """The limiter of the group that states these limits."""
        scope = self._limiters.get(limits.key)  # no host name: there is a scheme in it
        if scope is None:
            scope = Limiter(
                limits.key, (), sys.maxsize, reason="its request-limit lets nothing out"
            )
            self._limiters[limits.key] = scope
        windows = (*limits.windows, self._slowest) if limits.unreadable else limits.windows
        scope.restrict("", windows, limits.concurrent)
        scope.unread = (
            tuple(line for line in limits.lines(self._slowest.seconds) if line.advice)
            if limits.is_unread
            else ()
        )
        return scope

    def limiters(self, agent: Agent, url: str, site: Site) -> tuple[Limiter, ...]:
        """All limiters that a request to the URL needs: its host, and the scopes that it is in, where these are limited."""
        host = self.host(url)
        host.restrict(site.origin, windows_for(site, agent))
        return (host, *map(self.scope, site.limits(agent, url)))

    def _sweep(self) -> None:
        """Forget limiters that could be asked at once and that nothing waits for. What limits them stands in the ledger."""
        now = monotonic()
        self._limiters = {
            name: limiter
            for name, limiter in self._limiters.items()
            if limiter.queues
            or limiter.in_flight
            or limiter.awaited
            or limiter.is_asking
            or limiter.free_at > now
        }
        self._sweep_at = max(SWEEP, 2 * len(self._limiters))

    def try_acquire(self, limiters: tuple[Limiter, ...]) -> int | None:
        """A grant of all the limiters, for a request that has to start at once; 0 where they have no limits.

        None: not now. Where one of them is full, the ledger is being asked, and `freed` will be called with that one; else a
        `free_at` of theirs says when to ask again."""
        limits = (
            limiters[0].limits
            if len(limiters) == 1
            else tuple(limit for limiter in limiters for limit in limiter.limits)
        )
        if not limits:
            return 0
        now = time()
        grant = self._ledger.acquire(limits, now)
        if grant.due == inf:
            self._asking[tuple(limits)] = limiters[
                -1
            ]  # those of a scope hold up nobody outside of it
            limiters[-1].is_asking = True
        elif grant.number is None:
            limiter = next(
                (limiter for limiter in limiters if grant.limit in limiter.limits), limiters[0]
            )
            limiter.free_at = monotonic() + max(grant.due - now, 0.001)
        return grant.number

    def _on_answer(self, limits: Sequence[Limit]) -> None:
        """The ledger can tell now whether a request may start under these limits."""
        limiter = self._asking.pop(tuple(limits), None)
        if limiter is not None:
            limiter.is_asking = False
            self._announce(limiter)
            self._run.wake()

    def rest(self, host: str, seconds: float) -> None:
        """Leave a host alone, as another process was told to."""
        self._rests(host, time() + seconds)

    def _rests(self, host: str, until: float) -> None:
        self._rest_until(self._host(host), until)

    def back_off(self, url: str, retry_after: float | None) -> float:
        """Leave the host alone, as it answered that it is asked too often. Seconds until it may be asked again.

        `retry_after`: seconds that it wants; None: it does not say."""
        now = time()
        host = self.host(url)
        wait = self._ledger.back_off(host.name, retry_after, now) - now
        self._rest_until(host, now + wait)
        return wait

    def overloaded(self, url: str, status: int, seconds: float | None) -> float:
        """Leave the host of the URL alone, as it answered that it is asked too often. Seconds until it is asked again.

        `seconds`: that it wants; None: it does not say."""
        wait = self.back_off(url, seconds)
        self._run.stats.inc_value(f"comity/pace/{status}")
        self._observer.backed_off(url, status)
        logger.info(
            "HTTP status %(status)d from %(url)s: its host is asked again in %(wait).0f s",
            {"status": status, "url": url, "wait": wait},
        )
        return wait

    def _rest_until(self, host: Limiter, not_before: float) -> None:
        wait = not_before - time()
        if wait > 0:
            host.rests_until = max(host.rests_until, monotonic() + wait)
            host.free_at = max(host.free_at, host.rests_until)

    def start(
        self,
        request: Request,
        limiters: tuple[Limiter, ...],
        *,
        handed_out: bool,
        in_downloader: bool = True,
        grant: int = 0,
    ) -> None:
        """Count the request, which goes out now, under the limiters."""
        self.free_limiters(request)
        flight = self._flights[request] = Flight(
            limiters, handed_out, in_downloader, claimed=not handed_out, grant=grant
        )
        if limiters:
            flight.observed = self._observer.starting(limiters)
        for limiter in limiters:
            limiter.in_flight += 1
        if grant and self._beat is None:
            self._beat_on()
        if (
            len(self._limiters) >= self._sweep_at
        ):  # not when one is made: it would not be in use yet
            self._sweep()

    def _beat_on(self) -> None:
        """Tell other processes that the requests in flight are not those of a dead one."""
        self._look_back()
        self._beat = None
        if self._ledger.is_used:
            self._ledger.beat(time())
            self._beaten = monotonic()
            self._beat = call_later(self._ledger.ttl / BEATS, self._beat_on)

    def stood_still(self, request: Request) -> bool:
        """True where others may ask the host by now, though the headers of the request have not come: since its turn this process
        gave no signs of life for long."""
        self._look_back()
        flight = self._flights.get(request)
        return (
            flight is not None
            and bool(flight.grant)
            and not flight.is_settled
            and flight.started <= self._stood_still_at
        )

    def _look_back(self) -> None:
        now = monotonic()
        if self._beat is not None and now >= self._beaten + SILENCE * self._ledger.ttl:
            self._stood_still_at = now

    def claim(self, request: Request) -> bool:
        """True where the request comes from the scheduler to the middleware, for the first time since it was handed out."""
        flight = self._flights.get(request)
        if flight is None:
            return False
        if flight.claimed:
            self._forget(request)
            return False
        flight.claimed = True
        return True

    def was_handed_out(self, request: Request) -> bool:
        flight = self._flights.get(request)
        return flight is not None and flight.handed_out

    async def acquire(
        self,
        request: Request,
        limiters: tuple[Limiter, ...],
        *,
        at_most: float,
        in_downloader: bool = True,
    ) -> float | None:
        """Wait in place until all the limiters let the request out, and start it. Raises ClosingError when the crawl ends.

        `at_most`: seconds to wait. Where it would take longer, nothing is started and the seconds are returned. `in_downloader`:
        the request goes out through Scrapy's downloader, which ends what takes too long; else the caller calls `end_and_forget` when
        it is done, and nobody waits longer than that for others: who waits may be reading the answer that is waited for.

        Who waits stands in line for the last limiter, so that a scope holds up nobody outside of it."""
        last = limiters[-1]
        began = monotonic()
        last.awaited += 1
        try:
            async with last.line:
                while True:
                    if self._run.is_closing:
                        raise ClosingError
                    look_again = TICK
                    if any(limiter.full for limiter in limiters):
                        self.forget_departed()
                        look_again = self._take_turns(limiters)
                    limiter = slowest(limiters)
                    wait = look_again if limiter.full else limiter.free_at - monotonic()
                    if wait <= 0:
                        grant = self.try_acquire(limiters)
                        if grant is not None:
                            break
                        limiter = slowest(limiters)
                        wait = TICK if limiter.full else limiter.free_at - monotonic()
                    elif not (limiter.full and in_downloader):
                        waited = monotonic() - began + (0.0 if limiter.full else wait)
                        if waited > at_most:
                            return waited
                    await self._freed(limiter, min(max(wait, 0.0), TICK), ahead=limiter is not last)
                self.start(
                    request, limiters, handed_out=False, in_downloader=in_downloader, grant=grant
                )
                return None
        finally:
            last.awaited -= 1
            if not last.full:
                self._announce(last)

    def _take_turns(self, limiters: tuple[Limiter, ...]) -> float:
        """Under each of these that is full, take the turn of one that has not been sent for long: a downloader middleware that
        keeps it may wait for the very request that waits here. Return the seconds until it is worth another look."""
        look_again, now = TICK, monotonic()
        for limiter in limiters:
            flights = self._flights.items() if limiter.in_flight >= limiter.most else ()
            unsent = [
                (flight.started, request)
                for request, flight in flights
                if limiter in flight.limiters and _is_kept(flight)
            ]
            if unsent:
                started, request = min(unsent, key=itemgetter(0))
                if now - started >= MAX_HANDOVER:
                    self._take_turn(request)
                else:
                    look_again = min(look_again, started + MAX_HANDOVER - now)
        return look_again

    def _take_turn(self, request: Request) -> None:
        self.free_limiters(request)
        self._flights[request].has_lost_turn = True

    def lose_turn(self, request: Request) -> None:
        """Count a request that got no answer. To be sent again it needs another turn."""
        self.settle_start(request)
        if request in self._flights:
            self._take_turn(request)

    def sends(self, request: Request) -> bool:
        """Note that the download of the request begins. False where it needs another turn before: others had that of it, or its
        host is to be left alone since."""
        flight = self._flights.get(request)
        if flight is None:
            return True
        if any(limiter.rests_until > monotonic() for limiter in flight.limiters):
            self._take_turn(request)
        flight.is_sent = not flight.has_lost_turn
        return flight.is_sent

    async def _freed(self, limiter: Limiter, wait: float, *, ahead: bool) -> None:
        """Wait until something of the limiter is through, or so many seconds. `ahead`: before the queues that wait for it."""
        limiter.awaited += ahead
        limiter.freed.clear()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await limiter.freed.wait()
        finally:
            limiter.awaited -= ahead
            if ahead and self.freed(limiter):
                limiter.freed.set()
                self._run.wake()

    def free_limiters(self, request: Request) -> None:
        """End the request's time in flight. It still counts as handed out until it is reaped."""
        flight = self._flights.get(request)
        if flight is None or not flight.limiters:
            return
        limiters, flight.limiters = flight.limiters, ()
        if flight.grant:
            self._ledger.end(flight.grant)
        for limiter in limiters:
            limiter.in_flight -= 1
            self._announce(limiter)

    def _settle(self, flight: Flight) -> None:
        """Count the request as started now."""
        flight.is_settled = True
        now = monotonic()
        for limiter in flight.limiters:
            limiter.last = now
            limiter.rest()
        self._observer.settled(flight.limiters, flight.observed)
        if flight.grant:
            self._ledger.settle(flight.grant, time())

    def forget_departed(self) -> bool:
        """Release what left the downloader without reaching the network (refused or answered by another middleware).

        True where it freed a limiter."""
        active = self._run.in_downloader
        freed = False
        inactive = [
            request
            for request, flight in self._flights.items()
            if flight.in_downloader and request not in active
        ]
        for request in inactive:
            freed = freed or bool(self._flights[request].limiters)
            self._forget(request)
        return freed

    def _forget(self, request: Request) -> None:
        self.free_limiters(request)
        del self._flights[request]

    def _announce(self, limiter: Limiter) -> None:
        limiter.freed.set()
        self.freed(limiter)

    def settle_start(self, request: Request) -> None:
        """Count the request as started now: its headers came."""
        flight = self._flights.get(request)
        if flight is not None and flight.limiters and not flight.is_settled:
            self._settle(flight)

    def cancel(self, request: Request) -> None:
        """Give back what a request was let out for that never goes out."""
        if request in self._flights:
            self._forget(request)

    def end_and_forget(self, request: Request) -> None:
        """End a request that did not go through Scrapy's downloader: it is done, or has failed."""
        self.end_flight(request)
        self._flights.pop(request, None)

    def end_flight(self, request: Request) -> None:
        """End the request's time in flight; what is not settled of it is now."""
        flight = self._flights.get(request)
        if flight is not None and flight.limiters:
            if not flight.is_settled:
                self._settle(flight)
            self.free_limiters(request)


def _is_kept(flight: Flight) -> bool:
    """True where nothing of it has gone out, and who sends it asks for another turn."""
    return flight.in_downloader and not flight.is_sent
