"""The queue of a long crawl with JOBDIR, without a network: how it resumes, and how its file grows.

    python benchmarks/long_queue.py resume --requests 1000000 --hosts 20000 100000
    python benchmarks/long_queue.py journal --requests 1000000 --hosts 20000

"resume" stores requests that wait, and opens the scheduler of the next crawl in a new process. It
prints the CPU seconds until that scheduler has all of them, and the memory that they take.

"journal" sends requests through the queue while a number of them (--waiting) waits. It prints the
size of the file, the size of the log beside it, and the memory of the process, at even intervals."""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import tempfile
from collections import deque
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from time import process_time

from jobdir import FLUSHED, Comity
from scrapy.http import Request

from comity.crawler.frontier.journal import NAME, Journal

LINES = 10  # of "journal"
RENEWED = 1000  # requests between two writes of "resume"


def resident() -> float:
    """Return the MiB of memory that this process has now."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def size(path: Path) -> float:
    """Return the MiB of a file; 0 if it does not exist."""
    return path.stat().st_size / 2**20 if path.exists() else 0.0


def put(bench: Comity, journal: Journal, numbers: Iterable[int], hosts: int) -> list[int]:
    """Store requests, which take turns between the hosts, and return their keys."""
    assert bench.crawler.request_fingerprinter is not None
    keys = []
    for number in numbers:
        origin = f"http://host{number % hosts}.example"
        request = Request(
            f"{origin}/page/{number // hosts}",
            callback=bench.spider.page,
            cb_kwargs={"depth": 1},
            meta={"from": number},
        )
        fingerprint = bench.crawler.request_fingerprinter.fingerprint(request)
        key = journal.put(origin, request, fingerprint)
        assert key is not None
        keys.append(key)
    return keys


async def store(folder: Path, requests: int, hosts: int) -> None:
    bench = Comity(folder, 0, jobdir=True)
    bench.open()
    journal = bench.scheduler._book.storage
    for first in range(0, requests, RENEWED):
        put(bench, journal, range(first, min(first + RENEWED, requests)), hosts)
        journal.flush()
    await bench.close()


async def resume(folder: Path, requests: int, hosts: int) -> None:
    before, began = resident(), process_time()
    bench = Comity(folder, 0, jobdir=True)
    bench.open()
    seconds, memory = process_time() - began, resident() - before
    assert len(bench.scheduler) == requests
    print(
        f"{requests:,} requests to {hosts:,} hosts: resumed in {seconds:.1f} s of CPU,"
        f" {memory:.0f} MiB; the file has {size(folder / 'job' / NAME):.0f} MiB",
        flush=True,
    )
    await bench.close()


async def send_through(folder: Path, requests: int, hosts: int, waiting: int) -> None:
    bench = Comity(folder, 0, jobdir=True)
    bench.open()
    journal = bench.scheduler._book.storage
    file = folder / "job" / NAME
    numbers, part = iter(range(waiting + requests)), requests // LINES
    keys = deque(put(bench, journal, islice(numbers, waiting), hosts))
    journal.flush()
    print(f"{requests:,} requests to {hosts:,} hosts, of which {waiting:,} wait at a time, MiB:")
    for line in range(LINES + 1):
        for number in islice(numbers, part if line else 0):
            keys.extend(put(bench, journal, [number], hosts))
            key = keys.popleft()
            journal.get(key)
            journal.mark_done(key)
            if number % FLUSHED == 0:
                journal.flush()
        log = file.with_name(f"{NAME}-wal")
        print(
            f"{line * part:>9,} done: file {size(file):.1f}, log {size(log):.1f},"
            f" process {resident():.0f}",
            flush=True,
        )
    await bench.close()


def in_new_process(work: object, *arguments: object) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(work, *arguments))
    process.start()
    process.join()
    assert not process.exitcode


def _run(work, *arguments) -> None:  # type: ignore[no-untyped-def]
    logging.disable(logging.CRITICAL)
    asyncio.run(work(*arguments))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", choices=["resume", "journal"])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, nargs="+", default=[20_000])
    parser.add_argument("--waiting", type=int, default=10_000, help="of `journal`")
    options = parser.parse_args()
    for hosts in options.hosts:
        with tempfile.TemporaryDirectory() as folder:
            if options.work == "resume":
                in_new_process(store, Path(folder), options.requests, hosts)
                in_new_process(resume, Path(folder), options.requests, hosts)
            else:
                in_new_process(send_through, Path(folder), options.requests, hosts, options.waiting)


if __name__ == "__main__":
    main()
