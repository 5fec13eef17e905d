"""The policies of origins at moments, from captures (docs/policy-captures.md).

    captures = PolicyCaptures.open(sources, agent=agent, index=path)
    captures.at(origin, moment)     the site's policies at that moment, and the copies they are from
    captures.today(origin)          the site's latest policies

A file without a copy counts as a file that could not be fetched, as in a crawl."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from comity.bounded import BoundedSize
from comity.dataset.captures.index import (
    DAMAGED,
    EPOCH,
    MAX_HOPS,
    CaptureRow,
    Index,
    IndexReader,
    UnreadablePlace,
    microseconds,
)
from comity.dataset.captures.sources import CaptureSource
from comity.policies import Agent, PolicyError, Site
from comity.policies.answers.fetched import (
    STAND_IN,
    Availability,
    Fetched,
    availability,
    stands_in_until,
)
from comity.policies.formats import WELL_KNOWN, accepted
from comity.policies.formats.file import MAX_REFERENCES
from comity.policies.syntax.printable import printable

MAX_AGE = timedelta(seconds=STAND_IN)  # a copy that is older at a moment does not count then
MAX_SITES = 2000  # the maximum number of compiled sites in memory
# The maximum octets of all policy files of the sites in memory. A compiled site takes up to three
# times as much as its files.
MAX_SITE_BYTES = 32 * 2**20
MAX_SPANS = 8  # the maximum number of spans of time that are kept for an origin
SECOND = 10**6  # microseconds; WARC records are dated to the second
NO_COPY = Fetched(status=0, error="there is no copy of it", was_asked=False)
INDEX = "captures.sqlite"


class Copy(NamedTuple):
    """The copy of a policy file that counts at a moment."""

    url: str
    """The URL that was requested."""
    fetched_at: datetime | None
    """None if there is no copy: the file then counts as one that could not be fetched."""
    sha256: str | None
    """SHA-256 of the text in hexadecimal digits. None if there is no text."""
    status: int
    """The HTTP status. 0 if there is no copy, or its answer is not HTTP."""
    source: str
    """The name of the file that contains the copy."""
    offset: int
    """The position of the copy in that file, in octets. 0 if the file is the copy itself."""


@dataclass(frozen=True)
class SiteAtMoment:
    """The policies of an origin at a moment."""

    site: Site
    """The site with these policies."""
    copies: tuple[Copy, ...]
    """One copy for each of the site's files."""

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """The URLs of the files without a copy."""
        return tuple(copy.url for copy in self.copies if copy.fetched_at is None)


_File = tuple[
    Fetched, CaptureRow | None
]  # the answer that counts, and the capture that contains it
FOREVER = 2**62  # microseconds


class _Span:
    """The moments from `start` until before `end`, in microseconds, with the same copies."""

    __slots__ = ("captured", "end", "key", "start")

    def __init__(self) -> None:
        self.start, self.end = -FOREVER, FOREVER
        self.captured: SiteAtMoment | None = None
        # For each file of the site: its capture, and the parts of the answer that differ over time.
        self.key: tuple[object, ...] = ()

    def narrow(self, start: int, end: int) -> None:
        """Remove from the span the moments before `start`, the moment `end`, and all after it."""
        self.start, self.end = max(self.start, start), min(self.end, end)


