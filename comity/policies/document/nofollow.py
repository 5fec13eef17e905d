"""Links that a page marks with rel=nofollow (HTML Standard, link type "nofollow")."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import urljoin

from w3lib.url import canonicalize_url, safe_url_string

from comity.policies.document.document import Content
from comity.policies.syntax.urls import base_url

_BETWEEN = re.compile(
    r"[\s,]+"
)  # LENIENT: by the standard white space alone, but pages write commas
_BASE_WITHIN = 4096  # characters of a page in which Scrapy looks for its `base`


def rel_nofollow(content: Content, url: str) -> frozenset[str]:
    """The URLs that the page links with rel=nofollow only, as `canonical` has them. `url`: of the page.

    The page is parsed only where it has that word."""
    if not content.mentions(b"nofollow"):
        return frozenset()
    base = base_url(content.text[:_BASE_WITHIN], url, content.encoding)
    refused: set[str] = set()
    followed: set[str] = set()
    for rel, address in content.hyperlinks():
        is_refused = "nofollow" in _BETWEEN.split(rel.lower())
        (refused if is_refused else followed).update(_urls(base, address, content.encoding))
    return frozenset(refused - followed)


def canonical(url: str) -> str:
    """Return one of many spellings of a URL, without its fragment."""
    return str(canonicalize_url(url))


def _urls(base: str, address: str, encoding: str) -> set[str]:
    """Return what a spider may ask for by the address: its query in the encoding of the page, or in UTF-8."""
    urls = set()
    for codec in {encoding, "utf-8"}:
        with suppress(ValueError):  # it is no URL, or it cannot be written so
            urls.add(canonical(safe_url_string(urljoin(base, address), codec)))
    return urls
