"""How often hosts are asked, by the times at which their servers were: no window ever holds more than it may.

A server notes when a request came; that is before its answer's headers leave, from which the delay counts. So however loaded the
machine is, what is asserted holds, or comity is wrong."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

from comity.policies.formats import WELL_KNOWN

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]
CrawlTogether = Callable[..., "list[Crawled]"]

OPEN = "User-agent: *\nDisallow:\n"
QUICK = "User-agent: *\nCrawl-delay: 0.05\n"
PAGE = "<p>page</p>"
TOLERANCE = 0.01  # seconds
PATIENCE = 60  # seconds; after them a server stops waiting for what should have happened
ALONE: dict[str, Any] = {
    "ADDONS": {},
    "DOWNLOADER_MIDDLEWARES": {
        "comity.crawler.middlewares.access.AccessMiddleware": 100,
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    },
}


def site(*paths: str, robots: Any = OPEN) -> dict[str, Any]:
    return {"/robots.txt": robots, **dict.fromkeys(paths, PAGE)}


def answer(body: str = PAGE, status: int = 200, **headers: str) -> Any:
    from tests.conftest import Answer

    return Answer(
        body,
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def starts(*servers: Loopback) -> list[float]:
    """When pages were asked for."""
    return sorted(
        seen.at for server in servers for seen in server.seen if seen.path not in WELL_KNOWN
    )


def gaps(times: Iterable[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def most_within(times: list[float], seconds: float) -> int:
    """The most that any time of so many seconds holds."""
    return max(sum(begin <= at < begin + seconds - TOLERANCE for at in times) for begin in times)


class Urls(Spider):
    """Asks for URLs and says what came of each. `then`: URLs to ask after the first page came. `later`: several of them, each to
    ask after a page of those before came."""

    name = "urls"
    urls: list[str]
    then: Sequence[str] = ()
    later: Sequence[Sequence[str]] = ()
    meta: dict[str, Any] = {}  # noqa: RUF012

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield self.request(url)

    def request(self, url: str) -> Request:
        return Request(
            url,
            callback=self.parse,
            errback=self.failed,
            cb_kwargs={"asked": url},
            meta=dict(self.meta),
        )

    def parse(self, response: Response, asked: str) -> Any:
        yield {"url": response.url, "asked": asked, "status": response.status}
        urls = self.then
        self.then, self.later = (self.later[0], self.later[1:]) if self.later else ((), ())
        yield from map(self.request, urls)

    def failed(self, failure: Any) -> Any:
        yield {"asked": failure.request.cb_kwargs["asked"], "error": str(failure.value)}


class Busy:
    """Routes of a host that answers `status` to its first `times` pages, and what it said."""

    def __init__(self, status: int = 429, retry_after: str = "1", times: int = 1) -> None:
        self.status = status
        self.retry_after = retry_after  # seconds, or "date"
        self.times = times
        self.told = threading.Event()
        self.until: list[float] = []  # monotonic; before it nothing may be asked

    def page(self, handler: Any) -> Any:
        if len(self.until) == self.times:
            return answer()
        wait, stated = (
            float(self.retry_after if self.retry_after != "date" else 0),
            self.retry_after,
        )
        if self.retry_after == "date":
            now = time.time()
            wait, stated = int(now) + 2 - now, formatdate(int(now) + 2, usegmt=True)
        self.until.append(time.monotonic() + wait)
        self.told.set()
        return answer(status=self.status, Retry_After=stated)

    def assert_kept(self, *servers: Loopback) -> None:
        """Nothing was asked of the host between an answer and what it said."""
        times = starts(*servers)
        for number, until in enumerate(self.until, 1):
            assert all(at > until - TOLERANCE for at in times[number:])


def answers_once(handler: Any) -> Any:
    """A page, to the first request of a connection. The second request is read, and the connection ends without an answer."""
    vars(handler)["pages"] = vars(handler).get("pages", 0) + 1
    return answer() if handler.pages == 1 else None


@pytest.mark.requirement("RATE-2")
def test_what_a_connection_took_without_an_answer_waits_for_another_turn(
    serve: Serve, crawl: Crawl
) -> None:
    """Download handlers would ask again at once: the server has seen that request, and sees it twice."""
    paths = [f"/{n}" for n in range(6)]
    server = serve(
        {"/robots.txt": "User-agent: *\nCrawl-delay: 0.2\n", **dict.fromkeys(paths, answers_once)}
    )
    crawled = crawl(Urls, {"RETRY_TIMES": 100}, urls=[server.url(path) for path in paths])
    assert sorted(item["url"] for item in crawled.items) == [server.url(path) for path in paths]
    assert len(starts(server)) > len(paths)
    assert min(gaps(starts(server))) > 0.2 - TOLERANCE


@pytest.mark.slow
@pytest.mark.requirement("RATE-1", "RATE-2")
@pytest.mark.parametrize(
    ("line", "requests", "seconds", "pages"),
    [("Crawl-delay: 0.2", 1, 0.2, 25), ("Request-rate: 10/1", 10, 1, 35)],
)
def test_no_window_holds_more_than_it_may(
    serve: Serve, crawl: Crawl, line: str, requests: int, seconds: float, pages: int
) -> None:
    paths = [f"/{n}" for n in range(pages)]
    server = serve(site(*paths, robots=f"User-agent: *\n{line}"))
    crawled = crawl(Urls, urls=[server.url(path) for path in paths])
    assert len(starts(server)) == len(crawled.items) == pages
    assert most_within(starts(server), seconds) == requests
    assert crawled.finish_reason == "finished"


@pytest.mark.slow
@pytest.mark.requirement("RATE-2")
@pytest.mark.parametrize(
    ("line", "requests", "seconds", "pages"),
    [("Crawl-delay: 0.2", 1, 0.2, 12), ("Request-rate: 10/1", 10, 1, 27)],
)
def test_two_crawls_that_share_a_store_share_what_a_host_allows(
    serve: Serve,
    crawl_together: CrawlTogether,
    line: str,
    requests: int,
    seconds: float,
    pages: int,
) -> None:
    both = threading.Barrier(2)

    def go(handler: Any) -> Any:
        both.wait(PATIENCE)
        return answer()

    paths = [[f"/{crawl}/{n}" for n in range(pages)] for crawl in (1, 2)]
    server = serve(site(*paths[0], *paths[1], robots=f"User-agent: *\n{line}"))
    gate = serve(site() | {"/go": go, "/go/on": go}, host="127.0.0.2")
    urls = [[server.url(path) for path in own] for own in paths]
    arguments = [
        {"urls": [gate.url("/go")], "then": own[:1], "later": [[gate.url("/go/on")], own[1:]]}
        for own in urls
    ]
    crawled = crawl_together(Urls, None, *arguments)
    assert sorted(server.paths) == sorted(
        [*paths[0], *paths[1], *["/robots.txt"] * server.paths.count("/robots.txt")]
    )
    assert most_within(starts(server), seconds) == requests
    first, second = ([seen.at for seen in server.seen if seen.path in own] for own in paths)
    assert first[0] < second[-1]
    assert second[0] < first[-1]
    assert [each.finish_reason for each in crawled] == ["finished"] * 2


@pytest.mark.requirement("RATE-1", "RATE-3")
@pytest.mark.parametrize(
    ("status", "retry_after"),
    [
        (429, "1"),
        (503, "date"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((429, "date"), (503, "1"))),
    ],
)
def test_host_that_asks_to_be_left_alone_is(
    serve: Serve, crawl: Crawl, status: int, retry_after: str
) -> None:
    """All its ports are, the other hosts go on, and its requests come back as they were."""
    busy = Busy(status, retry_after)

    def later(handler: Any) -> Any:
        assert busy.told.wait(PATIENCE)
        return answer(OPEN)

    paths = [f"/{n}" for n in range(3)]
    server = serve(site(robots=QUICK) | dict.fromkeys(paths, busy.page))
    neighbour = serve(site("/a", robots=later))
    other = serve(site("/b") | {"/a": later}, host="127.0.0.2")
    urls = [*map(server.url, paths), neighbour.url("/a"), other.url("/a")]
    crawled = crawl(Urls, urls=urls, then=[other.url("/b")])
    assert sorted(server.paths) == ["/0", "/0", "/1", "/2", "/robots.txt"]
    assert neighbour.paths == ["/robots.txt", "/a"]
    busy.assert_kept(server, neighbour)
    assert other.seen[-1].at < starts(server, neighbour)[1]
    assert {item["asked"]: item["status"] for item in crawled.items} == dict.fromkeys(
        [*urls, other.url("/b")], 200
    )
    assert crawled.stats[f"comity/pace/{status}"] == crawled.stats["comity/scheduler/held"] == 1
    assert "dupefilter/filtered" not in crawled.stats
    assert "retry/count" not in crawled.stats
    assert crawled.finish_reason == "finished"


class KeepsUntilTold:
    """Downloader middleware: keeps /late until the host has asked to be left alone."""

    def __init__(self, crawler: Any) -> None:
        self._stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Any) -> KeepsUntilTold:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        while request.url.endswith("/late") and not self._stats.get_value("comity/pace/429"):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)


class UrlsThatAreKept(Urls):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {KeepsUntilTold: 543}}  # noqa: RUF012


@pytest.mark.requirement("RATE-1")
def test_what_a_middleware_has_when_the_host_asks_to_be_left_alone_waits(
    serve: Serve, crawl: Crawl
) -> None:
    """Though it has had its turn."""
    busy = Busy()
    server = serve(site("/late") | {"/busy": busy.page})
    crawled = crawl(UrlsThatAreKept, urls=[server.url("/late"), server.url("/busy")])
    assert sorted(server.paths) == ["/busy", "/busy", "/late", "/robots.txt"]
    busy.assert_kept(server)
    assert {item["asked"]: item["status"] for item in crawled.items} == dict.fromkeys(
        map(server.url, ("/late", "/busy")), 200
    )


@pytest.mark.requirement("RATE-1", "RATE-4")
def test_what_a_middleware_has_then_goes_back_to_the_queue_where_that_is_long(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve(site("/late") | {"/busy": answer(status=429, Retry_After="3600")})
    crawled = crawl(UrlsThatAreKept, urls=[server.url("/late"), server.url("/busy")])
    assert server.paths == ["/robots.txt", "/busy"]
    assert crawled.stats["comity/scheduler/set-aside"] == 2
    assert not crawled.items
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RATE-1", "RATE-4")
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry_After": "3600"}, 3600),
        ({}, 60),
        pytest.param({"Retry_After": "soon"}, 60, marks=pytest.mark.slow),
    ],
)
def test_longer_rest_than_the_operator_waits_sets_the_host_aside(
    serve: Serve, crawl: Crawl, headers: dict[str, str], wait: int
) -> None:
    """Where it does not say how long, it is left alone for a minute."""
    server = serve(site("/1", robots=QUICK) | {"/0": answer(status=429, **headers)})
    other = serve(site("/a"), host="127.0.0.2")
    settings = {"COMITY_MAX_DELAY": 30}
    crawled = crawl(Urls, settings, urls=[server.url("/0"), server.url("/1"), other.url("/a")])
    assert server.paths == ["/robots.txt", "/0"]
    assert [item["asked"] for item in crawled.items] == [other.url("/a")]
    assert f"its host is asked again in {wait} s" in crawled.log
    assert crawled.stats["comity/scheduler/set-aside"] == 2
    assert crawled.finish_reason == "finished"


class Downloads(Urls):
    """Asks from its callback, past the scheduler."""

    async def parse(self, response: Response, asked: str) -> Any:
        assert self.crawler.engine
        for url in self.then:
            answer = await self.crawler.engine.download_async(Request(url))
            yield {"asked": url, "status": answer.status}


@pytest.mark.requirement("RATE-1")
def test_request_past_the_scheduler_waits_in_place(serve: Serve, crawl: Crawl) -> None:
    busy = Busy()
    server = serve(site(robots=QUICK) | {"/0": busy.page, "/1": busy.page})
    other = serve(site("/a"), host="127.0.0.2")
    crawled = crawl(Downloads, urls=[other.url("/a")], then=[server.url("/0"), server.url("/1")])
    assert server.paths == ["/robots.txt", "/0", "/0", "/1"]
    busy.assert_kept(server)
    assert [item["status"] for item in crawled.items] == [200, 200]
    assert crawled.stats["retry/count"] == 1


@pytest.mark.requirement("RATE-1")
def test_answer_that_is_not_to_be_retried_is_passed_on_and_the_host_waits(
    serve: Serve, crawl: Crawl
) -> None:
    busy = Busy()
    server = serve(site(robots=QUICK) | {"/0": busy.page, "/1": busy.page})
    meta = {"dont_retry": True, "handle_httpstatus_list": [429]}
    crawled = crawl(Urls, urls=[server.url("/0"), server.url("/1")], meta=meta)
    assert server.paths == ["/robots.txt", "/0", "/1"]
    busy.assert_kept(server)
    assert [item["status"] for item in crawled.items] == [429, 200]


@pytest.mark.requirement("RATE-1")
def test_none_for_the_number_of_retries_is_that_of_the_project(serve: Serve, crawl: Crawl) -> None:
    """So Scrapy reads it."""
    server = serve(site(robots=QUICK) | {"/0": Busy(times=100).page})
    crawled = crawl(
        Urls, {"RETRY_TIMES": 1}, urls=[server.url("/0")], meta={"max_retry_times": None}
    )
    assert server.paths == ["/robots.txt", "/0", "/0"]
    assert "TypeError" not in crawled.log


@pytest.mark.requirement("RATE-1")
def test_host_that_is_always_busy_is_asked_as_often_as_any_that_fails(
    serve: Serve, crawl: Crawl
) -> None:
    busy = Busy(times=100)
    server = serve(site(robots=QUICK) | {"/0": busy.page})
    crawled = crawl(Urls, {"RETRY_TIMES": 1}, urls=[server.url("/0")])
    assert server.paths == ["/robots.txt", "/0", "/0"]
    busy.assert_kept(server)
    assert crawled.stats["retry/max_reached"] == 1
    assert [item["error"] for item in crawled.items] == ["Ignoring non-200 response"]
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize("robots", [QUICK, pytest.param(OPEN, marks=pytest.mark.slow)])
def test_crawl_that_starts_while_a_host_is_to_be_left_alone_waits(
    serve: Serve, crawl: Crawl, robots: str
) -> None:
    busy = Busy(retry_after="2")
    server = serve(site("/1", robots=robots) | {"/0": busy.page})
    first = crawl(Urls, {"RETRY_ENABLED": False}, urls=[server.url("/0")])
    assert "error" in first.items[0]
    second = crawl(Urls, urls=[server.url("/1")])
    assert server.paths == ["/robots.txt", "/0", "/1"]
    busy.assert_kept(server)
    assert [item["status"] for item in second.items] == [200]


def test_host_does_not_wait_for_an_answer_out_of_the_http_cache(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    server = serve(site("/1") | {"/0": Busy().page})
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
        "RETRY_ENABLED": False,
    }
    crawl(Urls, settings, urls=[server.url("/0")])
    crawled = crawl(Urls, settings, urls=[server.url("/0"), server.url("/1")])
    assert server.paths == ["/robots.txt", "/0", "/1"]
    assert "comity/pace/429" not in crawled.stats
    assert crawled.finish_reason == "finished"


@pytest.mark.slow
@pytest.mark.requirement("RATE-2")
def test_crawl_hears_that_another_was_told_to_wait(
    serve: Serve, crawl_together: CrawlTogether
) -> None:
    busy = Busy(retry_after="2")
    paths = [[f"/{crawl}/{n}" for n in range(3)] for crawl in (1, 2)]
    server = serve(
        site(robots="User-agent: *\nCrawl-delay: 0.5")
        | dict.fromkeys([*paths[0], *paths[1]], busy.page)
    )
    crawled = crawl_together(
        Urls, None, *({"urls": [server.url(path) for path in own]} for own in paths)
    )
    assert len(starts(server)) == 7
    busy.assert_kept(server)
    assert [item["status"] for each in crawled for item in each.items] == [200] * 6


@pytest.mark.requirement("RATE-2")
def test_slow_connection_does_not_shorten_a_delay(serve: Serve, crawl: Crawl) -> None:
    """Only the first page's connection is slow; a delay that counted from when it was sent would be 0.3 s shorter."""
    paths = [f"/{n}" for n in range(4)]
    robots = answer("User-agent: *\nCrawl-delay: 0.5", Connection="close")
    server = serve(site(*paths, robots=robots), far=0.3)
    crawl(Urls, urls=[server.url(path) for path in paths])
    assert server.paths == ["/robots.txt", *paths]
    assert min(gaps(starts(server))) >= 0.5 - TOLERANCE


