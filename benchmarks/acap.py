"""ACAP: all usages of a URL in files of 10 to 10,000 fields, the cost of reading them, and hostile files of growing size.

python benchmarks/acap.py"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.table import Table
from rounds import Rounds, in_turns

from comity.policies import Agent, Site
from comity.policies.formats.acap import Acap, AcapRules, parse
from comity.policies.formats.acap.usages import USAGES

AGENT = Agent("examplebot", purposes=("news",))
SIZES = (10, 100, 1_000, 10_000)
REPEATS = 5

console = Console(width=110)


def sections(fields: int) -> bytes:
    """A publisher's file: sections and their parts, each with fields of several usages; named records and sub-records too."""
    chance = random.Random(fields)
    lines = ["ACAP-crawler: *", "ACAP-allow-index: /", "ACAP-disallow-other: /"]
    for number in range(fields):
        if number == fields // 2:
            lines += ["ACAP-crawler: examplebot"]
        if number == 3 * fields // 4:
            lines += ["ACAP-usage-purpose: news"]
        usage = USAGES[number % len(USAGES)]
        section = number // len(USAGES) % max(1, fields // 40)
        path = chance.choice(
            [f"/s{section}/", f"/s{section}/", f"/s{section}/part/", f"/s{section}/*.html"]
        )
        qualifier = (
            " time-limit=30-days"
            if number % 3 and (usage == "index" or usage.startswith("present"))
            else ""
        )
        lines.append(f"ACAP-{'allow' if number % 3 else 'disallow'}-{usage}: {path}{qualifier}")
    return "\n".join(lines).encode()


def wildcards(fields: int) -> bytes:
    """Every second pattern begins with a wildcard."""
    lines = ["ACAP-crawler: *"]
    for number in range(fields):
        usage, path = (
            USAGES[number % len(USAGES)],
            f"/s{number // 20}/" if number % 2 else f"*/x{number // 20}.html",
        )
        lines.append(f"ACAP-{'allow' if number % 3 else 'disallow'}-{usage}: {path}")
    return "\n".join(lines).encode()


def answers(rules: AcapRules, targets: list[str]) -> None:
    for target in targets:
        matching = rules.for_purposes().matching(target)
        for usage in USAGES:
            matching.decide(usage)


def measured(read: Acap, urls: int, rounds: int = REPEATS) -> tuple[Rounds, Rounds]:
    """Seconds for all usages of a URL: when its set of matching patterns is asked for the first time, and later."""
    targets = [f"/s{number}/part/x{number}.html" for number in range(urls)]
    firsts: list[float] = []
    laters: list[float] = []
    for _ in range(rounds):
        ask = partial(answers, AcapRules(AGENT, [read]), targets)
        for figures in (firsts, laters):
            figures += in_turns(ask, rounds=1)[0].times(1 / urls).figures
    return Rounds(tuple(firsts)), Rounds(tuple(laters))


def usages(kind: Callable[[int], bytes]) -> Table:
    title = f"All {len(USAGES)} usages of a URL, {kind.__name__}"
    table = Table(
        "fields",
        "KiB",
        "us a URL",
        "/ that of 10",
        "the first time",
        "read ms",
        "compile ms",
        title=title,
    )
    ten = 0.0
    for fields in SIZES:
        body = kind(fields)
        read = parse(body, url="https://example.com/robots.txt")
        first, each = (took.least * 1e6 for took in measured(read, max(1, fields // 40)))
        ten = ten or each
        works = partial(parse, body), partial(AcapRules, AGENT, [read])
        reading, compiling = (took.least * 1e3 for took in in_turns(*works, rounds=REPEATS))
        row = (
            f"{len(body) / 1024:.0f}",
            f"{each:.1f}",
            f"{each / ten:.2f}",
            f"{first:.1f}",
            f"{reading:.1f}",
            f"{compiling:.1f}",
        )
        table.add_row(f"{fields:,}", *row)
    return table


def _lines(first: str, *, size: int, line: Callable[[int], str]) -> bytes:
    lines, number, length = [first], 0, len(first)
    while length < size:
        lines.append(line(number))
        length += len(lines[-1]) + 1
        number += 1
    return "\n".join(lines).encode()


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "every pattern matches": lambda size: _lines(
        "ACAP-crawler: *", size=size, line=lambda n: f"ACAP-allow-index: /*{'a' * (n % 50)}"
    ),
    "patterns within patterns": lambda size: _lines(
        "ACAP-crawler: *", size=size, line=lambda n: f"ACAP-disallow-index: /{'a' * n}"
    ),
    "derived against present": lambda size: _lines(
        "ACAP-crawler: *",
        size=size,
        line=lambda n: (
            f"ACAP-{'disallow-present' if n % 2 else 'allow-present-link'}: /{'*' if n % 2 else 'a*'}{'a' * (n % 99)}*{n % 9}"
        ),
    ),
    "one resource set, many fields": lambda size: _lines(
        "ACAP-resource-set: s "
        + " ".join(f"/{n}" for n in range(size // 64))
        + "\nACAP-crawler: *",
        size=size,
        line=lambda _: "ACAP-allow-(x): the-acap:resource-set:s",
    ),
    "crawlers without fields": lambda size: _lines(
        "ACAP-crawler: *", size=size, line=lambda n: f"ACAP-crawler: bot{n}"
    ),
    "purposes without fields": lambda size: _lines(
        "ACAP-crawler: *", size=size, line=lambda n: f"ACAP-usage-purpose: news{n}*"
    ),
    "composite usages": lambda size: _lines(
        "ACAP-qualified-usage: q index",
        size=size,
        line=lambda n: f"ACAP-composite-usage: c{n} crawl (q) present",
    ),
    "resources to include": lambda size: _lines(
        "ACAP-crawler: *",
        size=size,
        line=lambda n: f"ACAP-allow-present: /{chr(97 + n % 26)} must-include-resource=/{n}",
    ),
}


def hostile() -> Table:
    table = Table(
        "file",
        "128 KiB ms",
        "512 KiB ms",
        "ratio, 4 is linear",
        title="A site read, and all usages of one URL asked",
    )
    for name, made in HOSTILE.items():
        small, large = (body_seconds(made(size * 1024 - 2048)) for size in (128, 512))
        table.add_row(name, f"{small * 1e3:.0f}", f"{large * 1e3:.0f}", f"{large / small:.1f}")
    return table


def body_seconds(body: bytes) -> float:
    def work() -> None:
        page = Site.from_files("https://example.com", {"/robots.txt": body}).page(
            AGENT, f"https://example.com/{'a' * 2000}"
        )
        for usage in USAGES:
            _ = page.uses[usage]

    return in_turns(work, rounds=REPEATS)[0].least


if __name__ == "__main__":
    for kind in (sections, wildcards):
        console.print(usages(kind))
    console.print(hostile())
