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

MAX_LISTED = 100  # the maximum number of refusals of a page, and of its documents
MAX_REMEMBERED = 4096  # the maximum number of refusals of unknown pages


class Refusal(NamedTuple):
    """A refused request of a browser.

    Attributes:
        url: The URL.
        kind: The name of a kind of comity.browser.kinds.
        decision: The decision that refuses the request.
    """

    url: str
    kind: str
    decision: Decision

    @property
    def tag(self) -> dict[str, Any]:
        """The refusal, in the format of an item's tag."""
        reason = self.decision.reasons[0]
        return {
            "url": printable(self.url.encode("utf-8", "replace")),
            "kind": self.kind,
            "rule": reason.rule,
            "policy": reason.source.url,
            "line": reason.source.line,
        }


class PageRefusals:
    """The first refusals of one page, and the header fields of the last documents in it.

    Attributes:
        main_frame: The id of the page's main frame. "" means that it is not known.
        document_fields: The header fields of the last MAX_LISTED documents in the main frame.
        are_more: True if the page has more than MAX_LISTED refusals.
    """

    def __init__(self) -> None:
        self.main_frame = ""
        self.document_fields: deque[tuple[tuple[bytes, bytes], ...]] = deque(maxlen=MAX_LISTED)
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self.are_more = False

    def add(self, refusal: Refusal) -> None:
        """Note a refusal, once for each kind and URL."""
        if len(self._refusals) < MAX_LISTED:
            self._refusals.setdefault((refusal.kind, refusal.url), refusal)
        elif (refusal.kind, refusal.url) not in self._refusals:
            self.are_more = True

    def note_document(self, frame: str, fields: tuple[tuple[bytes, bytes], ...]) -> None:
        """Note the header fields of a document in the main frame. Other frames are ignored.

        `frame`: the id of the document's frame, which may be that of a pop-up."""
        if frame == self.main_frame:
            self.document_fields.append(fields)

    def __iter__(self) -> Iterator[Refusal]:
        return iter(self._refusals.values())

    def tag(self, url: str) -> dict[str, Any]:
        """Return `browser` of an item's tag. `url`: the last URL of the browser."""
        more = {"more_refused": True} if self.are_more else {}
        return {"url": url, "refused": [refusal.tag for refusal in self], **more}


class PageVisit(NamedTuple):
    """The state of a page after one request. A spider may use a page for several requests.

    Attributes:
        refusals: The refused requests of the page.
        document_fields: The header fields of each document.
    """

    refusals: PageRefusals
    document_fields: tuple[tuple[tuple[bytes, bytes], ...], ...]

    def tag(self, url: str) -> dict[str, Any]:
        """Return `browser` of an item's tag. `url`: the last URL of the browser."""
        return self.refusals.tag(url)


class Refusals:
    """The refusals of a browser, by page.

    The DevTools protocol, which stops requests, does not tell the page of a frame or worker.
    Playwright tells it a moment later, when it reports that the request has failed."""

    def __init__(self) -> None:
        self._by_url: Bounded[str, Refusal] = Bounded(MAX_REMEMBERED)
        self._by_page: WeakKeyDictionary[Any, PageRefusals] = WeakKeyDictionary()

    def note(self, refusal: Refusal) -> None:
        """Remember a refusal until its page is known."""
        self._by_url[refusal.url] = refusal

    def for_page(self, page: Any) -> PageRefusals:
        """Return the refusals of a page. Later refusals are added to the same object."""
        return self._by_page.setdefault(page, PageRefusals())

    def note_failure(self, url: str, page: Any) -> None:
        """Add the refusal of this URL to the page.

        Do nothing if no refusal is known: then the request failed for another reason."""
        if (refusal := self._by_url.get(urldefrag(url)[0])) is not None:
            self.for_page(page).add(refusal)
