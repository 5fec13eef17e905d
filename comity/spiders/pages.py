"""The item that the ready spiders make of a page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from parsel import Selector
from scrapy.http import Response, TextResponse


@dataclass(slots=True, kw_only=True)
class PageItem:
    """One page. `text`, `title` and `links` are those of HTML; of anything else they are empty."""

    url: str  # that was asked for
    final_url: str  # that answered, after redirects
    status: int
    fetched_at: str  # ISO 8601, UTC
    content_type: str  # as the server said, "" where it said nothing
    title: str
    text: str  # the main text, a line a block
    links: list[str]  # absolute, each once, in the order of the page
    sha256: str  # of the body, hexadecimal
    html: str | None = None  # the page as it came, where it is asked for
    permissions: dict[str, Any] = field(default_factory=dict)  # what may be done with it; comity writes it


def page_item(response: Response, *, html: bool = False) -> PageItem:
    """What a response says, without its permissions."""
    request = response.request
    asked = request.meta.get("redirect_urls", [request.url])[0] if request else response.url
    page = response if isinstance(response, TextResponse) and is_html(response) else None
    return PageItem(
        url=asked,
        final_url=response.url,
        status=response.status,
        fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        content_type=(response.headers.get("Content-Type") or b"").decode("latin-1"),
        title=title(page.selector) if page else "",
        text=main_text(page.selector) if page else "",
        links=links(page) if page else [],
        sha256=hashlib.sha256(response.body).hexdigest(),
        html=response.text if html and isinstance(response, TextResponse) else None,
    )


def is_html(response: Response) -> bool:
    media_type = (response.headers.get("Content-Type") or b"").split(b";")[0].strip().lower()
    return media_type in (b"text/html", b"application/xhtml+xml")


def title(selector: Selector) -> str:
    """The document's title, else its first heading."""
    for found in selector.xpath("//head/title | //h1"):
        text = _folded("".join(found.xpath(".//text()").getall()))
        if text:
            return text
    return ""


def links(response: TextResponse) -> list[str]:
    """The http and https links of a page, without fragments."""
    found: dict[str, None] = {}
    for href in response.css("a[href]::attr(href), area[href]::attr(href)").getall():
        try:
            url = response.urljoin(href.strip()).partition("#")[0]
        except ValueError:  # a malformed address, e.g. "http://[x"
            continue
        if url.startswith(("http://", "https://")):
            found[url] = None
    return list(found)


# What a reader would not call the text of the page.
_LEFT_OUT = set("script style noscript template head iframe object svg canvas".split())  # noqa: SIM905  # a list of words
_LEFT_OUT.update("nav header footer aside form button select dialog".split())  # noqa: SIM905
_ROLES_LEFT_OUT = ("navigation", "banner", "contentinfo", "complementary", "search")
# Elements that begin no line of their own.
_INLINE = set("a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q".split())  # noqa: SIM905
_INLINE.update("ruby s samp small span strike strong sub sup time tt u var wbr".split())  # noqa: SIM905


def main_text(selector: Selector) -> str:
    """The text of <main>, else of the articles, else of the body; a line a block, white space folded."""
    for query in ("//main | //*[@role='main']", "//article[not(ancestor::article)]", "//body"):
        parts: list[str] = []
        for root in selector.xpath(query):
            _collect(root.root, parts)
        text = "\n".join(line for line in map(_folded, "".join(parts).split("\n")) if line)
        if text:
            return text
    return ""


def _collect(root: Any, parts: list[str]) -> None:
    """Texts below an element in document order, with "\\n" around blocks. No recursion: pages nest as deep as they like."""
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        element, is_end = stack.pop()
        block = element.tag not in _INLINE
        if is_end:
            parts.append("\n" if block else "")
            if element is not root:
                parts.append(_one_line(element.tail))
            continue
        left_out = not isinstance(element.tag, str) or (
            element is not root
            and (element.tag in _LEFT_OUT or element.get("role") in _ROLES_LEFT_OUT or element.get("hidden") is not None)
        )
        if left_out:
            parts.append(_one_line(element.tail))
            continue
        parts.append("\n" if block else "")
        parts.append(_one_line(element.text))
        stack.append((element, True))
        stack.extend((child, False) for child in reversed(element))


def _one_line(text: str | None) -> str:
    return text.replace("\n", " ").replace("\r", " ") if text else ""


def _folded(text: str) -> str:
    return " ".join(text.split())
