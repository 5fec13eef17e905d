"""The expiry of records: past a limit, fetched again, taken down.

fetches = Fetches(); fetches.note(record); fetches.merge(other)         first pass: when each page was fetched last
expired(record, ExpiryTerms.create(now, fetches.recrawled(), taken_down))        second pass: why the record goes"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from comity.dataset.records import Record
from comity.dataset.tag_sources import GUESSED, RawTag, TagSource
from comity.policies.syntax.path_patterns import normal_target
from comity.policies.syntax.urls import origin_of, spellings, target_of
from comity.policies.tag import TagError, Use, read_tag

EXPIRED, SUPERSEDED, UNDATED = "expired", "superseded", "undated"
_RECRAWLED = {False: "", True: SUPERSEDED, None: UNDATED}
_FETCHING = ("crawl", "follow")  # what was done to get the record, not what is done with it


def page_of(url: str) -> str:
    """The URL in the form in which pages are compared: without fragment, percent-normal."""
    try:
        return origin_of(url) + normal_target(target_of(url))
    except ValueError:
        return url


def _pages_of(url: str) -> Iterator[str]:
    """`page_of` each URL that a server may take it for."""
    try:
        origin = origin_of(url)
    except ValueError:
        yield url
        return
    for target in spellings(url):
        yield origin + normal_target(target)


class Recrawled:
    """The pages that were fetched more than once, and when last. Immutable; it can be pickled, with 16 octets a page."""

    def __init__(self, last: dict[int, int] | None = None) -> None:
        """`last`: of Fetches."""
        last = last or {}
        self._pages = array("Q", sorted(last))
        self._last = array("q", (last[page] for page in self._pages))

    def __len__(self) -> int:
        """Pages."""
        return len(self._pages)

    def supersedes(self, record: Record) -> bool | None:
        """True where there is a later record of the same page. None: nobody knows, since it has no `url` or no `fetched_at`."""
        moment, urls = _fetched(record)
        if moment is None or not urls:
            return None
        return bool(self._pages) and any(self._when(_hash(page_of(url)), moment) > moment for url in urls)

    def _when(self, page: int, default: int) -> int:
        number = bisect_left(self._pages, page)
        return self._last[number] if number < len(self._pages) and self._pages[number] == page else default


NEVER_RECRAWLED = Recrawled()


class Fetches:
    """The times at which pages were fetched last. It can be pickled; in memory it takes about 120 octets a page."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._again: set[int] = set()

    def note(self, record: Record) -> None:
        moment, urls = _fetched(record)
        if moment is not None:
            for page in {_hash(page_of(url)) for url in urls}:
                self._note(page, moment)

    def merge(self, other: Fetches) -> None:
        for page, moment in other._last.items():
            self._note(page, moment)
        self._again |= other._again

    def recrawled(self) -> Recrawled:
        """The pages that were fetched more than once."""
        return Recrawled({page: self._last[page] for page in self._again})

    def _note(self, page: int, moment: int) -> None:
        last = self._last.setdefault(page, moment)
        if last != moment:
            self._again.add(page)
            self._last[page] = max(last, moment)


def _fetched(record: Record) -> tuple[int | None, set[str]]:
    """The moment in microseconds, None where nobody knows; and the URLs: as asked for, and as answered."""
    fetched_at = record.get("fetched_at")
    urls = {url for url in (record.get("url"), record.get("final_url")) if isinstance(url, str) and url}
    try:
        moment = datetime.fromisoformat(fetched_at) if isinstance(fetched_at, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return None, urls
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds, urls


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _hash(page: str) -> int:
    """64 bits. Among a million pages two share theirs once in 30 million datasets; the older one then counts as fetched again."""
    return int.from_bytes(hashlib.blake2b(page.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def has_passed(until: datetime | None, now: datetime) -> bool:
    """Return whether a permission has ended. At that moment it has."""
    return until is not None and until <= now


def ended(use: Use, record: Record, now: datetime, recrawled: Recrawled) -> str:
    """The cause of a permission's end: EXPIRED, SUPERSEDED, or UNDATED where nobody can know; "" where it holds."""
    if has_passed(use.qualifiers.until, now):
        return EXPIRED
    if use.qualifiers.until_recrawled:
        return _RECRAWLED[recrawled.supersedes(record)]
    return ""


class ExpiryTerms(NamedTuple):
    """The terms by which records go. It can be pickled."""

    now: datetime  # aware
    recrawled: Recrawled = NEVER_RECRAWLED
    taken_down: frozenset[str] = frozenset()  # in the form of `page_of`
    tags: TagSource = GUESSED

    @classmethod
    def create(
        cls,
        now: datetime,
        recrawled: Recrawled = NEVER_RECRAWLED,
        taken_down: Iterable[str] = (),
        tags: TagSource = GUESSED,
    ) -> Self:
        """`taken_down`: URLs."""
        return cls(now, recrawled, frozenset(page for url in taken_down for page in _pages_of(url)), tags)


class Expired(NamedTuple):
    """The outcome for a record, with the cause where it goes."""

    cause: str = ""  # "": it stays; else "taken-down", "expired:USE", "superseded:USE", "no-tag" or "invalid-tag:PART"
    reasons: tuple[dict[str, Any], ...] = ()  # the statements behind the permission that has ended, as the tag has them
    tag: RawTag | None = None  # of a record that stays


def expired(record: Record, terms: ExpiryTerms) -> Expired:
    """Return whether the record goes: it is taken down, may be kept no longer, or a permission has ended and no other is left.

    What has no tag that is understood goes too: nobody knows its limits. It belongs into the side file."""
    if terms.taken_down and _is_taken_down(record, terms.taken_down):
        return Expired("taken-down")
    try:
        raw_tag = terms.tags.find(record)
        tag = read_tag(raw_tag.raw)
    except TagError as error:
        return Expired(str(error))
    first, is_usable = None, False
    for name, use in tag.uses.items():
        if not use.is_allowed or name in _FETCHING:
            continue
        cause = ended(use, record, terms.now, terms.recrawled)
        if cause in ("", UNDATED):
            is_usable = True
        elif name == "preserve":
            return Expired(f"{cause}:{name}", tag.reasons_of(use))
        elif first is None:
            first = Expired(f"{cause}:{name}", tag.reasons_of(use))
    return Expired(tag=raw_tag) if is_usable or first is None else first


def _is_taken_down(record: Record, taken_down: frozenset[str]) -> bool:
    urls = (record.get("url"), record.get("final_url"))
    return any(page in taken_down for url in urls if isinstance(url, str) for page in _pages_of(url))
