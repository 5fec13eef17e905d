"""Tagging records of others: a WARC file beside its bare reading by warcio and FastWARC, and a table of URLs.

    python benchmarks/tagging.py [--pages 4000] [--origins 1,1000,100000] [--rows 1000000] [--row-origins 100000]

1. A .warc.gz of pages of 24 KB (HTML with links and paragraphs, each with a request and a metadata record before and after it),
   over so many origins in random order: records a second of one core, for tagging with the text of the page, and for reading all
   responses by warcio and by FastWARC and doing nothing.
2. A Parquet file with URLs, dates and texts, in the order in which a crawl has them or in random order: rows a second of one
   core, and memory. Each origin has a robots.txt of 10 lines; the policies come from an index of captures."""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DATE = "2024-05-18T01:58:10Z"
WORDS = "the a crawl page of site robots archive year text model reader says that when light water stone".split()  # noqa: SIM905
ROBOTS = (
    b"User-agent: *\nDisallow: /private\nDisallow: /search\nContent-Usage: /news train-ai=n\n\nUser-agent: GPTBot\nDisallow: /\n"
)


def origin(number: int) -> str:
    return f"https://www.site-{number:07}.example"


def record(kind: str, url: str, block: bytes) -> bytes:
    fields = {
        "WARC-Type": kind,
        "WARC-Date": DATE,
        "WARC-Record-ID": f"<urn:uuid:{kind}-{url}>",
        "Content-Length": str(len(block)),
        "Content-Type": "application/http",
        "WARC-Target-URI": url,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.0\r\n{head}\r\n".encode() + block + b"\r\n\r\n", 6)


def html(chance: random.Random) -> bytes:
    paragraphs = []
    for number in range(40):
        words = " ".join(chance.choices(WORDS, k=80))
        paragraphs.append(f'<p class="text p{number}">{words} <a href="/page/{number}">{words[:20]}</a></p>')
    head = '<title>A page</title><meta charset="utf-8"><link rel="stylesheet" href="/style.css">'
    return f"<!doctype html><html><head>{head}</head><body><main>{''.join(paragraphs)}</main></body></html>".encode()


def pages(path: Path, number: int, origins: int) -> Path:
    chance = random.Random(0)
    fields = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: nginx\r\n\r\n"
    with path.open("wb") as file:
        for at in range(number):
            url = f"{origin(chance.randrange(origins))}/page/{at}"
            file.write(record("request", url, b"GET /page HTTP/1.1\r\nUser-Agent: CCBot/2.0\r\n\r\n"))
            file.write(record("response", url, fields + html(chance)))
            file.write(record("metadata", url, b"fetchTimeMs: 100\r\n"))
    return path


def robots(path: Path, origins: int) -> Path:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    with path.open("wb") as file:
        file.writelines(record("response", f"{origin(number)}/robots.txt", head + ROBOTS) for number in range(origins))
    return path


def table(path: Path, rows: int, origins: int, *, is_sorted: bool) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance, each = random.Random(0), 100_000
    text = " ".join(WORDS * 20)
    with pq.ParquetWriter(path, pa.schema([("text", pa.string()), ("url", pa.string()), ("date", pa.string())])) as writer:
        for start in range(0, rows, each):
            numbers = range(start, min(start + each, rows))
            sites = [at * origins // rows if is_sorted else chance.randrange(origins) for at in numbers]
            urls = [f"{origin(site)}/page/{at}" for at, site in zip(numbers, sites, strict=True)]
            columns = {"text": [text] * len(urls), "url": urls, "date": [DATE] * len(urls)}
            writer.write_table(pa.table(columns), row_group_size=10_000)
    return path


# What is measured, each in a process of its own


def by_warcio(path: Path) -> tuple[int, float]:
    from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # it has no types

    began = time.process_time()
    with path.open("rb") as file:
        number = sum(len(one.content_stream().read()) > 0 for one in ArchiveIterator(file) if one.rec_type == "response")
    return number, time.process_time() - began


def by_fastwarc(path: Path) -> tuple[int, float]:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    began = time.process_time()
    with path.open("rb") as file:
        number = sum(len(one.reader.read()) > 0 for one in ArchiveIterator(file, record_types=WarcRecordType.response))
    return number, time.process_time() - began


def tagged(path: Path, index: Path, captures: Path, output: Path, also: tuple[str, ...] = ()) -> tuple[int, float]:
    from comity.crawler.captures import open_captures
    from comity.dataset.job import JobOptions
    from comity.dataset.tagging.judging import Judge, Question
    from comity.dataset.tagging.tagging import tag_dataset
    from comity.policies import Agent, Verdict

    agent = Agent("benchbot", uses=("train",), defaults={"train": Verdict.ALLOW})
    with open_captures([captures], agent=agent, index=index) as policies:
        began = time.process_time()
        done = tag_dataset([path], output, Judge(Question.of(agent, now=NOW, also=also), policies), options=JobOptions(1))
    return done.counts.kept, time.process_time() - began


def measured(job: Callable[..., tuple[int, float]], *arguments: Any) -> Iterator[float]:
    """Yield the records, the seconds of CPU without imports, and MiB at the peak."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_measured, args=(theirs, job, *arguments))
    process.start()
    yield from ours.recv()
    process.join()


def _measured(pipe: Any, job: Callable[..., tuple[int, float]], *arguments: Any) -> None:
    pipe.send((*job(*arguments), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def show(what: str, figures: Iterator[float]) -> None:
    number, seconds, peak = figures
    print(f"{what:<60} {number / seconds:>10,.0f} a second and core {peak:>8,.0f} MiB", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--origins", default="1,1000,100000")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--row-origins", type=int, default=100_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for origins in map(int, options.origins.split(",")):
            path, captures = pages(folder / "pages.warc.gz", options.pages, origins), robots(folder / "robots.warc.gz", origins)
            index = folder / f"{origins}.sqlite"
            _index(captures, index)
            for job in (by_warcio, by_fastwarc):
                show(f"{origins:,} origins, {job.__name__[3:]} reads", measured(job, path))
            output = folder / "out.jsonl"
            show(f"{origins:,} origins, tagged", measured(tagged, path, index, captures, output))
            show(f"{origins:,} origins, for 23 crawlers too", measured(tagged, path, index, captures, output, ("ai-training",)))
        captures, index = robots(folder / "robots.warc.gz", options.row_origins), folder / "rows.sqlite"
        _index(captures, index)
        for is_sorted in (True, False):
            path = table(folder / "rows.parquet", options.rows, options.row_origins, is_sorted=is_sorted)
            order = "in the order of a crawl" if is_sorted else "in random order"
            what = f"{options.rows:,} rows, {options.row_origins:,} origins, {order}"
            show(what, measured(tagged, path, index, captures, folder / "out.parquet"))


def _index(captures: Path, index: Path) -> None:
    from comity.crawler.captures import open_captures
    from comity.policies import Agent

    open_captures([captures], agent=Agent("benchbot"), index=index).close()


if __name__ == "__main__":
    main()
