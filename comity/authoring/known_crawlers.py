"""Crawlers that sites address by name: who operates them, and what for (known_crawlers.toml, with sources).

known("gptbot")      the crawler of that name, in any case
nearest("GTPBot")    the one that was probably meant"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from itertools import takewhile
from operator import eq
from typing import NamedTuple

SHORTEST = 5  # characters of a name that may be a misspelling of another; what is shorter may be anything
LONG = 9  # letters of a name from which on one that is missing, too many or another is a misspelling


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

    A mistake is one letter that is missing, too many, another, or in the place of its neighbour; the first letter is right.
    Short names are told apart by one letter: of these only doubled and swapped letters, and other separators, are mistakes."""
    name = token.strip().lower()
    if len(name) < SHORTEST or name in _by_name():
        return None
    spelt = _letters(name)
    matches = [other for other in _by_name() if len(other) >= SHORTEST and _is_mistaken(spelt, _letters(other))]
    return _by_name()[matches[0]] if len(matches) == 1 and not _is_variant(name, matches[0]) else None


def _letters(name: str) -> str:
    """The name without what separates its parts."""
    return name.replace("-", "").replace("_", "")


def _is_mistaken(one: str, other: str) -> bool:
    """Return whether one name is the other with one mistake, or with other separators."""
    if one == other:
        return True
    if one[:1] != other[:1] or abs(len(one) - len(other)) > 1:
        return False
    start = sum(1 for _ in takewhile(bool, map(eq, one, other)))  # letters that they begin with alike
    one, other, before = one[start:], other[start:], one[start - 1]
    if len(one) == len(other):
        is_swapped = one[:2] == other[1::-1] and one[2:] == other[2:]
        return is_swapped or (start + len(one) >= LONG and one[1:] == other[1:])
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[1:] == shorter and (longer[0] == before or start + len(longer) >= LONG)


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
