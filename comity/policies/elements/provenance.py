"""The parts of a document that the values of an item were taken from.

A spider may take anything in any way, so a value counts as free of an element only where it is found in the document outside of
all that is refused. What is found nowhere, since it was changed or made up, may come from any element."""

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
from comity.policies.elements.text_runs import OUTSIDE, UNKNOWN, Pieces
from comity.policies.syntax.xml_tree import attributes

LEAST = 4  # characters, white space aside, of a text whose being found within another says where it was taken from
MAX_SPANS = 10_000  # of one field; where there are more they are not told apart
MAX_SCOPES = (
    1000  # in which a text, or an element, is looked for one by one; beyond it may come from any
)
MAX_STEPS_OF_SELECTOR = 500_000  # for a declared one
MAX_STEPS = 200_000_000  # characters that are looked through for one field: less than half a second

FieldSpan = (
    tuple[str] | tuple[str, int] | tuple[str, int, int]
)  # a value; a member of a list; characters of a text
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
_BREAK = "\0"  # what no text goes across
_IMPLIED = frozenset(
    ("html", "head", "body", "tbody", "thead", "tfoot", "tr", "colgroup")
)  # readers add them, or leave them out
# HTML Standard section-13.2.4.3: where they are misnested, some readers have more of them. `a` holds an address.
_FORMATTING = frozenset(
    ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
)


StartTag = tuple[str, tuple[tuple[str, str], ...]]


def _start_tag(node: Any) -> StartTag:
    """The local name of an element (lxml) and its attributes."""
    pairs = (
        (name.rpartition("}")[2].rpartition(":")[2].lower(), value)
        for name, value in attributes(node)
    )
    return _name(node), tuple(sorted((name, value) for name, value in pairs if name != "xmlns"))


def _name(node: Any) -> str:
    return (
        str(node.tag).rpartition("}")[2].lower()
    )  # str: a comment may be asked for too, whose tag is a function


def _parts(selector: str) -> tuple[str, list[str]]:
    """Return a selector of parsel without the attributes that it asks for, and these."""
    return _ATTRIBUTE.sub("", selector).strip(), [
        name.strip() for name in _ATTRIBUTE.findall(selector)
    ]


def _texts_in(node: Any) -> Iterator[str]:
    """Yield the texts and the values of attributes in an element (lxml)."""
    for inner in node.iter():
        texts = (
            inner.text,
            inner.tail if inner is not node else None,
            *(value for _, value in attributes(inner)),
        )
        yield from filter(None, texts)


class _Tree:
    """The elements of a tree: the number of each among those of the same start tag, where it stands, and what is in it."""

    def __init__(self, root: Any) -> None:
        self._text, self._extents = _squeezed_text(root)
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
        """Return the element at the same place as one of another tree; None: there is none."""
        return self._elements.get(other._positions.get(node, -1))

    def number(self, node: Any) -> int:
        return self._number_of[node]

    def surroundings(self, node: Any) -> int:
        """Return a key of the start tags around it and its own, those aside that not every reader puts there."""
        return self._surroundings_of[node]

    def text(self, node: Any) -> int:
        """Return a key of its text, white space aside, and of the elements in it that have attributes: these may be all that it
        has. Of elements in each other the texts would take a lot of memory."""
        start, end = self._extents[node]
        return hash(self._text[start:end])

    def count(self, node: Any) -> int:
        """Return how many of its start tag there are; 0: the tree had no such element."""
        return len(self.alike.get(_start_tag(node), ())) if node in self._number_of else 0


def _squeezed_text(root: Any) -> tuple[str, dict[Any, tuple[int, int]]]:
    """The text of a tree without its white space, with the names of the elements with attributes that every reader has; and where
    what is in each element begins and ends."""
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
        text = _squeezed((node.text if event == "start" else node.tail) or "")
        texts.append(text)
        length += len(text)
    return "".join(texts), extents


