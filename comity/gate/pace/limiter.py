"""Limiters: the limits of a host or of a scope of automation-preferences.txt.

Each limiter also counts the requests of this process in flight to its host or in its scope."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from comity.gate.pace.ledger import PaceLimit
from comity.policies import Agent, Site
from comity.policies.syntax.windows import StatedLimit, Window, delay_of, windows_of


def windows_for(site: Site, agent: Agent) -> tuple[Window, ...]:
    """Return the windows that the site asks the agent to keep; () if it states none."""
    return windows_of(site.rates(agent))


@dataclass(slots=True, eq=False)
class Limiter:
    """The pace of a host name, shared by its origins, or of a scope of automation-preferences.txt.

    Moments are of the monotonic clock.

    Attributes:
        name: The host name, or the key of the scope.
        floor: The operator's own limit, which applies in addition to the site's limits.
        ceiling: The number of requests that this process may have in flight.
        by_origin: The windows that each origin asks for.
        throttle: Seconds between two requests that AutoThrottle asks for.
        concurrent: The maximum number of requests in flight, over all processes, that the site
            permits. None means that the site states no such limit.
        windows: The floor, and all windows that origins and AutoThrottle ask for.
        limits: The windows and `concurrent`, in the form that the ledger needs.
        most: The maximum number of requests of this process in flight, by all limits.
        in_flight: The number of requests in flight.
        free_at: The moment before which no request goes out.
        rests_until: The end of the last penalty (after a 429, for example). Before this moment, not
            even a request that was already allowed to start goes out.
        last: The moment when a start was settled last: header fields came, or a request failed.
        queues: The number of queues that wait, or may wait, for this limiter.
        is_asking: True while the ledger is being asked and has not answered.
        is_always_asked: True if the ledger is asked even without windows. A ledger that several
            processes share may know penalties that this process does not know.
        awaited: The number of requests that wait in the middleware, ahead of all queues.
        line: The lock in which these requests stand in line. None until the first of them comes: a
            lock and an event take three times the memory of the rest, and few hosts need them.
        freed: Set when a request may go out again. None until a request waits for that.
        reason: Why the limiter lets out no request, for messages.
        unread: The limits of the site with an unreadable value.
    """

    name: str
    floor: tuple[Window, ...]
    ceiling: int
    by_origin: dict[str, tuple[Window, ...]] = field(default_factory=dict)
    throttle: float = 0.0
    concurrent: int | None = None
    windows: tuple[Window, ...] = ()
    limits: tuple[PaceLimit, ...] = ()
    most: int = 1
    in_flight: int = 0
    free_at: float = float("-inf")
    rests_until: float = float("-inf")
    last: float = float("-inf")
    queues: int = 0
    is_asking: bool = False
    is_always_asked: bool = False
    awaited: int = 0
    line: asyncio.Lock | None = None
    freed: asyncio.Event | None = None
    reason: str = "its host is to be left alone"
    unread: tuple[StatedLimit, ...] = ()
    # The result of `delay` if it is one value all day, or None.
    _steady_delay: float | None = None

    def __post_init__(self) -> None:
        self._limit()

    def restrict(
        self, origin: str, windows: tuple[Window, ...], concurrent: int | None = None
    ) -> None:
        """Set the limits that the origin asks for, in place of its earlier limits.

        `concurrent`: see the attribute. It is one value for all origins of the limiter."""
        if self.by_origin.get(origin) != windows or self.concurrent != concurrent:
            self.by_origin[origin] = windows
            self.concurrent = concurrent
            self._limit()

    def throttled(self, delay: float) -> None:
        """Set the seconds between two requests that AutoThrottle asks for."""
        if self.throttle != delay:
            self.throttle = delay
            self._limit()

    def _limit(self) -> None:
        requested = [window for windows in self.by_origin.values() for window in windows]
        if self.throttle > 0:
            requested.append(Window(1, self.throttle))
        self.windows = tuple(dict.fromkeys((*self.floor, *requested)))
        self._steady_delay = (
            delay_of(self.windows) if all(window.start is None for window in self.windows) else None
        )
        self.rest()  # a new limit also counts from a start before the limit was known
        self.most = min(
            [self.ceiling, *(window.requests for window in self.windows if window.start is None)]
        )
        self.limits = (
            (PaceLimit(self.name, self.windows),) if self.windows or self.is_always_asked else ()
        )
        if self.concurrent is not None:
            self.most = min(self.most, self.concurrent)
            self.limits += (
                PaceLimit(
                    f"{self.name} (in flight)", (Window(self.concurrent, 0.0),), through=True
                ),
            )

    def rest(self) -> None:
        """Put off `free_at` as far as the last start and windows of one request demand.

        Only the ledger knows earlier starts, which windows of several requests count."""
        singles = (
            window.seconds
            for window in self.windows
            if window.requests == 1 and window.start is None
        )
        self.free_at = max(self.free_at, self.last + max(singles, default=0.0))

    @property
    def full(self) -> bool:
        """True if no more requests may go out until one ends, or until the ledger answers."""
        return self.in_flight >= self.most or self.is_asking

    def delay(self, now: float) -> float:
        """Return the average seconds between two requests at the fastest pace that is permitted.

        `now`: seconds since the epoch. Windows for other times of the day are left out.
        """
        if self._steady_delay is not None:
            return self._steady_delay
        return delay_of(window for window in self.windows if window.holds(now))


def slowest(limiters: tuple[Limiter, ...]) -> Limiter:
    """Return the limiter to wait for: a full one, or else the one with the latest `free_at`."""
    return (
        limiters[0]
        if len(limiters) == 1
        else max(limiters, key=lambda limiter: (limiter.full, limiter.free_at))
    )
