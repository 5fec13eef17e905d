"""The time for which an answer may be used, as RFC 9111 (HTTP Caching) defines for private caches.

    lifetime(headers, received_at)         the seconds from its receipt
    retry_after(headers, now)              the seconds that the server asks to wait
    refresh_headers(headers, confirming)   the headers of a stored answer after a 304

Header values come from the web, so no function here raises an error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime

SPEC = "https://www.rfc-editor.org/rfc/rfc9111.html"

Headers = Iterable[tuple[bytes, bytes]]

DAY = 24 * 3600.0  # seconds; RFC 9309 section-2.4: no cached copy is used for longer
# The statuses of a server with too many requests: RFC 6585 section-4, RFC 9110 section-15.6.4.
TOO_MANY = (429, 503)
MIN_LIFETIME = 60.0  # seconds; a policy file is not fetched more often, even if its server asks so
MAX_DIGITS = 10  # digits of a number of seconds that are read; longer numbers mean "for ever"

# section-5.2, RFC 9110 section-5.6.6
#   cache-directive = token [ "=" ( token / quoted-string ) ]
_DIRECTIVE = re.compile(rb'([!#$%&\'*+.^_`|~0-9A-Za-z-]+)(?:=(?:"((?:[^"\\]|\\.)*+)"|([^\s,"]*)))?')


def lifetime(headers: Headers, received_at: float) -> float:
    """Return the seconds for which the answer may be used, from MIN_LIFETIME to a DAY.

    It is a DAY if the headers do not say. `received_at`: seconds since the epoch. "no-store" is
    read as "no-cache", because rules that were read remain binding.
    """
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
    """Return the seconds that the server asks to wait, from 1 to a DAY; None if it does not say.

    If it states several values, the longest counts. RFC 9110 section-10.2.3.
    """
    waits = []
    for value in _values(headers, b"retry-after"):
        numbers = [
            number for word in value.split(b",") if (number := _number(word.strip())) is not None
        ]
        date = None if numbers else _date(value)
        waits += numbers if date is None else [date - now]
    return min(max(*waits, 1.0), DAY) if waits else None


def refresh_headers(headers: Headers, confirming: Headers) -> tuple[tuple[bytes, bytes], ...]:
    """Return the stored headers, with new values from the 304 (section-3.2).

    Headers that describe the body stay. The stored Date and Age are always dropped, because they
    say how old the answer was then.
    """
    body = (b"content-encoding", b"content-length", b"content-range", b"content-type")
    new = tuple((name, value) for name, value in confirming if name.lower() not in body)
    replaced = {name.lower() for name, _ in new} | {b"age", b"date"}
    return tuple((name, value) for name, value in headers if name.lower() not in replaced) + new


def _age(headers: Headers, received_at: float) -> float:
    """Return the age of the answer at its receipt, on its way and in caches (section-4.2.3)."""
    date = _one_date(_values(headers, b"date"))
    apparent = max(0.0, received_at - date) if date else 0.0
    ages = _values(headers, b"age")
    return max(apparent, _number(ages[0]) or 0.0) if ages else apparent


def _directives(headers: Headers) -> dict[str, list[bytes]]:
    """Return all values of each directive, by its name in lower case."""
    directives: dict[str, list[bytes]] = {}
    for name, quoted, token in _DIRECTIVE.findall(b", ".join(_values(headers, b"cache-control"))):
        directives.setdefault(name.decode("ascii").lower(), []).append(quoted or token)
    return directives


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [value.strip() for key, value in headers if key.lower() == name]


def _one_number(values: list[bytes]) -> float:
    """Return the number; 0 if the values differ or are invalid, so that the answer is stale.

    Section-4.2.1.
    """
    return (_number(values[0]) or 0.0) if len(set(values)) == 1 else 0.0


def _one_date(values: list[bytes]) -> float:
    return (_date(values[0]) or 0.0) if len(set(values)) == 1 else 0.0


def _number(value: bytes) -> float | None:
    # section-1.2.2:  delta-seconds = 1*DIGIT
    return float(value[:MAX_DIGITS]) if value.isdigit() else None


def _date(value: bytes) -> float | None:
    """Return the date in seconds since the epoch; None if it is invalid."""
    try:
        date = parsedate_to_datetime(value.decode("ascii"))
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
