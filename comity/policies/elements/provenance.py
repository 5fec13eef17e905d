"""The elements from which the values of an item were taken.

A spider can take anything in any way. So a value counts as free of an element only if it is in the
document outside of all refused elements. A value that is not in the document may have been changed
or invented, so it may come from any element."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from parsel import Selector

from comity.policies.answers.element_rule import ElementRule
from comity.policies.document.document import Content
from comity.policies.document.selector_index import Budget, CostError, Outline
from comity.policies.document.selectors import SelectorError, select
from comity.policies.elements.coverage import covered
from comity.policies.elements.spans import MAX_SPANS, FieldSpan
from comity.policies.elements.text_runs import OUTSIDE, UNKNOWN, Pieces
from comity.policies.syntax.xml_tree import attributes

# Fewest characters, without white space, of a text that is searched inside other texts.
LEAST = 4
# Scopes of one text or element that are considered. If there are more, it may come from any scope.
MAX_SCOPES = 1000
# Steps of a declared selector.
MAX_STEPS_OF_SELECTOR = 500_000
# Characters that are searched for one field: less than half a second.
MAX_STEPS = 200_000_000

Scopes = Collection[int]

_NESTING = (Mapping, list, tuple, set, frozenset)
_FREE: Scopes = ()
_ANY: Scopes = (UNKNOWN,)
_STEPS_OF_A_PLACE = 200
_STEPS_OF_MARKUP = 10  # for a character
_ATTRIBUTE = re.compile(r"::attr\(([^()]*)\)(?=\s*(?:,|$))")  # of parsel
_TAG = re.compile(r"<([A-Za-z][\w.-]*(?::[\w.-]+)?)")
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_EMPTY_VALUE = '=""'
_BREAK = "\0"  # between texts: no searched text contains it
# Parsers add these elements, or leave them out.
_IMPLIED = frozenset(("html", "head", "body", "tbody", "thead", "tfoot", "tr", "colgroup"))
# If these elements are misnested, some parsers add more of them (HTML Standard section-13.2.4.3).
# `a` is not in the list, because it contains a URL.
_FORMATTING = frozenset(
    ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
)


StartTag = tuple[str, tuple[tuple[str, str], ...]]


def _start_tag(node: Any) -> StartTag:
    """Return the local name of an element (lxml) and its attributes."""
    pairs = (
        (name.rpartition("}")[2].rpartition(":")[2].lower(), value)
        for name, value in attributes(node)
    )
    return _name(node), tuple(sorted((name, value) for name, value in pairs if name != "xmlns"))


def _name(node: Any) -> str:
    # str(), because the tag of a comment is a function.
    return str(node.tag).rpartition("}")[2].lower()


def _parts(selector: str) -> tuple[str, list[str]]:
    """Return a parsel selector without its `::attr`, and the names of these attributes."""
    return _ATTRIBUTE.sub("", selector).strip(), [
        name.strip() for name in _ATTRIBUTE.findall(selector)
    ]


def _texts_in(node: Any) -> Iterator[str]:
    """Yield the texts and the attribute values in an element (lxml)."""
    for inner in node.iter():
        texts = (
            inner.text,
            inner.tail if inner is not node else None,
            *(value for _, value in attributes(inner)),
        )
        yield from filter(None, texts)


class _Tree:
    """The elements of a tree, with their positions, texts and numbers among equal start tags.

    Attributes:
        alike: start tag -> its elements in the order of the document."""

    def __init__(self, root: Any) -> None:
        self._text, self._extents = _squeeze_tree(root)
        self.alike: dict[StartTag, list[Any]] = defaultdict(list)
        self._number_of: dict[Any, int] = {}
        self._surroundings_of: dict[Any, int] = {}
        self._positions: dict[Any, int] = {}
        self._elements: dict[int, Any] = {}  # position -> element
        children: dict[Any, int] = defaultdict(int)
        for node in root.iter():
            parent = node.getparent()
            position = hash((self._positions.get(parent, 0), children[parent]))
            children[parent] += 1
            if not isinstance(node.tag, str):
                continue
            tag = _start_tag(node)
            self._number_of[node] = len(self.alike[tag])
            self.alike[tag].append(node)
            around = self._surroundings_of.get(parent, 0)
            self._surroundings_of[node] = around if tag[0] in _IMPLIED else hash((around, tag))
            self._positions[node] = position
            self._elements[position] = node

    def counterpart(self, node: Any, other: _Tree) -> Any:
        """Return the element at the position of `node` in another tree; None: there is none."""
        return self._elements.get(other._positions.get(node, -1))

    def number(self, node: Any) -> int:
        """Return the number of an element among those with the same start tag, from 0."""
        return self._number_of[node]

    def surroundings(self, node: Any) -> int:
        """Return a key of the start tags of and around an element, without implied ones."""
        return self._surroundings_of[node]

    def text(self, node: Any) -> int:
        """Return a key of an element's text, without white space, and of its inner start tags.

        Only inner elements with attributes are included: their attributes may be all content that
        the element has. A key is used because the texts of nested elements need much memory."""
        start, end = self._extents[node]
        return hash(self._text[start:end])

    def count(self, node: Any) -> int:
        """Return the number of elements with the same start tag; 0: `node` is not in the tree."""
        return len(self.alike.get(_start_tag(node), ())) if node in self._number_of else 0


def _squeeze_tree(root: Any) -> tuple[str, dict[Any, tuple[int, int]]]:
    """Return the text of a tree without white space, and the range of each element in it.

    The text includes the names of elements that have attributes and that every parser keeps."""
    texts, starts, extents, length = [], list[int](), dict[Any, tuple[int, int]](), 0
    for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "end":
            extents[node] = starts.pop(), length
        elif event == "start":
            name = _name(node)
            if node.attrib and name not in _IMPLIED and name not in _FORMATTING:
                texts.append(f"<{name}>")
                length += len(name) + 2
            starts.append(length)
        text = _squeeze((node.text if event == "start" else node.tail) or "")
        texts.append(text)
        length += len(text)
    return "".join(texts), extents


class Origins:
    """The origins of values in one document."""

    def __init__(self, content: Content, pieces: Pieces) -> None:
        """`pieces` are the texts of the document."""
        self._content = content
        self._kind = content.kind
        self._pieces = pieces
        self._trees: dict[Any, _Tree] = {}  # root of a tree by any parser -> its elements
        # Start tag -> key of a text -> elements of the document.
        self._by_text: dict[StartTag, dict[int, list[Any]]] = {}
        self._scopes_of_twins: dict[int, set[int]] = {}  # id of one of these lists -> its scopes
        # Selector -> the nodes that it selects. None: unknown.
        self._nodes: dict[str, Sequence[Any] | None] = {}

    def elements(self, value: Any) -> frozenset[int]:
        """Return the elements from which a value may come."""
        self._refill()
        return self._pieces.elements(self._scopes_of(value))

    def spans(self, name: str, value: Any, selector: str | None) -> Iterator[tuple[int, FieldSpan]]:
        """Yield the elements from which the value of a field may come, with the part of the value.

        `selector` is the selector of the value. None: it is unknown."""
        self._refill()
        is_list = isinstance(value, list | tuple)
        touched = self._scopes_of_members(value if is_list else [value], selector)
        room, inside, sizes = MAX_SPANS if is_list else 0, list[int](), self._pieces.sizes
        for index, scopes in enumerate(touched):
            size = sum(map(sizes.__getitem__, scopes)) if room >= 0 else 0
            if size:
                room -= size
                inside.append(index)
        if is_list and room >= 0 and len(touched) == len(value):
            for index in inside:
                for number in sorted(self._pieces.elements(touched[index])):
                    yield number, (name, index)
        else:
            different = {id(scopes): scopes for scopes in touched}
            elements = self._pieces.elements(chain.from_iterable(different.values()))
            yield from ((number, (name,)) for number in sorted(elements))

    def _scopes_of_members(self, members: Sequence[Any], selector: str | None) -> list[Scopes]:
        """Return the scopes of each value, or all scopes as one if the values cannot be matched."""
        nodes = self._select(selector) if selector is not None else ()
        if nodes is None:
            return [_ANY]
        if not nodes:
            return [*map(self._scopes_of, members)]
        if len(nodes) == len(members):
            by_node: list[Scopes] = [frozenset(self._pieces.scopes_of_node(node)) for node in nodes]
            if all(map(self._is_of, members, by_node)):
                return by_node
        touched = {scope for node in nodes for scope in self._pieces.scopes_of_node(node)}
        if (
            self._kind == "html"
            and selector
            and not all(self._may_be_of(member, touched) for member in members)
        ):
            try:
                for text in self._texts_in_scrapy(selector):
                    if not self._may_be_of(text, touched):
                        touched.update(scope for scope in self._scopes_of(text) if scope != UNKNOWN)
            except (SelectorError, CostError):
                return [_ANY]
        return [touched]

    def _refill(self) -> None:
        """Restore the budget of steps for one field."""
        self._budget = MAX_STEPS
        self._scopes_of_text: dict[str, Scopes] = {}

    def _scopes_of(self, value: Any) -> Scopes:
        """Return the scopes of a value. Values may be nested deeply, and contain themselves."""
        # Most values are texts, and a check for Mapping is slow.
        if isinstance(value, str):
            if value not in self._scopes_of_text:
                self._scopes_of_text[value] = self._of_text(value)
            return self._scopes_of_text[value]
        if not isinstance(value, _NESTING):
            return self._of_single(value)
        scopes: set[int] = set()
        stack, seen = [value], set()
        while stack:
            value = stack.pop()
            if not isinstance(value, _NESTING):
                scopes.update(self._of_single(value))
            elif id(value) not in seen:
                seen.add(id(value))
                stack += value.values() if isinstance(value, Mapping) else value
                for key in value if isinstance(value, Mapping) else ():
                    scopes.update(self._of_key(key))
        return scopes

    def _of_single(self, value: Any) -> Scopes:
        if isinstance(value, Selector):
            value = value.root
            if isinstance(value, _NESTING):  # of JSON
                return self._scopes_of(value)
        if isinstance(value, bytes):
            try:
                value = value.decode(self._content.encoding)
            except UnicodeDecodeError:
                return _ANY
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            try:
                value = str(value)
            except ValueError:  # Python refuses to write very long numbers
                return _ANY
        if isinstance(value, str):
            return self._scopes_of(value)
        if isinstance(value, bool) and self._kind == "json":
            return self._exact.get(json.dumps(value), _ANY)
        if isinstance(value, etree._Element):
            return self._of_node(value)
        return _FREE if value is None else _ANY

    # Nodes

    def _select(self, selector: str) -> Sequence[Any] | None:
        """Return the nodes that a declared selector selects; None: unknown."""
        if selector not in self._nodes:
            element, names = _parts(selector)
            rule = ElementRule(
                agents=(),
                path="/",
                file_type=self._kind,
                element=element,
                verdict=None,
                actions=frozenset(),
            )
            (coverage,) = covered(self._content, [rule])
            nodes = coverage.nodes
            if names and self._kind != "json":
                nodes = tuple(node for node in nodes if any(name in node.attrib for name in names))
            self._nodes[selector] = None if coverage.is_whole else nodes
        return self._nodes[selector]

    def _is_of(self, value: Any, scopes_of_node: Scopes) -> bool:
        """Return True if a value may come from a node.

        Lists may have been sorted, and several values may come from one node."""
        scopes = self._scopes_of(value)
        if all(scope in scopes_of_node for scope in scopes):
            return True
        is_whole = isinstance(value, str) and (
            value.strip() in self._urls or _fold(value) in self._exact
        )
        if is_whole and any(scope in scopes_of_node for scope in scopes):
            return True  # the value is also in another scope
        self._budget -= _STEPS_OF_A_PLACE * sum(
            self._pieces.sizes[scope] for scope in chain(scopes, scopes_of_node)
        )
        return self._budget >= 0 and self._pieces.elements(scopes) <= self._pieces.elements(
            scopes_of_node
        )

    def _may_be_of(self, value: Any, scopes: set[int]) -> bool:
        """Return True if a value is in these scopes, even if it is in others too."""
        if self._is_of(value, scopes):
            return True
        if isinstance(value, str):
            letters = _squeeze(value)
            return not letters or (
                len(letters) >= LEAST and any(scopes.issuperset(hit) for hit in self._hits(letters))
            )
        return False

    def _of_node(self, node: Any) -> Scopes:
        if twins := self._twins(node):
            return self._scopes_of_any(twins)
        return {scope for text in _texts_in(node) for scope in self._of_single(text)}

    def _texts_in_scrapy(self, selector: str) -> Iterator[str]:
        """Yield the texts of the elements that a selector selects in Scrapy's tree, each once.

        Selected elements may be nested. SelectorError or CostError: the selector cannot be used."""
        element, names = _parts(selector)
        is_own_text = element.endswith("::text") and "," not in element
        seen = set[Any]()
        for node in select(element, Outline(self._scrapy_root, Budget(MAX_STEPS_OF_SELECTOR))):
            if names:
                yield from filter(None, map(node.get, names))
            elif is_own_text:
                yield from filter(None, (node.text, *(inner.tail for inner in node)))
            elif node not in seen:  # outer elements come first
                seen.update(node.iter())
                yield from _texts_in(node)

    @cached_property
    def _scrapy_root(self) -> Any:
        return Selector(self._content.text, type="html").root

    def _scopes_of_any(self, twins: Sequence[Any]) -> Scopes:
        """Return the scopes of all nodes that a node may be. Many may have the same scopes."""
        if len(twins) == 1:
            return set(self._pieces.scopes_of_node(twins[0]))
        if len(twins) > MAX_SCOPES:
            return _ANY
        scopes = self._scopes_of_twins.get(id(twins))
        if scopes is None:
            scopes = self._scopes_of_twins[id(twins)] = {
                scope for twin in twins for scope in self._pieces.scopes_of_node(twin)
            }
        return scopes if len(scopes) <= MAX_SCOPES else _ANY

    def _twins(self, node: Any) -> Sequence[Any]:
        """Return the nodes of the document that a node of another parser's tree may be.

        Parsers put the same start tags at different positions. So the result is the node at the
        same position, if its markup is the same. Otherwise it is the node with the same number
        among equal start tags, if its text and the tags around it are the same: browsers move
        elements out of a table, and these come before the elements that stay in it. Otherwise it
        is every node with the same start tag and text, or none."""
        if self._kind == "json":
            return ()
        root = node.getroottree().getroot()
        if root is self._pieces.root:
            return (node,)
        other_tree, page_tree = self._tree(root), self._tree(self._pieces.root)
        twin = page_tree.counterpart(node, other_tree)
        if twin is not None and self._markup(twin) == self._markup(node):
            return (twin,)
        tag = _start_tag(node)
        alike = page_tree.alike.get(tag, ())
        if not alike or not other_tree.count(node):
            return ()
        text = other_tree.text(node)
        if len(alike) == other_tree.count(node):
            twin = alike[other_tree.number(node)]
            if (page_tree.surroundings(twin), page_tree.text(twin)) == (
                other_tree.surroundings(node),
                text,
            ):
                return (twin,)
        if tag not in self._by_text:
            by_text = self._by_text[tag] = defaultdict(list)
            for twin in alike:
                by_text[page_tree.text(twin)].append(twin)
        return self._by_text[tag].get(text, ())

    def _tree(self, root: Any) -> _Tree:
        if root not in self._trees:
            self._trees[root] = _Tree(root)
        return self._trees[root]

    def _markup(self, node: Any) -> str:
        """Return the markup of a node as parsel writes it, without empty attribute values.

        For an attribute without a value, as in `<p hidden>`, some parsers have an empty value."""
        method = "html" if self._kind == "html" else "xml"
        markup: str = etree.tostring(node, method=method, encoding="unicode", with_tail=False)
        self._budget -= _STEPS_OF_MARKUP * len(markup)
        return markup.replace(_EMPTY_VALUE, "")

    def _of_markup(self, text: str) -> Scopes:
        """Return the scopes of a text that is the markup of an element."""
        tag = _TAG.match(text)
        if self._kind == "json" or not tag or not text.endswith(">"):
            return _ANY
        text, scopes = text.replace(_EMPTY_VALUE, ""), set[int]()
        for node in self._pieces.root.iter("{*}" + tag[1].rpartition(":")[2]):
            if self._budget < 0:
                return _ANY
            if self._markup(node) == text:
                scopes.update(self._pieces.scopes_of_node(node))
        return scopes or _ANY

    # Texts

    def _of_text(self, text: str) -> Scopes:
        scopes_of_url = self._urls.get(text.strip(), _FREE)
        if free := [scope for scope in scopes_of_url if not self._pieces.is_denied[scope]]:
            return free  # it may also be the URL of a refused element
        folded = _fold(text)
        if not folded:
            return _FREE
        whole = {*scopes_of_url, *self._exact.get(folded, _FREE)}
        if whole:
            return whole
        letters = _squeeze(text)
        if len(letters) < LEAST:
            return _ANY
        return self._search(letters) or self._of_markup(text.strip())

    def _of_key(self, key: Any) -> Scopes:
        """Return the scopes of a key.

        Keys are usually the spider's own words, or occur all over a document. So a key has no scope
        if it is also outside of the refused elements, or is nowhere in the document."""
        if not isinstance(key, str):
            return self._scopes_of(key)
        folded, letters = _fold(key), _squeeze(key)
        whole = self._exact.get(folded, _FREE)
        if (
            not letters
            or not all(self._pieces.is_denied[scope] for scope in whole)
            or letters in self._free_text
        ):
            return _FREE
        scopes = whole or (self._search(letters) if len(letters) >= LEAST else _FREE)
        return scopes or (_ANY if any(map(str.isspace, key)) else _FREE)

    def elements_of_name(self, name: str) -> frozenset[int]:
        """Return the elements from which the name of a field may come.

        Plain identifiers are the spider's own names."""
        self._refill()
        return (
            frozenset()
            if _PLAIN_NAME.fullmatch(name)
            else self._pieces.elements(self._of_key(name))
        )

    def urls_in(self, fields: Mapping[str, Any]) -> frozenset[str]:
        """Return the absolute URLs of the document that occur in an item."""
        urls: set[str] = set()
        stack, seen = [*fields.values()], set[int]()
        while stack:
            value = stack.pop()
            if isinstance(value, str):
                if (url := value.strip()) in self._urls:
                    urls.update((url, *self._pieces.absolute(url)))
            elif isinstance(value, _NESTING) and id(value) not in seen:
                seen.add(id(value))
                stack += (*value, *value.values()) if isinstance(value, Mapping) else value
        return frozenset(urls)

    def _search(self, letters: str) -> Scopes:
        """Return the scopes of all texts that contain the letters, alone or together."""
        found_scopes: set[int] = set()
        for number, hit in enumerate(self._hits(letters)):
            found_scopes.update(hit)
            if len(found_scopes) > MAX_SCOPES and number:
                return _ANY
        return found_scopes if self._budget >= 0 else _ANY

    def _hits(self, letters: str) -> Iterator[Sequence[int]]:
        """Yield the scopes of each occurrence of the letters, until the budget is spent."""
        starts, scopes, text = self._texts
        start, size = 0, len(letters)
        while self._budget >= 0:
            hit = text.find(letters, start)
            self._budget -= (hit if hit >= 0 else len(text)) - start + _STEPS_OF_A_PLACE
            if hit < 0:
                return
            first = bisect_right(starts, hit) - 1
            last = bisect_right(starts, hit + size - 1, first) - 1
            yield scopes[first : last + 1]
            # An occurrence that begins before this is in the same texts.
            start = max(hit, starts[last + 1] - size) + 1

    @cached_property
    def _exact(self) -> Mapping[str, set[int]]:
        """Text that stands alone, with folded white space -> all scopes in which it occurs."""
        exact: dict[str, set[int]] = defaultdict(set)
        scopes_by_text: dict[str, set[int]] = {}  # many texts occur again and again in a page
        for scope, text, kind in self._pieces:
            if kind != "url":
                scopes = scopes_by_text.get(text)
                if scopes is None:
                    scopes = scopes_by_text[text] = exact[_fold(text)]
                scopes.add(scope)
        return exact

    @cached_property
    def _urls(self) -> Mapping[str, set[int]]:
        """URL, absolute or as written -> its scopes. The page's own URLs are included."""
        pieces = self._pieces
        urls: dict[str, set[int]] = defaultdict(
            set, {pieces.url: {OUTSIDE}, pieces.base: {OUTSIDE}}
        )
        for scope, text, kind in pieces:
            if kind == "url":
                for url in (text.strip(), *pieces.absolute(text)):
                    urls[url].add(scope)
        return urls

    @cached_property
    def _texts(self) -> tuple[list[int], list[int], str]:
        """The starts of texts in the searchable text, their scopes, and the searchable text.

        It has no white space. Running text is in it several times: complete, without scripts, and
        without refused elements, because spiders take text in these ways."""
        starts, scopes, texts, end = [0], [OUTSIDE], [_BREAK], 1
        for scope, text in self._searchable_texts():
            if squeezed := _squeeze(text):
                if scope != scopes[-1]:
                    starts.append(end)
                    scopes.append(scope)
                texts.append(squeezed)
                end += len(squeezed)
        return [*starts, end], scopes, "".join(texts)

    def _searchable_texts(self) -> Iterator[tuple[int, str]]:
        is_denied = self._pieces.is_denied
        flow = [piece for piece in self._pieces if piece[2] in ("flow", "script")]
        visible = [piece for piece in flow if piece[2] == "flow"]
        free = [piece for piece in flow if not is_denied[piece[0]]]
        free_visible = [piece for piece in visible if not is_denied[piece[0]]]
        for pieces in (
            flow,
            visible if len(visible) < len(flow) else (),
            free,
            free_visible if len(free_visible) < len(free) else (),
        ):
            yield from ((scope, text) for scope, text, _ in pieces)
            yield OUTSIDE, _BREAK
        for scope, text, kind in self._pieces:
            if kind == "apart":
                yield scope, f"{_BREAK}{text}{_BREAK}"
            elif kind == "url":
                yield from (
                    (scope, f"{_BREAK}{url}{_BREAK}") for url in self._pieces.absolute(text)
                )

    @cached_property
    def _free_text(self) -> str:
        """The searchable text outside of all refused elements."""
        starts, scopes, text = self._texts
        free = (index for index, scope in enumerate(scopes) if not self._pieces.is_denied[scope])
        return _BREAK.join(text[starts[index] : starts[index + 1]] for index in free)


def _fold(text: str) -> str:
    return " ".join(text.split())


def _squeeze(text: str) -> str:
    return "".join(text.split())
