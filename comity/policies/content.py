"""What came back for a page or for a resource that goes with it: its text, and elements of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from parsel import Selector
from w3lib.encoding import html_body_declared_encoding, html_to_unicode, http_content_type_encoding

from comity.policies.qualifiers import Extract

_MARKUP = ("", "text/html", "application/xhtml+xml")  # media types; "": the server does not say

# Codecs that Python has and browsers have not: they raise, make half surrogate pairs, or take minutes (punycode).
_CODECS = "base64|bz2|hex|idna|punycode|quopri|raw-unicode-escape|rot-13|undefined|unicode-escape|utf-7|uu|zlib"
_NO_CHARSETS = frozenset(_CODECS.split("|"))


class Content:
    """A body with its media type."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        values = (value for name, value in headers if name.lower() == b"content-type")
        self._content_type = next(values, b"").decode("latin-1")
        self.media_type = self._content_type.partition(";")[0].strip().lower()
        self.body = body

    @property
    def is_markup(self) -> bool:
        return self.media_type in _MARKUP

    @cached_property
    def text(self) -> str:
        """The body, decoded as the header or the markup says; "" where it is no text."""
        if not self.is_markup and not self.media_type.startswith("text/"):
            return ""
        declared = http_content_type_encoding(self._content_type) or html_body_declared_encoding(self.body)
        return html_to_unicode("; charset=utf-8" if declared in _NO_CHARSETS else self._content_type, self.body)[1]

    @cached_property
    def _selector(self) -> Selector:
        return Selector(self.text if self.is_markup else "")

    def scripts(self, media_type: str) -> Iterator[tuple[str, int]]:
        """The text of each `script` element of a type, its line ends as LF, and the line where it starts.

        Lines are 1-based; 0: from the first text that does not stand in the body as it was parsed, nobody knows."""
        page, at, line = _with_lf(self.text), 0, 1
        for script in self._selector.xpath("//script[@type]"):
            if script.root.get("type").partition(";")[0].strip().lower() == media_type:
                text = _with_lf(script.root.text or "")
                place = page.find(">" + text, at)
                if place < 0:
                    place, line = len(page), 0
                else:
                    line += page.count("\n", at, place)
                at = place + 1
                yield text, line

    def extracted(self, extract: Extract) -> str | None:
        """The element's markup, or the content of the `meta`; None where the page has none such."""
        if not extract.name.isprintable():
            return None
        if extract.kind == "meta":
            metas = self._selector.xpath("//meta[@name and @content]")
            named = (meta.root for meta in metas if meta.root.get("name").strip().lower() == extract.name.lower())
            return next((meta.get("content") for meta in named), None)
        if extract.kind == "id":
            return self._selector.xpath("//*[@id=$name]", name=extract.name).get()
        has_class = "//*[contains(concat(' ', normalize-space(@class), ' '), concat(' ', $name, ' '))]"
        return self._selector.xpath(has_class, name=extract.name).get()


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")  # the parser leaves NUL out
