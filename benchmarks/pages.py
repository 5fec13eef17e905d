"""Decisions about the uses of a page, side by side in one run with parsing the same page by parsel.

python benchmarks/pages.py"""

from __future__ import annotations

from typing import NamedTuple

from parsel import Selector
from rich.console import Console
from rich.table import Table
from rounds import Rounds, in_turns

from comity.policies import Agent, Site

AGENT = Agent("examplebot", uses=("train", "search"))
ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/1.html"
SIZE = 10_000  # octets of a page
ROUNDS, TIMES = 30, 20

console = Console(width=110)


class Case(NamedTuple):
    """A site and a response."""

    files: dict[str, bytes]
    fields: tuple[tuple[bytes, bytes], ...] = ()
    head: str = ""


HTML = (b"Content-Type", b"text/html; charset=utf-8")
PLAIN = "User-agent: *\nDisallow: /private/\n"
ROBOTS = """User-agent: *
usage: ai=n, search=y
content-usage: train-ai=n, search=y
content-usage: /news/ train-ai=n, search=y
content-signal: search=yes, ai-train=no
license: /license.xml
Disallow: /private/

ACAP-crawler: *
ACAP-allow-crawl: /
ACAP-allow-index: / time-limit=30-days
ACAP-allow-present-snippet: / max-length=30-words
ACAP-disallow-other: /private/
"""
LICENSE = """<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>
<permits type="usage">search</permits><prohibits type="usage">ai-train</prohibits></license></content></rsl>"""
FILES = {
    "/robots.txt": ROBOTS.encode(),
    "/license.xml": LICENSE.encode(),
    "/.well-known/tdmrep.json": b'[{"location": "/", "tdm-reservation": 1, "tdm-policy": "/tdm.json"}]',
}
FIELDS = (
    (b"Content-Usage", b"train-ai=n, search=y"),
    (b"Usage-Pref", b"ai=n"),
    (b"Content-Signal", b"search=yes, ai-train=no"),
    (b"X-Robots-Tag", b"noarchive, max-snippet:50"),
    (b"tdm-reservation", b"1"),
)
HEAD = f"""<meta name="robots" content="noai, max-image-preview:large">
<meta name="examplebot" content="notranslate">
<meta name="tdm-reservation" content="1">
<script type="application/rsl+xml">{LICENSE}</script>
"""
ANNOTATION = '<script type="application/ld+json">{"@type": "AutomationPolicyAnnotation", "allowedMechanisms": []}</script>'

CASES = {
    "nothing to read": Case({"/robots.txt": PLAIN.encode()}),
    "robots.txt alone": Case({"/robots.txt": ROBOTS.partition("license")[0].encode()}),
    "all files": Case(FILES),
    "fields": Case({"/robots.txt": PLAIN.encode()}, FIELDS),
    "meta robots alone": Case(
        {"/robots.txt": PLAIN.encode()},
        head='<meta name="robots" content="max-image-preview:large">',
    ),
    "markup": Case({"/robots.txt": PLAIN.encode()}, head=HEAD + ANNOTATION),
    "all carriers": Case(FILES, FIELDS, HEAD + ANNOTATION),
}


ITEM = """<li class="item"><a href="/news/{0}.html" title="Number {0}">A headline with some words</a>
<p>And a text below it.</p></li>
"""
START = """<!DOCTYPE html>
<html lang="en"><head><title>News</title>
<meta name="description" content="News">
{}</head><body><ul>
"""


def page(head: str) -> bytes:
    """As lists of articles are: a third of it is text."""
    start, items = START.format(head), ""
    while len(start) + len(items) < SIZE:
        items += ITEM.format(len(items))
    return f"{start}{items}</ul></body></html>\n".encode()


def measured(case: Case, rounds: int = ROUNDS) -> list[Rounds]:
    """Seconds for the decisions with the tag, and for parsing the page once."""
    site, body, headers = Site.from_files(ORIGIN, case.files), page(case.head), (HTML, *case.fields)

    def decide() -> object:
        return site.page(AGENT, URL, headers=headers, body=body).permissions

    def parse() -> object:
        return Selector(body.decode()).xpath("//title")

    return in_turns(decide, parse, rounds=rounds, times=TIMES)


def main() -> None:
    table = Table(
        "carriers",
        "decisions us",
        "one parse us",
        "decisions / parse",
        title=f"Uses of a page of {SIZE:,} octets",
    )
    for name, case in CASES.items():
        ours, parse = (took.least for took in measured(case))
        table.add_row(name, f"{ours * 1e6:.0f}", f"{parse * 1e6:.0f}", f"{ours / parse:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
