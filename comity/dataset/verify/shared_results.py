"""Records of a site have most in common. What was found out of one holds for another with an equal tag, where the files of the
site say the same of its page, and the page says nothing."""

from __future__ import annotations

import marshal
from collections.abc import Hashable
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from comity.policies import Agent, Site

MAX_TAGS = 4096
MAX_PAGES = 100  # for one tag: pages of which files say different things

T = TypeVar("T")


class _Results(NamedTuple, Generic[T]):
    site: Site
    agent: Agent
    by_statements: dict[Hashable, T]


class Alike(Generic[T]):
    """Results by tag and by what the files say of the page. Times and agents are those of one run."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, bytes], _Results[T]] = {}

    def find(self, site: Site, octets: bytes, url: str, now: datetime) -> T | None:
        """Return the result of a tag. `octets`: of the tag."""
        results = self._results.get((site.origin, octets))
        if results is None or results.site is not site:
            return None
        return results.by_statements.get(site.statements_key(results.agent, url, now))

    def keep(
        self, site: Site, octets: bytes, agent: Agent, url: str, now: datetime, result: T
    ) -> None:
        """Keep the result of a tag that says nothing by its page."""
        statements = site.statements_key(agent, url, now)
        if statements is None or not octets:
            return
        results = self._results.get((site.origin, octets))
        if results is None or results.site is not site or len(results.by_statements) >= MAX_PAGES:
            if len(self._results) >= MAX_TAGS:
                self._results.clear()
            results = self._results[site.origin, octets] = _Results(site, agent, {})
        results.by_statements[statements] = result


def octets_of(tag: Any) -> bytes:
    """Equal for equal tags without elements, and for no others; b"" for what is remembered by none."""
    if type(tag) is not dict or tag.get("elements") != []:
        return b""
    try:
        return marshal.dumps(tag, 2)  # version 2 tells equal values of equal types from all others
    except ValueError:  # no plain data
        return b""
