"""The policies of origins at moments, out of captures (docs/policy-captures.md).

    captures = PolicyCaptures.open(sources, agent=agent, index=path)
    captures.at(origin, moment)     what the site said then, and which copies say so
    captures.today(origin)          what it said last

What is in doubt is decided as a crawl would have done it: a file of which there is no copy is one that could not be had."""

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
    Index,
    IndexReader,
    Row,
    Unreadable,
    microseconds,
)
from comity.dataset.captures.sources import Source
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

MAX_AGE = timedelta(seconds=STAND_IN)  # of a copy that counts
MAX_SITES = 2000  # that are kept compiled
MAX_SITE_BYTES = (
    32 * 2**20
)  # octets of their policy files; compiled they take up to three times as much
MAX_SPANS = 8  # of an origin, of which is remembered what it said then
SECOND = 10**6  # microseconds; the dates of WARC records are of a second
NO_COPY = Fetched(status=0, error="there is no copy of it", was_asked=False)
INDEX = "captures.sqlite"


class Copy(NamedTuple):
    """The copy of a policy file that counts at a moment."""

    url: str  # that was asked for
    fetched_at: (
        datetime | None
    )  # None: there is no copy, and the file counts as one that could not be had
    sha256: str | None  # of the text, hexadecimal; None: there is none
    status: int  # 0: there is no copy, or no answer of HTTP
    source: str  # the file that the copy stands in
    offset: int  # where it begins there; of a file that is the copy itself, 0


@dataclass(frozen=True)
class CapturedSite:
    """The policies of an origin at a moment."""

    site: Site
    copies: tuple[Copy, ...]  # of each of the site's files

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """The URLs of the files of which there is no copy."""
        return tuple(copy.url for copy in self.copies if copy.fetched_at is None)


_File = tuple[Fetched, Row | None]  # what counts, and the capture that says so
FOREVER = 2**62  # microseconds


class _Span:
    """The moments from `start` on and before `end`, in microseconds, at which the same copies count."""

    __slots__ = ("captured", "end", "start")

    def __init__(self) -> None:
        self.start, self.end = -FOREVER, FOREVER
        self.captured: CapturedSite | None = None

    def narrow(self, start: int, end: int) -> None:
        self.start, self.end = max(self.start, start), min(self.end, end)


