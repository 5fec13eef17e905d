"""Decisions, parsing and memory of robots.txt, side by side with Protego and urllib.robotparser in one run.

python benchmarks/decisions.py"""

from __future__ import annotations

import random
import statistics
import tracemalloc
from collections.abc import Callable
from functools import partial
from time import process_time
from urllib.robotparser import RobotFileParser

from protego import Protego
from rich.console import Console
from rich.table import Table
from rounds import in_turns

from comity.policies import Agent, Site

AGENT = Agent("examplebot")
ORIGIN = "https://example.com"
SIZES = (10, 100, 1_000, 10_000)
REPEATS = 10
URLS = 500
LENGTHS = 63

console = Console(width=110)


def literal(rules: int) -> bytes:
    """Paths as sites have them, one rule in ten an Allow."""
    chance = random.Random(rules)
    lines = ["User-agent: *"]
    for number in range(rules):
        path = "/".join(
            chance.choice(["news", "shop", "a", "users", "img", "x"])
            for _ in range(chance.randint(1, 3))
        )
        lines.append(f"{'Allow' if number % 10 == 0 else 'Disallow'}: /{path}/{number}/")
    return "\n".join(lines).encode()


def mixed(rules: int) -> bytes:
    """One rule in ten with wildcards."""
    lines = literal(rules).decode().split("\n")
    return "\n".join(
        line + "*.php$" if number % 10 == 5 else line for number, line in enumerate(lines)
    ).encode()


def lengths(rules: int) -> bytes:
    """Literal prefixes of LENGTHS lengths."""
    paths = (f"/{number}/".ljust(8 + number % LENGTHS, "a") for number in range(rules))
    return "\n".join(["User-agent: *", *(f"Disallow: {path}" for path in paths)]).encode()


def urls(body: bytes, tail: str = "") -> list[str]:
    """Half of them match a rule."""
    chance = random.Random(1)
    paths = [
        line.partition(": ")[2].replace("*", "x").rstrip("$")
        for line in body.decode().split("\n")[1:]
    ]
    return [
        ORIGIN + (chance.choice(paths) + "page" if number % 2 else f"/other/{number}.html") + tail
        for number in range(URLS)
    ]


def urllib_parser(body: bytes) -> RobotFileParser:
    parser = RobotFileParser()
    parser.parse(body.decode().split("\n"))
    return parser


def decide(body: bytes, of: list[str]) -> Callable[[], object]:
    """All accesses by a site that has been asked before, as it compiles at the first question."""
    site = Site.from_files(ORIGIN, {"/robots.txt": body})
    site.access(AGENT, ORIGIN)
    return lambda: [site.access(AGENT, url) for url in of]


def decisions(kind: Callable[[int], bytes]) -> Table:
    columns = (
        "rules",
        "comity us",
        "Protego us",
        "urllib us",
        "Protego / comity",
        "urllib / comity",
    )
    table = Table(*columns, title=f"One decision, {kind.__name__} rules")
    for rules in SIZES:
        body = kind(rules)
        asked = urls(body, "a" * LENGTHS if kind is lengths else "")
        protego, stdlib = Protego.parse(body.decode()), urllib_parser(body)
        protego.can_fetch(ORIGIN, "examplebot")
        few = asked[: URLS if rules <= 1_000 else 50]

        def by_protego(protego: Protego = protego, few: list[str] = few) -> object:
            return [protego.can_fetch(url, "examplebot") for url in few]

        def by_urllib(stdlib: RobotFileParser = stdlib, few: list[str] = few) -> object:
            return [stdlib.can_fetch("examplebot", url) for url in few]

        found = in_turns(decide(body, asked), by_protego, by_urllib, rounds=REPEATS)
        ours, theirs, stdlibs = (
            took.least / of for took, of in zip(found, (URLS, len(few), len(few)), strict=True)
        )
        figures = [ours * 1e6, theirs * 1e6, stdlibs * 1e6]
        table.add_row(
            f"{rules:,}",
            *(f"{figure:.1f}" for figure in figures),
            f"{theirs / ours:.1f}",
            f"{stdlibs / ours:.1f}",
        )
    return table


