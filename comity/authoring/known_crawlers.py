"""Crawlers that sites address by name: who operates them, and what for (known_crawlers.toml, with sources).

known("gptbot")      the crawler of that name, in any case
nearest("GTPBot")    the one that was probably meant"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

SHORTEST = 5  # characters of a name that may be a misspelling of another; what is shorter may be anything
LONG = 9  # characters from which on two mistakes are one misspelling; before that it is one


class KnownCrawler(NamedTuple):
    """A crawler, as its operator or others document it."""

    token: str  # as its operator writes it
    operator: str
    purpose: str  # what it fetches pages for
    source: str  # URL of the documentation
    retired: bool = False  # the name is no longer used
    replaced_by: str = ""  # the name that is used instead; "": none is


def known(token: str) -> KnownCrawler | None:
    """Return the crawler of that name, in any case. None: nobody knows it, which says nothing against it."""
    return _by_name().get(token.strip().lower())


def nearest(token: str) -> KnownCrawler | None:
    """Return the crawler that was probably meant by a misspelt name. None: it is known, or like none, or like several.

    Mistakes are letters that are missing, too many, others, or in the place of their neighbours."""
    name = token.strip().lower()
    if len(name) < SHORTEST or name in _by_name():
        return None
    most = 2 if len(name) >= LONG else 1
    distances = {other: _distance(name, other, most) for other in _by_name() if abs(len(other) - len(name)) <= most}
    least = min(distances.values(), default=most + 1)
    matches = [other for other, distance in distances.items() if distance == least]
    if least > most or len(matches) > 1 or len(matches[0]) < SHORTEST or _is_variant(name, matches[0]):
        return None
    return _by_name()[matches[0]]


def known_crawlers() -> tuple[KnownCrawler, ...]:
    """Return all of them, by name."""
    return tuple(_by_name().values())


@cache
def _by_name() -> dict[str, KnownCrawler]:
    table = tomllib.loads(files("comity.authoring").joinpath("known_crawlers.toml").read_text("utf-8"))
    return {token.lower(): KnownCrawler(token, **entry) for token, entry in table.items()}


def _is_variant(name: str, other: str) -> bool:
    """Return whether they differ in digits alone: versions and generations of a name are no misspellings."""
    return _without_digits(name) == _without_digits(other)


def _without_digits(name: str) -> str:
    return "".join(char for char in name if not char.isdigit())


def _distance(name: str, other: str, most: int) -> int:
    """Return the number of mistakes between the names (restricted Damerau-Levenshtein), `most` + 1 where there are more."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, char in enumerate(name, 1):
        line = [row]
        for column, other_char in enumerate(other, 1):
            cost = min(last[column] + 1, line[column - 1] + 1, last[column - 1] + (char != other_char))
            is_swapped = row > 1 and column > 1 and char == other[column - 2] and name[row - 2] == other_char
            line.append(min(cost, before[column - 2] + 1) if is_swapped else cost)
        if min(line) > most:
            return most + 1
        before, last = last, line
    return last[-1]
