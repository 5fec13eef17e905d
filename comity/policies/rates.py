"""Crawl-delay, Request-rate and Visit-time: extensions of robots.txt that no RFC defines.

Protego reads the values, from a file of one line each. Values that it doesn't understand ask for nothing. Of several
Crawl-delays and Visit-times the one that asks for the most restraint holds; of several Request-rates, which may be for different
times of the day and for long and short periods, each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from protego import Protego

MAX_VALUE = 100  # octets of a value; none that is meant is longer
MAX_SECONDS = 365 * 24 * 3600  # a longer delay or period is cut to this
MAX_REQUEST_RATES = 16  # of more, the slowest count


class RequestRate(NamedTuple):
    """At most `requests` in `seconds`; where `start` and `end` (UTC) are given, at these times of the day only."""

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
        """More than nothing, at most a day."""
        minutes = 60 * (self.end.hour - self.start.hour) + self.end.minute - self.start.minute
        return timedelta(minutes=minutes % (24 * 60) or 24 * 60)

    def opens(self, now: datetime) -> datetime | None:
        """When visits are next welcome (UTC); None: now. `now`: aware."""
        now = now.astimezone(UTC)
        last = datetime.combine(now.date(), self.start, UTC)
        if last > now:
            last -= timedelta(days=1)
        return None if now < last + self.length else last + timedelta(days=1)


class Rates(NamedTuple):
    """How often a site asks to be visited; None where it does not say."""

    crawl_delay: float | None = None  # seconds between requests: the longest Crawl-delay
    request_rates: tuple[RequestRate, ...] = ()  # all, the slowest first
    visit_time: VisitTime | None = None  # the shortest

    def strictest(self, other: Rates) -> Rates:
        """What keeps to both."""
        delays = [delay for delay in (self.crawl_delay, other.crawl_delay) if delay is not None]
        times = [visit for visit in (self.visit_time, other.visit_time) if visit]
        return Rates(
            max(delays, default=None),
            _slowest(self.request_rates + other.request_rates),
            min(times, key=lambda visit: visit.length, default=None),
        )


def _read(record: str, values: Iterable[bytes]) -> list[Protego]:
    texts = {value.decode("utf-8", "replace") for value in values if len(value) <= MAX_VALUE}
    return [Protego.parse(f"User-agent: *\n{record}: {text}\n") for text in sorted(texts) if text.isprintable()]


def crawl_delay(values: Iterable[bytes]) -> float | None:
    """The longest Crawl-delay in seconds; None where no value is one."""
    delays = [delay for protego in _read("Crawl-delay", values) if (delay := protego.crawl_delay("*")) is not None]
    return min(max(delays), MAX_SECONDS) if delays else None


def request_rates(values: Iterable[bytes]) -> tuple[RequestRate, ...]:
    """Every Request-rate, the slowest first; at most MAX_REQUEST_RATES."""
    rates = [RequestRate(*rate) for protego in _read("Request-rate", values) if (rate := protego.request_rate("*"))]
    return _slowest(rate._replace(seconds=min(rate.seconds, MAX_SECONDS)) for rate in rates)


def _slowest(rates: Iterable[RequestRate]) -> tuple[RequestRate, ...]:
    by_pace = sorted(dict.fromkeys(rates), key=lambda rate: rate.requests / rate.seconds)
    return tuple(by_pace[:MAX_REQUEST_RATES])


def visit_time(lines: Iterable[tuple[int, str, bytes]]) -> VisitTime | None:
    """The shortest Visit-time; None where no value is one. `lines`: line number, the line, the value."""
    times = [
        VisitTime(start=visit.start_time, end=visit.end_time, line=number, text=text)
        for number, text, value in lines
        for protego in _read("Visit-time", [value])
        if (visit := protego.visit_time("*"))
    ]
    return min(times, key=lambda visit: visit.length, default=None)
