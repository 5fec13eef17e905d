"""All targets in one table, with what was measured and whether they are reached: `make bench`.

    python benchmarks                                              in five minutes
    python benchmarks --minutes 25 --write docs/measurements.md    in more rounds, and into the page

What is measured takes turns: each has its round before one has another, and rounds are begun as long as they end in time. A crawl
is compared with Scrapy as it comes and with Scrapy tuned alike, with the CONCURRENT_ITEMS and the garbage collection that comity
sets. The single programs beside this one (`python benchmarks/NAME.py --help`) measure more."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import platform
import statistics
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import acap
import decisions
import elements
import exports
import handout
import pages
from crawl import Case, Comparison
from rich.console import Console
from rich.table import Table
from rounds import Rounds, calibrated, in_turns, markdown, progress
from startup import STARTS, Start, Starts

from comity.policies.formats.acap import parse

COLUMNS = ("", "least", "median", "target", "reached", "rounds", "besides")
BEGIN, END = (
    "<!-- python benchmarks --write: begin -->\n",
    "<!-- python benchmarks --write: end -->\n",
)
RECORDS = 80_000  # of an export
TEMPLATES = 2_000  # of them, judged one by one when they are made
LONG = 20_000  # pages of the crawl that shows how memory grows


class Row(NamedTuple):
    """One target, and what was found of it."""

    what: str
    least: float  # the best of the rounds: the most, where a target is to be exceeded
    median: float
    target: float
    rounds: int
    form: str = "{:.2f}"
    is_least: bool = False  # whether the target is what it should be at least
    besides: str = ""

    def reaches(self, figure: float) -> bool:
        return figure >= self.target if self.is_least else figure <= self.target

    def cells(self) -> list[str]:
        if not self.rounds:
            return [self.what, "", "", self._target, "not measured", "0", ""]
        reached = (
            "yes" if self.reaches(self.median) else "at best" if self.reaches(self.least) else "no"
        )
        figures = (self.form.format(figure) for figure in (self.least, self.median))
        return [self.what, *figures, self._target, reached, str(self.rounds), self.besides]

    @property
    def _target(self) -> str:
        return f"{'>=' if self.is_least else '<='} {self.form.format(self.target)}"


class Measurement(ABC):
    """What is measured together, round by round."""

    name: str
    seconds = 1.0  # that a round takes on a quiet machine, about
    most = 1000  # rounds

    @abstractmethod
    def add_round(self) -> None: ...

    @abstractmethod
    def rows(self) -> Iterator[Row]: ...


class Crawls(Measurement):
    """Crawls of one case by all crawlers."""

    def __init__(
        self, case: Case, to_stock: float, to_tuned: float, memory: float | None = None
    ) -> None:
        self.name = str(case)
        self._comparison, self._targets, self._memory = (
            Comparison(case),
            {"scrapy": to_stock, "tuned": to_tuned},
            memory,
        )
        self.seconds = 4 + case.pages * 0.006
        self._rounds = 0

    def add_round(self) -> None:
        self._comparison.add_round()
        self._rounds += 1

    def rows(self) -> Iterator[Row]:
        of, rounds = self._comparison, self._rounds
        for name, target in self._targets.items():
            against = (
                f"{self.name}: CPU to Scrapy {'tuned alike' if name == 'tuned' else 'as it comes'}"
            )
            if rounds:
                cpu = (
                    f"{of.of('comity', 'cpu').least:.2f} / {of.of(name, 'cpu').least:.2f} ms a page"
                )
                besides = f"{cpu}, wall time {of.ratio(name, 'wall')[0]:.2f}, peak {of.memory_beyond(name):+.0f} MiB"
                yield Row(against, *of.ratio(name), target, rounds, besides=besides)
            else:
                yield Row(against, 0, 0, target, 0)
        if self._memory is not None:
            beyond = of.memory_beyond("tuned") if rounds else 0
            yield Row(
                f"{self.name}: MiB beyond Scrapy tuned alike",
                beyond,
                beyond,
                self._memory,
                rounds,
                "{:+.0f}",
            )


class Figures(Measurement):
    """One figure of what one function measures, in rounds of its own."""

    most = 2

    def __init__(
        self,
        name: str,
        measure: Callable[[], Rounds],
        target: float,
        *,
        factor: float = 1.0,
        form: str = "{:.1f}",
    ) -> None:
        self.name, self._measure, self._target, self._factor, self._form = (
            name,
            measure,
            target,
            factor,
            form,
        )
        self._figures: list[float] = []
        self._rounds = 0

    def add_round(self) -> None:
        """Of a round that consists of shorter ones, the median of these is taken into the median."""
        self._rounds += 1
        self._figures += self._measure().times(self._factor).figures

    def rows(self) -> Iterator[Row]:
        found = Rounds(tuple(self._figures) or (0.0,))
        yield Row(
            self.name, found.least, found.median, self._target, len(self._figures), self._form
        )


class Exports(Measurement):
    """Exports of a Parquet file in one process."""

    seconds = 15.0

    def __init__(
        self, source: Path, target: float, *, is_mixed: bool = False, to: str = "JSON Lines"
    ) -> None:
        self.name = f"export to {to}{', elements in a third' if is_mixed else ''}: records a second and core"
        self._source, self._target, self._is_mixed = source, target, is_mixed
        self._suffix = ".jsonl" if to == "JSON Lines" else ".out.parquet"
        self._costs: list[exports.Cost] = []
        self._duckdb: list[exports.Cost] = []

    def add_round(self) -> None:
        if not self._source.exists():
            exports.generate(self._source, RECORDS, is_mixed=self._is_mixed, templates=TEMPLATES)
        for work, costs in ((exports.ours_alone, self._costs), (exports.by_duckdb, self._duckdb)):
            output = self._source.with_suffix(self._suffix)
            costs.append(exports.measured(work, self._source, output))
            output.unlink()

    def rows(self) -> Iterator[Row]:
        ours, theirs = (
            [RECORDS / cost.cpu for cost in costs] or [0.0] for costs in (self._costs, self._duckdb)
        )
        peak = max((cost.together for cost in self._costs), default=0) / 1e6
        yield Row(
            *(
                self.name,
                max(ours),
                statistics.median(ours),
                self._target,
                len(self._costs),
                "{:,.0f}",
            ),
            is_least=True,
            besides=f"DuckDB alone {max(theirs):,.0f}, peak {peak:.0f} MB",
        )


def decided(kind: Callable[[int], bytes], rules: int) -> Rounds:
    body = kind(rules)
    asked = decisions.urls(body, "a" * decisions.LENGTHS if kind is decisions.lengths else "")
    return in_turns(decisions.decide(body, asked), rounds=5)[0].times(1 / len(asked))


def parsed(rules: int) -> Rounds:
    """A KiB."""
    body = decisions.mixed(rules)
    return in_turns(partial(decisions.parsed, body), rounds=5)[0].times(1024 / len(body))


def held() -> Rounds:
    """Return the bytes of one of 100 sites with equal files."""
    body = decisions.mixed(10)
    return Rounds(
        (decisions.held(lambda: [decisions.cached_site(body) for _ in range(100)]) / 100,)
    )


def page_decided(carriers: str) -> Rounds:
    return pages.measured(pages.CASES[carriers], rounds=10)[0]


def elements_added() -> Rounds:
    return elements.measured(elements.page(), 50, rounds=10).added


def acap_answered() -> Rounds:
    read = parse(acap.sections(10_000), url="https://example.com/robots.txt")
    return acap.measured(read, 250, rounds=3)[0]


def handed_out(*, jobdir_is_set: bool) -> Rounds:
    return Rounds(
        (asyncio.run(handout.measured(10_000, decisions=True, jobdir=jobdir_is_set))["hand-out"],)
    )


class Growth(Measurement):
    """How the memory of a long crawl grows, in which few pages wait."""

    def __init__(self, pages: int, target: float) -> None:
        self.name = f"memory of 1 host x {pages:,} pages: MiB for 1,000 more"
        self._comparison, self._target = (
            Comparison(Case(bare=True, hosts=1, rules=20, pages=pages, links="chain"), ["comity"]),
            target,
        )
        self.seconds = 2 + pages * 0.0015
        self._rounds = 0

    def add_round(self) -> None:
        self._comparison.add_round()
        self._rounds += 1

    def rows(self) -> Iterator[Row]:
        if not self._rounds:
            yield Row(self.name, 0, 0, self._target, 0)
            return
        growth, peak = (self._comparison.of("comity", figure) for figure in ("growth", "memory"))
        besides = f"peak {peak.least:.0f} MiB"
        yield Row(
            self.name, growth.least, growth.median, self._target, self._rounds, besides=besides
        )


class Startup(Measurement):
    """The start of a command in a new process."""

    def __init__(self, start: Start, folder: Path) -> None:
        self.name = f"start: {start.name}, s of CPU{' beyond Scrapy alone' * bool(start.beyond)}"
        self._starts = Starts(start, folder)

    def add_round(self) -> None:
        self._starts.add_round()

    def rows(self) -> Iterator[Row]:
        starts, target = self._starts, self._starts.start.target
        if not starts.figures:
            yield Row(self.name, 0, 0, target, 0)
            return
        besides = f"Scrapy alone {min(starts.beyond):.2f} s" if starts.beyond else ""
        yield Row(
            *(self.name, starts.least(), starts.median(), target, len(starts.figures), "{:.3f}"),
            besides=besides,
        )


def measurements(folder: Path) -> list[Measurement]:
    def us(name: str, measure: Callable[[], Rounds], target: float) -> Figures:
        return Figures(f"{name}, us", measure, target, factor=1e6)

    return [
        us("decision, 10 rules", partial(decided, decisions.mixed, 10), 3),
        us("decision, 1,000 rules", partial(decided, decisions.mixed, 1_000), 3),
        us("decision, 10,000 rules", partial(decided, decisions.mixed, 10_000), 4),
        us("decision, 10,000 rules of 63 lengths", partial(decided, decisions.lengths, 10_000), 4),
        us("parse and compile 1,000 rules, a KiB", partial(parsed, 1_000), 15),
        us("parse and compile 10,000 rules, a KiB", partial(parsed, 10_000), 15),
        Figures("cached site of 0.2 KiB, bytes", held, 2048, form="{:,.0f}"),
        us("page with nothing to read", partial(page_decided, "nothing to read"), 45),
        us("page with all carriers", partial(page_decided, "all carriers"), 600),
        Figures("50 element rules on 99 kB, ms added", elements_added, 8, factor=1e3),
        us("all 14 ACAP usages of a new URL, 10,000 fields", acap_answered, 50),
        us("hand-out, 10,000 hosts", partial(handed_out, jobdir_is_set=False), 50),
        us("hand-out, 10,000 hosts, JOBDIR", partial(handed_out, jobdir_is_set=True), 100),
        *(Crawls(Case(bare, 1, 20, 1000), 0.55, 1.05 if bare else 1.00) for bare in (True, False)),
        *(Crawls(Case(bare, 1, 1000, 1000), 0.60, 0.95) for bare in (True, False)),
        *(Crawls(Case(bare, 200, 20, 800), 0.60, 1.05) for bare in (True, False)),
        *(Crawls(Case(bare, 200, 1000, 800), 0.50, 0.75, memory=25) for bare in (True, False)),
        Exports(folder / "plain.parquet", 25_000),
        Exports(folder / "to_parquet.parquet", 30_000, to="Parquet"),
        Exports(folder / "mixed.parquet", 20_000, is_mixed=True),
        *(Startup(start, folder) for start in STARTS),
        Growth(LONG, 0.2),
        Crawls(Case(bare=True, hosts=200, rules=20, pages=10_000), 0.60, 1.00),
        Crawls(Case(bare=True, hosts=2_000, rules=20, pages=2_000), 0.90, 1.15, memory=25),
    ]


def measure(everything: list[Measurement], seconds: float, most: int) -> None:
    """At most so many rounds of everything, as long as they end in time."""
    began = time.monotonic()
    took: dict[Measurement, float] = {}
    with progress() as shown:
        task = shown.add_task("", total=seconds)
        for number in range(most):
            for measurement in everything:
                start = time.monotonic() - began
                # How much slower than a quiet machine this one is, by what has had its first round.
                slowness = max(1.0, sum(took.values()) / (sum(one.seconds for one in took) or 1.0))
                if (
                    number >= measurement.most
                    or start + took.get(measurement, measurement.seconds * slowness) > seconds
                ):
                    continue
                shown.update(
                    task, description=f"round {number + 1}: {measurement.name}", completed=start
                )
                measurement.add_round()
                took[measurement] = time.monotonic() - began - start


def foot(loops: list[float], minutes: float) -> str:
    least, most = min(loops) * 1e3, max(loops) * 1e3
    return (
        f"Python {platform.python_version()}, Scrapy {version('scrapy')}, {os.cpu_count()} cores, {minutes:.1f} minutes. A"
        f" fixed loop took {least:.0f} to {most:.0f} ms of CPU. Absolute targets are for a quiet machine, ratios for any."
        ' "yes": the median of the rounds reaches the target; "at best": only the best of them does.'
    )


def main() -> None:
    shown_as_is = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python benchmarks", description=__doc__, formatter_class=shown_as_is
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=9, help="at most")
    parser.add_argument("--only", metavar="WORD", default="", help="what has the word in its name")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="PAGE",
        help="put the table into the page, between its markers",
    )
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    began, loops = time.monotonic(), [calibrated()]
    with tempfile.TemporaryDirectory() as folder:
        everything = [one for one in measurements(Path(folder)) if options.only in one.name]
        measure(everything, options.minutes * 60 - 5, options.rounds)
    loops += [calibrated() for _ in range(3)]
    rows = [row.cells() for one in everything for row in one.rows()]
    below = foot(loops, (time.monotonic() - began) / 60)
    table = Table(*COLUMNS, title="Targets", caption=below)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(console.width, 150)
    console.print(table)
    if options.write:
        text = options.write.read_text()
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        if not rest:
            raise SystemExit(f"{options.write} has no line {BEGIN}")
        options.write.write_text(
            f"{before}{BEGIN}\n{markdown(COLUMNS, rows)}\n{below}\n\n{END}{after}"
        )


if __name__ == "__main__":
    main()
