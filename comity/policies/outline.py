"""The elements of a page, numbered, and what selectors ask about each of them.

All of it is linear in the page. What takes time is paid for out of a budget, for nobody has a clock here (SEC-5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, NoReturn

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

MAX_ELEMENTS = 200_000  # of a page

# HTML "in table body": what ends the tbody that browsers put around rows.
_ENDS_ROWS = frozenset(("caption", "colgroup", "thead", "tbody", "tfoot"))

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
        self._rows: dict[int, Places] = {}  # the rows of each tbody that the page leaves out and browsers put in
        elements = [*islice(root.iter("*"), MAX_ELEMENTS + 1)]
        if len(elements) > MAX_ELEMENTS:
            budget.exhaust()
        if root.xpath("boolean(//table/tr)"):
            self._fill_in(elements)
        else:
            places = {element: place for place, element in enumerate(elements)}
            self.elements, self.parents = elements, [places.get(element.getparent(), -1) for element in elements]
        self.ends = [*range(1, len(self.elements) + 1)]  # past the last element within each
        for place in range(len(self.ends) - 1, 0, -1):
            parent, end = self.parents[place], self.ends[place]
            if end > self.ends[parent]:
                self.ends[parent] = end

    def _fill_in(self, elements: list[Any]) -> None:
        """The elements, with a tbody around the rows of each table that stand in none, as browsers have it."""
        places: dict[Any, int] = {}
        open_rows: dict[Any, int] = {}  # table -> the tbody that takes its rows
        for element in elements:
            table = element.getparent()
            parent = places.get(table, -1)
            if element.tag in _ENDS_ROWS:
                open_rows.pop(table, None)
            elif element.tag == "tr" and table is not None and table.tag == "table":
                if table not in open_rows:
                    open_rows[table] = self._add(etree.Element("tbody"), parent)
                    self._rows[open_rows[table]] = []
                parent = open_rows[table]
                self._rows[parent].append(len(self.elements))
            places[element] = self._add(element, parent)

    def _add(self, element: Any, parent: int) -> int:
        self.elements.append(element)
        self.parents.append(parent)
        return len(self.elements) - 1

    def elements_at(self, places: Collection[int]) -> list[Any]:
        """In the order of the page. Of a tbody that the page leaves out: its rows."""
        found = set(places)
        for place in found & self._rows.keys():
            found.remove(place)
            found.update(self._rows[place])
        return [self.elements[place] for place in sorted(found)]

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
        # Rows are children of the table too, for who reads the page without a browser.
        rows = self._rows
        return [
            place for place in places if parents[place] in among or (parents[place] in rows and parents[parents[place]] in among)
        ]

    def _within(self, found: Places, places: Places) -> Iterator[int]:
        ancestors = iter(found)
        ancestor, reach = next(ancestors, None), 0
        for place in places:
            while ancestor is not None and ancestor < place:
                reach = max(reach, self.ends[ancestor])
                ancestor = next(ancestors, None)
            if place < reach:
                yield place

    def cased(self, name: str) -> str:
        return name.lower() if self._any_case else name

    def attribute(self, name: str) -> dict[int, str]:
        """Which elements have it, and what it says."""
        if name not in self._attributes:
            self.budget.spend(len(self.elements) // 8)
            try:
                found = {place: text for place, element in enumerate(self.elements) if (text := element.get(name)) is not None}
            except ValueError:  # no name that an attribute could have
                found = {}
            self._attributes[name] = found
        return self._attributes[name]

    @cached_property
    def by_tag(self) -> dict[str, Places]:
        found: dict[str, Places] = {}
        for place, element in enumerate(self.elements):
            found.setdefault(element.tag, []).append(place)
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


_DOCTYPE = re.compile(r"<!doctype\s", re.IGNORECASE)
_LOOKED_AT = 4096  # characters, from the start, where a doctype is looked for


def is_quirky(text: str) -> bool:
    """Whether the case of identifiers and classes is of no account to browsers: the page has no doctype."""
    return not _DOCTYPE.search(text, 0, _LOOKED_AT)
