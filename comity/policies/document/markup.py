"""HTML and XML documents as trees of lxml: HTML as the standard's algorithm builds it, which is what its author saw in a browser.

    Html(text)      HTML Standard, section-13.2: implied, misnested and unclosed tags, and what stands behind `</html>`
    Xhtml(text)     XHTML that is well-formed; its elements are named as those of HTML
    Xml(octets)     other XML
Each has a `root`, the `tags` of some names with their lines, and its octets `without` some elements.

turbohtml has the algorithm; lxml reads the tree from the XML that it writes of it, which takes a fifth of the time of making the
elements one by one. Scripting is on, as in browsers, for what stands around a `noscript`, and off for what stands in it: that is
markup, and stays there. What stands in `template` stands in the tree.
Nothing raises but for XML that is none (XMLSyntaxError of lxml, ValueError)."""

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

MAX_MERGED = 20_000  # characters of the `html` and `body` tags of a page, where there are several of one kind

# section-13.2.6.4.7: further `html` and `body` tags add attributes to the first, which takes a time that grows with the square
# of their number.
_MERGED = re.compile(r"<(?=(?:html|body)[\s/>])", re.IGNORECASE)
_START_TAG = re.compile(  # section-13.2.5.32 and those after it
    r"<[a-z]++(?:[\s/]++|=?[^\s/>=]++(?:\s*+=\s*+(?:\"[^\"]*+\"?|'[^']*+'?|[^\s>\"'][^\s>]*+)?)?)*+",
    re.IGNORECASE,
)
_NOSCRIPT = re.compile(r"<noscript[\s/>]", re.IGNORECASE)
_FORM_FEED = re.compile(
    r"\f|&#(?:0*+12(?!\d)|[xX]0*+[cC](?![0-9a-fA-F]));?"
)  # white space in HTML, and no character of XML
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
_REMOVED = "{https://comity.invalid/}gone"  # an element that is to be cut out; no document has elements of that kind


class Tag(NamedTuple):
    """An element, as far as those who read what a document states need it."""

    name: str
    attributes: Mapping[str, str]  # by names in lower case
    text: str  # its own, and that of what is in it
    line: int  # where it begins, 1-based; 0: nobody knows
    text_line: int  # where its text begins


# Identity of an element -> where its start tag begins and ends, and itself, which keeps the identity its own. Most elements of a
# page have the same hash.
Lines = dict[int, tuple[int, int, turbohtml.Element]]


class Markup(Protocol):
    """A document."""

    @property
    def root(self) -> Any:
        """The tree (lxml)."""

    @property
    def is_quirky(self) -> bool:
        """True where the case of classes and identifiers is of no account."""

    def tags(self, *names: str) -> Iterator[Tag]:
        """The elements of these names, in the order of the document."""

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        """The document without these elements of the tree."""


class Html:
    """HTML; whatever text it is, it is some HTML."""

    def __init__(self, text: str) -> None:
        self._lines: Lines = {}  # of the elements in `noscript`
        self._text = _bounded(_FORM_FEED.sub(" ", text) if "\f" in text or "&#" in text else text)

    @cached_property
    def _document(self) -> turbohtml.Document:
        return _parsed(self._text, self._lines)

    def tags(self, *names: str) -> Iterator[Tag]:
        for element in self._document.find_all([*names]):
            # What is a list of words is there as that, and only `attr` has it as it is written, by a search.
            values = {
                name: value if isinstance(value, str) else element.attr(name) or ""
                for name, value in element.attrs.items()
            }
            yield Tag(
                element.tag,
                values,
                element.text,
                *(_lines(element) or self._lines.get(id(element), (0, 0))[:2]),
            )

    @cached_property
    def is_quirky(self) -> bool:
        """True where the doctype asks for quirks (section-13.2.6.4.1)."""
        return _parsed(f"{_doctype(self._document)}<p><table>").select_one("p > table") is not None

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
        document = _parsed(self._text)
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


