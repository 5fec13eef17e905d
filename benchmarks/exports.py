"""An export from Parquet, side by side in one run with DuckDB, which only filters by the verdict and writes the same format.

The second table is of records of which a third have an element on which the use is refused: that is cut out, record by record.

    python benchmarks/exports.py [RECORDS ...]

It shows records a second and core (CPU time of all processes), the largest resident memory of one process and of all together,
and how both grow with the number of records."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from comity.dataset.export.export import export
from comity.dataset.files.columns.arrow_schema import encode
from comity.dataset.files.formats import open_writer
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.policies import Agent, Fetched, Site

SIZES = (125_000, 250_000, 500_000, 1_000_000)
USE = "train-ai"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
AGENT = Agent("examplebot", uses=(USE, "index"))
TEMPLATES = 10_000  # records that are judged one by one when they are made; the others are these under URLs of their own
SITES = 500
WORDS = (
    "a",
    "crawl",
    "of",
    "pages",
    "that",
    "sites",
    "publish",
    "asks",
    "what",
    "may",
    "be",
    "done",
    "with",
    "each",
    "of",
    "them",
)


ROBOTS = """User-agent: *
Disallow: /private/
Content-Usage: train-ai=y
Content-Usage: /premium/ train-ai=n

ACAP-crawler: *
ACAP-allow-crawl: /
ACAP-allow-index: / time-limit={days}-days
ACAP-allow-preserve: /
"""

console = Console(width=120)


ELEMENT = {
    "selector": "p.quote",
    "type": "html",
    "deny": ["train"],
    "guide": [],
    "spans": [["text", 40, 120]],
    "because": [0],
}


def template(number: int, chance: random.Random) -> dict[str, Any]:
    origin = f"https://site{number % SITES}.example"
    url = f"{origin}/{'premium' if number % 3 == 0 else 'news'}/{number}.html"
    at = NOW - timedelta(minutes=number)
    robots = Fetched(
        status=200,
        body=ROBOTS.format(days=number % SITES + 10).encode(),
        fetched_at=NOW - timedelta(days=1),
    )
    page = Site.from_files(origin, {"/robots.txt": robots}).page(AGENT, url, now=at)
    return {
        "url": url,
        "final_url": url,
        "status": 200,
        "fetched_at": at.isoformat(timespec="seconds"),
        "content_type": "text/html; charset=utf-8",
        "title": " ".join(chance.choices(WORDS, k=6)),
        "text": " ".join(chance.choices(WORDS, k=200)),
        "links": [f"{origin}/news/{chance.randrange(10_000)}.html" for _ in range(10)],
        "sha256": chance.randbytes(32).hex(),
        "html": None,
        "permissions": page.permissions,
    }


@cache  # to judge them takes longer than to write twenty times as many
def judged(templates: int) -> list[dict[str, Any]]:
    chance = random.Random(8)
    return [template(number, chance) for number in range(templates)]


def made(templates: int = TEMPLATES, *, is_mixed: bool) -> pa.RecordBatch:
    records = judged(templates)
    if is_mixed:
        records = [
            record | {"permissions": record["permissions"] | {"elements": [ELEMENT]}}
            if number // 3 % 3 == 0
            else record
            for number, record in enumerate(records)
        ]
    return encode(records)


def generate(path: Path, records: int, *, is_mixed: bool, templates: int = TEMPLATES) -> None:
    write(path, made(templates, is_mixed=is_mixed), records)


def write(path: Path, batch: pa.RecordBatch, records: int, first: int = 0) -> None:
    """The records of the batch again and again, with URLs of their own. `first`: the number in the first of these."""
    names = batch.schema.names
    with open_writer(path, schema=batch.schema) as writer:
        for start in range(0, records, len(batch)):
            some = batch.slice(0, min(len(batch), records - start))
            columns = [some.column(name) for name in names]
            numbers = pa.array(range(first + start, first + start + len(some)))
            sites = pc.subtract(numbers, pc.multiply(pc.divide(numbers, SITES), SITES)).cast(
                pa.string()
            )
            urls = pc.binary_join_element_wise(
                "https://site", sites, ".example/", numbers.cast(pa.string()), ""
            )
            for name in ("url", "final_url"):
                columns[names.index(name)] = urls
            writer.write(pa.record_batch(columns, schema=batch.schema))


class Cost(NamedTuple):
    """Of one run, in processes of its own."""

    records: int  # that came out
    seconds: float
    cpu: float  # seconds, of all processes
    peak: int  # octets that the largest process had at most
    together: int  # octets that all processes had at most at a time, what they share counted once


def ours(source: Path, output: Path) -> int:
    return export([source], output, Terms.of([USE], now=NOW)).counts.kept


def ours_alone(source: Path, output: Path) -> int:
    return export([source], output, Terms.of([USE], now=NOW), JobOptions(workers=1)).counts.kept


def by_duckdb(source: Path, output: Path) -> int:
    form = "json" if output.suffix == ".jsonl" else "parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"
    with duckdb.connect() as db:
        db.execute("SET enable_progress_bar = false")
        db.execute("SET memory_limit = '400MB'")
        db.execute("SET preserve_insertion_order = true")
        [[written]] = db.execute(
            f"""COPY (SELECT * FROM read_parquet('{source}') WHERE len(list_filter(
                permissions.uses, lambda one: one.use = '{USE}' AND one.verdict = 'allow'
                AND (one.until IS NULL OR one.until > TIMESTAMPTZ '{NOW.isoformat()}'))) > 0)
                TO '{output}' (FORMAT {form})"""
        ).fetchall()
    return int(written)


def measured(work: Callable[[Path, Path], int], source: Path, output: Path) -> Cost:
    reader, writer = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=_run, args=(work, source, output, writer)
    )
    process.start()
    writer.close()
    largest: dict[int, int] = {}
    together = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal together
        assert process.pid
        while not done.wait(0.05):
            sizes = {one: resident(one) for one in (process.pid, *descendants(process.pid))}
            together = max(together, sum(proportional(one) for one in sizes))
            for one, size in sizes.items():
                largest[one] = max(size, largest.get(one, 0))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        records, seconds, cpu = reader.recv()
    except EOFError:
        process.join()
        raise SystemExit(f"{work.__name__} failed with status {process.exitcode}") from None
    finally:
        done.set()
        watcher.join()
    process.join()
    return Cost(records, seconds, cpu, max(largest.values()), together)


def _run(work: Callable[[Path, Path], int], source: Path, output: Path, writer: Any) -> None:
    start = time.perf_counter()
    records = work(source, output)
    seconds = time.perf_counter() - start
    times = os.times()  # children that have ended are counted in
    writer.send(
        (records, seconds, times.user + times.system + times.children_user + times.children_system)
    )


def resident(process: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(
            Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()[1]
        ) * os.sysconf("SC_PAGE_SIZE")
    return 0


def proportional(process: int) -> int:
    with (
        suppress(OSError, StopIteration),
        Path(f"/proc/{process}/smaps_rollup").open(encoding="utf-8") as lines,
    ):
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024
    return 0


def descendants(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


WORKS: dict[
    str, tuple[Callable[[Path, Path], int], str, int]
] = {  # with the end of the output's name, and the most records
    "DuckDB to Parquet": (by_duckdb, ".parquet", 1_000_000),
    "export to Parquet": (ours, ".parquet", 1_000_000),
    "DuckDB to JSON Lines": (by_duckdb, ".jsonl", 250_000),
    "export to JSON Lines": (ours, ".jsonl", 250_000),
    "the same in one process": (ours_alone, ".jsonl", 250_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=int, nargs="*")
    sizes = parser.parse_args().records
    with tempfile.TemporaryDirectory() as folder:
        show("Export from Parquet", sizes or SIZES, Path(folder), is_mixed=False)
        show(
            "Export from Parquet, mixed with elements",
            sizes or SIZES[:1],
            Path(folder),
            is_mixed=True,
        )


def show(title: str, sizes: Iterable[int], folder: Path, *, is_mixed: bool) -> None:
    """`ratio`: of records a second and core to those of DuckDB to the same format."""
    columns = (
        "records",
        "",
        "came out",
        "seconds",
        "a second and core",
        "ratio",
        "largest MB",
        "together MB",
    )
    table = Table(*columns, title=title)
    for size in sizes:
        source = folder / "source.parquet"
        generate(source, size, is_mixed=is_mixed)
        rates: dict[str, float] = {}  # of DuckDB, which comes first
        for name, (work, ending, most) in WORKS.items():
            if size > most:
                continue
            output = folder / f"output{ending}"
            cost = measured(work, source, output)
            rate = size / cost.cpu
            told = (
                cost.seconds,
                rate,
                rate / rates.setdefault(ending, rate),
                cost.peak / 1e6,
                cost.together / 1e6,
            )
            shown = ("{:.1f}", "{:,.0f}", "{:.2f}", "{:.0f}", "{:.0f}")
            numbers = [form.format(number) for form, number in zip(shown, told, strict=True)]
            table.add_row(f"{size:,}", name, f"{cost.records:,}", *numbers)
            output.unlink()
        table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
