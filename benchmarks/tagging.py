"""Tagging records of others: a WARC file beside its bare reading by warcio and FastWARC, and a table of URLs.

    python benchmarks/tagging.py [--pages 4000] [--origins 1,1000,100000] [--rows 1000000] [--row-origins 100000]
    python benchmarks/tagging.py --rows-only --rows 10000000 --workers 2      rows alone, by two processes

1. A .warc.gz of pages of 24 KB (HTML with links and paragraphs, each with a request and a metadata record before and after it),
   over so many origins in random order: records a second of one core, for tagging with the text of the page, and for reading all
   responses by warcio and by FastWARC and doing nothing.
2. Tables (--formats: Parquet and others) with URLs, dates and texts, in the order of their sites (as of a crawl of one site after the other) or in random
   order: rows a second of one core, memory, and the time by the clock, and the ratio of the two orders. Each origin has a robots.txt of 9 lines, none the same as
   another; the policies come from an index of captures, whose size is told.
3. For each number of origins, the same pages in WACZ files, stored and deflated, with `--archives`.
4. With `--archives`, as many rows as CDXJ: for reading the JSON of all lines and doing nothing, and for tagging."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import multiprocessing
import random
import resource
import shutil
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from archive import origin, record
from rounds import peak

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DATE = "2024-05-18T01:58:10Z"
BEGIN, DAY = 1_715_997_490, 86_400  # of the dates of rows, which are of a day
FILE_ROWS = 500_000
UNIQUE = 0.3  # the share of origins with a robots.txt of their own, with --texts
WORDS = "the a crawl page of site robots archive year text model reader says that when light water stone".split()  # noqa: SIM905
ROBOTS = (
    b"User-agent: *\nDisallow: /private\nDisallow: /only/%d\nDisallow: /search\nContent-Usage: /news train-ai=n\n"
    b"\nUser-agent: GPTBot\nDisallow: /\n"
)


def html(chance: random.Random) -> bytes:
    paragraphs = []
    for number in range(40):
        words = " ".join(chance.choices(WORDS, k=80))
        paragraphs.append(
            f'<p class="text p{number}">{words} <a href="/page/{number}">{words[:20]}</a></p>'
        )
    head = '<title>A page</title><meta charset="utf-8"><link rel="stylesheet" href="/style.css">'
    return f"<!doctype html><html><head>{head}</head><body><main>{''.join(paragraphs)}</main></body></html>".encode()


def pages(path: Path, number: int, origins: int) -> Path:
    chance = random.Random(0)
    fields = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: nginx\r\n\r\n"
    with path.open("wb") as file:
        for at in range(number):
            url = f"{origin(chance.randrange(origins))}/page/{at}"
            file.write(
                record("request", url, DATE, b"GET /page HTTP/1.1\r\nUser-Agent: CCBot/2.0\r\n\r\n")
            )
            file.write(record("response", url, DATE, fields + html(chance)))
            file.write(record("metadata", url, DATE, b"fetchTimeMs: 100\r\n"))
    return path


def robots(path: Path, origins: int, texts: int = 0) -> Path:
    """Write a robots.txt for each origin.

    `texts`: the number of texts that most origins share. 0: no two origins have equal texts."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    chance = random.Random(0)
    with path.open("wb") as file:
        for number in range(origins):
            is_shared = texts and chance.random() >= UNIQUE
            text = origins + int(texts * chance.random() ** 2) if is_shared else number
            file.write(
                record(
                    "response",
                    f"{origin(number)}/robots.txt",
                    DATE,
                    head + ROBOTS % text,
                    level=1,
                )
            )
    return path


