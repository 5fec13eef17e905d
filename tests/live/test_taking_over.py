"""A JOBDIR that was begun with Scrapy's own scheduler: comity goes on where that was, and nothing is fetched twice or lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from scrapy import Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import Request, Response

from comity.crawler.frontier.scrapy_queues import read_fingerprints

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

PAGES = 60
SCRAPYS_OWN: dict[str, Any] = {"ADDONS": {}, "ROBOTSTXT_OBEY": False}


class Stopped(Spider):
    """Three requests to begin with, and from each page those to the next ones. It ends after so many pages."""

    name = "stopped"
    url: str
    stop_after = PAGES
    priorities = False

    async def start(self) -> AsyncIterator[Any]:
        for number in range(3):
            yield Request(f"{self.url}/{number}", cb_kwargs={"number": number})

    def parse(self, response: Response, number: int) -> Any:
        yield {"number": number}
        for more in range(3 * number + 3, min(3 * number + 6, PAGES)):
            priority = more % 3 if self.priorities else 0
            yield Request(
                f"{self.url}/{more}",
                cb_kwargs={"number": more},
                callback=self.other,
                priority=priority,
            )
        self.stop_after -= 1
        if not self.stop_after:
            raise CloseSpider("enough")

    def other(self, response: Response, number: int) -> Any:
        yield from self.parse(response, number)


class Fifo(Stopped):
    custom_settings: ClassVar = {  # type: ignore[misc]
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.MarshalFifoDiskQueue",
        "SCHEDULER_START_DISK_QUEUE": None,
    }


class Renamed(Spider):
    """It has no such callback any more."""

    name = "stopped"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.url}/59")


def site(serve: Serve) -> Loopback:
    pages: dict[str, Any] = {f"/{number}": f"<p>{number}" for number in range(PAGES)}
    return serve({"/robots.txt": "User-agent: *\nDisallow:\n", **pages})


def fetched(server: Loopback) -> Counter[int]:
    return Counter(int(path[1:]) for path in server.paths if path != "/robots.txt")


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("spider", [Stopped, Fifo])
@pytest.mark.parametrize(
    "after", [7, *(pytest.param(after, marks=pytest.mark.slow) for after in (1, 25, PAGES))]
)
def test_the_crawl_goes_on(
    serve: Serve, crawl: Crawl, tmp_path: Path, spider: type[Spider], after: int
) -> None:
    server, job = site(serve), tmp_path / "job"
    arguments = {"url": server.origin, "priorities": True}
    first = crawl(spider, {**SCRAPYS_OWN, "JOBDIR": str(job)}, stop_after=after, **arguments)
    assert (job / "requests.queue").is_dir()
    waited = sum(fetched(server).values())
    second = crawl(spider, {"JOBDIR": str(job)}, **arguments)
    assert fetched(server) == Counter(range(PAGES))
    assert sorted(item["number"] for item in (*first.items, *second.items)) == [*range(PAGES)]
    assert "waiting requests and" in second.log
    assert "WARNING comity.crawler.frontier.scrapy_queues" not in second.log
    assert sorted(
        path.name for path in job.iterdir() if path.name.startswith(("requests", "taking"))
    ) == [
        "requests.queue.taken-over",
        "requests.seen.taken-over",
    ]
    again = crawl(spider, {"JOBDIR": str(job)}, **arguments)
    assert again.items == []
    assert "taken over" not in again.log
    assert waited <= PAGES


def test_and_back_and_forth(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    """Scrapy's own scheduler does not read our queue, and begins anew; what it leaves is taken over, but for what is known."""
    server, job = site(serve), tmp_path / "job"
    for settings in (SCRAPYS_OWN, {}, SCRAPYS_OWN, {}):
        crawl(
            Stopped,
            {**settings, "JOBDIR": str(job), "CONCURRENT_REQUESTS": 1},
            url=server.origin,
            stop_after=8,
        )
    last = crawl(Stopped, {"JOBDIR": str(job)}, url=server.origin)
    assert set(fetched(server)) == set(range(PAGES))
    assert (
        0 < last.stats["item_scraped_count"] <= PAGES - 16
    )  # what the two crawls with comity have fetched
    assert {path.name for path in job.glob("*taken-over*")} == {
        f"requests.{kind}.taken-over{number}" for kind in ("queue", "seen") for number in ("", "-2")
    }


