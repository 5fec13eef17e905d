"""The main text of a page as the ready spiders take it, and the position of elements in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

if TYPE_CHECKING:
    from parsel import Selector

Span = tuple[int, int]  # the first character of a text, and the character after the last

_ROOTS = ("//main | //*[@role='main']", "//article", "//body")
# Elements that a reader would not call part of the page's text.
_LEFT_OUT = set(
    "script style noscript template head iframe object svg canvas".split()  # noqa: SIM905
)
_LEFT_OUT.update("nav header footer aside form button select dialog".split())  # noqa: SIM905
_ROLES_LEFT_OUT = ("navigation", "banner", "contentinfo", "complementary", "search")
# Elements that do not begin a line of their own.
_INLINE = {
    "a",
    "abbr",
    "acronym",
    "b",
    "bdi",
    "bdo",
    "big",
    "cite",
    "code",
    "data",
    "del",
    "dfn",
    "em",
    "font",
    "i",
    "ins",
    "kbd",
    "label",
    "mark",
    "q",
}
_INLINE.update("ruby s samp small span strike strong sub sup time tt u var wbr".split())  # noqa: SIM905


def main_text(selector: Selector) -> str:
    """Return the text of <main>, else of the articles, else of the body.

    Each block is a line. White space is folded."""
    return main_text_with_spans(selector, ())[0]


def main_text_with_spans(
    selector: Selector, elements: Collection[Any]
) -> tuple[str, Mapping[Any, Span]]:
    """Return the main text, and the span of each element in it, from its first to its last word.

    Elements without text in it are left out. `elements` are elements of the selector's tree. The
    time is linear in the page."""
    for query in _ROOTS:
        roots = {root.root for root in selector.xpath(query)}
        if roots:
            raw = _Raw(selector.root, roots, frozenset(elements))
            if any(not part.isspace() for part in raw.parts):
                return raw.fold()
    return "", {}


class _Raw:
    """Texts in the order of the page, with "\\n" around blocks, and positions of marked elements.

    Attributes:
        parts: the texts."""

    def __init__(self, top: Any, roots: Collection[Any], marked: Collection[Any]) -> None:
        """Collect the texts inside `roots`, below `top`."""
        self.parts: list[str] = []
        self._begins: dict[Any, int] = {}  # marked element -> number of parts before it
        self._ends: dict[Any, int] = {}  # marked element -> number of parts before its end
        add = self.parts.append
        inside, skipped = 0, None  # number of roots around the element; the element to leave out
        walk = etree.iterwalk(top, events=("start", "end", "comment", "pi"))
        for event, element in walk:
            tag = element.tag
            if event == "start":
                if inside and _is_left_out(element, tag):
                    skipped = element
                    walk.skip_subtree()
                    continue
                inside += element in roots
                if element in marked:
                    self._begins[element] = len(self.parts)
                if inside:
                    if tag not in _INLINE:
                        add("\n")
                    if text := element.text:
                        add(_one_line(text))
                continue
            if element is skipped:
                skipped = None
            elif event == "end":
                if inside and tag not in _INLINE:
                    add("\n")
                if element in marked:
                    self._ends[element] = len(self.parts)
                inside -= element in roots
            if inside and (text := element.tail):
                add(_one_line(text))

    def fold(self) -> tuple[str, dict[Any, Span]]:
        """Return the text with folded white space, and the spans of the marked elements."""
        raw = "".join(self.parts)
        text = "\n".join(
            line for line in (" ".join(line.split()) for line in raw.split("\n")) if line
        )
        if not self._begins:
            return text, {}
        # Folding changes only white space, so other characters are counted in parts and in words.
        counts = self._counts(sorted({*self._begins.values(), *self._ends.values()}))
        words = [*accumulate(map(len, text.split()))]
        spans = {}
        for element, part in self._begins.items():
            first, last = counts[part], counts[self._ends[element]] - 1
            # The text has a space before a character for each word that ends before it.
            if first <= last:
                spans[element] = (
                    first + bisect_right(words, first),
                    last + bisect_right(words, last) + 1,
                )
        return text, spans

    def _counts(self, positions: Iterable[int]) -> dict[int, int]:
        """Return ascending number of parts -> characters in these parts, without white space."""
        counts, start, count = {}, 0, 0
        for end in positions:
            count += len("".join("".join(self.parts[start:end]).split()))
            start, counts[end] = end, count
        return counts


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace("\r", " ") if "\n" in text or "\r" in text else text


def _is_left_out(element: Any, tag: str) -> bool:
    return (
        tag in _LEFT_OUT
        or element.get("role") in _ROLES_LEFT_OUT
        or element.get("hidden") is not None
    )
