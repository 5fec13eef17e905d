"""Whatever code a project runs: servers are asked for their policies, which are obeyed, and what is kept is what they sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pytest
from scrapy import Spider, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import HtmlResponse, Request, Response, TextResponse
from scrapy.resolver import CachingThreadedResolver

from comity.gate.fetching.store import PolicyStore
from comity.policies.formats import WELL_KNOWN
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Serve

Crawl = Callable[..., "Crawled"]

ROBOTS = "User-agent: *\nDisallow: /private\n"


class Hooked:
    """What a project's component gets to see of policy files is noted."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def note(self, url: str) -> None:
        if url.endswith(WELL_KNOWN):
            assert self.crawler.stats
            self.crawler.stats.inc_value(f"test/seen/{type(self).__name__}")


class StopsBytes(Hooked):
    """Ends every download at its first octets, as if they were enough."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        crawler.signals.connect(self.received, signals.bytes_received)

    def received(self, request: Request) -> None:
        self.note(request.url)
        raise StopDownload(fail=False)


class StopsHeaders(Hooked):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        crawler.signals.connect(self.received, signals.headers_received)

    def received(self, request: Request) -> None:
        self.note(request.url)
        raise StopDownload(fail=False)


class SendsToBrowser(Hooked):
    """As scrapy-playwright's users do; the handler below is the browser."""

    def process_request(self, request: Request) -> None:
        self.note(request.url)
        request.meta["playwright"] = True


class AnswersAll(Hooked):
    def process_request(self, request: Request) -> Response:
        self.note(request.url)
        return TextResponse(request.url, body=b"User-agent: *\nAllow: /\n", request=request)


class ChangesAll(Hooked):
    """Sends every request somewhere else."""

    def process_request(self, request: Request) -> Request | None:
        self.note(request.url)
        return (
            None
            if request.url.endswith("?changed")
            else request.replace(url=f"{request.url}?changed", dont_filter=True)
        )


class RefusesAll(Hooked):
    def process_request(self, request: Request) -> None:
        self.note(request.url)
        if request.url.endswith(WELL_KNOWN):
            raise IgnoreRequest("no policies, please")


class ReplacesAll(Hooked):
    """As an HTML cleaner might."""

    def process_response(self, request: Request, response: Response) -> Response:
        self.note(request.url)
        return HtmlResponse(request.url, body=b"<html><pre>Allow: /</pre></html>", request=request)


class DropsAtSchedule(Hooked):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        for signal in (
            signals.request_scheduled,
            signals.request_reached_downloader,
            signals.request_left_downloader,
        ):
            crawler.signals.connect(self.note_request, signal)

    def note_request(self, request: Request) -> None:
        self.note(request.url)


class Browser(BaseDownloadHandler):
    """A download handler that answers everything itself, in HTML."""

    lazy = False

    async def download_request(self, request: Request) -> Response:
        body = b"<html><body><pre>User-agent: *</pre></body></html>"
        return HtmlResponse(
            request.url, body=body, headers={"Content-Type": "text/html"}, request=request
        )

    async def close(self) -> None:
        pass


class Elsewhere(CachingThreadedResolver):
    """A resolver of the project's own: every name is at another address."""

    def getHostByName(self, name: str, timeout: Any = ()) -> Any:  # Twisted's name
        return super().getHostByName("127.0.0.9", timeout)


class Pages(Spider):
    """Asks for a page that is open and for one that is not, of each origin."""

    name = "pages"
    origins: tuple[str, ...] = ()
    refused = 2  # requests, of two origins

    async def start(self) -> AsyncIterator[Request]:
        for origin in self.origins:
            yield Request(
                f"{origin}/open",
                cookies={"id": "secret"},
                headers={"Referer": "http://secret.test/", "X-Own": "secret"},
            )
            yield Request(f"{origin}/private")

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


class WithStopsBytes(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {StopsBytes: 0}}  # type: ignore[misc]


class WithStopsHeaders(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {StopsHeaders: 0}}  # type: ignore[misc]


class WithSignals(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {DropsAtSchedule: 0}}  # type: ignore[misc]


