"""CPU per policy file: the client for policy files against a stock aiohttp session and Scrapy's downloader.

All ask the same origins of a server in another process for the same four files, in turns, each in a process of its own, 64
origins at a time. Each origin is a loopback address; it has a robots.txt, and says 404 for the others. Counted is the CPU time of
the asking process, all its threads, without imports. "client" follows redirects, decodes and bounds what comes; "with the store"
also reads and writes the policy store. aiohttp has one session, with one connection for each host. Scrapy's downloader has one
request at a time for each host and its default middlewares; scheduler and spider are counted too, from `spider_opened` to
`spider_closed`."""

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
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from comity.policies.formats import WELL_KNOWN

AT_ONCE = 64  # origins
USER_AGENT = "benchbot/1.0 (+https://example.org/bot)"
ROBOTS = b"User-agent: *\n" + b"".join(b"Disallow: /private/%d/\n" % number for number in range(20))
FIELDS = b"Server: bench\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\nContent-Type: text/plain\r\nConnection: keep-alive\r\n"
HAS_IT = b'HTTP/1.1 200 OK\r\n%sETag: "1"\r\nContent-Length: %d\r\n\r\n%s' % (
    FIELDS,
    len(ROBOTS),
    ROBOTS,
)
HAS_NOT = b"HTTP/1.1 404 Not Found\r\n%sContent-Length: 9\r\n\r\nnot found" % FIELDS


def hosts(number: int) -> list[str]:
    return [f"127.0.{41 + n // 200}.{n % 200 + 1}" for n in range(number)]


# The server


class Answers(asyncio.Protocol):
    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._received = (self._received + data).split(b"\r\n\r\n")
        self._transport.write(
            b"".join(HAS_IT if b" /robots.txt " in request else HAS_NOT for request in requests)
        )


async def serve(number: int, ready: Connection) -> None:
    loop = asyncio.get_running_loop()
    first, *others = hosts(number)
    server = await loop.create_server(Answers, first, 0)
    port = server.sockets[0].getsockname()[1]
    for host in others:
        await loop.create_server(Answers, host, port)
    ready.send(port)
    await server.serve_forever()


def run_server(number: int, ready: Connection) -> None:
    asyncio.run(serve(number, ready))


# Those who ask: each answers the seconds of CPU


async def of_all(origins: list[str], ask: Callable[[str], Awaitable[None]]) -> float:
    places = asyncio.Semaphore(AT_ONCE)

    async def in_turn(origin: str) -> None:
        async with places:
            await ask(origin)

    began = time.process_time()
    await asyncio.gather(*map(in_turn, origins))
    return time.process_time() - began


def no_count(what: str, number: int = 1, origin: str = "") -> None:
    pass


def client(origins: list[str], *, with_store: bool) -> float:
    from comity.gate.fetching.client import PolicyClient
    from comity.gate.fetching.files import PolicyFiles, PolicyQuery
    from comity.gate.fetching.options import TLS, ClientOptions
    from comity.gate.fetching.proxies import Proxies
    from comity.gate.fetching.redirects import Redirects
    from comity.gate.fetching.store import PolicyStore

    class Crawl:
        count = staticmethod(no_count)

    asking = PolicyClient(
        ClientOptions(user_agent=USER_AGENT, proxies=Proxies(), tls=TLS(), bind_address=None)
    )
    redirects = Redirects(asking, timeout=15, clock=time.time)

    async def ask(origin: str) -> None:
        urls = [origin + path for path in WELL_KNOWN]
        async with asking.server(origin, None, no_count) as server:
            for url in urls:
                server.announce(url, {})
            answers = [await redirects.ask(url, None, server, no_count) for url in urls]
        assert [answer.fetched.status for answer in answers].count(200) == 1

    async def with_files(store: Path) -> float:
        files = PolicyFiles(PolicyStore(store), asking, timeout=15)

        async def get(origin: str) -> None:
            found = await files.get(PolicyQuery(origin, WELL_KNOWN, None), Crawl())
            assert len(found.files) == len(WELL_KNOWN)

        try:
            return await of_all(origins, get)
        finally:
            await files.leave()

    if not with_store:
        return asyncio.run(of_all(origins, ask))
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(with_files(Path(folder) / "policies.sqlite"))


def stock_aiohttp(origins: list[str]) -> float:
    import aiohttp

    async def run() -> float:
        connector = aiohttp.TCPConnector(limit=0, limit_per_host=1)
        async with aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": USER_AGENT}
        ) as session:

            async def ask(origin: str) -> None:
                for path in WELL_KNOWN:
                    async with session.get(origin + path) as answer:
                        await answer.read()

            return await of_all(origins, ask)

    return asyncio.run(run())


def scrapy(origins: list[str], *, reactor: bool) -> float:
    from scrapy import Spider, signals
    from scrapy.crawler import AsyncCrawlerProcess, Crawler
    from scrapy.http import Request, Response

    class Asks(Spider):
        name = "asks"
        cpu = 0.0

        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Asks:
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.opened, signals.spider_opened)
            crawler.signals.connect(spider.ended, signals.spider_closed)
            return spider

        def opened(self) -> None:
            self.began = time.process_time()

        def ended(self) -> None:
            self.cpu = time.process_time() - self.began

        async def start(self) -> Any:
            for path in WELL_KNOWN:
                for origin in origins:
                    yield Request(origin + path)

        def parse(self, response: Response) -> None:
            pass

    settings = {
        "TWISTED_REACTOR_ENABLED": reactor,
        "CONCURRENT_REQUESTS": AT_ONCE,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": 0,
        "HTTPERROR_ALLOW_ALL": True,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "USER_AGENT": USER_AGENT,
    }
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(Asks)
    process.crawl(crawler)
    process.start()
    assert isinstance(crawler.spider, Asks)
    assert crawler.stats
    assert crawler.stats.get_value("response_received_count") == len(origins) * len(WELL_KNOWN)
    return crawler.spider.cpu


WAYS: dict[str, Callable[[list[str]], float]] = {
    "client": lambda origins: client(origins, with_store=False),
    "client, with the store": lambda origins: client(origins, with_store=True),
    "aiohttp": stock_aiohttp,
    "Scrapy, reactor": lambda origins: scrapy(origins, reactor=True),
    "Scrapy, no reactor": lambda origins: scrapy(origins, reactor=False),
}


def measured(way: str, port: int, number: int) -> float:
    """Microseconds of CPU for each file, in a process of its own."""
    job = json.dumps({"way": way, "port": port, "number": number})
    done = subprocess.run(
        [sys.executable, __file__, "--job", job], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.splitlines()[-1]) / number / len(WELL_KNOWN) * 1e6


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--origins", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.job:
        job = json.loads(options.job)
        print(WAYS[job["way"]]([f"http://{host}:{job['port']}" for host in hosts(job["number"])]))
        return
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=run_server, args=(options.origins, theirs), daemon=True)
    server.start()
    port = ours.recv()
    figures: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way, column in figures.items():
            column.append(measured(way, port, options.origins))
    server.terminate()
    print(
        f"{options.origins} origins, {len(WELL_KNOWN)} files of each; CPU in us for each file, of {options.rounds} rounds"
    )
    print(f"{'':>24} {'median':>8} {'least':>8} {'/ client':>8}")
    first = statistics.median(figures["client"])
    for way, column in figures.items():
        median = statistics.median(column)
        print(f"{way:>24} {median:8.0f} {min(column):8.0f} {median / first:8.2f}")


if __name__ == "__main__":
    main()
