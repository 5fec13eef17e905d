"""May a record be used in these ways, now, and which of it?

    judged(record, terms) -> Judged     the record as it may be used, or why not
A tag that cannot be understood permits nothing, and neither does one that does not list the use."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from comity.dataset.expiring import NEVER_RECRAWLED, Recrawled
from comity.dataset.records import Record
from comity.policies.vocabulary import Vocabulary


class Terms(NamedTuple):
    """What is asked for. It can be pickled."""

    uses: tuple[str, ...]  # lower case; all of them have to be permitted
    now: datetime  # aware
    vocabulary: Vocabulary
    recrawled: Recrawled = NEVER_RECRAWLED  # which pages were fetched again, for permissions that end then


class Judged(NamedTuple):
    """One record."""

    record: Record | None  # a copy where anything is cut from it; None: it may not be used
    why: str = ""  # "" where it may; else "no-tag", "invalid-tag", "not-listed:USE", "deny:RULE", "expired:USE", "superseded:USE", ...
    because: tuple[dict[str, Any], ...] = ()  # the statements that refuse, as the tag has them


def judged(record: Record, terms: Terms) -> Judged:
    """Whether each of the uses is permitted, and the record without what is not."""
    raise NotImplementedError
