"""CPU per page of a crawl: comity's full compliance against Scrapy with its own robots middleware.

Three crawl the same pages of a server in another process, in turns (A B C A B C), each in a process of its own: Scrapy as it
comes, Scrapy with the CONCURRENT_ITEMS and the garbage collection that comity sets, and comity. Counted is the CPU time of the
crawling process, all its threads, from `spider_opened` to `spider_closed`: no imports, no server. Wall time is of the same, and
memory the most that the process ever had; `grows` is by how much that most rises for each 1,000 pages after the first tenth, and
in the last half. A page is 8 KB of HTML with up to ten links, which make a tree: nearly all that waits is known after a tenth of
the pages. With `--links chain` few wait at a time. A `bare` spider parses nothing, knows the links and yields no item, so that
the crawler alone is compared; the other one finds title and links with parsel and writes an item a page to a feed. comity runs
with COMITY_MIN_DELAY=0, for politeness costs time, not CPU.

    python benchmarks/crawl.py                                                   the cases that have targets
    python benchmarks/crawl.py --hosts 1 --pages 100000 --links chain --rounds 1    a long crawl, for its memory
    python benchmarks/crawl.py --hosts 1 200 --pages 600 800 --calls    Python calls a page
    python benchmarks/crawl.py --hosts 1 --spider bare --crawlers comity comity-handler comity-uvloop    other parts"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rounds import Rounds, peak, progress
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Request, Response, TextResponse

from comity.crawler.addon import CONCURRENT_ITEMS
from comity.policies.formats import WELL_KNOWN

LINKS = 10
# A process can open a limited number of files, and needs one for each host, and one for each
# connection.
HOSTS_OF_SERVER = 4000
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
FILLER = ("<p>" + "A sentence of the page, as pages have them. " * 12 + "</p>\n") * 14
SCRAPY = {"ROBOTSTXT_OBEY": True, "TELNETCONSOLE_ENABLED": False, "USER_AGENT": "benchbot/1.0"}
SETTINGS: dict[str, dict[str, Any]] = {
    "scrapy": SCRAPY,
    "tuned": SCRAPY
    | {
        "CONCURRENT_ITEMS": CONCURRENT_ITEMS,
        "EXTENSIONS": {"comity.crawler.garbage.GarbageCollection": 0},
    },
    "comity": {
        "ADDONS": {"comity.crawler.addon.Addon": 100},
        "COMITY_AGENT": "benchbot",
        "COMITY_MIN_DELAY": 0,
    },
}
UVLOOP = {"ASYNCIO_EVENT_LOOP": "uvloop.Loop"}
AIOHTTP = {
    "DOWNLOAD_HANDLERS": dict.fromkeys(
        ("http", "https"), "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
    )
}
HANDLER = {"COMITY_DOWNLOAD_HANDLER": True}
SETTINGS_BY_REQUEST = {  # crawlers that run only if `--crawlers` names them
    f"{name}-{addition}": SETTINGS[name] | settings
    for name in ("tuned", "comity")
    for addition, settings in (
        ("uvloop", UVLOOP),
        ("aiohttp", AIOHTTP),
        ("uvloop-aiohttp", UVLOOP | AIOHTTP),
        ("handler", HANDLER),
        ("uvloop-handler", UVLOOP | HANDLER),
    )
    if name == "comity" or addition not in ("handler", "uvloop-handler")
}


def robots_txt(rules: int) -> bytes:
    """Nine of ten rules are literal prefixes, one has a wildcard; one of twenty allows. No page of the crawl is refused."""
    lines = ["User-agent: *"]
    for number in range(rules):
        if number % 10 == 9:
            lines.append(f"Disallow: /*/section-{number}/*.pdf$")
        else:
            lines.append(
                f"{'Allow' if number % 20 == 5 else 'Disallow'}: /section-{number}/private/"
            )
    return "\n".join(lines).encode()


def page(number: int, pages: int, links: str) -> bytes:
    items = "".join(
        f'<li><a href="{path}">another page</a></li>' for path in LINKING[links](number, pages)
    )
    return f"<html><head><title>page {number}</title></head><body><ul>{items}</ul>{FILLER}</body></html>".encode()


def answer(content_type: str, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        content_type.encode(),
        len(body),
        body,
    )


async def serve(
    hosts: list[str], port: int, rules: int, pages: int, links: str, ready: Connection
) -> None:
    """Serve the hosts at one port, and send its number when they are ready. `port`: 0 for any."""
    robots = answer("text/plain", robots_txt(rules))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
                number = path.partition(b"/page-")[2].partition(b".")[0]
                if path.decode() in WELL_KNOWN:
                    writer.write(robots if path == b"/robots.txt" else MISSING)
                else:
                    writer.write(
                        answer("text/html; charset=utf-8", page(int(number or 0), pages, links))
                    )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    first = await asyncio.start_server(connected, hosts[0], port)
    port = first.sockets[0].getsockname()[1]
    if hosts[1:]:
        await asyncio.start_server(connected, hosts[1:], port, backlog=512)
    ready.send(port)
    await first.serve_forever()


def run_server(*arguments: Any) -> None:
    asyncio.run(serve(*arguments))


def tree(number: int, pages: int) -> Iterator[str]:
    """The links of a page where each links to the next ten: most pages of the crawl wait in the queue at a time."""
    for child in range(number * LINKS + 1, min(number * LINKS + LINKS + 1, pages)):
        yield f"/section-{child % 50}/page-{child}.html"


def chain(number: int, pages: int) -> Iterator[str]:
    """The links of a page where one in ten links to the next ten: a few pages wait, whichever the queue hands out first."""
    if number % LINKS == 0:
        for child in (number + LINKS, *range(number + 1, number + LINKS)):
            if child < pages:
                yield f"/section-{child % 50}/page-{child}.html"


LINKING: dict[str, Callable[[int, int], Iterator[str]]] = {"tree": tree, "chain": chain}


class Follow(Spider):
    """Follows every link, and measures the CPU time meanwhile, and the memory at each tenth of the pages."""

    name = "follow"
    urls: list[str]
    pages: int  # of each host
    links: str
    fetched = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Follow:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, signals.spider_opened)
        crawler.signals.connect(spider.ended, signals.spider_closed)
        return spider

    def opened(self) -> None:
        self.peaks: list[int] = []
        self.tenth = max(1, self.pages * len(self.urls) // 10)
        self.began = time.process_time(), time.monotonic()

    def ended(self) -> None:
        self.cpu, self.wall = time.process_time() - self.began[0], time.monotonic() - self.began[1]

    def count_page(self) -> None:
        self.fetched += 1
        if not self.fetched % self.tenth:
            self.peaks.append(peak())

    async def start(self) -> Any:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        self.count_page()
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


class Bare(Follow):
    """Knows the links."""

    name = "bare"

    def parse(self, response: Response) -> Iterator[Any]:
        self.count_page()
        origin, _, page = response.url.partition("/section-")
        for path in LINKING[self.links](int(page.partition("-")[2][:-5]), self.pages):
            yield Request(origin + path)


def crawl(job: dict[str, Any]) -> None:
    """Crawls in a process of its own, and prints what that took."""
    from scrapy.crawler import AsyncCrawlerProcess

    process = AsyncCrawlerProcess({**job["settings"], "LOG_LEVEL": "WARNING"})
    crawler = process.create_crawler(Bare if job["bare"] else Follow)
    if job["profile"]:
        import cProfile

        profile = cProfile.Profile()
        profile.enable()
    process.crawl(crawler, urls=job["urls"], pages=job["pages"], links=job["links"])
    process.start()
    if job["profile"]:
        profile.disable()
        profile.dump_stats(job["profile"])
    assert isinstance(crawler.spider, Follow)
    spider = crawler.spider
    told = {
        "cpu": spider.cpu,
        "wall": spider.wall,
        "memory": peak(),
        "peaks": spider.peaks,
        "pages": spider.fetched,
    }
    print(json.dumps(told))


class Figures(NamedTuple):
    """The figures of one crawl."""

    cpu: float  # milliseconds per page
    wall: float  # milliseconds per page
    memory: float  # MiB
    growth: float  # MiB per 1,000 pages after the first tenth
    half_growth: float  # MiB per 1,000 pages in the last half


class Case(NamedTuple):
    """A crawl that all crawlers do."""

    bare: bool
    hosts: int
    rules: int
    pages: int  # of all hosts
    links: str = "tree"

    def __str__(self) -> str:
        hosts = (
            f"{self.hosts} hosts x {self.pages // self.hosts:,}"
            if self.hosts > 1
            else f"1 host x {self.pages:,}"
        )
        return f"{hosts} pages, {self.rules:,} rules, {'bare' if self.bare else 'parsing'}"


CASES = [
    *(Case(bare, 1, rules, 1000) for rules in (20, 1000) for bare in (True, False)),
    *(Case(bare, 200, rules, 800) for rules in (20, 1000) for bare in (True, False)),
    *(Case(bare, 200, 20, 10_000) for bare in (True, False)),
]


class Way(NamedTuple):
    """How a crawl runs."""

    reactor: bool = True
    profile: str = ""  # how the names of profiles begin


@contextmanager
def served(case: Case) -> Iterator[list[str]]:
    """Serve the case in other processes, and return the URLs that begin it, one for each host."""
    addresses = [f"127.0.{number // 200 + 1}.{number % 200 + 1}" for number in range(case.hosts)]
    servers, port = [], 0
    try:
        for first in range(0, case.hosts, HOSTS_OF_SERVER):
            ours, theirs = multiprocessing.Pipe()
            hosts = addresses[first : first + HOSTS_OF_SERVER]
            given = (hosts, port, case.rules, case.pages // case.hosts, case.links, theirs)
            servers.append(multiprocessing.Process(target=run_server, args=given, daemon=True))
            servers[-1].start()
            port = ours.recv()
        yield [f"http://{address}:{port}/section-0/page-0.html" for address in addresses]
    finally:
        for server in servers:
            server.terminate()
            server.join()


def crawled(program: str, name: str, case: Case, job: dict[str, Any]) -> dict[str, Any]:
    """Let a benchmark crawl in a new process, and return the values that it prints."""
    done = subprocess.run(
        [sys.executable, program, "--job"],
        input=json.dumps(job),  # the URLs of 10,000 hosts are too long for an argument
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    told: dict[str, Any] = json.loads(done.stdout)
    if told["pages"] != case.pages:
        raise SystemExit(f"{name} fetched {told['pages']} pages of {case.pages}:\n{done.stderr}")
    return told


def measured(name: str, case: Case, urls: list[str], way: Way) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        settings = (SETTINGS | SETTINGS_BY_REQUEST)[name] | {
            "COMITY_STORE": f"{folder}/policies.sqlite"
        }
        if not case.bare:
            settings["FEEDS"] = {f"{folder}/items.jsonl": {"format": "jsonlines"}}
        if not way.reactor:
            settings["TWISTED_REACTOR_ENABLED"] = False
        job = {
            "settings": settings,
            "urls": urls,
            "pages": case.pages // case.hosts,
            "bare": case.bare,
            "links": case.links,
            "profile": way.profile
            and f"{way.profile}.{name}.{'bare' if case.bare else 'parses'}.{case.hosts}",
        }
        told = crawled(__file__, name, case, job)

    def growth(tenth: int) -> float:
        """From the end of a tenth to the end of the last one."""
        return (
            float(told["peaks"][-1] - told["peaks"][tenth - 1])
            / 1024
            / (case.pages * (10 - tenth) / 10_000)
        )

    cpu, wall = (told[name] / case.pages * 1000 for name in ("cpu", "wall"))
    return Figures(cpu, wall, told["memory"] / 1024, growth(1), growth(5))


class Comparison:
    """The crawls of one case, in which the crawlers take turns."""

    def __init__(
        self, case: Case, names: Sequence[str] = tuple(SETTINGS), way: Way | None = None
    ) -> None:
        self.case, self._way = case, way or Way()
        self._figures: dict[str, list[Figures]] = {name: [] for name in names}

    def add_round(self) -> None:
        with served(self.case) as urls:
            for name, figures in self._figures.items():
                figures.append(measured(name, self.case, urls, self._way))

    def of(self, name: str, figure: str) -> Rounds:
        return Rounds(tuple(getattr(crawl, figure) for crawl in self._figures[name]))

    def ratio(self, name: str, figure: str = "cpu") -> tuple[float, float]:
        """What comity takes in relation to another: by the least of each, and the median of the rounds."""
        ours, theirs = self.of("comity", figure), self.of(name, figure)
        by_round = [our / their for our, their in zip(ours.figures, theirs.figures, strict=True)]
        return ours.least / theirs.least, Rounds(tuple(by_round)).median

    def memory_beyond(self, name: str) -> float:
        """MiB that comity takes and another does not."""
        return self.of("comity", "memory").least - self.of(name, "memory").least


def calls_a_page(name: str, case: Case, way: Way) -> float:
    """Return the Python calls of the main thread for each page after the first third.

    With one page a host, the first third of the hosts is left out. Calls of C functions count too,
    as cProfile counts them. Calls resolve smaller differences than the CPU time of a machine with
    other work."""
    per_host = case.pages // case.hosts
    first = (
        case._replace(hosts=case.hosts // 3, pages=case.hosts // 3)
        if per_host == 1
        else case._replace(pages=case.hosts * max(1, per_host // 3))
    )
    calls: dict[int, int] = {}  # pages -> calls
    with tempfile.TemporaryDirectory() as folder:
        for part in (first, case):
            pages = part.pages
            with served(part) as urls:
                measured(name, part, urls, way._replace(profile=f"{folder}/{pages}"))
            [profile] = Path(folder).glob(f"{pages}.*")
            calls[pages] = pstats.Stats(str(profile)).total_calls  # type: ignore[attr-defined]
    (few, calls_of_few), (many, calls_of_many) = calls.items()
    return (calls_of_many - calls_of_few) / (many - few)


def chosen(options: argparse.Namespace) -> list[Case]:
    spiders = {"bare": [True], "parses": [False], "both": [True, False]}[options.spider]
    if not (options.hosts or options.rules or options.pages):
        return [case for case in CASES if case.bare in spiders]
    hosts, rules = options.hosts or [1, 200], options.rules or [20]
    pages = options.pages or [1000 if number == 1 else 4 * number for number in hosts]
    if len(pages) != len(hosts):
        raise SystemExit("--pages takes one number for each of --hosts")
    crawls = product(zip(hosts, pages, strict=True), rules, spiders)
    return [Case(bare, host, rule, number, options.links) for (host, number), rule, bare in crawls]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--hosts", type=int, nargs="*")
    parser.add_argument("--rules", type=int, nargs="*")
    parser.add_argument(
        "--pages", type=int, nargs="*", help="of all hosts; for each number of hosts"
    )
    parser.add_argument("--spider", choices=("bare", "parses", "both"), default="both")
    parser.add_argument(
        "--links",
        choices=tuple(LINKING),
        default="tree",
        help="tree: most pages wait at a time; chain: few do",
    )
    parser.add_argument(
        "--crawlers",
        choices=(*SETTINGS, *SETTINGS_BY_REQUEST),
        nargs="*",
        default=list(SETTINGS),
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--no-reactor", action="store_true", help="with TWISTED_REACTOR_ENABLED=False"
    )
    parser.add_argument(
        "--profile", default="", help="write profiles to files whose names begin so"
    )
    parser.add_argument(
        "--calls", action="store_true", help="count Python calls a page, and measure nothing else"
    )
    options = parser.parse_args(arguments)
    if options.job:
        return crawl(json.load(sys.stdin))
    way = Way(reactor=not options.no_reactor, profile=options.profile)
    if options.calls:
        for case, name in product(chosen(options), options.crawlers):
            print(f"{case}: {name}: {calls_a_page(name, case, way):,.0f} calls a page", flush=True)
        return None
    comparisons = [Comparison(case, options.crawlers, way) for case in chosen(options)]
    with progress() as shown:
        task = shown.add_task("", total=options.rounds * len(comparisons))
        for _, comparison in product(range(options.rounds), comparisons):
            shown.update(task, description=str(comparison.case))
            comparison.add_round()
            shown.advance(task)
    columns = (
        "ms/page",
        "to\nscrapy",
        "to\ntuned",
        "wall\nms/page",
        "MiB",
        "grows\nMiB/1,000",
        "in the\nlast half",
    )
    mode = "without a reactor" if options.no_reactor else "asyncio reactor"
    table = Table(
        "crawl",
        "",
        *columns,
        title=f"CPU per page, least (median) of {options.rounds} rounds, {mode}",
    )
    for comparison in comparisons:
        for name in options.crawlers:
            cpu, wall, memory, growth, half_growth = (
                comparison.of(name, figure) for figure in Figures._fields
            )
            table.add_row(
                *(str(comparison.case), name, str(cpu)),
                *(
                    "{:.2f} ({:.2f})".format(*comparison.ratio(other))
                    if name == "comity" and other in options.crawlers
                    else ""
                    for other in ("scrapy", "tuned")
                ),
                *(
                    str(wall),
                    f"{memory.least:.0f}",
                    f"{growth.median:.2f}",
                    f"{half_growth.median:.2f}",
                ),
            )
        table.add_section()
    Console(width=150).print(table)
    return None


if __name__ == "__main__":
    main()
