"""Which parts of a document the values of an item were taken from.

A spider may take anything in any way, so a value counts as free of an element only where it is found in the document outside of
all elements. What is found nowhere, since it was changed or made up, may come from any of them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urljoin

from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from parsel import Selector
from w3lib.html import get_base_url

from comity.policies.content import Content
from comity.policies.covered import covered
from comity.policies.formats.ai_txt import Rule

MAX_PLACES = 1000  # of one text that are looked at
LEAST = 4  # characters, white space aside, of a text whose being found says where it was taken from

FieldSpan = tuple[str] | tuple[str, int] | tuple[str, int, int]  # a value; a member of a list; characters of a text
Parts = frozenset[int]  # numbers of elements

NOWHERE: Parts = frozenset()
_PSEUDO = re.compile(r"::(?:text|attr\([^()]*\))")
_ADDRESSES = ("href", "src", "poster", "data", "action", "cite", "longdesc")  # attributes that hold a URL
_WEB = ("http://", "https://", "//", "/")  # what a text of JSON begins with where it is taken for a URL
_BREAK = "\0"  # what no text goes across


class Origins:
    """Finds values in one document."""

    def __init__(
        self, content: Content, kind: str, parts: Mapping[int, Sequence[Any]], denied: Collection[int], url: str
    ) -> None:
        """`parts`: number of an element -> its nodes in the document. `denied`: those for which something is refused."""
        self._content = content
        self._kind = kind
        self._parts = parts
        self._denied = frozenset(denied)
        self._url = url
        self._by_node: dict[Hashable, set[int]] = {}
        for number, nodes in parts.items():
            for node in nodes:
                self._by_node.setdefault(node, set()).add(number)

    def spans(self, name: str, value: Any, selector: str | None) -> Iterator[tuple[int, FieldSpan]]:
        """Which elements the value of a field has to do with, and which part of the value each of them.

        `selector`: by which it was taken, "": it was taken from no element, None: nobody knows."""
        if selector == "":
            return
        members = value if isinstance(value, list | tuple) else None
        found = self._selected(selector) if selector is not None else []
        if found:
            by_member = members is not None and len(found) == len(members)
            touched = found if by_member else [frozenset().union(*found)]
        else:
            by_member = members is not None
            touched = [self.of(member) for member in members] if members is not None else [self.of(value)]
        for place, numbers in enumerate(touched):
            span: FieldSpan = (name, place) if by_member else (name,)
            yield from ((number, span) for number in sorted(numbers))

    def of(self, value: Any) -> Parts:
        """The elements that a value has to do with."""
        if value is None or (isinstance(value, str) and not value.strip()):
            return NOWHERE
        if isinstance(value, str):
            return self._of_text(value)
        if isinstance(value, bool):
            return self._of_exact(json.dumps(value)) if self._kind == "json" else self._denied
        if isinstance(value, int | float):
            return self._of_text(str(value))
        if isinstance(value, Mapping):
            return NOWHERE.union(*map(self.of, value.values()), *(self._exact.get(_folded(str(key)), NOWHERE) for key in value))
        if isinstance(value, list | tuple | set | frozenset):
            return NOWHERE.union(*map(self.of, value))
        if isinstance(value, Selector):
            return self.of(value.root)
        if isinstance(value, etree._Element):
            return self._of_node(value)
        return self._denied

    # Nodes

    def _selected(self, selector: str) -> list[Parts]:
        """For each node that the selector finds the elements that it is within, or that are within it."""
        element = _PSEUDO.sub("", selector).strip()
        rule = Rule(agents=(), path="/", file_type=self._kind, element=element, verdict=None, actions=frozenset())
        (found,) = covered(self._content, [rule])
        return [self._denied] if found.is_whole else [self._touched(node) for node in found.nodes]

    def _of_node(self, node: Any) -> Parts:
        if node.getroottree().getroot() is not self._root:  # of another reading of the same document
            try:
                (node,) = self._root.getroottree().xpath(node.getroottree().getpath(node))
            except (etree.XPathError, ValueError, AttributeError):
                return self._denied
        return self._touched(node)

    def _touched(self, node: Any) -> Parts:
        if isinstance(node, tuple):  # a path into JSON
            near = [other for other in self._by_node if isinstance(other, tuple) and _is_within(other, node)]
        else:
            near = [other for other in (*node.iterancestors(), *node.iter()) if other in self._by_node]
        return NOWHERE.union(*(self._by_node[other] for other in near))

    # Texts

    def _of_exact(self, text: str) -> Parts:
        return self._exact.get(text, self._denied)

    def _of_text(self, text: str) -> Parts:
        if text.strip() in self._free_addresses:  # it is named outside of all elements, too
            return NOWHERE
        folded = _folded(text)
        if folded in self._exact:
            return self._exact[folded]
        sought = _squeezed(text)
        places = list(self._places(sought))
        if len(places) >= MAX_PLACES:
            return self._denied
        if parts := NOWHERE.union(*(self._between(place, place + len(sought)) for place in places)):
            return parts
        return NOWHERE if len(sought) >= LEAST and (places or sought in self._left) else self._denied

    def _places(self, sought: str) -> Iterator[int]:
        at = self._text.find(sought)
        for _ in range(MAX_PLACES):
            if at < 0:
                return
            yield at
            at = self._text.find(sought, at + 1)

    def _between(self, start: int, end: int) -> Parts:
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        return NOWHERE.union(*self._owners[first : last + 1])

    # The document, once through

    @cached_property
    def _root(self) -> Any:
        return self._content.selector.root if self._kind == "html" else self._content.xml

    @cached_property
    def _pieces(self) -> list[tuple[Parts, str, str]]:
        """Every text of the document in its order: the elements that it is in, itself, and "" or "address"."""
        return list(self._of_json() if self._kind == "json" else self._of_tree())

    def _of_json(self) -> Iterator[tuple[Parts, str, str]]:
        stack: list[tuple[Any, tuple[str | int, ...], Parts]] = [(self._content.json, (), NOWHERE)]
        while stack:
            value, path, parts = stack.pop()
            parts |= self._by_node.get(path, set())
            if isinstance(value, dict):
                stack += [(member, (*path, key), parts) for key, member in reversed(value.items())]
                yield from ((parts | self._by_node.get((*path, key), set()), key, "text") for key in value)
            elif isinstance(value, list):
                stack += [(member, (*path, place), parts) for place, member in reversed(list(enumerate(value)))]
            else:
                text = value if isinstance(value, str) else json.dumps(value)
                yield parts, text, "text"
                if text.startswith(_WEB):
                    yield parts, text, "address"

    def _of_tree(self) -> Iterator[tuple[Parts, str, str]]:
        stack: list[tuple[Any, Parts, bool]] = [(self._root, NOWHERE, False)]
        while stack:
            node, parts, is_tail = stack.pop()
            if is_tail:
                yield parts, node.tail, "flow"
                continue
            own = parts | self._by_node.get(node, set())
            if node.tail and node is not self._root:
                stack.append((node, parts, True))
            if isinstance(node.tag, str):
                for name, value in node.attrib.items():
                    yield own, value, "text"
                    yield from ((own, address, "address") for address in _addresses(name, value))
                if node.text:
                    yield own, node.text, "flow"
                stack += [(child, own, False) for child in reversed(node)]
            elif node.text:  # a comment or an instruction
                yield own, node.text, "text"

    @cached_property
    def _exact(self) -> Mapping[str, Parts]:
        """Text that stands for itself, white space folded -> the elements that it is in, wherever else it stands."""
        exact: dict[str, Parts] = {}
        for parts, text, kind in self._pieces:
            if kind != "address" and (folded := _folded(text)):
                exact[folded] = exact.get(folded, NOWHERE) | parts
        return exact

    @cached_property
    def _free_addresses(self) -> frozenset[str]:
        """Absolute URLs outside of all elements that are refused, the page's own among them."""
        base = _base(self._content, self._url)
        found = {self._url, base}
        for parts, text, kind in self._pieces:
            if kind == "address" and not parts & self._denied:
                found |= _absolute(base, text)
        return frozenset(found)

    @cached_property
    def _flow(self) -> tuple[list[int], list[Parts], str]:
        """Where each piece starts in the text of the document without its white space, whose it is, and that text."""
        starts, owners, texts, at = [0], [NOWHERE], [_BREAK], 1
        base = _base(self._content, self._url)
        for parts, text, kind in self._pieces:
            if kind == "flow":
                squeezed = _squeezed(text)
            else:
                words = _absolute(base, text) if kind == "address" else (_squeezed(text),)
                squeezed = "".join(f"{_BREAK}{word}{_BREAK}" for word in words)
            if squeezed:
                starts.append(at)
                owners.append(parts)
                texts.append(squeezed)
                at += len(squeezed)
        return starts, owners, "".join(texts)

    @property
    def _starts(self) -> list[int]:
        return self._flow[0]

    @property
    def _owners(self) -> list[Parts]:
        return self._flow[1]

    @property
    def _text(self) -> str:
        return self._flow[2]

    @cached_property
    def _left(self) -> str:
        """The running text outside of all elements that are refused: what is left where a spider has cut them out."""
        texts = (text for parts, text, kind in self._pieces if kind == "flow" and not parts & self._denied)
        return "".join(map(_squeezed, texts))


