"""The expiry of records: the time limit has passed, or the page was fetched again or taken down.

The first pass over a dataset finds the last fetch of each page. The second pass finds the expired
records:

    fetches = Fetches()
    fetches.note(record)
    fetches.merge(other)
    judge_expiry(record, ExpiryTerms.create(now, fetches.recrawled_pages(), taken_down))"""

from __future__ import annotations

import hashlib
import mmap
import shutil
import tempfile
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self, cast
from weakref import finalize

from comity.dataset.execution.sorted_runs import SortedRuns, chunks
from comity.dataset.records import ARRIVED_AT, REQUEST, DatasetError, Record, moment_of
from comity.dataset.tags.sources import GUESSED, RawTag, TagSource
from comity.policies.registry import NO_OPT_OUTS, OptOut, OptOuts
from comity.policies.syntax.path_patterns import normal_target
from comity.policies.syntax.urls import origin_of, origin_or_empty, spellings, target_of
from comity.policies.tag import TagError, Use, read_tag

EXPIRED, SUPERSEDED, UNDATED = "expired", "superseded", "undated"
_RECRAWLED = {False: "", True: SUPERSEDED, None: UNDATED}
_FETCHING = ("crawl", "follow")  # uses that are finished when a record is fetched


def page_of(url: str) -> str:
    """Return a URL in the form for comparing pages: no fragment, normal percent-encoding.

    An invalid URL is returned unchanged."""
    try:
        return origin_of(url) + normal_target(target_of(url))
    except ValueError:
        return url


def _pages_of(url: str) -> Iterator[str]:
    """Yield `page_of(spelling)` for each spelling that a server may treat as this URL."""
    try:
        origin = origin_of(url)
    except ValueError:
        yield url
        return
    for target in spellings(url):
        yield origin + normal_target(target)


class Recrawled:
    """The pages that were fetched more than once, with the moment of the last fetch.

    The object is immutable and can be pickled. Each page takes 16 octets. If there are more than
    MAX_HELD pages, all of them are in temporary files. Processes share these files, and they are
    removed with the object that wrote them."""

    def __init__(self, last: Mapping[int, int] | Iterable[tuple[int, int]] = ()) -> None:
        """`last`: hash of the page -> moment of the last fetch, in microseconds since 1970.

        If `last` is an iterable of pairs, they must be sorted by page. They need not fit into
        memory."""
        pairs = iter(sorted(last.items())) if isinstance(last, Mapping) else iter(last)
        pages, moments = array("Q"), array("q")
        for page, moment in islice(pairs, MAX_HELD):
            pages.append(page)
            moments.append(moment)
        self._folder: Path | None = None
        self._pages: Numbers = pages
        self._last: Numbers = moments
        if (next_pair := next(pairs, None)) is not None:
            self._folder = Path(tempfile.mkdtemp(prefix="comity-recrawled-"))
            finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            self._write(chain(zip(pages, moments, strict=True), (next_pair,), pairs))
            self._map()

    def _write(self, pairs: Iterable[tuple[int, int]]) -> None:
        assert self._folder
        with (
            (self._folder / "pages").open("wb") as pages_file,
            (self._folder / "moments").open("wb") as moments_file,
        ):
            for chunk in chunks(pairs, MAX_HELD):
                array("Q", (page for page, _ in chunk)).tofile(pages_file)
                array("q", (moment for _, moment in chunk)).tofile(moments_file)

    def _map(self) -> None:
        assert self._folder
        self._pages, self._last = (
            _map_numbers(self._folder / "pages", "Q"),
            _map_numbers(self._folder / "moments", "q"),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder} if self._folder else self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        if self._folder:
            self._map()

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self._pages)

    def supersedes(self, record: Record) -> bool | None:
        """Return True if there is a later record of the page, so this record is superseded.

        None if this is unknown, because the record has no URL or no valid `fetched_at`."""
        moment, urls = _fetch_of(record)
        if moment is None or not urls:
            return None
        return bool(self._pages) and any(
            self._when(_hash(page_of(url)), moment) > moment for url in urls
        )

    def is_earlier_fetch(self, record: Record) -> bool:
        """Return True if there is a record of a later fetch of the page.

        A record in COMITY_ITEMS names the request of its page. Then that decides, and not `url`,
        which need not be the URL of the page."""
        request, arrived_at = _request_of(record)
        if arrived_at is None:
            return bool(self.supersedes(record))
        return self._when(_hash(request), arrived_at) > arrived_at

    def may_supersede(self, record: Record) -> bool:
        """Return True if a later record of the page may exist, because this record has no date.

        This is so if the page was fetched more than once. For records with a date, return False:
        `supersedes` decides."""
        moment, urls = _fetch_of(record)
        return moment is None and any(
            self._when(_hash(page_of(url)), _UNKNOWN_MOMENT) > _UNKNOWN_MOMENT for url in urls
        )

    def _when(self, page: int, default: int) -> int:
        number = bisect_left(self._pages, page)
        return (
            self._last[number]
            if number < len(self._pages) and self._pages[number] == page
            else default
        )


