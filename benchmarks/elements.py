"""What element rules of ai.txt add to a page, side by side in one run with parsing the same page by parsel.

python benchmarks/elements.py"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from parsel import Selector
from rich.console import Console
from rich.table import Table

from comity.policies import Agent, Page, Site
from comity.policies.document.main_text import main_text

AGENT = Agent("examplebot", uses=("train", "search"))
ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/1.html"
SIZE = 100_000  # octets of the page
TARGET = 10  # ms, for what 50 rules add
ROUNDS = 40

HTML = (b"Content-Type", b"text/html; charset=utf-8")
ITEM = """<li class="item c{1}" id="i{0}"><a href="/news/{0}.html" title="Number {0}">A headline with some words</a>
<p>And a text below it, of which <em>some</em> words are more than others. <span class="by">Author {1}</span></p></li>
"""
# The selectors of real files are of these kinds.
SELECTORS = ("#i{}", ".c{} p", "li.item:nth-child({}) > p", "ul > .c{} .by", 'a[href="/news/{}.html"]')

console = Console(width=110)


def page() -> bytes:
    """As lists of articles are."""
    start, items, number = "<!DOCTYPE html>\n<html><head><title>News</title></head><body><main><ul>\n", [], 0
    while len(start) + number * len(ITEM) < SIZE:
        items.append(ITEM.format(number, number % 50))
        number += 1
    return f"{start}{''.join(items)}</ul></main></body></html>\n".encode()


def ai_txt(rules: int) -> bytes:
    elements = (SELECTORS[number % len(SELECTORS)].format(number) for number in range(rules))
    lines = (f"    Element: {element}\n      Disallow: Train\n" for element in elements)
    return f"User-agent: *\n  Path: /news/ html\n{''.join(lines)}".encode()


def best(*works: Callable[[], object]) -> list[float]:
    """Milliseconds of each: the best of some rounds in which they take turns, what the machine does beside it only adds."""
    found = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            start = perf_counter()
            work()
            found[number] = min(found[number], (perf_counter() - start) * 1e3)
    return found


def main() -> None:
    body = page()
    text = body.decode()
    table = Table(
        "rules",
        "parse ms",
        "page and tag ms",
        "of which site.page ms",
        "added ms",
        title=f"One item of a page of {len(body):,} octets, as the ready spider makes it; {TARGET} ms may be added for 50 rules",
    )
    links = [f"{ORIGIN}{link}" for link in Selector(text, type="html").css("a::attr(href)").getall()]
    plain = 0.0
    for rules in (0, 1, 50, 500):
        site = Site.from_files(ORIGIN, {"/ai.txt": ai_txt(rules)} if rules else {})
        trees: list[Selector] = []  # parsed before the clock runs: the spider's own

        def judged(site: Site = site) -> Page:
            return site.page(AGENT, URL, headers=[HTML], body=body)

        def tagged(site: Site = site, trees: list[Selector] = trees) -> object:
            made = site.page(AGENT, URL, headers=[HTML], body=body)
            main = made.element_rules.text if made.element_rules else main_text(trees[-1])
            fields = {"url": URL, "title": "News", "text": main, "links": links, "html": None}
            return made.tag_of(fields, {"url": ""})

        def parse(trees: list[Selector] = trees) -> object:
            trees[:] = [Selector(text, type="html")]
            return trees[-1].xpath("//title")

        parsing, judging, tagging = best(parse, judged, tagged)
        plain = plain or tagging  # without rules
        table.add_row(str(rules), f"{parsing:.1f}", f"{tagging:.1f}", f"{judging:.1f}", f"{tagging - plain:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
