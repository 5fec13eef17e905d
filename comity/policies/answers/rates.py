"""Rates of requests and times of visits that a site asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

MAX_REQUEST_RATES = 16  # of more, the slowest count
MAX_SECONDS = 365 * 24 * 3600  # a longer delay or period is cut to this


class RequestRate(NamedTuple):
    """A rate of at most `requests` in `seconds`; where `start` and `end` (UTC) are given, at these times of the day only."""

    requests: int
    seconds: int
    start: time | None
    end: time | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitTime:
    """The time of the day (UTC) when visits are welcome: from `start` to the next `end`, which may be tomorrow's."""

    start: time
    end: time
    line: int  # 1-based
    text: str  # the line as written, printable

    @property
    def length(self) -> timedelta:
        """The length of the visits: more than nothing, at most a day."""
        minutes = 60 * (self.end.hour - self.start.hour) + self.end.minute - self.start.minute
        return timedelta(minutes=minutes % (24 * 60) or 24 * 60)

    def opens(self, now: datetime) -> datetime | None:
        """Return the time when visits are next welcome (UTC); None: now. `now`: aware."""
        now = now.astimezone(UTC)
        last = datetime.combine(now.date(), self.start, UTC)
        if last > now:
            last -= timedelta(days=1)
        return None if now < last + self.length else last + timedelta(days=1)


class Rates(NamedTuple):
    """The rates at which a site asks to be visited; None where it does not say."""

    crawl_delay: float | None = None  # seconds between requests: the longest Crawl-delay
    request_rates: tuple[RequestRate, ...] = ()  # all, the slowest first
    visit_time: VisitTime | None = None  # the shortest

    def strictest(self, other: Rates) -> Rates:
        """Return the rates that keep to both."""
        delays = [delay for delay in (self.crawl_delay, other.crawl_delay) if delay is not None]
        times = [visit for visit in (self.visit_time, other.visit_time) if visit]
        return Rates(
            max(delays, default=None),
            slowest(self.request_rates + other.request_rates),
            min(times, key=lambda visit: visit.length, default=None),
        )


def slowest(rates: Iterable[RequestRate]) -> tuple[RequestRate, ...]:
    by_pace = sorted(dict.fromkeys(rates), key=lambda rate: rate.requests / rate.seconds)
    return tuple(by_pace[:MAX_REQUEST_RATES])
