"""Crawls through the scheduler, by what the servers saw."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.policies.formats import WELL_KNOWN
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

OPEN = "User-agent: *\nDisallow:\n"
PAGE = "<p>page</p>"
PATIENCE = 60  # seconds; after them a server stops waiting for what should have happened


def site(*paths: str, robots: Any = OPEN) -> dict[str, Any]:
    return {"/robots.txt": robots, **dict.fromkeys(paths, PAGE)}


def answer(body: str = "", status: int = 200, **headers: str) -> Any:
    from tests.conftest import Answer

    return Answer(
        body,
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def assert_quiet(crawled: Crawled) -> None:
    assert not [
        line
        for line in crawled.log.splitlines()
        if "Traceback" in line or "never awaited" in line or "ERROR" in line
    ]


class Urls(Spider):
    """Asks for URLs with priorities and says what came of each. `then`: URLs to ask after the first page came."""

    name = "urls"
    urls: list[str]
    priorities: list[int] | None = None
    then: tuple[str, ...] = ()
    stop_after = 0  # pages; 0: never

    async def start(self) -> AsyncIterator[Any]:
        for url, priority in zip(self.urls, self.priorities or [0] * len(self.urls), strict=True):
            yield self.request(url, priority)

    def request(self, url: str, priority: int = 0) -> Request:
        return Request(
            url,
            priority=priority,
            callback=self.parse,
            errback=self.failed,
            cb_kwargs={"asked": url},
        )

    def parse(self, response: Response, asked: str) -> Any:
        yield {"url": response.url, "asked": asked, "status": response.status}
        yield from map(self.request, self.then)
        self.then = ()
        if self.stop_after:
            self.stop_after -= 1
            if not self.stop_after:
                raise CloseSpider("enough")

    def failed(self, failure: Any) -> Any:
        yield {"asked": failure.request.cb_kwargs["asked"], "error": str(failure.value)}


@pytest.mark.requirement("RFC-1", "WHY-2")
def test_nothing_of_an_origin_is_asked_before_its_robots_txt(serve: Serve, crawl: Crawl) -> None:
    servers = [
        serve(site("/a", "/b", robots="User-agent: *\nDisallow: /private"), host=f"127.0.0.{n}")
        for n in (1, 2, 3)
    ]
    paths = ("/a", "/private/1", "/b", "/private/2")
    crawled = crawl(Urls, urls=[server.url(path) for path in paths for server in servers])
    for server in servers:
        assert server.paths[0] == "/robots.txt"
        assert sorted(server.paths[1:]) == ["/a", "/b"]
    refused = [item["error"] for item in crawled.items if "error" in item]
    assert len(refused) == 6
    assert all(
        "robots.disallow (RFC 9309 section-2.2.2)" in error
        and "/robots.txt:2: 'Disallow: /private'" in error
        for error in refused
    )
    assert crawled.finish_reason == "finished"
    assert crawled.stats["scheduler/enqueued"] == crawled.stats["scheduler/dequeued"] == 12
    assert_quiet(crawled)


@pytest.mark.requirement("RFC-1")
def test_two_ports_of_a_host_have_policies_of_their_own(serve: Serve, crawl: Crawl) -> None:
    first = serve(site("/x", "/y", robots="User-agent: *\nDisallow: /x"))
    second = serve(site("/x", "/y", robots="User-agent: *\nDisallow: /y"))
    crawl(Urls, urls=[server.url(path) for server in (first, second) for path in ("/x", "/y")])
    assert first.paths == ["/robots.txt", "/y"]
    assert second.paths == ["/robots.txt", "/x"]


def test_higher_priority_goes_first_and_then_who_came_first(serve: Serve, crawl: Crawl) -> None:
    everything_queued = threading.Event()

    def robots(handler: Any) -> Any:
        assert everything_queued.wait(PATIENCE)
        return answer(OPEN)

    def go(handler: Any) -> Any:
        everything_queued.set()
        return answer(PAGE)

    server = serve(site("/1", "/2", "/3", "/4", "/5", robots=robots))
    last = serve(site() | {"/go": go}, host="127.0.0.2")
    urls = [server.url(f"/{n}") for n in (1, 2, 3, 4, 5)]
    crawl(
        Urls,
        {"COMITY_MIN_DELAY": 0.01},
        urls=[*urls, last.url("/go")],
        priorities=[0, 5, 0, 5, -1, 0],
    )
    assert server.paths == ["/robots.txt", "/2", "/4", "/1", "/3", "/5"]


@pytest.mark.requirement("RATE-3")
def test_slow_robots_txt_holds_up_no_other_host(serve: Serve, crawl: Crawl) -> None:
    pages_done = threading.Event()
    in_time: list[bool] = []

    def slow(handler: Any) -> Any:
        in_time.append(pages_done.wait(PATIENCE))
        return answer(OPEN)

    def page(handler: Any) -> Any:
        if sum(path != "/robots.txt" for path in fast.paths) == 11:
            pages_done.set()
        return answer(PAGE)

    fast = serve(site() | {f"/{n}": page for n in range(11)})
    slow_ones = [serve(site("/a", robots=slow), host=f"127.0.0.{n}") for n in range(2, 8)]
    then = [server.url("/a") for server in slow_ones] + [fast.url(f"/{n}") for n in range(1, 11)]
    crawled = crawl(Urls, {"CONCURRENT_REQUESTS": 4}, urls=[fast.url("/0")], then=then)
    assert in_time == [True] * 6
    assert all(server.paths == ["/robots.txt", "/a"] for server in slow_ones)
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RATE-3")
def test_many_requests_of_a_host_that_asks_to_wait_hold_up_no_other(
    serve: Serve, crawl: Crawl
) -> None:
    """And the crawl that is stopped with requests waiting ends at once, and says how many."""
    waiting = serve(site(*(f"/{n}" for n in range(40)), robots="User-agent: *\nCrawl-delay: 120"))
    other = serve(site(*(f"/{n}" for n in range(20))), host="127.0.0.2")
    urls = [waiting.url(f"/{n}") for n in range(40)] + [other.url(f"/{n}") for n in range(20)]
    crawled = crawl(Urls, {"CONCURRENT_REQUESTS": 4}, urls=urls, stop_after=21)
    assert waiting.paths == ["/robots.txt", "/0"]
    assert len(other.paths) == 21
    assert crawled.finish_reason == "enough"
    assert crawled.stats["comity/scheduler/left"] == 39
    assert_quiet(crawled)


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("robots", "settings"),
    one_in(
        2,
        [
            ("User-agent: *\nCrawl-delay: 0.2", {}),
            (OPEN, {"COMITY_MIN_DELAY": 0.2}),
            (OPEN, {"DOWNLOAD_DELAY": 0.2}),
            (OPEN, {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.2}}}),
            (
                "User-agent: *\nCrawl-delay: 0.2",
                {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.01},
            ),
        ],
    ),
)
def test_delay_is_kept_at_the_server(
    serve: Serve, crawl: Crawl, robots: str, settings: dict[str, Any]
) -> None:
    server = serve(site("/a", "/b", "/c", "/d", robots=robots))
    crawled = crawl(
        Urls, settings, urls=[server.url(path) for path in ("/a", "/b", "/c", "/d", "/none")]
    )
    hits = [seen.at for seen in server.seen if seen.path not in WELL_KNOWN]
    assert len(hits) == 5
    assert min(after - before for before, after in pairwise(hits)) >= 0.19
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RATE-1")
def test_two_origins_of_a_host_share_its_pace(serve: Serve, crawl: Crawl) -> None:
    first_is_known = threading.Event()

    def page(handler: Any) -> Any:
        first_is_known.set()
        return answer(PAGE)

    def robots(handler: Any) -> Any:
        assert first_is_known.wait(PATIENCE)
        return answer(OPEN)

    first = serve(site("/b", robots="User-agent: *\nCrawl-delay: 0.2") | {"/a": page})
    second = serve(site("/a", "/b", robots=robots))
    crawl(Urls, urls=[server.url(path) for path in ("/a", "/b") for server in (first, second)])
    hits = sorted(
        seen.at for server in (first, second) for seen in server.seen if seen.path not in WELL_KNOWN
    )
    assert len(hits) == 4
    assert min(after - before for before, after in pairwise(hits)) >= 0.19


def test_refused_urls_cost_no_delay(serve: Serve, crawl: Crawl) -> None:
    """A crawl of three URLs that waited after a refusal would not end before the spider is stopped by the test's time-out."""
    server = serve(site("/a", robots="User-agent: *\nDisallow: /private\nCrawl-delay: 300"))
    crawled = crawl(
        Urls,
        {"CLOSESPIDER_TIMEOUT": 8},
        urls=[server.url(f"/private/{n}") for n in range(100)] + [server.url("/a")],
    )
    assert server.paths == ["/robots.txt", "/a"]
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RATE-4")
@pytest.mark.parametrize(
    "line",
    ["Crawl-delay: 3600", "VISIT", pytest.param("Request-rate: 1/3600", marks=pytest.mark.slow)],
)
def test_what_would_wait_longer_than_the_operator_has_is_set_aside(
    serve: Serve, crawl: Crawl, line: str
) -> None:
    if line == "VISIT":
        later = datetime.now(UTC) + timedelta(hours=3)
        line = f"Visit-time: {later:%H}00-{later + timedelta(hours=2):%H}00"
    server = serve(site("/a", robots=f"User-agent: *\nDisallow: /private\n{line}"))
    crawled = crawl(Urls, urls=[server.url("/private"), server.url("/a")])
    assert server.paths == ["/robots.txt"]
    (item,) = crawled.items
    assert item["asked"] == server.url("/private")
    assert "robots.disallow" in item["error"]
    assert crawled.stats["comity/scheduler/set-aside"] == 1
    assert f"1 requests to {server.origin} were set aside" in crawled.log
    assert crawled.finish_reason == "finished"


