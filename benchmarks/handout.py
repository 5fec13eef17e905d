"""What the scheduler costs per request that it hands out, without a network.

"queue" is without the policy decisions. A host with a delay costs two: for the request that goes out, and for the next one,
which would go out at once if it were refused. With JOBDIR, to read the request is part of it, and what it costs to write the
queue stands beside it.

Every host asks for a delay that lets it be due once, so that the heap holds all of them at any time. Every request takes a turn
in the pace file, therefore."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from time import process_time, time
from types import SimpleNamespace
from unittest.mock import patch

from rounds import alone
from scrapy import Spider
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
CONCURRENT = 16  # requests in flight
FLUSHED = 50  # requests between two writes of the queue: what a fast crawl does in 50 ms


async def measured(hosts: int, *, decisions: bool, jobdir: bool = False) -> dict[str, float]:
    """Seconds per request, by what is done."""
    with ExitStack() as stack:
        stack.enter_context(alone())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        settings = {
            "COMITY_STORE": str(Path(folder) / "policies.sqlite"),
            "COMITY_MIN_DELAY": 0,
            "TWISTED_REACTOR_ENABLED": False,
            "JOBDIR": folder if jobdir else "",
        }
        crawler = Crawler(Spider, settings)
        crawler._apply_settings()
        spider = crawler.spider = Spider("bench")
        crawler.crawling = True
        active: set[Request] = set()
        in_flight: deque[Request] = deque()
        slot = SimpleNamespace(inprogress=active)
        crawler.engine = SimpleNamespace(
            downloader=SimpleNamespace(active=active), spider=None, _slot=slot
        )  # type: ignore[assignment]
        scheduler = Scheduler.from_crawler(crawler)
        crawl = scheduler._crawl
        scheduler.open(spider)
        for n in range(hosts):
            origin = f"http://host{n}.example"
            site = Site.from_files(origin, {"/robots.txt": ROBOTS})
            policies = OriginPolicies(site=site, fresh_until=time() + 3600, unreachable=False)
            crawl.access.decide(policies, Request(origin))  # compiles the rules, once per site
            crawl.policies._sites.put(origin, policies)
        now = 1e6
        for module in (
            comity.crawler.frontier.waiting.turns,
            comity.crawler.frontier.waiting.waiting_requests,
            comity.crawler.frontier.waiting.wake_timer,
            comity.gate.pace.pace,
        ):
            stack.enter_context(patch.object(module, "monotonic", lambda: now))
        stack.enter_context(patch.object(comity.gate.pace.pace, "time", lambda: now))
        if not decisions:
            allowed = crawl.access.decide(policies, Request(origin))
            crawl.access.decide = lambda *_, **__: allowed  # type: ignore[method-assign]
        requests = [
            Request(f"http://host{n}.example/page/{page}")
            for page in range(PAGES)
            for n in range(hosts)
        ]
        began = process_time()
        for request in requests:
            scheduler.enqueue_request(request)
        enqueued = process_time()

        def answer(request: Request) -> None:
            crawl.pace.settle_start(request)
            crawl.pace.end_flight(request)
            active.remove(request)

        def write() -> float:
            """Seconds that it took."""
            started = process_time()
            if (book := scheduler._book).storage is not None:
                book.note_through()
                book.mark_done(book.take_through())
                book.storage.flush()
            return process_time() - started

        written = write()
        seconds = 0.0
        for _ in range(PAGES):
            now += 1000
            for _ in range(hosts):
                now += 1e-5
                started = process_time()
                handed_out = scheduler.next_request()
                seconds += process_time() - started
                assert handed_out is not None
                in_flight.append(handed_out)
                active.add(handed_out)
                if len(in_flight) == CONCURRENT:
                    answer(in_flight.popleft())
                if len(scheduler._book.out) >= FLUSHED:
                    written += write()
            while in_flight:
                answer(in_flight.popleft())
            assert scheduler.next_request() is None
        empty = process_time()
        for _ in range(10_000):
            scheduler.next_request()
        empty = (process_time() - empty) / 10_000
        total = hosts * PAGES
        costs = {
            "enqueue": (enqueued - began) / total,
            "hand-out": seconds / total,
            "empty ask": empty,
        }
        if jobdir:
            costs["writing"] = (written + write()) / total
        await scheduler._close("done")
        await crawl.policies.close()
        return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", type=int, nargs="*", default=[100, 10_000])
    for count in parser.parse_args().hosts:
        for what, decisions, jobdir in (
            ("queue", False, False),
            ("with decisions", True, False),
            ("JOBDIR", True, True),
        ):
            costs = asyncio.run(measured(count, decisions=decisions, jobdir=jobdir))
            told = ", ".join(f"{name} {cost * 1e6:.1f} us" for name, cost in costs.items())
            print(f"{count:>7} hosts, {what:>14}: {told}", flush=True)


if __name__ == "__main__":
    main()
