"""The item that the ready spiders make of a page."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from parsel import Selector
from scrapy.http import Response, TextResponse

from comity.crawler import elements

logger = logging.getLogger(__name__)

Extractor = Callable[[str], str]  # the source of a page -> its text

_OF_NO_ELEMENT = {elements.CSS: ""}


@dataclass(slots=True, kw_only=True)
class PageItem:
    """One page. `text`, `title` and `links` are those of HTML; of anything else they are empty."""

    url: str = field(metadata=_OF_NO_ELEMENT)  # that was asked for
    final_url: str = field(metadata=_OF_NO_ELEMENT)  # that answered, after redirects
    status: int = field(metadata=_OF_NO_ELEMENT)
    fetched_at: str = field(metadata=_OF_NO_ELEMENT)  # ISO 8601, UTC
    content_type: str = field(metadata=_OF_NO_ELEMENT)  # as the server said, "" where it said nothing
    title: str
    text: str  # the main text, a line a block; with an extractor, as that has it
    links: list[str]  # absolute, each once, in the order of the page
    sha256: str = field(metadata=_OF_NO_ELEMENT)  # of the body, hexadecimal
    html: str | None = None  # the page as it came, where it is asked for
    permissions: dict[str, Any] = field(default_factory=dict)  # what may be done with it; comity writes it


def page_item(response: Response, *, html: bool = False, extractor: Extractor | None = None) -> PageItem:
    """The item of a response, without its permissions. `extractor`: None for comity's own."""
    request = response.request
    first_url = request.meta.get("redirect_urls", [request.url])[0] if request else response.url
    page = response if isinstance(response, TextResponse) and is_html(response) else None
    return PageItem(
        url=first_url,
        final_url=response.url,
        status=response.status,
        fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        content_type=(response.headers.get("Content-Type") or b"").decode("latin-1"),
        title=title(page.selector) if page else "",
        text=elements.text(page, extractor) if page else "",
        links=links(page) if page else [],
        sha256=hashlib.sha256(response.body).hexdigest(),
        html=response.text if html and isinstance(response, TextResponse) else None,
    )


def by_trafilatura(source: str) -> str:
    """The text that trafilatura finds in a page, without its comments; "" where it finds none."""
    import trafilatura  # of the extra `text`

    try:
        return trafilatura.extract(source, include_comments=False) or ""
    except Exception as error:  # whatever trafilatura and lxml make of what the site sent
        logger.info("trafilatura cannot read a page: %s", type(error).__name__)
        return ""


def is_html(response: Response) -> bool:
    media_type = (response.headers.get("Content-Type") or b"").split(b";")[0].strip().lower()
    return media_type in (b"text/html", b"application/xhtml+xml")


def title(selector: Selector) -> str:
    """The document's title, else its first heading."""
    for element in selector.xpath("//head/title | //h1"):
        text = _folded("".join(element.xpath(".//text()").getall()))
        if text:
            return text
    return ""


def links(response: TextResponse) -> list[str]:
    """The http and https links of a page, without fragments."""
    urls: dict[str, None] = {}
    for href in response.css("a[href]::attr(href), area[href]::attr(href)").getall():
        try:
            url = response.urljoin(href.strip()).partition("#")[0]
        except ValueError:  # a malformed address, e.g. "http://[x"
            continue
        if url.startswith(("http://", "https://")):
            urls[url] = None
    return list(urls)


def _folded(text: str) -> str:
    return " ".join(text.split())
