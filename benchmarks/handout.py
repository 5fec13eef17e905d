"""The cost of a request in the scheduler, from the queue to the hand-out, without a network.

    python benchmarks/handout.py 10000 100000            CPU time, in microseconds a request
    python benchmarks/handout.py 10000 100000 --calls    Python calls a request, those of C included

"queue" leaves out the decisions by policies. "JOBDIR" includes the reading of each request from the
file. "writing" is the CPU time of all writes to that file.

Each host has a Crawl-delay, and its queue is due once a round. So the heap of dates has all hosts,
and each request takes a turn in the pace file. The policies of all hosts are in memory."""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import process_time, time
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from rounds import alone
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import Request

import comity.crawler.frontier.waiting.turns
import comity.crawler.frontier.waiting.waiting_requests
import comity.crawler.frontier.waiting.wake_timer
import comity.gate.fetching.fetcher
import comity.gate.pace.pace
from comity.crawler.frontier.scheduler import Scheduler
from comity.crawler.garbage import THRESHOLDS
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


class Meter:
    """Adds up the CPU seconds of some calls, or their Python calls."""

    def __init__(self, *, is_counting: bool) -> None:
        """`is_counting`: True to count Python calls, which makes all calls slower."""
        self._profile = cProfile.Profile() if is_counting else None
        self._seconds = 0.0

    def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        if self._profile is not None:
            return self._profile.runcall(call, *arguments)
        began = process_time()
        answer = call(*arguments)
        self._seconds += process_time() - began
        return answer

    @property
    def total(self) -> float:
        if self._profile is None:
            return self._seconds
        self._profile.create_stats()
        return pstats.Stats(self._profile).total_calls  # type: ignore[attr-defined,no-any-return]


async def measured(
    hosts: int, *, decisions: bool, jobdir: bool = False, is_counting: bool = False
) -> dict[str, float]:
    """Return the cost of one request by step: CPU seconds, or Python calls (`is_counting`)."""
    with ExitStack() as stack:
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
        # The benchmark measures no look-ups of policies, so they all stay in memory.
        stack.enter_context(patch.object(comity.gate.fetching.fetcher, "MAX_SITES", 2 * hosts))
        stack.enter_context(patch.object(comity.gate.fetching.fetcher, "MAX_SITE_BYTES", 2**40))
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
        stack.enter_context(alone())
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(*THRESHOLDS)  # as in any crawl of comity
        meters = {
            name: Meter(is_counting=is_counting)
            for name in ("enqueue", "hand-out", "empty ask", "writing")
        }
        for request in requests:
            meters["enqueue"].run(scheduler.enqueue_request, request)

        def answer(request: Request) -> None:
            crawl.pace.settle_start(request)
            crawl.pace.end_flight(request)
            active.remove(request)

        def write() -> None:
            if (book := scheduler._book).storage is not None:
                book.note_through()
                book.mark_done(book.take_through())
                book.storage.flush()

        meters["writing"].run(write)
        for _ in range(PAGES):
            now += 1000
            for _ in range(hosts):
                now += 1e-5
                handed_out = meters["hand-out"].run(scheduler.next_request)
                assert handed_out is not None
                in_flight.append(handed_out)
                active.add(handed_out)
                if len(in_flight) == CONCURRENT:
                    answer(in_flight.popleft())
                if len(scheduler._book.out) >= FLUSHED:
                    meters["writing"].run(write)
            # No host may be asked now, so this call looks at the next request of each host.
            assert meters["hand-out"].run(scheduler.next_request) is None
            while in_flight:
                answer(in_flight.popleft())
        meters["writing"].run(write)
        for _ in range(len(requests)):
            meters["empty ask"].run(scheduler.next_request)
        await scheduler._close("done")
        await crawl.policies.close()
        return {
            name: meter.total / len(requests)
            for name, meter in meters.items()
            if jobdir or name != "writing"
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hosts", type=int, nargs="*", default=[100, 10_000])
    parser.add_argument("--calls", action="store_true", help="count Python calls, not time")
    options = parser.parse_args()
    for count in options.hosts:
        for case, decisions, jobdir in (
            ("queue", False, False),
            ("with decisions", True, False),
            ("JOBDIR", True, True),
        ):
            costs = asyncio.run(
                measured(count, decisions=decisions, jobdir=jobdir, is_counting=options.calls)
            )
            cells = (
                f"{name} {cost:.0f} calls" if options.calls else f"{name} {cost * 1e6:.1f} us"
                for name, cost in costs.items()
            )
            print(f"{count:>7} hosts, {case:>14}: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
