"""The references of a site to its RSL documents (RSL 1.0 section-4.2).

    in_robots(lines, groups, text)     the License lines of robots.txt
    in_fields(headers, url)            the Link fields of a response
    in_markup(content, url)            the `link` elements of a page

Every reading of an open point is in docs/rsl.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from comity.policies.document.document import Content
from comity.policies.syntax.link_field import links_in
from comity.policies.syntax.printable import printable
from comity.policies.syntax.records import OF_NO_GROUP
from comity.policies.syntax.urls import resolved
from comity.policies.vocabulary.statement import Location

MEDIA_TYPE = "application/rsl+xml"
# A page that contains or refers to an RSL document has one of these words.
WORDS = (b"application/rsl", b"rsl.xml")
MAX_REFERENCES = 5  # maximum documents that one carrier can refer to
# The maximum number of octets in front of a License line that are searched for an empty line.
MAX_BETWEEN = 4096

# General media types. For these, the name of the file decides whether it is an RSL document.
_XML = ("", "application/xml", "text/xml")


class References(NamedTuple):
    """The documents that one carrier refers to.

    Attributes:
        urls: The absolute URLs of the documents, in the order of the references.
        unread: References without a valid URL, and references beyond MAX_REFERENCES. Their
            documents are not fetched, and license nothing.
    """

    urls: tuple[str, ...] = ()
    unread: tuple[Location, ...] = ()


class _Line(Protocol):
    """A line of robots.txt."""

    @property
    def name(self) -> str: ...  # in lower case
    @property
    def value(self) -> bytes: ...
    @property
    def line(self) -> int: ...
    @property
    def offset(self) -> int: ...  # the start of the line in the text
    @property
    def group(self) -> int: ...  # the number of its group; below 0 if it is in none


def in_robots(lines: Iterable[_Line], groups: Collection[int], text: bytes, url: str) -> References:
    """Return the documents of the License lines in a robots.txt.

    `groups` are the groups that bind the agent. `text` and `url` are those of the robots.txt.
    Lines outside of all groups count only if these groups have no License line (section-4.4.2).
    """
    addresses = [
        (line, line.value.decode("utf-8", "replace")) for line in lines if line.name == "license"
    ]
    addresses = [(line, address) for line, address in addresses if is_address(address)]
    in_groups = [(line, address) for line, address in addresses if line.group in groups]
    deciding = in_groups or _of_no_group(addresses, text)
    return _references(
        (
            _single_address(address),
            Location(line=line.line, text=f"License: {printable(line.value)}", url=url),
            url,
        )
        for line, address in deciding
    )


def is_address(text: str) -> bool:
    """Return True if the value of a License line begins with an address.

    Other values, such as `MIT`, have nothing to do with RSL.
    """
    word = next(iter(text.split(maxsplit=1)), "")
    return "://" in word or word.startswith("/") or word.lower().endswith(".xml")


def _single_address(address: str) -> str | None:
    """Return the address, or None if more text follows it, because the meaning is then unknown."""
    return None if re.search(r"\s", address) else address


def _of_no_group(
    addresses: Iterable[tuple[_Line, str]], text: bytes
) -> Iterator[tuple[_Line, str]]:
    """Yield the lines outside of all groups.

    LENIENT: by the grammar, a License line after the last group belongs to this group. If an empty
    line separates it from the rules of the group, it counts as outside.
    """
    # The offset of the previous line in `addresses`, and its result of `_is_set_apart`.
    offset_before, is_apart = 0, False
    for line, address in addresses:
        start = max(offset_before, line.offset - MAX_BETWEEN)
        is_apart = _is_set_apart(
            text[start : line.offset], otherwise=is_apart and start == offset_before
        )
        offset_before = line.offset
        if line.group < 0 or is_apart:
            yield line, address


def _is_set_apart(before: bytes, *, otherwise: bool) -> bool:
    """Return True if the last line of the octets is empty.

    Comments, Sitemap lines and License lines at the end are skipped first. If no other line is
    left, the result is `otherwise`.
    """
    for line in reversed(before.splitlines()):
        word = line.strip().lower()
        if not word.startswith(OF_NO_GROUP):
            return not word
    return otherwise


def in_fields(headers: Iterable[tuple[bytes, bytes]], url: str) -> References:
    """Return the documents of the Link fields of a response (section-4.5).

    `url` is the URL of the response.
    """
    links: list[tuple[str, Location, str]] = []
    for name, value in headers:
        if name.lower() == b"link" and b"license" in value.lower():
            for link in links_in(value):
                if "license" in link.relations and _is_rsl(link.media_type, link.target):
                    source = Location(
                        "header Link", text=printable(link.text.encode(errors="replace"))
                    )
                    links.append((link.target.strip(), source, url))
    return _references(links)


def in_markup(content: Content, url: str) -> References:
    """Return the documents of the `link` elements of a page (section-4.6.1).

    `url` is the URL of the page. The page is parsed only if it contains a word of RSL.
    """
    if not content.mentions(*WORDS):
        return References()
    links = [
        (href, Location("link license", text=printable(href.encode(errors="replace"))))
        for kind, href in _rsl_links(content)
    ]
    base = content.base(url) if links else url
    return _references((href, source, base) for href, source in links)


def _rsl_links(content: Content) -> Iterator[tuple[str, str]]:
    return ((kind, href) for kind, href in content.links("license") if _is_rsl(kind, href))


def _is_rsl(media_type: str, address: str) -> bool:
    """Return True if a link leads to an RSL document.

    LENIENT: the media type may be missing or general, such as text/xml, if the path of the address
    ends with `rsl.xml`.
    """
    try:
        return media_type == MEDIA_TYPE or (
            media_type in _XML and urlsplit(address.strip()).path.lower().endswith("rsl.xml")
        )
    except ValueError:
        return False


def _references(links: Iterable[tuple[str | None, Location, str]]) -> References:
    """Return the documents of links.

    Each link is an address, its location, and the base URL. The address is None if it cannot be
    read. LENIENT: the address may be relative.
    """
    urls: dict[str, None] = {}
    unread: list[Location] = []
    seen: set[tuple[str | None, str]] = set()
    for address, source, base in links:
        if (address, base) in seen:
            continue
        if len(urls) == len(unread) == MAX_REFERENCES:  # both are full
            break
        try:
            url = "" if address is None else resolved(base, address)
        except ValueError:
            url = ""
        if url and (url in urls or len(urls) < MAX_REFERENCES):
            urls[url] = None
            seen.add((address, base))
        elif len(unread) < MAX_REFERENCES:
            unread.append(source)
    return References(tuple(urls), tuple(unread))