def parsed(body: bytes) -> object:
    """The file is parsed, and compiled for one agent."""
    return Site.from_files(ORIGIN, {"/robots.txt": body}).access(AGENT, ORIGIN)


def parsing() -> Table:
    table = Table(
        "rules",
        "KiB",
        "comity us/KiB",
        "Protego us/KiB",
        "urllib us/KiB",
        "Protego / comity",
        title="Parse, and compile for one agent",
    )
    for rules in SIZES:
        body = mixed(rules)
        kib = len(body) / 1024

        def by_protego(body: bytes = body) -> object:
            return Protego.parse(body.decode()).can_fetch(ORIGIN, "examplebot")

        def by_urllib(body: bytes = body) -> object:
            return urllib_parser(body).can_fetch("examplebot", ORIGIN)

        ours, theirs, stdlibs = (
            took.least
            for took in in_turns(partial(parsed, body), by_protego, by_urllib, rounds=REPEATS)
        )
        figures = [ours / kib * 1e6, theirs / kib * 1e6, stdlibs / kib * 1e6]
        table.add_row(
            f"{rules:,}",
            f"{kib:.1f}",
            *(f"{figure:.0f}" for figure in figures),
            f"{theirs / ours:.2f}",
        )
    return table


def cached_site(body: bytes) -> Site:
    """With a text of its own, that was asked."""
    site = Site.from_files(ORIGIN, {"/robots.txt": bytes(bytearray(body))})
    site.access(AGENT, ORIGIN)
    return site


def memory() -> Table:
    table = Table(
        "rules",
        "KiB",
        "comity / text",
        "Protego / text",
        "urllib / text",
        title="Memory of a site that was asked, relative to its text",
    )
    for rules in SIZES:
        body = mixed(rules)

        def protego_site(body: bytes = body) -> object:
            site = Protego.parse(body.decode())
            site.can_fetch(ORIGIN, "examplebot")
            return site

        makers = (partial(cached_site, body), protego_site, partial(urllib_parser, body))
        table.add_row(
            f"{rules:,}",
            f"{len(body) / 1024:.1f}",
            *(f"{held(make) / len(body):.1f}" for make in makers),
        )
    return table


def held(make: Callable[[], object]) -> float:
    """Bytes that the result keeps, the median of some."""

    def once() -> int:
        tracemalloc.start()
        kept = make()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del kept
        return size

    make()  # what the first call alone brings into memory
    return statistics.median(once() for _ in range(3))


HOSTILE = {
    "starred rules": b"User-agent: *\n" + b"Disallow: /*a*a*a*a*b\n" * 23_000,
    "agents, then rules": b"User-agent: a\n" * 18_000 + b"Disallow: /b\n" * 18_000,
    "one line": b"User-agent: *\nDisallow: /" + b"a*" * 250_000,
    "escapes": b"User-agent: *\n"
    + b"Disallow: /"
    + b"%41" * 10_000
    + b"\n"
    + b"Disallow: /%41%41%41%41\n" * 20_000,
    "a group a line": b"User-agent: examplebot\nDisallow: /b\n" * 14_000,
    "different stars": b"User-agent: *\n"
    + b"".join(b"Disallow: /*%d*x\n" % number for number in range(27_000)),
}


def hostile() -> Table:
    table = Table("500 KiB of", "parse ms", "first decision ms", "next ms", title="Hostile files")
    target = ORIGIN + "/" + "a" * 2_000
    for name, body in HOSTILE.items():
        start = process_time()
        site = Site.from_files(ORIGIN, {"/robots.txt": body[: 512 * 1024]})
        parsed = process_time()
        agent = Agent("a") if name.startswith("agents") else AGENT
        site.access(agent, target)
        first = process_time()
        site.access(agent, target)
        times = (parsed - start, first - parsed, process_time() - first)
        table.add_row(name, *(f"{time * 1e3:.1f}" for time in times))
    return table


def main() -> None:
    for table in (
        decisions(literal),
        decisions(mixed),
        decisions(lengths),
        parsing(),
        memory(),
        hostile(),
    ):
        console.print(table)


if __name__ == "__main__":
    main()
