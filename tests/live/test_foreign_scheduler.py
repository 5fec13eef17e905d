"""Crawls whose project has another scheduler: hosts are asked no more often, and its queue is not drained into the process."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from scrapy import Spider, version_info
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Request, Response

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

PAGES = 24  # more than wait at a time where there is no limit
CONCURRENT = 4


class Shared(BaseScheduler):
    """A queue that other processes share, as those in Redis are: first in, first out, whatever the hosts. What is taken from it
    is gone, should this process end."""

    queue: ClassVar[deque[Request]] = deque()
    seen: ClassVar[set[str]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Shared:
        scheduler = cls()
        scheduler.queue.clear()
        scheduler.seen.clear()
        return scheduler

    def enqueue_request(self, request: Request) -> bool:
        if request.url in self.seen and not request.dont_filter:
            return False
        self.seen.add(request.url)
        self.queue.append(request)
        return True

    def next_request(self) -> Request | None:
        return self.queue.popleft() if self.queue else None

    def has_pending_requests(self) -> bool:
        return bool(self.queue)


class Counting(Spider):
    """Says with each page how many requests are in this process: out of the queue, and not answered."""

    name = "counting"
    urls: list[str]
    enough = 0  # pages of other hosts than the first one, after which the crawl ends; 0: it ends by itself

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url, "inside": len(self.crawler.engine.downloader.active)}
        if self.enough and not response.url.startswith(self.urls[0][:-1]):
            self.enough -= 1
            if not self.enough:
                raise CloseSpider("enough")

    def failed(self, failure: Any) -> Any:
        yield {"url": failure.request.url, "error": str(failure.value)}


class InShared(Counting):
    custom_settings: ClassVar = {"SCHEDULER": Shared}  # type: ignore[misc]


class InScrapys(Counting):
    custom_settings: ClassVar = {"SCHEDULER": "scrapy.core.scheduler.Scheduler"}  # type: ignore[misc]


def site(delay: float = 0) -> dict[str, Any]:
    pages: dict[str, Any] = {f"/{number}": "<p>page" for number in range(PAGES)}
    return {"/robots.txt": f"User-agent: *\nCrawl-delay: {delay}\n" if delay else "", **pages}


def urls(*servers: Loopback) -> list[str]:
    return [server.url(f"/{number}") for server in servers for number in range(PAGES)]


def gaps(server: Loopback) -> list[float]:
    moments = [seen.at for seen in server.seen if not seen.path.endswith(".txt")]
    return [later - earlier for earlier, later in pairwise(moments)]


@pytest.mark.requirement("RATE-2", "MEET-1")
@pytest.mark.parametrize("spider", [InShared, InScrapys])
def test_what_cannot_go_out_stays_in_the_queue(
    serve: Serve, crawl: Crawl, spider: type[Spider]
) -> None:
    """No more than CONCURRENT_REQUESTS wait in the process, and those that are out."""
    server = serve(site(0.05))
    crawled = crawl(spider, {"CONCURRENT_REQUESTS": CONCURRENT}, urls=urls(server))
    assert sorted(item["url"] for item in crawled.items) == sorted(urls(server))
    assert max(item["inside"] for item in crawled.items) <= CONCURRENT + 1
    assert min(gaps(server)) >= 0.05
    assert crawled.finish_reason == "finished"
    assert crawled.log.count("wait in the process, at most 4 at a time") == 1


@pytest.mark.requirement("MEET-1")
def test_scrapys_own_queue_goes_on_with_other_hosts(serve: Serve, crawl: Crawl) -> None:
    """It takes from the host that has the fewest requests out: it knows of those that wait."""
    slow, *fast = serve(site(1)), serve(site(), host="127.0.0.2"), serve(site(), host="127.0.0.3")
    crawled = crawl(
        InScrapys, {"CONCURRENT_REQUESTS": CONCURRENT}, urls=urls(slow, *fast), enough=2 * PAGES
    )
    assert crawled.finish_reason == "enough"
    assert len(slow.seen) < PAGES / 2  # in turns with the slow host, all of it would be through


def test_refusals_and_policies_that_cannot_be_had_free_their_places(
    serve: Serve, crawl: Crawl
) -> None:
    refusing = serve({"/robots.txt": "User-agent: *\nDisallow: /\n"})
    nowhere = [f"http://127.0.0.9:9/{number}" for number in range(PAGES)]
    server = serve(site(), host="127.0.0.2")
    crawled = crawl(
        InShared, {"CONCURRENT_REQUESTS": 2}, urls=[*urls(refusing), *nowhere, *urls(server)]
    )
    assert len(crawled.items) == 3 * PAGES
    assert sum("error" in item for item in crawled.items) == 2 * PAGES
    assert len([path for path in server.paths if path != "/robots.txt"]) == PAGES


class Answers:
    """A downloader middleware. Before ours, nothing of what it answers comes to ours."""

    async def process_request(self, request: Request) -> Response | None:
        number = int(request.url.rpartition("/")[2])
        return Response(request.url, body=b"cached") if number % 2 else None


class AnsweredBefore(InShared):
    custom_settings: ClassVar = {"SCHEDULER": Shared, "DOWNLOADER_MIDDLEWARES": {Answers: 50}}  # type: ignore[misc]


class AnsweredBehind(InShared):
    custom_settings: ClassVar = {"SCHEDULER": Shared, "DOWNLOADER_MIDDLEWARES": {Answers: 500}}  # type: ignore[misc]


@pytest.mark.parametrize("spider", [AnsweredBefore, AnsweredBehind])
def test_what_others_answer_frees_its_place(
    serve: Serve, crawl: Crawl, spider: type[Spider]
) -> None:
    server = serve(site())
    crawled = crawl(spider, {"CONCURRENT_REQUESTS": 2}, urls=urls(server))
    assert len(crawled.items) == PAGES
    assert crawled.finish_reason == "finished"


# Up to Scrapy 2.17, CONCURRENT_REQUESTS = 0 lets no request out.
@pytest.mark.skipif(version_info < (2, 18), reason="0 means no limit since Scrapy 2.18")
def test_without_a_limit_of_scrapys_there_is_one_all_the_same(serve: Serve, crawl: Crawl) -> None:
    server = serve(site(0.02))
    crawled = crawl(InShared, {"CONCURRENT_REQUESTS": 0}, urls=urls(server))
    assert len(crawled.items) == PAGES
    assert max(item["inside"] for item in crawled.items) <= 16 + 1
