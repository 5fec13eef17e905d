"""The elements of a page, numbered, and what selectors ask about each of them.

All of it is linear in the page. What takes time is paid for out of a budget, for nobody has a clock here (SEC-5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, NoReturn

MAX_ELEMENTS = 200_000  # of a page

# Attributes of SVG and MathML that have a namespace (HTML Standard section-13.2.6.1, adjust foreign attributes).
_XML, _XLINK = "{http://www.w3.org/XML/1998/namespace}", "{http://www.w3.org/1999/xlink}"
_FOREIGN = {
    "xml:lang": f"{_XML}lang",
    "xml:space": f"{_XML}space",
    "xlink:href": f"{_XLINK}href",
    "xlink:title": f"{_XLINK}title",
}

Places = list[int]  # of elements in the order of the page, ascending


class CostError(Exception):
    """The budget is spent."""


class Budget:
    """Steps that are left; one takes well under a microsecond."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise CostError

    def exhaust(self) -> NoReturn:
        """For what is too large to begin with."""
        self.left = -1
        raise CostError


class Outline:
    """The elements of a page, numbered in its order."""

    def __init__(self, root: Any, budget: Budget, *, any_case: bool = False) -> None:
        """`any_case`: of identifiers and classes, as browsers read a page without a doctype. CostError for too large a page."""
        self.budget = budget
        self.elements: list[Any] = []
        self.parents: list[int] = []  # -1: none
        self._any_case = any_case
        self._attributes: dict[str, dict[int, str]] = {}
        elements = [*islice(root.iter("*"), MAX_ELEMENTS + 1)]
        if len(elements) > MAX_ELEMENTS:
            budget.exhaust()
        budget.spend(len(elements))
        places = {element: place for place, element in enumerate(elements)}
        self.elements, self.parents = elements, [places.get(element.getparent(), -1) for element in elements]
        self.ends = [*range(1, len(self.elements) + 1)]  # past the last element within each
        for place in range(len(self.ends) - 1, 0, -1):
            parent, end = self.parents[place], self.ends[place]
            if end > self.ends[parent]:
                self.ends[parent] = end

    def elements_at(self, places: Collection[int]) -> list[Any]:
        """In the order of the page."""
        return [self.elements[place] for place in sorted(places)]

    def joined(self, combinator: str, found: Places, places: Places) -> Places:
        """Those of the places that stand to a found one as the combinator says."""
        parents = self.parents
        if combinator == " ":
            return [*self._within(found, places)]
        if combinator == "~":
            first: dict[int, int] = {}  # parent -> first child found
            for place in found:
                first.setdefault(parents[place], place)
            return [place for place in places if first.get(parents[place], place) < place]
        among = frozenset(found)
        if combinator == "+":
            return [place for place in places if self._previous[place] in among]
        # Rows are children of the table too, for who reads the page without a browser, which puts a tbody around them.
        bodies = self._bodies
        return [place for place in places if parents[place] in among or (place in bodies and parents[parents[place]] in among)]

    def leading(self, combinator: str, found: Places) -> Places:
        """Those elements to which a found one stands as the combinator says; some of them may stand there twice."""
        self.budget.spend(len(found) + len(self.elements) // 8)
        parents = self.parents
        if combinator == " ":
            leading: set[int] = set()
            for place in found:
                while (place := parents[place]) >= 0 and place not in leading:
                    leading.add(place)
            return sorted(leading)
        if combinator == ">":
            rows = (parents[parents[place]] for place in found if place in self._bodies)
            return sorted({parents[place] for place in found if parents[place] >= 0}.union(rows))
        if combinator == "+":
            return sorted({self._previous[place] for place in found if self._previous[place] >= 0})
        last: dict[int, int] = {}  # parent -> last child found
        for place in found:
            last[parents[place]] = place
        self.budget.spend(len(self.elements))
        return [place for place, parent in enumerate(parents) if parent >= 0 and last.get(parent, -1) > place]

    def _within(self, found: Places, places: Places) -> Iterator[int]:
        ancestors = iter(found)
        ancestor, reach = next(ancestors, None), 0
        for place in places:
            while ancestor is not None and ancestor < place:
                reach = max(reach, self.ends[ancestor])
                ancestor = next(ancestors, None)
            if place < reach:
                yield place

    @cached_property
    def _bodies(self) -> frozenset[int]:
        """The rows that stand in a tbody of a table."""
        tags = [element.tag for element in self.elements] if "tbody" in self.by_tag else []
        bodies = {place for place in self.by_tag.get("tbody", ()) if self.elements[self.parents[place]].tag == "table"}
        return frozenset(place for place, tag in enumerate(tags) if tag == "tr" and self.parents[place] in bodies)

    def cased(self, name: str) -> str:
        return name.lower() if self._any_case else name

    def attribute(self, name: str) -> dict[int, str]:
        """Which elements have it, and what it says. Those of SVG may have capitals in their names."""
        if name not in self._attributes:
            self.budget.spend(len(self.elements) // 8)
            lower, foreign = name.lower(), _FOREIGN.get(name.lower(), name)
            found = {place: text for place, element in enumerate(self.elements) if (text := element.get(lower)) is not None}
            if foreign != lower:
                others = ((place, element.get(foreign)) for place, element in enumerate(self.elements) if place not in found)
                found |= {place: text for place, text in others if text is not None}
            self._attributes[name] = found
        return self._attributes[name]

    @cached_property
    def languages(self) -> dict[int, str]:
        """The language tag of each element, lower case, as it or the next one around it says; those of which none says so are
        left out."""
        stated = self.attribute("xml:lang") | self.attribute("lang")
        languages: dict[int, str] = {}
        for place, parent in enumerate(self.parents):
            language = stated[place].strip().lower() if place in stated else languages.get(parent)
            if language is not None:
                languages[place] = language
        return languages

    @cached_property
    def by_tag(self) -> dict[str, Places]:
        found: dict[str, Places] = {}
        for place, element in enumerate(self.elements):
            found.setdefault(element.tag.lower(), []).append(place)  # those of SVG have capitals
        return found

    @cached_property
    def by_id(self) -> dict[str, Places]:
        found: dict[str, Places] = {}
        for place, name in self.attribute("id").items():
            found.setdefault(self.cased(name), []).append(place)
        found.pop("", None)
        return found

    @cached_property
    def by_class(self) -> dict[str, Places]:
        found: dict[str, Places] = {}
        names: dict[str, tuple[str, ...]] = {}  # of each value of the attribute
        for place, value in self.attribute("class").items():
            if value not in names:
                names[value] = tuple(dict.fromkeys(self.cased(value).split()))
            for name in names[value]:
                found.setdefault(name, []).append(place)
        return found

    @cached_property
    def _previous(self) -> list[int]:
        """Of each element the sibling before it; -1: none."""
        last: dict[int, int] = {}
        previous = []
        for place, parent in enumerate(self.parents):
            previous.append(last.get(parent, -1))
            last[parent] = place
        return previous

    @cached_property
    def empty(self) -> frozenset[int]:
        """The elements without elements and text in them."""
        childless = ((place, self.elements[place]) for place, end in enumerate(self.ends) if end == place + 1)
        return frozenset(
            place for place, element in childless if not element.text and not any(comment.tail for comment in element)
        )

    @cached_property
    def _numbered(self) -> dict[tuple[bool, bool], list[int]]:
        return {}

    def numbers(self, of_type: bool, from_end: bool) -> list[int]:
        """Which of its siblings, or of those of its name, each element is, from 1."""
        key = of_type, from_end
        if key not in self._numbered:
            kinds = [*zip(self.parents, (element.tag for element in self.elements), strict=True)] if of_type else self.parents
            seen: dict[object, int] = {}
            numbers = [0] * len(kinds)
            for place in range(len(kinds))[:: -1 if from_end else 1]:
                kind = kinds[place]
                numbers[place] = seen[kind] = seen.get(kind, 0) + 1
            self._numbered[key] = numbers
        return self._numbered[key]
