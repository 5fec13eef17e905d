"""The readings of robots.txt by readers that document them, for `comity lint --readers`.

Each reader is a row of NAMED_READERS, with the address of its documentation. A finding says how the
reader differs from RFC 9309 in a line. It takes part in no decision."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from comity.authoring.source import SiteSource
from comity.policies import Finding
from comity.policies.answers.fetched import Availability, availability
from comity.policies.formats.authoring import Draft, Remarks

RULE = "comity.reader"
GOOGLE_BYTES = 500 * 1024  # section "File format"
_ADDRESS = re.compile(r"(?:https?|ftp)://[^ ]+\Z", re.IGNORECASE)
_OF_GOOGLE = ("user-agent", "allow", "disallow", "sitemap")
# Google's parser (github.com/google/robotstxt) accepts names that begin with one of these. Google's
# documentation says that typos are not supported, so there is no finding for them.
_PARSED_BY_GOOGLE = (
    *_OF_GOOGLE,
    "useragent",
    "user agent",
    "dissallow",
    "dissalow",
    "disalow",
    "diasllow",
    "disallaw",
    "site-map",
)
_OF_LIGHTHOUSE = (
    *_OF_GOOGLE,
    "clean-param",
    "content-signal",
    "crawl-delay",
    "host",
    "noindex",
    "request-rate",
    "visit-time",
)


class Line(NamedTuple):
    """A line without its comment.

    Attributes:
        name: The text before the first colon, in lower case. None means that there is no colon.
    """

    number: int
    name: str | None
    value: str


class NamedReader(NamedTuple):
    """A reader that documents its reading.

    Attributes:
        title: The name of the reader in a message.
        source: The URL of the documentation.
        differences: Yields a line number and a message for each difference.
    """

    title: str
    source: str
    differences: Callable[[Draft], Iterator[tuple[int, str]]]


def _lines(draft: Draft) -> Iterator[Line]:
    """Yield the lines, without empty ones and comments."""
    for number in range(1, draft.lines + 1):
        text = draft.line(number).partition(b"#")[0].decode("utf-8", "replace").strip()
        name, colon, value = text.partition(":")
        if text:
            yield Line(number, name.strip().lower() if colon else None, value.strip())


def _google(draft: Draft) -> Iterator[tuple[int, str]]:
    if len(draft.body) > GOOGLE_BYTES:
        yield 0, "ignores the text behind the first 500 KiB."
    for number, name, _ in _lines(draft):
        if name is not None and not name.startswith(_PARSED_BY_GOOGLE):
            yield (
                number,
                "ignores this line: it reads only user-agent, allow, disallow and sitemap.",
            )


def _lighthouse(draft: Draft) -> Iterator[tuple[int, str]]:
    is_in_group = False
    for number, name, value in _lines(draft):
        is_in_group = is_in_group or name == "user-agent"
        is_rule = name in ("allow", "disallow")
        if name is None:
            yield number, "reports this line, because it has no colon."
        elif name not in _OF_LIGHTHOUSE:
            yield number, "reports this line, because it does not know the name."
        elif name == "user-agent" and not value:
            yield number, "reports this line, because it names no crawler."
        elif name == "sitemap" and not _ADDRESS.match(value):
            yield number, "reports this line, because its value is not an absolute URL."
        elif is_rule and value and value[0] not in "/*":
            yield number, "reports this path. Begin it with `/` or `*`."
        elif is_rule and "$" in value[:-1]:
            yield number, "reports this path. Write `$` only at its end."
        elif is_rule and not is_in_group:
            yield number, "reports this rule. Put a User-agent line above it."


NAMED_READERS = {
    "google": NamedReader(
        "Google",
        "https://developers.google.com/search/docs/crawling-indexing/robots/robots_txt",
        _google,
    ),
    "lighthouse": NamedReader(
        "Lighthouse",
        "https://developer.chrome.com/docs/lighthouse/seo/invalid-robots-txt",
        _lighthouse,
    ),
}


def check_named_readers(source: SiteSource, names: Iterable[str]) -> Iterator[Finding]:
    """Yield the findings of the readers with these names about a site's robots.txt."""
    url = f"{source.origin}/robots.txt"
    robots = source.site.files[url]
    if availability(robots) is not Availability.PRESENT:
        return
    for name in names:
        reader, remarks = NAMED_READERS[name], Remarks(url)
        for line, message in reader.differences(Draft(url, robots.body)):
            remarks.report(RULE, f"{reader.title} {message}", line=line)
        yield from remarks.findings
