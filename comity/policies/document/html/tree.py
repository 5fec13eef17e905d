"""What a parser of HTML gives to the rest of comity.

    HtmlTree        the tree of one text, as browsers build it
    MarkupTag       an element that may contain a statement
    UnreadError     the parser does not read this text to its end

Two modules have an `HtmlTree` each: turbohtml_tree and tinyhtml5_tree. The package chooses one.

Scripting is on around a `noscript`, as in browsers, and off inside it, so its content is in the
tree. The content of `template` is in the tree too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, Protocol


class UnreadError(Exception):
    """The text is too long, too deep or too costly for the parser: the page counts as unread."""


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


class HtmlTree(Protocol):
    """The tree of one text.

    Each method raises UnreadError if the parser does not read the text to its end."""

    @property
    def is_quirky(self) -> bool:
        """True if the doctype asks for quirks mode (section-13.2.6.4.1)."""

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        """Yield the elements with these names, in the order of the document."""

    def as_xml(self) -> str:
        """Return the tree as XML, without doctype and namespaces of elements.

        An element whose name is invalid in XML has the name that `tree_name` returns."""

    def without(self, positions: Collection[int]) -> str:
        """Return the document as HTML, without the elements at these positions.

        Positions count the elements in the order of the document, from 0."""


def doctype_text(name: str, public_id: str | None, system_id: str | None) -> str:
    """Return the doctype as HTML. None: it has no such identifier."""
    literals = [
        f"'{identifier}'" if '"' in identifier else f'"{identifier}"'
        for identifier in (public_id, system_id)
        if identifier is not None
    ]
    keyword = ("PUBLIC",) if public_id is not None else ("SYSTEM",) if literals else ()
    return f"<!DOCTYPE {' '.join((name, *keyword, *literals))}>"
