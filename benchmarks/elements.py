"""What element rules of ai.txt add to a page, side by side in one run with parsing the same page by parsel.

python benchmarks/elements.py"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from parsel import Selector
from rich.console import Console
from rich.table import Table
from rounds import Rounds, in_turns

from comity.policies import Agent, Page, Site
from comity.policies.document.main_text import main_text

AGENT = Agent("examplebot", uses=("train", "search"))
ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/1.html"
SIZE = 100_000  # octets of the page
TARGET = 8  # ms, for what 50 rules add
ROUNDS = 40

HTML = (b"Content-Type", b"text/html; charset=utf-8")
ITEM = """<li class="item c{1}" id="i{0}"><a href="/news/{0}.html" title="Number {0}">A headline with some words</a>
<p>And a text below it, of which <em>some</em> words are more than others. <span class="by">Author {1}</span></p></li>
"""
# The selectors of real files are of these kinds.
SELECTORS = (
    "#i{}",
    ".c{} p",
    "li.item:nth-child({}) > p",
    "ul > .c{} .by",
    'a[href="/news/{}.html"]',
)

console = Console(width=110)


def page() -> bytes:
    """As lists of articles are."""
    start, items, number = (
        "<!DOCTYPE html>\n<html><head><title>News</title></head><body><main><ul>\n",
        [],
        0,
    )
    while len(start) + number * len(ITEM) < SIZE:
        items.append(ITEM.format(number, number % 50))
        number += 1
    return f"{start}{''.join(items)}</ul></main></body></html>\n".encode()


def ai_txt(rules: int) -> bytes:
    elements = (SELECTORS[number % len(SELECTORS)].format(number) for number in range(rules))
    lines = (f"    Element: {element}\n      Disallow: Train\n" for element in elements)
    return f"User-agent: *\n  Path: /news/ html\n{''.join(lines)}".encode()


class Costs(NamedTuple):
    """Seconds, by round."""

    parse: Rounds  # of the page by parsel, once
    tag: Rounds  # of the page and its tag
    judge: Rounds  # of site.page, which is part of that
    added: Rounds  # what the rules add to the page and its tag


def measured(body: bytes, rules: int, rounds: int = ROUNDS) -> Costs:
    """Of one item, with so many rules and without any in turns."""
    text = body.decode()
    links = [
        f"{ORIGIN}{link}" for link in Selector(text, type="html").css("a::attr(href)").getall()
    ]
    site, without = (
        Site.from_files(ORIGIN, {"/ai.txt": ai_txt(rules)} if rules else {}),
        Site.from_files(ORIGIN, {}),
    )
    trees: list[Selector] = []  # parsed before the clock runs: the spider's own

    def judge() -> Page:
        return site.page(AGENT, URL, headers=[HTML], body=body)

    def tag(by: Site = site) -> object:
        made = by.page(AGENT, URL, headers=[HTML], body=body)
        main = made.element_rules.text if made.element_rules else main_text(trees[-1])
        fields = {"url": URL, "title": "News", "text": main, "links": links, "html": None}
        return made.tag_of(fields, {"url": ""})

    def parse() -> object:
        trees[:] = [Selector(text, type="html")]
        return trees[-1].xpath("//title")

    parsing, tagging, _, plain, judging = in_turns(
        parse, tag, parse, partial(tag, without), judge, rounds=rounds
    )
    added = (
        more - less
        for more, less in zip(sorted(tagging.figures), sorted(plain.figures), strict=True)
    )
    return Costs(parsing, tagging, judging, Rounds(tuple(added)))


def main() -> None:
    body = page()
    table = Table(
        "rules",
        "parse ms",
        "page and tag ms",
        "of which site.page ms",
        "added ms",
        title=f"One item of a page of {len(body):,} octets, as the ready spider makes it; {TARGET} ms may be added for 50 rules",
    )
    for rules in (0, 1, 50, 500):
        costs = measured(body, rules)
        parse, tag, judge = (took.least * 1e3 for took in costs[:3])
        table.add_row(
            str(rules),
            f"{parse:.1f}",
            f"{tag:.1f}",
            f"{judge:.1f}",
            f"{costs.added.least * 1e3:.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