def tables(
    folder: Path, rows: int, origins: int, *, is_sorted: bool, form: str = ".parquet"
) -> Path:
    """Files of at most FILE_ROWS rows each, made column by column."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    folder.mkdir()
    chance, text = np.random.default_rng(0), " ".join(WORDS * 20)
    each = min(FILE_ROWS, -(-rows // 8))
    for start in range(0, rows, each):
        numbers = np.arange(start, min(start + each, rows))
        sites = (
            numbers * origins // rows if is_sorted else chance.integers(0, origins, len(numbers))
        )
        names = pc.utf8_lpad(pc.cast(pa.array(sites), pa.string()), 7, "0")
        paths = pc.cast(pa.array(numbers), pa.string())
        urls = pc.binary_join_element_wise("https://www.site-", names, ".example/page/", paths, "")
        dates = pc.strftime(
            pa.array(BEGIN + numbers % DAY, pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ"
        )
        texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(numbers), np.int32)), [text])
        columns = {"text": texts.cast(pa.string()), "url": urls, "date": dates}
        _write_table(pa.table(columns), folder / f"{start:010}{form}")
    return folder


def wacz(path: Path, warc: Path, *, deflated: bool) -> Path:
    """A WACZ file with a WARC file."""
    method = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    digest = hashlib.sha256(warc.read_bytes()).hexdigest()
    resources = [{"path": "archive/data.warc.gz", "hash": f"sha256:{digest}"}]
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.write(warc, "archive/data.warc.gz")
        archive.writestr("datapackage.json", json.dumps({"resources": resources}))
    return path


def cdxj(path: Path, rows: int, origins: int) -> Path:
    """An index with rows in the order of their sites."""
    each = -(-rows // origins)
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            row = {
                "url": f"{origin(number // each)}/page/{number}",
                "mime": "text/html",
                "status": "200",
                "digest": "G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK",
                "length": "24662",
                "offset": str(number * 24662),
                "filename": "crawl-data/CC-MAIN-2024-22/segments/1/warc/CC-MAIN-00000.warc.gz",
            }
            file.write(f"example,{number})/ 20240518015810 {json.dumps(row)}\n")
    return path


def _write_table(table: Any, path: Path) -> None:
    """Write a table in the format that the name ends in. A shard has an image of 1 KB in each sample."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=10_000)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".tar":
        with tarfile.open(path, "w") as archive:
            for number, row in enumerate(table.to_pylist()):
                for ending, octets in (("jpg", bytes(1024)), ("json", json.dumps(row).encode())):
                    head = tarfile.TarInfo(f"{number:09}.{ending}")
                    head.size = len(octets)
                    archive.addfile(head, io.BytesIO(octets))
    elif path.suffix == ".jsonl":
        lines = (json.dumps(row) + "\n" for row in table.to_pylist())
        path.write_text("".join(lines), encoding="utf-8")
    else:
        new = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
        with new(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=1_000)  # as `datasets` writes


# What is measured, each in a process of its own


def by_json(path: Path) -> tuple[int, float]:
    began = time.process_time()
    with path.open("rb") as file:
        number = sum(len(json.loads(line.split(b" ", 2)[2])) > 0 for line in file)
    return number, time.process_time() - began


def by_warcio(path: Path) -> tuple[int, float]:
    from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # it has no types

    began = time.process_time()
    with path.open("rb") as file:
        number = sum(
            len(one.content_stream().read()) > 0
            for one in ArchiveIterator(file)
            if one.rec_type == "response"
        )
    return number, time.process_time() - began


def by_fastwarc(path: Path) -> tuple[int, float]:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    began = time.process_time()
    with path.open("rb") as file:
        number = sum(
            len(one.reader.read()) > 0
            for one in ArchiveIterator(file, record_types=WarcRecordType.response)
        )
    return number, time.process_time() - began