# The maximum number of pages, or of moments of fetches, that a process keeps in memory. Above it,
# temporary files are used.
MAX_HELD = 2**18

Numbers = Sequence[int]


def _map_numbers(path: Path, code: str) -> Numbers:
    """Map the numbers in a file into memory. `code`: their type code, as in `array`: "Q" or "q".

    DatasetError: the file does not exist."""
    try:
        with path.open("rb") as file:
            numbers: Any = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast(
                code
            )  # type: ignore[call-overload]
    except FileNotFoundError:
        raise DatasetError(
            f"{path}, the list of pages that were fetched again, does not exist:"
            " set TMPDIR to a folder that all machines share"
        ) from None
    return cast(Numbers, numbers)


class _Unknown(Recrawled):
    """A Recrawled if the pages that were fetched again are unknown: `supersedes` returns None."""

    def supersedes(self, record: Record) -> None:
        return None


NEVER_RECRAWLED = Recrawled()
UNKNOWN_RECRAWLED = _Unknown()


class Fetches:
    """The moment of the last fetch of each page. It can be pickled, with 16 octets a page.

    A process keeps about MAX_HELD moments in memory, with about 120 octets each. When there are
    more, it moves them to a sorted temporary file."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._refetched: set[int] = set()
        # Page -> twice the moment of its last fetch, plus 1 if it was fetched more than once.
        self._runs: SortedRuns[int, int] = SortedRuns()

    def note(self, record: Record) -> None:
        """Note the fetch of a record."""
        moment, urls = _fetch_of(record)
        for page in {_hash(page_of(url)) for url in urls}:
            self._note(page, _UNKNOWN_MOMENT if moment is None else moment)
        request, arrived_at = _request_of(record)
        if arrived_at is not None:
            self._note(_hash(request), arrived_at)

    def merge(self, other: Fetches) -> None:
        for page, moment, is_again in other._all() if other._runs else other._in_memory():
            if is_again:
                self._refetched.add(page)
            self._note(page, moment)

    def recrawled_pages(self) -> Recrawled:
        """Return the pages that were fetched more than once."""
        return Recrawled((page, moment) for page, moment, is_again in self._all() if is_again)

    def _note(self, page: int, moment: int) -> None:
        last = self._last.setdefault(page, moment)
        if last != moment:
            self._refetched.add(page)
            self._last[page] = max(last, moment)
        elif len(self._last) > MAX_HELD:
            self._spill()

    def _spill(self) -> None:
        self._runs.add(
            sorted(
                (page, 2 * moment + (page in self._refetched))
                for page, moment in self._last.items()
            )
        )
        self._last, self._refetched = {}, set()

    def _in_memory(self) -> Iterator[tuple[int, int, bool]]:
        """Return the entries in memory as `_all` yields them, in no particular order."""
        return ((page, moment, page in self._refetched) for page, moment in self._last.items())

    def _all(self) -> Iterator[tuple[int, int, bool]]:
        """Yield each page, the moment of its last fetch, and True if it was fetched again.

        The pages are sorted, by their hashes."""
        if not self._runs:
            yield from sorted(self._in_memory())
            return
        self._spill()
        rows = iter(self._runs)
        page, number = next(rows)
        for next_page, next_number in rows:
            if next_page != page:
                yield page, number // 2, bool(number % 2)
                page, number = next_page, next_number
            else:  # equal moments are the same fetch, different moments are two fetches
                number = max(number, next_number) | (
                    number // 2 != next_number // 2 or number % 2 or next_number % 2
                )
        yield page, number // 2, bool(number % 2)

    def __getstate__(self) -> tuple[array[int], array[int]]:
        pages, numbers = array("Q"), array("q")
        for page, moment, is_again in self._all():
            pages.append(page)
            numbers.append(2 * moment + is_again)
        return pages, numbers

    def __setstate__(self, state: tuple[array[int], array[int]]) -> None:
        self.__dict__ = Fetches().__dict__
        for page, number in zip(*state, strict=True):
            if number % 2:
                self._refetched.add(page)
            self._note(page, number // 2)


def _fetch_of(record: Record) -> tuple[int | None, set[str]]:
    """Return the moment of a record's fetch, in microseconds since 1970, and the URLs of its page.

    The moment is None if it is unknown. The URLs are `url` and `final_url`, without duplicates."""
    urls = {
        url for url in (record.get("url"), record.get("final_url")) if isinstance(url, str) and url
    }
    return _microseconds(record.get("fetched_at")), urls


def _request_of(record: Record) -> tuple[str, int | None]:
    """Return the request of a record's page, and the moment of its answer, as `_fetch_of` does.

    Only items in COMITY_ITEMS have both. Otherwise the moment is None."""
    request = record.get(REQUEST)
    if not isinstance(request, str) or not request:
        return "", None
    return f"{REQUEST} {request}", _microseconds(record.get(ARRIVED_AT))


def _microseconds(value: Any) -> int | None:
    """Return a moment in microseconds since 1970. None if the value is no moment."""
    moment = moment_of(value)
    if moment is None:
        return None
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_UNKNOWN_MOMENT = -(2**61)  # earlier than all others


def _hash(page: str) -> int:
    """Return 64 bits of a hash of a page.

    In about one of 30 million datasets of a million pages, two pages have equal bits. They count
    as one page that was fetched twice, so the older record is superseded."""
    return int.from_bytes(
        hashlib.blake2b(page.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


def has_passed(until: datetime | None, now: datetime) -> bool:
    """Return True if a permission has ended. It ends at the moment `until`, not after it."""
    return until is not None and until <= now


def cause_of_end(use: Use, record: Record, now: datetime, recrawled: Recrawled) -> str:
    """Return the cause of a permission's end, or "" if it still holds.

    EXPIRED: its time limit has passed. SUPERSEDED: it lasts until the page is fetched again, and
    the page was. UNDATED: it lasts until the page is fetched again, but this is unknown, because
    the record has no URL or date, or because `recrawled` is unknown."""
    if has_passed(use.qualifiers.until, now):
        return EXPIRED
    if use.qualifiers.until_recrawled:
        return _RECRAWLED[recrawled.supersedes(record)]
    return ""


class ExpiryTerms(NamedTuple):
    """The terms of an expiry. It can be pickled."""

    now: datetime
    """The moment of the expiry, aware."""
    recrawled: Recrawled = NEVER_RECRAWLED
    """The pages that were fetched again."""
    taken_down: frozenset[str] = frozenset()
    """Pages to take down, in the form of `page_of`."""
    tags: TagSource = GUESSED
    """The places of tags in records."""
    opt_outs: OptOuts = NO_OPT_OUTS
    """Registries. Records that an entry refuses for every use are removed."""

    @classmethod
    def create(
        cls,
        now: datetime,
        recrawled: Recrawled = NEVER_RECRAWLED,
        taken_down: Iterable[str] = (),
        tags: TagSource = GUESSED,
        opt_outs: OptOuts = NO_OPT_OUTS,
    ) -> Self:
        """Return the terms of an expiry. `taken_down`: URLs of pages to take down."""
        return cls(
            now,
            recrawled,
            frozenset(page for url in taken_down for page in _pages_of(url)),
            tags,
            opt_outs,
        )


class Expired(NamedTuple):
    """The outcome for a record: it stays in the dataset, or is removed for a cause."""

    cause: str = ""
    """"taken-down", "opt-out", "expired:USE", "superseded:USE", "no-tag" or "invalid-tag:PART".
    Empty if the record stays."""
    reasons: tuple[dict[str, Any], ...] = ()
    """The statements behind the permission that has ended, as the tag quotes them."""
    tag: RawTag | None = None
    """The tag of a record that stays."""


def judge_expiry(record: Record, terms: ExpiryTerms) -> Expired:
    """Decide whether a record must be removed from its dataset, and for which cause.

    A record must be removed if it is taken down or opted out, if the permission to keep it
    (`preserve`) has ended, or if a permission has ended and no other remains. The permissions to
    crawl and follow do not count. A permission that ends UNDATED counts as one that remains. A
    record without a valid tag must be removed too, because its limits are unknown."""
    if terms.taken_down and _is_taken_down(record, terms.taken_down):
        return Expired("taken-down")
    if terms.opt_outs and _is_opted_out(record, terms.opt_outs):
        return Expired("opt-out")
    try:
        raw_tag = terms.tags.find(record)
        tag = read_tag(raw_tag.raw)
    except TagError as error:
        return Expired(str(error))
    first, is_usable = None, False
    for name, use in tag.uses.items():
        if not use.is_allowed or name in _FETCHING:
            continue
        cause = cause_of_end(use, record, terms.now, terms.recrawled)
        if cause in ("", UNDATED):
            is_usable = True
        elif name == "preserve":
            return Expired(f"{cause}:{name}", tag.reasons_of(use))
        elif first is None:
            first = Expired(f"{cause}:{name}", tag.reasons_of(use))
    return Expired(tag=raw_tag) if is_usable or first is None else first


def _is_taken_down(record: Record, taken_down: frozenset[str]) -> bool:
    urls = (record.get("url"), record.get("final_url"))
    return any(
        page in taken_down for url in urls if isinstance(url, str) for page in _pages_of(url)
    )


def _is_opted_out(record: Record, opt_outs: OptOuts) -> bool:
    """Return True if an entry about the record's URLs or its `sha256` refuses every use."""
    found: list[OptOut] = []
    for url in (record.get("url"), record.get("final_url")):
        if isinstance(url, str) and (origin := origin_or_empty(url)):
            found += opt_outs.of_site(origin)
            found += opt_outs.of_targets(origin, spellings(url))
    sha256 = record.get("sha256")
    found += opt_outs.of_work(sha256) if isinstance(sha256, str) else ()
    return any(not entry.uses for entry in found)
