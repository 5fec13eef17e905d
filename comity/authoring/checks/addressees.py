"""Check whether known crawlers have the names in the files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comity.authoring.source import SiteSource
from comity.policies import Finding
from comity.policies.formats.authoring import Draft
from comity.policies.vocabulary.known_crawlers import (
    KnownCrawler,
    known,
    known_crawlers,
    nearest,
)

_AGENT_LINE = re.compile(
    rb"[ \t]*(?:user-?agent|acap-crawler)[ \t]*:[ \t]*([^#\r\n]*)", re.IGNORECASE
)
_TOKEN = re.compile(rb"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
MAX_REPORTED = 50  # the maximum number of names that are reported in one file


def check_addressees(source: SiteSource) -> Iterator[Finding]:
    """Yield a finding for each name of a crawler that is unknown, misspelled or out of use."""
    names = source.site.crawler_names
    for file in source.files:
        yield from _in_file(Draft(file.url, file.fetched.body), names)


def _in_file(draft: Draft, names: frozenset[str]) -> Iterator[Finding]:
    """Yield the findings about names in a file.

    `names`: the names of crawlers that the formats read in the site's files, in lower case. Other
    words on the lines are ignored."""
    reported: set[str] = set()
    for line in range(1, draft.lines + 1):
        match = _AGENT_LINE.match(draft.line(line))
        if match and b" " in match[1] and known(match[1].decode("utf-8", "replace")):
            continue  # a name of several words
        # A line of ai.txt has several names.
        for token in _TOKEN.finditer(match[1]) if match else ():
            name = token[0].decode()
            if (
                name.lower() not in names
                or name.lower() in reported
                or len(reported) == MAX_REPORTED
            ):
                continue
            if match and (problem := _problem(name)):
                reported.add(name.lower())
                rule, message = problem
                column = match.start(1) + token.start() + 1
                yield Finding(
                    rule=rule,
                    message=message,
                    url=draft.url,
                    line=line,
                    column=column,
                    length=len(name),
                )


def _problem(name: str) -> tuple[str, str] | None:
    """Return the rule and the message about a name.

    None means that it is the name of a known crawler that is still in use."""
    crawler = known(name)
    if crawler is not None and crawler.retired:
        advice = f" Write `{crawler.replaced_by}`." if crawler.replaced_by else ""
        message = f"`{name}` is no longer in use by {crawler.operator}.{advice}"
        return "comity.agent-retired", message
    if crawler is not None:
        return None
    if name.lower() in _EVERYBODY:
        message = f"`{name}` is read as the name of a crawler. For all crawlers, write `*`."
        return "comity.agent-misspelled", message
    if similar := nearest(name) or _longer(name):
        return (
            "comity.agent-misspelled",
            f"No known crawler has the name `{name}`. "
            f"If you mean the one of {similar.operator}, write `{similar.token}`.",
        )
    return "comity.agent-unknown", f"No known crawler has the name `{name}`. Check the spelling."


_EVERYBODY = frozenset(("all", "any", "anybody", "bots", "crawlers", "everybody", "everyone"))


def _longer(name: str) -> KnownCrawler | None:
    """Return the only known crawler in use whose name goes on with `-`: `ChatGPT-User`."""
    start = f"{name.lower()}-"
    longer = [
        crawler
        for crawler in known_crawlers()
        if crawler.token.lower().startswith(start) and not crawler.retired
    ]
    return longer[0] if len(longer) == 1 else None
