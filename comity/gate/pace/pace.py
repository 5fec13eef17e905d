"""The pace of hosts: each request waits until its host may be asked again.

A request needs the limiter of its host name, and one more for each scope that it belongs to, if
automation-preferences.txt limits these scopes. It goes out when all of its limiters let it.

When a request is let out, its record (request/passage.py) gets a Flight. A request in flight
occupies its limiters and counts as started now. Its start is settled when its headers arrive, or
when it fails. So the server never sees two requests closer together than they may be.

Calls that let a request out:

    try_acquire(limiters)     the scheduler picks a request: return a grant, or None for "not now"
    acquire(request, ...)     a request waits in place, in the line of its last limiter
    start(request, ...)       the request goes out and occupies its limiters
    sends(request)            its download begins; False if it needs another turn before that

Calls that follow, until the flight is forgotten:

    call                      when                                start counts   limiters   flight
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

`end_flight` keeps the flight because a middleware may still give the request back to the scheduler
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
from math import inf
from operator import attrgetter
from time import monotonic, time
from weakref import ref

from comity.gate.http import Request
from comity.gate.pace.ledger import Ledger, PaceLimit
from comity.gate.pace.limiter import Limiter, slowest, windows_for
from comity.gate.request.passage import Flight, Passage, Passages
from comity.gate.run.flights import ClosingError
from comity.gate.run.observer import Observer
from comity.gate.run.surroundings import Run
from comity.gate.settings import Settings
from comity.policies import Agent, Site
from comity.policies.syntax.urls import host_name
from comity.policies.syntax.windows import Limits, Window

logger = logging.getLogger(__name__)

# The maximum seconds between two checks, by a request that waits in place, if the crawl is ending.
TICK = 1.0
# The number of signs of life that a process gives in `Ledger.ttl` seconds. Other processes take a
# process for dead if it gives none for that long.
BEATS = 3
# This process has stood still if it gave no sign of life for this part of `Ledger.ttl`. A process
# that is only busy is never so late.
SILENCE = 0.75
# The maximum seconds from the start of a request to its download. If it takes longer, a downloader
# middleware must be keeping the request.
MAX_HANDOVER = 0.25
SWEEP = 1024  # idle limiters are forgotten when there are at least this many limiters


def call_later(delay: float, func: Callable[[], object]) -> asyncio.TimerHandle:
    """Call the function after `delay` seconds. Tests replace this with a clock that they move."""
    return asyncio.get_running_loop().call_later(delay, func)


class Pace:
    """The limiters of hosts and scopes, and the requests in flight.

    Attributes:
        freed: A function, set by the scheduler. It is called with each limiter that may let out a
            request again, and returns True if a queue waited for this limiter.
    """

    def __init__(
        self,
        passages: Passages,
        run: Run,
        ledger: Ledger,
        settings: Settings,
        *,
        min_delay: float,
        max_delay: float,
        observer: Observer = Observer(),  # noqa: B008  # an Observer has no state
    ) -> None:
        """Take the project's own delay and concurrency per host from `settings` (docs/pace.md).

        `min_delay`: seconds between two requests to a host, unless DOWNLOAD_DELAY is longer.
        `max_delay`: seconds between two requests under a limit that cannot be read.
        """
        self.freed: Callable[[Limiter], bool] = lambda limiter: False
        self._passages = passages
        self._run = run
        self._observer = observer
        self._ledger = ledger
        self._ledger.on_answer, self._ledger.rests = self._on_answer, self._rests
        self._floor = max(min_delay, settings.getfloat("DOWNLOAD_DELAY"))
        self._slowest = Window(1, max_delay)
        self._ceiling = max(1, settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"))
        self._slots = settings.getdict("DOWNLOAD_SLOTS")
        # Seconds: the delay with which AutoThrottle begins for each host.
        self._throttle = (
            settings.getfloat("AUTOTHROTTLE_START_DELAY")
            if settings.getbool("AUTOTHROTTLE_ENABLED")
            else 0.0
        )
        self._limiters: dict[str, Limiter] = {}
        # The limits that the ledger is being asked about -> the limiter that waits for the answer.
        self._asking: dict[tuple[PaceLimit, ...], Limiter] = {}
        self._sweep_at = SWEEP
        # The flights that are not forgotten -> their requests.
        self._flights: dict[Flight[Limiter], Request] = {}
        self._beat: asyncio.TimerHandle | None = None
        # By the monotonic clock: the last sign of life, and the end of the last standstill.
        self._beaten = self._stood_still_at = 0.0

    def close(self) -> None:
        """Close the ledger, and wake all requests that wait in place: the crawl ends."""
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
        self._ledger.close()
        for limiter in self._limiters.values():
            if limiter.freed is not None:
                limiter.freed.set()

    def host(self, url: str) -> Limiter:
        """Return the limiter of the URL's host name."""
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
        """Return the limiter of the group of automation-preferences.txt with these limits."""
        scope = self._limiters.get(limits.key)  # the key has a scheme, so it is no host name
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
        """Return the limiters that a request to the URL needs.

        The first is that of its host. The others are those of its scopes that have limits.
        """
        host = self.host(url)
        host.restrict(site.origin, windows_for(site, agent))
        return (host, *map(self.scope, site.limits(agent, url)))

    def _sweep(self) -> None:
        """Forget the limiters that are free now and that no request occupies or waits for.

        Their past starts remain in the ledger.
        """
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
        """Return a grant of all the limiters for a request that starts at once, or None.

        0 is a grant, too: the limiters have no limits. None means "not now". If one of the limiters
        is full after that, the ledger is being asked, and `freed` will be called with this limiter.
        Otherwise the `free_at` of one limiter says when to try again.
        """
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
            # The last limiter waits: if it is of a scope, requests outside of it are not held up.
            self._asking[tuple(limits)] = limiters[-1]
            limiters[-1].is_asking = True
        elif grant.number is None:
            limiter = next(
                (limiter for limiter in limiters if grant.limit in limiter.limits), limiters[0]
            )
            limiter.free_at = monotonic() + max(grant.due - now, 0.001)
        return grant.number

    def _on_answer(self, limits: Sequence[PaceLimit]) -> None:
        """Let the limiter that waits for an answer about these limits ask the ledger again."""
        limiter = self._asking.pop(tuple(limits), None)
        if limiter is not None:
            limiter.is_asking = False
            self._announce(limiter)
            self._run.wake()

    def rest(self, host: str, seconds: float) -> None:
        """Send the host no request for so many seconds, in this process only.

        Unlike `back_off`, this method does not tell the ledger."""
        self._rests(host, time() + seconds)

    def _rests(self, host: str, until: float) -> None:
        self._rest_until(self._host(host), until)

    def back_off(self, url: str, retry_after: float | None) -> float:
        """Send the host no request for a time, because it answered that there are too many.

        Return the seconds until it may be asked again.

        `retry_after`: the seconds that the host asked for; None if it did not say.
        """
        now = time()
        host = self.host(url)
        wait = self._ledger.back_off(host.name, retry_after, now) - now
        self._rest_until(host, now + wait)
        return wait

    def overloaded(self, url: str, status: int, seconds: float | None) -> float:
        """Back off from the host of the URL, and count, report and log that.

        Return the seconds until the host may be asked again.

        `status`: the HTTP status of its answer. `seconds`: the seconds that the host asked for;
        None if it did not say.
        """
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
        """Let the request out now: it occupies the limiters until its flight ends.

        `handed_out`: the scheduler hands it out. `in_downloader`: it goes through Scrapy's
        downloader. `grant`: its number in the ledger; 0 if the limiters have no limits.
        """
        passage = self._passages[ref(request)]
        if passage.flight is not None:
            self._forget(passage, passage.flight)
        flight = passage.flight = Flight(
            limiters,
            handed_out,
            in_downloader,
            claimed=not handed_out,
            started=monotonic(),
            grant=grant,
        )
        self._flights[flight] = request
        if limiters:
            flight.observed = self._observer.starting(limiters)
        for limiter in limiters:
            limiter.in_flight += 1
        if grant and self._beat is None:
            self._beat_on()
        # Sweep here, not where a limiter is made: the new one would not be in use yet.
        if len(self._limiters) >= self._sweep_at:
            self._sweep()

    def _beat_on(self) -> None:
        """Give other processes a sign of life, now and BEATS times per `Ledger.ttl`.

        Without signs of life, the ledger would stop counting this process's requests in flight."""
        self._look_back()
        self._beat = None
        if self._ledger.is_used:
            self._ledger.beat(time())
            self._beaten = monotonic()
            self._beat = call_later(self._ledger.ttl / BEATS, self._beat_on)

    def stood_still(self, request: Request) -> bool:
        """Return True if this process has stood still (SILENCE) since the start of the request.

        Then other processes may already send requests to the host, although the request has no
        answer yet. False for requests without a grant, and after the start of the request is
        settled.
        """
        flight = self._passages[ref(request)].flight
        if flight is None or not flight.grant or flight.is_settled:
            return False
        self._look_back()
        return flight.started <= self._stood_still_at

    def _look_back(self) -> None:
        """Note that this process has stood still until now, if it has."""
        now = monotonic()
        if self._beat is not None and now >= self._beaten + SILENCE * self._ledger.ttl:
            self._stood_still_at = now

    def claim(self, request: Request) -> bool:
        """Return True if the request comes to the middleware for the first time after its hand-out.

        Return False if the scheduler did not hand out the request. When a handed-out request comes
        a second time, drop its flight, and return False, too.
        """
        passage = self._passages[ref(request)]
        flight = passage.flight
        if flight is None:
            return False
        if flight.claimed:
            self._forget(passage, flight)
            return False
        flight.claimed = True
        return True

    def was_handed_out(self, request: Request) -> bool:
        """Return True if the scheduler handed out the request, and would take it back."""
        flight = self._passages[ref(request)].flight
        return flight is not None and flight.handed_out

    async def acquire(
        self,
        request: Request,
        limiters: tuple[Limiter, ...],
        *,
        at_most: float,
        in_downloader: bool = True,
    ) -> float | None:
        """Wait in place until all the limiters let the request out, and start it.

        Return None when it is started. If it would have to wait longer than `at_most` seconds, it
        is not started, and the seconds are returned. ClosingError: the crawl ends.

        `in_downloader`: True if the request goes through Scrapy's downloader. While requests in
        flight fill a limiter, this request waits even longer than `at_most`, because Scrapy ends
        requests that take too long. False if the caller reports the end of the request
        (`end_and_forget`). Then `at_most` applies to this wait, too: the request in flight may be
        one that the caller itself is reading, which would never end.

        The request waits in the line of the last limiter. If that is the limiter of a scope,
        requests outside of the scope are not held up.
        """
        last = limiters[-1]
        began = monotonic()
        last.awaited += 1
        try:
            if last.line is None:
                last.line = asyncio.Lock()
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
                    await self._wait_until_freed(
                        limiter, min(max(wait, 0.0), TICK), ahead=limiter is not last
                    )
                self.start(
                    request, limiters, handed_out=False, in_downloader=in_downloader, grant=grant
                )
                return None
        finally:
            last.awaited -= 1
            if not last.full:
                self._announce(last)

    def _take_turns(self, limiters: tuple[Limiter, ...]) -> float:
        """Under each full limiter, take the turn from the oldest request that was not sent in time.

        A downloader middleware keeps that request, and may be waiting for the request that waits
        here: for a log-in, for example. Return the seconds after which to look again.
        """
        look_again, now = TICK, monotonic()
        for limiter in limiters:
            unsent = [
                flight
                for flight in (self._flights if limiter.in_flight >= limiter.most else ())
                if limiter in flight.limiters and _is_kept(flight)
            ]
            if unsent:
                oldest = min(unsent, key=attrgetter("started"))
                if now - oldest.started >= MAX_HANDOVER:
                    self._take_turn(oldest)
                else:
                    look_again = min(look_again, oldest.started + MAX_HANDOVER - now)
        return look_again

    def _take_turn(self, flight: Flight[Limiter]) -> None:
        self._free(flight)
        flight.has_lost_turn = True

    def lose_turn(self, request: Request) -> None:
        """Settle the start of a request that got no answer, and take its turn.

        The request needs another turn before it may be sent again."""
        flight = self._passages[ref(request)].flight
        if flight is not None:
            self._settle(flight)
            self._take_turn(flight)

    def sends(self, request: Request) -> bool:
        """Note that the download begins. Return False if the request needs another turn first.

        It needs another turn if it has lost its own (`has_lost_turn`), or if its host has asked for
        a pause since.
        """
        flight = self._passages[ref(request)].flight
        if flight is None:
            return True
        now = monotonic()
        for limiter in flight.limiters:
            if limiter.rests_until > now:
                self._take_turn(flight)
                break
        flight.is_sent = not flight.has_lost_turn
        return flight.is_sent

    async def _wait_until_freed(self, limiter: Limiter, wait: float, *, ahead: bool) -> None:
        """Wait until the limiter may let out a request, at most `wait` seconds.

        `ahead`: True if the scheduler's queues under this limiter have to wait meanwhile.
        """
        limiter.awaited += ahead
        if limiter.freed is None:
            limiter.freed = asyncio.Event()
        freed = limiter.freed
        freed.clear()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await freed.wait()
        finally:
            limiter.awaited -= ahead
            if ahead and self.freed(limiter):
                freed.set()
                self._run.wake()

    def free_limiters(self, request: Request) -> None:
        """Free the limiters of the request. A start that is not settled no longer counts.

        The flight of the request is kept, so `was_handed_out` stays True.
        """
        flight = self._passages[ref(request)].flight
        if flight is not None:
            self._free(flight)

    def _free(self, flight: Flight[Limiter]) -> None:
        if not flight.limiters:
            return
        limiters, flight.limiters = flight.limiters, ()
        if flight.grant:
            self._ledger.end(flight.grant)
        for limiter in limiters:
            limiter.in_flight -= 1
            self._announce(limiter)

    def _settle(self, flight: Flight[Limiter]) -> None:
        """Count the start of this flight from now on, unless it is settled."""
        if flight.is_settled or not flight.limiters:
            return
        flight.is_settled = True
        now = monotonic()
        for limiter in flight.limiters:
            limiter.last = now
            limiter.rest()
        self._observer.settled(flight.limiters, flight.observed)
        if flight.grant:
            self._ledger.settle(flight.grant, time())

    def forget_departed(self) -> bool:
        """Forget the requests that left Scrapy's downloader, and free their limiters.

        Another middleware may have refused or answered them before they reached the network. Return
        True if this freed a limiter.
        """
        active = self._run.in_downloader
        freed = False
        inactive = [
            (flight, request)
            for flight, request in self._flights.items()
            if flight.in_downloader and request not in active
        ]
        for flight, request in inactive:
            freed = freed or bool(flight.limiters)
            self._forget(self._passages[ref(request)], flight)
        return freed

    def _forget(self, passage: Passage, flight: Flight[Limiter]) -> None:
        self._free(flight)
        passage.flight = None
        del self._flights[flight]

    def _announce(self, limiter: Limiter) -> None:
        if limiter.freed is not None:
            limiter.freed.set()
        self.freed(limiter)

    def settle_start(self, request: Request) -> None:
        """Count the request as started now: its headers arrived."""
        flight = self._passages[ref(request)].flight
        if flight is not None:
            self._settle(flight)

    def cancel(self, request: Request) -> None:
        """Free the limiters of a request that never goes out, and forget it."""
        passage = self._passages[ref(request)]
        if passage.flight is not None:
            self._forget(passage, passage.flight)

    def end_and_forget(self, request: Request) -> None:
        """End the flight of a request outside of Scrapy's downloader, done or failed; forget it."""
        self.end_flight(request)
        self.cancel(request)

    def end_flight(self, request: Request) -> None:
        """Free the limiters of the request. If its start is not settled, it counts from now."""
        flight = self._passages[ref(request)].flight
        if flight is not None:
            self._settle(flight)
            self._free(flight)


def _is_kept(flight: Flight[Limiter]) -> bool:
    """Return True if the request was not sent yet, and its sender will ask for another turn."""
    return flight.in_downloader and not flight.is_sent
