"""What a request costs from the spider to the hand-out, in memory and with JOBDIR, comity beside Scrapy's own scheduler in the
same run, without a network.

Both get the same requests, three for each host, and hand out the first ones while all the others wait. comity decides each by its
policies and takes a turn in the pace file, as each host asks for a delay; Scrapy's scheduler does nothing of that. "written" is
what comity's queue on disk costs besides, every 50 requests: in it, the requests are handed out from the file. Scrapy writes at
each step. "resumed" is until the scheduler of the next crawl has them all, by request that waits."""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import process_time, time
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from rounds import alone
from scrapy import Spider
from scrapy.core.scheduler import Scheduler as ScrapyScheduler
from scrapy.crawler import Crawler
from scrapy.http import Request

import comity.crawler.frontier.waiting.turns
import comity.crawler.frontier.waiting.waiting_requests
import comity.crawler.frontier.waiting.wake_timer
import comity.gate.pace.pace
from comity.crawler.frontier.scheduler import Scheduler
from comity.gate.fetching.fetcher import OriginPolicies
from comity.policies import Site

ROBOTS = (
    b"User-agent: *\n"
    + b"".join(b"Disallow: /private/%d/\n" % n for n in range(20))
    + b"Crawl-delay: 1\n"
)
PAGES = 3  # requests per host
HANDED_OUT = 2000
FLUSHED = 50  # requests between two writes of comity's queue: what a fast crawl does in 50 ms
TARGETS = {False: 50.0, True: 150.0}  # us per hand-out: in memory, with JOBDIR


class Follow(Spider):
    name = "follow"

    def page(self, response: Any) -> None:
        pass


class Bench:
    """A crawler without an engine, and what its downloader would do."""

    def __init__(self, folder: Path, *, jobdir: bool) -> None:
        settings = {
            "COMITY_STORE": str(folder / "policies.sqlite"),
            "COMITY_MIN_DELAY": 0,
            "JOBDIR": str(folder / "job") if jobdir else None,
            "TWISTED_REACTOR_ENABLED": False,
        }
        self.crawler = Crawler(Follow, settings)
        self.crawler._apply_settings()
        self.crawler.spider = self.spider = Follow()
        self.crawler.crawling = True
        self.active: set[Request] = set()
        downloader = SimpleNamespace(
            active=self.active,
            slots={},
            get_slot_key=lambda request: urlsplit(request.url).hostname,
            total_concurrency=0,
        )
        slot = SimpleNamespace(
            inprogress=self.active, closing=None, nextcall=SimpleNamespace(schedule=lambda: None)
        )
        engine = SimpleNamespace(downloader=downloader, spider=self.spider, _slot=slot)
        self.crawler.engine = engine  # type: ignore[assignment]

    def open(self) -> None:
        self.scheduler.open(self.spider)

    scheduler: Any

    def answer(self, request: Request) -> None:
        """The request is through, with all that came of it."""
        self.active.discard(request)

    def write(self) -> None:
        pass

    async def close(self) -> None:
        self.scheduler.close("done")


class Scrapy(Bench):
    def __init__(self, folder: Path, hosts: int, *, jobdir: bool) -> None:
        super().__init__(folder, jobdir=jobdir)
        self.scheduler = ScrapyScheduler.from_crawler(self.crawler)


class Comity(Bench):
    def __init__(self, folder: Path, hosts: int, *, jobdir: bool) -> None:
        super().__init__(folder, jobdir=jobdir)
        self.scheduler = Scheduler.from_crawler(self.crawler)
        self.crawl = self.scheduler._crawl
        for n in range(hosts):
            origin = f"http://host{n}.example"
            site = Site.from_files(origin, {"/robots.txt": ROBOTS})
            policies = OriginPolicies(site=site, fresh_until=time() + 3600, unreachable=False)
            self.crawl.access.decide(policies, Request(origin))  # compiles the rules, once per site
            self.crawl.policies._sites.put(origin, policies)

    def answer(self, request: Request) -> None:
        self.crawl.pace.settle_start(request)
        self.crawl.pace.end_flight(request)
        super().answer(request)

    def write(self) -> None:
        if (book := self.scheduler._book).storage is not None:
            book.note_through()
            book.mark_done(book.take_through())
            book.storage.flush()

    async def close(self) -> None:
        await self.scheduler._close("done")
        await self.crawl.policies.close()


