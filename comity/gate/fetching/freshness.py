"""The time for which an answer may be used, by RFC 9111 (HTTP Caching), as a private cache reads it.

    lifetime(headers, received_at)    seconds from its receipt
    retry_after(headers, now)         seconds until the server wants to be asked again
    refreshed(headers, confirming)    the headers of a stored answer after a 304

Header values come from the web: nothing here raises."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime

SPEC = "https://www.rfc-editor.org/rfc/rfc9111.html"

Headers = Iterable[tuple[bytes, bytes]]

DAY = 24 * 3600.0  # seconds; RFC 9309 section-2.4: no cached copy is used for longer
TOO_MANY = (
    429,
    503,
)  # statuses of a server that is asked too often; RFC 6585 section-4, RFC 9110 section-15.6.4
MIN_LIFETIME = 60.0  # seconds; whatever a server says, a policy file is not asked for more often
MAX_DIGITS = 10  # of a number of seconds; more are as good as for ever

# section-5.2, RFC 9110 section-5.6.6
#   cache-directive = token [ "=" ( token / quoted-string ) ]
_DIRECTIVE = re.compile(rb'([!#$%&\'*+.^_`|~0-9A-Za-z-]+)(?:=(?:"((?:[^"\\]|\\.)*+)"|([^\s,"]*)))?')


def lifetime(headers: Headers, received_at: float) -> float:
    """Seconds for which the answer may be used, from MIN_LIFETIME to a DAY; a DAY where nothing is stated.

    `received_at`: seconds since the epoch. "no-store" is read as "no-cache": rules that were heard go on binding."""
    headers = tuple(headers)
    directives = _directives(headers)
    if "no-cache" in directives or "no-store" in directives:
        lifetime_stated = 0.0
    elif "max-age" in directives:
        lifetime_stated = _one_number(directives["max-age"])
    elif expires := _values(headers, b"expires"):
        lifetime_stated = _one_date(expires) - (_one_date(_values(headers, b"date")) or received_at)
    else:
        return DAY
    return min(max(lifetime_stated - _age(headers, received_at), MIN_LIFETIME), DAY)


def retry_after(headers: Headers, now: float) -> float | None:
    """Seconds until the server wants to be asked again, from 1 to a DAY: the most that it says. None where it does not say (RFC
    9110 section-10.2.3)."""
    waits = []
    for value in _values(headers, b"retry-after"):
        numbers = [
            number for word in value.split(b",") if (number := _number(word.strip())) is not None
        ]
        date = None if numbers else _date(value)
        waits += numbers if date is None else [date - now]
    return min(max(*waits, 1.0), DAY) if waits else None


def refreshed(headers: Headers, confirming: Headers) -> tuple[tuple[bytes, bytes], ...]:
    """The stored headers with those of the 304 in their place (section-3.2).

    What describes the body stays. The stored Date and Age tell how old the answer was then, so they go in any case."""
    body = (b"content-encoding", b"content-length", b"content-range", b"content-type")
    new = tuple((name, value) for name, value in confirming if name.lower() not in body)
    replaced = {name.lower() for name, _ in new} | {b"age", b"date"}
    return tuple((name, value) for name, value in headers if name.lower() not in replaced) + new


def _age(headers: Headers, received_at: float) -> float:
    """Seconds that the answer was under way or in caches when it came (section-4.2.3)."""
    date = _one_date(_values(headers, b"date"))
    apparent = max(0.0, received_at - date) if date else 0.0
    ages = _values(headers, b"age")
    return max(apparent, _number(ages[0]) or 0.0) if ages else apparent


def _directives(headers: Headers) -> dict[str, list[bytes]]:
    """Name in lower case -> every value that is given for it."""
    directives: dict[str, list[bytes]] = {}
    for name, quoted, token in _DIRECTIVE.findall(b", ".join(_values(headers, b"cache-control"))):
        directives.setdefault(name.decode("ascii").lower(), []).append(quoted or token)
    return directives


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [value.strip() for key, value in headers if key.lower() == name]


def _one_number(values: list[bytes]) -> float:
    """0, so that the answer is stale, where the values differ or are no number (section-4.2.1)."""
    return (_number(values[0]) or 0.0) if len(set(values)) == 1 else 0.0


def _one_date(values: list[bytes]) -> float:
    return (_date(values[0]) or 0.0) if len(set(values)) == 1 else 0.0


def _number(value: bytes) -> float | None:
    # section-1.2.2:  delta-seconds = 1*DIGIT
    return float(value[:MAX_DIGITS]) if value.isdigit() else None


def _date(value: bytes) -> float | None:
    """Seconds since the epoch; None for what is no date."""
    try:
        date = parsedate_to_datetime(value.decode("ascii"))
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
