"""request-limit and concurrent-limit of automation-preferences.txt, by what servers saw of the crawls that keep them.

A server notes when a request came, and counts it until the last octet of its answer is on its way. So however loaded the machine
is, what is asserted holds, or comity is wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.fetching.fetcher import OriginPolicies
from comity.policies import Site

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]
CrawlTogether = Callable[..., "list[Crawled]"]

FILE = "/automation-preferences.txt"
PAGE = "<p>page</p>"
TOLERANCE = 0.01  # seconds
PATIENCE = 60  # seconds; after them a server stops waiting for what should have happened
SLOW = 0.1  # seconds that the body of a page takes
# A project with another scheduler: all its requests wait in the middleware.
ALONE: dict[str, Any] = {
    "ADDONS": {},
    "DOWNLOADER_MIDDLEWARES": {
        "comity.crawler.middlewares.access.AccessMiddleware": 100,
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    },
}
LEFT = pytest.mark.slow  # to `make test-all`
BOTH = pytest.mark.parametrize("settings", [{}, ALONE], ids=["scheduler", "middleware"])


class Urls(Spider):
    """Asks for URLs and says what came of each. `then`: URLs to ask after the first page came."""

    name = "urls"
    urls: Sequence[str]
    then: Sequence[str] = ()
    methods: Sequence[str] = ("GET",)  # in turn

    async def start(self) -> AsyncIterator[Any]:
        for number, url in enumerate(self.urls):
            yield self.request(url, self.methods[number % len(self.methods)])

    def request(self, url: str, method: str = "GET") -> Request:
        return Request(url, method=method, callback=self.parse, errback=self.failed)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}
        yield from map(self.request, self.then)
        self.then = ()

    def failed(self, failure: Any) -> Any:
        yield {"url": failure.request.url, "error": str(failure.value)}


def group(*lines: str, methods: str = "GET, HEAD, POST") -> str:
    return "\n".join((*lines, f"allowed-methods: {methods}")) + "\n\n"


def site(preferences: str, *paths: str) -> dict[str, Any]:
    return {
        "/robots.txt": "User-agent: *\nDisallow:\n",
        FILE: preferences,
        **dict.fromkeys(paths, PAGE),
    }


def numbered(folder: str, number: int) -> list[str]:
    return [f"/{folder}/{n}" for n in range(number)]


def urls(server: Loopback, *folders: Sequence[str]) -> list[str]:
    """Of all folders in turn."""
    most = max(map(len, folders))
    return [server.url(paths[n]) for n in range(most) for paths in folders if n < len(paths)]


def starts(server: Loopback, *folders: str) -> list[float]:
    """When pages in the folders were asked for; ("",): all pages."""
    return [
        seen.at
        for seen in server.seen
        if not seen.path.endswith(".txt") and seen.path.startswith(tuple(map("/".__add__, folders)))
    ]


def most_within(times: list[float], seconds: float) -> int:
    """The most that any time of so many seconds holds."""
    return max(sum(begin <= at < begin + seconds - TOLERANCE for at in times) for begin in times)


class SlowPages:
    """Pages whose headers come at once, and their bodies later; and how many were under way at a time.

    The first `meeting` of them come in pairs only: one waits until the other is under way as well."""

    def __init__(self, meeting: int = 0) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()
        self._pair = threading.Barrier(2)
        self._meeting = meeting

    def page(self, handler: Any) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            meets = self._meeting > 0
            self._meeting -= 1
        # The server closes each connection and says so. Otherwise a request may go out over a
        # connection that is closing, twice in a row on a busy machine, and fail without an answer.
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\n"
        if handler.path.endswith("/cut"):
            handler.wfile.write(head + b"Content-Length: 9\r\n\r\ncut")
        else:
            handler.wfile.write(head + b"Content-Length: 4\r\n\r\n")
        handler.wfile.flush()
        if meets:
            self._pair.wait(PATIENCE)
        time.sleep(SLOW)  # who would not wait for the body had the time to ask for more
        with self._lock:
            self._now -= 1
        if not handler.path.endswith("/cut"):
            handler.wfile.write(b"page")


@BOTH
@pytest.mark.requirement("AUTX-2", "RATE-1", "RATE-2")
def test_no_window_of_a_scope_holds_more_than_it_may(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    """Whatever the method."""
    paths = numbered("a", 17)
    server = serve(site(group("scope: /a", "request-limit: 5/second"), *paths))
    crawled = crawl(Urls, settings, urls=urls(server, paths), methods=["GET", "POST", "HEAD"])
    assert len(starts(server, "a")) == len(crawled.items) == 17
    assert {seen.method for seen in server.seen} == {"GET", "POST", "HEAD"}
    assert most_within(starts(server, "a"), 1) == 5
    assert crawled.finish_reason == "finished"


@pytest.mark.slow
@pytest.mark.requirement("AUTX-2", "RATE-2")
def test_crawls_that_share_a_store_share_the_windows_of_a_scope(
    serve: Serve, crawl_together: CrawlTogether
) -> None:
    folders = [numbered(f"a/{crawl}", 11) for crawl in (1, 2)]
    server = serve(site(group("scope: /a", "request-limit: 5/second"), *folders[0], *folders[1]))
    crawled = crawl_together(Urls, None, *({"urls": urls(server, paths)} for paths in folders))
    assert [len(each.items) for each in crawled] == [11, 11]
    assert most_within(starts(server, "a"), 1) == 5


@BOTH
@pytest.mark.requirement("AUTX-3", "RATE-1")
def test_no_more_requests_are_in_flight_than_may_be(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    """Until the body is there; and one that fails makes room as well."""
    slow, paths = SlowPages(meeting=4), [*numbered("a", 7), "/a/cut", "/a/8", "/a/9"]
    server = serve(
        site(group("scope: /a", "concurrent-limit: 2")) | dict.fromkeys(paths, slow.page)
    )
    crawled = crawl(Urls, {"RETRY_ENABLED": False, **settings}, urls=urls(server, paths))
    assert len(crawled.items) == len(starts(server, "a")) == 10
    assert slow.most == 2
    assert crawled.finish_reason == "finished"


@BOTH
@pytest.mark.requirement("AUTX-3", "RATE-2")
def test_crawls_that_share_a_store_share_what_may_be_in_flight(
    serve: Serve, crawl_together: CrawlTogether, settings: dict[str, Any]
) -> None:
    """The first page of each comes only while that of the other is under way."""
    slow, folders = SlowPages(meeting=2), [numbered(f"a/{crawl}", 8) for crawl in (1, 2)]
    server = serve(
        site(group("scope: /a", "concurrent-limit: 2"))
        | dict.fromkeys((*folders[0], *folders[1]), slow.page)
    )
    arguments = [
        {"urls": urls(server, paths[:1]), "then": urls(server, paths[1:])} for paths in folders
    ]
    crawled = crawl_together(Urls, settings, *arguments)
    assert [len(each.items) for each in crawled] == [8, 8]
    assert [item for each in crawled for item in each.items if "error" in item] == []
    assert slow.most == 2


TWO_SCOPES = (
    group("scope: /")
    + group("scope: /a", "request-limit: 2/day")
    + group("scope: /b", "request-limit: 3/hour", "concurrent-limit: 1")
    + group("scope: /*.html$", "user-agent: otherbot", "request-limit: 1/day")
)


@pytest.mark.requirement("AUTX-2", "RATE-3", "RATE-4")
def test_scope_that_is_used_up_holds_up_nothing_else_and_is_set_aside(
    serve: Serve, crawl: Crawl
) -> None:
    """Each group limits the requests that it decides, and no others."""
    folders = numbered("a", 6), numbered("b", 6), [f"{path}.html" for path in numbered("c", 6)]
    server = serve(site(TWO_SCOPES, *(path for paths in folders for path in paths)))
    crawled = crawl(Urls, {"COMITY_MAX_DELAY": 30}, urls=urls(server, *folders))
    assert sorted(server.paths) == sorted(
        ["/robots.txt", FILE, *folders[0][:2], *folders[1][:3], *folders[2]]
    )
    assert crawled.stats["comity/scheduler/set-aside"] == 7
    warnings = [
        line
        for line in crawled.log.splitlines()
        if "were set aside: its request-limit lets nothing out for " in line
    ]
    assert sorted(warning.partition(": ")[2].partition(" ")[0] for warning in warnings) == [
        "3",
        "4",
    ]
    assert "comity/scheduler/left" not in crawled.stats
    assert crawled.finish_reason == "finished"


@BOTH
@pytest.mark.requirement("MEET-6", "AUTX-2", "RATE-2")
def test_each_scope_that_a_server_may_see_a_request_in_is_used_up(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    """By whatever spelling of its path; and a request that is in two scopes needs room in both."""
    server = serve(site(TWO_SCOPES))
    odd = ["/a/../b/1", "/x/../a/2", "/b;v=1/3", "/a/%2e%2e/b/4", "/b/5", "/x/..;/b/6"]
    crawl(Urls, {"COMITY_MAX_DELAY": 30, **settings}, urls=urls(server, odd))
    seen = {path.rpartition("/")[2] for path in server.paths if not path.endswith(".txt")}
    assert len(seen & {"1", "2", "4"}) <= 2
    assert len(seen & {"1", "3", "4", "5", "6"}) == 3


@pytest.mark.requirement("AUTX-2", "RATE-3", "RATE-4")
def test_what_waits_in_place_holds_up_nothing_else_and_is_refused(
    serve: Serve, crawl: Crawl
) -> None:
    folders = numbered("a", 6), numbered("b", 6), [f"{path}.html" for path in numbered("c", 6)]
    server = serve(site(TWO_SCOPES, *(path for paths in folders for path in paths)))
    crawled = crawl(Urls, {"COMITY_MAX_DELAY": 30, **ALONE}, urls=urls(server, *folders))
    assert [len(starts(server, folder)) for folder in "abc"] == [2, 3, 6]
    assert crawled.stats["comity/access/deny/comity.max-delay"] == 7
    assert crawled.finish_reason == "finished"


@pytest.mark.slow
@BOTH
@pytest.mark.requirement("AUTX-2", "RATE-3")
def test_scope_that_waits_holds_up_nothing_else(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    """What comes after it goes before it, as fast as the host may be asked."""
    slow, quick = numbered("a", 3), numbered("b", 4)
    server = serve(
        site(group("scope: /") + group("scope: /a", "request-limit: 1/second"), *slow, *quick)
    )
    server.routes["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.05\n"
    crawl(Urls, settings, urls=[*urls(server, slow), *urls(server, quick)])
    assert [len(starts(server, folder)) for folder in "ab"] == [3, 4]
    assert starts(server, "b")[-1] < starts(server, "a")[-1]
    assert most_within(starts(server, "a"), 1) == 1
    assert most_within(starts(server, "a", "b"), 0.05) == 1


@BOTH
@pytest.mark.requirement("AUTX-14", "AUTX-2")
@pytest.mark.parametrize(
    "limit",
    [
        "fast",
        *(pytest.param(limit, marks=LEFT) for limit in ("", "1/s", "-1/second", "1.5/minute")),
    ],
)
def test_unreadable_request_limit_is_the_slowest_pace_of_the_operator(
    serve: Serve, crawl: Crawl, limit: str, settings: dict[str, Any]
) -> None:
    paths = numbered("a", 3)
    server = serve(site(group("scope: /", f"request-limit: {limit}"), *paths))
    crawled = crawl(
        Urls,
        {"COMITY_MAX_DELAY": 0.5, **settings},
        urls=urls(server, paths[:1]),
        then=urls(server, paths[1:2]),
    )
    assert len(starts(server, "a")) == len(crawled.items) == 2
    assert most_within(starts(server, "a"), 0.5) == 1
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("AUTX-14", "AUTX-3")
@pytest.mark.parametrize(
    "limit", ["few", *(pytest.param(limit, marks=LEFT) for limit in ("", "2.5", "-2"))]
)
def test_unreadable_concurrent_limit_is_one(serve: Serve, crawl: Crawl, limit: str) -> None:
    slow, paths = SlowPages(), numbered("a", 4)
    server = serve(
        site(group("scope: /", f"concurrent-limit: {limit}")) | dict.fromkeys(paths, slow.page)
    )
    assert len(crawl(Urls, urls=urls(server, paths)).items) == 4
    assert slow.most == 1


@pytest.mark.requirement("AUTX-2", "AUTX-3")
@pytest.mark.parametrize("limit", ["request-limit: 0/second", "concurrent-limit: 0"])
def test_scope_of_which_nothing_may_be_asked(serve: Serve, crawl: Crawl, limit: str) -> None:
    server = serve(site(group("scope: /") + group("scope: /a", limit), "/a", "/b"))
    crawled = crawl(Urls, urls=[server.url("/a"), server.url("/b")])
    assert sorted(server.paths) == [FILE, "/b", "/robots.txt"]
    assert crawled.stats["comity/access/deny/automation.none"] == 1


@pytest.mark.requirement("AUTX-2", "RATE-1")
def test_what_is_used_up_stays_so_for_the_next_crawl_and_its_jobdir_keeps_the_rest(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """Until a file says otherwise."""
    paths = numbered("a", 5)
    server = serve(site(group("scope: /a", "request-limit: 2/day"), *paths, "/b"))
    settings = {"JOBDIR": str(tmp_path / "job")}
    wanted = [*urls(server, paths), server.url("/b")]
    assert crawl(Urls, settings, urls=wanted).stats["comity/scheduler/set-aside"] == 3
    again = crawl(Urls, settings, urls=wanted)
    assert again.stats["comity/scheduler/set-aside"] == 3
    assert sorted(server.paths) == ["/a/0", "/a/1", FILE, "/b", "/robots.txt"]
    server.routes[FILE] = group("scope: /a", "request-limit: 9/day")
    last = crawl(Urls, settings | {"COMITY_STORE": str(tmp_path / "new.sqlite")}, urls=wanted)
    assert sorted(item["url"] for item in last.items) == urls(server, paths[2:])
    assert "comity/scheduler/left" not in last.stats


class Changing(Urls):
    """The file of the site says something else as soon as its first page came."""

    def parse(self, response: Response) -> Any:
        if self.then:
            policies = OwnCrawl.of(self.crawler).policies
            origin = response.url.partition("/a/")[0]
            known = policies.cached(origin)
            assert known
            changed = group("scope: /", "request-limit: 2/day").encode()
            site = Site.from_files(origin, {"/robots.txt": b"", FILE: changed})
            policies._sites.put(
                origin, OriginPolicies(site=site, fresh_until=known.fresh_until, unreachable=False)
            )
        return super().parse(response)


@pytest.mark.requirement("AUTX-2", "RATE-1")
def test_limit_that_changes_holds_for_what_waits(serve: Serve, crawl: Crawl) -> None:
    paths = numbered("a", 6)
    server = serve(site(group("scope: /a", "request-limit: 1/second"), *paths))
    crawled = crawl(
        Changing,
        {"COMITY_MAX_DELAY": 30},
        urls=urls(server, paths[:5]),
        then=urls(server, paths[5:]),
    )
    assert sorted(server.paths) == sorted(["/robots.txt", FILE, paths[0], paths[1], paths[5]])
    assert crawled.stats["comity/scheduler/set-aside"] == 3
