"""The item that the ready spiders make of a page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scrapy.http import Response, TextResponse

from comity.crawler import elements
from comity.dataset.tagging.page_fields import Extractor, is_html, links, title
from comity.policies.syntax.urls import base_url

_OF_NO_ELEMENT = {elements.CSS: ""}


@dataclass(slots=True, kw_only=True)
class PageItem:
    """One page. `text`, `title` and `links` are those of HTML; of anything else they are empty."""

    url: str = field(metadata=_OF_NO_ELEMENT)  # that was asked for
    final_url: str = field(metadata=_OF_NO_ELEMENT)  # that answered, after redirects
    status: int = field(metadata=_OF_NO_ELEMENT)
    fetched_at: str = field(metadata=_OF_NO_ELEMENT)  # ISO 8601, UTC
    content_type: str = field(
        metadata=_OF_NO_ELEMENT
    )  # as the server said, "" where it said nothing
    title: str
    text: str  # the main text, a line a block; with an extractor, as that has it
    links: list[str]  # absolute, each once, in the order of the page
    sha256: str = field(metadata=_OF_NO_ELEMENT)  # of the body, hexadecimal
    html: str | None = None  # the page as it came, where it is asked for
    permissions: dict[str, Any] = field(
        default_factory=dict
    )  # what may be done with it; comity writes it


def page_item(
    response: Response, *, html: bool = False, extractor: Extractor | None = None
) -> PageItem:
    """The item of a response, without its permissions. `extractor`: None for comity's own."""
    request = response.request
    first_url = request.meta.get("redirect_urls", [request.url])[0] if request else response.url
    content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
    page = response if isinstance(response, TextResponse) and is_html(content_type) else None
    return PageItem(
        url=first_url,
        final_url=response.url,
        status=response.status,
        fetched_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        content_type=content_type,
        title=title(page.selector) if page else "",
        text=elements.text(page, extractor) if page else "",
        links=links(page.selector, base_url(page.text[:4096], page.url, page.encoding))
        if page
        else [],
        sha256=hashlib.sha256(response.body).hexdigest(),
        html=response.text if html and isinstance(response, TextResponse) else None,
    )
