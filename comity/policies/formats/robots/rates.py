"""Crawl-delay, Request-rate and Visit-time: extensions of robots.txt that no RFC defines.

Protego reads each value from a file of one line. A value that it does not understand has no effect.
Of several Crawl-delays and Visit-times, the strictest one applies. All Request-rates apply, because
they may be for different times of the day and for long and short periods.
"""

from __future__ import annotations

from collections.abc import Iterable

from protego import Protego

from comity.policies.answers.rates import MAX_SECONDS, RequestRate, VisitTime, slowest

MAX_VALUE = 100  # maximum octets of a value. Longer values are not read


def _read(record: str, values: Iterable[bytes]) -> list[Protego]:
    texts = {value.decode("utf-8", "replace") for value in values if len(value) <= MAX_VALUE}
    return [
        Protego.parse(f"User-agent: *\n{record}: {text}\n")
        for text in sorted(texts)
        if text.isprintable()
    ]


def crawl_delay(values: Iterable[bytes]) -> float | None:
    """Return the longest Crawl-delay in seconds, at most MAX_SECONDS.

    None means that no value can be read.
    """
    delays = [
        delay
        for protego in _read("Crawl-delay", values)
        if (delay := protego.crawl_delay("*")) is not None
    ]
    return min(max(delays), MAX_SECONDS) if delays else None


def request_rates(values: Iterable[bytes]) -> tuple[RequestRate, ...]:
    """Return the Request-rates, the slowest first, and at most MAX_REQUEST_RATES of them."""
    rates = [
        RequestRate(*rate)
        for protego in _read("Request-rate", values)
        if (rate := protego.request_rate("*"))
    ]
    return slowest(rate._replace(seconds=min(rate.seconds, MAX_SECONDS)) for rate in rates)


def visit_time(lines: Iterable[tuple[int, str, bytes]]) -> VisitTime | None:
    """Return the Visit-time with the fewest hours, or None if no value can be read.

    Each of the `lines` is a line number, the line as text, and the value of the line.
    """
    times = [
        VisitTime(start=visit.start_time, end=visit.end_time, line=number, text=text)
        for number, text, value in lines
        for protego in _read("Visit-time", [value])
        if (visit := protego.visit_time("*"))
    ]
    return min(times, key=lambda visit: visit.length, default=None)