class PolicyCaptures:
    """Captures of policy files, for one agent. It can be pickled while it is open: each process reads the index for itself."""

    def __init__(
        self,
        index: Path,
        agent: Agent,
        *,
        max_age: timedelta = MAX_AGE,
        now: datetime | None = None,
    ) -> None:
        """`index`: made by `open`. `max_age`: of a copy, at the moment for which it is asked. `now`: aware; None: the clock."""
        self.index = index
        self.agent = agent
        self.max_age = max_age
        self.now = now or datetime.now(UTC)
        self._reader: IndexReader | None = None
        self._process = 0  # that has opened it
        self._sites: BoundedSize[tuple[object, ...], CapturedSite] = BoundedSize(
            MAX_SITES, MAX_SITE_BYTES, _size
        )
        self._spans: BoundedSize[str, tuple[_Span, ...]] = BoundedSize(
            MAX_SITES,
            MAX_SITE_BYTES,
            lambda spans: sum(_size(span.captured) for span in spans if span.captured),
        )
        self._answers: BoundedSize[tuple[str, Row], Fetched] = BoundedSize(
            MAX_SITES, MAX_SITE_BYTES, lambda answer: len(answer.body)
        )
        self._folder = ExitStack()  # of the index, where nobody has named one

    @classmethod
    def open(
        cls,
        sources: Iterable[Source],
        *,
        agent: Agent,
        index: Path | None = None,
        max_age: timedelta = MAX_AGE,
        now: datetime | None = None,
        progress: Callable[[int], object] = lambda _: None,
    ) -> Self:
        """The captures of these sources. PolicyError, with what to do about it, where one cannot be read at all.

        `index`: a file that is kept, and read on where sources were read before; None: one that goes with `close`. `progress`:
        told how much more has been read, in the measure of the sources' sizes."""
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
        return _opened, (type(self), self.index, self.agent, self.max_age, self.now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """An index that nobody has named is gone after this."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._folder.close()

    @property
    def _index(self) -> IndexReader:
        if (
            self._reader is None or self._process != os.getpid()
        ):  # SQLite: what was opened before a fork is its parent's
            self._reader, self._process = IndexReader(self.index), os.getpid()
        return self._reader

    @property
    def unreadable(self) -> tuple[int, list[Unreadable]]:
        """The number of places of the sources where nothing could be read, and the first of them in each."""
        return self._index.unreadable

    def today(self, origin: str) -> CapturedSite | None:
        """Return what the origin said last; None where nothing is had of it."""
        return self.at(origin, self.now)

    def at(self, origin: str, moment: datetime) -> CapturedSite | None:
        """Return what the origin said at an aware moment, by the last copies before it; None where nothing is had of it."""
        until = microseconds(moment)
        spans = self._spans.get(origin) or ()
        for span in spans:
            if span.start <= until < span.end:
                return span.captured
        span = _Span()
        span.captured = self._captured_site(origin, until, span)
        self._spans.put(origin, (*spans[-MAX_SPANS + 1 :], span))
        return span.captured

    def _captured_site(self, origin: str, until: int, span: _Span) -> CapturedSite | None:
        """Return the site at a moment. `span`: is narrowed to the moments of which the answer is the same."""
        urls = [origin + path for path in WELL_KNOWN]
        captures = self._captures(urls, until, span)
        files = {url: self._file(url, until, span, captures[url]) for url in urls}
        if all(row is None for _, row in files.values()):
            return None
        captured = self._site(origin, files)
        references = (
            *captured.site.references(self.agent)[:MAX_REFERENCES],
            *captured.site.licenses(self.agent),
        )
        if not references:
            return captured
        captures = self._captures(references, until, span)
        return self._site(
            origin, files | {url: self._file(url, until, span, captures[url]) for url in references}
        )

    def moments(self, origin: str) -> list[datetime]:
        """The moments of which there are copies of the origin's files, in their order."""
        return [EPOCH + timedelta(microseconds=moment) for moment in self._index.moments(origin)]

    def _site(self, origin: str, files: dict[str, _File]) -> CapturedSite:
        key = (
            origin,
            *((row, fetched.unreachable_since, fetched.error) for fetched, row in files.values()),
        )
        captured = self._sites.get(key)
        if captured is None:
            site = Site(origin, {url: fetched for url, (fetched, _) in files.items()})
            captured = CapturedSite(
                site, tuple(self._copy(site, url, row) for url, (_, row) in files.items())
            )
            self._sites.put(key, captured)
        return captured

    def _copy(self, site: Site, url: str, row: Row | None) -> Copy:
        policy = site.policies[url]
        if row is None:
            return Copy(url, None, None, 0, "", 0)
        fetched_at = site.files[url].fetched_at
        return Copy(
            url, fetched_at, policy["sha256"], policy["status"], self._index.source(row), row.offset
        )

    def _captures(
        self, urls: Sequence[str], until: int, span: _Span
    ) -> Mapping[str, Iterable[Row]]:
        """The captures of each URL that may count, the latest first."""
        max_age = _duration(self.max_age)
        captures = self._index.captures(urls, until - 2 * max_age, until + max_age)
        if captures is None:
            span.narrow(until, until + 1)
            return {url: self._index.nearest(url, until - max_age, until) for url in urls}
        span.narrow(until - max_age, until + max_age)  # what counts then is among them
        for row in (row for rows in captures.values() for row in rows):
            for event in (
                row.moment,
                row.moment + max_age,
            ):  # one comes in at its moment, and is too old at another one
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
        captures: Iterable[Row],
        on_the_way: tuple[str, ...] = (),
    ) -> _File:
        """The answer that counts, as PolicyFile has it: the last one, or the last good one while it cannot be had.

        `captures`: that may count, the latest first. `span`: is narrowed to the moments of which the answer is the same.
        `on_the_way`: URLs that have led here."""
        failure: _File | None = None
        since: datetime | None = None  # of failures
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
                break  # the site has said something since, and nobody knows what
        return failure or (NO_COPY, None)

    def _answer(
        self,
        row: Row,
        until: int,
        span: _Span,
        on_the_way: tuple[str, ...],
        targets: dict[str, _File],
    ) -> _File:
        """The answer of a capture after its redirects, and the capture that has it. `targets`: those that are known."""
        if not row.location:
            return self._fetched(row, on_the_way[0]), row
        if not row.is_whole:
            return _failed(row, DAMAGED), row
        if row.repeats:
            return self._repeated(row, on_the_way[0])
        if row.location in on_the_way or len(on_the_way) > MAX_HOPS:
            return _failed(row, f"it leads on and on, to {row.location} at last"), row
        if row.location not in targets:
            captures = self._captures([row.location], until, span)[row.location]
            targets[row.location] = self._file(row.location, until, span, captures, on_the_way)
        fetched, of_body = targets[row.location]
        return (
            (fetched, of_body)
            if of_body
            else (_failed(row, f"it leads to {row.location}, of which there is no copy"), row)
        )

    def _repeated(self, row: Row, first_url: str) -> _File:
        """The answer of the capture that has the content of another one."""
        original = next(
            self._index.nearest(row.location, row.repeats - 1, row.repeats + SECOND - 1), None
        )
        if original is None or original.location:
            return _failed(
                row, f"it repeats a capture of {row.location}, of which there is no copy"
            ), row
        return replace(self._fetched(original, first_url), fetched_at=_moment(row)), original

    def _fetched(self, row: Row, first_url: str) -> Fetched:
        """The answer of a capture that leads nowhere. `first_url`: that has led to it, or its own."""
        fetched = self._answers.get((first_url, row))
        if fetched is None:
            fetched = self._read(row, first_url)
            self._answers.put((first_url, row), fetched)
        return fetched

    def _read(self, row: Row, first_url: str) -> Fetched:
        try:
            body = self._index.body(row)
        except ValueError as error:
            return _failed(row, str(error))
        fetched = Fetched(
            status=row.status,
            headers=((b"content-type", row.media.encode("latin-1")),) if row.media else (),
            body=body,
            url=row.url if row.url != first_url else "",
            fetched_at=_moment(row),
            error=row.error,
            oversized=bool(row.oversized),
        )
        return accepted(first_url, fetched)


def _is_of_server(fetched: Fetched, row: Row | None) -> bool:
    """Return whether the answer could not be had because of its server, as the capture says; not by what was made of it here."""
    return (
        row is not None
        and not row.is_unread
        and fetched.error == row.error
        and fetched.status // 100 != 2
    )


def _failed(row: Row, error: str) -> Fetched:
    return Fetched(status=row.status, fetched_at=_moment(row), error=printable(error))


def _moment(row: Row) -> datetime:
    return EPOCH + timedelta(microseconds=row.moment)


def _opened(
    kind: type[PolicyCaptures], index: Path, agent: Agent, max_age: timedelta, now: datetime
) -> PolicyCaptures:
    return kind(index, agent, max_age=max_age, now=now)


def _duration(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


def _size(captured: CapturedSite) -> int:
    return sum(len(file.body) for file in captured.site.files.values())
