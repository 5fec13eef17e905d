"""Limits on the requests to a host in a period, and the time when one more may start.

A server receives a request between the decision to send it and the arrival of the response's header
fields. So a request in flight counts as started now, and afterwards as started when its header
fields came. Therefore no window ever contains more requests at the server than it permits, for any
delay on the way. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import time
from functools import lru_cache
from typing import NamedTuple

from comity.policies.answers.decision import Source
from comity.policies.answers.rates import Rates

# Starts that are recorded for one window.
MAX_STAMPS = 64
DAY = 24 * 3600  # seconds
# Units of a request-limit, in seconds.
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": DAY}


class Window(NamedTuple):
    """A limit of `requests` starts in any period of `seconds`. A delay is a window for one request.

    Attributes:
        requests: most starts in a period.
        seconds: length of the period.
        start: time of the day (UTC) from which the window applies. None: it applies all day.
        end: time of the day (UTC) until which it applies. It may be after midnight, and equal to
            `start` for the whole day. None: it applies all day."""

    requests: int
    seconds: float
    start: time | None = None
    end: time | None = None

    def holds(self, now: float) -> bool:
        """Return True if the window applies at this time."""
        if self.start is None or self.end is None:
            return True
        begin = _seconds(self.start)
        return (now - begin) % DAY < ((_seconds(self.end) - begin) % DAY or DAY)

    def ends(self, now: float) -> float:
        """Return the next time when the window stops applying; infinity: it never does."""
        if self.start is None or self.end is None or self.start == self.end:
            return float("inf")
        return now + DAY - (now - _seconds(self.end)) % DAY

    def part(self) -> Window:
        """Return a window for 1 to MAX_STAMPS requests that is at least as strict.

        A window for more requests is divided into m equal parts. Any period of the whole window
        contains at most m times the requests of one part. A window of 0 seconds stays as it is: it
        limits the requests in flight."""
        if self.requests >= 1 and (self.requests <= MAX_STAMPS or not self.seconds):
            return self
        parts = max(1, -(-self.requests // MAX_STAMPS))
        return self._replace(requests=max(1, self.requests // parts), seconds=self.seconds / parts)


class StatedLimit(NamedTuple):
    """One line that limits the requests of a scope.

    Attributes:
        name: name of the directive.
        window: limit in a period. None: the line limits the requests in flight, or is unreadable.
        concurrent: most requests in flight. None: the line limits the requests in a period.
        source: where the line is.
        advice: what to write instead of an unreadable value. "": the value can be read."""

    name: str
    window: Window | None
    concurrent: int | None
    source: Source
    advice: str = ""


class Limits(NamedTuple):
    """The limits on the requests of one scope (extension section-3.1).

    Attributes:
        key: equal in all processes that read the same group.
        windows: limits in a period. All of them hold.
        concurrent: most requests in flight. None: no limit.
        unreadable: True if a request-limit cannot be read. Requests are then as slow as the
            operator's settings allow.
        source: path of the file that states the limits.
        stated: the lines that state the limits. (): the format does not list them."""

    key: str
    windows: tuple[Window, ...]
    concurrent: int | None
    unreadable: bool = False
    source: str = ""
    stated: tuple[StatedLimit, ...] = ()

    @property
    def is_unread(self) -> bool:
        """True if the value of one of the lines cannot be read."""
        return any(line.advice for line in self.stated)

    def lines(self, slowest: float) -> Iterator[StatedLimit]:
        """Yield each limit that is obeyed, with its line if the format lists lines.

        `slowest` is the delay in seconds that replaces an unreadable request-limit (AUTX-14)."""
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
    """Return the request-limit (N/UNIT) for this rate or a lower one; "": there is none."""
    unit, length = next(
        ((unit, length) for unit, length in UNITS.items() if seconds <= length), ("day", DAY)
    )
    number = requests * length // seconds if seconds else 0
    return f"{number}/{unit}" if number else ""


def _seconds(moment: time) -> int:
    """Return the seconds since midnight."""
    return moment.hour * 3600 + moment.minute * 60 + moment.second


@lru_cache(maxsize=1024)  # most sites ask for one of a few rates
def windows_of(rates: Rates | None) -> tuple[Window, ...]:
    """Return the windows that a site asks for; (): it asks for none."""
    if rates is None:
        return ()
    delay = (Window(1, rates.crawl_delay),) if rates.crawl_delay else ()
    return (*delay, *(Window(*rate).part() for rate in rates.request_rates))


def delay_of(windows: Iterable[Window]) -> float:
    """Return the average delay in seconds that the windows require, if they applied all day."""
    return max((window.seconds / max(1, window.requests) for window in windows), default=0.0)


def earliest(
    windows: Iterable[Window], stamps: Sequence[float], in_flight: int, now: float
) -> float | None:
    """Return the earliest time for one more start, `now` or later, if nothing else starts.

    None: first a request in flight has to be settled.

    Args:
        windows: the windows that hold.
        stamps: times of the settled starts, ascending. Later times than `now` count as now, because
            the clock was set back.
        in_flight: number of requests that are not settled.
        now: the current time.

    Windows with times of the day are followed for one day. After that the result may be too
    early, so ask again when it has come."""
    windows = [window.part() for window in windows]
    if in_flight:
        if any(window.requests <= in_flight and window.holds(now) for window in windows):
            return None
        stamps = [*stamps, *[now] * in_flight]  # the earliest time that they can count for
    due, later = now, True
    while later and due < now + DAY:
        later = False
        for window in windows:
            if window.requests <= len(stamps):
                free = min(stamps[-window.requests], now) + window.seconds
                if free > due and window.holds(due):
                    due, later = min(free, window.ends(due)), True
    return due
