"""What reports cost: the CPU of a crawl that is reported on, and a report of many hosts.

cost     CPU per page of a crawl as benchmarks/crawl.py has it: without COMITY_REPORT, with it, and with COMITY_METRICS besides,
         in turns. Writing the page is no part of that; it takes what `hosts` says, once a minute
hosts    a collector that has heard of so many hosts: CPU and memory of hearing, and of the report as value and as page, which
         must be no larger than 5 MB"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import crawl
from crawl import Case, Comparison
from rich.console import Console
from rich.table import Table

from comity.gate.options import Options
from comity.policies import Decision, Reason, Source, Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.windows import StatedLimit, Window
from comity.report import hosts as counted
from comity.report.collector import Collector
from comity.report.crawled import CrawlFacts, report_of
from comity.report.writing import text_of

MOST_OCTETS = 5_000_000
ALLOWED = Decision(
    verdict=Verdict.ALLOW, reasons=(Reason(rule="robots.no-match", source=Source(url="")),)
)
TAG: dict[str, Any] = {
    "schema": 1,
    "agent": "examplebot",
    "uses": {
        name: {"verdict": "deny", "stated": name == "train", "because": [0]}
        for name in ("index", "train", "search")
    },
    "elements": [],
    "reasons": [
        {
            "rule": "robots.disallow",
            "spec": "",
            "url": "https://example.com/robots.txt",
            "line": 1,
            "text": "Disallow: /",
        }
    ],
    "policies": {},
}


class Limiter:
    """As the pace has it."""

    floor: tuple[Window, ...] = (Window(1, 1.0),)
    unread: tuple[StatedLimit, ...] = ()

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.in_flight = 0
        self.windows: tuple[Window, ...] = (
            self.floor if number % 3 else (*self.floor, Window(5, 10.0))
        )


def told_of(number: int, requests: int) -> Collector:
    """A collector that has heard of so many hosts, each with a name, a line of its own and so many requests."""
    collector = Collector()
    for turn in range(requests):
        for host in range(number):
            name = f"www.host-{host}.example"
            origin = f"https://{name}"
            if not turn:
                robots = Fetched(status=200 if host % 10 else 500, body=b"Disallow: /private/")
                collector.looked_up(
                    origin, {f"{origin}/robots.txt": robots}, "" if host % 10 else "HTTP status 500"
                )
                collector.asked_for_files(origin, 4)
            source = Source(url=f"{origin}/robots.txt", line=3, text=f"Disallow: /private-{host}/")
            refused = Decision(
                verdict=Verdict.DENY, reasons=(Reason(rule="robots.disallow", source=source),)
            )
            collector.decided(f"{origin}/private-{host}/page", refused)
            collector.decided(f"{origin}/page", ALLOWED)
            limiters = [Limiter(name, host)]
            collector.settled(limiters, collector.starting(limiters))
            collector.received(f"{origin}/page", 200)
            collector.tagged(TAG)
    return collector


def hosts(numbers: list[int], requests: int) -> Table:
    table = Table(
        "hosts",
        "hearing, µs a page",
        "MiB",
        "value, s",
        "page, s",
        "octets",
        title=f"{requests} pages of each host",
    )
    for number in numbers:
        began = time.process_time()
        collector = told_of(number, requests)
        hearing = time.process_time() - began
        del collector
        tracemalloc.start()
        collector = told_of(number, 1)
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        began = time.process_time()
        report = report_of(collector, CrawlFacts("bench", "finished", options(), "", {}, 0))
        value = time.process_time() - began
        text_of(report, as_page=True)  # templates are compiled once
        began = time.process_time()
        text = text_of(report, as_page=True)
        page = time.process_time() - began
        octets = len(text.encode())
        assert octets <= MOST_OCTETS, octets
        assert report.counts["sent"] == number
        figures = (
            f"{hearing / number / requests * 1e6:.1f}",
            f"{memory / 2**20:.1f}",
            f"{value:.3f}",
            f"{page:.3f}",
            f"{octets:,}",
        )
        table.add_row(f"{number:,}", *figures)
    return table


def options() -> Options:
    from scrapy.settings import Settings

    return Options.from_settings(Settings({"COMITY_AGENT": "examplebot"}))


def cost(rounds: int, pages: int) -> Table:
    comity = crawl.SETTINGS["comity"]
    table = Table(
        "",
        "off, ms a page",
        "with COMITY_REPORT",
        "and COMITY_METRICS",
        title=f"CPU of a crawl, least of {rounds} rounds",
    )
    with tempfile.TemporaryDirectory() as folder:
        report = comity | {"COMITY_REPORT": str(Path(folder) / "report.html")}
        crawl.SETTINGS |= {"report": report, "metrics": report | {"COMITY_METRICS": 0}}
        for case in (
            Case(bare=True, hosts=1, rules=20, pages=pages),
            Case(bare=False, hosts=1, rules=20, pages=pages),
            Case(bare=True, hosts=200, rules=20, pages=pages),
        ):
            comparison = Comparison(case, ("comity", "report", "metrics"))
            for _ in range(rounds):
                comparison.add_round()
            off = comparison.of("comity", "cpu").least
            others = (comparison.of(name, "cpu").least / off for name in ("report", "metrics"))
            table.add_row(str(case), f"{off:.3f}", *(f"x {ratio:.3f}" for ratio in others))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("cost", "hosts"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=2000, help="of a crawl (default: %(default)s)")
    parser.add_argument(
        "--hosts", type=int, nargs="*", default=[10, 1000, 2 * counted.MAX_HOSTS, 100_000]
    )
    parser.add_argument(
        "--requests", type=int, default=2, help="of each host (default: %(default)s)"
    )
    arguments = parser.parse_args()
    measured = (
        cost(arguments.rounds, arguments.pages)
        if arguments.what == "cost"
        else hosts(arguments.hosts, arguments.requests)
    )
    Console().print(measured)


if __name__ == "__main__":
    main()
