"""The cost of an audit of a tagged set: CPU time and memory of one process, by number of origins.

python benchmarks/audits.py [--origins 20000] [--rows 200000]

The set is a Parquet file with rows in random order, and evidence files of the same size. The policies
of a third of the origins refuse. Tagging is no part of the figures."""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from archive import origin, record
from rounds import peak
from tagging import DATE, tables

from comity.dataset.audit.audit import audit_of
from comity.dataset.captures.captures import PolicyCaptures
from comity.dataset.captures.sources import sources_in
from comity.dataset.job import JobOptions
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent
from comity.report.page import audit_page

AGENT = Agent("examplebot", uses=("train-ai", "search"))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\n"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def tagged_set(folder: Path, rows: int, origins: int) -> Path:
    """Write and tag a set, and return its path."""
    captures, output = folder / "robots.warc.gz", folder / "set.parquet"
    with captures.open("wb") as file:
        for number in range(origins):
            body = HEAD + (b"Content-Usage: train-ai=%s\n" % (b"n" if number % 3 == 0 else b"y"))
            file.write(record("response", f"{origin(number)}/robots.txt", DATE, body, level=1))
    source = tables(folder / "rows", rows, origins, is_sorted=False)
    with PolicyCaptures.open(sources_in(captures), agent=AGENT, now=NOW) as policies:
        options = JobOptions(evidence=lambda copies: [captures.name for _ in copies])
        tag_dataset([source], output, Judge(Question.of(AGENT, now=NOW), policies), options=options)
    return output


def audit(path: Path) -> None:
    """Write an audit, and print what it cost this process."""
    began, clock = time.process_time(), time.perf_counter()
    made = audit_of(path, datetime.now(UTC), JobOptions(1), origin=origin(0))
    page = audit_page(made)
    seconds = time.process_time() - began, time.perf_counter() - clock
    print(
        f"{made['set']['records']:,} records of {made['set']['origins']:,} origins,"
        f" {made['refused']['rows']:,} refusals: {seconds[0]:.1f} s of CPU, {seconds[1]:.1f} s by"
        f" the clock, {peak() / 1024:.0f} MB, a page of {len(page.encode()):,} octets"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--origins", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=200_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = tagged_set(Path(folder), arguments.rows, arguments.origins)
        # Another process, so that the memory is that of the audit alone.
        process = multiprocessing.get_context("spawn").Process(target=audit, args=(path,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
