"""CPU per page of a crawl: comity's full compliance against Scrapy with its own robots middleware.

Both crawl the same pages of a server in another process, in turns (A B A B), each in a process of its own. Counted is the CPU
time of the crawling process, all its threads, from `spider_opened` to `spider_closed`: no imports, no server. A page is 8 KB of
HTML with ten links. A `bare` spider parses nothing, knows the links and yields no item, so that the crawler alone is compared;
the other one finds title and links with parsel and writes an item a page to a feed. comity runs with COMITY_MIN_DELAY=0,
for politeness costs time, not CPU."""

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
from itertools import product
from multiprocessing.connection import Connection
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Request, Response, TextResponse

from comity.policies.formats import WELL_KNOWN

LINKS = 10
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
FILLER = "<p>" + "A sentence of the page, as pages have them. " * 12 + "</p>\n"
SETTINGS: dict[str, dict[str, Any]] = {
    "scrapy": {"ROBOTSTXT_OBEY": True, "TELNETCONSOLE_ENABLED": False, "USER_AGENT": "benchbot/1.0"},
    "comity": {"ADDONS": {"comity.crawler.addon.Addon": 100}, "COMITY_AGENT": "benchbot", "COMITY_MIN_DELAY": 0},
}


def robots_txt(rules: int) -> bytes:
    """Nine of ten rules are literal prefixes, one has a wildcard; one of twenty allows. No page of the crawl is refused."""
    lines = ["User-agent: *"]
    for number in range(rules):
        if number % 10 == 9:
            lines.append(f"Disallow: /*/section-{number}/*.pdf$")
        else:
            lines.append(f"{'Allow' if number % 20 == 5 else 'Disallow'}: /section-{number}/private/")
    return "\n".join(lines).encode()


def page(number: int, pages: int) -> bytes:
    links = "".join(f'<li><a href="{path}">another page</a></li>' for path in children(number, pages))
    return f"<html><head><title>page {number}</title></head><body><ul>{links}</ul>{FILLER * 14}</body></html>".encode()


def answer(content_type: str, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (content_type.encode(), len(body), body)


async def serve(hosts: list[str], rules: int, pages: int, ready: Connection) -> None:
    robots = answer("text/plain", robots_txt(rules))
    answers = [answer("text/html; charset=utf-8", page(number, pages)) for number in range(pages)]

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
                number = path.partition(b"/page-")[2].partition(b".")[0]
                if path.decode() in WELL_KNOWN:
                    writer.write(robots if path == b"/robots.txt" else MISSING)
                else:
                    writer.write(answers[int(number or 0)])
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    first = await asyncio.start_server(connected, hosts[0], 0)
    port = first.sockets[0].getsockname()[1]
    if hosts[1:]:
        await asyncio.start_server(connected, hosts[1:], port, backlog=512)
    ready.send(port)
    await first.serve_forever()


def run_server(hosts: list[str], rules: int, pages: int, ready: Connection) -> None:
    asyncio.run(serve(hosts, rules, pages, ready))


def children(number: int, pages: int) -> Iterator[str]:
    """The links of page `number` in a tree in which each page links to the next ten."""
    for child in range(number * LINKS + 1, min(number * LINKS + LINKS + 1, pages)):
        yield f"/section-{child % 50}/page-{child}.html"


class Follow(Spider):
    """Follows every link, and measures the CPU time meanwhile."""

    name = "follow"
    urls: list[str]
    pages: int  # of each host
    fetched = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Follow:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, signals.spider_opened)
        crawler.signals.connect(spider.ended, signals.spider_closed)
        return spider

    def opened(self) -> None:
        self.began = time.process_time()

    def ended(self) -> None:
        self.cpu = time.process_time() - self.began

    async def start(self) -> Any:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        self.fetched += 1
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


class Bare(Follow):
    """Knows the links."""

    name = "bare"

    def parse(self, response: Response) -> Iterator[Any]:
        self.fetched += 1
        origin, _, page = response.url.partition("/section-")
        for path in children(int(page.partition("-")[2][:-5]), self.pages):
            yield Request(origin + path)