class HoldsTwice:
    """Puts each request off twice, as long as the scheduler takes it back: before it is sent, or when 408 came."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._held: dict[str, int] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HoldsTwice:
        return cls(crawler)

    def process_request(self, request: Request) -> Request | None:
        return self._hold(request) if "/early" in request.url else None

    def process_response(self, request: Request, response: Response) -> Request | Response:
        return (self._hold(request) if response.status == 408 else None) or response

    def _hold(self, request: Request) -> Request | None:
        if request.url.endswith("robots.txt") or self._held.get(request.url, 0) == 2:
            return None
        self._held[request.url] = self._held.get(request.url, 0) + 1
        scheduler = OwnCrawl.of(self._crawler).scheduler
        assert scheduler is not None
        assert scheduler.hold(request, 0.2)
        return request


class HoldingUrls(Urls):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {HoldsTwice: 560}}  # noqa: RUF012


def test_request_that_is_held_comes_back_as_it_was(serve: Serve, crawl: Crawl) -> None:
    def busy(handler: Any) -> Any:
        return answer(PAGE, status=408 if server.paths.count("/busy") < 3 else 200)

    server = serve(site("/early") | {"/busy": busy})
    crawled = crawl(
        HoldingUrls, urls=[server.url("/early"), server.url("/busy"), server.url("/early/missing")]
    )
    assert sorted(server.paths[1:]) == ["/busy"] * 3 + ["/early", "/early/missing"]
    outcomes = {item["asked"]: item.get("status", item.get("error")) for item in crawled.items}
    assert outcomes[server.url("/early")] == outcomes[server.url("/busy")] == 200
    assert outcomes[server.url("/early/missing")] == "Ignoring non-200 response"
    hits = [seen.at for seen in server.seen if seen.path == "/busy"]
    assert min(after - before for before, after in pairwise(hits)) >= 0.19
    assert crawled.stats["comity/scheduler/held"] == 6
    assert crawled.stats["scheduler/enqueued"] == crawled.stats["scheduler/dequeued"] == 3
    assert "dupefilter/filtered" not in crawled.stats
    assert "retry/count" not in crawled.stats
    assert crawled.finish_reason == "finished"


class OnceOnly:
    """An extension that lets nothing into the queue twice."""

    def __init__(self, crawler: Crawler) -> None:
        self._urls: set[str] = set()
        crawler.signals.connect(self.scheduled, signals.request_scheduled)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OnceOnly:
        return cls(crawler)

    def scheduled(self, request: Request) -> None:
        if request.url in self._urls:
            raise IgnoreRequest
        self._urls.add(request.url)


class UrlsOnceOnly(Urls):
    custom_settings = {"EXTENSIONS": {OnceOnly: 0}, "CLOSESPIDER_TIMEOUT": 8}  # noqa: RUF012


@pytest.mark.parametrize("has_jobdir", [True, False])
def test_nobody_waits_for_what_is_stopped_on_its_way_back(
    serve: Serve, crawl: Crawl, tmp_path: Path, has_jobdir: bool
) -> None:
    server = serve(site() | {"/busy": answer(status=429, Retry_After="1")})
    settings = {"JOBDIR": str(tmp_path / "job")} if has_jobdir else {}
    crawled = crawl(UrlsOnceOnly, settings, urls=[server.url("/busy")])
    assert server.paths == ["/robots.txt", "/busy"]
    assert crawled.finish_reason == "finished"
    assert crawled.stats["scheduler/enqueued"] == crawled.stats["scheduler/dequeued"] == 1
    if has_jobdir:  # nor does the next crawl
        assert "scheduler/dequeued" not in crawl(Urls, settings, urls=[]).stats
    assert server.paths == ["/robots.txt", "/busy"]


class HoldsUntilOthersAreDone:
    """Puts /held off to a time that is over."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HoldsUntilOthersAreDone:
        return cls(crawler)

    def process_request(self, request: Request) -> Request | None:
        stats, scheduler = self._crawler.stats, OwnCrawl.of(self._crawler).scheduler
        assert stats
        assert scheduler is not None
        if not request.url.endswith("/held") or stats.get_value("item_scraped_count", 0) >= 50:
            return None
        assert scheduler.hold(request, -5)
        return request