class PolicyCaptures:
    """Captures of policy files, read as one agent.

    An open object can be pickled: each process opens the index for itself."""

    def __init__(
        self,
        index: Path,
        agent: Agent,
        *,
        max_age: timedelta = MAX_AGE,
        now: datetime | None = None,
    ) -> None:
        """Read an index that `open` has written.

        `max_age`: a copy that is older at a moment does not count then. `now`: the moment for
        `today`, aware. None: the moment of this call."""
        self.index = index
        self.agent = agent
        self.max_age = max_age
        self.now = now or datetime.now(UTC)
        self._reader: IndexReader | None = None
        self._process = 0  # id of the process that opened the reader
        self._spans: BoundedSize[str, tuple[_Span, ...]] = BoundedSize(
            MAX_SITES,
            MAX_SITE_BYTES,
            lambda spans: sum(_size(span.captured) for span in spans if span.captured),
        )
        self._bodies: BoundedSize[int, bytes] = BoundedSize(MAX_SITES, MAX_SITE_BYTES, len)
        self._folder = ExitStack()  # removes the folder of a temporary index

    @classmethod
    def open(
        cls,
        sources: Iterable[CaptureSource],
        *,
        agent: Agent,
        index: Path | None = None,
        max_age: timedelta = MAX_AGE,
        now: datetime | None = None,
        progress: Callable[[int], object] = lambda _: None,
    ) -> Self:
        """Return the captures of these sources.

        `index`: a file to keep, so that the next run reads only the captures that are new in the
        sources. None: a temporary file, which `close` removes. `progress`: called with the amount
        read since its last call, in the unit of the sources' sizes. `max_age`, `now`: as in
        `__init__`.

        PolicyError, with the remedy: a source cannot be read at all."""
        with ExitStack() as stack:
            if index is None:
                index = (
                    Path(stack.enter_context(TemporaryDirectory(prefix="comity-captures-"))) / INDEX
                )
            with closing(Index(index)) as writer:
                try:
                    writer.take(sources, progress)
                except OSError as error:
                    message = (
                        f"{error.filename} cannot be read: {error.strerror}"
                        if error.filename
                        else str(error)
                    )
                    raise PolicyError(f"--policies: {message}") from None
            captures = cls(index, agent, max_age=max_age, now=now)
            captures._folder = stack.pop_all()
        return captures

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_copy, (type(self), self.index, self.agent, self.max_age, self.now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index, and remove it if it is temporary."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._folder.close()

    @property
    def _index(self) -> IndexReader:
        # SQLite: a connection must not be carried across a fork.
        if self._reader is None or self._process != os.getpid():
            self._reader, self._process = IndexReader(self.index), os.getpid()
        return self._reader

    @property
    def unreadable(self) -> tuple[int, list[UnreadablePlace]]:
        """The number of unreadable places in all sources, and the first ones of each source."""
        return self._index.unreadable

    def today(self, origin: str) -> SiteAtMoment | None:
        """Return the latest policies of an origin. None if there are no captures of it."""
        return self.at(origin, self.now)

    def at(self, origin: str, moment: datetime) -> SiteAtMoment | None:
        """Return the policies of an origin at an aware moment, by the last copies before it.

        None if there are no captures of the origin."""
        until = microseconds(moment)
        spans = self._spans.get(origin) or ()
        for span in spans:
            if span.start <= until < span.end:
                return span.captured
        span = _Span()
        span.captured = self._captured_site(origin, until, span, spans)
        self._spans.put(origin, (*spans[-MAX_SPANS + 1 :], span))
        return span.captured

    def _captured_site(
        self, origin: str, until: int, span: _Span, others: Sequence[_Span]
    ) -> SiteAtMoment | None:
        """Return the site at a moment. `span` is narrowed to the moments with the same answer.

        `others`: spans of the same site. If one of them has the same copies, its site is returned.
        """
        urls = [origin + path for path in WELL_KNOWN]
        captures = self._captures(urls, until, span)
        files = {url: self._file(url, until, span, captures[url]) for url in urls}
        if all(row is None for _, row in files.values()):
            return None
        captured = self._site(origin, files, span, others)
        references = (
            *captured.site.references(self.agent)[:MAX_REFERENCES],
            *captured.site.licenses(self.agent),
        )
        if not references:
            return captured
        captures = self._captures(references, until, span)
        files |= {url: self._file(url, until, span, captures[url]) for url in references}
        return self._site(origin, files, span, others)

    def moments(self, origin: str) -> list[datetime]:
        """Return the moments of the copies of an origin's files, the earliest first."""
        return [EPOCH + timedelta(microseconds=moment) for moment in self._index.moments(origin)]

    @property
    def versions(self) -> dict[str, str]:
        """Return the name of each source that was read -> its version."""
        return self._index.versions

    def copy(self, url: str, moment: datetime) -> Fetched | None:
        """Return the answer in a copy as it was captured, before it is judged by its content.

        `url`: the URL of a policy file. `moment`: the aware moment of its answer. If the capture
        cannot be read, the answer has an error. None: the copy is not in the index."""
        row = self._index.find(url, microseconds(moment))
        if row is None:
            return None
        original = self._original(row) if row.repeats else row
        if original is None or original.is_unread or original.location:
            error = original.error if original and original.error else "it cannot be read"
            return Fetched(status=0, error=error, fetched_at=moment)
        try:
            return replace(self._captured(original, url), fetched_at=moment)
        except ValueError as error:
            return Fetched(status=0, error=str(error), fetched_at=moment)

    def sources(self, copies: Iterable[tuple[str, datetime]]) -> list[str | None]:
        """Return the name of the source of each copy. None if it is not in the index.

        `copies`: the URL of a policy file, and the aware moment of its answer."""
        rows = [self._index.find(url, microseconds(moment)) for url, moment in copies]
        return [row and self._index.source(row) for row in rows]

    def _site(
        self, origin: str, files: dict[str, _File], span: _Span, others: Sequence[_Span]
    ) -> SiteAtMoment:
        span.key = tuple(
            [(row, fetched.unreachable_since, fetched.error) for fetched, row in files.values()]
        )
        for other in others:
            if other.captured is not None and other.key == span.key:
                return other.captured
        site = Site(origin, {url: fetched for url, (fetched, _) in files.items()})
        return SiteAtMoment(
            site, tuple([self._copy(site, url, row) for url, (_, row) in files.items()])
        )

    def _copy(self, site: Site, url: str, row: CaptureRow | None) -> Copy:
        policy = site.policies[url]
        if row is None:
            return Copy(url, None, None, 0, "", 0)
        fetched_at = site.files[url].fetched_at
        return Copy(
            url, fetched_at, policy["sha256"], policy["status"], self._index.source(row), row.offset
        )

    def _captures(
        self, urls: Sequence[str], until: int, span: _Span
    ) -> Mapping[str, Iterable[CaptureRow]]:
        """Return the captures of each URL that may count, the latest first.

        `span` is narrowed to the moments with the same captures."""
        max_age = _duration(self.max_age)
        captures = self._index.captures(urls, until - 2 * max_age, until + max_age)
        if captures is None:
            span.narrow(until, until + 1)
            return {url: self._index.nearest(url, until - max_age, until) for url in urls}
        # Every capture that counts at these moments is among those that were read.
        span.narrow(until - max_age, until + max_age)
        for row in (row for rows in captures.values() for row in rows):
            # A capture begins to count at its moment, and is too old `max_age` later.
            for event in (row.moment, row.moment + max_age):
                span.narrow(*((event, FOREVER) if event <= until else (-FOREVER, event)))
        return {
            url: [row for row in rows if until - max_age < row.moment <= until]
            for url, rows in captures.items()
        }

    def _file(
        self,
        url: str,
        until: int,
        span: _Span,
        captures: Iterable[CaptureRow],
        on_the_way: tuple[str, ...] = (),
    ) -> _File:
        """Return the answer that applies to a URL, by the same rules as PolicyFile.

        This is the last answer. If the last answer is a failure, the last good answer is used
        instead, for as long as PolicyFile permits.

        `captures`: the captures of the URL that may count, the latest first. `span` is narrowed to
        the moments with the same answer. `on_the_way`: the URLs that redirected to `url`."""
        failure: _File | None = None
        since: datetime | None = None  # moment of the first of the failures
        targets: dict[str, _File] = {}
        for row in captures:
            fetched, of_body = self._answer(row, until, span, (*on_the_way, url), targets)
            if availability(fetched) is not Availability.UNREACHABLE:
                if failure is None:
                    return fetched, of_body
                ends_at = stands_in_until(fetched) * 1e6
                stands_in = until < ends_at
                span.narrow(*((-FOREVER, ceil(ends_at)) if stands_in else (ceil(ends_at), FOREVER)))
                return (
                    (replace(fetched, unreachable_since=since), of_body) if stands_in else failure
                )
            failure, since = failure or (fetched, of_body), _moment(row)
            if not _is_of_server(fetched, of_body):
                break  # The site has answered here, but the capture lacks the content.
        return failure or (NO_COPY, None)

    def _answer(
        self,
        row: CaptureRow,
        until: int,
        span: _Span,
        on_the_way: tuple[str, ...],
        targets: dict[str, _File],
    ) -> _File:
        """Return the answer of a capture after its redirects, and the capture that contains it.

        `targets`: URL -> its answer, for the redirects that were followed before. New answers are
        added."""
        if not row.location:
            return self._read_answer(row, on_the_way[0]), row
        if not row.is_whole:
            return _failed_answer(row, DAMAGED), row
        if row.repeats:
            return self._read_repeated(row, on_the_way[0])
        if row.location in on_the_way or len(on_the_way) > MAX_HOPS:
            return _failed_answer(
                row, f"it has too many redirects, the last one to {row.location}"
            ), row
        if row.location not in targets:
            captures = self._captures([row.location], until, span)[row.location]
            targets[row.location] = self._file(row.location, until, span, captures, on_the_way)
        fetched, of_body = targets[row.location]
        return (
            (fetched, of_body)
            if of_body
            else (
                _failed_answer(
                    row, f"it redirects to {row.location}, and there is no copy of that"
                ),
                row,
            )
        )

    def _read_repeated(self, row: CaptureRow, first_url: str) -> _File:
        """Return the answer of a capture that refers to the content of an earlier one."""
        original = self._original(row)
        if original is None or original.location:
            return _failed_answer(
                row, f"it repeats a capture of {row.location}, and there is no copy of that"
            ), row
        return replace(self._read_answer(original, first_url), fetched_at=_moment(row)), original

    def _original(self, row: CaptureRow) -> CaptureRow | None:
        """Return the capture to whose content another capture refers. None: there is no copy."""
        latest = row.repeats + SECOND - 1
        return next(self._index.nearest(row.location, row.repeats - 1, latest), None)

    def _read_answer(self, row: CaptureRow, first_url: str) -> Fetched:
        """Return the answer of a capture that is not a redirect.

        `first_url`: the URL at which the redirects began, or the capture's own URL."""
        try:
            if not row.is_whole:
                raise ValueError(DAMAGED)
            fetched = self._captured(row, first_url)
        except ValueError as error:
            return _failed_answer(row, str(error))
        return accepted(first_url, fetched)

    def _captured(self, row: CaptureRow, first_url: str) -> Fetched:
        """Return the answer as it was captured. `first_url`: see `_read_answer`.

        ValueError: its body is damaged."""
        return Fetched(
            status=row.status,
            headers=((b"content-type", row.media.encode("latin-1")),) if row.media else (),
            body=b"" if row.body is None else self._body(row.body),
            url=row.url if row.url != first_url else "",
            fetched_at=_moment(row),
            error=row.error,
            oversized=bool(row.oversized),
        )

    def _body(self, number: int) -> bytes:
        """Return a body of the index. Many sites have the same. ValueError: it is damaged."""
        body = self._bodies.get(number)
        if body is None:
            body = self._index.body(number)
            self._bodies.put(number, body)
        return body


def _is_of_server(fetched: Fetched, row: CaptureRow | None) -> bool:
    """Return True if the capture itself records a failure of the server.

    False if the capture cannot be read, or if its content was rejected here."""
    return (
        row is not None
        and not row.is_unread
        and fetched.error == row.error
        and fetched.status // 100 != 2
    )


def _failed_answer(row: CaptureRow, error: str) -> Fetched:
    return Fetched(status=row.status, fetched_at=_moment(row), error=printable(error))


def _moment(row: CaptureRow) -> datetime:
    return EPOCH + timedelta(microseconds=row.moment)


def _open_copy(
    kind: type[PolicyCaptures], index: Path, agent: Agent, max_age: timedelta, now: datetime
) -> PolicyCaptures:
    return kind(index, agent, max_age=max_age, now=now)


def _duration(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


def _size(captured: SiteAtMoment) -> int:
    return sum(len(file.body) for file in captured.site.files.values())
