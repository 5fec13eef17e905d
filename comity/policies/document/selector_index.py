"""The elements of a page, numbered in order, with indexes for the questions of selectors.

Every index is linear in the page. Expensive steps are paid from a budget, because this package has
no clock (SEC-5)."""

from __future__ import annotations

import re
import string
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any, NoReturn

from comity.policies.syntax.xml_tree import attributes

MAX_ELEMENTS = 200_000  # of a page

# Attributes of SVG and MathML that have a namespace (HTML Standard section-13.2.6.1, adjust foreign
# attributes).
_XML, _XLINK = "{http://www.w3.org/XML/1998/namespace}", "{http://www.w3.org/1999/xlink}"
XLINK_HREF = f"{_XLINK}href"
_FOREIGN = {
    "xml:lang": f"{_XML}lang",
    "xml:space": f"{_XML}space",
    "xlink:href": XLINK_HREF,
    "xlink:title": f"{_XLINK}title",
}

# Elements that may be shadow hosts besides custom elements (DOM section-4.9, attach a shadow root).
_HOSTS = frozenset(
    [
        "article",
        "aside",
        "blockquote",
        "body",
        "div",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "main",
        "nav",
        "p",
        "section",
        "span",
    ]
)

_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

# Return the words of an attribute that is a list, separated by ASCII white space.
words = re.compile(r"[^ \t\n\f\r]+").findall

# A name of an element that is valid in any tree.
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*(?::[A-Za-z_][A-Za-z0-9_.-]*)?")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]")

# Element (lxml) -> the names, as lxml writes them, and values of its attributes.
ElementAttributes = dict[Any, list[tuple[str, str]]]

Positions = list[int]  # of elements in the order of the page, ascending


def lower(text: str) -> str:
    """Return the text with ASCII letters in lower case: HTML and CSS equate no other letters."""
    return text.lower() if text.isascii() else text.translate(_TO_LOWER)


def tree_name(name: str) -> str:
    """Return the name of an element in a form that is valid in XML trees.

    Different names of HTML stay different."""
    if PLAIN_NAME.fullmatch(name):
        return name
    return "_" + _NOT_IN_NAMES.sub(lambda match: f"-{ord(match[0]):x}-", name)


class CostError(Exception):
    """The budget is spent."""


class Budget:
    """The remaining steps. A step takes well under a microsecond.

    Attributes:
        remaining: steps that are left; negative: the budget is spent."""

    def __init__(self, steps: int) -> None:
        self.remaining = steps

    def spend(self, steps: int) -> None:
        """Spend some steps. CostError: too few are left."""
        self.remaining -= steps
        if self.remaining < 0:
            raise CostError

    def exhaust(self) -> NoReturn:
        """Spend all steps and raise CostError, for a page that is too large to begin with."""
        self.remaining = -1
        raise CostError


def element_attributes(root: Any) -> ElementAttributes:
    """Return the attributes of each element, in the order of the page.

    The references to the elements keep their ids: lxml creates an unreferenced object anew at each
    access."""
    return {element: attributes(element) for element in root.iter("*")}


