"""CSS selectors that a site wrote: which elements of a page they select, in bounded time (SEC-5).

    compiled(css)           SelectorError where it cannot be
    select(css, outline)    SelectorError, or CostError past the budget of the outline
cssselect parses them. They are not run as XPath, which nobody can stop, and which for `a ~ b`, `:nth-child()` or nested elements
takes a time that grows with the square of the page: here each part of a selector looks at an element once. `:has()`, combinators
in `:is()`, states (`:hover`) and namespaces are not read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import cssselect
from cssselect import parser as tree

from comity.policies.outline import Outline, Places

MAX_CHARS = 2000  # of a selector
MAX_FUNCTIONS = 20  # of a selector, "(" that is

_COMPARED = 64  # characters of attributes that count as one step
_TO_COMPILE = 4  # steps for a character of a selector

# Whether the value of an attribute matches; "": nothing does (Selectors Level 4, section 6.2).
_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "exists": lambda actual, value: True,
    "=": lambda actual, value: actual == value,
    "~=": lambda actual, value: value in actual.split(),
    "|=": lambda actual, value: actual == value or actual.startswith(f"{value}-"),
    "^=": lambda actual, value: bool(value) and actual.startswith(value),
    "$=": lambda actual, value: bool(value) and actual.endswith(value),
    "*=": lambda actual, value: bool(value) and value in actual,
}


class SelectorError(ValueError):
    """Why a selector is not read."""


Test = Callable[[Outline, Places], Places]  # those that pass


class Compound(NamedTuple):
    """What is said of one element."""

    combinator: str  # to the compound before it; "": it is the first
    tag: str  # lower case; "": any
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    tests: tuple[Test, ...]


Chain = tuple[Compound, ...]


@lru_cache(maxsize=512)  # the rules of a site are asked of each of its pages
def compiled(css: str) -> tuple[Chain, ...]:
    """One chain for each selector of the list. SelectorError where one of them cannot be read. Linear in the characters."""
    if len(css) > MAX_CHARS or css.count("(") > MAX_FUNCTIONS:
        raise SelectorError(f"it has more than {MAX_CHARS} characters, or more than {MAX_FUNCTIONS} functions")
    try:
        selectors = cssselect.parse(css)
    except cssselect.SelectorError as error:
        raise SelectorError(f"it is no selector: {error}") from None
    if any(isinstance(selector.pseudo_element, tree.FunctionalPseudoElement) for selector in selectors):
        raise SelectorError("a function of a pseudo-element is not read")
    return tuple(_chain(selector.parsed_tree) for selector in selectors)  # a pseudo-element is a part of its element


def _chain(node: tree.Tree) -> Chain:
    compounds = []
    while isinstance(node, tree.CombinedSelector):
        compounds.append(_compound(node.combinator, node.subselector))
        node = node.selector
    return (_compound("", node), *reversed(compounds))


def _compound(combinator: str, node: tree.Tree) -> Compound:
    ids, classes, tests = [], [], []
    while not isinstance(node, tree.Element):
        if isinstance(node, tree.Hash):
            ids.append(node.id)
        elif isinstance(node, tree.Class):
            classes.append(node.class_name)
        elif isinstance(node, tree.Attrib):
            tests.append(_attribute(node))
        elif isinstance(node, tree.Negation):
            tests.append(_among([_chain(node.subselector)], negated=True))
        elif isinstance(node, tree.Matching | tree.SpecificityAdjustment):
            tests.append(_among([_chain(one) for one in node.selector_list]))
        elif isinstance(node, tree.Pseudo) and node.ident in _PSEUDO_CLASSES:
            tests.append(_PSEUDO_CLASSES[node.ident])
        elif isinstance(node, tree.Function) and node.name in _NTH:
            tests.append(_nth(node))
        else:
            name = getattr(node, "ident", getattr(node, "name", "has"))
            raise SelectorError(f"`:{name}` is not read")
        node = node.selector
    if node.namespace not in (None, "*"):
        raise SelectorError("namespaces are not read")
    return Compound(combinator, (node.element or "").lower(), tuple(ids), tuple(classes), tuple(tests))


def _attribute(node: tree.Attrib) -> Test:
    if node.namespace or node.operator not in _OPERATORS:
        raise SelectorError("namespaces, and `!=`, are not read")
    name, matches = node.attrib.lower(), _OPERATORS[node.operator]
    value = "" if node.value is None else node.value.value or ""
    any_case = getattr(node, "flag", None) == "i"
    value = value.lower() if any_case else value

    def test(outline: Outline, places: Places) -> Places:
        texts = outline.attribute(name)
        actual = [(place, texts[place]) for place in places if place in texts]
        outline.budget.spend(len(places) + sum(len(text) for _, text in actual) // _COMPARED)
        return [place for place, text in actual if matches(text.lower() if any_case else text, value)]

    return test


def _among(chains: Sequence[Chain], *, negated: bool = False) -> Test:
    def test(outline: Outline, places: Places) -> Places:
        found = {place for chain in chains for place in _selected(chain, outline)}
        outline.budget.spend(len(places))
        return [place for place in places if (place in found) is not negated]

    return test


def _link(outline: Outline, places: Places) -> Places:
    outline.budget.spend(len(places))
    elements = outline.elements
    return [place for place in places if elements[place].tag in ("a", "area") and elements[place].get("href") is not None]


def _empty(outline: Outline, places: Places) -> Places:
    outline.budget.spend(len(places))
    return [place for place in places if place in outline.empty]


def _series(step: int, offset: int, *, of_type: bool = False, from_end: bool = False) -> Test:
    """An+B among the siblings, or those of the same name."""

    def test(outline: Outline, places: Places) -> Places:
        numbers = outline.numbers(of_type, from_end)
        outline.budget.spend(len(places))
        if not step:
            return [place for place in places if numbers[place] == offset]
        return [p for p in places if not (numbers[p] - offset) % step and (numbers[p] - offset) // step >= 0]

    return test


_NTH = {"nth-child": "", "nth-last-child": "end", "nth-of-type": "type", "nth-last-of-type": "type end"}


def _nth(node: tree.Function) -> Test:
    try:
        step, offset = tree.parse_series(node.arguments)
    except ValueError:
        raise SelectorError(f"`:{node.name}` has no such argument") from None
    return _series(step, offset, of_type="type" in _NTH[node.name], from_end="end" in _NTH[node.name])


def _both(first: Test, second: Test) -> Test:
    return lambda outline, places: second(outline, first(outline, places))


def _root(outline: Outline, places: Places) -> Places:
    return places[:1] if places[:1] == [0] else []


_FIRST, _LAST = _series(0, 1), _series(0, 1, from_end=True)
_FIRST_OF_TYPE, _LAST_OF_TYPE = _series(0, 1, of_type=True), _series(0, 1, of_type=True, from_end=True)
_PSEUDO_CLASSES: dict[str, Test] = {
    "root": _root,
    "scope": _root,
    "empty": _empty,
    "link": _link,
    "any-link": _link,
    "first-child": _FIRST,
    "last-child": _LAST,
    "only-child": _both(_FIRST, _LAST),
    "first-of-type": _FIRST_OF_TYPE,
    "last-of-type": _LAST_OF_TYPE,
    "only-of-type": _both(_FIRST_OF_TYPE, _LAST_OF_TYPE),
}


def select(css: str, outline: Outline) -> list[Any]:
    """The elements that any selector of the list selects, in the order of the page. SelectorError, CostError."""
    outline.budget.spend(_TO_COMPILE * len(css))
    found: set[int] = set()
    for chain in compiled(css):
        found.update(_selected(chain, outline))
    return outline.elements_at(found)


def _selected(chain: Chain, outline: Outline) -> Places:
    found: Places = []
    for compound in chain:
        places = _candidates(compound, outline)
        if compound.combinator:
            outline.budget.spend(len(found) + len(places))
            places = outline.joined(compound.combinator, found, places)
        for test in compound.tests:
            places = test(outline, places)
        if not places:
            return []
        found = places
    return found


def _candidates(compound: Compound, outline: Outline) -> Places:
    """By name, identifiers and classes."""
    lists = [outline.by_tag.get(compound.tag, [])] if compound.tag else []
    lists += [outline.by_id.get(outline.cased(name), []) for name in compound.ids]
    lists += [outline.by_class.get(outline.cased(name), []) for name in compound.classes]
    if not lists:
        outline.budget.spend(len(outline.elements))
        return [*range(len(outline.elements))]
    lists.sort(key=len)
    outline.budget.spend(1 + sum(map(len, lists)))
    if len(lists) == 1:
        return lists[0]
    rest = frozenset(lists[1]).intersection(*lists[2:])
    return [place for place in lists[0] if place in rest]
