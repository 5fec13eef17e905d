"""The refusals of the requests of a page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urldefrag
from weakref import WeakKeyDictionary

from comity.bounded import Bounded
from comity.policies import Decision
from comity.policies.syntax.printable import printable

MAX_LISTED = 100  # refusals of a page; more of them are only counted
MAX_REMEMBERED = 4096  # refusals of which nobody knows yet whose they are


class Refusal(NamedTuple):
    """A request that a browser was not let make."""

    url: str
    kind: str  # of comity.browser.kinds
    decision: Decision

    @property
    def tag(self) -> dict[str, Any]:
        """The refusal as the tag of an item has it."""
        reason = self.decision.reasons[0]
        return {
            "url": printable(self.url.encode("utf-8", "replace")),
            "kind": self.kind,
            "rule": reason.rule,
            "policy": reason.source.url,
            "line": reason.source.line,
        }


class PageRefusals:
    """The refusals of one page, the first ones, and the header fields of the last documents that it showed."""

    def __init__(self) -> None:
        self.main_frame = ""  # its id; "": it is not known
        self.document_fields: deque[tuple[tuple[bytes, bytes], ...]] = deque(maxlen=MAX_LISTED)
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self.are_more = False  # than are listed

    def add(self, refusal: Refusal) -> None:
        if len(self._refusals) < MAX_LISTED:
            self._refusals.setdefault((refusal.kind, refusal.url), refusal)
        elif (refusal.kind, refusal.url) not in self._refusals:
            self.are_more = True

    def showed(self, frame: str, fields: tuple[tuple[bytes, bytes], ...]) -> None:
        """A document came, perhaps that of a pop-up."""
        if frame == self.main_frame:
            self.document_fields.append(fields)

    def __iter__(self) -> Iterator[Refusal]:
        return iter(self._refusals.values())

    def tag(self, url: str) -> dict[str, Any]:
        """`browser` of the tag of an item. `url`: where the browser ended."""
        more = {"more_refused": True} if self.are_more else {}
        return {"url": url, "refused": [refusal.tag for refusal in self], **more}


class Visit(NamedTuple):
    """A page as one request found it, which may be one of several."""

    refusals: PageRefusals
    document_fields: tuple[tuple[tuple[bytes, bytes], ...], ...]

    def tag(self, url: str) -> dict[str, Any]:
        return self.refusals.tag(url)


class Refusals:
    """The refusals of a browser, by page.

    The protocol by which requests are stopped does not tell the page of a frame or a worker; Playwright does, a moment later,
    when it tells that the request has failed."""

    def __init__(self) -> None:
        self._by_url: Bounded[str, Refusal] = Bounded(MAX_REMEMBERED)
        self._by_page: WeakKeyDictionary[Any, PageRefusals] = WeakKeyDictionary()

    def note(self, refusal: Refusal) -> None:
        self._by_url[refusal.url] = refusal

    def for_page(self, page: Any) -> PageRefusals:
        """The refusals of the page, which become more as it goes on."""
        return self._by_page.setdefault(page, PageRefusals())

    def failed(self, url: str, page: Any) -> None:
        """A request of the page failed, perhaps as it was refused."""
        if (refusal := self._by_url.get(urldefrag(url)[0])) is not None:
            self.for_page(page).add(refusal)
