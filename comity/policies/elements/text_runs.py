"""The texts of a document in their order, each with the covered elements around it.

    Pieces(content, parts, denied, url)

A covered element begins a scope, so scopes are nested like their elements. The time is linear in
the document, for any depth of elements and any number of elements that cover the same text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies.document.document import Content
from comity.policies.document.json_documents import JsonPath
from comity.policies.syntax.urls import base_url
from comity.policies.syntax.xml_tree import attributes

# URLs that are listed for all elements of a page together.
MAX_URLS = 50_000

# Scope of text outside of all covered elements.
OUTSIDE = 0
# Scope of text of unknown origin. It counts as inside every element with a refusal.
UNKNOWN = 1

# Elements without visible text.
_UNSEEN = frozenset(("script", "style"))
# Attributes that contain a URL.
_ADDRESSES = frozenset(("href", "src", "poster", "data", "action", "cite", "longdesc"))
# Attributes that never contain a URL.
_PLAIN_NAMES = frozenset(("class", "id", "title", "alt", "rel"))
# Other attributes (e.g. of images that scripts load) and texts of JSON and XML are URLs if they are
# paths or names of files.
_FILE_TYPES = "jpe?g|png|gif|webp|avif|svg|bmp|ico|tiff?|mp[34]|m4[av]|webm|og[agv]|wav|mov|pdf"
_LIKE_ADDRESS = re.compile(
    rf"\s*+(?=\S++\s*+\Z)(?:(?:https?:)?/|\.{{1,2}}/|\S+\.(?:{_FILE_TYPES})(?=\s|[?#]|\Z))",
    re.IGNORECASE,
)
# URLs inside a value, e.g. of JSON and CSS.
_WITHIN = re.compile(r"https?://[^\s\"'<>()\\]+|(?<=url\()\s*[\"']?[^\"')]+", re.IGNORECASE)
# Beginnings of a text with spaces that counts as a URL.
_WEB = ("http://", "https://", "/")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(?::[0-9]+)?(?=/)")
# Paths that can be appended to an origin without parsing.
_PLAIN = re.compile(r"(?:/[a-zA-Z0-9_-][a-zA-Z0-9._-]*)+")


# The scope of a text, the text, and its kind: "flow" for running text, "script" for the running
# text of scripts and styles, "apart" for a text that stands alone, "url" for a URL as written.
# Plain tuples, because a page has thousands of them.
Piece = tuple[int, str, str]


class Urls(NamedTuple):
    """The URLs in elements.

    Attributes:
        by_element: number of an element -> its http and https URLs, each once.
        is_complete: False if there are more than MAX_URLS in all."""

    by_element: Mapping[int, tuple[str, ...]]
    is_complete: bool


def may_have_addresses(content: Content) -> bool:
    """Return False for a JSON document without URLs, which need not be searched."""
    return content.kind != "json" or any(mark in content.octets for mark in (b"/", b".", b"\\"))


class Pieces:
    """Every text of one document.

    Attributes:
        url: absolute URL of the page.
        base: absolute URL that relative URLs are resolved against.
        is_denied: for each scope, whether an element around its texts has a refusal.
        sizes: for each scope, the number of elements around its texts."""

    def __init__(
        self,
        content: Content,
        parts: Mapping[int, Sequence[Any]],
        denied: Collection[int],
        url: str,
    ) -> None:
        """Collect the texts.

        Args:
            content: the document.
            parts: number of an element -> its nodes in the document. In JSON: its places
                (`Covered.places`).
            denied: numbers of the elements with a refusal.
            url: absolute URL of the page."""
        self._content = content
        self._kind = content.kind
        self.url = url
        self._denied = frozenset(denied)
        # Node of a tree, or place in JSON -> numbers of elements.
        self._numbers: dict[Any, tuple[int] | list[int]] = {}
        for number, nodes in parts.items():
            alone = (number,)  # shared by all nodes with this element alone, the usual case
            for node in nodes:
                known = self._numbers.setdefault(node, alone)
                if isinstance(known, list):
                    known.append(number)
                elif known is not alone:
                    self._numbers[node] = [*known, number]
        self._scopes: dict[Any, int] = {}  # node, as in _numbers -> the scope that it begins
        # Id of an object or array of JSON -> the range of scopes that begin in it.
        self._within: dict[int, tuple[int, int]] = {}
        # By scope: the scope around it, the elements that begin it, whether one of the elements
        # around it has a refusal, and the number of elements around it.
        self._around = [OUTSIDE, OUTSIDE]
        self._beginning: list[Collection[int]] = [(), self._denied]
        self.is_denied = [False, True]
        self.sizes = [0, len(self._denied)]
        self.base = base_url(content.text, url) if content.is_html else url
        origin = _ORIGIN.match(self.base)
        self._origin = origin[0] if origin else ""
        self._absolute: dict[str, tuple[str, ...]] = {}
        self._all = self._of_json() if self._kind == "json" else self._of_tree()

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._all)

    @cached_property
    def root(self) -> Any:
        """The root of HTML or XML (lxml)."""
        return self._content.markup.root if self._kind == "html" else self._content.xml.root

    def elements(self, scopes: Iterable[int]) -> frozenset[int]:
        """Return the elements whose scopes are these scopes, or around them."""
        elements: set[int] = set()
        seen = {OUTSIDE}
        for scope in scopes:
            while scope not in seen:
                seen.add(scope)
                elements.update(self._beginning[scope])
                scope = self._around[scope]  # outwards
        return frozenset(elements)

    def scopes_of_node(self, node: Any) -> Iterator[int]:
        """Yield the scope around a node of the document, and the scopes that begin in it."""
        if isinstance(node, tuple):
            yield from self._scopes_of_path(node)
        else:
            scope, first, end = self._extents.get(node, (UNKNOWN, 0, 0))
            yield scope
            yield from range(first, end)

    def _scopes_of_path(self, path: JsonPath) -> Iterator[int]:
        value: Any = self._content.json.value
        scope = OUTSIDE
        for step in path:
            scope = self._scopes.get((id(value), step), scope)
            value = value[step]
        yield scope
        yield from range(*self._within.get(id(value), (0, 0)))

    @cached_property
    def _extents(self) -> Mapping[Any, tuple[int, int, int]]:
        """Node of a tree -> the scope around it, and the range of scopes that begin in it."""
        extents: dict[Any, tuple[int, int, int]] = {}
        waiting: list[tuple[int, int]] = [(OUTSIDE, 0)]
        end = UNKNOWN + 1
        for event, node in etree.iterwalk(self.root, events=("start", "end", "comment", "pi")):
            if event == "start":
                waiting.append((self._scopes.get(node, waiting[-1][0]), end))
                end += node in self._scopes
            elif event == "end":
                extents[node] = (*waiting.pop(), end)
            else:
                extents[node] = waiting[-1][0], 0, 0
        return extents

    def absolute(self, address: str) -> tuple[str, ...]:
        """Return the absolute URL of a URL as written, and the one without its fragment."""
        urls = self._absolute.get(address)
        if urls is None:
            if self._origin and _PLAIN.fullmatch(address):
                urls = (self._origin + address,)
            else:
                try:
                    url = urljoin(self.base, address.strip())
                except ValueError:
                    url = ""
                urls = tuple(dict.fromkeys(filter(None, (url, url.partition("#")[0]))))
            self._absolute[address] = urls
        return urls

    @cached_property
    def urls(self) -> Urls:
        """The URLs of all elements."""
        return self.urls_outside(frozenset())

    def urls_outside(self, removed: frozenset[int]) -> Urls:
        """Return the URLs of the elements that are outside of the removed elements."""
        by_element: dict[int, dict[str, None]] = {}
        budget = MAX_URLS
        for scope, text, kind in self._all:
            if kind == "url" and scope != OUTSIDE:
                urls = [
                    url for url in self.absolute(text) if url.startswith(("http://", "https://"))
                ]
                budget -= self.sizes[scope] * len(urls)
                if budget < 0:
                    break
                numbers = self.elements((scope,)) if urls else frozenset()
                for number in numbers if removed.isdisjoint(numbers) else ():
                    by_element.setdefault(number, {}).update(dict.fromkeys(urls))
        return Urls({number: tuple(urls) for number, urls in by_element.items()}, budget >= 0)

    def _begin(self, around: int, numbers: Collection[int]) -> int:
        """Begin a scope, and return its number."""
        self._around.append(around)
        self._beginning.append(numbers)
        self.is_denied.append(self.is_denied[around] or not self._denied.isdisjoint(numbers))
        self.sizes.append(self.sizes[around] + len(numbers))
        return len(self._around) - 1

    def _of_json(self) -> list[Piece]:
        """Return the pieces, in the order of the document."""
        pieces: list[Piece] = []
        add, numbers, scopes = pieces.append, self._numbers, self._scopes
        # The surrounding containers: holder, members, scope, whether it is an object, first scope.
        stack: list[tuple[int, Iterator[tuple[Any, Any]], int, bool, int]] = []
        members: Iterator[tuple[Any, Any]] = iter([("", self._content.json.value)])
        holder, outer, is_named, first = 0, OUTSIDE, False, len(self._around)
        while True:
            for key, value in members:
                place, scope = (holder, key), outer
                if place in numbers:
                    scope = scopes[place] = self._begin(outer, numbers[place])
                if is_named:
                    add((scope, key, "apart"))
                kind: type = type(value)
                if kind is str:
                    add((scope, value, "apart"))
                    if _is_like_address(value):
                        add((scope, value, "url"))
                elif kind is dict or kind is list:
                    stack.append((holder, members, outer, is_named, first))
                    members = iter(value.items() if kind is dict else enumerate(value))
                    holder, outer, is_named, first = (
                        id(value),
                        scope,
                        kind is dict,
                        len(self._around),
                    )
                    break
                else:  # numbers and constants are not URLs
                    add((scope, _number_text(value), "apart"))
            else:
                if len(self._around) > first:
                    self._within[holder] = first, len(self._around)
                if not stack:
                    return pieces
                holder, members, outer, is_named, first = stack.pop()

    def _of_tree(self) -> list[Piece]:
        """Return the pieces, in the order of the document."""
        root, numbers, is_xml = self.root, self._numbers, self._kind == "xml"
        known = {} if is_xml else self._content.attributes
        pieces: list[Piece] = []
        add = pieces.append
        for node in reversed([*root.itersiblings(preceding=True)]):
            add((OUTSIDE, node.text or "", "apart"))
        around: list[tuple[int, str]] = []  # scope and kind around each open element
        scope, kind = OUTSIDE, ""
        for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
            if event == "start":
                around.append((scope, kind))
                if node in numbers:
                    scope = self._scopes[node] = self._begin(scope, numbers[node])
                for name, value in attributes(node) if is_xml else known.get(node, ()):
                    add((scope, value, "apart"))
                    if name in _ADDRESSES:
                        add((scope, value, "url"))
                    elif name not in _PLAIN_NAMES:
                        for address in _addresses(name, value):
                            add((scope, address, "url"))
                kind = "script" if node.tag in _UNSEEN else "flow"
                if (text := node.text) and not text.isspace():
                    add((scope, text, kind))
                    if is_xml and _is_like_address(text):
                        add((scope, text, "url"))
                continue
            if event == "end":
                scope, kind = around.pop()
            else:
                add((scope, node.text or "", "apart"))
            if (tail := node.tail) and node is not root and not tail.isspace():
                add((scope, tail, kind))
        for node in root.itersiblings():
            add((OUTSIDE, node.text or "", "apart"))
        return pieces


def _number_text(value: Any) -> str:
    """Return a number or a constant as JSON writes it. `json.dumps` is ten times slower."""
    if value is True or value is False or value is None:
        return "null" if value is None else "true" if value else "false"
    if type(value) is int:
        return int.__repr__(value)
    return float.__repr__(value) if isfinite(value) else json.dumps(value)


def _is_like_address(text: str) -> bool:
    if "/" not in text and "." not in text:
        return False
    return text.lstrip().startswith(_WEB) or _LIKE_ADDRESS.match(text) is not None


def _addresses(name: str, value: str) -> Iterable[str]:
    """Return the URLs in an attribute, as written."""
    name = name.rpartition("}")[2].rpartition(":")[2].lower()
    if name.endswith("srcset"):
        return [candidate.split()[0] for candidate in value.split(",") if candidate.strip()]
    if name in _ADDRESSES or (name != "style" and _is_like_address(value)):
        return (value,)
    if "/" in value or "(" in value:
        return [
            address.lstrip(" \t\r\n\"'") for address in _WITHIN.findall(value.replace("\\/", "/"))
        ]
    return ()
