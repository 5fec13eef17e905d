"""Links with rel=nofollow (HTML Standard, link type "nofollow")."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import urljoin

from w3lib.url import canonicalize_url, safe_url_string

from comity.policies.document.document import Content
from comity.policies.syntax.urls import base_url

# LENIENT: by the standard only white space separates, but pages write commas.
_BETWEEN = re.compile(r"[\s,]+")
# Characters of a page in which Scrapy looks for its `base`.
_BASE_WITHIN = 4096


def rel_nofollow(content: Content, url: str) -> frozenset[str]:
    """Return the URLs, in the form of `canonical`, that the page links only with rel=nofollow.

    `url` is the URL of the page. The page is parsed only if it contains that word."""
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
    """Return the canonical form of a URL, without its fragment."""
    return str(canonicalize_url(url))


def _urls(base: str, address: str, encoding: str) -> set[str]:
    """Return the URLs that a spider may request for a link.

    Their queries are in the encoding of the page, or in UTF-8."""
    urls = set()
    for codec in {encoding, "utf-8"}:
        with suppress(ValueError):  # not a URL, or not writable in this encoding
            urls.add(canonical(safe_url_string(urljoin(base, address), codec)))
    return urls