def test_a_request_that_cannot_be_read_holds_up_no_other(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    server, job = site(serve), tmp_path / "job"
    crawl(
        Stopped,
        {**SCRAPYS_OWN, "JOBDIR": str(job), "CONCURRENT_REQUESTS": 1},
        url=server.origin,
        stop_after=1,
    )
    before = set(fetched(server))
    crawled = crawl(Renamed, {"JOBDIR": str(job)}, url=server.origin)
    assert set(fetched(server)) - before == {0, 1, 2, 59} - before
    number = crawled.stats["comity/scheduler/unreadable"]
    assert number >= 3
    assert crawled.log.count("a request of Scrapy's own scheduler cannot be read") == number
    assert (job / "requests.queue.taken-over").is_dir()


def test_a_crawl_that_was_killed_is_not_taken_for_whole(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """Scrapy says which queues there are when it ends, and what it has seen before: what it has lost would never be asked for."""
    server, job = site(serve), tmp_path / "job"
    crawl(Stopped, {**SCRAPYS_OWN, "JOBDIR": str(job)}, url=server.origin, stop_after=10)
    shutil.rmtree(job / "requests.queue")
    (job / "requests.queue" / "127.0.0.1-0").mkdir(parents=True)
    (job / "requests.queue" / "127.0.0.1-0" / "0").write_bytes(bytes(4))
    crawled = crawl(Stopped, {"JOBDIR": str(job)}, url=server.origin)
    assert set(fetched(server)) == set(range(PAGES))
    assert "did not end in order" in crawled.log


def test_a_filter_of_the_projects_own_keeps_its_file(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    server, job = site(serve), tmp_path / "job"
    settings = {"JOBDIR": str(job), "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}
    crawl(Stopped, {**SCRAPYS_OWN, "JOBDIR": str(job)}, url=server.origin, stop_after=10)
    crawl(Stopped, settings, url=server.origin)
    assert (job / "requests.seen").exists()
    assert (job / "requests.queue.taken-over").is_dir()


@pytest.mark.parametrize("end", [0, 1])
def test_fingerprints_of_all_versions(end: int) -> None:
    some = [bytes([number]) * 20 for number in range(0, 250, 7)]
    binary = b"".join(len(one).to_bytes(2, "big") + one for one in some)
    lines = b"".join(one.hex().encode() + b"\n" for one in some)
    assert read_fingerprints(binary) == read_fingerprints(lines) == set(some)
    assert read_fingerprints(binary[:-5]) == set(some[:-1])
    assert read_fingerprints(lines[:-6]) <= {*some[:-1], some[-1][:18]}
    assert read_fingerprints(b"") == set()
    assert read_fingerprints(bytes([end])) == set()


# Wherever it is killed

KILLED = """
import json, os, shutil, sys
from pathlib import Path
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler
from comity.crawler.frontier import journal, scrapy_queues
from comity.crawler.frontier.journal import Journal
from comity.crawler.frontier.scrapy_queues import take_over

class S(Spider):
    name = "s"

def crawler():
    made = get_crawler(S, {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"})
    made.spider = S.from_crawler(made)
    return made

FILES = {scrapy_queues.__file__, journal.__file__}

def killed(folder, at):
    "In a process of its own, which ends at that line."
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    lines = 0
    def trace(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename not in FILES:
            return None
        lines += event == "line"
        if lines > at:
            os._exit(9)
        return trace
    taken = Journal(folder)
    taken.open(made.spider)
    sys.settrace(trace)
    take_over(folder, taken, made, with_seen=True)
    sys.settrace(None)
    os._exit(0)

made = crawler()
before, after, step = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
at, found = 0, []
while True:
    shutil.rmtree(after, ignore_errors=True)
    shutil.copytree(before, after)
    status = killed(after, at)
    assert killed(after, 10**9) == 0
    taken = Journal(after)
    taken.open(made.spider)
    urls = [taken.get(key).url for key, _, _ in taken.stored_requests()]
    found.append([status, urls, len(taken.seen), taken.mark, sorted(path.name for path in after.iterdir())])
    taken.close()
    if status == 0:
        break
    at += step
print(json.dumps(found))
"""


@pytest.mark.requirement("SEC-6")
@pytest.mark.usefixtures("new_processes")  # a small one forks faster
@pytest.mark.slow
def test_kill_9_at_any_step_loses_and_doubles_nothing(
    serve: Serve, crawl: Crawl, tmp_path: Path, *, in_full: bool
) -> None:
    server, job, step = site(serve), tmp_path / "job", 1 if in_full else 7
    settings = {**SCRAPYS_OWN, "JOBDIR": str(job), "CONCURRENT_REQUESTS": 2}
    crawl(Unnamed, settings, url=server.origin, stop_after=2)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(job), str(tmp_path / "killed"), str(step)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    *_, (status, urls, seen, _, names) = found
    assert status == 0
    assert len(urls) == len(set(urls)) >= 5
    assert seen >= len(urls) + 2
    assert {json.dumps([urls, seen, None, names])} == {json.dumps(rest) for _, *rest in found}
    assert len(found) > 100 // step


class Unnamed(Spider):
    """Its requests are for whatever spider."""

    name = "unnamed"
    url: str
    stop_after = 1
    custom_settings: ClassVar = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}  # type: ignore[misc]

    async def start(self) -> AsyncIterator[Any]:
        for number in range(10):
            yield Request(f"{self.url}/{number}", dont_filter=number == 9)

    def parse(self, response: Response) -> Any:
        self.stop_after -= 1
        if not self.stop_after:
            raise CloseSpider("enough")
