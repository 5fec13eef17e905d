"""Whether hosts are asked as often as they allow, and never more often, by the times at which their server was asked.

For each rate a host of its own, a loopback address of one server process, is crawled by one process and another one by two
processes that share a store. A row says how many pages were asked for, how many any window held at most (10 ms tolerance) of how
many allowed, and the rate that was reached: the least time that the rates leave for so many pages, divided by the time from the
first to the last. Where the server answers 429, one page in ten is, and the window is the time for which Retry-After wants none:
`held` is what came meanwhile. Where the number in flight is limited too, a page's body comes some time after its headers, and
`at once` says how many pages were under way at most; where nothing else is limited, the rate that was reached is the part of the
time in which as many were under way as may be. Policy files are not counted. COMITY_MIN_DELAY is 0.

All hosts are crawled at the same time, or it would take a quarter of an hour: `--in-turn` does that."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from math import ceil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from scrapy import Spider
from scrapy.http import Request, Response

from comity.policies.formats import WELL_KNOWN
from comity.policies.formats.automation.directives import PATH as AUTOMATION_PATH

TOLERANCE = 0.01  # seconds
BUSY = 10  # of so many pages one is answered by 429
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n"
BODY = b"page"


@dataclass(frozen=True, slots=True)
class Rate:
    name: str
    line: str  # of robots.txt, or of automation-preferences.txt
    requests: int = 0  # 0: no limit
    seconds: float = 0.0
    retry_after: str = ""  # "seconds" or "date", where some pages are answered by 429
    concurrent: int = 0  # pages under way at a time; 0: no limit, and the line is of robots.txt
    body: float = 0.0  # seconds from the headers to the body


DELAY = "Crawl-delay: 0.2"
RATES = (
    Rate("Crawl-delay 0.2", DELAY, 1, 0.2),
    Rate("Crawl-delay 1", "Crawl-delay: 1", 1, 1),
    Rate("Request-rate 10/2s", "Request-rate: 10/2s", 10, 2),
    Rate("Retry-After 1", DELAY, 1, 0.2, "seconds"),
    Rate("Retry-After a date", DELAY, 1, 0.2, "date"),
    Rate(
        "60/minute and 2",
        "request-limit: 60/minute\nconcurrent-limit: 2",
        60,
        60,
        concurrent=2,
        body=0.05,
    ),
    Rate("concurrent-limit 2", "concurrent-limit: 2", concurrent=2, body=0.2),
)


class Log:
    """What a host was asked, and what it asked for. Times are seconds, monotonic."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.times: list[float] = []
        self.waits: list[
            tuple[int, float]
        ] = []  # how many had been asked for when it said 429, and until when it wanted none
        self.under_way = self.at_once = 0
        self.last = 0.0  # when the last body was sent

    def answer(self, path: bytes, at: float) -> bytes:
        """All of it, or the headers of a page."""
        if path.decode() in WELL_KNOWN:
            group = "scope: /\nallowed-methods: GET" if path != b"/robots.txt" else "User-agent: *"
            is_there = path.decode() == (AUTOMATION_PATH if self.rate.concurrent else "/robots.txt")
            body = f"{group}\n{self.rate.line}\n".encode() if is_there else b""
            status = b"200 OK" if is_there else b"404 Not Found"
            return b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (
                status,
                len(body),
                body,
            )
        self.times.append(at)
        if not self.rate.retry_after or len(self.times) % BUSY:
            self.under_way += 1
            self.at_once = max(self.at_once, self.under_way)
            return HEADERS
        stated, wait = "1", 1.0
        if self.rate.retry_after == "date":
            now = time.time()
            stated, wait = formatdate(int(now) + 2, usegmt=True), int(now) + 2 - now
        self.waits.append((len(self.times), time.monotonic() + wait))
        return (
            b"HTTP/1.1 429 Busy\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n" % stated.encode()
        )

    def body(self) -> bytes:
        self.under_way -= 1
        self.last = time.monotonic()
        return BODY

    def most(self) -> int:
        """In any window."""
        width = self.rate.seconds - TOLERANCE
        return max(sum(begin <= at < begin + width for at in self.times) for begin in self.times)

    def held(self) -> int:
        """Asked for while the host wanted nothing."""
        return sum(
            at < until - TOLERANCE for number, until in self.waits for at in self.times[number:]
        )

    def reached(self) -> float:
        """The least time in which so many could be asked for, by the time that it took."""
        if not self.rate.requests:
            return (
                len(self.times)
                * self.rate.body
                / self.rate.concurrent
                / (self.last - self.times[0])
            )
        least = (ceil(len(self.times) / self.rate.requests) - 1) * self.rate.seconds
        for number, until in self.waits:
            if number < len(self.times):
                least += max(0.0, until - self.times[number - 1] - self.rate.seconds)
        return least / (self.times[-1] - self.times[0])


