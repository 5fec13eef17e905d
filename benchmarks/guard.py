"""What the guard costs a request: one as they come, and those that are meant to cost, up to what servers let through.

python benchmarks/guard.py"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from rounds import in_turns

from comity.guard import Guard, Incoming, Pass, SharedClients

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
ROBOT = "examplebot/1.0 (+https://example.com/bot)"
REPEATS = 30

console = Console(width=110)

ROBOTS = "".join(
    [
        "User-agent: *\nDisallow: /private/\n",
        *(f"Disallow: /*word{number}*other{number}$\n" for number in range(300)),
        *(f"\nUser-agent: bot{number}\nDisallow: /*x{number}*\n" for number in range(100)),
        "\nACAP-crawler: *\n",
        *(f"ACAP-disallow-crawl: /*acap{number}*b\n" for number in range(100)),
    ]
)
AUTOMATION = "".join(
    [
        "scope: /\nallowed-methods: GET, POST\nrequest-limit: 1000000/second\nconcurrent-limit: 1000\n\n",
        *(
            f"scope: /a{number}/*/x{number}\nallowed-methods: GET, HEAD\nallowed-purposes: research\n\n"
            for number in range(100)
        ),
    ]
)
FILES = {"/robots.txt": ROBOTS.encode(), "/automation-preferences.txt": AUTOMATION.encode()}

NUMBERS = count(1000)


def filled(unit: str, length: int) -> Callable[[], str]:
    """Another text each time."""
    return lambda: f"{unit * (length // len(unit) + 1)}"[: length - 4] + str(next(NUMBERS))


def plain(text: str) -> Callable[[], str]:
    return lambda: text


REQUESTS: dict[str, tuple[Callable[[], str], dict[str, Callable[[], str]]]] = {
    "of a robot": (filled("/page", 24), {}),
    "of a person": (filled("/page", 24), {"user-agent": plain(BROWSER)}),
    "robots.txt": (plain("/robots.txt"), {}),
    "path of 2,000": (filled("/word1*x", 2000), {}),
    "path of 8,000": (filled("/word1*x", 8000), {}),
    "8,000, escapes": (filled("/%2e%2e/%41%2F", 8000), {}),
    "8,000, dots": (filled("/a/..", 8000), {}),
    "8,000, slashes": (filled("/", 8000), {}),
    "8,000, four crawlers": (
        filled("/word1*x", 8000),
        {"user-agent": plain("bot1 bot2 bot3 bot4")},
    ),
    "path of 64,000": (filled("/a/..", 64_000), {}),
    "User-Agent of 64,000": (plain("/"), {"user-agent": filled("bot1 a;(", 64_000)}),
    "purposes of 64,000": (plain("/"), {"automation-purpose": filled("a, ", 64_000)}),
    "methods of 64,000": (plain("/"), {"x-http-method-override": filled("a, ", 64_000)}),
    "Referer of 64,000": (
        plain("/"),
        {"x-requested-with": plain("x"), "referer": filled("a/../", 64_000)},
    ),
}


def milliseconds(
    guard: Guard, target: Callable[[], str], fields: dict[str, Callable[[], str]]
) -> float:
    """The least CPU time of some requests: what the machine does beside it only adds."""

    def check(incoming: Incoming) -> None:
        checked = guard.check(incoming)
        if isinstance(checked, Pass):
            checked.end()

    took = []
    for _ in range(REPEATS):
        told = {"user-agent": ROBOT} | {name: value() for name, value in fields.items()}
        took.append(
            in_turns(partial(check, Incoming("GET", target(), told, "192.0.2.1")), rounds=1)[
                0
            ].least
        )
    return 1000 * min(took)


def main() -> None:
    table = Table(
        "request",
        "ms",
        "times one of a robot",
        title="Guard.check, 500 wildcard patterns and 100 scopes",
    )
    guard, usual = Guard("https://example.com", FILES), 0.0
    for name, (target, fields) in REQUESTS.items():
        took = milliseconds(guard, target, fields)
        usual = usual or took
        table.add_row(name, f"{took:.3f}", f"{took / usual:.1f}")
    with TemporaryDirectory() as folder:
        shared = Guard(
            "https://example.com", FILES, counts=SharedClients(Path(folder) / "counts.sqlite")
        )
        took = milliseconds(shared, *REQUESTS["of a robot"])
        table.add_row("of a robot, counts shared", f"{took:.3f}", f"{took / usual:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
