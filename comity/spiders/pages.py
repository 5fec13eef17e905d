"""The item of a page, for the ready spiders."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scrapy.http import Response, TextResponse

from comity.crawler import elements
from comity.dataset.tagging.page_fields import Extractor, is_html, links, title
from comity.policies.syntax.urls import base_url

_OF_NO_ELEMENT = {elements.CSS: ""}  # metadata of a field without content of the page


@dataclass(slots=True, kw_only=True)
class PageItem:
    """One page. `title`, `text` and `links` are empty for content other than HTML.

    Attributes:
        url: The requested URL.
        final_url: The URL of the answer, after redirects.
        status: The HTTP status.
        fetched_at: The time of the answer in UTC, in ISO 8601.
        content_type: The media type that the server sent, or "".
        title: The title.
        text: The main text, one block in each line, or the output of another extractor.
        links: The absolute URLs of the links, without duplicates, in the order of the page.
        sha256: The SHA-256 digest of the body, hexadecimal.
        html: The source of the page. None if it was not requested, or is not text.
        permissions: The tag with the permitted uses. comity writes it.
    """

    url: str = field(metadata=_OF_NO_ELEMENT)
    final_url: str = field(metadata=_OF_NO_ELEMENT)
    status: int = field(metadata=_OF_NO_ELEMENT)
    fetched_at: str = field(metadata=_OF_NO_ELEMENT)
    content_type: str = field(metadata=_OF_NO_ELEMENT)
    title: str
    text: str
    links: list[str]
    sha256: str = field(metadata=_OF_NO_ELEMENT)
    html: str | None = None
    permissions: dict[str, Any] = field(default_factory=dict)


def page_item(
    response: Response, *, html: bool = False, extractor: Extractor | None = None
) -> PageItem:
    """Return the item of a response, without its permissions.

    `html`: True to keep the source of the page. `extractor`: extracts the text; None means comity's
    own extractor."""
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
