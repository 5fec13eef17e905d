"""The files that were had of a site, and the reasons that they give."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from comity.policies.answers.decision import Reason, Source
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.answers.markup import begins_as_page
from comity.policies.syntax.lines import Lines, text_of
from comity.policies.syntax.printable import printable

T = TypeVar("T")

ABSENT = Fetched(status=404)  # a file that was not asked for
MAX_REFERENCES = 5  # files named by the files of an origin that are had for a crawler; those after them count as not had


class File:
    """Any policy file."""

    reads_markup = False  # True: it is read in markup too, as far as it refuses

    def __init__(self, url: str, fetched: Fetched) -> None:
        """`url`: where it was asked for."""
        self.url = url
        self.fetched = fetched
        self.availability = availability(fetched)
        is_read = self.reads_markup or not begins_as_page(fetched.body)
        if self.availability is Availability.PRESENT and not is_read:
            self.availability = Availability.ABSENT
        self.is_present = self.availability is Availability.PRESENT

    @cached_property
    def sha256(self) -> str:
        """Return the digest of the body, hexadecimal; "" where there is none."""
        return hashlib.sha256(self.fetched.body).hexdigest() if self.fetched.body else ""

    @cached_property
    def text(self) -> bytes:
        """The octets that are read."""
        return self._read()

    def _read(self) -> bytes:
        return text_of(self.fetched.body, cut=self.fetched.oversized)[0]

    def reason(
        self, rule: str, *, part: str = "body", line: int = 0, text: str = "", citation: str = ""
    ) -> Reason:
        fetched_at = self.fetched.fetched_at
        source = Source(
            url=self.url, part=part, line=line, text=text, sha256=self.sha256, fetched_at=fetched_at
        )
        return Reason(rule=rule, source=source, citation=citation)

    def line_reason(self, rule: str, line: int, offset: int, citation: str = "") -> Reason:
        """`offset`: where the line starts in the text."""
        return self.reason(
            rule, line=line, text=printable(Lines(self.text, offset).read()), citation=citation
        )

    def outcome_reason(self, rule: str) -> Reason:
        """A reason that there is no file."""
        return self.reason(rule, part="status", text=self.outcome)

    @property
    def outcome(self) -> str:
        """The response that came instead of a file, in words."""
        if self.fetched.error:
            return printable(self.fetched.error.encode(errors="replace"))
        is_page = self.fetched.status // 100 == 2 and self.availability is Availability.ABSENT
        return "an HTML page" if is_page else f"HTTP status {self.fetched.status}"


class SiteFiles:
    """All files that were had of one origin, for the formats to read."""

    def __init__(
        self,
        origin: str,
        fetched: Mapping[str, Fetched],
        *,
        robots_lines: frozenset[str] = frozenset(),
    ) -> None:
        """`fetched`: absolute URL that was asked for -> what came back. `robots_lines`: names of lines in robots.txt, in lower
        case, that formats have there."""
        self.origin = origin
        self.fetched = fetched
        self.robots_lines = robots_lines
        self._cache: dict[Hashable, Any] = {}

    def get(self, path: str) -> Fetched:
        """The response for a path of the origin; a file that was not asked for counts as not there (404)."""
        return self.fetched.get(self.origin + path, ABSENT)

    def file(self, url: str) -> File | None:
        """The file at an absolute URL, None where it is not there."""
        file = self.response(url)
        return file if file is not None and file.is_present else None

    def response(self, url: str) -> File | None:
        """The response for an absolute URL, be it a file or none. None: nobody asked for it."""
        fetched = self.fetched.get(url)
        return None if fetched is None else self.once((File, url), lambda: File(url, fetched))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make` for a key, made when the first format asks for it."""
        if key not in self._cache:
            self._cache[key] = make()
        return cast("T", self._cache[key])
