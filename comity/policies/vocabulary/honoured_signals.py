"""The signals that crawlers honour, as their operators say.

The statements and their sources are in honoured_signals.toml. If there is no statement about a
signal, nothing was found. Crawlers may honour the signal all the same.

statements_on("robots", "Crawl-delay")    the statements about a line of robots.txt
statements_by("bingbot")                  the statements about a crawler
search_day("rsl")                           the day of the last search about a format"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

HONOURS = "honours"
IGNORES = "ignores"
MAY_IGNORE = "may ignore"
ANSWERS = (HONOURS, MAY_IGNORE, IGNORES)
WHOLE = "*"  # stands for all directives of a format


class HonourStatement(NamedTuple):
    """A statement of an operator about signals of one format.

    Attributes:
        who: The operator or the program, for sentences.
        format: The name of the format, such as "robots-meta".
        directives: The lines and words of the format, as it spells them. WHOLE means all.
        answer: One of ANSWERS.
        source: The URL of the operator's documentation.
        date: The day on which the source was read.
        crawlers: The names in known_crawlers.toml to which the statement applies. () means that
            the reader has no name there.
        detail: The addition of the documentation, in our words. "" if there is none.
        quoted_by: The URL of a page that reports the statement. "" if the source itself was read.
        spec: The beginning of the directives' specification. "" means any specification.
    """

    who: str
    format: str
    directives: tuple[str, ...]
    answer: str
    source: str
    date: date
    crawlers: tuple[str, ...] = ()
    detail: str = ""
    quoted_by: str = ""
    spec: str = ""

    def is_on(self, directive: str, spec: str = "") -> bool:
        """Return True if the statement is about a directive, in any case.

        `spec`: the specification of the directive. "" means any."""
        return (not spec or spec.startswith(self.spec)) and (
            WHOLE in self.directives or directive.lower() in map(str.lower, self.directives)
        )


def statements() -> tuple[HonourStatement, ...]:
    """Return all statements."""
    return _table()[0]


def statements_on(format_: str, directive: str, spec: str = "") -> tuple[HonourStatement, ...]:
    """Return the statements about a directive of a format. The arguments are those of `is_on`."""
    return tuple(
        one for one in statements() if one.format == format_ and one.is_on(directive, spec)
    )


def statements_by(token: str) -> tuple[HonourStatement, ...]:
    """Return the statements about the crawler with this name, in any case."""
    name = token.strip().lower()
    return tuple(one for one in statements() if name in map(str.lower, one.crawlers))


def search_day(format_: str) -> date | None:
    """Return the day of the last search about a format. None: there was no search."""
    return _table()[1].get(format_)


@cache
def _table() -> tuple[tuple[HonourStatement, ...], Mapping[str, date]]:
    text = files("comity.policies.vocabulary").joinpath("honoured_signals.toml").read_text("utf-8")
    table = tomllib.loads(text)
    return tuple(map(_statement, table["statements"])), table["searched"]


def _statement(entry: dict[str, Any]) -> HonourStatement:
    lists = {name: tuple(entry.get(name, ())) for name in ("directives", "crawlers")}
    return HonourStatement(**(entry | lists))
