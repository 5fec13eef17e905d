"""The outcome of fetching a policy file, and whether it means that there is one (RFC 9309 section-2.3.1)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime

from comity.policies.answers.markup import begins_as_page, is_marked_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One policy file as it was fetched, or why it was not."""

    status: int  # HTTP status of the last hop; 0: no HTTP answer, see `error`
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""  # content decoded, transfer complete
    url: str = ""  # of the last hop; "": where it was asked for
    fetched_at: datetime | None = None  # aware; when the copy was last confirmed by the server
    error: str = ""  # why it could not be had; "" where it was
    was_asked: bool = True  # False: there is no answer, as the server was not asked for the file
    oversized: bool = False  # the body was cut at the fetcher's limit
    unreachable_since: datetime | None = (
        None  # set on a last good copy that stands in for a failing server
    )

    def failed(self, error: str) -> Fetched:
        """Return it as a file that could not be fetched."""
        return replace(self, error=error)

    def header(self, name: bytes) -> bytes:
        """The first field of that name, or b""."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), b"")


MAX_LOOKED = 512 * 1024  # octets of a body in which records are looked for
STAND_IN = (
    30 * 86_400.0
)  # seconds since it was last confirmed that a copy stands in for an unreachable file; section-2.3.1.4


class Availability(enum.Enum):
    PRESENT = "present"  # there is a body to read
    ABSENT = "absent"  # the server says that there is none: nothing is stated
    UNREACHABLE = "unreachable"  # nobody knows what it says: complete disallow


def is_page(fetched: Fetched) -> bool:
    """Return True if a page was served in place of a policy file, as for an unknown path (RFC-10).

    The content decides, not the label: a page is markup without the records of a robots.txt."""
    return begins_as_page(fetched.body) and not is_marked_up(fetched.body[:MAX_LOOKED])


def availability(fetched: Fetched) -> Availability:
    """Return what the outcome of a fetch means, by RFC 9309 section-2.3.1.1 to 2.3.1.4.

    A redirect status is what is left after the hops that are followed: too many, so unavailable. 429 asks for less, so it
    counts as unreachable. A part of a file (206) is not the file."""
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
    """Seconds since the epoch until which the last answer stands in for a file that cannot be had; 0 where it never does.

    Only a file that was there stands in: that there was none is no permission for a server that now fails."""
    if copy is None or copy.fetched_at is None or availability(copy) is not Availability.PRESENT:
        return 0.0
    return copy.fetched_at.timestamp() + STAND_IN
