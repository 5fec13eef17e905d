"""One crawl by several workers over COMITY_STATE, by what the server of the pages saw: what is lost or too soon; what it costs.

    python benchmarks/reach.py chaos      4 workers, 1,000 hosts x 20 pages, a delay of 1 s; one worker is killed each 3 s and one
                                          stopped for a while. `--server kill` kills Redis under load, `--server away` takes it
                                          away for 20 s
    python benchmarks/reach.py rate       4 workers, one host at Request-rate 10/1s: what any second held at most
    python benchmarks/reach.py policies   4 workers, 500 origins: how often each was asked for its policy files
    python benchmarks/reach.py cost       calls and CPU a page of 1, 2 and 4 workers, and of one with SQLite and of Scrapy
    python benchmarks/reach.py memory     what a request that waits takes on the server, and one that was seen; 1,000,000 of them
                                          on 100,000 hosts are put and drained

Each host is a loopback address of one server process. A page leads to the next of its host and, once more, to one of the next
host. Pages are lost that no worker asked for; repeats are those that were asked for more than once."""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hosts import Host, Log, Server, hosts
from rich.console import Console
from rich.table import Table
from scrapy import Spider
from scrapy.http import Request, Response

from comity.policies.formats import WELL_KNOWN
from tests.redis_server import Server as Redis

WORKER_TIMEOUT = 3.0  # seconds
PATIENCE = 600.0  # seconds until a crawl is given up


class Neighbours(Spider):
    """Each page leads to the next one of its host, and to one of the next host."""

    name = "neighbours"
    port: int
    addresses: list[str]
    pages: int

    async def start(self) -> Any:
        for address in self.addresses:
            yield Request(f"http://{address}:{self.port}/0")

    def parse(self, response: Response) -> Iterator[Request]:
        address, number = response.url.split("/")[2].partition(":")[0], int(response.url.rpartition("/")[2])
        place = self.addresses.index(address) if number % 5 == 0 else 0
        if number + 1 < self.pages:
            yield Request(f"http://{address}:{self.port}/{number + 1}")
        if number % 5 == 0:
            yield Request(f"http://{self.addresses[(place + 1) % len(self.addresses)]}:{self.port}/{number}")


def work(job: dict[str, Any]) -> None:
    """In a process of its own. Tells the CPU time that it took."""
    from scrapy.crawler import AsyncCrawlerProcess

    process = AsyncCrawlerProcess({**job["settings"], "LOG_LEVEL": job.get("level", "ERROR")})
    crawler = process.create_crawler(Neighbours)
    process.crawl(crawler, **job["arguments"])
    process.start()
    used = resource.getrusage(resource.RUSAGE_SELF)
    stats = crawler.stats.get_stats() if crawler.stats else {}
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "pages": stats.get("response_received_count", 0)}))


class Worker:
    def __init__(self, job: dict[str, Any], log: Path) -> None:
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--job", json.dumps(job)], stdout=subprocess.PIPE, stderr=errors, text=True
            )

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Outcome(NamedTuple):
    asked: int
    lost: int
    repeats: int
    too_soon: int  # gaps below the delay
    least_gap: float
    span: float  # seconds from the first page to the last
    policies: int  # most requests for one policy file
    killed: int
    errors: int  # lines of errors in the logs
    failed: int  # workers that ended with another status than 0


def judged(log: Log, crawled: list[Host], delay: float, killed: int, errors: int, failed: int) -> Outcome:
    pages = [(at, address, path) for at, address, path in log if path[1:].isdigit()]
    wanted = {(host.address, f"/{page}") for host in crawled for page in range(host.pages)}
    found = Counter((address, path) for _, address, path in pages)
    times: dict[str, list[float]] = {}
    for at, address, _ in pages:
        times.setdefault(address, []).append(at)
    gaps = [after - before for of_host in times.values() for before, after in pairwise(sorted(of_host))]
    policies = Counter((address, path) for _, address, path in log if path in WELL_KNOWN)
    return Outcome(
        asked=len(pages),
        lost=len(wanted - found.keys()),
        repeats=len(pages) - len(found),
        too_soon=sum(gap < delay - 0.005 for gap in gaps),
        least_gap=min(gaps, default=0.0),
        span=max(at for at, *_ in pages) - min(at for at, *_ in pages),
        policies=max(policies.values(), default=0),
        killed=killed,
        errors=errors,
        failed=failed,
    )