class WithBrowser(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "DOWNLOADER_MIDDLEWARES": {SendsToBrowser: 50},
        "DOWNLOAD_HANDLERS": {"http": Browser, "https": Browser},
    }


class WithAnswers(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {AnswersAll: 990}}  # type: ignore[misc]


class WithEarlyAnswers(Pages):
    """Before any request could be refused; none is made."""

    refused = 0
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {AnswersAll: 1}}  # type: ignore[misc]


class WithChanges(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {ChangesAll: 50}}  # type: ignore[misc]


class WithLateChanges(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {ChangesAll: 990}}  # type: ignore[misc]


class WithRefusals(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {RefusesAll: 1}}  # type: ignore[misc]


class WithReplacements(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {ReplacesAll: 990}}  # type: ignore[misc]


class WithCookies(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "COOKIES_ENABLED": True,
        "DEFAULT_REQUEST_HEADERS": {
            "X-Own": "secret",
            "Accept-Encoding": "gzip",
            "Authorization": "secret",
        },
        "HTTPPROXY_ENABLED": False,
    }


class WithRobotsSettings(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "ROBOTSTXT_OBEY": False,
        "ROBOTSTXT_PARSER": "scrapy.robotstxt.PythonRobotParser",
        "ROBOTSTXT_USER_AGENT": "somebody-else",
    }


class WithLimits(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "DOWNLOAD_MAXSIZE": 1,
        "DOWNLOAD_TIMEOUT": 0.001,
        "DOWNLOAD_FAIL_ON_DATALOSS": False,
        "REDIRECT_ENABLED": False,
        "RETRY_ENABLED": False,
        "COMPRESSION_ENABLED": False,
    }


class WithResolver(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DNS_RESOLVER": Elsewhere}  # type: ignore[misc]


@pytest.mark.requirement("RFC-5", "RFC-7")
@pytest.mark.parametrize(
    "spider",
    one_in(
        2,
        [
            WithStopsBytes,
            WithStopsHeaders,
            WithSignals,
            WithBrowser,
            WithAnswers,
            WithEarlyAnswers,
            WithChanges,
            WithLateChanges,
            WithRefusals,
            WithReplacements,
            WithCookies,
            WithRobotsSettings,
            WithLimits,
            WithResolver,
        ],
    ),
    ids=lambda spider: str(spider.__name__),
)
def test_no_code_of_a_project_comes_near_policy_files(
    serve: Serve, crawl: Crawl, tmp_path: Path, spider: type[Pages]
) -> None:
    site = serve({"/robots.txt": ROBOTS, "/open": "<p>open</p>", "/private": "<p>private</p>"})
    moved = serve(
        {
            "/robots.txt": serve.Answer(status=302, headers={"Location": site.url("/robots.txt")}),
            "/open": "",
        }
    )
    crawled = crawl(spider, origins=[site.origin, moved.origin])
    assert crawled.stats.get("comity/access/deny/robots.disallow", 0) == spider.refused, crawled.log
    assert not [path for path in site.paths + moved.paths if path.startswith("/private")]
    assert (site.paths.count("/robots.txt"), moved.paths.count("/robots.txt")) == (2, 1)
    assert not [stat for stat in crawled.stats if stat.startswith("test/seen/")]
    for seen in (
        seen for server in (site, moved) for seen in server.seen if seen.path == "/robots.txt"
    ):
        assert set(seen.headers) == {"host", "user-agent", "accept", "accept-encoding"}
        assert seen.headers["accept-encoding"] == "identity"
    store = PolicyStore(tmp_path / "policies.sqlite")
    for origin in (site.origin, moved.origin):
        file = store.load(origin)["/robots.txt"]
        assert file.copy
        assert (file.copy.status, file.copy.body) == (200, ROBOTS.encode())
    store.close()


class Cached(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"HTTPCACHE_ENABLED": True}  # type: ignore[misc]


class Poisons(Spider):
    """Fills the HTTP cache by Scrapy alone."""

    name = "poisons"
    urls: tuple[str, ...] = ()
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "ADDONS": {},
        "HTTPCACHE_ENABLED": True,
        "ROBOTSTXT_OBEY": False,
    }

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


