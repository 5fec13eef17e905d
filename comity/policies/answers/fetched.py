"""The outcome of fetching a policy file, and its meaning (RFC 9309 section-2.3.1)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime

from comity.policies.answers.markup import begins_as_page, is_marked_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One policy file as it was fetched, or the error.

    Attributes:
        status: HTTP status of the last hop. 0: there was no HTTP response, see `error`.
        headers: header fields of the last hop.
        body: the whole file, with its content coding decoded.
        url: URL of the last hop. "": the URL that was requested.
        fetched_at: when the server last confirmed this copy, an aware datetime. None: unknown.
        error: why the fetch failed. "": it did not fail.
        was_asked: False if the file was not requested, so that there is no response.
        oversized: True if the fetcher cut the body at its limit.
        unreachable_since: when the server began to fail, an aware datetime. It is set only on a
            last good copy that replaces the file of the failing server."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    url: str = ""
    fetched_at: datetime | None = None
    error: str = ""
    was_asked: bool = True
    oversized: bool = False
    unreachable_since: datetime | None = None

    def failed(self, error: str) -> Fetched:
        """Return a copy of this outcome that says that the fetch failed with `error`."""
        return replace(self, error=error)

    def header(self, name: bytes) -> bytes:
        """Return the value of the first field with this name (in any case), or b""."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), b"")


# Octets at the beginning of a body in which `is_page` looks for records.
MAX_LOOKED = 512 * 1024
# Seconds for which a copy replaces an unreachable file, counted from its last confirmation
# (RFC 9309 section-2.3.1.4).
STAND_IN = 30 * 86_400.0


class Availability(enum.Enum):
    """The meaning of a fetch: is there a policy file?"""

    PRESENT = "present"
    """There is a body to read."""
    ABSENT = "absent"
    """The server says that there is no file: nothing is stated."""
    UNREACHABLE = "unreachable"
    """The content of the file is unknown: complete disallow."""


def is_page(fetched: Fetched) -> bool:
    """Return True if the server sent a page in place of a policy file, as for an unknown path.

    The content decides, not the media type: a page is markup without robots.txt records (RFC-10).
    """
    return begins_as_page(fetched.body) and not is_marked_up(fetched.body[:MAX_LOOKED])


def availability(fetched: Fetched) -> Availability:
    """Return the meaning of a fetch, by RFC 9309 section-2.3.1.1 to 2.3.1.4.

    A redirect status is what remains after too many hops, so it counts as unavailable. 429 asks
    for fewer requests, so it counts as unreachable. 206 is a part of a file, so it counts as
    unreachable too."""
    if fetched.error or fetched.status == 206:
        return Availability.UNREACHABLE
    match fetched.status // 100:
        case 2:
            return Availability.ABSENT if is_page(fetched) else Availability.PRESENT
        case 3:
            return Availability.ABSENT
        case 4 if fetched.status != 429:
            return Availability.ABSENT
        case _:
            return Availability.UNREACHABLE


def stands_in_until(copy: Fetched | None) -> float:
    """Return the time until which the last copy may replace an unreachable file.

    The time is in seconds since the epoch. It is 0 if the copy may not replace the file: only a
    file that existed can, because an earlier absence does not permit anything on a server that
    fails now."""
    if copy is None or copy.fetched_at is None or availability(copy) is not Availability.PRESENT:
        return 0.0
    return copy.fetched_at.timestamp() + STAND_IN