def clocked(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the answer."""
    began = process_time()
    answer = call()
    return process_time() - began, answer


async def measure(kind: type[Scrapy | Comity], hosts: int, *, jobdir: bool) -> dict[str, float]:
    """Seconds per request, by what is done."""
    requests = [
        Request(
            f"http://host{n}.example/page/{page}",
            callback=None,
            cb_kwargs={"depth": page},
            meta={"from": n},
        )
        for page in range(PAGES)
        for n in range(hosts)
    ]
    with ExitStack() as stack:
        stack.enter_context(alone())
        now, temporary = time(), stack.enter_context(tempfile.TemporaryDirectory())
        for module in (
            comity.crawler.frontier.waiting.turns,
            comity.crawler.frontier.waiting.waiting_requests,
            comity.crawler.frontier.waiting.wake_timer,
            comity.gate.pace.pace,
        ):
            stack.enter_context(patch.object(module, "monotonic", lambda: now))
        stack.enter_context(patch.object(comity.gate.pace.pace, "time", lambda: now))
        bench = kind(Path(temporary), hosts, jobdir=jobdir)
        bench.open()
        for request in requests:
            request.callback = bench.spider.page
        enqueued = written = handed_out = 0.0
        for number, request in enumerate(requests):
            enqueued += clocked(lambda request=request: bench.scheduler.enqueue_request(request))[0]  # type: ignore[misc]
            if number % FLUSHED == 0:
                written += clocked(bench.write)[0]
        written = (written + clocked(bench.write)[0]) / len(requests)
        handing_out = min(HANDED_OUT, len(requests) * 2 // 3)
        after = 0.0
        for number in range(handing_out):
            if number % hosts == 0:
                now += 1000
            now += 1e-5
            seconds, request = clocked(bench.scheduler.next_request)
            assert request is not None
            handed_out += seconds
            bench.active.add(request)
            bench.answer(request)
            if number % FLUSHED == 0:
                after += clocked(bench.write)[0]
        after = (after + clocked(bench.write)[0]) / handing_out
        costs = {"enqueue": enqueued / len(requests), "hand-out": handed_out / handing_out}
        await bench.close()
        if jobdir:
            if kind is Comity:
                costs["written"] = written + after
            began = process_time()
            bench = kind(Path(temporary), 0, jobdir=True)
            bench.open()
            costs["resumed"] = (process_time() - began) / (len(requests) - handing_out)
            assert len(bench.scheduler) == len(requests) - handing_out
            await bench.close()
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", type=int, nargs="*", default=[1_000, 10_000])
    counts = parser.parse_args().hosts
    logging.disable(logging.CRITICAL)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # Scrapy has a file open for each host
    columns = ("enqueue", "hand-out", "written", "resumed")
    print(f"us per request, {PAGES} for each host; at most {HANDED_OUT} of them handed out")
    print(f"{'hosts':>7} {'':14}", *(f"{column:>9}" for column in columns))
    for hosts in counts:
        for jobdir in (False, True):
            for kind in (Comity, Scrapy):
                costs = asyncio.run(measure(kind, hosts, jobdir=jobdir))
                cells = (
                    f"{costs[column] * 1e6:9.1f}" if column in costs else f"{'-':>9}"
                    for column in columns
                )
                missed = kind is Comity and costs["hand-out"] * 1e6 > TARGETS[jobdir]
                name = f"{kind.__name__.lower()} {'JOBDIR' if jobdir else 'memory'}"
                print(
                    f"{hosts:7} {name:14}",
                    *cells,
                    f"above {TARGETS[jobdir]:.0f}" if missed else "",
                    flush=True,
                )


if __name__ == "__main__":
    main()
