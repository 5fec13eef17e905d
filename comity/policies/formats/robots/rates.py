"""Crawl-delay, Request-rate and Visit-time: extensions of robots.txt that no RFC defines.

Protego reads each value from a file of one line. A value that it does not understand has no effect.
Of several Crawl-delays and Visit-times, the strictest one applies. All Request-rates apply, because
they may be for different times of the day and for long and short periods.
"""

from __future__ import annotations

import re
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


# Values as people write them, for fixes. Nothing here takes part in a decision.
_NUMBER = re.compile(
    rb"([0-9]+(?:[.,][0-9]+)?)[ \t]*(ms|[smh]?|sec\w*|min\w*|hours?)\.?", re.IGNORECASE
)
_RATE = re.compile(
    rb"([0-9]+)[ \t]*(?:requests?|pages?)?[ \t]*(?:/|per|in|every)[ \t]*([0-9]*)[ \t]*"
    rb"(s|m|h)(?:ec\w*|in\w*|ours?|rs?)?",
    re.IGNORECASE,
)
_HOUR = rb"([0-9]{1,2})(?:[:.]?([0-9]{2}))?[ \t]*(am|pm)?"
_HOURS = re.compile(_HOUR + rb"[ \t]*(?:-|to|\xe2\x80\x93)[ \t]*" + _HOUR, re.IGNORECASE)
_UNITS = {b"": 1.0, b"s": 1.0, b"m": 60.0, b"h": 3600.0}


def seconds(value: bytes) -> bytes:
    """Return a Crawl-delay in seconds: b"10" for b"10 seconds". b"" means that it is not clear."""
    match = _NUMBER.fullmatch(value)
    if not match:
        return b""
    unit = match[2].lower()
    factor = 0.001 if unit == b"ms" else _UNITS[unit[:1]]
    return b"%.12g" % (float(match[1].replace(b",", b".")) * factor)


def rate(value: bytes) -> bytes:
    """Return a Request-rate in its usual form: b"10/1m" for b"10 per minute". b"": not clear."""
    match = _RATE.fullmatch(value)
    return b"%s/%s%s" % (match[1], match[2] or b"1", match[3].lower()) if match else b""


def hours(value: bytes) -> bytes:
    """Return a Visit-time in its usual form: b"0100-0500" for b"1am-5am". b"": not clear."""
    match = _HOURS.fullmatch(value)
    if not match:
        return b""
    times = []
    for hour, minute, half in (match.group(1, 2, 3), match.group(4, 5, 6)):
        number = int(hour) % 12 + 12 * (half.lower() == b"pm") if half else int(hour)
        if number > 23 or int(minute or 0) > 59:
            return b""
        times.append(b"%02d%02d" % (number, int(minute or 0)))
    return b"-".join(times)
