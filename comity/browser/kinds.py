"""The kinds of requests of a browser, by the names of Chromium (docs/browsers.md).

RFC 9309 knows no sub-resources: "crawlers" access "URIs", and the parts of a page have URIs like
the page itself. So each request is judged by the files of its own origin. The drafts
(draft-liao-aipref-autoctl-ext) distinguish requests of scripts from others. comity tells them apart
by the header fields, above all `Sec-Fetch-Dest` of Fetch Metadata. Chromium adds this field only
after the guard has decided, so KINDS gives the value that Chromium will add."""

from __future__ import annotations

from typing import NamedTuple

ALL, DOCUMENTS = "all", "documents"  # values of COMITY_BROWSER


class RequestKind(NamedTuple):
    """A kind of request of a browser.

    Attributes:
        name: The name in the tag and in statistics.
        destination: The value of Sec-Fetch-Dest. "empty" means a request of a script, "" no value.
        is_part: True if a page needs the answer for its display. With COMITY_BROWSER=documents, the
            decision about the page applies to such requests.
    """

    name: str
    destination: str
    is_part: bool = False


DOCUMENT = RequestKind("document", "document")
SCRIPT = RequestKind("xhr", "empty")
SOCKET = RequestKind("websocket", "empty")
OTHER = RequestKind("other", "")
# A request that the protocol does not report. It is judged as a document. Without Sec-Fetch-Dest it
# is judged as a request of a script, too.
UNTOLD = RequestKind("untold", "")

# The kinds, by Network.ResourceType of the Chrome DevTools Protocol. Other types are OTHER, and
# judged like documents.
KINDS = {
    "Document": DOCUMENT,  # frames, pop-ups, forms, downloads, objects too
    "Stylesheet": RequestKind("style", "style", is_part=True),
    "Image": RequestKind("image", "image", is_part=True),
    "Media": RequestKind("media", "video", is_part=True),
    "Font": RequestKind("font", "font", is_part=True),
    "Script": RequestKind("script", "script", is_part=True),
    "TextTrack": RequestKind("track", "track", is_part=True),
    "Manifest": RequestKind("manifest", "manifest", is_part=True),
    "XHR": SCRIPT,  # fetch() and EventSource too
    "Fetch": RequestKind("prefetch", "empty"),  # <link rel=prefetch>
    "EventSource": SCRIPT,
    "Prefetch": RequestKind("prefetch", "empty"),
    "Ping": RequestKind("beacon", "empty"),  # sendBeacon(), <a ping>
    "CSPViolationReport": RequestKind("report", "report"),
    "Preflight": SCRIPT,
    "Other": OTHER,  # workers, favicons
}


def kind_of(resource_type: str) -> RequestKind:
    """Return the kind for a Network.ResourceType."""
    return KINDS.get(resource_type, OTHER)
