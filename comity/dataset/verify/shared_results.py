"""Share the results of rechecks between similar records of a site.

The result for one record is also valid for a second record if both tags are equal, the site's files
make the same statements about both pages, and neither page makes a statement itself."""

from __future__ import annotations

import marshal
from collections.abc import Hashable
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from comity.policies import Agent, Site

MAX_TAGS = 4096
MAX_PAGES = 100  # the maximum number of results for a tag, one for each set of statements

T = TypeVar("T")


class _Results(NamedTuple, Generic[T]):
    site: Site
    agent: Agent
    by_statements: dict[Hashable, T]


class Alike(Generic[T]):
    """Results by tag and by the files' statements about the page.

    The results are valid only for the moment and the agents of one run."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, bytes], _Results[T]] = {}

    def find(self, site: Site, octets: bytes, url: str, now: datetime) -> T | None:
        """Return the result for an equal tag of a page with the same statements.

        `octets`: `octets_of(tag)`. `url`: the URL of the record's page. None: there is no such
        result, or it is from another Site object."""
        results = self._results.get((site.origin, octets))
        if results is None or results.site is not site:
            return None
        return results.by_statements.get(site.statements_key(results.agent, url, now))

    def keep(
        self, site: Site, octets: bytes, agent: Agent, url: str, now: datetime, result: T
    ) -> None:
        """Keep the result for a tag, if it can be shared.

        The caller must ensure that the tag quotes no statement of its page. `octets`:
        `octets_of(tag)`. If `octets` is empty, nothing is kept."""
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
    """Return octets for comparing tags: only equal tags have equal octets.

    b"" for a tag with elements, and for a value that is not a tag: their results are not shared."""
    if type(tag) is not dict or tag.get("elements") != []:
        return b""
    try:
        return marshal.dumps(tag, 2)  # version 2 depends on values and types only, not on identity
    except ValueError:  # not plain data
        return b""
