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
YANDEX_BYTES = 500 * 1000  # "Using robots.txt"
BING_SECONDS = (1, 30)  # the Crawl-delay that Bing reads
_ADDRESS = re.compile(r"(?:https?|ftp)://[^ ]+\Z", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
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


def _bing(draft: Draft) -> Iterator[tuple[int, str]]:
    shortest, longest = BING_SECONDS
    for number, name, value in _lines(draft):
        is_number = name == "crawl-delay" and _NUMBER.fullmatch(value)
        if is_number and not shortest <= float(value) <= longest:
            yield number, f"reads from {shortest} to {longest} seconds."


def _yandex(draft: Draft) -> Iterator[tuple[int, str]]:
    if len(draft.body) > YANDEX_BYTES:
        yield 0, "reads no file of more than 500 KB."
    previous, group = 0, False  # the line before, and whether a User-agent line is above
    for number, name, _ in _lines(draft):
        if name == "crawl-delay":
            yield number, "ignores this line since 2018."
        is_apart = any(not draft.line(one).strip() for one in range(previous + 1, number))
        if name in ("allow", "disallow") and group and is_apart:
            yield number, "wants no empty line above this rule."
        group = group or name == "user-agent"
        previous = number


NAMED_READERS = {
    "bing": NamedReader(
        "Bing",
        "https://blogs.bing.com/webmaster/2012/05/03/to-crawl-or-not-to-crawl-that-is-bingbots-question",
        _bing,
    ),
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
    "yandex": NamedReader(
        "Yandex",
        "https://yandex.com/support/webmaster/robot-workings/allow-disallow.html",
        _yandex,
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
