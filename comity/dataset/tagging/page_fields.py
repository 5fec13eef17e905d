"""The fields of a page for the ready spiders and for `dataset tag`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import urljoin

from parsel import Selector

logger = logging.getLogger(__name__)

Extractor = Callable[[str], str]  # the source of a page -> its text


def by_trafilatura(source: str) -> str:
    """Return the text that trafilatura finds in a page, without readers' comments.

    "" if it finds no text, or cannot read the page. `source`: the page."""
    import trafilatura  # a package of the extra `text`

    try:
        return trafilatura.extract(source, include_comments=False) or ""
    except Exception as error:  # trafilatura and lxml may raise anything on hostile input
        logger.info("trafilatura cannot read a page: %s", type(error).__name__)
        return ""


def is_html(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in ("text/html", "application/xhtml+xml")


def title(selector: Selector) -> str:
    """Return the title of a page. If it has none, return its first `h1`. "" if both are missing."""
    for element in selector.xpath("//head/title | //h1"):
        text = " ".join("".join(element.xpath(".//text()").getall()).split())
        if text:
            return text
    return ""


def links(selector: Selector, base_url: str) -> list[str]:
    """Return the absolute http and https links of a page, without fragments and duplicates.

    `base_url`: the URL against which relative links are resolved."""
    urls: dict[str, None] = {}
    for href in selector.css("a[href]::attr(href), area[href]::attr(href)").getall():
        try:
            url = urljoin(base_url, href.strip()).partition("#")[0]
        except ValueError:  # a malformed address, e.g. "http://[x"
            continue
        if url.startswith(("http://", "https://")):
            urls[url] = None
    return list(urls)
