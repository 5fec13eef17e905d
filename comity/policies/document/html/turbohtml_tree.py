"""The tree of turbohtml.

turbohtml implements the algorithm of the HTML Standard in C. It limits the depth of the tree to 513
elements, as browsers do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from html import escape

import turbohtml

from comity.policies.document.html.tree import MarkupTag, UnreadError, doctype_text
from comity.policies.document.selector_index import PLAIN_NAME, tree_name

_NOSCRIPT = re.compile(r"<noscript[\s/>]", re.IGNORECASE)
_AS_XML = turbohtml.Html(xml=True)
_HTML = turbohtml.Namespace.HTML

# Elements of a page, more than its characters. Each `<p>` opens all formatting elements again that
# have no end tag, up to 512, so a hostile page has 25 elements for each character.
MAX_IMPLIED = 1_000

# Id of an element -> the lines where its start tag begins and ends, and the element itself, which
# keeps the id valid. The key is not the element, because most elements have equal hashes.
Lines = dict[int, tuple[int, int, turbohtml.Element]]


class Tree:
    """The tree of one text (see `HtmlTree`)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: Lines = {}  # of the elements in `noscript`

    @cached_property
    def _document(self) -> turbohtml.Document:
        return _parse(self._text, self._lines)

    @cached_property
    def is_quirky(self) -> bool:
        # The tree does not tell whether the doctype is invalid, which asks for quirks mode too.
        source = ""
        if any(isinstance(node, turbohtml.Doctype) for node in self._document.children):
            tokens = turbohtml.tokenize(self._text, capture_source=True)
            doctypes = (token for token in tokens if token.type is turbohtml.TokenType.DOCTYPE)
            source = next(doctypes).source or ""
        return _parse(f"{source}<p><table>").select_one("p > table") is not None

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

    def as_xml(self) -> str:
        document = self._document
        elements = [*document.iter_elements()]
        if len(elements) > len(self._text) + MAX_IMPLIED:
            raise UnreadError
        if not all(map(PLAIN_NAME.fullmatch, {element.tag for element in elements})):
            for element in elements:
                if not PLAIN_NAME.fullmatch(element.tag):
                    element.tag = tree_name(element.tag)
        if "xmlns" in self._text.lower():
            for element in elements:
                for name in [name for name in element.attrs if name.startswith("xmlns")]:
                    del element.attrs[name]
        parts = (
            node.serialize(_AS_XML)
            for node in document.children
            if not isinstance(node, turbohtml.Doctype)
        )
        return "".join(parts)

    def without(self, positions: Collection[int]) -> str:
        document = _parse(self._text)
        elements = [*document.iter_elements()]
        for position in positions:
            elements[position].decompose()
        # turbohtml writes the texts of a `noscript` as they are, as if it had no elements.
        for noscript in document.find_all(["noscript"]):
            for node in noscript.children:
                if isinstance(node, turbohtml.Text) and noscript.namespace is _HTML:
                    node.data = escape(node.data, quote=False)
        doctype = _doctype(document)
        parts = (
            doctype if isinstance(node, turbohtml.Doctype) else node.serialize()
            for node in document.children
        )
        return "".join(parts)


def _parse(text: str, lines: Lines | None = None) -> turbohtml.Document:
    """Return the document, and add the lines of the elements in `noscript` to `lines`.

    None: lines are not needed."""
    has_lines = lines is not None
    document = turbohtml.parse(
        text, source_locations=has_lines, scripting=True, allow_declarative_shadow_roots=False
    )
    for element in [*document.find_all(["noscript"])] if _NOSCRIPT.search(text) else ():
        if element.namespace is not _HTML:
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
    return doctype_text(doctype.name or "", doctype.public_id, doctype.system_id)