class Outline:
    """The elements of a page, numbered in the order of the page.

    Attributes:
        budget: the steps that selectors may take.
        elements: number -> the element (lxml).
        candidates: name, identifiers and classes -> the positions with all of them, and the steps
            to find these. Many selectors of a site share them.
        parents: number -> number of the parent. -1: there is none.
        ends: number -> the number after that of the last element inside."""

    def __init__(
        self,
        root: Any,
        budget: Budget,
        *,
        any_case: bool = False,
        known: ElementAttributes | None = None,
    ) -> None:
        """Number the elements. CostError: the page is too large.

        Args:
            root: the root of the tree (lxml).
            budget: the steps that selectors may take.
            any_case: True to compare identifiers and classes without regard to case, as browsers
                do on a page without a doctype.
            known: the attributes of the elements, if they are known already."""
        self.budget = budget
        self.elements: list[Any] = []
        self.parents: list[int] = []
        self.candidates: dict[
            tuple[str, tuple[str, ...], tuple[str, ...]], tuple[Positions, int]
        ] = {}
        self._any_case = any_case
        self._attributes: dict[str, dict[int, str]] = {}
        elements = [*(known or islice(root.iter("*"), MAX_ELEMENTS + 1))]
        if len(elements) > MAX_ELEMENTS:
            budget.exhaust()
        budget.spend(len(elements))
        self._pairs = [*(known or element_attributes(root)).values()]
        positions = {element: position for position, element in enumerate(elements)}
        self.elements, self.parents = (
            elements,
            [positions.get(element.getparent(), -1) for element in elements],
        )
        self.ends = [*range(1, len(self.elements) + 1)]
        for position in range(len(self.ends) - 1, 0, -1):
            parent, end = self.parents[position], self.ends[position]
            if end > self.ends[parent]:
                self.ends[parent] = end

    def elements_at(self, positions: Collection[int]) -> list[Any]:
        """Return the elements with these numbers, in the order of the page."""
        return [self.elements[position] for position in sorted(positions)]

    def match_combinator(
        self, combinator: str, selected: Positions, positions: Positions, *, more: bool = True
    ) -> Positions:
        """Return those of `positions` that follow a selected element by the combinator.

        `more` is True to accept the tree of any reader. False: only the tree of a browser that runs
        scripts, with nothing in a `noscript` or `template`, and a `tbody` around rows."""
        parents = self.parents
        if combinator == " ":
            return (
                self._inside(selected, positions)
                if more
                else [*self._within(selected, positions, self.trees)]
            )
        if combinator == "~":
            first: dict[int, int] = {}  # parent -> first child found
            for position in selected:
                if position not in self.shadow_roots:
                    first.setdefault(parents[position], position)
            return [
                position
                for position in positions
                if first.get(parents[position], position) < position
            ]
        among = frozenset(selected)
        if combinator == "+":
            return [position for position in positions if self._previous[position] in among]
        if not more:
            trees = self.trees
            return [
                position
                for position in positions
                if parents[position] in among and trees[position] == trees[parents[position]]
            ]
        positions = self._inside(selected, positions)
        # Browsers put a tbody around rows. For other readers rows are children of the table too.
        bodies = self._bodies
        if not bodies:
            return [position for position in positions if parents[position] in among]
        return [
            position
            for position in positions
            if parents[position] in among
            or (position in bodies and parents[parents[position]] in among)
        ]

    def leading(self, combinator: str, selected: Positions, *, more: bool = True) -> Positions:
        """Return the positions that a selected element follows by the combinator.

        Some positions may be in the result twice. `more` is an argument of `match_combinator`."""
        self.budget.spend(len(selected) + len(self.elements) // 8)
        parents, trees = self.parents, self.trees
        if combinator == " ":
            leading: set[int] = set()
            for position in selected:
                tree = trees[position]
                while (
                    (position := parents[position]) >= 0
                    and position not in leading
                    and (more or trees[position] == tree)
                ):
                    leading.add(position)
            return sorted(leading)
        if combinator == ">":
            if not more:
                return sorted(
                    {
                        parents[position]
                        for position in selected
                        if trees[parents[position]] == trees[position]
                    }
                    - {-1}
                )
            rows = (parents[parents[position]] for position in selected if position in self._bodies)
            return sorted(
                {parents[position] for position in selected if parents[position] >= 0}.union(rows)
            )
        if combinator == "+":
            return sorted(
                {self._previous[position] for position in selected if self._previous[position] >= 0}
            )
        last: dict[int, int] = {}  # parent -> last child found
        for position in selected:
            if position not in self.shadow_roots:
                last[parents[position]] = position
        self.budget.spend(len(self.elements))
        return [
            position
            for position, parent in enumerate(parents)
            if parent >= 0 and last.get(parent, -1) > position and position not in self.shadow_roots
        ]

    def _inside(self, selected: Positions, positions: Positions) -> Positions:
        """Return the positions inside a selected element, in any tree.

        The elements inside an element have consecutive numbers: each range is cut out at once."""
        inside: Positions = []
        end = 0
        for ancestor in selected:
            if ancestor >= end:  # not inside the selected element before it
                end = self.ends[ancestor]
                first = bisect_right(positions, ancestor)
                inside += positions[first : bisect_left(positions, end, first)]
        return inside

    def _within(
        self, selected: Positions, positions: Positions, trees: Sequence[int]
    ) -> Iterator[int]:
        """Yield the positions inside a selected element of the same tree.

        `trees`: number -> the tree of the element."""
        ancestors = iter(selected)
        ancestor, reach = next(ancestors, None), dict[int, int]()  # tree -> end of the ancestors
        for position in positions:
            while ancestor is not None and ancestor < position:
                tree = trees[ancestor]
                reach[tree] = max(reach.get(tree, 0), self.ends[ancestor])
                ancestor = next(ancestors, None)
            if position < reach.get(trees[position], 0):
                yield position

    @cached_property
    def trees(self) -> Sequence[int]:
        """For each element the next `noscript` or `template` around it; -1: there is none.

        For browsers the content of these elements is not part of the tree around them."""
        tops = {*self.by_tag.get("noscript", ()), *self.by_tag.get("template", ())}
        trees = array("i", [-1]) * len(self.parents)
        for position, parent in enumerate(self.parents if tops else ()):
            trees[position] = parent if parent in tops else trees[parent] if parent >= 0 else -1
        return trees

    @cached_property
    def _bodies(self) -> frozenset[int]:
        """The rows in a tbody of a table."""
        tags = [element.tag for element in self.elements] if "tbody" in self.by_tag else []
        bodies = {
            position
            for position in self.by_tag.get("tbody", ())
            if self.elements[self.parents[position]].tag == "table"
        }
        return frozenset(
            position
            for position, tag in enumerate(tags)
            if tag == "tr" and self.parents[position] in bodies
        )

    def fold_case(self, name: str) -> str:
        """Return an identifier or class in lower case if the page compares them in any case."""
        return lower(name) if self._any_case else name

    def attribute(self, name: str) -> dict[int, str]:
        """Return position -> value of an attribute. Attributes of SVG may have capital letters."""
        if name not in self._attributes:
            # Each element searches its own attributes.
            self.budget.spend(len(self.elements) // 8 + self._attribute_count // 16)
            lower_name = lower(name)
            foreign = _FOREIGN.get(lower_name, name)
            values = self._by_name.get(lower_name, {})
            if foreign != lower_name:
                values = values | {
                    position: text
                    for position, text in self._by_name.get(foreign, {}).items()
                    if position not in values
                }
            self._attributes[name] = values
        return self._attributes[name]

    @cached_property
    def _attribute_count(self) -> int:
        return sum(map(len, self._pairs))

    @cached_property
    def _by_name(self) -> dict[str, dict[int, str]]:
        """Name of an attribute, as in the tree -> position -> value."""
        by_name: dict[str, dict[int, str]] = {}
        for position, pairs in enumerate(self._pairs):
            for name, value in pairs:
                if name in by_name:
                    by_name[name][position] = value
                else:
                    by_name[name] = {position: value}
        return by_name

    @cached_property
    def languages(self) -> dict[int, str]:
        """Position -> language tag in lower case, of the element or the next one around it.

        Elements without a language are left out."""
        declared = self.attribute("xml:lang") | self.attribute("lang")
        languages: dict[int, str] = {}
        for position, parent in enumerate(self.parents):
            language = (
                declared[position].strip().lower()
                if position in declared
                else languages.get(parent)
            )
            if language is not None:
                languages[position] = language
        return languages

    @cached_property
    def by_tag(self) -> dict[str, Positions]:
        """Name -> positions.

        Names are without prefix, in lower case (those of SVG have capitals), as `tree_name` writes
        them."""
        tags = [element.tag for element in self.elements]
        names = {tag: tree_name(lower(tag.rpartition("}")[2])) for tag in {*tags}}
        positions: dict[str, Positions] = {}
        for position, tag in enumerate(tags):
            positions.setdefault(names[tag], []).append(position)
        return positions

    @cached_property
    def by_id(self) -> dict[str, Positions]:
        """Identifier -> positions."""
        positions: dict[str, Positions] = {}
        for position, name in self.attribute("id").items():
            positions.setdefault(self.fold_case(name), []).append(position)
        positions.pop("", None)
        return positions

    @cached_property
    def by_class(self) -> dict[str, Positions]:
        """Class -> positions."""
        positions: dict[str, Positions] = {}
        names: dict[str, tuple[str, ...]] = {}  # value of the attribute -> its classes
        for position, value in self.attribute("class").items():
            if value not in names:
                names[value] = tuple(dict.fromkeys(words(self.fold_case(value))))
            for name in names[value]:
                positions.setdefault(name, []).append(position)
        return positions

    @cached_property
    def shadow_roots(self) -> frozenset[int]:
        """The templates that browsers turn into shadow roots of their parents.

        Their content is in the tree, but they are not siblings of the parent's other children (HTML
        Standard section-13.2.6.4.4, "template")."""
        templates = self.by_tag.get("template", ())
        modes = self.attribute("shadowrootmode") if templates else {}
        roots: dict[int, int] = {}  # host -> its first shadow root
        for position in templates:
            host = self.parents[position]
            if (
                lower(modes.get(position, "")) in ("open", "closed")
                and host >= 0
                and _may_be_host(self.elements[host].tag)
            ):
                roots.setdefault(host, position)
        return frozenset(roots.values())

    @cached_property
    def _previous(self) -> list[int]:
        """For each element the sibling before it; -1: there is none."""
        last: dict[int, int] = {}
        previous = []
        for position, parent in enumerate(self.parents):
            previous.append(last.get(parent, -1))
            if position not in self.shadow_roots:
                last[parent] = position
        return previous

    @cached_property
    def empty(self) -> frozenset[int]:
        """The elements that contain no elements and no text. Every template is one."""
        hosts = (
            root - 1
            for root in self.shadow_roots
            if self.parents[root] == root - 1 and self.ends[root] == self.ends[root - 1]
        )
        positions = chain(
            hosts, (position for position, end in enumerate(self.ends) if end == position + 1)
        )
        childless = ((position, self.elements[position]) for position in positions)
        return frozenset(
            position
            for position, element in childless
            if not element.text and not any(comment.tail for comment in element)
        ).union(self.by_tag.get("template", ()))

    @cached_property
    def _numbers(self) -> dict[tuple[bool, bool], list[int]]:
        return {}

    def numbers(self, *, of_type: bool, from_end: bool) -> list[int]:
        """Return for each element its number among its siblings, or among those with its name.

        Numbers begin with 1."""
        key = of_type, from_end
        if key not in self._numbers:
            kinds = (
                [*zip(self.parents, (element.tag for element in self.elements), strict=True)]
                if of_type
                else self.parents
            )
            seen: dict[object, int] = {}
            numbers = [0] * len(kinds)
            for position in range(len(kinds))[:: -1 if from_end else 1]:
                kind = kinds[position]
                numbers[position] = seen.get(kind, 0) + 1
                if position not in self.shadow_roots:
                    seen[kind] = numbers[position]
            self._numbers[key] = numbers
        return self._numbers[key]


def _may_be_host(tag: str) -> bool:
    # `tree_name` writes a hyphen as "-2d-".
    return tag in _HOSTS or ("-2d-" in tag if tag.startswith("_") else "-" in tag)