@contextmanager
def redis() -> Iterator[Redis]:
    with tempfile.TemporaryDirectory() as folder:
        server = Redis(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def chaos(options: argparse.Namespace) -> Outcome:
    """One crawl with its faults."""
    crawled = hosts(40, options.hosts, pages=options.pages, delay=options.delay)
    chance = random.Random()
    killed, stopped = 0, None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        state = stack.enter_context(redis())
        server = stack.enter_context(Server(crawled))
        job = {
            "settings": {
                "ADDONS": {"comity.crawler.addon.Addon": 100},
                "COMITY_AGENT": "benchbot",
                "COMITY_MIN_DELAY": 0,
                "COMITY_PROGRESS": "off",
                "COMITY_STATE": state.url,
                "COMITY_WORKER_TIMEOUT": options.timeout,
                "CONCURRENT_REQUESTS": 64,
            },
            "arguments": {"port": server.port, "addresses": [host.address for host in crawled], "pages": options.pages},
            "level": "INFO" if options.verbose else "WARNING",
        }
        log = folder / "log"
        workers = [Worker(job, log) for _ in range(options.workers)]
        began = kill_at = time.monotonic()
        kill_at += options.kill or PATIENCE
        stop_at = began + 8 if options.freeze else began + PATIENCE
        server_at = began + 7 if options.server else began + PATIENCE
        failed = 0
        while any(worker.runs for worker in workers):
            time.sleep(0.05)
            now = time.monotonic()
            if now > began + PATIENCE:
                for worker in workers:
                    worker.kill()
                failed += 1
                break
            if now > kill_at and all(worker.runs for worker in workers):
                kill_at = now + options.kill
                killed += 1
                number = chance.randrange(len(workers))
                workers[number].kill()
                workers[number] = Worker(job, log)
            if stopped is None and now > stop_at and workers[0].runs:
                stopped, stop_at = workers[0], now + 2 * options.timeout
                stopped.process.send_signal(signal.SIGSTOP)
            elif stopped is not None and now > stop_at:
                stop_at = began + 2 * PATIENCE
                if stopped.runs:
                    stopped.process.send_signal(signal.SIGCONT)
            if now > server_at:
                server_at = began + 2 * PATIENCE
                state.kill()
                time.sleep(20 if options.server == "away" else 0)
                state.start()
        failed += sum(worker.process.returncode != 0 for worker in workers)
        text = log.read_text()
        if options.verbose:
            sys.stderr.write(text)
        errors = text.count("Traceback") + text.count(" ERROR:")
        server.channel.send(None)
        seen: Log = server.channel.recv()
        if options.verbose:
            counts = Counter((address, path) for _, address, path in seen if path[1:].isdigit())
            sys.stderr.write(f"{[(key, [at for at, *k in seen if tuple(k) == key]) for key, n in counts.items() if n > 1]}\n")
        return judged(seen, crawled, options.delay, killed, errors, failed)


def show(rows: list[Outcome], title: str) -> None:
    table = Table(title=title)
    for name in Outcome._fields:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row))
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=("chaos",))
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill", type=float, default=3.0, help="seconds between two kills; 0: none")
    parser.add_argument("--freeze", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--server", choices=("kill", "away"))
    parser.add_argument("--timeout", type=float, default=WORKER_TIMEOUT, help="COMITY_WORKER_TIMEOUT")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.job:
        work(json.loads(options.job))
        return
    rows = []
    for _ in range(options.runs):
        rows.append(chaos(options))
        show(rows, f"{options.workers} workers, {options.hosts} hosts, {options.pages} pages, {options.delay:g} s")


if __name__ == "__main__":
    main()
