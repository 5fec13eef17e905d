"""The files that were fetched from a site, and the reasons that quote them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

from comity.policies.answers.decision import Reason, Source
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.answers.markup import begins_as_page
from comity.policies.syntax.lines import Lines, text_of
from comity.policies.syntax.printable import printable

T = TypeVar("T")
B = TypeVar("B")

ABSENT = Fetched(status=404)  # stands for a file that was not requested
# The maximum number of files that are fetched for a crawler because policy files of an origin refer
# to them. Further files count as not fetched.
MAX_REFERENCES = 5


class File:
    """A policy file of any format.

    Attributes:
        reads_markup: True if an HTML page is read too, for its refusals only. False if an HTML page
            counts as absent.
    """

    reads_markup = False

    def __init__(self, url: str, fetched: Fetched) -> None:
        """Read a response. `url` is the requested URL."""
        self.url = url
        self.fetched = fetched
        self.availability = availability(fetched)
        is_read = self.reads_markup or not begins_as_page(fetched.body)
        if self.availability is Availability.PRESENT and not is_read:
            self.availability = Availability.ABSENT
        self.is_present = self.availability is Availability.PRESENT

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 digest of the body in hexadecimal; "" if the body is empty."""
        return hashlib.sha256(self.fetched.body).hexdigest() if self.fetched.body else ""

    @cached_property
    def text(self) -> bytes:
        """The part of the body that the format reads, without octets beyond the maximum length."""
        return self._read()

    def _read(self) -> bytes:
        return text_of(self.fetched.body, cut=self.fetched.oversized)[0]

    def reason(
        self, rule: str, *, part: str = "body", line: int = 0, text: str = "", citation: str = ""
    ) -> Reason:
        """Return a reason that quotes this file."""
        fetched_at = self.fetched.fetched_at
        source = Source(
            url=self.url, part=part, line=line, text=text, sha256=self.sha256, fetched_at=fetched_at
        )
        return Reason(rule=rule, source=source, citation=citation)

    def line_reason(self, rule: str, line: int, offset: int, citation: str = "") -> Reason:
        """Return a reason that quotes a line. `offset` is the start of the line in `text`."""
        return self.reason(
            rule, line=line, text=printable(Lines(self.text, offset).read()), citation=citation
        )

    def outcome_reason(self, rule: str) -> Reason:
        """Return a reason that quotes the failed response, because there is no file to quote."""
        return self.reason(rule, part="status", text=self.outcome)

    @property
    def outcome(self) -> str:
        """The response instead of the file: the error, "an HTML page", or "HTTP status 503"."""
        if self.fetched.error:
            return printable(self.fetched.error.encode(errors="replace"))
        is_page = self.fetched.status // 100 == 2 and self.availability is Availability.ABSENT
        return "an HTML page" if is_page else f"HTTP status {self.fetched.status}"


class ParsedBodies(Generic[B]):
    """Bodies of policy files, parsed without their URLs. Sites with equal bodies share them.

    Most policy files are copies of a few hundred texts. An entry goes with the last site that has
    its text.
    """

    def __init__(self, parse: Callable[..., B]) -> None:
        """`parse`: called with the octets of a body, and with `oversized` and other options."""
        self._parse = parse
        self._bodies: WeakValueDictionary[Hashable, B] = WeakValueDictionary()

    def get(self, octets: bytes, **options: bool) -> B:
        """Return the parsed body. `options`: arguments on which the result depends."""
        key = octets, *options.items()
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = self._parse(octets, **options)
        return body


class SiteFiles:
    """All files that were fetched from one origin, for the formats to read."""

    def __init__(
        self,
        origin: str,
        fetched: Mapping[str, Fetched],
        *,
        robots_lines: frozenset[str] = frozenset(),
    ) -> None:
        """Store the responses.

        `fetched` maps the absolute URL that was requested to the response. `robots_lines` is the
        set of lower-case names of lines in robots.txt that belong to other formats.
        """
        self.origin = origin
        self.fetched = fetched
        self.robots_lines = robots_lines
        self._cache: dict[Hashable, Any] = {}

    def get(self, path: str) -> Fetched:
        """Return the response for a path of the origin.

        A file that was not requested counts as a 404.
        """
        return self.fetched.get(self.origin + path, ABSENT)

    def file(self, url: str) -> File | None:
        """Return the file at an absolute URL, or None if it does not exist."""
        file = self.response(url)
        return file if file is not None and file.is_present else None

    def response(self, url: str) -> File | None:
        """Return the response for an absolute URL as a file, whether or not the file exists.

        None means that the URL was not requested.
        """
        fetched = self.fetched.get(url)
        return None if fetched is None else self.once((File, url), lambda: File(url, fetched))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make` for a key, cached for all formats.

        Only the first call with a key calls `make`.
        """
        if key not in self._cache:
            self._cache[key] = make()
        return cast("T", self._cache[key])
