"""HTML and XML documents as trees of lxml.

    Html(text)      HTML as browsers build it (HTML Standard, section-13.2), with implied, misnested
                    and unclosed tags, and with content behind `</html>`
    Xhtml(text)     well-formed XHTML, with the element names of HTML
    Xml(octets)     other XML

Each has a `root`, the `tags` with some names and their lines, and its octets `without` some
elements.

The parser of HTML (html) writes its tree as XML, and lxml reads this XML, which takes a
fifth of the time of creating the elements one by one. Only invalid XML raises an error
(XMLSyntaxError of lxml, ValueError)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from html import escape
from html.entities import html5
from itertools import islice
from typing import Any, Protocol, TypeVar

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies.document.html import parse
from comity.policies.document.html.tree import HtmlTree, MarkupTag, UnreadError
from comity.policies.syntax.xml_tree import local_name, plain_attributes

T = TypeVar("T")

SPEC = "https://html.spec.whatwg.org/multipage/parsing.html"

# Characters of the `html` and `body` tags of a page, if there are several of one kind.
MAX_MERGED = 20_000

# section-13.2.6.4.7: further `html` and `body` tags add attributes to the first, which takes a time
# that grows with the square of their number.
_MERGED = re.compile(r"<(?=(?:html|body)[\s/>])", re.IGNORECASE)
_START_TAG = re.compile(  # section-13.2.5.32 and those after it
    r"<[a-z]++(?:[\s/]++|=?[^\s/>=]++(?:\s*+=\s*+"
    r"(?:\"[^\"]*+\"?|'[^']*+'?|[^\s>\"'][^\s>]*+)?)?)*+",
    re.IGNORECASE,
)
# A form feed is white space in HTML, and not allowed in XML.
_FORM_FEED = re.compile(r"\f|&#(?:0*+12(?!\d)|[xX]0*+[cC](?![0-9a-fA-F]));?")

_XHTML, _SVG, _MATHML = (
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1998/Math/MathML",
)
_OF_HTML = tuple(
    f"{{{name}}}*" for name in (_XHTML, _SVG, _MATHML, "http://www.w3.org/XML/1998/namespace")
)
_DECLARATION = re.compile(r"\s*+<\?xml\s[^>]*+(?<=\?)>")
_REFERENCE = re.compile(r"&([A-Za-z][A-Za-z0-9]*;)")
_OF_XML = frozenset(("amp;", "lt;", "gt;", "quot;", "apos;"))
_EMPTY_TAG = re.compile(r"<([A-Za-z][\w:.-]*+)((?:\s[^<>]*?)?)/>")
_VOID = frozenset(
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    )
)
# The name of an element that will be removed. No document has elements with this namespace.
_REMOVED = "{https://comity.invalid/}gone"


class Markup(Protocol):
    """A document as a tree of lxml."""

    @property
    def root(self) -> Any:
        """The root of the tree (lxml)."""

    @property
    def is_unread(self) -> bool:
        """True if the parser did not read the document to its end."""

    @property
    def is_quirky(self) -> bool:
        """True if classes and identifiers are compared without regard to case."""

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        """Yield the elements with these names, in the order of the document."""

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        """Return the document without these elements of the tree."""


class Html:
    """HTML. Any text is valid HTML.

    Attributes:
        is_unread: True if the parser did not read the text to its end. The document then has no
            elements, and nothing in it is permission."""

    def __init__(self, text: str) -> None:
        self.is_unread = False
        self._text = _limit_merged_tags(
            _FORM_FEED.sub(" ", text) if "\f" in text or "&#" in text else text
        )

    @cached_property
    def _tree(self) -> HtmlTree:
        return parse(self._text)

    def _read(self, read: Callable[[HtmlTree], T]) -> T:
        """Return what `read` returns for the tree; for the tree of "" if the text is unread."""
        try:
            return read(self._tree)
        except UnreadError:
            self.is_unread = True
            self._tree = parse("")
            return read(self._tree)

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        return iter(self._read(lambda tree: [*tree.tags(*names)]))

    @cached_property
    def is_quirky(self) -> bool:
        """True if the doctype asks for quirks mode (section-13.2.6.4.1)."""
        return self._read(lambda tree: tree.is_quirky)

    @cached_property
    def root(self) -> Any:
        parser = etree.XMLParser(
            recover=True, huge_tree=True, resolve_entities=False, no_network=True, load_dtd=False
        )
        xml = self._read(lambda tree: tree.as_xml())
        return _as_in_html(etree.fromstring(xml.encode("utf-8", "replace"), parser))

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        positions = {node: position for position, node in enumerate(self.root.iter("*"))}
        text = self._read(lambda tree: tree.without([positions[node] for node in nodes]))
        return text.encode(encoding, "xmlcharrefreplace")


def _limit_merged_tags(text: str) -> str:
    """Return the text with few `html` and `body` tags, so that the parser merges them fast.

    If there are too many, those after the first become end tags without an open element."""
    starts = [match.end() for match in islice(_MERGED.finditer(text), MAX_MERGED)]
    if len({text[start].lower() for start in starts}) == len(starts):  # at most one of each
        return text
    size = 0
    for start in starts:
        match = _START_TAG.match(text, start - 1, start + MAX_MERGED)
        size += match.end() - start if match else 0
        if size >= MAX_MERGED:
            return text[: starts[0]] + _MERGED.sub("</", text[starts[0] :])
    return text


def _as_in_html(root: Any) -> Any:
    """Return the tree with the local names of HTML, SVG and MathML."""
    if elements := [*root.iter(*_OF_HTML)]:
        for element in elements:
            element.tag = element.tag.rpartition("}")[2]
        etree.cleanup_namespaces(root)
    return root


class Xml:
    """Well-formed XML.

    It is as strict as XML is: if a reader had to guess, text of an element could end up outside of
    it."""

    is_quirky = False
    is_unread = False

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self.root = self._parse()
        self.encoding = self.root.getroottree().docinfo.encoding or "utf-8"

    def _parse(self) -> Any:
        return etree.fromstring(
            self._octets,
            etree.XMLParser(
                resolve_entities=False, no_network=True, load_dtd=False, strip_cdata=False
            ),
        )

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        for element in self.root.iter(*(f"{{*}}{name}" for name in names)):
            values = {name.lower(): value for name, value in plain_attributes(element).items()}
            yield MarkupTag(
                local_name(element), values, "".join(element.itertext()), element.sourceline or 0, 0
            )

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        document = self._without(nodes).getroottree()
        octets: bytes = etree.tostring(
            document,
            encoding=encoding,
            xml_declaration=True,
            standalone=document.docinfo.standalone,
        )
        return octets

    def _without(self, nodes: Collection[Any]) -> Any:
        root, removed = self._parse(), frozenset(nodes)
        for element, twin in zip(self.root.iter("*"), root.iter("*"), strict=True):
            if element in removed:
                twin.tag = _REMOVED
        etree.strip_elements(root, _REMOVED, with_tail=False)
        return root


class Xhtml(Xml):
    """Well-formed XHTML by the rules of XML: `<script src="a.js"/>` has no content."""

    def __init__(self, text: str) -> None:
        """Parse the text. XMLSyntaxError: it is not well-formed. ValueError: no root `html`."""
        declaration = _DECLARATION.match(text)
        self._declaration = declaration[0].strip() + "\n" if declaration else ""
        text = _REFERENCE.sub(_character, text[declaration.end() :] if declaration else text)
        super().__init__(text.encode("utf-8", "replace"))
        _as_in_html(self.root)
        if self.root.tag != "html":
            raise ValueError("the root is not `html`")

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        text: str = etree.tostring(self._without(nodes).getroottree(), encoding="unicode")
        return (self._declaration + text).encode(encoding, "xmlcharrefreplace")


def with_end_tags(text: str) -> str:
    """Return XML with end tags for empty elements, so that it can be read as HTML.

    In HTML `<script/>` begins a script that goes on to the end of the page."""
    return _EMPTY_TAG.sub(
        lambda match: (
            match[0] if match[1].lower() in _VOID else f"<{match[1]}{match[2]}></{match[1]}>"
        ),
        text,
    )


def _character(reference: re.Match[str]) -> str:
    """Return the character for a reference by an HTML name, escaped so that `&LT;` begins no tag.

    Browsers know these names without the DTD that declares them."""
    name = reference[1]
    return escape(html5[name]) if name in html5 and name not in _OF_XML else reference[0]