def links_of(nodes: Iterable[Any], content: Content, url: str) -> tuple[str, ...]:
    """The absolute http and https URLs in nodes of the document, each once. `url`: of the page."""
    found: dict[str, None] = {}
    base = _base(content, url)
    for node in nodes:
        for text in _texts_of(content.json, node) if isinstance(node, tuple) else _addresses_of(node):
            found |= dict.fromkeys(sorted(one for one in _absolute(base, text) if one.startswith(("http://", "https://"))))
    return tuple(found)


def _addresses_of(element: Any) -> Iterator[str]:
    for node in element.iter("*"):
        for name, value in node.attrib.items():
            yield from _addresses(name, value)


def _texts_of(value: Any, path: Iterable[str | int]) -> Iterator[str]:
    """The URLs in a part of a JSON document."""
    for step in path:
        value = value[step]
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict | list):
            stack += reversed(list(value.values()) if isinstance(value, dict) else value)
        elif isinstance(value, str) and value.startswith(_WEB):
            yield value


def _addresses(name: str, value: str) -> list[str]:
    """The URLs that an attribute holds, as they are written."""
    name = name.rpartition("}")[2].rpartition(":")[2].lower()
    if name == "srcset":
        return [one.split()[0] for one in value.split(",") if one.strip()]
    return [value] if name in _ADDRESSES else []


def _absolute(base: str, address: str) -> set[str]:
    """With its fragment and without it."""
    try:
        url = urljoin(base, address.strip())
    except ValueError:
        return set()
    return {url, url.partition("#")[0]}


def _base(content: Content, url: str) -> str:
    return str(get_base_url(content.text, url)) if content.is_markup else url


def _is_within(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether one of two paths leads to a part of the other."""
    return all(a == b for a, b in zip(one, other, strict=False))


def _folded(text: str) -> str:
    return " ".join(text.split())


def _squeezed(text: str) -> str:
    return "".join(text.split())