class Server(asyncio.Protocol):
    def __init__(self, logs: dict[str, Log]) -> None:
        self._logs = logs

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._log = self._logs[transport.get_extra_info("sockname")[0]]

    def data_received(self, data: bytes) -> None:
        at = time.monotonic()  # a request without a body comes in one piece
        answer = self._log.answer(data.split(b" ", 2)[1], at)
        self._transport.write(answer)
        if answer is HEADERS:
            asyncio.get_running_loop().call_later(
                self._log.rate.body, lambda: self._transport.write(self._log.body())
            )


def serve(logs: dict[str, Log], control: Connection) -> None:
    """Sends the port, and the logs when it is asked for them."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        port = 0
        for address in logs:
            server = await loop.create_server(lambda: Server(logs), address, port)
            port = server.sockets[0].getsockname()[1]
        control.send(port)
        await asyncio.to_thread(control.recv)
        control.send(logs)

    asyncio.run(run())


class Pages(Spider):
    name = "pages"
    urls: list[str]

    async def start(self) -> Any:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> None: ...


def crawl(job: dict[str, Any]) -> None:
    """In a process of its own."""
    from scrapy.crawler import AsyncCrawlerProcess

    settings = {
        "ADDONS": {"comity.crawler.addon.Addon": 100},
        "COMITY_AGENT": "benchbot",
        "USER_AGENT": "benchbot/1.0 (+https://benchbot.example)",
        "COMITY_MIN_DELAY": 0,
        "COMITY_STORE": job["store"],
        "TWISTED_REACTOR_ENABLED": job["reactor"],
        "LOG_LEVEL": "ERROR",
    }
    process = AsyncCrawlerProcess(settings)
    process.crawl(Pages, urls=job["urls"])
    process.start()


def begin(
    origin: str, store: Path, pages: int, processes: int, *, reactor: bool
) -> Iterator[subprocess.Popen[bytes]]:
    for process in range(processes):
        urls = [f"{origin}/{n}" for n in range(process, pages, processes)]
        job = {"store": str(store), "urls": urls, "reactor": reactor}
        yield subprocess.Popen([sys.executable, __file__, "--job", json.dumps(job)])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument(
        "--no-reactor", action="store_true", help="with TWISTED_REACTOR_ENABLED=False"
    )
    parser.add_argument("--in-turn", action="store_true", help="one host after the other")
    options = parser.parse_args(arguments)
    if options.job:
        return crawl(json.loads(options.job))
    runs = [(rate, processes) for rate in RATES for processes in (1, 2)]
    addresses = [f"127.0.0.{number}" for number in range(1, len(runs) + 1)]
    logs = {address: Log(rate) for address, (rate, _) in zip(addresses, runs, strict=True)}
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(logs, theirs), daemon=True)
    server.start()
    port = ours.recv()
    codes: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        crawls: list[subprocess.Popen[bytes]] = []
        for address, (_, processes) in zip(addresses, runs, strict=True):
            store = Path(folder) / address / "policies.sqlite"
            origin = f"http://{address}:{port}"
            crawls += begin(origin, store, options.pages, processes, reactor=not options.no_reactor)
            if options.in_turn:
                codes += [each.wait() for each in crawls]
        codes += [each.wait() for each in crawls]
    ours.send("done")
    logs = ours.recv()
    server.join()
    if any(codes):
        raise SystemExit("a crawl failed")
    print(
        f"{options.pages} pages a host, {'without a reactor' if options.no_reactor else 'asyncio reactor'}"
    )
    print(
        f"{'rate':>18} {'processes':>9} {'requests':>8} {'most':>4} {'allowed':>7} {'held':>4} {'at once':>7} {'reached':>7}"
    )
    for address, (rate, processes) in zip(addresses, runs, strict=True):
        log = logs[address]
        held = str(log.held()) if rate.retry_after else "-"
        most, allowed = (log.most(), rate.requests) if rate.requests else ("-", "-")
        at_once = f"{log.at_once} of {rate.concurrent}" if rate.concurrent else "-"
        row = f"{rate.name:>18} {processes:9} {len(log.times):8} {most:>4} {allowed:>7} {held:>4} {at_once:>7} {log.reached():7.1%}"
        print(row)
    return None


if __name__ == "__main__":
    main()
