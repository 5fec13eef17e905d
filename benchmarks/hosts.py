"""Whether slow hosts hold up fast ones, measured by the server: comity against Scrapy's default queue.

1. Fast hosts that ask for nothing beside slow ones that ask for a Crawl-delay: when the fast pages are done with and without the
   slow hosts, and when all pages are, against the time that the delays alone take. Scrapy runs with its own robots.txt
   middleware, which knows no Crawl-delay, so it gets the delays by DOWNLOAD_SLOTS, without jitter.
2. A few normal hosts beside some whose policy files are slow, robots.txt and two more that it names: when the normal pages are
   done. Scrapy asks for robots.txt only.

Each host is a loopback address of its own on one server process. Times count from the first request that the server got until it
got the last one in question. The spider knows the links and parses nothing. COMITY_MIN_DELAY is 0, as Scrapy's delay is."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

from scrapy import Spider
from scrapy.http import Request, Response

from comity.policies.formats import WELL_KNOWN

LINKS = 10  # of a page
PAGE = (
    b"<html><head><title>page</title></head><body>"
    + b"<p>A sentence of the page.</p>\n" * 60
    + b"</body></html>"
)
CRAWLERS: dict[str, dict[str, Any]] = {
    "comity": {
        "ADDONS": {"comity.crawler.addon.Addon": 100},
        "COMITY_AGENT": "benchbot",
        "COMITY_MIN_DELAY": 0,
    },
    "scrapy": {
        "ROBOTSTXT_OBEY": True,
        "TELNETCONSOLE_ENABLED": False,
        "USER_AGENT": "benchbot/1.0",
    },
}
REFERENCES = b"ACAP-crawler: *\nACAP-permissions-reference: /%s\n"

Log = list[tuple[float, str, str, str]]  # when, host, path, and the value of the field WORKER
WORKER = "X-Worker"  # by which a client says which worker it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A loopback address, and how its server behaves."""

    address: str
    pages: int
    delay: float = 0.0  # seconds; its Crawl-delay
    rate: str = ""  # its Request-rate
    policy: float = 0.0  # seconds that each of its policy files takes


def hosts(network: int, number: int, **how: Any) -> list[Host]:
    return [Host(address=f"127.0.{network + n // 200}.{n % 200 + 1}", **how) for n in range(number)]


# The server


def policy_files(host: Host) -> dict[str, bytes]:
    lines = [b"User-agent: *", b"Disallow: /private/"]
    if host.delay:
        lines.append(b"Crawl-delay: %g" % host.delay)
    if host.rate:
        lines.append(b"Request-rate: %s" % host.rate.encode())
    files = {"/robots.txt": b"\n".join(lines) + b"\n"}
    if host.policy:
        more = [b"more-1.txt", b"more-2.txt"]
        files["/robots.txt"] += b"".join(REFERENCES % name for name in more)
        files |= {
            f"/{name.decode()}": b"ACAP-crawler: *\nACAP-disallow-index: /private/\n"
            for name in more
        }
    return files


def answer(content_type: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        content_type,
        len(body),
        body,
    )


async def serve(served: list[Host], channel: Connection) -> None:
    """Sends its port, and whenever it is asked what it saw since then."""
    by_address = {host.address: (host, policy_files(host)) for host in served}
    log: Log = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, policies = by_address[writer.get_extra_info("sockname")[0]]
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path, worker = (
                    head.split(" ", 2)[1],
                    head.partition(f"\r\n{WORKER}: ")[2].partition("\r\n")[0],
                )
                log.append((time.monotonic(), host.address, path, worker))
                if path in policies:
                    await asyncio.sleep(host.policy)
                    writer.write(answer(b"text/plain", policies[path]))
                elif path in WELL_KNOWN:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                else:
                    writer.write(answer(b"text/html; charset=utf-8", PAGE))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def tell() -> None:
        channel.recv()
        channel.send(log)
        log.clear()

    first = await asyncio.start_server(connected, served[0].address, 0)
    port = first.sockets[0].getsockname()[1]
    await asyncio.start_server(connected, [host.address for host in served[1:]], port, backlog=512)
    asyncio.get_running_loop().add_reader(channel.fileno(), tell)
    channel.send(port)
    await first.serve_forever()


def run_server(served: list[Host], channel: Connection) -> None:
    asyncio.run(serve(served, channel))


# The crawler


class Links(Spider):
    """Each page leads to the next ten of its host."""

    name = "links"
    port: int
    pages: dict[str, int]  # by address

    async def start(self) -> Any:
        for address in self.pages:
            yield Request(f"http://{address}:{self.port}/0")

    def parse(self, response: Response) -> Iterator[Request]:
        origin, _, number = response.url.rpartition("/")
        first = int(number) * LINKS + 1
        for link in range(
            first, min(first + LINKS, self.pages[origin.split("/")[2].partition(":")[0]])
        ):
            yield Request(f"{origin}/{link}")


def crawl(job: dict[str, Any]) -> None:
    """In a process of its own."""
    from scrapy.crawler import AsyncCrawlerProcess

    process = AsyncCrawlerProcess({**job["settings"], "LOG_LEVEL": "ERROR"})
    process.crawl(Links, **job["arguments"])
    process.start()


# What is measured