def by_bare_reader(folder: Path) -> tuple[int, float]:
    """Read all rows of tables by pyarrow, json or tarfile."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    began, number = time.process_time(), 0
    for path in sorted(folder.iterdir()):
        if path.suffix == ".parquet":
            number += pq.read_table(path, use_threads=False).num_rows
        elif path.suffix == ".csv":
            number += pa.csv.read_csv(path, pa.csv.ReadOptions(use_threads=False)).num_rows
        elif path.suffix == ".tar":
            with tarfile.open(path) as archive:
                for head in archive:
                    content = archive.extractfile(head)
                    number += len(content.read() if content else b"") > 0
            number //= 2
        elif path.suffix == ".jsonl":
            with path.open("rb") as file:
                number += sum(1 for line in file if json.loads(line))
        else:
            opened = pa.ipc.open_stream if path.suffix == ".arrows" else pa.ipc.open_file
            number += opened(path).read_all().num_rows
    return number, time.process_time() - began


def tagged(
    path: Path, index: Path, captures: Path, output: Path, also: tuple[str, ...] = ()
) -> tuple[int, float]:
    from comity.crawler.captures import open_captures
    from comity.dataset.job import JobOptions
    from comity.dataset.tagging.judging import Judge
    from comity.dataset.tagging.question import Question
    from comity.dataset.tagging.tagging import tag_dataset
    from comity.policies import Agent, Verdict

    agent = Agent("benchbot", uses=("train",), defaults={"train": Verdict.ALLOW})
    with open_captures([captures], agent=agent, index=index) as policies:
        began = time.process_time()
        done = tag_dataset(
            [path],
            output,
            Judge(Question.of(agent, now=NOW, also=also), policies),
            options=JobOptions(1),
        )
    return done.counts.kept, time.process_time() - began


def tagged_tables(
    folder: Path, index: Path, captures: Path, output: Path, workers: int, executor: str
) -> tuple[int, float]:
    from comity.crawler.captures import open_captures
    from comity.dataset.job import JobOptions
    from comity.dataset.tagging.folder_tagging import tag_folder
    from comity.dataset.tagging.judging import Judge
    from comity.dataset.tagging.question import Question
    from comity.policies import Agent, Verdict

    agent = Agent("benchbot", uses=("train",), defaults={"train": Verdict.ALLOW})
    with open_captures([captures], agent=agent, index=index) as policies:
        judge, options = (
            Judge(Question.of(agent, now=NOW), policies),
            JobOptions(workers, executor=executor),
        )
        began = cpu()
        done = tag_folder([folder], output, judge, options=options)
    return done.counts.kept, cpu() - began


def cpu() -> float:
    """Seconds of this process and of those that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(job: Callable[..., tuple[int, float]], *arguments: Any) -> Iterator[float]:
    """Yield the records, the seconds of CPU without imports, MiB at the peak of the largest process, and seconds by the clock."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_measured, args=(theirs, job, *arguments)
    )
    process.start()
    theirs.close()
    yield from ours.recv()
    process.join()


def _measured(pipe: Any, job: Callable[..., tuple[int, float]], *arguments: Any) -> None:
    began = time.monotonic()
    done = job(*arguments)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    pipe.send((*done, max(peak() / 1024, workers), time.monotonic() - began))


def show(what: str, figures: Iterator[float]) -> float:
    """Print the figures. Return the records a second and core."""
    number, seconds, peak, clock = figures
    print(
        f"{what:<60} {number / seconds:>10,.0f} a second and core {peak:>8,.0f} MiB {clock:>8,.1f} s",
        flush=True,
    )
    return number / seconds


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--origins", default="1,1000,100000")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--row-origins", type=int, default=100_000)
    parser.add_argument(
        "--texts", type=int, default=0, help="robots.txt texts that most origins of rows share"
    )
    parser.add_argument("--rows-only", action="store_true", help="no WARC files")
    parser.add_argument("--archives", action="store_true", help="WACZ and CDXJ too")
    parser.add_argument(
        "--formats",
        default=".parquet",
        help="formats of the rows: .parquet,.feather,.arrows,.csv,.jsonl,.tar",
    )
    parser.add_argument("--orders", default="crawl,random", help="of the rows")
    parser.add_argument(
        "--workers", type=int, default=1, help="processes that tag rows, a file each"
    )
    parser.add_argument("--executor", default="processes", help="as of dataset tag")
    parser.add_argument(
        "--folder",
        type=Path,
        help="for what is made, where there is room (default: a temporary one)",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for origins in () if options.rows_only else map(int, options.origins.split(",")):
            path, captures = (
                pages(folder / "pages.warc.gz", options.pages, origins),
                robots(folder / "robots.warc.gz", origins),
            )
            index = folder / f"{origins}.sqlite"
            _index(captures, index)
            for job in (by_warcio, by_fastwarc):
                show(f"{origins:,} origins, {job.__name__[3:]} reads", measured(job, path))
            output = folder / "out.jsonl"
            show(f"{origins:,} origins, tagged", measured(tagged, path, index, captures, output))
            for deflated in (False, True) if options.archives else ():
                packed = wacz(folder / "pages.wacz", path, deflated=deflated)
                what = f"{origins:,} origins, tagged, WACZ, {'deflated' if deflated else 'stored'}"
                show(what, measured(tagged, packed, index, captures, output))
            show(
                f"{origins:,} origins, for 23 crawlers too",
                measured(tagged, path, index, captures, output, ("ai-training",)),
            )
        captures, index = (
            robots(folder / "robots.warc.gz", options.row_origins, options.texts),
            folder / "rows.sqlite",
        )
        _index(captures, index)
        print(
            f"index of {options.row_origins:,} origins: {index.stat().st_size / 2**20:,.1f} MiB",
            flush=True,
        )
        if options.archives:
            path = cdxj(folder / "rows.cdxj", options.rows, options.row_origins)
            show(f"{options.rows:,} rows of CDXJ, JSON reads", measured(by_json, path))
            output = folder / "cdxj.jsonl"
            show(
                f"{options.rows:,} rows of CDXJ, tagged",
                measured(tagged, path, index, captures, output),
            )
        for form in options.formats.split(","):
            rates: dict[str, float] = {}
            for order in options.orders.split(","):
                path = tables(
                    *(folder / order, options.rows, options.row_origins),
                    is_sorted=order == "crawl",
                    form=form,
                )
                if not rates:
                    show(f"{form}, bare reading", measured(by_bare_reader, path))
                what = f"{form}, {options.rows:,} rows, {options.row_origins:,} origins, in {order} order, {options.workers} x"
                output = folder / f"{order}-tagged"
                rates[order] = show(
                    what,
                    measured(
                        *(tagged_tables, path, index, captures, output),
                        *(options.workers, options.executor),
                    ),
                )
                for used in (path, output):
                    shutil.rmtree(used)
            if rates.keys() == {"crawl", "random"}:
                print(f"random order beside crawl order: {rates['random'] / rates['crawl']:.2f}")


def _index(captures: Path, index: Path) -> None:
    from comity.crawler.captures import open_captures
    from comity.policies import Agent

    open_captures([captures], agent=Agent("benchbot"), index=index).close()


if __name__ == "__main__":
    main()