def crawl(job: dict[str, Any]) -> None:
    """In a process of its own: crawls, and prints seconds of CPU and pages."""
    from scrapy.crawler import AsyncCrawlerProcess

    process = AsyncCrawlerProcess({**job["settings"], "LOG_LEVEL": "WARNING"})
    crawler = process.create_crawler(Bare if job["bare"] else Follow)
    if job["profile"]:
        import cProfile

        profile = cProfile.Profile()
        profile.enable()
    process.crawl(crawler, urls=job["urls"], pages=job["pages"])
    process.start()
    if job["profile"]:
        profile.disable()
        profile.dump_stats(job["profile"])
    assert isinstance(crawler.spider, Follow)
    print(json.dumps({"cpu": crawler.spider.cpu, "pages": crawler.spider.fetched}))


def measure(name: str, urls: list[str], pages: int, *, bare: bool, reactor: bool, profile: str = "") -> float:
    """Milliseconds of CPU per page."""
    with tempfile.TemporaryDirectory() as folder:
        settings = SETTINGS[name] | {"COMITY_STORE": f"{folder}/policies.sqlite"}
        if not bare:
            settings["FEEDS"] = {f"{folder}/items.jsonl": {"format": "jsonlines"}}
        if not reactor:
            settings["TWISTED_REACTOR_ENABLED"] = False
        job = {
            "settings": settings,
            "urls": urls,
            "pages": pages // len(urls),
            "bare": bare,
            "profile": profile and f"{profile}.{name}",
        }
        done = subprocess.run([sys.executable, __file__, "--job", json.dumps(job)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    result = json.loads(done.stdout)
    if result["pages"] != pages:
        raise SystemExit(f"{name} fetched {result['pages']} pages of {pages}:\n{done.stderr}")
    return float(result["cpu"]) / pages * 1000


def compare(
    hosts: int, rules: int, *, bare: bool, pages: int, rounds: int, reactor: bool, profile: str = ""
) -> dict[str, list[float]]:
    """`pages` in all, over `hosts` loopback hosts: figures by name."""
    addresses = [f"127.0.{number // 200 + 1}.{number % 200 + 1}" for number in range(hosts)]
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=run_server, args=(addresses, rules, pages // hosts, theirs), daemon=True)
    server.start()
    try:
        port = ours.recv()
        urls = [f"http://{address}:{port}/section-0/page-0.html" for address in addresses]
        figures: dict[str, list[float]] = {name: [] for name in SETTINGS}
        for _, name in product(range(rounds), SETTINGS):
            figures[name].append(measure(name, urls, pages, bare=bare, reactor=reactor, profile=profile))
        return figures
    finally:
        server.terminate()
        server.join()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--hosts", type=int, nargs="*", default=[1, 200])
    parser.add_argument("--rules", type=int, nargs="*", default=[20, 1000])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-reactor", action="store_true", help="with TWISTED_REACTOR_ENABLED=False")
    parser.add_argument("--profile", default="", help="write profiles to this name with .scrapy and .comity")
    options = parser.parse_args(arguments)
    if options.job:
        return crawl(json.loads(options.job))
    mode = "without a reactor" if options.no_reactor else "asyncio reactor"
    print(f"CPU per page, ms: median of {options.rounds} (lowest-highest); {options.pages} pages, {mode}")
    print(f"{'spider':>7} {'hosts':>6} {'rules':>6} {'scrapy':>20} {'comity':>20} {'ratio':>6}")
    for bare, hosts, rules in product((False, True), options.hosts, options.rules):
        figures = compare(
            hosts,
            rules,
            bare=bare,
            pages=options.pages,
            rounds=options.rounds,
            reactor=not options.no_reactor,
            profile=options.profile,
        )
        medians = {name: statistics.median(values) for name, values in figures.items()}
        cells = " ".join(f"{medians[name]:6.3f} ({min(values):5.3f}-{max(values):5.3f})" for name, values in figures.items())
        ratio = medians["comity"] / medians["scrapy"]
        print(f"{'bare' if bare else 'parses':>7} {hosts:6} {rules:6} {cells} {ratio:6.3f}", flush=True)
    return None


if __name__ == "__main__":
    main()
