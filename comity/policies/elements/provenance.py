"""Which parts of a document the values of an item were taken from.

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

from comity.policies.document.document import Content
from comity.policies.elements.coverage import covered
from comity.policies.elements.text_runs import OUTSIDE, UNKNOWN, Pieces
from comity.policies.formats.ai_txt import Rule

LEAST = 4  # characters, white space aside, of a text whose being found within another says where it was taken from
MAX_SPANS = 10_000  # of one field; where there are more they are not told apart
MAX_SCOPES = 1000  # in which a text is looked for one by one; beyond it may come from any
MAX_STEPS = 200_000_000  # characters that are looked through for one field: less than half a second

FieldSpan = tuple[str] | tuple[str, int] | tuple[str, int, int]  # a value; a member of a list; characters of a text
Scopes = Collection[int]

_NESTING = (Mapping, list, tuple, set, frozenset)
_FREE: Scopes = ()
_ANY: Scopes = (UNKNOWN,)
_STEPS_OF_A_PLACE = 200
_STEPS_OF_MARKUP = 10  # for a character
_ATTRIBUTE = re.compile(r"::attr\(([^()]*)\)(?=\s*(?:,|$))")  # of parsel
_TAG = re.compile(r"<([A-Za-z][\w.-]*(?::[\w.-]+)?)")
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_BREAK = "\0"  # what no text goes across


StartTag = tuple[str, tuple[tuple[str, str], ...]]


def _start_tag(node: Any) -> StartTag:
    """The local name of an element (lxml) and its attributes."""
    attributes = ((name.rpartition("}")[2].rpartition(":")[2].lower(), value) for name, value in node.items())
    return str(node.tag).rpartition("}")[2].lower(), tuple(sorted((name, value) for name, value in attributes if name != "xmlns"))


class _Numbers:
    """Of each element of a tree, its number among those of the same start tag."""

    def __init__(self, root: Any) -> None:
        self._alive = [*root.iter("*")]  # lxml makes its elements anew each time unless somebody has them
        self._counts: dict[StartTag, int] = defaultdict(int)
        self._of: dict[Any, int] = {}
        for node in self._alive:
            tag = _start_tag(node)
            self._of[node] = self._counts[tag]
            self._counts[tag] += 1

    def of(self, node: Any) -> int:
        return self._of[node]

    def count(self, node: Any) -> int:
        """How many there are; 0: the tree had no such element."""
        return self._counts.get(_start_tag(node), 0) if node in self._of else 0


class Origins:
    """Finds values in one document."""

    def __init__(self, content: Content, pieces: Pieces) -> None:
        """`pieces`: the texts of the document."""
        self._content = content
        self._kind = content.kind
        self._pieces = pieces
        self._numbers: dict[Any, _Numbers] = {}  # root of another reading -> its elements
        self._nodes: dict[str, Sequence[Any] | None] = {}  # selector -> what it finds; None: nobody can tell

    def elements(self, value: Any) -> frozenset[int]:
        """The elements that a value has to do with."""
        self._refill()
        return self._pieces.elements(self._of(value))

    def spans(self, name: str, value: Any, selector: str | None) -> Iterator[tuple[int, FieldSpan]]:
        """Which elements the value of a field has to do with, and which part of the value each of them.

        `selector`: by which it was taken, None: nobody knows."""
        self._refill()
        is_list = isinstance(value, list | tuple)
        touched = self._touched(value if is_list else [value], selector)
        left = MAX_SPANS if is_list else 0
        for scopes in touched:
            left -= sum(map(self._pieces.sizes.__getitem__, scopes)) if left >= 0 else 0
        if is_list and left >= 0 and len(touched) == len(value):
            for place, scopes in enumerate(touched):
                yield from ((number, (name, place)) for number in sorted(self._pieces.elements(scopes)))
        else:
            different = {id(scopes): scopes for scopes in touched}
            found = self._pieces.elements(chain.from_iterable(different.values()))
            yield from ((number, (name,)) for number in sorted(found))

    def _touched(self, members: Sequence[Any], selector: str | None) -> list[Scopes]:
        """The scopes that each of the values has to do with; or all of them, where it cannot be told which value is which."""
        nodes = self._selected(selector) if selector is not None else ()
        if nodes is None:
            return [_ANY]
        if not nodes:
            return [*map(self._of, members)]
        if len(nodes) == len(members):
            by_node: list[Scopes] = [frozenset(self._pieces.touched(node)) for node in nodes]
            if all(map(self._is_of, members, by_node)):
                return by_node
        return [{scope for node in nodes for scope in self._pieces.touched(node)}]

    def _refill(self) -> None:
        self._left = MAX_STEPS
        self._known: dict[str, Scopes] = {}

    def _of(self, value: Any) -> Scopes:
        """The scopes that it has to do with. Values nest as deep as they like, and in themselves."""
        if isinstance(value, str) or not isinstance(value, _NESTING):  # most are texts, and asking for a Mapping takes time
            return self._of_single(value)
        found: set[int] = set()
        stack, seen = [value], set()
        while stack:
            value = stack.pop()
            if not isinstance(value, _NESTING):
                found.update(self._of_single(value))
            elif id(value) not in seen:
                seen.add(id(value))
                stack += value.values() if isinstance(value, Mapping) else value
                for key in value if isinstance(value, Mapping) else ():
                    found.update(self._of_key(key))
        return found

    def _of_single(self, value: Any) -> Scopes:
        if isinstance(value, Selector):
            value = value.root
            if isinstance(value, _NESTING):  # of JSON
                return self._of(value)
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
            if value not in self._known:
                self._known[value] = self._of_text(value)
            return self._known[value]
        if isinstance(value, bool) and self._kind == "json":
            return self._exact.get(json.dumps(value), _ANY)
        if isinstance(value, etree._Element):
            return self._of_node(value)
        return _FREE if value is None else _ANY

    # Nodes

    def _selected(self, selector: str) -> Sequence[Any] | None:
        if selector not in self._nodes:
            element, attributes = _ATTRIBUTE.sub("", selector).strip(), [name.strip() for name in _ATTRIBUTE.findall(selector)]
            rule = Rule(agents=(), path="/", file_type=self._kind, element=element, verdict=None, actions=frozenset())
            (found,) = covered(self._content, [rule])
            nodes = found.nodes
            if attributes and self._kind != "json":
                nodes = tuple(node for node in nodes if any(name in node.attrib for name in attributes))
            self._nodes[selector] = None if found.is_whole else nodes
        return self._nodes[selector]

    def _is_of(self, value: Any, own: Scopes) -> bool:
        """Whether a value may be of the node: a list may have been sorted, and of some nodes several values may be taken."""
        found = self._of(value)
        if all(scope in own for scope in found):
            return True
        is_whole = isinstance(value, str) and (value.strip() in self._urls or _folded(value) in self._exact)
        if is_whole and any(scope in own for scope in found):
            return True  # it stands elsewhere, too
        self._left -= _STEPS_OF_A_PLACE * sum(self._pieces.sizes[scope] for scope in chain(found, own))
        return self._left >= 0 and self._pieces.elements(found) <= self._pieces.elements(own)

    def _of_node(self, node: Any) -> Scopes:
        if twins := self._twins(node):
            return {scope for twin in twins for scope in self._pieces.touched(twin)}
        found: set[int] = set()
        for one in node.iter():
            texts = (one.text, one.tail if one is not node else None, *(one.values() if isinstance(one.tag, str) else ()))
            for text in texts:
                found.update(self._of_single(text))
        return found

    def _twins(self, node: Any) -> Sequence[Any]:
        """The node in the document, of another reading of the same document: all that it may be, none where there is none.

        Readers put the same start tags into other places. So it is the one at the same place, if that has the same markup, else
        the one of the same number among those of the same tag."""
        if self._kind == "json":
            return ()
        root = node.getroottree().getroot()
        if root is self._pieces.root:
            return (node,)
        if (twin := self._at_the_same_place(node)) is not None:
            return (twin,)
        own = self._alike.get(_start_tag(node), ())
        if len(own) < 2:
            return own
        if root not in self._numbers:
            self._numbers[root] = _Numbers(root)
        numbers = self._numbers[root]
        if len(own) == numbers.count(node):
            return (own[numbers.of(node)],)
        text = _squeezed("".join(node.itertext()))
        return [one for one in own if _squeezed("".join(one.itertext())) == text] or own

    def _at_the_same_place(self, node: Any) -> Any:
        twin, steps = self._pieces.root, []
        one = node
        while (parent := one.getparent()) is not None:
            steps.append(parent.index(one))
            one = parent
        for step in reversed(steps):
            if step >= len(twin):
                return None
            twin = twin[step]
        return twin if self._markup(twin) == self._markup(node) else None

    @cached_property
    def _alike(self) -> Mapping[StartTag, Sequence[Any]]:
        """The elements of the document by their start tags."""
        alike: dict[StartTag, list[Any]] = defaultdict(list)
        for node in self._pieces.root.iter("*"):
            alike[_start_tag(node)].append(node)
        return alike

    def _markup(self, node: Any) -> str:
        """As parsel writes it."""
        method = "html" if self._kind == "html" else "xml"
        markup: str = etree.tostring(node, method=method, encoding="unicode", with_tail=False)
        self._left -= _STEPS_OF_MARKUP * len(markup)
        return markup

    def _of_markup(self, text: str) -> Scopes:
        """Of the markup of an element."""
        tag = _TAG.match(text)
        if self._kind == "json" or not tag or not text.endswith(">"):
            return _ANY
        found: set[int] = set()
        for node in self._pieces.root.iter("{*}" + tag[1].rpartition(":")[2]):
            if self._left < 0:
                return _ANY
            if self._markup(node) == text:
                found.update(self._pieces.touched(node))
        return found or _ANY

    # Texts

    def _of_text(self, text: str) -> Scopes:
        named = self._urls.get(text.strip(), _FREE)
        if free := [scope for scope in named if not self._pieces.is_denied[scope]]:
            return free  # it may be named in what is refused, too
        folded = _folded(text)
        if not folded:
            return _FREE
        whole = {*named, *self._exact.get(folded, _FREE)}
        if whole:
            return whole
        sought = _squeezed(text)
        if len(sought) < LEAST:
            return _ANY
        return self._found(sought) or self._of_markup(text.strip())

    def _of_key(self, key: Any) -> Scopes:
        """Names are the spider's own, or stand all over a document: a name has to do with nothing where it stands outside, too,
        or nowhere."""
        if not isinstance(key, str):
            return self._of(key)
        folded, sought = _folded(key), _squeezed(key)
        whole = self._exact.get(folded, _FREE)
        if not sought or not all(self._pieces.is_denied[scope] for scope in whole) or sought in self._free_text:
            return _FREE
        found = whole or (self._found(sought) if len(sought) >= LEAST else _FREE)
        return found or (_ANY if any(map(str.isspace, key)) else _FREE)

    def elements_of_name(self, name: str) -> frozenset[int]:
        """The elements that the name of a field has to do with. Plain identifiers are the spider's own."""
        self._refill()
        return frozenset() if _PLAIN_NAME.fullmatch(name) else self._pieces.elements(self._of_key(name))

    def urls_in(self, fields: Mapping[str, Any]) -> frozenset[str]:
        """The URLs of the document that an item has, absolute."""
        found: set[str] = set()
        stack, seen = [*fields.values()], set[int]()
        while stack:
            value = stack.pop()
            if isinstance(value, str):
                if (written := value.strip()) in self._urls:
                    found.update((written, *self._pieces.absolute(written)))
            elif isinstance(value, _NESTING) and id(value) not in seen:
                seen.add(id(value))
                stack += (*value, *value.values()) if isinstance(value, Mapping) else value
        return frozenset(found)

    def _found(self, sought: str) -> Scopes:
        """The scopes of the texts that have it, together or each by itself."""
        starts, scopes, text = self._texts
        found: set[int] = set()
        at, size = 0, len(sought)
        while self._left >= 0:
            place = text.find(sought, at)
            self._left -= (place if place >= 0 else len(text)) - at + _STEPS_OF_A_PLACE
            if place < 0:
                return found
            first = bisect_right(starts, place) - 1
            last = bisect_right(starts, place + size - 1, first) - 1
            found.update(scopes[first : last + 1])
            if len(found) > MAX_SCOPES and at:
                break
            at = max(place, starts[last + 1] - size) + 1  # whatever comes before that is in the same texts
        return _ANY

    @cached_property
    def _exact(self) -> Mapping[str, set[int]]:
        """Text that stands for itself, white space folded -> the scopes that it is in, wherever else it stands."""
        exact: dict[str, set[int]] = defaultdict(set)
        for scope, text, kind in self._pieces:
            if kind != "url":
                exact[" ".join(text.split())].add(scope)  # as _folded has it: a call for each piece takes half as long again
        return exact

    @cached_property
    def _urls(self) -> Mapping[str, set[int]]:
        """URL, absolute and as written, the page's own among them -> the scopes that it is in."""
        pieces = self._pieces
        urls: dict[str, set[int]] = defaultdict(set, {pieces.url: {OUTSIDE}, pieces.base: {OUTSIDE}})
        for scope, text, kind in pieces:
            if kind == "url":
                for url in (text.strip(), *pieces.absolute(text)):
                    urls[url].add(scope)
        return urls

    @cached_property
    def _texts(self) -> tuple[list[int], list[int], str]:
        """Where texts start in all that can be searched, without its white space; their scopes; and all that.

        Running text is there as it stands; without scripts; and without all elements that are refused: as spiders take it."""
        starts, scopes, texts, at = [0], [OUTSIDE], [_BREAK], 1
        for scope, text in self._searched():
            if squeezed := _squeezed(text):
                if scope != scopes[-1]:
                    starts.append(at)
                    scopes.append(scope)
                texts.append(squeezed)
                at += len(squeezed)
        return [*starts, at], scopes, "".join(texts)

    def _searched(self) -> Iterator[tuple[int, str]]:
        is_denied = self._pieces.is_denied
        flow = [piece for piece in self._pieces if piece[2] in ("flow", "script")]
        shown = [piece for piece in flow if piece[2] == "flow"]
        free = [piece for piece in flow if not is_denied[piece[0]]]
        both = [piece for piece in shown if not is_denied[piece[0]]]
        for pieces in (flow, shown if len(shown) < len(flow) else (), free, both if len(both) < len(free) else ()):
            yield from ((scope, text) for scope, text, _ in pieces)
            yield OUTSIDE, _BREAK
        for scope, text, kind in self._pieces:
            if kind == "apart":
                yield scope, f"{_BREAK}{text}{_BREAK}"
            elif kind == "url":
                yield from ((scope, f"{_BREAK}{url}{_BREAK}") for url in self._pieces.absolute(text))

    @cached_property
    def _free_text(self) -> str:
        """What can be searched that is outside of all elements that are refused."""
        starts, scopes, text = self._texts
        free = (place for place, scope in enumerate(scopes) if not self._pieces.is_denied[scope])
        return _BREAK.join(text[starts[place] : starts[place + 1]] for place in free)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _squeezed(text: str) -> str:
    return "".join(text.split())
