"""Apply CSS selectors written by a site to a page, in bounded time (SEC-5).

    compiled(css)           the compiled selector; SelectorError: it cannot be read
    select(css, outline)    the selected elements; SelectorError, or CostError past the budget of
                            the outline

cssselect2 parses selectors. No library runs them, because a library cannot be stopped, and takes a
time that grows with the square of the page for `a ~ b`, `:nth-child()` or nested elements. Here
each part of a selector looks at an element once.

Some CSS is not supported, e.g. states (`:hover`) and namespaces. These parts are left out if the
selector selects more without them. Inside `:not()` it would select less. There such a part matches
nothing, so the negation is true for every element. Names that CSS does not know (`:foo`,
`:nth-child(foo)`) make the whole selector invalid (Selectors Level 4 section-3.9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import eq
from typing import Any, NamedTuple

import tinycss2  # type: ignore[import-untyped]  # it ships no types
from cssselect2 import parser  # type: ignore[import-untyped]  # nor does it
from tinycss2.nth import parse_nth  # type: ignore[import-untyped]

from comity.policies.document.selector_index import (
    XLINK_HREF,
    Outline,
    Positions,
    lower,
    tree_name,
    words,
)

MAX_CHARS = 2000  # of a selector
MAX_FUNCTIONS = 20  # of a selector, counted as "("

_COMPARED = 64  # characters of attributes for each step
_TO_COMPILE = 16  # steps for each character of a selector

# Compare the value of an attribute. "" matches nothing (Selectors Level 4, section 6.2).
_OPERATORS: dict[str | None, Callable[[str, str], bool]] = {
    None: lambda actual, value: True,
    "=": eq,
    "~=": lambda actual, value: value in words(actual),
    "|=": lambda actual, value: actual == value or actual.startswith(f"{value}-"),
    "^=": lambda actual, value: bool(value) and actual.startswith(value),
    "$=": lambda actual, value: bool(value) and actual.endswith(value),
    "*=": lambda actual, value: bool(value) and value in actual,
}
# Attributes whose values are compared without regard to case (HTML Standard section-4.16.2).
_ATTRIBUTES = """
accept accept-charset align alink axis bgcolor charset checked clear codetype color compact declare
defer dir direction disabled enctype face frame hreflang http-equiv lang language link media method
multiple nohref noresize noshade nowrap readonly rel rev rules scope scrolling selected shape target
text type valign valuetype vlink
"""
_ANY_CASE = frozenset(_ATTRIBUTES.split())
# Names of attributes in the tree: NameStartChar and NameChar of XML section-2.3, and at most one
# colon. Namespace declarations are not in the tree.
_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef"
)
_START += "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_LOCAL_NAME = rf"[{_START}][{_START}0-9.\xb7\u0300-\u036f\u203f\u2040-]*+"
_XML_NAME = re.compile(rf"(?!(?i:xmlns)){_LOCAL_NAME}(?::{_LOCAL_NAME})?")
# Pseudo-classes and pseudo-elements of CSS that are not supported. Functions have "()". Names with
# `-` at the beginning are a browser's own, and not supported either. Sources: Selectors Level 4,
# HTML Standard section-4.16.3, CSS Pseudo-Elements Level 4, CSS View Transitions, WebVTT, CSS
# Overflow Level 5, CSS Forms, CSS Shadow. `::text` and `::attr()` are parsel's.
_NAMES = """
active active-view-transition active-view-transition-type() after attr() autofill backdrop before
blank buffering checked checkmark column cue cue() cue-region cue-region() current current() default
defined details-content dir() disabled enabled file-selector-button first-letter first-line focus
focus-visible focus-within fullscreen future grammar-error has-slotted heading heading() highlight()
host host() host-context() hover in-range indeterminate interest-source interest-target invalid
local-link marker modal muted nth-col() nth-last-col() open optional out-of-range part() past paused
picker() picker-icon picture-in-picture placeholder placeholder-shown playing popover-open read-only
read-write required scroll-button() scroll-marker scroll-marker-group search-text seeking selection
slotted() spelling-error stalled state() target target-after target-before target-current
target-text target-within text user-invalid user-valid valid view-transition view-transition-group()
view-transition-image-pair() view-transition-new() view-transition-old() visited volume-locked
"""
_UNREAD = frozenset(_NAMES.split())
_LOGICAL = frozenset(("is", "where", "matches", "any", "-webkit-any", "-moz-any", "not", "has"))


class SelectorError(ValueError):
    """A selector that cannot be read."""


Test = Callable[[Outline, Positions], Positions]  # returns the positions that pass


class Compound(NamedTuple):
    """A compound selector: the conditions on one element.

    Attributes:
        combinator: to the compound before it. "": it is the first.
        tag: name in lower case, as trees contain it. "": any name.
        ids: identifiers that the element needs.
        classes: classes that the element needs.
        tests: further conditions.
        more: True to accept the tree of any reader, see `Outline.match_combinator`."""

    combinator: str
    tag: str
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    tests: tuple[Test, ...]
    more: bool


Chain = tuple[Compound, ...]


class Selector(NamedTuple):
    """A list of selectors.

    Attributes:
        chains: one chain of compounds for each selector.
        unread: parts that are left out, so that the list selects more."""

    chains: tuple[Chain, ...]
    unread: tuple[str, ...]


@lru_cache(maxsize=4096)  # the rules of a site are applied to each of its pages
def compiled(css: str) -> Selector:
    """Return the compiled selector. SelectorError: it cannot be read. Linear in the characters."""
    if len(css) > MAX_CHARS or css.count("(") > MAX_FUNCTIONS:
        raise SelectorError(
            f"it has more than {MAX_CHARS} characters, or more than {MAX_FUNCTIONS} functions"
        )
    tokens = tinycss2.parse_component_value_list(f"{css})", skip_comments=True)
    # The additional bracket has to be unmatched. CSS closes open brackets at the end, but here an
    # open bracket means that a part of the selector is missing.
    if not tokens or tokens.pop().type != "error":
        raise SelectorError("a bracket or a string is not closed")
    compiler = _Compiler()
    chains = compiler.chains(tokens, more=True)
    return Selector(tuple(chains), tuple(dict.fromkeys(compiler.unread)))


class _AnyNamespace(dict[str | None, str]):
    """The namespaces of a selector. No prefix is declared, so each prefix is its own namespace."""

    def get(self, prefix: str | None, default: Any = None) -> Any:
        return default if prefix is None else prefix


_NAMESPACES = _AnyNamespace({"": ""})  # cssselect2 ignores an empty mapping


class _Compiler:
    """Compiles one list of selectors.

    Attributes:
        unread: parts that are left out."""

    def __init__(self) -> None:
        self.unread: list[str] = []

    def chains(self, tokens: Iterable[Any], *, more: bool) -> list[Chain]:
        """Return the chains of a list of selectors.

        `more` is True if parts may be left out so that more is selected. False inside `:not()`,
        where less has to be selected."""
        return [self._chain(selector.parsed_tree, more=more) for selector in _parse(tokens)]

    def _chain(self, node: Any, *, more: bool) -> Chain:
        compounds = []
        while isinstance(node, parser.CombinedSelector):
            compounds.append(self._compound(node.combinator, node.right, more=more))
            node = node.left
        return (self._compound("", node, more=more), *reversed(compounds))

    def _compound(self, combinator: str, node: Any, *, more: bool) -> Compound:
        tag, ids, classes, tests = "", [], [], []
        for simple in node.simple_selectors:
            if isinstance(simple, parser.LocalNameSelector):
                tag = tree_name(simple.lower_local_name)
            elif isinstance(simple, parser.IDSelector):
                ids.append(simple.ident)
            elif isinstance(simple, parser.ClassSelector):
                classes.append(simple.class_name)
            elif not isinstance(simple, parser.NamespaceSelector):
                tests.append(self._test(simple, more=more))
            elif simple.namespace is not None:
                tests.append(self._left_out(f"{simple.namespace}|", more=more))
        return Compound(combinator, tag, tuple(ids), tuple(classes), tuple(tests), more)

    def _test(self, simple: Any, *, more: bool) -> Test:
        if isinstance(simple, parser.AttributeSelector):
            if simple.namespace == "" and _XML_NAME.fullmatch(simple.name):
                return _attribute(simple)
            return self._left_out(f"[{simple.name}]", more=more)
        if isinstance(simple, parser.PseudoClassSelector):
            return _PSEUDO_CLASSES.get(simple.name) or self._left_out_pseudo(simple.name, more=more)
        name = simple.name.removeprefix(_MARK)
        return self._function(name, simple.arguments, more=more)

    def _left_out_pseudo(self, name: str, *, more: bool) -> Test:
        if not (name in _UNREAD or name.startswith("-")):
            raise SelectorError(f"CSS does not know `:{name}`")
        return self._left_out(f":{name}", more=more)

    def _left_out(self, part: str, *, more: bool) -> Test:
        self.unread.append(part)
        return _all if more else _none

    def _function(self, name: str, arguments: Sequence[Any], *, more: bool) -> Test:
        if name == "not":
            return _among(self.chains(arguments, more=not more), negated=True)
        if name == "has":
            relatives = _parse(arguments, relative=True)
            chains = [
                (part.combinator, self._chain(part.selector.parsed_tree, more=more))
                for part in relatives
            ]
            return _having(chains, more=more)
        if name in _LOGICAL:
            return _among(self.chains(arguments, more=more))
        if name == "lang":
            return _lang(arguments, more=more)
        return (
            self._nth(name, arguments, more=more)
            if name in _NTH
            else self._left_out_pseudo(f"{name}()", more=more)
        )

    def _nth(self, name: str, arguments: Sequence[Any], *, more: bool) -> Test:
        of = next(
            (
                position
                for position, argument in enumerate(arguments)
                if argument.type == "ident" and argument.lower_value == "of"
            ),
            None,
        )
        try:
            series = parse_nth(list(arguments[:of]))
        except StopIteration:  # tinycss2 reads past a `+` at the end
            series = None
        kind = _NTH[name]
        if series is None or (of is not None and "type" in kind):
            raise SelectorError(f"`:{name}()` has invalid arguments")
        step, offset = series
        if of is None:
            return _series(step, offset, of_type="type" in kind, from_end="end" in kind)
        before = len(self.unread)
        chains = self.chains(arguments[of + 1 :], more=True)
        if len(self.unread) > before:  # without these parts the numbers would be wrong
            del self.unread[before:]
            return self._left_out(f":{name}()", more=more)
        return _series_among(chains, step, offset, from_end="end" in kind)


# Prefix for functions that cssselect2 reads itself, and rejects if it cannot read an argument.
_MARK = "comity-"


def _parse(tokens: Iterable[Any], *, relative: bool = False) -> list[Any]:
    """Return the selectors of a list. SelectorError: one of them is not a selector."""
    prepared: list[Any] = []
    for value in tokens:
        if value.type == "function" and value.lower_name in _LOGICAL:
            value.lower_name = _MARK + value.lower_name
        # A pseudo-element is a part of its element. With one colon it is left out like a state.
        if not (value == ":" and prepared and prepared[-1] == ":"):
            prepared.append(value)
    try:
        return list(parser.parse(prepared, _NAMESPACES, relative=relative))
    except (parser.SelectorError, AttributeError) as error:  # AttributeError: it ends too early
        raise SelectorError(
            f"it is not a selector: {error.args[-1] if error.args else 'it ends too early'}"
        ) from None


# Tests


def _all(outline: Outline, positions: Positions) -> Positions:
    return positions


def _none(outline: Outline, positions: Positions) -> Positions:
    return []


def _attribute(node: Any) -> Test:
    name, matches = node.lower_name, _OPERATORS[node.operator]
    value = node.value or ""
    any_case = name in _ANY_CASE if node.case_sensitive is None else not node.case_sensitive
    value = lower(value) if any_case else value

    def test(outline: Outline, positions: Positions) -> Positions:
        texts = outline.attribute(node.name)
        actual = [*map(texts.get, positions)]  # None: the element has no such attribute
        outline.budget.spend(len(positions) + sum(map(len, filter(None, actual))) // _COMPARED)
        if matches is eq and not any_case and value not in actual:
            return []
        return [
            position
            for position, text in zip(positions, actual, strict=True)
            if text is not None and matches(lower(text) if any_case else text, value)
        ]

    return test


def _among(chains: Sequence[Chain], *, negated: bool = False) -> Test:
    def test(outline: Outline, positions: Positions) -> Positions:
        selected = {position for chain in chains for position in _positions(chain, outline)}
        outline.budget.spend(len(positions))
        return [position for position in positions if (position in selected) is not negated]

    return test


def _having(relatives: Sequence[tuple[str, Chain]], *, more: bool) -> Test:
    """Return the test of `:has()`. It goes from the last compound back to the element."""

    def test(outline: Outline, positions: Positions) -> Positions:
        selected: set[int] = set()
        for combinator, chain in relatives:
            behind = _passing(chain[-1], outline)
            for compound, after in zip(reversed(chain[:-1]), reversed(chain), strict=False):
                passing = frozenset(_passing(compound, outline))
                behind = [
                    position
                    for position in outline.leading(after.combinator, behind, more=more)
                    if position in passing
                ]
            selected.update(outline.leading(combinator, behind, more=more))
        outline.budget.spend(len(positions))
        return [position for position in positions if position in selected]

    return test


def _link(outline: Outline, positions: Positions) -> Positions:
    outline.budget.spend(len(positions))
    elements = outline.elements
    return [
        position
        for position in positions
        if elements[position].tag in ("a", "area")
        and (
            elements[position].get("href") is not None
            or elements[position].get(XLINK_HREF) is not None  # in SVG
        )
    ]


def _empty(outline: Outline, positions: Positions) -> Positions:
    outline.budget.spend(len(positions))
    return [position for position in positions if position in outline.empty]


def _lang(arguments: Sequence[Any], *, more: bool) -> Test:
    """Return the test of `:lang()`: extended filtering (RFC 4647 section-3.3.2).

    An element without a declared language may have any, because the page or its header fields may
    declare one."""
    ranges = [
        str(argument.value).lower()
        for argument in arguments
        if argument.type in ("ident", "string")
    ]
    if not ranges or any(
        argument.type not in ("ident", "string", "whitespace") and argument != ","
        for argument in arguments
    ):
        raise SelectorError("`:lang()` has arguments that are not languages")

    def test(outline: Outline, positions: Positions) -> Positions:
        outline.budget.spend(len(outline.elements) // 4 + len(positions))
        languages = outline.languages
        matching = {
            tag: any(_is_in_range(tag, language_range) for language_range in ranges)
            for tag in {*languages.values()}
        }
        return [
            position
            for position in positions
            if (matching[languages[position]] if position in languages else more)
        ]

    return test


def _is_in_range(tag: str, language_range: str) -> bool:
    subtags, range_subtags = tag.split("-"), language_range.split("-")
    if range_subtags[0] not in ("*", subtags[0]) or not tag:
        return False
    index = 1
    for subtag in range_subtags[1:]:
        while index < len(subtags) and subtag != "*" and subtags[index] != subtag:
            if len(subtags[index]) == 1:
                return False
            index += 1
        if subtag != "*" and index == len(subtags):
            return False
        index += subtag != "*"
    return True


def _series(step: int, offset: int, *, of_type: bool = False, from_end: bool = False) -> Test:
    """Return the test of An+B among the siblings, or among those with the same name."""

    def test(outline: Outline, positions: Positions) -> Positions:
        numbers = outline.numbers(of_type=of_type, from_end=from_end)
        outline.budget.spend(len(positions))
        if not step:
            return [position for position in positions if numbers[position] == offset]
        return [
            position for position in positions if _is_in_series(numbers[position], step, offset)
        ]

    return test


def _series_among(chains: Sequence[Chain], step: int, offset: int, *, from_end: bool) -> Test:
    """Return the test of An+B among the selected siblings."""

    def test(outline: Outline, positions: Positions) -> Positions:
        selected = sorted(
            {position for chain in chains for position in _positions(chain, outline)},
            reverse=from_end,
        )
        outline.budget.spend(2 * len(selected) + len(positions))
        seen: dict[int, int] = {}
        numbers: dict[int, int] = {}
        for position in selected:
            parent = outline.parents[position]
            numbers[position] = seen.get(parent, 0) + 1
            if position not in outline.shadow_roots:
                seen[parent] = numbers[position]
        return [
            position
            for position in positions
            if position in numbers and _is_in_series(numbers[position], step, offset)
        ]

    return test


def _is_in_series(number: int, step: int, offset: int) -> bool:
    return (
        number == offset
        if not step
        else not (number - offset) % step and (number - offset) // step >= 0
    )


_NTH = {
    "nth-child": "",
    "nth-last-child": "end",
    "nth-of-type": "type",
    "nth-last-of-type": "type end",
}


def _pass_both(first: Test, second: Test) -> Test:
    return lambda outline, positions: second(outline, first(outline, positions))


def _root(outline: Outline, positions: Positions) -> Positions:
    return positions[:1] if positions[:1] == [0] else []


_FIRST, _LAST = _series(0, 1), _series(0, 1, from_end=True)
_FIRST_OF_TYPE, _LAST_OF_TYPE = (
    _series(0, 1, of_type=True),
    _series(0, 1, of_type=True, from_end=True),
)
_PSEUDO_CLASSES: dict[str, Test] = {
    "root": _root,
    "scope": _root,
    "empty": _empty,
    "link": _link,
    "any-link": _link,
    "first-child": _FIRST,
    "last-child": _LAST,
    "only-child": _pass_both(_FIRST, _LAST),
    "first-of-type": _FIRST_OF_TYPE,
    "last-of-type": _LAST_OF_TYPE,
    "only-of-type": _pass_both(_FIRST_OF_TYPE, _LAST_OF_TYPE),
}


# Selecting


def select(css: str, outline: Outline) -> list[Any]:
    """Return the elements that any selector of the list selects, in the order of the page.

    SelectorError: the list cannot be read. CostError: the budget is spent."""
    outline.budget.spend(_TO_COMPILE * len(css))
    selected: set[int] = set()
    for chain in compiled(css).chains:
        selected.update(_positions(chain, outline))
    return outline.elements_at(selected)


def _positions(chain: Chain, outline: Outline) -> Positions:
    """Return the positions that a chain selects."""
    selected: Positions = []
    for compound in chain:
        positions = _candidates(compound, outline)
        if compound.combinator:
            outline.budget.spend(len(selected) + len(positions))
            positions = outline.match_combinator(
                compound.combinator, selected, positions, more=compound.more
            )
        for test in compound.tests:
            positions = test(outline, positions)
        if not positions:
            return []
        selected = positions
    return selected


def _passing(compound: Compound, outline: Outline) -> Positions:
    """Return the positions that a compound selects without the compounds before it."""
    return _positions((compound._replace(combinator=""),), outline)


def _candidates(compound: Compound, outline: Outline) -> Positions:
    """Return the positions that a compound selects by name, identifiers and classes."""
    key = compound.tag, compound.ids, compound.classes
    if known := outline.candidates.get(key):
        positions, steps = known
        outline.budget.spend(steps)
        return positions
    lists = [outline.by_tag.get(compound.tag, [])] if compound.tag else []
    lists += [outline.by_id.get(outline.fold_case(name), []) for name in compound.ids]
    lists += [outline.by_class.get(outline.fold_case(name), []) for name in compound.classes]
    size = len(outline.elements)
    steps = 1 + sum(map(len, lists)) if lists else size
    outline.budget.spend(steps)
    lists.sort(key=len)
    positions = lists[0] if lists else [*range(size)]
    if len(lists) > 1:
        rest = frozenset(lists[1]).intersection(*lists[2:])
        positions = [position for position in positions if position in rest]
    outline.candidates[key] = positions, steps
    return positions