@pytest.mark.requirement("RATE-3")
def test_slow_robots_txt_of_one_host_delays_no_page_of_the_others(
    serve: Serve, crawl: Crawl
) -> None:
    asked, others_asked = threading.Event(), threading.Semaphore(0)

    def slow(handler: Any) -> Any:
        asked.set()
        assert all(others_asked.acquire(timeout=PATIENCE) for _ in range(25))
        return answer(OPEN)

    def page(handler: Any) -> Any:
        assert asked.wait(PATIENCE)
        others_asked.release()
        return answer(PAGE)

    paths = [f"/{n}" for n in range(5)]
    slow_one = serve(site("/a", robots=slow), host="127.0.0.9")
    others = [
        serve(site(robots=QUICK) | dict.fromkeys(paths, page), host=f"127.0.0.{n}")
        for n in range(1, 6)
    ]
    urls = [slow_one.url("/a"), *(server.url(path) for path in paths for server in others)]
    crawl(Urls, {"CONCURRENT_REQUESTS": 4}, urls=urls)
    assert slow_one.paths == ["/robots.txt", "/a"]
    assert all(sorted(server.paths) == [*paths, "/robots.txt"] for server in others)
    assert starts(*others)[-1] < starts(slow_one)[0]


@pytest.mark.requirement("RATE-4")
def test_host_that_is_too_slow_is_set_aside_and_named(serve: Serve, crawl: Crawl) -> None:
    slow = serve(site("/1", "/2", robots="User-agent: *\nCrawl-delay: 3600"))
    quick = serve(site("/1", "/2", robots=QUICK), host="127.0.0.2")
    crawled = crawl(
        Urls, urls=[server.url(path) for path in ("/1", "/2") for server in (slow, quick)]
    )
    assert slow.paths == ["/robots.txt"]
    assert quick.paths == ["/robots.txt", "/1", "/2"]
    assert [item["status"] for item in crawled.items] == [200, 200]
    assert crawled.stats["comity/scheduler/set-aside"] == 2
    (warning,) = [
        line
        for line in crawled.log.splitlines()
        if line.startswith("WARNING") and "set aside" in line
    ]
    assert f"2 requests to {slow.origin}" in warning
    assert "comity/scheduler/left" not in crawled.stats
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    ("robots", "start_delay", "least"),
    [
        ("User-agent: *\nCrawl-delay: 0.4", 0.01, 0.4),
        (OPEN, 0.4, 0.4),
        ("User-agent: *\nCrawl-delay: 0.1", 0.4, 0.4),
    ],
)
def test_autothrottle_may_only_slow_down(
    serve: Serve, crawl: Crawl, robots: str, start_delay: float, least: float
) -> None:
    server = serve(site("/1", "/2", "/3", robots=robots))
    settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": start_delay}
    crawl(Urls, settings, urls=[server.url(path) for path in ("/1", "/2", "/3")])
    between = gaps(starts(server))
    assert len(between) == 2
    assert between[0] >= least - TOLERANCE
    assert (
        between[1] >= (0.4 if "0.4" in robots else 0.1) - TOLERANCE
    )  # AutoThrottle goes down step by step


