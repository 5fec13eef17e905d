"""Whoever asks - a redirect, a retry, a media pipeline, code with `download_async` - is judged, by what the servers saw."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Request, Response
from scrapy.pipelines import media

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

# Up to Scrapy 2.17 media pipelines log each refused file as an error.
LOGS_REFUSED_FILES = not hasattr(media, "_MediaRequestFiltered")

PAGE = "<p>page</p>"
RULES = "User-agent: *\nDisallow: /private\n"
ALONE: dict[str, Any] = {
    "ADDONS": {},
    "DOWNLOADER_MIDDLEWARES": {
        "comity.crawler.middlewares.access.AccessMiddleware": 100,
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    },
}
FILES: dict[str, Any] = {
    "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
    "MEDIA_ALLOW_REDIRECTS": True,
}


def site(*paths: str, robots: Any = RULES, **redirects: str) -> dict[str, Any]:
    moved = {f"/{name}": answer(status=302, Location=target) for name, target in redirects.items()}
    return {"/robots.txt": robots, **dict.fromkeys(paths, PAGE), **moved}


def answer(
    body: str = "", status: int = 200, media_type: str = "text/plain; charset=utf-8", **headers: str
) -> Any:
    from tests.conftest import Answer

    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(body, status=status, content_type=media_type, headers=fields)


def outcome(crawled: Crawled) -> dict[str, Any]:
    return {item["asked"]: item.get("status", item.get("error")) for item in crawled.items}


class Urls(Spider):
    """Asks for URLs and says what came of each."""

    name = "urls"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url, callback=self.parse, errback=self.failed, cb_kwargs={"asked": url})

    def parse(self, response: Response, asked: str) -> Any:
        yield {"asked": asked, "url": response.url, "status": response.status}

    def failed(self, failure: Any) -> Any:
        yield {"asked": failure.request.cb_kwargs["asked"], "error": str(failure.value)}


class Files(Spider):
    """One item with the files."""

    name = "files"
    page: str
    files: list[str]

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.page)

    def parse(self, response: Response) -> Any:
        yield {"file_urls": self.files, "files": []}


class Downloads(Spider):
    """Asks from its callback, past the scheduler; each URL twice with the same request."""

    name = "downloads"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.urls[0])

    async def parse(self, response: Response) -> Any:
        assert self.crawler.engine
        assert response.request
        for request in [response.request, *map(Request, self.urls)]:
            for _ in range(2):
                try:
                    answer = await self.crawler.engine.download_async(request)
                    yield {"asked": request.url, "status": answer.status}
                except IgnoreRequest as error:
                    yield {"asked": request.url, "error": str(error)}


@pytest.mark.requirement("RFC-10", "MEET-1")
@pytest.mark.parametrize("settings", [{}, ALONE], ids=["scheduler", "middleware"])
@pytest.mark.parametrize(
    "body",
    [
        "User-agent: *\nDisallow: /private/\n",
        "<html><body><pre>\nUser-agent: *\nDisallow: /private/\nAllow: /private/1\n</pre></body></html>",
        "<p>User-agent: *<br />Disallow: /private/<br />Allow: /private/1</p>",
    ],
    ids=["text", "pre", "br"],
)
def test_a_robots_txt_that_is_served_as_html_is_obeyed(
    serve: Serve, crawl: Crawl, settings: dict[str, Any], body: str
) -> None:
    robots = answer(body, media_type="text/html; charset=utf-8")
    server = serve(site("/private/1", "/open/1", robots=robots))
    crawled = crawl(Urls, settings, urls=[server.url("/private/1"), server.url("/open/1")])
    assert [path for path in server.paths if not path.endswith((".txt", ".json"))] == ["/open/1"]
    assert "robots.disallow" in outcome(crawled)[server.url("/private/1")]


@pytest.mark.requirement("MEET-6", "MEET-1")
@pytest.mark.parametrize("settings", [{}, ALONE], ids=["scheduler", "middleware"])
def test_no_other_spelling_of_a_path_is_asked_for(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    files = {
        "/robots.txt": "User-agent: *\nDisallow: /private/\nACAP-crawler: *\nACAP-disallow-crawl: /kept/\n",
        "/automation-preferences.txt": "scope: /\nallowed-methods: GET\n\nscope: /closed/\nallowed-methods: POST\n",
    }
    server = serve(files)
    ways = (
        "/x/../{}/a",
        "/x/%2e%2e/{}/a",
        "/x/..%2f{}/a",
        "//{}/a",
        "/x/..;/{}/a",
        "/{};v=1/a",
        "/x/%252e%252e/{}/a",
    )
    refused = [
        server.url(way.format(folder)) for way in ways for folder in ("private", "kept", "closed")
    ]
    crawled = crawl(
        Urls, settings, urls=[*refused, server.url("/open/../a"), server.url("/open;v=1//a")]
    )
    seen = sorted(path for path in server.paths if not path.endswith(".txt"))
    assert seen in (
        ["/open/../a", "/open;v=1//a"],
        ["/a", "/open;v=1//a"],
    )  # some clients resolve dots themselves
    assert {
        error
        for url, error in outcome(crawled).items()
        if url in refused and "deny: " not in str(error)
    } == set()


@pytest.mark.requirement("RFC-3")
def test_each_hop_of_a_redirect_is_judged(serve: Serve, crawl: Crawl) -> None:
    other = serve(site("/open"), host="127.0.0.2")
    server = serve(
        site(
            "/a",
            ok="/a",
            same="/private/1",
            first="/second",
            second="/private/2",
            there=other.url("/open"),
            away=other.url("/private"),
        )
    )
    crawled = crawl(
        Urls, urls=[server.url(f"/{name}") for name in ("ok", "same", "first", "there", "away")]
    )
    assert not [path for path in server.paths + other.paths if path.startswith("/private")]
    assert other.paths == ["/robots.txt", "/open"]
    assert {"/a", "/second"} < set(server.paths)
    outcomes = outcome(crawled)
    assert outcomes[server.url("/ok")] == outcomes[server.url("/there")] == 200
    for name in ("same", "first", "away"):
        assert "robots.disallow" in outcomes[server.url(f"/{name}")]
    assert crawled.finish_reason == "finished"


def test_retries_keep_the_delay(serve: Serve, crawl: Crawl) -> None:
    def failing(handler: Any) -> Any:
        return answer(PAGE, status=500 if server.paths.count("/a") < 3 else 200)

    server = serve(site(robots="User-agent: *\nCrawl-delay: 0.2") | {"/a": failing})
    crawled = crawl(Urls, urls=[server.url("/a")])
    hits = [seen.at for seen in server.seen if seen.path == "/a"]
    assert len(hits) == 3
    assert min(after - before for before, after in pairwise(hits)) >= 0.19
    assert outcome(crawled) == {server.url("/a"): 200}


class Posts:
    """Makes a POST of every page, before comity sees it."""

    def process_request(self, request: Request) -> None:
        if not request.url.endswith("/robots.txt"):
            request.method = "POST"


class PostedUrls(Urls):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Posts: 50}, "CLOSESPIDER_TIMEOUT": 8}  # noqa: RUF012


def test_request_that_was_changed_on_the_way_does_not_wait_for_itself(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve(site("/a", "/b", robots="User-agent: *\nCrawl-delay: 0.2"))
    crawled = crawl(PostedUrls, urls=[server.url("/a"), server.url("/b")])
    pages = [seen for seen in server.seen if seen.path != "/robots.txt"]
    assert [seen.method for seen in pages] == ["POST", "POST"]
    assert pages[1].at - pages[0].at >= 0.19
    assert crawled.finish_reason == "finished"


class Tokens:
    """Asks for a token, once, while the requests that need it are on their way."""

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.token, self.lock = crawler, "", asyncio.Lock()

    @classmethod
    def from_crawler(cls, crawler: Any) -> Tokens:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        url = self.crawler.spider.token_url
        if self.token or request.url == url:
            return
        async with self.lock:
            self.token = self.token or (await self.crawler.engine.download_async(Request(url))).text


class UrlsWithToken(Urls):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Tokens: 543}, "CLOSESPIDER_TIMEOUT": 8}  # noqa: RUF012
    token_url: str


class UrlsWithTokenFirst(UrlsWithToken):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Tokens: 50}, "CLOSESPIDER_TIMEOUT": 8}  # noqa: RUF012


@pytest.mark.requirement("RATE-1")
@pytest.mark.parametrize("spider", [UrlsWithToken, UrlsWithTokenFirst])
def test_request_that_a_middleware_keeps_until_another_one_has_come_lets_that_go_first(
    serve: Serve, crawl: Crawl, spider: type[Spider]
) -> None:
    """The first of each host has its turn while the token, for which they all wait, is still to be asked for."""
    servers = [
        serve(site("/a", "/b", "/token", robots="User-agent: *\nCrawl-delay: 0.1"), host)
        for host in ("127.0.0.1", "127.0.0.2")
    ]
    urls = [server.url(path) for path in ("/a", "/b") for server in servers]
    crawled = crawl(spider, urls=urls, token_url=servers[1].url("/token"))
    assert servers[0].paths == ["/robots.txt", "/a", "/b"]
    assert servers[1].paths == ["/robots.txt", "/token", "/a", "/b"]
    for server in servers:
        hits = [seen.at for seen in server.seen if seen.path != "/robots.txt"]
        assert min(after - before for before, after in pairwise(hits)) >= 0.09
    assert set(outcome(crawled).values()) == {200}


@pytest.mark.requirement("RATE-1")
def test_media_are_judged_on_each_hop_and_keep_the_delay(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    other = serve(site("/file", robots="User-agent: *\nDisallow: /file"), host="127.0.0.2")
    server = serve(
        site(
            "/",
            "/1",
            "/2",
            "/3",
            robots=RULES + "Crawl-delay: 0.2",
            moved="/private/2",
            away=other.url("/file"),
        )
    )
    files = [server.url(path) for path in ("/1", "/private/1", "/moved", "/2", "/away", "/3")]
    crawled = crawl(
        Files, {**FILES, "FILES_STORE": str(tmp_path)}, page=server.url("/"), files=files
    )
    assert sorted(server.paths) == ["/", "/1", "/2", "/3", "/away", "/moved", "/robots.txt"]
    assert other.paths == ["/robots.txt"]
    hits = [seen.at for seen in server.seen if seen.path != "/robots.txt"]
    assert min(after - before for before, after in pairwise(hits)) >= 0.19
    (item,) = crawled.items
    assert sorted(file["url"] for file in item["files"]) == [
        server.url(path) for path in ("/1", "/2", "/3")
    ]
    assert LOGS_REFUSED_FILES or "Traceback" not in crawled.log
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("RATE-3")
def test_media_that_wait_hold_up_no_other_host(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    """And the crawl that is stopped meanwhile does not wait for them."""
    first_came = threading.Event()

    def file(handler: Any) -> Any:
        first_came.set()
        return answer(PAGE)

    def last(handler: Any) -> Any:
        assert first_came.wait(60)
        return answer(PAGE)

    slow = serve(site(robots="User-agent: *\nCrawl-delay: 120") | {f"/{n}": file for n in range(6)})
    other = serve(site(*(f"/{n}" for n in range(19))) | {"/19": last}, host="127.0.0.2")
    settings = {**FILES, "FILES_STORE": str(tmp_path), "CONCURRENT_REQUESTS": 3}
    urls = [other.url(f"/{n}") for n in range(1, 20)]
    crawled = crawl(
        FilesAndPages,
        settings,
        page=other.url("/0"),
        files=[slow.url(f"/{n}") for n in range(6)],
        urls=urls,
    )
    assert len(slow.paths) == 2
    assert len(other.paths) == 21
    assert crawled.finish_reason == "enough"


class FilesAndPages(Files):
    """Pages of another host are asked for when the files are."""

    urls: list[str]

    def parse(self, response: Response) -> Any:
        yield {"file_urls": self.files, "files": []}
        for url in tuple(self.urls):
            yield Request(url, callback=self.parse_other)

    def parse_other(self, response: Response) -> Any:
        self.urls.remove(response.url)
        if not self.urls:
            raise CloseSpider("enough")


@pytest.mark.parametrize("settings", [{}, ALONE])
def test_download_async_is_judged_and_keeps_the_delay(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    server = serve(site("/a", "/b", robots=RULES + "Crawl-delay: 0.2"))
    crawled = crawl(
        Downloads, settings, urls=[server.url(path) for path in ("/a", "/private", "/b")]
    )
    assert server.paths == ["/robots.txt", *["/a"] * 5, *["/b"] * 2]
    hits = [seen.at for seen in server.seen if seen.path != "/robots.txt"]
    assert min(after - before for before, after in pairwise(hits)) >= 0.19
    refused = [item["error"] for item in crawled.items if "error" in item]
    assert len(refused) == 2
    assert all("robots.disallow" in error for error in refused)


@pytest.mark.requirement("RATE-4")
@pytest.mark.parametrize("settings", [{}, ALONE])
def test_what_cannot_wait_in_the_queue_is_refused_where_its_host_is_too_slow(
    serve: Serve, crawl: Crawl, settings: dict[str, Any]
) -> None:
    slow = serve(site("/a", robots=RULES + "Crawl-delay: 3600"), host="127.0.0.2")
    server = serve(site("/a"))
    crawled = crawl(Downloads, settings, urls=[server.url("/a"), slow.url("/a")])
    assert slow.paths == ["/robots.txt"]
    errors = [item["error"] for item in crawled.items if "error" in item]
    assert len(errors) == 2
    assert all(
        "comity.max-delay" in error and "3600 s to wait, at most 300" in error for error in errors
    )
    assert crawled.stats["comity/access/deny/comity.max-delay"] == 2
    assert "comity/scheduler/set-aside" not in crawled.stats


@pytest.mark.requirement("RFC-3", "RATE-1", "RATE-3")
def test_middleware_alone_with_the_scheduler_of_scrapy(serve: Serve, crawl: Crawl) -> None:
    waiting = serve(site("/1", "/2", "/3", robots=RULES + "Crawl-delay: 2"))
    other = serve(site(*(f"/{n}" for n in range(20)), moved="/private"), host="127.0.0.2")
    urls = (
        [waiting.url(path) for path in ("/1", "/2", "/3", "/private")]
        + [other.url(f"/{n}") for n in range(20)]
        + [other.url("/moved")]
    )
    crawled = crawl(Urls, {**ALONE, "CONCURRENT_REQUESTS": 2}, urls=urls)
    assert waiting.paths[0] == other.paths[0] == "/robots.txt"
    assert sorted(waiting.paths) == ["/1", "/2", "/3", "/robots.txt"]
    assert len(other.paths) == 22
    assert "/private" not in other.paths
    hits = [seen.at for seen in waiting.seen if seen.path != "/robots.txt"]
    assert min(after - before for before, after in pairwise(hits)) >= 1.98
    # If waiting requests held both places, at most two of the other host's would be under way.
    assert sum(hits[0] < seen.at < hits[-1] for seen in other.seen) > 4
    assert crawled.finish_reason == "finished"


def test_urls_that_name_no_site(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    own = ["data:,hello", (tmp_path / "page.html").as_uri()]
    crawled = crawl(Urls, urls=[*own, "ftp://127.0.0.1/file"])
    outcomes = outcome(crawled)
    assert [outcomes[url] for url in own] == [200, 200]
    assert "comity.scheme" in outcomes["ftp://127.0.0.1/file"]
    assert crawled.stats["comity/access/allow/comity.no-site"] == 2
    assert crawled.finish_reason == "finished"