def visit(
    name: str, crawled: list[Host], port: int, channel: Connection, *, reactor: bool = True
) -> Log:
    """What the server saw of a crawl of these hosts, in this order."""
    slots = {
        host.address: {"delay": host.delay, "jitter": 0.0}
        for host in crawled
        if host.delay and name == "scrapy"
    }
    with tempfile.TemporaryDirectory() as folder:
        job = {
            "settings": {
                **CRAWLERS[name],
                "COMITY_STORE": f"{folder}/policies.sqlite",
                "DOWNLOAD_SLOTS": slots,
                "TWISTED_REACTOR_ENABLED": reactor,
            },
            "arguments": {"port": port, "pages": {host.address: host.pages for host in crawled}},
        }
        done = subprocess.run(
            [sys.executable, __file__, "--job", json.dumps(job)],
            capture_output=True,
            text=True,
            check=False,
        )
    channel.send(None)
    log: Log = channel.recv()
    got = {(address, path) for _, address, path, _ in log}
    missing = {(host.address, f"/{page}") for host in crawled for page in range(host.pages)} - got
    if done.returncode or missing:
        raise SystemExit(f"{name} did not fetch {sorted(missing)}:\n{done.stderr}")
    return log


def last(log: Log, of: list[Host]) -> float:
    """Seconds until the last page of these hosts was asked for."""
    addresses = {host.address for host in of}
    times = [at for at, address, path, _ in log if address in addresses and path[1:].isdigit()]
    return max(times) - log[0][0]


def least_gap(log: Log, of: list[Host]) -> float:
    """Seconds between two pages of one of these hosts."""
    times = [
        [at for at, address, path, _ in log if address == host.address and path[1:].isdigit()]
        for host in of
    ]
    return min(after - before for of_host in times for before, after in pairwise(of_host))


def mixed(fast: list[Host], slow: list[Host]) -> list[Host]:
    """The slow ones spread evenly among the fast ones."""
    places = [
        (number / len(some), host) for some in (slow, fast) for number, host in enumerate(some)
    ]
    return [host for _, host in sorted(places, key=lambda place: place[0])]


class Server:
    """A process that serves these hosts while the context is open."""

    def __init__(self, served: list[Host]) -> None:
        self.channel, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(
            target=run_server, args=(served, theirs), daemon=True
        )

    def __enter__(self) -> Server:
        self._process.start()
        self.port = self.channel.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


def slow_hosts(fast: list[Host], slow: list[Host], rounds: int) -> None:
    floor = max((host.pages - 1) * host.delay for host in slow)
    print(
        f"{len(fast)} fast hosts with {fast[0].pages} pages, {len(slow)} slow ones with {slow[0].pages} and Crawl-delay"
        f" {slow[0].delay:g}, which take {floor:g} s; seconds, median of {rounds}"
    )
    print(
        f"{'':>8} {'fast alone':>10} {'fast':>8} {'ratio':>6} {'all':>8} {'/ floor':>7} {'least gap':>9}"
    )
    figures: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in CRAWLERS}
    with Server(fast + slow) as server:
        for _ in range(rounds):
            for name, measured in figures.items():
                alone = last(visit(name, fast, server.port, server.channel), fast)
                log = visit(name, mixed(fast, slow), server.port, server.channel)
                measured.append(
                    (alone, last(log, fast), last(log, fast + slow), least_gap(log, slow))
                )
    for name, measured in figures.items():
        alone, beside, whole, _ = (
            statistics.median(column) for column in zip(*measured, strict=True)
        )
        gap = min(gap for *_, gap in measured)
        print(
            f"{name:>8} {alone:10.2f} {beside:8.2f} {beside / alone:6.2f} {whole:8.2f} {whole / floor:7.2f} {gap:9.3f}"
        )


def slow_policies(normal: list[Host], slow: list[Host]) -> None:
    print(
        f"\n{len(normal)} normal hosts with {normal[0].pages} pages beside {len(slow)} whose policy files take"
        f" {slow[0].policy:g} s; seconds until the normal pages are done, in one crawl each"
    )
    print(f"{'':>8} {'':>10} {'alone':>8} {'mixed':>8} {'slow first':>10}")
    orders = [normal, mixed(normal, slow), slow + normal]
    with Server(normal + slow) as server:
        for name, reactor in (
            ("comity", True),
            ("comity", False),
            ("scrapy", True),
            ("scrapy", False),
        ):
            alone, beside, after = (
                last(visit(name, order, server.port, server.channel, reactor=reactor), normal)
                for order in orders
            )
            print(
                f"{name:>8} {'reactor' if reactor else 'no reactor':>10} {alone:8.2f} {beside:8.2f} {after:10.2f}",
                flush=True,
            )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=float, default=1.0, help="0.1: a tenth of the hosts")
    parser.add_argument(
        "--delay", type=float, default=5.0, help="Crawl-delay of the slow hosts, seconds"
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    scale: float = options.scale
    if options.job:
        crawl(json.loads(options.job))
        return

    def some(number: int) -> int:
        return max(2, round(number * scale))

    slow_hosts(
        hosts(1, some(100), pages=20),
        hosts(11, some(20), pages=4, delay=options.delay),
        options.rounds,
    )
    slow_policies(hosts(21, 5, pages=20), hosts(31, some(20), pages=1, policy=6.0))


if __name__ == "__main__":
    main()
