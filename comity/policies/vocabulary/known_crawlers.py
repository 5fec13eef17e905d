"""Crawlers that sites address by name: who operates them, and what for (known_crawlers.toml, with sources).

known("gptbot")      the crawler of that name, in any case
nearest("GTPBot")    the one that was probably meant
training_crawlers()  those by which sites address the training of models"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from comity.policies.syntax.suspicions import is_nearly

SHORTEST = (
    5  # characters of a name that may be a misspelling of another; what is shorter may be anything
)
LONG = 9  # characters of a name from which on one letter that is missing, too many or another is a misspelling


class KnownCrawler(NamedTuple):
    """A crawler, as its operator or others document it."""

    token: str  # as its operator writes it
    operator: str
    purpose: str  # what it fetches pages for
    source: str  # URL of the documentation
    trains: bool = (
        False  # models are trained with what it fetches, or its name says whether they may be
    )
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
    matches = [
        other
        for other in _by_name()
        if len(other) >= SHORTEST and is_nearly(name, other) and _is_told(name, other)
    ]
    return (
        _by_name()[matches[0]] if len(matches) == 1 and not _is_variant(name, matches[0]) else None
    )


def _is_told(name: str, other: str) -> bool:
    """Return whether names that are nearly the same are too long to be two, or have the same letters."""
    return len(name) >= LONG or len(other) >= LONG or {*name} - {*"-_"} == {*other} - {*"-_"}


def known_crawlers() -> tuple[KnownCrawler, ...]:
    """Return all of them, by name."""
    return tuple(_by_name().values())


def training_crawlers() -> tuple[KnownCrawler, ...]:
    """Return those by which sites address the training of models, retired names among them: files still have these."""
    return tuple(crawler for crawler in known_crawlers() if crawler.trains)


@cache
def _by_name() -> dict[str, KnownCrawler]:
    table = tomllib.loads(
        files("comity.policies.vocabulary").joinpath("known_crawlers.toml").read_text("utf-8")
    )
    return {token.lower(): KnownCrawler(token, **entry) for token, entry in table.items()}


def _is_variant(name: str, other: str) -> bool:
    """Return whether they differ in digits alone: versions and generations of a name are no misspellings."""
    return _without_digits(name) == _without_digits(other)


def _without_digits(name: str) -> str:
    return "".join(char for char in name if not char.isdigit())
