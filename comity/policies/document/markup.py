"""HTML and XML documents as trees of lxml.

    Html(text)      HTML as browsers build it (HTML Standard, section-13.2), with implied, misnested
                    and unclosed tags, and with content behind `</html>`
    Xhtml(text)     well-formed XHTML, with the element names of HTML
    Xml(octets)     other XML

Each has a `root`, the `tags` with some names and their lines, and its octets `without` some
elements.

turbohtml implements the algorithm. It writes the tree as XML, and lxml reads this XML, which takes
a fifth of the time of creating the elements one by one. Scripting is on around a `noscript`, as in
browsers, and off inside it, so its content is in the tree. The content of `template` is in the tree
too. Only invalid XML raises an error (XMLSyntaxError of lxml, ValueError)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from html import escape
from html.entities import html5
from itertools import islice
from typing import Any, NamedTuple, Protocol

import turbohtml
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies.document.selector_index import PLAIN_NAME, tree_name
from comity.policies.syntax.xml_tree import local_name, plain_attributes

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
_NOSCRIPT = re.compile(r"<noscript[\s/>]", re.IGNORECASE)
# A form feed is white space in HTML, and not allowed in XML.
_FORM_FEED = re.compile(r"\f|&#(?:0*+12(?!\d)|[xX]0*+[cC](?![0-9a-fA-F]));?")
_AS_XML = turbohtml.Html(xml=True)

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


class MarkupTag(NamedTuple):
    """An element that may contain a statement.

    Attributes:
        name: its name.
        attributes: name in lower case -> value.
        text: its own text and that of the elements in it.
        line: 1-based line where its start tag begins. 0: unknown.
        text_line: 1-based line where its text begins. 0: unknown."""

    name: str
    attributes: Mapping[str, str]
    text: str
    line: int
    text_line: int


# Id of an element -> the lines where its start tag begins and ends, and the element itself, which
# keeps the id valid. The key is not the element, because most elements have equal hashes.
Lines = dict[int, tuple[int, int, turbohtml.Element]]


class Markup(Protocol):
    """A document as a tree of lxml."""

    @property
    def root(self) -> Any:
        """The root of the tree (lxml)."""

    @property
    def is_quirky(self) -> bool:
        """True if classes and identifiers are compared without regard to case."""

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        """Yield the elements with these names, in the order of the document."""

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        """Return the document without these elements of the tree."""


class Html:
    """HTML. Any text is valid HTML."""

    def __init__(self, text: str) -> None:
        self._lines: Lines = {}  # of the elements in `noscript`
        self._text = _limit_merged_tags(
            _FORM_FEED.sub(" ", text) if "\f" in text or "&#" in text else text
        )

    @cached_property
    def _document(self) -> turbohtml.Document:
        return _parse(self._text, self._lines)

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        for element in self._document.find_all([*names]):
            # turbohtml splits lists of words; only `attr` returns them as written, but is slow.
            values = {
                name: value if isinstance(value, str) else element.attr(name) or ""
                for name, value in element.attrs.items()
            }
            yield MarkupTag(
                element.tag,
                values,
                element.text,
                *(_lines(element) or self._lines.get(id(element), (0, 0))[:2]),
            )

    @cached_property
    def is_quirky(self) -> bool:
        """True if the doctype asks for quirks mode (section-13.2.6.4.1)."""
        return _parse(f"{_doctype(self._document)}<p><table>").select_one("p > table") is not None

    @cached_property
    def root(self) -> Any:
        document = self._document
        elements = [*document.iter_elements()]
        if not all(map(PLAIN_NAME.fullmatch, {element.tag for element in elements})):
            for element in elements:
                if not PLAIN_NAME.fullmatch(element.tag):
                    element.tag = tree_name(element.tag)
        if "xmlns" in self._text.lower():
            for element in elements:
                for name in [name for name in element.attrs if name.startswith("xmlns")]:
                    del element.attrs[name]
        parser = etree.XMLParser(
            recover=True, huge_tree=True, resolve_entities=False, no_network=True, load_dtd=False
        )
        parts = (
            node.serialize(_AS_XML)
            for node in document.children
            if not isinstance(node, turbohtml.Doctype)
        )
        return _as_in_html(etree.fromstring("".join(parts).encode("utf-8", "replace"), parser))

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        document = _parse(self._text)
        positions = {node: position for position, node in enumerate(self.root.iter("*"))}
        elements = [*document.iter_elements()]
        for node in nodes:
            elements[positions[node]].decompose()
        doctype = _doctype(document)
        parts = (
            doctype if isinstance(node, turbohtml.Doctype) else node.serialize()
            for node in document.children
        )
        return "".join(parts).encode(encoding, "xmlcharrefreplace")


def _parse(text: str, lines: Lines | None = None) -> turbohtml.Document:
    """Return the document, and add the lines of the elements in `noscript` to `lines`.

    None: lines are not needed."""
    has_lines = lines is not None
    document = turbohtml.parse(
        text, source_locations=has_lines, scripting=True, allow_declarative_shadow_roots=False
    )
    for element in [*document.find_all(["noscript"])] if _NOSCRIPT.search(text) else ():
        if element.namespace is not turbohtml.Namespace.HTML:
            continue
        content = turbohtml.parse_fragment(element.text, "noscript", source_locations=has_lines)
        # A `noscript` cannot contain another one, because scripting is on around it.
        for inner in [*content.find_all(["noscript"])]:
            inner.unwrap()
        lines_within = [_lines(inner) for inner in content.iter_elements()] if has_lines else ()
        element.clear()
        element.extend([*content.children])
        _, before = _lines(element) or (0, 0)
        for inner, lines_of_inner in zip(element.iter_elements(), lines_within, strict=False):
            if lines_of_inner and lines is not None:
                begin, end = lines_of_inner
                lines[id(inner)] = begin + before - 1, end + before - 1, inner
    return document


def _lines(element: turbohtml.Element) -> tuple[int, int] | None:
    """Return the lines where the start tag of an element begins and ends; None: unknown."""
    start = element.source_location.start_tag if element.source_location else None
    return (start.start_line, start.end_line) if start else None


def _doctype(document: turbohtml.Document) -> str:
    """Return the doctype with its identifiers; "": there is none.

    The identifiers decide about quirks mode, but turbohtml does not write them."""
    doctype = next(
        (node for node in document.children if isinstance(node, turbohtml.Doctype)), None
    )
    if doctype is None:
        return ""
    literals = [
        f"'{identifier}'" if '"' in identifier else f'"{identifier}"'
        for identifier in (doctype.public_id, doctype.system_id)
        if identifier is not None
    ]
    keyword = ("PUBLIC",) if doctype.public_id is not None else ("SYSTEM",) if literals else ()
    return f"<!DOCTYPE {' '.join((doctype.name or '', *keyword, *literals))}>"


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
