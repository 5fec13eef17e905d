"""Limits of the requests to a host in a time, and when one more may start.

A server gets a request at some moment between the decision to send it and the arrival of its answer's headers. So a request in
flight counts as started now, and later by the moment when its headers came: however long the way takes, no window ever holds
more at the server than it may. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import time
from typing import NamedTuple

from comity.policies.answers.decision import Source
from comity.policies.answers.rates import Rates

MAX_STAMPS = 64  # starts that are remembered for a window at most
DAY = 24 * 3600  # seconds
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": DAY}  # of a request-limit, in seconds


class Window(NamedTuple):
    """A limit of `requests` starts in any `seconds`; with `start` and `end` (UTC) from the one to the other, which may be past
    midnight. From a time to the same is the whole day. A delay is a window for one request."""

    requests: int
    seconds: float
    start: time | None = None
    end: time | None = None

    def holds(self, now: float) -> bool:
        """Return whether it applies at this time of the day."""
        if self.start is None or self.end is None:
            return True
        begin = _seconds(self.start)
        return (now - begin) % DAY < ((_seconds(self.end) - begin) % DAY or DAY)

    def ends(self, now: float) -> float:
        """Return the time when it next ceases to apply."""
        if self.start is None or self.end is None or self.start == self.end:
            return float("inf")
        return now + DAY - (now - _seconds(self.end)) % DAY

    def part(self) -> Window:
        """A window for 1 to MAX_STAMPS requests that keeps to this one: where it is for more, an even part of it.

        m parts of a period hold at most m times what each of them may, wherever the period begins. A period of 0 seconds holds
        what is in flight."""
        if self.requests >= 1 and (self.requests <= MAX_STAMPS or not self.seconds):
            return self
        parts = max(1, -(-self.requests // MAX_STAMPS))
        return self._replace(requests=max(1, self.requests // parts), seconds=self.seconds / parts)


class StatedLimit(NamedTuple):
    """One line that limits the requests of a scope."""

    name: str  # of its directive
    window: Window | None  # None: the line limits the requests in flight, or cannot be read
    concurrent: int | None  # requests in flight; None: the line limits the requests in a time
    source: Source
    advice: str = ""  # what to write instead; "": the value can be read


class Limits(NamedTuple):
    """The limits of the requests of one scope, in a time and at a time (extension section-3.1)."""

    key: str  # the same in every process that reads the same group
    windows: tuple[Window, ...]  # all hold
    concurrent: int | None  # requests in flight; None: no limit
    unreadable: bool = (
        False  # a request-limit cannot be read: as slow as the operator's settings allow
    )
    source: str = ""  # path of the file that states it
    stated: tuple[StatedLimit, ...] = ()  # the lines that state it, where the format tells them

    @property
    def is_unread(self) -> bool:
        """True where the value of one of the lines cannot be read."""
        return any(line.advice for line in self.stated)

    def lines(self, slowest: float) -> Iterator[StatedLimit]:
        """Yield each limit that is obeyed, with its line where the format tells it.

        `slowest`: seconds between two requests where a request-limit cannot be read (AUTX-14)."""
        slow, source = Window(1, slowest), Source(url=self.source)
        for limit in self.stated:
            yield (
                limit
                if limit.window or limit.concurrent is not None
                else limit._replace(window=slow)
            )
        if not self.stated:
            windows = (*self.windows, slow) if self.unreadable else self.windows
            yield from (StatedLimit("request-limit", window, None, source) for window in windows)
            if self.concurrent is not None:
                yield StatedLimit("concurrent-limit", None, self.concurrent, source)


def limit_text(requests: int, seconds: int) -> str:
    """Return the request-limit, N/UNIT, that lets through so many requests in so many seconds, or fewer. "": there is none."""
    unit, length = next(
        ((unit, length) for unit, length in UNITS.items() if seconds <= length), ("day", DAY)
    )
    number = requests * length // seconds if seconds else 0
    return f"{number}/{unit}" if number else ""


def _seconds(moment: time) -> int:
    """Return the seconds since midnight."""
    return moment.hour * 3600 + moment.minute * 60 + moment.second


def windows_of(rates: Rates | None) -> tuple[Window, ...]:
    """Return the windows that a site asks for; () where it asks for nothing."""
    if rates is None:
        return ()
    delay = (Window(1, rates.crawl_delay),) if rates.crawl_delay else ()
    return (*delay, *(Window(*rate).part() for rate in rates.request_rates))


def delay_of(windows: Iterable[Window]) -> float:
    """The seconds between two requests that the windows leave in the long run, if they all held all day."""
    return max((window.seconds / max(1, window.requests) for window in windows), default=0.0)


def earliest(
    windows: Iterable[Window], stamps: Sequence[float], in_flight: int, now: float
) -> float | None:
    """Return the time when one more may start, if nothing else does: `now`, or later. None: not before one in flight is settled.

    `stamps`: of the settled starts, ascending; those later than now count as now, for the clock was set back. Windows that begin
    and end at times of the day are followed for a day; past that the moment may turn out to be too early when it has come."""
    windows = [window.part() for window in windows]
    if in_flight:
        if any(window.requests <= in_flight and window.holds(now) for window in windows):
            return None
        stamps = [*stamps, *[now] * in_flight]  # at the earliest
    due, later = now, True
    while later and due < now + DAY:
        later = False
        for window in windows:
            if window.requests <= len(stamps):
                free = min(stamps[-window.requests], now) + window.seconds
                if free > due and window.holds(due):
                    due, later = min(free, window.ends(due)), True
    return due
