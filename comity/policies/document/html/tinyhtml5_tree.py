"""The tree of tinyhtml5.

tinyhtml5 is written in Python, which takes a hundred times as long as C. So a page counts as unread
if it has more than MAX_CHARACTERS, or nests deeper than browsers do (`tinyhtml5_nodes`), or if one
of its tags is too large (`tinyhtml5_tokens`)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice

from comity.policies.document.html.tinyhtml5_nodes import COMMENT, DOCTYPE, TEXT, Node
from comity.policies.document.html.tinyhtml5_parser import Parser
from comity.policies.document.html.tree import MarkupTag, UnreadError, doctype_text
from comity.policies.document.selector_index import tree_name

MAX_CHARACTERS = 2_000_000
# Depth of the tree, from its root. The tree of turbohtml is at most as deep.
MAX_DEPTH = 513

# Names of attributes that XML has, without those that declare namespaces.
_START = "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
_START += "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_NAME = f"[{_START}][{_START}.0-9\xb7\u0300-\u036f\u203f\u2040-]*+"
_XML_NAME = re.compile(f"(?!xmlns){_NAME}(?::{_NAME})?+")
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_XML_VALUE = _XML_TEXT | str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})
_XLINK = ' xmlns:xlink="http://www.w3.org/1999/xlink"'
# Section-13.3.
_HTML_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\xa0": "&nbsp;"})
_HTML_VALUE = _HTML_TEXT | str.maketrans({'"': "&quot;"})
_RAW = frozenset(("style", "script", "xmp", "iframe", "noembed", "noframes", "plaintext"))
_VOID = frozenset(
    (
        *("area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img"),
        *("input", "keygen", "link", "meta", "param", "source", "track", "wbr"),
    )
)


class Tree:
    """The tree of one text (see `HtmlTree`)."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def _parsed(self) -> tuple[Node, bool]:
        if len(self._text) > MAX_CHARACTERS:
            raise UnreadError
        parser = Parser(self._text)
        document = parser.read()
        for node in [node for node in document.elements() if node.name == "noscript"]:
            _read_noscript(node)
        return document, parser.compatibility_mode == "quirks"

    @property
    def is_quirky(self) -> bool:
        return self._parsed[1]

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._text)]

    def _line(self, offset: int) -> int:
        return bisect_right(self._line_ends, offset - 1) + 1 if offset >= 0 else 0

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        for node in self._parsed[0].elements():
            if node.local in names:
                yield MarkupTag(
                    node.local,
                    node.attributes,
                    node.text,
                    self._line(node.start),
                    self._line(node.end),
                )

    def as_xml(self) -> str:
        parts: list[str] = []
        depth = 0
        for node, begins in self._parsed[0].walk():
            if node.local == TEXT:
                if begins:
                    parts.append(_xml("".join(node.parts), _XML_TEXT))
            elif node.local == COMMENT:
                if begins:
                    parts.append(f"<!--{_xml_comment(node.parts[0])}-->")
            elif node.local != DOCTYPE:
                name = tree_name(node.local)
                depth += 1 if begins else -1
                if depth > MAX_DEPTH:
                    raise UnreadError
                if not begins:
                    parts.append(f"</{name}>" if node.first else "")
                    continue
                xlink = _XLINK if any(name.startswith("xlink:") for name in node.attributes) else ""
                values = "".join(
                    f' {attribute}="{_xml(value, _XML_VALUE)}"'
                    for attribute, value in node.attributes.items()
                    if _XML_NAME.fullmatch(attribute)
                )
                parts.append(f"<{name}{xlink}{values}{'>' if node.first else '/>'}")
        return "".join(parts)

    def without(self, positions: Collection[int]) -> str:
        removed = frozenset(positions)
        document = Tree(self._text)._parsed[0]
        numbered = islice(enumerate(document.elements()), max(removed, default=-1) + 1)
        for node in [node for number, node in numbered if number in removed]:
            node.detach()
        parts = []
        for node, begins in document.walk():
            if begins:
                parts.append(_html_start(node))
            elif node.local[0] != "#" and node.name not in _VOID:
                parts.append(f"</{node.local}>")
        return "".join(parts)


def _read_noscript(node: Node) -> None:
    """Replace the text of a `noscript` by its elements. Their offsets are those of the page."""
    text = node.text
    while node.first:
        node.first.detach()
    root = Parser(text, "noscript").read().first
    if root is None:
        return
    for inner in [*root.elements()]:
        if inner.start >= 0:
            inner.start, inner.end = inner.start + node.end, inner.end + node.end
        # A `noscript` cannot contain another one, because scripting is on around it.
        if inner.local == "noscript" and inner.parent:
            inner.move_children(inner.parent, inner)
            inner.detach()
    root.move_children(node)


def _xml(text: str, escapes: dict[int, str]) -> str:
    return _NOT_XML.sub("", text).translate(escapes)


def _xml_comment(text: str) -> str:
    spaced = re.sub("-(?=-)", "- ", _NOT_XML.sub("", text))
    return spaced + " " if spaced.endswith("-") else spaced


def _html_start(node: Node) -> str:
    """Return the start tag of an element; other nodes as a whole (section-13.3)."""
    if node.local == TEXT:
        text = "".join(node.parts)
        return text if node.parent and node.parent.name in _RAW else text.translate(_HTML_TEXT)
    if node.local == COMMENT:
        return f"<!--{node.parts[0]}-->"
    if node.local == DOCTYPE:
        return _doctype_of(node)
    values = "".join(
        f' {name}="{value.translate(_HTML_VALUE)}"' for name, value in node.attributes.items()
    )
    line_end = "\n" if node.name in ("pre", "textarea", "listing") and _begins_line(node) else ""
    return f"<{node.local}{values}>{line_end}"


def _begins_line(node: Node) -> bool:
    """Return True if the content starts with a line end, which a parser would leave out."""
    first = node.first
    return first is not None and first.local == TEXT and "".join(first.parts).startswith("\n")


def _doctype_of(node: Node) -> str:
    return doctype_text(
        node.parts[0], node.attributes.get("publicId"), node.attributes.get("systemId")
    )
