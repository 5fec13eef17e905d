"""Request rates and visit times that a site asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

# Request rates of one site that count. If there are more, the slowest count.
MAX_REQUEST_RATES = 16
# Longest delay or period in seconds. Longer ones are cut to this.
MAX_SECONDS = 365 * 24 * 3600


class RequestRate(NamedTuple):
    """At most `requests` in `seconds`.

    Attributes:
        requests: number of requests.
        seconds: length of the period.
        start: time of the day (UTC) from which the rate holds. None: it holds all day.
        end: time of the day (UTC) until which the rate holds. None: it holds all day."""

    requests: int
    seconds: int
    start: time | None
    end: time | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitTime:
    """The time of the day when visits are welcome: from `start` to the next `end`.

    Attributes:
        start: UTC.
        end: UTC. It is on the next day if it is not after `start`.
        line: 1-based line number.
        text: the line as written, printable."""

    start: time
    end: time
    line: int
    text: str

    @property
    def length(self) -> timedelta:
        """Length of the visit: more than zero, at most a day."""
        minutes = 60 * (self.end.hour - self.start.hour) + self.end.minute - self.start.minute
        return timedelta(minutes=minutes % (24 * 60) or 24 * 60)

    def opens(self, now: datetime) -> datetime | None:
        """Return the time (UTC) when visits are next welcome; None: now. `now` is aware."""
        now = now.astimezone(UTC)
        last = datetime.combine(now.date(), self.start, UTC)
        if last > now:
            last -= timedelta(days=1)
        return None if now < last + self.length else last + timedelta(days=1)


class Rates(NamedTuple):
    """The rates at which a site asks to be visited.

    Attributes:
        crawl_delay: seconds between requests, the longest Crawl-delay. None: not given.
        request_rates: all request rates, the slowest first.
        visit_time: the shortest visit time. None: not given."""

    crawl_delay: float | None = None
    request_rates: tuple[RequestRate, ...] = ()
    visit_time: VisitTime | None = None

    def strictest(self, other: Rates) -> Rates:
        """Return the rates that satisfy both."""
        delays = [delay for delay in (self.crawl_delay, other.crawl_delay) if delay is not None]
        times = [visit for visit in (self.visit_time, other.visit_time) if visit]
        return Rates(
            max(delays, default=None),
            slowest(self.request_rates + other.request_rates),
            min(times, key=lambda visit: visit.length, default=None),
        )


def slowest(rates: Iterable[RequestRate]) -> tuple[RequestRate, ...]:
    """Return the distinct rates, the slowest first, at most MAX_REQUEST_RATES."""
    by_pace = sorted(dict.fromkeys(rates), key=lambda rate: rate.requests / rate.seconds)
    return tuple(by_pace[:MAX_REQUEST_RATES])
