"""The main text of a page as the ready spiders take it, and where the text of single elements stands in it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from typing import Any

from parsel import Selector

Span = tuple[int, int]  # characters of a text: from the first to past the last

_ROOTS = ("//main | //*[@role='main']", "//article", "//body")
# What a reader would not call the text of the page.
_LEFT_OUT = set("script style noscript template head iframe object svg canvas".split())  # noqa: SIM905  # a list of words
_LEFT_OUT.update("nav header footer aside form button select dialog".split())  # noqa: SIM905
_ROLES_LEFT_OUT = ("navigation", "banner", "contentinfo", "complementary", "search")
# Elements that begin no line of their own.
_INLINE = set("a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q".split())  # noqa: SIM905
_INLINE.update("ruby s samp small span strike strong sub sup time tt u var wbr".split())  # noqa: SIM905

_WORD = re.compile(r"\S+")


def main_text(selector: Selector) -> str:
    """The text of <main>, else of the articles, else of the body; a line a block, white space folded."""
    return main_text_with_spans(selector, ())[0]


def main_text_with_spans(selector: Selector, elements: Collection[Any]) -> tuple[str, Mapping[Any, Span]]:
    """The same, and where each of the elements stands in it, from its first to its last word; those without text are left out.

    `elements`: of the selector's tree. Linear in the page."""
    for query in _ROOTS:
        roots = {root.root for root in selector.xpath(query)}
        if roots:
            raw = _Raw(selector.root, roots, frozenset(elements))
            if any(not part.isspace() for part in raw.parts):
                return raw.folded()
    return "", {}


class _Raw:
    """Texts in the order of the page, with "\\n" around blocks, and where marked elements begin and end in them."""

    def __init__(self, top: Any, roots: Collection[Any], marked: Collection[Any]) -> None:
        """`top`: of the tree; `roots`: the elements whose text is taken."""
        self.parts: list[str] = []
        self._length = 0
        self._begins: dict[Any, int] = {}
        self._ends: dict[Any, int] = {}
        inside = 0  # roots
        stack: list[tuple[Any, bool]] = [(top, False)]  # no recursion: pages nest as deep as they like
        while stack:
            element, is_end = stack.pop()
            if is_end:
                if element in marked:
                    self._ends[element] = self._length
                self._break(inside, element)
                inside -= element in roots
            elif not isinstance(element.tag, str) or (inside and _is_left_out(element)):
                pass
            else:
                inside += element in roots
                self._break(inside, element)
                if element in marked:
                    self._begins[element] = self._length
                self._add(inside, element.text)
                stack.append((element, True))
                stack.extend((child, False) for child in reversed(element))
                continue
            self._add(inside, element.tail)

    def _break(self, inside: int, element: Any) -> None:
        if inside and element.tag not in _INLINE:
            self.parts.append("\n")
            self._length += 1

    def _add(self, inside: int, text: str | None) -> None:
        if inside and text:
            self.parts.append(text.replace("\n", " ").replace("\r", " "))
            self._length += len(text)

    def folded(self) -> tuple[str, dict[Any, Span]]:
        raw = "".join(self.parts)
        if not self._begins:
            return "\n".join(line for line in (" ".join(line.split()) for line in raw.split("\n")) if line), {}
        parts: list[str] = []
        starts, ends, places = [], [], []  # of words: in the raw text, and where they begin in the folded one
        at = length = 0
        for match in _WORD.finditer(raw):
            start, end = match.span()
            if parts:
                parts.append("\n" if raw.find("\n", at, start) >= 0 else " ")
                length += 1
            parts.append(match[0])
            starts.append(start)
            ends.append(end)
            places.append(length)
            at, length = end, length + end - start
        spans = {}
        for element, begin in self._begins.items():
            end = self._ends[element]
            first, last = bisect_right(ends, begin), bisect_left(starts, end) - 1
            if first <= last:
                start = places[first] + max(0, begin - starts[first])
                spans[element] = (start, places[last] + min(end, ends[last]) - starts[last])
        return "".join(parts), spans


def _is_left_out(element: Any) -> bool:
    return element.tag in _LEFT_OUT or element.get("role") in _ROLES_LEFT_OUT or element.get("hidden") is not None