class Origins:
    """The origins of values in one document."""

    def __init__(self, content: Content, pieces: Pieces) -> None:
        """`pieces`: the texts of the document."""
        self._content = content
        self._kind = content.kind
        self._pieces = pieces
        self._trees: dict[Any, _Tree] = {}  # root of a reading -> its elements
        self._by_text: dict[
            StartTag, dict[int, list[Any]]
        ] = {}  # start tag -> text -> elements of the document
        self._scopes_of_twins: dict[int, set[int]] = {}  # id of one of these lists -> their scopes
        self._nodes: dict[
            str, Sequence[Any] | None
        ] = {}  # selector -> what it finds; None: nobody can tell

    def elements(self, value: Any) -> frozenset[int]:
        """The elements that a value has to do with."""
        self._refill()
        return self._pieces.elements(self._scopes_of(value))

    def spans(self, name: str, value: Any, selector: str | None) -> Iterator[tuple[int, FieldSpan]]:
        """Yield the elements that the value of a field has to do with, and which part of the value each of them.

        `selector`: by which it was taken, None: nobody knows."""
        self._refill()
        is_list = isinstance(value, list | tuple)
        touched = self._touched(value if is_list else [value], selector)
        room = MAX_SPANS if is_list else 0
        for scopes in touched:
            room -= sum(map(self._pieces.sizes.__getitem__, scopes)) if room >= 0 else 0
        if is_list and room >= 0 and len(touched) == len(value):
            for index, scopes in enumerate(touched):
                yield from (
                    (number, (name, index)) for number in sorted(self._pieces.elements(scopes))
                )
        else:
            different = {id(scopes): scopes for scopes in touched}
            elements = self._pieces.elements(chain.from_iterable(different.values()))
            yield from ((number, (name,)) for number in sorted(elements))

    def _touched(self, members: Sequence[Any], selector: str | None) -> list[Scopes]:
        """The scopes that each of the values has to do with; or all of them, where it cannot be told which value is which."""
        nodes = self._selected(selector) if selector is not None else ()
        if nodes is None:
            return [_ANY]
        if not nodes:
            return [*map(self._scopes_of, members)]
        if len(nodes) == len(members):
            by_node: list[Scopes] = [frozenset(self._pieces.touched(node)) for node in nodes]
            if all(map(self._is_of, members, by_node)):
                return by_node
        touched = {scope for node in nodes for scope in self._pieces.touched(node)}
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
        self._budget = MAX_STEPS
        self._scopes_of_text: dict[str, Scopes] = {}

    def _scopes_of(self, value: Any) -> Scopes:
        """The scopes that it has to do with. Values nest as deep as they like, and in themselves."""
        if isinstance(value, str) or not isinstance(
            value, _NESTING
        ):  # most are texts, and asking for a Mapping takes time
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
            except ValueError:  # Python writes no number that is as long
                return _ANY
        if isinstance(value, str):
            if value not in self._scopes_of_text:
                self._scopes_of_text[value] = self._of_text(value)
            return self._scopes_of_text[value]
        if isinstance(value, bool) and self._kind == "json":
            return self._exact.get(json.dumps(value), _ANY)
        if isinstance(value, etree._Element):
            return self._of_node(value)
        return _FREE if value is None else _ANY

    # Nodes

    def _selected(self, selector: str) -> Sequence[Any] | None:
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
        """Return whether a value may be of a node: a list may have been sorted, and of some nodes several values may be taken."""
        scopes = self._scopes_of(value)
        if all(scope in scopes_of_node for scope in scopes):
            return True
        is_whole = isinstance(value, str) and (
            value.strip() in self._urls or _folded(value) in self._exact
        )
        if is_whole and any(scope in scopes_of_node for scope in scopes):
            return True  # it stands elsewhere, too
        self._budget -= _STEPS_OF_A_PLACE * sum(
            self._pieces.sizes[scope] for scope in chain(scopes, scopes_of_node)
        )
        return self._budget >= 0 and self._pieces.elements(scopes) <= self._pieces.elements(
            scopes_of_node
        )

    def _may_be_of(self, value: Any, scopes: set[int]) -> bool:
        """Return whether a value stands in these scopes, wherever else it does."""
        if self._is_of(value, scopes):
            return True
        if isinstance(value, str):
            letters = _squeezed(value)
            return not letters or (
                len(letters) >= LEAST and any(scopes.issuperset(hit) for hit in self._hits(letters))
            )
        return False

    def _of_node(self, node: Any) -> Scopes:
        if twins := self._twins(node):
            return self._touched_by_any(twins)
        return {scope for text in _texts_in(node) for scope in self._of_single(text)}

    def _texts_in_scrapy(self, selector: str) -> Iterator[str]:
        """Yield the texts in what a selector finds in the tree that Scrapy has of the document, each once: what is found may be
        within one another. SelectorError, CostError."""
        element, names = _parts(selector)
        is_own_text = element.endswith("::text") and "," not in element
        seen = set[Any]()
        for node in select(element, Outline(self._scrapy_root, Budget(MAX_STEPS_OF_SELECTOR))):
            if names:
                yield from filter(None, map(node.get, names))
            elif is_own_text:
                yield from filter(None, (node.text, *(inner.tail for inner in node)))
            elif node not in seen:  # those around come first
                seen.update(node.iter())
                yield from _texts_in(node)

    @cached_property
    def _scrapy_root(self) -> Any:
        return Selector(self._content.text, type="html").root

    def _touched_by_any(self, twins: Sequence[Any]) -> Scopes:
        """The scopes of nodes, each of which a node may be. Many may be the same ones."""
        if len(twins) == 1:
            return set(self._pieces.touched(twins[0]))
        if len(twins) > MAX_SCOPES:
            return _ANY
        scopes = self._scopes_of_twins.get(id(twins))
        if scopes is None:
            scopes = self._scopes_of_twins[id(twins)] = {
                scope for twin in twins for scope in self._pieces.touched(twin)
            }
        return scopes if len(scopes) <= MAX_SCOPES else _ANY

    def _twins(self, node: Any) -> Sequence[Any]:
        """The node in the document, of another reading of the same document: all that it may be, none where there is none.

        Readers put the same start tags into other places. So it is the one at the same place, if that has the same markup, else
        the one of the same number among those of the same tag, if that has the same text between the same tags: what browsers
        move out of a table comes before what stands in it. Else it is any with the same tag and text."""
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
        """Return the markup of a node as parsel writes it, but for empty values of attributes: where no value is written, as in
        `<p hidden>`, some readers have none and others an empty one."""
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
                scopes.update(self._pieces.touched(node))
        return scopes or _ANY

    # Texts

    def _of_text(self, text: str) -> Scopes:
        scopes_of_url = self._urls.get(text.strip(), _FREE)
        if free := [scope for scope in scopes_of_url if not self._pieces.is_denied[scope]]:
            return free  # it may be named in what is refused, too
        folded = _folded(text)
        if not folded:
            return _FREE
        whole = {*scopes_of_url, *self._exact.get(folded, _FREE)}
        if whole:
            return whole
        letters = _squeezed(text)
        if len(letters) < LEAST:
            return _ANY
        return self._search(letters) or self._of_markup(text.strip())

    def _of_key(self, key: Any) -> Scopes:
        """Names are the spider's own, or stand all over a document: a name has to do with nothing where it stands outside, too,
        or nowhere."""
        if not isinstance(key, str):
            return self._scopes_of(key)
        folded, letters = _folded(key), _squeezed(key)
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
        """The elements that the name of a field has to do with. Plain identifiers are the spider's own."""
        self._refill()
        return (
            frozenset()
            if _PLAIN_NAME.fullmatch(name)
            else self._pieces.elements(self._of_key(name))
        )

    def urls_in(self, fields: Mapping[str, Any]) -> frozenset[str]:
        """The URLs of the document that an item has, absolute."""
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
        """The scopes of the texts that have it, together or each by itself."""
        found_scopes: set[int] = set()
        for number, hit in enumerate(self._hits(letters)):
            found_scopes.update(hit)
            if len(found_scopes) > MAX_SCOPES and number:
                return _ANY
        return found_scopes if self._budget >= 0 else _ANY

    def _hits(self, letters: str) -> Iterator[Sequence[int]]:
        """Yield the scopes of each place where it stands, as long as the budget lasts."""
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
            start = (
                max(hit, starts[last + 1] - size) + 1
            )  # whatever comes before that is in the same texts

    @cached_property
    def _exact(self) -> Mapping[str, set[int]]:
        """Text that stands for itself, white space folded -> the scopes that it is in, wherever else it stands."""
        exact: dict[str, set[int]] = defaultdict(set)
        scopes_by_text: dict[str, set[int]] = {}  # many texts stand in a page again and again
        for scope, text, kind in self._pieces:
            if kind != "url":
                scopes = scopes_by_text.get(text)
                if scopes is None:
                    scopes = scopes_by_text[text] = exact[_folded(text)]
                scopes.add(scope)
        return exact

    @cached_property
    def _urls(self) -> Mapping[str, set[int]]:
        """URL, absolute and as written, the page's own among them -> the scopes that it is in."""
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
        """The starts of texts in all that can be searched, without its white space; their scopes; and all that.

        Running text is there as it stands; without scripts; and without all elements that are refused: as spiders take it."""
        starts, scopes, texts, end = [0], [OUTSIDE], [_BREAK], 1
        for scope, text in self._searched():
            if squeezed := _squeezed(text):
                if scope != scopes[-1]:
                    starts.append(end)
                    scopes.append(scope)
                texts.append(squeezed)
                end += len(squeezed)
        return [*starts, end], scopes, "".join(texts)

    def _searched(self) -> Iterator[tuple[int, str]]:
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
        """The text that can be searched and is outside of all elements that are refused."""
        starts, scopes, text = self._texts
        free = (index for index, scope in enumerate(scopes) if not self._pieces.is_denied[scope])
        return _BREAK.join(text[starts[index] : starts[index + 1]] for index in free)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _squeezed(text: str) -> str:
    return "".join(text.split())
