"""What came back for a page or for a resource that goes with it: its text, and elements of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from parsel import Selector
from w3lib.encoding import html_to_unicode

from comity.policies.qualifiers import Extract

_MARKUP = ("", "text/html", "application/xhtml+xml")  # media types; "": the server does not say


class Content:
    """A body with its media type."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        values = (value for name, value in headers if name.lower() == b"content-type")
        self._content_type = next(values, b"").decode("latin-1")
        self.media_type = self._content_type.partition(";")[0].strip().lower()
        self.body = body

    @cached_property
    def text(self) -> str:
        """The body, decoded as the header or the markup says; "" where it is no text."""
        if self.media_type not in _MARKUP and not self.media_type.startswith("text/"):
            return ""
        return html_to_unicode(self._content_type, self.body)[1]

    @cached_property
    def _selector(self) -> Selector:
        return Selector(self.text if self.media_type in _MARKUP else "")

    def extracted(self, extract: Extract) -> str | None:
        """The element's markup, or the content of the `meta`; None where the page has none such."""
        if not extract.name.isprintable():
            return None
        if extract.kind == "meta":
            metas = self._selector.xpath("//meta[@name and @content]")
            named = (meta for meta in metas if meta.attrib["name"].strip().lower() == extract.name.lower())
            return next((meta.attrib["content"] for meta in named), None)
        if extract.kind == "id":
            return self._selector.xpath("//*[@id=$name]", name=extract.name).get()
        has_class = "//*[contains(concat(' ', normalize-space(@class), ' '), concat(' ', $name, ' '))]"
        return self._selector.xpath(has_class, name=extract.name).get()
