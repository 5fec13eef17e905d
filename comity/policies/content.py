"""What came back for a page or for a resource that goes with it: its text, and elements of it."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from parsel import Selector
from w3lib.encoding import html_body_declared_encoding, html_to_unicode, http_content_type_encoding

from comity.policies.qualifiers import Extract

_MARKUP = ("", "text/html", "application/xhtml+xml")  # media types; "": the server does not say

# Codecs that Python has and browsers have not: they raise, make half surrogate pairs, or take minutes (punycode).
_CODECS = "base64|bz2|hex|idna|punycode|quopri|raw-unicode-escape|rot-13|undefined|unicode-escape|utf-7|uu|zlib"
_NO_CHARSETS = frozenset(_CODECS.split("|"))

_MAX_SOURCELINE = 65_535  # where old versions of libxml2 stop counting


class Content:
    """A body with its media type."""

    def __init__(
        self, headers: Iterable[tuple[bytes, bytes]], body: bytes, *, parsed: Callable[[str], Selector | None] | None = None
    ) -> None:
        """`parsed`: from a text the tree that somebody else has made of the same text; he may change it later."""
        self._parsed = parsed
        self.headers = tuple(headers)
        values = (value for name, value in self.headers if name.lower() == b"content-type")
        self._content_type = next(values, b"").decode("latin-1")
        self.media_type = self._content_type.partition(";")[0].strip().lower()
        self.body = body

    @property
    def is_markup(self) -> bool:
        return self.media_type in _MARKUP

    @cached_property
    def text(self) -> str:
        """The body, decoded as the header or the markup says; "" where it is no text."""
        return self._decoded[1]

    @cached_property
    def encoding(self) -> str:
        """By which the text is decoded, as Python names it."""
        return self._decoded[0]

    @cached_property
    def _decoded(self) -> tuple[str, str]:
        if not self.is_markup and not self.media_type.startswith("text/"):
            return "utf-8", ""
        declared = http_content_type_encoding(self._content_type) or html_body_declared_encoding(self.body)
        return html_to_unicode("; charset=utf-8" if declared in _NO_CHARSETS else self._content_type, self.body)

    @cached_property
    def selector(self) -> Selector:
        """The markup, parsed once: whoever reads it leaves its tree as it is."""
        shared = self._parsed(self.text) if self._parsed and self.is_markup else None
        if shared is not None:
            return shared
        return Selector(self.text if self.is_markup else "", type="html")  # whatever parsel would guess

    @property
    def own(self) -> Content:
        """The same, with a tree that nobody else has: a copy of that of the markup as it is now."""
        if not self._parsed or not self.is_markup:
            return self
        own = copy.copy(self)
        own._parsed = None
        own.selector = Selector(root=copy.deepcopy(self.selector.root.getroottree()).getroot(), type="html")
        return own

    @cached_property
    def json(self) -> Any:
        """The body as JSON, parsed once. ValueError, RecursionError where it is none, or has a number that no double holds."""
        return json.loads(self.body, parse_float=_finite)

    @cached_property
    def xml(self) -> Any:
        """The root element (lxml) of the body as XML, parsed once. XMLSyntaxError (lxml), ValueError where it is none.

        As strict as XML is: where a reader has to guess, text of an element may end up outside of it."""
        return etree.fromstring(
            self.body, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, strip_cdata=False)
        )

    @cached_property
    def octets(self) -> bytes:
        """In lower case, to search for ASCII: what is not found there need not be parsed for."""
        return self.body.replace(b"\0", b"").lower()  # of UTF-16 and UTF-32 the NULs are left out

    def mentions(self, *words: bytes) -> bool:
        """Whether this is markup that has one of the words, lower-case ASCII: without them it need not be parsed."""
        return self.is_markup and any(word in self.octets for word in words)

    def metas(self) -> Iterator[tuple[str, str]]:
        """Name, lower case, and content of each `meta` that has both."""
        return ((name, content) for name, content, _ in self.metas_by_line())

    def metas_by_line(self) -> Iterator[tuple[str, str, int]]:
        """The same, and the line where each stands.

        Lines are 1-based; 0: nobody knows."""
        return iter(self._metas)

    @cached_property
    def _metas(self) -> tuple[tuple[str, str, int], ...]:
        return tuple(self._read_metas())

    def _read_metas(self) -> Iterator[tuple[str, str, int]]:
        before = self.text[: len(self.text) - len(self.text.lstrip())]  # the parser does not see it
        has_cr = self.text.count("\r") != self.text.count("\r\n")  # nor that these end lines
        for meta in self.selector.root.iter("meta"):
            name, content = meta.get("name"), meta.get("content")
            if name is not None and content is not None:
                line = meta.sourceline
                known = line and line < _MAX_SOURCELINE and not has_cr
                yield name.strip().lower(), content, line + before.count("\n") if known else 0

    def links(self, relation: str) -> Iterator[tuple[str, str]]:
        """Media type, lower case and without parameters, and address of each `link` with that relation."""
        for link in self.selector.root.iter("link"):
            address = link.get("href")
            if address is not None and relation in link.get("rel", "").lower().split():
                yield link.get("type", "").partition(";")[0].strip().lower(), address.strip()

    def hyperlinks(self) -> Iterator[tuple[str, str]]:
        """`rel`, "" where there is none, and address of each `a` and `area` that has one."""
        for link in self.selector.root.iter("a", "area"):
            if (address := link.get("href")) is not None:
                yield link.get("rel", ""), address.strip()

    def scripts(self, media_type: str) -> Iterator[tuple[str, int]]:
        """The text of each `script` element of a type, its line ends as LF, and the line where it starts.

        Lines are 1-based; 0: from the first text that does not stand in the body as it was parsed, nobody knows."""
        return ((text, line) for script_type, text, line in self._scripts if script_type == media_type)

    @cached_property
    def _scripts(self) -> tuple[tuple[str, str, int], ...]:
        """All that have a type, with it."""
        return tuple(self._read_scripts())

    def _read_scripts(self) -> Iterator[tuple[str, str, int]]:
        page, at, line = _with_lf(self.text), 0, 1
        for script in self.selector.root.iter("script"):
            if (script_type := script.get("type")) is not None:
                text = _with_lf(script.text or "")
                place = page.find(">" + text, at)
                if place < 0:
                    place, line = len(page), 0
                else:
                    line += page.count("\n", at, place)
                at = place + 1
                yield script_type.partition(";")[0].strip().lower(), text, line

    def extracted(self, extract: Extract) -> str | None:
        """The element's markup, or the content of the `meta`; None where the page has none such."""
        if not extract.name.isprintable():
            return None
        if extract.kind == "meta":
            return next((content for name, content in self.metas() if name == extract.name.lower()), None)
        if extract.kind == "id":
            return self.selector.xpath("//*[@id=$name]", name=extract.name).get()
        has_class = "//*[contains(concat(' ', normalize-space(@class), ' '), concat(' ', $name, ' '))]"
        return self.selector.xpath(has_class, name=extract.name).get()


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number that could not be written again")
    return number


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")  # the parser leaves NUL out