class Forgetful(Urls):
    """Its downloader drops idle slots at once, as Scrapy's does after a minute."""

    def parse(self, response: Response, asked: str) -> Any:
        assert self.crawler.engine
        self.crawler.engine.downloader._slot_gc(age=0)
        return super().parse(response, asked)


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize(
    "settings", [{}, {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.01}, ALONE]
)
def test_delay_survives_that_scrapy_forgets_a_slot(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    paths = [f"/{n}" for n in range(3)]
    server = serve(site(*paths, robots="User-agent: *\nCrawl-delay: 0.3"))
    crawl(Forgetful, settings, urls=[server.url(path) for path in paths])
    assert sorted(server.paths) == [*paths, "/robots.txt"]
    assert min(gaps(starts(server))) >= 0.3 - TOLERANCE


@pytest.mark.requirement("RATE-1", "RATE-3")
@pytest.mark.parametrize("settings", [{}, ALONE])
def test_redirect_waits_for_the_host_that_it_leads_to(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    paths = [f"/{n}" for n in range(4)]
    new = serve(site(*paths, robots="User-agent: *\nCrawl-delay: 0.3"), host="127.0.0.2")
    old = serve(site() | {path: answer(status=302, Location=new.url(path)) for path in paths})
    crawled = crawl(Urls, settings, urls=[old.url(path) for path in paths])
    assert sorted(new.paths) == [*paths, "/robots.txt"]
    assert min(gaps(starts(new))) >= 0.3 - TOLERANCE
    assert starts(old)[-1] < starts(new)[-1]
    assert [item["status"] for item in crawled.items] == [200] * 4


@pytest.mark.requirement("RATE-3")
@pytest.mark.parametrize("settings", [{}, ALONE])
def test_redirect_does_not_wait_for_the_host_that_it_comes_from(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    new = serve(site("/a"), host="127.0.0.2")
    robots = "User-agent: *\nCrawl-delay: 120"
    old = serve(site(robots=robots) | {"/a": answer(status=302, Location=new.url("/a"))})
    crawled = crawl(Urls, settings, urls=[old.url("/a")])
    assert new.paths == ["/robots.txt", "/a"]
    assert starts(new)[0] - starts(old)[0] < 60
    assert [item["url"] for item in crawled.items] == [new.url("/a")]