@pytest.mark.requirement("RFC-5", "RFC-7")
def test_no_policy_file_comes_from_an_http_cache(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    site = serve({"/robots.txt": "User-agent: *\nAllow: /\n", "/open": "", "/private": ""})
    settings = {"HTTPCACHE_DIR": str(tmp_path / "cache")}
    crawl(Poisons, settings, urls=[site.url("/robots.txt"), site.url("/private")])
    site.routes["/robots.txt"] = ROBOTS
    crawled = crawl(Cached, settings, origins=[site.origin])
    assert sorted(site.paths[:2]) == ["/private", "/robots.txt"]
    assert site.paths[2:] == ["/robots.txt", "/open"]
    assert crawled.stats["comity/access/deny/robots.disallow"] == 1
    assert [item["url"] for item in crawled.items] == [site.url("/open")]


@pytest.mark.requirement("RFC-5")
def test_policy_files_have_counters_of_their_own(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/robots.txt": ROBOTS, "/open": "<p>open</p>"})
    crawled = crawl(Pages, origins=[site.origin])
    assert site.paths == ["/robots.txt", "/open"]
    stats = crawled.stats
    assert (stats["comity/policies/requests"], stats["comity/policies/connections"]) == (
        len(WELL_KNOWN),
        1,
    )
    assert stats["comity/policies/bytes"] > 4 * len(ROBOTS)
    assert (
        stats["downloader/request_count"],
        stats["downloader/response_count"],
        stats["response_received_count"],
    ) == (1, 1, 1)


class ChangesInPlace(Hooked):
    """As some projects do, so that the request need not wait again."""

    def process_request(self, request: Request) -> None:
        if to := request.meta.get("to"):
            request._set_url(to)
        request.method = request.meta.get("method", request.method)
        if host := request.meta.get("host"):
            request.headers["Host"] = host


class Changed(Spider):
    name = "changed"
    url = ""
    meta: ClassVar[dict[str, str]] = {}
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {ChangesInPlace: 543}}  # type: ignore[misc]

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.url, meta=dict(self.meta))

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


class ChangedLate(Changed):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {ChangesInPlace: 999}}  # type: ignore[misc]


def test_what_was_no_site_s_and_becomes_one_s_does_not_go_out(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/robots.txt": ROBOTS, "/private": "<p>private</p>"})
    for changed in (Changed, ChangedLate):
        crawled = crawl(changed, url="data:,open", meta={"to": site.url("/private")})
        assert crawled.items == []
        assert crawled.stats.get("comity/access/deny/comity.changed") == 1, crawled.stats
    assert site.paths == []


@pytest.mark.requirement("RFC-2", "AUTO-9")
@pytest.mark.parametrize("position", [543, 999], ids=["before the fields", "after them"])
def test_what_is_changed_in_its_place_is_judged_as_it_goes_out(
    serve: Serve, crawl: Crawl, position: int
) -> None:
    site = serve(
        {
            "/robots.txt": ROBOTS,
            "/automation-preferences.txt": "scope: /\nallowed-methods: GET\n",
            "/open": "<p>open</p>",
            "/also-open": "<p>also</p>",
            "/private": "<p>private</p>",
        }
    )
    other = serve({"/open": "<p>open</p>"})
    changed = Changed if position == 543 else ChangedLate
    for meta, rule in (
        ({"to": site.url("/private")}, "robots.disallow"),
        ({"to": other.url("/open")}, "comity.changed"),
        ({"method": "POST"}, "automation.method"),
        ({"host": "other.test"}, "comity.declaration"),
    ):
        crawled = crawl(changed, url=site.url("/open"), meta=meta)
        assert crawled.stats.get(f"comity/access/deny/{rule}") == 1, crawled.stats
        assert crawled.items == []
    assert {*site.paths, *other.paths} == {"/robots.txt", "/automation-preferences.txt"}
    crawled = crawl(changed, url=site.url("/open"), meta={"to": site.url("/also-open")})
    assert [item["url"] for item in crawled.items] == [site.url("/also-open")]
    assert crawled.items[0]["permissions"]["uses"]["crawl"]["verdict"] == "allow"
