"""The kinds of requests of a browser: one table, by what Chromium calls them (docs/browsers.md).

RFC 9309 knows no sub-resources: "crawlers" access "URIs", and what a page embeds has a URI as the page has. So each request is
judged by the files of its own origin, whatever it is for. What makes a difference is the drafts' kind of request
(draft-liao-aipref-autoctl-ext): of a script, or not. As with any other client that follows from the header fields that go out,
of which Fetch Metadata's `Sec-Fetch-Dest` tells the most; Chromium adds it after it has asked us."""

from __future__ import annotations

from typing import NamedTuple

ALL, DOCUMENTS = "all", "documents"  # values of COMITY_BROWSER


class Kind(NamedTuple):
    """A kind of request of a browser."""

    name: str  # in the tag and in statistics
    destination: str  # its Sec-Fetch-Dest; "empty": a script's
    is_part: bool = False  # a page needs it to be shown: the decision about that holds, with COMITY_BROWSER=documents


DOCUMENT = Kind("document", "document")
SCRIPT = Kind("xhr", "empty")
SOCKET = Kind("websocket", "empty")
OTHER = Kind("other", "")
UNTOLD = Kind(
    "untold", ""
)  # the protocol did not tell of it; judged as a document, and as a script's unless it says what it is for

# Network.ResourceType of the Chrome DevTools Protocol -> the kind. What is not here is OTHER, and judged like a document.
KINDS = {
    "Document": DOCUMENT,  # frames, pop-ups, forms, downloads, objects too
    "Stylesheet": Kind("style", "style", is_part=True),
    "Image": Kind("image", "image", is_part=True),
    "Media": Kind("media", "video", is_part=True),
    "Font": Kind("font", "font", is_part=True),
    "Script": Kind("script", "script", is_part=True),
    "TextTrack": Kind("track", "track", is_part=True),
    "Manifest": Kind("manifest", "manifest", is_part=True),
    "XHR": SCRIPT,  # fetch() and EventSource too
    "Fetch": Kind("prefetch", "empty"),  # <link rel=prefetch>
    "EventSource": SCRIPT,
    "Prefetch": Kind("prefetch", "empty"),
    "Ping": Kind("beacon", "empty"),  # sendBeacon(), <a ping>
    "CSPViolationReport": Kind("report", "report"),
    "Preflight": SCRIPT,
    "Other": OTHER,  # workers, favicons
}


def kind_of(resource_type: str) -> Kind:
    return KINDS.get(resource_type, OTHER)
