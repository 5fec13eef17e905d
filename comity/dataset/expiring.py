"""Which records have to go: past a limit, fetched again, taken down.

    fetches = Fetches(); fetches.note(record); fetches.merge(other)      first pass: when each page was fetched last
    expired(record, Limits(now, fetches.recrawled(), taken_down))        second pass: why the record goes"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from comity.dataset.records import Record


class Recrawled:
    """Which pages were fetched more than once, and when last. Immutable; it can be pickled, 16 bytes a page."""

    def supersedes(self, record: Record) -> bool | None:
        """Whether there is a later record of the same page. None: nobody knows, it has no `url` or no `fetched_at`."""
        raise NotImplementedError


NEVER_RECRAWLED = Recrawled()


class Fetches:
    """When each page was fetched last. It can be pickled; about 120 bytes a page."""

    def note(self, record: Record) -> None:
        raise NotImplementedError

    def merge(self, other: Fetches) -> None:
        raise NotImplementedError

    def recrawled(self) -> Recrawled:
        """Those that were fetched more than once."""
        raise NotImplementedError


class Limits(NamedTuple):
    """By what records go. It can be pickled."""

    now: datetime  # aware
    recrawled: Recrawled = NEVER_RECRAWLED
    taken_down: frozenset[str] = frozenset()  # URLs


class Expired(NamedTuple):
    """Why a record goes."""

    why: str = ""  # "": it stays; else "taken-down", "expired:USE", "superseded:USE", "no-tag", "invalid-tag"
    because: tuple[dict[str, Any], ...] = ()  # the statements that set the limit, as the tag has them


def expired(record: Record, limits: Limits) -> Expired:
    """Why the record goes. What has no tag that can be understood goes too: into the side file, since nothing permits to keep it."""
    raise NotImplementedError
