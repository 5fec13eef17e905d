"""CPU per page of a crawl: comity's full compliance against Scrapy with its own robots middleware.

Three crawl the same pages of a server in another process, in turns (A B C A B C), each in a process of its own: Scrapy as it
comes, Scrapy with the CONCURRENT_ITEMS and the garbage collection that comity sets, and comity. Counted is the CPU time of the
crawling process, all its threads, from `spider_opened` to `spider_closed`: no imports, no server. Wall time is of the same, and
memory the most that the process ever had. A page is 8 KB of HTML with ten links. A `bare` spider parses nothing, knows the links
and yields no item, so that the crawler alone is compared; the other one finds title and links with parsel and writes an item a
page to a feed. comity runs with COMITY_MIN_DELAY=0, for politeness costs time, not CPU."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Request, Response, TextResponse

from comity.crawler.addon import CONCURRENT_ITEMS
from comity.policies.formats import WELL_KNOWN

LINKS = 10
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
FILLER = "<p>" + "A sentence of the page, as pages have them. " * 12 + "</p>\n"
SCRAPY = {"ROBOTSTXT_OBEY": True, "TELNETCONSOLE_ENABLED": False, "USER_AGENT": "benchbot/1.0"}
SETTINGS: dict[str, dict[str, Any]] = {
    "scrapy": SCRAPY,
    "tuned": SCRAPY | {"CONCURRENT_ITEMS": CONCURRENT_ITEMS, "EXTENSIONS": {"comity.crawler.garbage.GarbageCollection": 0}},
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
        self.began = time.process_time(), time.monotonic()

    def ended(self) -> None:
        self.cpu, self.wall = time.process_time() - self.began[0], time.monotonic() - self.began[1]

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
    spider = crawler.spider
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"cpu": spider.cpu, "wall": spider.wall, "memory": memory, "pages": spider.fetched}))


class Figures(NamedTuple):
    """The figures of one crawl."""

    cpu: float  # milliseconds per page
    wall: float  # milliseconds per page
    memory: float  # MiB


def measure(name: str, urls: list[str], pages: int, *, bare: bool, reactor: bool, profile: str = "") -> Figures:
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
            "profile": profile and f"{profile}.{name}.{'bare' if bare else 'parses'}.{len(urls)}",
        }
        done = subprocess.run([sys.executable, __file__, "--job", json.dumps(job)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    result = json.loads(done.stdout)
    if result["pages"] != pages:
        raise SystemExit(f"{name} fetched {result['pages']} pages of {pages}:\n{done.stderr}")
    return Figures(result["cpu"] / pages * 1000, result["wall"] / pages * 1000, result["memory"] / 1024)


def compare(
    hosts: int, rules: int, *, bare: bool, pages: int, rounds: int, reactor: bool, profile: str = ""
) -> dict[str, list[Figures]]:
    """`pages` in all, over `hosts` loopback hosts: figures by name."""
    addresses = [f"127.0.{number // 200 + 1}.{number % 200 + 1}" for number in range(hosts)]
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=run_server, args=(addresses, rules, pages // hosts, theirs), daemon=True)
    server.start()
    try:
        port = ours.recv()
        urls = [f"http://{address}:{port}/section-0/page-0.html" for address in addresses]
        figures: dict[str, list[Figures]] = {name: [] for name in SETTINGS}
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
    parser.add_argument("--pages", type=int, nargs="*", default=[1000, 800], help="of all hosts; for each number of hosts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-reactor", action="store_true", help="with TWISTED_REACTOR_ENABLED=False")
    parser.add_argument("--profile", default="", help="write profiles to files whose names begin so")
    options = parser.parse_args(arguments)
    if options.job:
        return crawl(json.loads(options.job))
    mode = "without a reactor" if options.no_reactor else "asyncio reactor"
    table = Table(
        *("spider", "hosts", "rules", "pages"),
        *(f"{name}\nms/page" for name in SETTINGS),
        *("to\nscrapy", "to\ntuned", "wall to\ntuned", "MiB to\ntuned"),
        title=f"CPU per page, least (median) of {options.rounds} rounds, {mode}",
    )
    for bare, (hosts, pages), rules in product((False, True), zip(options.hosts, options.pages, strict=True), options.rules):
        figures = compare(
            hosts, rules, bare=bare, pages=pages, rounds=options.rounds, reactor=not options.no_reactor, profile=options.profile
        )
        least = {name: Figures(*map(min, zip(*of_name, strict=True))) for name, of_name in figures.items()}
        ours, tuned = least["comity"], least["tuned"]
        table.add_row(
            *("bare" if bare else "parses", str(hosts), str(rules), str(pages)),
            *(
                f"{least[name].cpu:.2f} ({statistics.median(crawl.cpu for crawl in of_name):.2f})"
                for name, of_name in figures.items()
            ),
            *(f"{ours.cpu / least['scrapy'].cpu:.2f}", f"{ours.cpu / tuned.cpu:.2f}", f"{ours.wall / tuned.wall:.2f}"),
            f"{ours.memory - tuned.memory:+.0f}",
        )
    Console(width=130).print(table)
    return None


if __name__ == "__main__":
    main()
