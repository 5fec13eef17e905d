"""Help for authors of robots.txt files."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.robots.checks import check
from comity.policies.formats.robots.fixes import FIXES

_AGENT = "User-agent"

DIRECTIVES = (
    Directive(
        _AGENT,
        "RFC 9309 section-2.2.1",
        "Begins a group: the agent that the rules below it bind",
        "agent",
    ),
    Directive(
        "Disallow",
        "RFC 9309 section-2.2.2",
        "URLs that begin with the path may not be fetched",
        "path",
        (_AGENT,),
    ),
    Directive(
        "Allow",
        "RFC 9309 section-2.2.2",
        "URLs that begin with the path may be fetched",
        "path",
        (_AGENT,),
    ),
    Directive(
        "Sitemap",
        "RFC 9309 section-2.2.4",
        "Names a list of the site's pages, for every crawler",
        "url",
    ),
    Directive(
        "Crawl-delay",
        "Crawl-delay (extension)",
        "The seconds between two requests",
        "seconds",
        (_AGENT,),
    ),
    Directive(
        "Request-rate",
        "Request-rate (extension)",
        "The number of requests in a period",
        "rate",
        (_AGENT,),
    ),
    Directive(
        "Visit-time",
        "Visit-time (extension)",
        "The hours of the day, in UTC, for visits",
        "hours",
        (_AGENT,),
    ),
)

VALUES = {
    "agent": {"*": "every agent that no other group names"},
    "path": {"/": "the whole site", "/*.pdf$": "URLs that end in .pdf"},
    "seconds": {"10": "ten seconds"},
    "rate": {
        "1/10s": "one request in ten seconds",
        "30/1m": "thirty in a minute",
        "1/5m 0100-0500": "one in five, from 1 to 5 UTC",
    },
    "hours": {"0100-0500": "from 1 to 5 UTC"},
}

AUTHORING = Authoring(directives=DIRECTIVES, values=VALUES, check_site=check, fixes=FIXES)