class PutOff(Urls):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {HoldsUntilOthersAreDone: 560}}  # noqa: RUF012


def test_what_is_put_off_to_the_past_does_not_spin(serve: Serve, crawl: Crawl) -> None:
    server = serve(site("/held", *(f"/{n}" for n in range(50))), host="127.0.0.1")
    other = serve(site(*(f"/{n}" for n in range(50))), host="127.0.0.2")
    crawled = crawl(PutOff, urls=[server.url("/held"), *(other.url(f"/{n}") for n in range(50))])
    assert server.paths == ["/robots.txt", "/held"]
    assert crawled.stats["comity/scheduler/held"] < 100  # a spinning engine has thousands


@pytest.mark.requirement("RFC-7")
def test_503_that_recovers_is_retried_for_the_host(serve: Serve, crawl: Crawl) -> None:
    def robots(handler: Any) -> Any:
        return (
            answer(status=503, Retry_After="1")
            if len(server.paths) < 3
            else answer("User-agent: *\nDisallow: /private")
        )

    server = serve(site("/a", "/b", robots=robots))
    crawled = crawl(Urls, urls=[server.url(path) for path in ("/a", "/b", "/private")])
    assert server.paths[:3] == ["/robots.txt"] * 3
    assert sorted(server.paths[3:]) == ["/a", "/b"]
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("settings", "times"),
    [({"RETRY_TIMES": 1}, 2), ({"RETRY_ENABLED": False}, 1), ({"COMITY_MAX_DELAY": 2}, 3)],
)
def test_unreachable_robots_txt_refuses_everything(
    serve: Serve, crawl: Crawl, settings: dict[str, Any], times: int
) -> None:
    server = serve(site("/a", "/b", "/c", robots=answer(status=503, Retry_After="1")))
    crawled = crawl(Urls, settings, urls=[server.url(path) for path in ("/a", "/b", "/c")])
    assert server.paths == ["/robots.txt"] * times
    assert len(crawled.items) == 3
    assert all("robots.unreachable" in item["error"] for item in crawled.items)
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RFC-7", "RATE-4")
def test_site_whose_robots_txt_is_not_to_be_asked_for_is_set_aside(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve(site("/a", "/b", robots=answer(status=429, Retry_After="60")))
    crawled = crawl(Urls, {"COMITY_MAX_DELAY": 2}, urls=[server.url("/a"), server.url("/b")])
    assert server.paths == ["/robots.txt"]
    assert crawled.items == []
    assert crawled.stats["comity/scheduler/set-aside"] == 2
    assert (
        f"2 requests to {server.origin} were set aside: its policies (HTTP status 429) are not to be asked for"
        in crawled.log
    )
    assert crawled.finish_reason == "finished"


def test_crawl_that_is_stopped_does_not_wait_for_a_slow_robots_txt(
    serve: Serve, crawl: Crawl
) -> None:
    crawl_ended = threading.Event()
    in_time: list[bool] = []

    def slow(handler: Any) -> Any:
        in_time.append(crawl_ended.wait(PATIENCE))
        return answer(OPEN)

    slow_one, other = serve(site("/a", robots=slow)), serve(site("/a"), host="127.0.0.2")
    crawled = crawl(
        Urls,
        {"COMITY_POLICY_TIMEOUT": 600},
        urls=[slow_one.url("/a"), other.url("/a")],
        stop_after=1,
    )
    assert in_time == []
    crawl_ended.set()
    assert slow_one.paths == ["/robots.txt"]
    assert crawled.finish_reason == "enough"
    assert crawled.stats["comity/scheduler/left"] == 1
    assert_quiet(crawled)


class Remembered(Urls):
    """Asks for one URL twice."""

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls * 2:
            yield self.request(url)


@pytest.mark.parametrize(
    ("dupefilter", "times"),
    [("scrapy.dupefilters.RFPDupeFilter", 1), ("scrapy.dupefilters.BaseDupeFilter", 2)],
)
def test_dupefilter_of_the_project_is_asked(
    serve: Serve, crawl: Crawl, dupefilter: str, times: int
) -> None:
    server = serve(site("/a"))
    crawled = crawl(Remembered, {"DUPEFILTER_CLASS": dupefilter}, urls=[server.url("/a")])
    assert server.paths == ["/robots.txt"] + ["/a"] * times
    assert crawled.stats.get("dupefilter/filtered", 0) == 2 - times


def test_answers_from_the_http_cache_take_no_place(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """They never reach the network, so they cost no delay, and the host that they were booked for is free again at once: not
    only at Scrapy's next heartbeat, after 5 s."""
    server = serve(site("/a", "/b", "/c", robots="User-agent: *\nCrawl-delay: 0.2"))
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
        "CLOSESPIDER_TIMEOUT": 4,
    }
    for _ in range(2):
        crawled = crawl(Urls, settings, urls=[server.url(path) for path in ("/a", "/b", "/c")])
        assert len(crawled.items) == 3
        assert crawled.finish_reason == "finished"
    assert server.paths == ["/robots.txt", "/a", "/b", "/c"]
