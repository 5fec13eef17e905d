"""The limits of a host, or of a scope of automation-preferences.txt, and the requests that count under them in this process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from comity.gate.pace.ledger import Limit
from comity.policies import Agent, Site
from comity.policies.syntax.windows import StatedLimit, Window, delay_of, windows_of


def windows_for(site: Site, agent: Agent) -> tuple[Window, ...]:
    """The windows that the site asks the agent to keep; () where it states nothing."""
    return windows_of(site.rates(agent))


@dataclass(slots=True, eq=False)
class Limiter:
    """The pace of a host name, whose origins share it, or of a scope of automation-preferences.txt."""

    name: str
    floor: tuple[Window, ...]  # the operator's own limit, whatever the site says
    ceiling: int  # requests in flight
    by_origin: dict[str, tuple[Window, ...]] = field(
        default_factory=dict
    )  # what each origin asks for
    throttle: float = 0.0  # seconds between two requests that AutoThrottle asks for
    concurrent: int | None = None  # requests in flight that the site asks for, over all processes
    windows: tuple[Window, ...] = ()  # all of them
    limits: tuple[Limit, ...] = ()  # the same, for the ledger
    most: int = 1  # requests in flight that they let out
    in_flight: int = 0
    free_at: float = float("-inf")  # not before; monotonic
    rests_until: float = float(
        "-inf"
    )  # the same, of penalties alone: also what has had its turn does not go out before
    last: float = float("-inf")  # when the last start was settled
    queues: int = 0  # that wait or may wait for it
    is_asking: bool = False  # the ledger is, of which nothing is known before it has answered
    is_always_asked: bool = (
        False  # the ledger is, also where there are no windows: it knows of penalties
    )
    awaited: int = 0  # requests that wait in the middleware: they come before what waits in queues
    line: asyncio.Lock = field(default_factory=asyncio.Lock)  # in which they wait
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = "its host is to be left alone"  # where it lets nothing out
    unread: tuple[StatedLimit, ...] = ()  # its limits whose values cannot be read

    def __post_init__(self) -> None:
        self._limit()

    def restrict(
        self, origin: str, windows: tuple[Window, ...], concurrent: int | None = None
    ) -> None:
        """Take what the origin asks for in place of what it asked for before."""
        if self.by_origin.get(origin) != windows or self.concurrent != concurrent:
            self.by_origin[origin] = windows
            self.concurrent = concurrent
            self._limit()

    def throttled(self, delay: float) -> None:
        if self.throttle != delay:
            self.throttle = delay
            self._limit()

    def _limit(self) -> None:
        requested = [window for windows in self.by_origin.values() for window in windows]
        if self.throttle > 0:
            requested.append(Window(1, self.throttle))
        self.windows = tuple(dict.fromkeys((*self.floor, *requested)))
        self.rest()  # what went out before the limit was known counts too
        self.most = min(
            [self.ceiling, *(window.requests for window in self.windows if window.start is None)]
        )
        self.limits = (
            (Limit(self.name, self.windows),) if self.windows or self.is_always_asked else ()
        )
        if self.concurrent is not None:
            self.most = min(self.most, self.concurrent)
            self.limits += (
                Limit(f"{self.name} (in flight)", (Window(self.concurrent, 0.0),), through=True),
            )

    def rest(self) -> None:
        """Wait as long as the last start alone demands; the rest is asked of the ledger."""
        singles = (
            window.seconds
            for window in self.windows
            if window.requests == 1 and window.start is None
        )
        self.free_at = max(self.free_at, self.last + max(singles, default=0.0))

    @property
    def full(self) -> bool:
        """True where nothing more may go out before it is told."""
        return self.in_flight >= self.most or self.is_asking

    def delay(self, now: float) -> float:
        """Seconds between two requests in the long run, at this time of the day (seconds since the epoch)."""
        return (
            delay_of(window for window in self.windows if window.holds(now))
            if self.windows
            else 0.0
        )


def slowest(limiters: tuple[Limiter, ...]) -> Limiter:
    """The one to wait for: one that is full, or the one that is free last."""
    return (
        limiters[0]
        if len(limiters) == 1
        else max(limiters, key=lambda limiter: (limiter.full, limiter.free_at))
    )
