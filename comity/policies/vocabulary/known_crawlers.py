"""Crawlers that sites address by name, with operators and purposes.

The names and their sources are in known_crawlers.toml.

known("gptbot")      the crawler with this name, in any case
nearest("GTPBot")    the crawler that was probably meant
training_crawlers()  the crawlers that stand for the training of models, as one list for
                     `comity new`, `comity check` and editors"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from comity.policies.syntax.suspicions import is_nearly

# A list of crawlers by others. It is the source about crawlers whose operators publish nothing.
LIST_OF_OTHERS = "https://github.com/ai-robots-txt/ai.robots.txt"
# Fewest characters of a name that may be a misspelling of another name.
SHORTEST = 5
# From this many characters on, one missing, added or changed letter is a misspelling.
LONG = 9


class KnownCrawler(NamedTuple):
    """A crawler, as its operator or others document it.

    Attributes:
        token: its name, as its operator writes it.
        operator: name of the operator.
        purpose: the purpose for which it fetches pages.
        source: URL of the documentation.
        trains: True if models are trained on the pages that it fetches, or if rules for its name
            decide about training.
        retired: True if the name is no longer in use.
        replaced_by: the name that is used instead. "": there is none."""

    token: str
    operator: str
    purpose: str
    source: str
    trains: bool = False
    retired: bool = False
    replaced_by: str = ""

    @property
    def is_documented(self) -> bool:
        """True if the source is a document of the operator, False if it is a list of others."""
        return self.source != LIST_OF_OTHERS


def known(token: str) -> KnownCrawler | None:
    """Return the crawler with this name, in any case. None: the list does not have it.

    An unknown name is not a mistake."""
    return _by_name().get(token.strip().lower())


def nearest(token: str) -> KnownCrawler | None:
    """Return the crawler that a misspelt name probably means.

    None: the name is known, resembles no known name, or resembles several.

    A mistake is one letter that is missing, added, changed or swapped with its neighbour. The
    first letter is always right. One letter can be the only difference between two short names.
    Therefore only doubled letters, swapped letters and other separators are mistakes in them."""
    name = token.strip().lower()
    if len(name) < SHORTEST or name in _by_name():
        return None
    matches = [
        other
        for other in _by_name()
        if len(other) >= SHORTEST and is_nearly(name, other) and _is_misspelling(name, other)
    ]
    return (
        _by_name()[matches[0]] if len(matches) == 1 and not _is_variant(name, matches[0]) else None
    )


def _is_misspelling(name: str, other: str) -> bool:
    """Return True if two similar names are too similar to be two crawlers.

    Long names are. Short names are if they have the same letters."""
    return len(name) >= LONG or len(other) >= LONG or {*name} - {*"-_"} == {*other} - {*"-_"}


def known_crawlers() -> tuple[KnownCrawler, ...]:
    """Return all known crawlers."""
    return tuple(_by_name().values())


def training_crawlers(*, with_retired: bool = False) -> tuple[KnownCrawler, ...]:
    """Return the crawlers that stand for the training of models.

    `with_retired`: include names that are no longer used, which files may still contain."""
    return tuple(
        crawler
        for crawler in known_crawlers()
        if crawler.trains and (with_retired or not crawler.retired)
    )


@cache
def _by_name() -> dict[str, KnownCrawler]:
    table = tomllib.loads(
        files("comity.policies.vocabulary").joinpath("known_crawlers.toml").read_text("utf-8")
    )
    return {token.lower(): KnownCrawler(token, **entry) for token, entry in table.items()}


def _is_variant(name: str, other: str) -> bool:
    """Return True if the names differ only in digits: versions of a name are not misspellings."""
    return _without_digits(name) == _without_digits(other)


def _without_digits(name: str) -> str:
    return "".join(char for char in name if not char.isdigit())