def _parsed(text: str, lines: Lines | None = None) -> turbohtml.Document:
    """Return the document. `lines`: those of the elements in `noscript` are added; None: nobody asks for lines."""
    has_lines = lines is not None
    document = turbohtml.parse(
        text, source_locations=has_lines, scripting=True, allow_declarative_shadow_roots=False
    )
    for element in [*document.find_all(["noscript"])] if _NOSCRIPT.search(text) else ():
        if element.namespace is not turbohtml.Namespace.HTML:
            continue
        content = turbohtml.parse_fragment(element.text, "noscript", source_locations=has_lines)
        for inner in [*content.find_all(["noscript"])]:  # none is in another where scripts are run
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
    """Return the lines where the start tag of an element begins and ends; None: nobody knows."""
    start = element.source_location.start_tag if element.source_location else None
    return (start.start_line, start.end_line) if start else None


def _doctype(document: turbohtml.Document) -> str:
    """Return the doctype with its identifiers: they decide of quirks, and the serialization of HTML leaves them out. "": none."""
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


def _bounded(text: str) -> str:
    """The text, with no more `html` and `body` tags than can be merged soon: those after the first end what is not open."""
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
    """The tree with the local names of HTML, SVG and MathML."""
    if elements := [*root.iter(*_OF_HTML)]:
        for element in elements:
            element.tag = element.tag.rpartition("}")[2]
        etree.cleanup_namespaces(root)
    return root


class Xml:
    """XML that is well-formed. As strict as XML is: where a reader has to guess, text of an element may end up outside of it."""

    is_quirky = False

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self.root = self._parsed()
        self.encoding = self.root.getroottree().docinfo.encoding or "utf-8"

    def _parsed(self) -> Any:
        return etree.fromstring(
            self._octets,
            etree.XMLParser(
                resolve_entities=False, no_network=True, load_dtd=False, strip_cdata=False
            ),
        )

    def tags(self, *names: str) -> Iterator[Tag]:
        for element in self.root.iter(*(f"{{*}}{name}" for name in names)):
            values = {name.lower(): value for name, value in plain_attributes(element).items()}
            yield Tag(
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
        root, removed = self._parsed(), frozenset(nodes)
        for element, twin in zip(self.root.iter("*"), root.iter("*"), strict=True):
            if element in removed:
                twin.tag = _REMOVED
        etree.strip_elements(root, _REMOVED, with_tail=False)
        return root


class Xhtml(Xml):
    """XHTML that is well-formed, by the rules of XML: in it `<script src="a.js"/>` is an element without content."""

    def __init__(self, text: str) -> None:
        """ValueError where the root is no `html`."""
        declaration = _DECLARATION.match(text)
        self._declaration = declaration[0].strip() + "\n" if declaration else ""
        text = _REFERENCE.sub(_character, text[declaration.end() :] if declaration else text)
        super().__init__(text.encode("utf-8", "replace"))
        _as_in_html(self.root)
        if self.root.tag != "html":
            raise ValueError("the root is no `html`")

    def without(self, nodes: Collection[Any], encoding: str) -> bytes:
        text: str = etree.tostring(self._without(nodes).getroottree(), encoding="unicode")
        return (self._declaration + text).encode(encoding, "xmlcharrefreplace")


def with_end_tags(text: str) -> str:
    """Return XML to be read as HTML: there `<script/>` begins a script that goes to the end of the page."""
    return _EMPTY_TAG.sub(
        lambda match: (
            match[0] if match[1].lower() in _VOID else f"<{match[1]}{match[2]}></{match[1]}>"
        ),
        text,
    )


def _character(reference: re.Match[str]) -> str:
    """Return the character that a name of HTML means: readers know them without the DTD that declares them. `&LT;` begins no
    tag."""
    name = reference[1]
    return escape(html5[name]) if name in html5 and name not in _OF_XML else reference[0]
