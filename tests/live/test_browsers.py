"""Browsers: what a page asks for is judged, paced and counted, in real Chromium against real servers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from aiohappyeyeballs import AddrInfoType
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.fetching.network import Network
from comity.gate.fetching.reach import IPAddress, Reach

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from playwright.async_api import Browser

    from comity.browser import BrowserGuard
    from comity.client import Client
    from tests.conftest import Crawled, Loopback, Serve

pytestmark = pytest.mark.slow

Crawl = Callable[..., "Crawled"]

INSTALL = "it takes Chromium: apt-get install --no-install-recommends chromium"
HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
PUBLIC = "127.0.0.2"
PATIENCE = 200.0  # seconds for what has to come; a browser on a busy machine
TOLERANCE = 0.02  # seconds, as in test_pace.py

ICON = "<link rel=icon href=data:,>"


# Chromium asks for its updates by itself, through the guard too, whatever its switches say.
UPDATES = "http://update.googleapis.com/"


def launch_options() -> dict[str, Any]:
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if chromium is None:
        pytest.fail(INSTALL)
    return {"executable_path": chromium, "args": ["--no-sandbox"] if os.geteuid() == 0 else []}


def settings(**others: Any) -> dict[str, Any]:
    handlers = {"http": HANDLER, "https": HANDLER}
    return {"DOWNLOAD_HANDLERS": handlers, "PLAYWRIGHT_LAUNCH_OPTIONS": launch_options(), **others}


@pytest.fixture
def mode() -> str:
    """Playwright speaks asyncio, and scrapy-playwright asks for the reactor."""
    return "reactor"


class Browses(Spider):
    """Opens pages in a browser, and does something there."""

    name = "browses"

    def __init__(
        self,
        urls: list[str],
        script: str = "",
        meta: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.urls, self.script, self.meta = urls, script, meta or {}

    async def start(self) -> AsyncIterator[Request]:
        from scrapy_playwright.page import PageMethod

        for url in self.urls:
            methods = [PageMethod("evaluate", self.script)] if self.script else []
            meta = {"playwright": True, "playwright_page_methods": methods, **self.meta}
            yield Request(url, meta=meta, errback=self.failed, dont_filter=True)

    def parse(self, response: Response) -> Any:
        texts = response.css("p::text").getall()
        yield {
            "url": response.url,
            "status": response.status,
            "texts": texts,
            "address": str(response.ip_address),
        }

    def failed(self, failure: Any) -> Any:
        yield {"failed": type(failure.value).__name__, "why": str(failure.value)}


class Outside(Network):
    """Takes 127.0.0.2 for a public address, and 127.0.0.3 for a private one."""

    def reach(self, address: IPAddress) -> Reach:
        return {PUBLIC: Reach.PUBLIC, "127.0.0.3": Reach.PRIVATE}.get(
            str(address), super().reach(address)
        )


class EverywhereOutside(Network):
    """Takes each address for a public one."""

    def reach(self, address: IPAddress) -> Reach:
        return Reach.PUBLIC


class Looks:
    """An extension that makes comity see the addresses so."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Looks:
        crawl = OwnCrawl.of(crawler)
        crawl.client.network = Outside(crawl.options.client)
        return cls()


class BrowsesFromOutside(Browses):
    name = "browses-from-outside"
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {Looks: 0}}  # type: ignore[misc]


class Clicks(Browses):
    """Follows a link of the page."""

    name = "clicks"

    async def start(self) -> AsyncIterator[Request]:
        from scrapy_playwright.page import PageMethod

        methods = [PageMethod("click", "a"), PageMethod("wait_for_url", "**/there")]
        yield Request(self.urls[0], meta={"playwright": True, "playwright_page_methods": methods})


class UsesAPageAgain(Browses):
    """Opens the second URL in the page of the first."""

    name = "uses-a-page-again"

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.urls[0], meta={"playwright": True, "playwright_include_page": True})

    def parse(self, response: Response) -> Any:
        yield from super().parse(response)
        if response.url == self.urls[0]:
            meta = {"playwright": True, "playwright_page": response.meta["playwright_page"]}
            yield Request(self.urls[1], meta=meta)


DONE = "fetch('/done').then(answer => answer.text())"


def at(server: Loopback, *paths: str) -> list[float]:
    return [seen.at for seen in server.seen if seen.path in paths]


@pytest.mark.requirement("WEB-1")
def test_nothing_that_a_file_refuses_and_all_that_none_does(crawl: Crawl, serve: Serve) -> None:
    from tests.live.browser_site import LOST_BY_ROUTING, WAYS, Site, names

    site = Site(serve, lost=LOST_BY_ROUTING)
    crawled = crawl(Browses, settings(), urls=[site.server.url()], script=DONE)
    assert (site.refused, site.missing) == ([], set()), crawled.log
    (item,) = crawled.items
    refused = {refusal["url"] for refusal in item["permissions"]["browser"]["refused"]}
    assert len(names(refused)) > len(WAYS) - 20
    assert {refusal["rule"] for refusal in item["permissions"]["browser"]["refused"]} <= {
        "robots.disallow",
        "comity.browser",
    }


def test_stock_scrapy_playwright_asks_for_what_files_refuse(crawl: Crawl, serve: Serve) -> None:
    """Or the test above could not fail."""
    from tests.live.browser_site import LOST_BY_ROUTING, Site

    site = Site(serve, lost=LOST_BY_ROUTING)
    crawl(Browses, settings(ADDONS={}, ROBOTSTXT_OBEY=True), urls=[site.server.url()], script=DONE)
    assert len(set(site.refused)) > 70


@pytest.fixture(params=["http", "https"])
def site_certificate(
    request: pytest.FixtureRequest, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> Path | None:
    """None for http."""
    if request.param == "http":
        return None
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return certificate


@asynccontextmanager
async def guarded_browser(
    *, is_told: bool = True, **options: Any
) -> AsyncIterator[tuple[Client, BrowserGuard, Browser]]:
    """A browser, its guard and the client. `is_told`: False: the protocol tells the guard nothing."""
    from playwright.async_api import async_playwright

    from comity.browser import guard
    from comity.client import Client

    async with (
        async_playwright() as playwright,
        Client("testbot", store=None, min_delay=0) as client,
        guard(client) as guarded,
    ):
        options = launch_options() | options
        if is_told:
            browser = await guarded.launch(playwright.chromium, **options)
        else:
            client.parts.client.network = EverywhereOutside(client.parts.options.client)
            browser = await playwright.chromium.launch(**guarded.launch_options(options))
        yield client, guarded, browser
        await browser.close()


@pytest.mark.requirement("WEB-1", "WEB-3")
def test_the_same_without_scrapy(serve: Serve, site_certificate: Path | None) -> None:
    from tests.live.browser_site import LOST, WAYS, Site, names

    site = Site(serve, lost=LOST, certificate=site_certificate)

    async def browse() -> list[str]:
        async with guarded_browser() as (_, guarded, browser):
            page = await browser.new_page()
            await page.goto(site.server.url(), timeout=0)
            await page.evaluate(DONE)
            return [refusal.url for refusal in guarded.refusals(page)]

    refused = asyncio.run(browse())
    assert (site.refused, site.missing) == ([], set())
    assert len(names(refused)) > len(WAYS) - 20


@pytest.mark.requirement("WEB-1")
def test_requests_that_the_protocol_does_not_tell_of_are_judged(
    serve: Serve, site_certificate: Path | None
) -> None:
    """Chromium tells the protocol of most of these ways, but not always of each.

    Only the protocol tells of which origins there are pages: without it, Background Fetch is taken for the browser's own."""
    from tests.live.browser_site import LOST, Site

    site = Site(serve, lost=LOST | {"background-fetch"}, certificate=site_certificate)

    async def browse() -> None:
        async with guarded_browser(is_told=False) as (_, _, browser):
            page = await browser.new_page()
            await page.goto(site.server.url(), timeout=0)
            await page.evaluate(DONE)

    asyncio.run(browse())
    assert (site.refused, site.missing) == ([], set())


@pytest.mark.requirement("WEB-1")
@pytest.mark.parametrize("is_told", [True, False])
def test_downloads_of_many_popups_are_judged(serve: Serve, *, is_told: bool) -> None:
    """Each of twelve pop-ups downloads a file, and shows an image."""
    popups = [f"/{folder}/{number}" for number in range(6) for folder in ("open", "private")]
    click = "document.querySelector('a').click()"
    routes: dict[str, Any] = {"/robots.txt": "User-agent: *\nDisallow: /private/\n"}
    for path in popups:
        routes[f"/popup{path}"] = (
            f"{ICON}<img src={path}.png><a href={path}.bin download>a</a><script>{click}</script>"
        )
        routes[f"{path}.bin"] = serve.Answer(b"here", content_type="application/octet-stream")
        routes[f"{path}.png"] = serve.Answer(b"here", content_type="image/png")
    opened = "".join(f"open('/popup{path}');" for path in popups)
    routes["/"] = f"{ICON}<script>{opened}</script>"
    server = serve(routes)
    free = {f"{path}.{ending}" for path in popups if "open" in path for ending in ("bin", "png")}

    async def browse() -> int:
        async with guarded_browser(is_told=is_told) as (client, _, browser):
            page = await browser.new_page()
            await page.goto(server.url(), timeout=0)
            while not (
                free <= set(server.paths)
                and client.counts.refused.get("robots.disallow", 0) >= len(free)
            ):
                await page.wait_for_timeout(20)
            return client.counts.refused["robots.disallow"]

    assert asyncio.run(asyncio.wait_for(browse(), PATIENCE)) == len(free)
    assert [path for path in server.paths if path.startswith("/private/")] == []


@pytest.mark.requirement("WEB-1")
@pytest.mark.parametrize("is_ignored", [False, True])
def test_the_browser_is_told_of_a_certificate_that_cannot_be_verified(
    crawl: Crawl, serve: Serve, certificate: Path, *, is_ignored: bool
) -> None:
    """It decides what to make of it, also for what the protocol does not tell of."""
    script = (
        "new Promise(done => new WebSocket(`wss://${location.host}/socket`).onerror = () => done())"
    )
    server = serve({"/": f"{ICON}<p>here"}, certificate=certificate)
    options = {"ignore_https_errors": is_ignored}
    crawled = crawl(
        Browses,
        settings(DOWNLOAD_VERIFY_CERTIFICATES=False, PLAYWRIGHT_CONTEXTS={"default": options}),
        urls=[server.url()],
        script=script,
    )
    (item,) = crawled.items
    assert item.get("texts", []) == (["here"] if is_ignored else []), crawled.log
    if is_ignored:
        assert (item["texts"], item["address"]) == (["here"], "127.0.0.1")
        assert server.paths == ["/robots.txt", "/", "/socket"]
    else:
        assert "ERR_CERT_AUTHORITY_INVALID" in item["why"]
        assert server.paths == ["/robots.txt"]


PARTS = (
    f"{ICON}<p>here<img src=/open/a.png><img src=/private/a.png><script>"
    "for (const folder of ['private', 'open']) new WebSocket(`${location.origin.replace('http', 'ws')}/${folder}/b`)</script>"
)


def parts(serve: Serve, origin: str = "", socket: str = "/open/b", **others: Any) -> Loopback:
    """A server with a page of parts, some of which it refuses. Its page `/done` waits for the others.

    `origin`: of the routes; "": that of the server. `socket`: as the server gets to see the WebSocket."""
    came = threading.Event()

    def comes(handler: BaseHTTPRequestHandler) -> Any:
        if {f"{origin}/open/a.png", socket} <= set(server.paths):
            came.set()
        return ICON

    def done(handler: BaseHTTPRequestHandler) -> Any:
        came.wait(PATIENCE)
        return "done"

    robots = "User-agent: *\nDisallow: /private/"
    routes: dict[str, Any] = {
        "/robots.txt": robots,
        "/": PARTS,
        "/open/a.png": comes,
        "/done": done,
    }
    server: Loopback = serve(
        {f"{origin}{path}": route for path, route in routes.items()} | {socket: comes}, **others
    )
    return server


@pytest.mark.requirement("WEB-1")
@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_browser_that_was_started_elsewhere_is_guarded(
    crawl: Crawl, serve: Serve, certificate: Path, tmp_path: Path, *, is_ignored: bool
) -> None:
    """It is told to accept the proxy's certificate, and gets no other one that it would not accept."""
    server = parts(serve, certificate=certificate)
    options = launch_options()
    arguments = [
        *options["args"],
        "--headless",
        "--remote-debugging-port=0",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    changed = settings(DOWNLOAD_VERIFY_CERTIFICATES=False)
    changed["PLAYWRIGHT_CONTEXTS"] = {"default": {"ignore_https_errors": is_ignored}}
    with subprocess.Popen(
        [options["executable_path"], *arguments], stderr=subprocess.PIPE, text=True
    ) as browser:
        assert browser.stderr
        url = next(
            line.split()[-1] for line in browser.stderr if line.startswith("DevTools listening on ")
        )
        try:
            crawled = crawl(
                Browses, changed | {"PLAYWRIGHT_CDP_URL": url}, urls=[server.url()], script=DONE
            )
        finally:
            browser.terminate()
    assert [item.get("texts") for item in crawled.items] == [["here"] if is_ignored else None]
    paths = {"/", "/open/a.png", "/open/b", "/done"} if is_ignored else set()
    assert set(server.paths) == paths | {"/robots.txt"}


@pytest.mark.requirement("WEB-1")
@pytest.mark.parametrize("is_of_context", [False, True])
def test_the_proxy_of_a_browser_goes_on_to_be_used(
    crawl: Crawl, serve: Serve, *, is_of_context: bool
) -> None:
    origin = "http://a.example"
    server = parts(serve, origin, "a.example:80")
    proxy = {"proxy": {"server": server.origin, "username": "a", "password": "b"}}
    changed = settings(COMITY_PROXY=server.origin.replace("://", "://c:d@"))
    if is_of_context:
        changed["PLAYWRIGHT_CONTEXTS"] = {"default": proxy}
    else:
        changed["PLAYWRIGHT_LAUNCH_OPTIONS"] |= proxy
    crawled = crawl(Browses, changed, urls=[f"{origin}/"], script=DONE)
    assert [item.get("texts") for item in crawled.items] == [["here"]], crawled.log
    paths = {f"{origin}{path}" for path in ("/robots.txt", "/", "/open/a.png", "/done")}
    # The WebSocket follows in its tunnel, before the crawl ends or not.
    own = {path for path in server.paths if path.startswith(UPDATES)}
    assert set(server.paths) - {"/open/b"} - own == paths | {"a.example:80"}
    fields = {
        seen.headers["proxy-authorization"]
        for seen in server.seen
        if not seen.path.endswith(("robots.txt", "/open/b"))
    }
    assert fields == {"Basic YTpi"}


@pytest.mark.requirement("WEB-1")
def test_hosts_are_asked_for_their_policies_first_and_in_their_turn(
    crawl: Crawl, serve: Serve
) -> None:
    """A host that refuses all, one with a delay, and one that answers that it is asked too often."""
    answers = iter((429,))

    def busy(handler: BaseHTTPRequestHandler) -> Any:
        status = next(answers, 200)
        return serve.Answer(status=status, headers={"Retry-After": "2"} if status == 429 else {})

    closed = serve({"/robots.txt": "User-agent: *\nDisallow: /", "/a.png": b""}, "127.0.0.2")
    slow = serve(
        {"/robots.txt": "User-agent: *\nCrawl-delay: 0.5", **{f"/{n}.png": b"" for n in range(5)}},
        "127.0.0.3",
    )
    full = serve({"/robots.txt": "", "/first.png": busy, "/second.png": busy}, "127.0.0.4")
    images = [
        closed.url("/a.png"),
        *(slow.url(f"/{n}.png") for n in range(5)),
        full.url("/first.png"),
    ]
    markup = "".join(f"<img src={url}>" for url in images)
    after = f"document.querySelector('img:last-of-type').onerror = () => new Image().src = '{full.url('/second.png')}'"
    page = f"{ICON}{markup}<script>{after}</script>"
    server = serve({"/": page})
    second = f"new Promise(done => {{ const image = new Image(); image.onerror = done; image.src = '{full.url('/second.png?')}' }})"
    crawled = crawl(Browses, settings(), urls=[server.url()], script=second)
    assert closed.paths == ["/robots.txt"]
    starts = at(slow, *(f"/{n}.png" for n in range(5)))
    assert len(starts) == 5
    assert min(later - earlier for earlier, later in pairwise(starts)) >= 0.5 - TOLERANCE
    (first,), later = at(full, "/first.png"), at(full, "/second.png", "/second.png?")
    assert later
    assert min(later) - first >= 2 - TOLERANCE
    assert crawled.items[0]["permissions"]["browser"]["refused"] == [
        {
            "url": closed.url("/a.png"),
            "kind": "image",
            "rule": "robots.disallow",
            "policy": closed.url("/robots.txt"),
            "line": 2,
        }
    ]


@pytest.mark.requirement("WEB-1")
def test_the_page_itself_is_asked_for_once_and_waits_once(crawl: Crawl, serve: Serve) -> None:
    """Its host has one request in flight at a time: what the page asks for would wait for the page for ever."""
    server = serve(
        {
            "/robots.txt": "User-agent: *\nCrawl-delay: 0.4",
            "/": f"{ICON}<img src=a.png>",
            "/é x": f"{ICON}<p>here",
        }
    )
    server.routes["/%C3%A9%20x"] = server.routes["/é x"]
    crawled = crawl(Browses, settings(), urls=[server.url(), server.url("/é x#part")])
    assert sorted(path for path in server.paths if "txt" not in path) == [
        "/",
        "/%C3%A9%20x",
        "/a.png",
    ]
    assert crawled.stats["comity/access/allow"] == 3
    starts = sorted(seen.at for seen in server.seen if "txt" not in seen.path)
    assert min(later - earlier for earlier, later in pairwise(starts)) >= 0.4 - TOLERANCE


@pytest.mark.requirement("WEB-1")
def test_scripts_do_what_their_kind_may_do(crawl: Crawl, serve: Serve) -> None:
    """Kind, method and mechanism are those of each request."""
    preferences = (
        "scope: /\nallowed-methods: GET, POST\nallowed-automations: cdp, headless\nallow-xhr: read-only\nallow-api: open\n"
        "\nscope: /drivers/\nallowed-methods: GET\nallowed-automations: webdriver\n"
    )
    calls = "fetch('/get'); fetch('/post', {method: 'POST'}); navigator.sendBeacon('/beacon', 'a'); fetch('/drivers/a')"
    form = "<form method=post action=/form target=f></form><iframe name=f></iframe><script>document.forms[0].submit()</script>"
    paths = ("/get", "/post", "/beacon", "/form", "/drivers/a")
    server = serve(
        {
            "/automation-preferences.txt": preferences,
            "/": f"{ICON}{form}<script>{calls}</script>",
            **dict.fromkeys(paths, ICON),
        }
    )
    crawled = crawl(
        Browses, settings(), urls=[server.url()], script="fetch('/get?last').then(() => 0)"
    )
    assert sorted(path for path in server.paths if path in paths) == ["/form", "/get"]
    refused = crawled.items[0]["permissions"]["browser"]["refused"]
    assert {refusal["url"].removeprefix(server.origin) for refusal in refused} == {
        "/post",
        "/beacon",
        "/drivers/a",
    }


@pytest.mark.requirement("WEB-1", "WEB-2")
def test_a_page_that_leads_to_what_is_refused_is_refused(crawl: Crawl, serve: Serve) -> None:
    robots = "User-agent: *\nDisallow: /private/"
    server = serve(
        {
            "/robots.txt": robots,
            "/private/a": "secret",
            "/": serve.Answer(status=302, headers={"Location": "/private/a"}),
        }
    )
    crawled = crawl(Browses, settings(), urls=[server.url()])
    assert "/private/a" not in server.paths
    (item,) = crawled.items
    assert item["failed"] == "IgnoreRequest"
    assert "robots.disallow" in item["why"]


@pytest.mark.requirement("WEB-2")
def test_the_tag_speaks_of_where_the_browser_ended_and_of_what_it_shows(
    crawl: Crawl, serve: Serve
) -> None:
    """A link is followed by a click; a script writes what an element rule covers, and what says that it may not be indexed."""
    ai_txt = "User-agent: *\n  Path: / html\n    Element: blockquote\n      Disallow: train\n"
    written = (
        "<script>document.body.insertAdjacentHTML('beforeend', '<blockquote><p>quoted</p></blockquote>');"
        "document.head.insertAdjacentHTML('beforeend', '<meta name=robots content=noindex>')</script>"
    )
    elsewhere = serve(
        {"/ai.txt": ai_txt, "/there": f"{ICON}<body><p>free</p>{written}</body>"}, "127.0.0.2"
    )
    server = serve({"/": f"{ICON}<a href={elsewhere.url('/there')}>there</a>"})
    crawled = crawl(
        Clicks, settings(COMITY_USES="train", COMITY_DEFAULTS="train:allow"), urls=[server.url()]
    )
    (item,) = crawled.items
    tag = item["permissions"]
    assert (item["url"], item["texts"]) == (elsewhere.url("/there"), ["free", "quoted"])
    assert tag["browser"] == {"url": elsewhere.url("/there"), "refused": []}
    assert tag["uses"]["index"]["verdict"] == "deny"
    assert elsewhere.url("/ai.txt") in tag["policies"]
    (element,) = tag["elements"]
    assert element["selector"] == "blockquote"
    assert ["texts", 1] in element["spans"]
    assert ["texts", 0] not in element["spans"]


@pytest.mark.requirement("WEB-2")
def test_the_header_fields_of_where_the_browser_ended_count(crawl: Crawl, serve: Serve) -> None:
    """Scrapy learns those of the page that was asked for alone. What came with a frame says nothing of the page."""
    frame = serve.Answer(ICON, content_type="text/html", headers={"X-Robots-Tag": "noarchive"})
    there = serve.Answer(
        f"{ICON}<iframe src=/frame></iframe><p>there",
        content_type="text/html",
        headers={"X-Robots-Tag": "noindex"},
    )
    server = serve({"/": f"{ICON}<a href=/there>there</a>", "/there": there, "/frame": frame})
    crawled = crawl(
        Clicks, settings(COMITY_DEFAULTS="index:allow,preserve:allow"), urls=[server.url()]
    )
    (item,) = crawled.items
    assert (item["url"], item["texts"]) == (server.url("/there"), ["there"])
    uses = item["permissions"]["uses"]
    assert {use: uses[use]["verdict"] for use in ("index", "preserve")} == {
        "index": "deny",
        "preserve": "allow",
    }


@pytest.mark.requirement("WEB-2")
def test_a_page_that_is_used_again_speaks_of_what_it_shows_then(crawl: Crawl, serve: Serve) -> None:
    server = serve(
        {
            path: serve.Answer(ICON, content_type="text/html", headers={"X-Robots-Tag": robots})
            for path, robots in (("/1", "noindex"), ("/2", "noarchive"))
        }
    )
    urls = [server.url("/1"), server.url("/2")]
    crawled = crawl(
        UsesAPageAgain, settings(COMITY_DEFAULTS="index:allow,preserve:allow"), urls=urls
    )
    tags = [item["permissions"] for item in crawled.items]
    assert [tag["browser"]["url"] for tag in tags] == urls
    refused = [
        [use for use in ("index", "preserve") if tag["uses"][use]["verdict"] == "deny"]
        for tag in tags
    ]
    assert refused == [["index"], ["preserve"]]


@pytest.mark.requirement("WEB-1")
def test_what_a_page_needs_to_be_shown_may_go_with_it(crawl: Crawl, serve: Serve) -> None:
    robots = "User-agent: *\nDisallow: /private/"
    page = f"{ICON}<img src=/private/a.png><iframe src=/private/frame></iframe><script>fetch('/private/xhr')</script>"
    server = serve({"/robots.txt": robots, "/": page})
    crawled = crawl(
        Browses,
        settings(COMITY_BROWSER="documents"),
        urls=[server.url()],
        script="fetch('/x').then(() => 0)",
    )
    assert [path for path in server.paths if "private" in path] == ["/private/a.png"]
    assert {
        refusal["kind"] for refusal in crawled.items[0]["permissions"]["browser"]["refused"]
    } == {"document", "xhr"}
    assert crawled.stats["comity/access/allow/comity.part"] == 1


@pytest.mark.requirement("SEC-7")
def test_a_page_leads_no_browser_to_inner_addresses(crawl: Crawl, serve: Serve) -> None:
    """Not by a pop-up that says nothing of who opened it either."""
    inner = serve({"/a": ICON}, "127.0.0.3")
    opened = f"window.open('{inner.url('/a?1')}'); window.open('{inner.url('/a?2')}', '_blank', 'noopener,noreferrer');"
    quiet = f"<img src={inner.url('/a?3')} referrerpolicy=no-referrer><iframe src={inner.url('/a?4')}></iframe>"
    server = serve({"/": f"{ICON}{quiet}<iframe src=/to></iframe>"}, PUBLIC)
    server.routes["/to"] = serve.Answer(status=302, headers={"Location": inner.url("/a?5")})
    crawled = crawl(
        BrowsesFromOutside,
        settings(),
        urls=[server.url()],
        script=opened + "fetch('/x').then(() => 0)",
    )
    assert inner.paths == []
    refused = crawled.items[0]["permissions"]["browser"]["refused"]
    assert {refusal["url"][-2:] for refusal in refused} == {"?1", "?2", "?3", "?4", "?5"}
    assert {refusal["rule"] for refusal in refused} == {"comity.inner-address"}


class Rebinds(Outside):
    """Takes a name for one of a public address once, and for one of a private address from then on."""

    is_rebound = False

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        if host != "rebinds.example":
            return await super().resolve(host, port)
        address = "127.0.0.3" if self.is_rebound else PUBLIC
        self.is_rebound = True
        return await super().resolve(address, port)


@pytest.mark.requirement("SEC-7")
def test_a_name_that_leads_elsewhere_later_leads_no_browser_to_inner_addresses(
    serve: Serve,
) -> None:
    public = serve({"/robots.txt": "", "/": ICON}, PUBLIC)
    inner = serve({"/a.png": b""}, "127.0.0.3", public.port)
    image = f"http://rebinds.example:{public.port}/a.png"
    script = f"new Promise(done => {{ const image = new Image(); image.onerror = done; image.src = '{image}' }})"

    async def browse() -> int:
        async with guarded_browser() as (client, _, browser):
            client.parts.client.network = Rebinds(client.parts.options.client)
            page = await browser.new_page()
            await page.goto(public.url())
            await page.evaluate(f"{script}.then(() => 0)")
            return client.counts.asked

    assert asyncio.run(browse()) == 2
    assert "/robots.txt" in public.paths
    assert inner.paths == []


@pytest.mark.requirement("WEB-1")
def test_what_a_browser_asks_for_outside_its_pages_is_off(crawl: Crawl, serve: Serve) -> None:
    """Log-ins and payments are fetched for by the browser itself, which pauses none of that."""
    server = serve(
        {"/robots.txt": "User-agent: *\nDisallow: /.well-known/\nDisallow: /private/\n", "/": ICON}
    )
    script = """async () => {
        const total = {label: 'a', amount: {currency: 'EUR', value: '1'}};
        const log_in = {identity: {providers: [{configURL: location.origin + '/private/a', clientId: 'a'}]}};
        const method = {supportedMethods: location.origin + '/private/b'};
        const pay = async () => new PaymentRequest([method], {total}).canMakePayment();
        for (const ask of [async () => navigator.credentials.get(log_in), pay])
            await ask().catch(() => 0);
    }"""
    crawled = crawl(
        Browses, settings(), urls=[server.url().replace("127.0.0.1", "localhost")], script=script
    )
    assert crawled.items
    assert [
        path for path in server.paths if path.startswith(("/private/", "/.well-known/web"))
    ] == []


@pytest.mark.requirement("SEC-7", "WEB-3")
def test_the_same_where_the_operator_leads_the_browser(serve: Serve) -> None:
    """What the operator opens is the operator's own; a frame in it is not, whatever it hides of who embeds it."""
    from playwright.async_api import async_playwright

    from comity.browser import guard
    from comity.client import Client

    inner, own = serve({}, "127.0.0.3"), serve({"/": f"{ICON}<p>own"}, "127.0.0.3")
    quiet = "<meta name=referrer content=no-referrer>"
    frames = (
        f"<iframe src={inner.url('/?1')} referrerpolicy=no-referrer></iframe>",
        f"<object data={inner.url('/?2')}></object>",
        f"<iframe srcdoc='{quiet}<iframe src={inner.url('/?3')}></iframe>'></iframe>",
        f"<iframe src='data:text/html,{quiet}<iframe src={inner.url('/?4')}></iframe>'></iframe>",
    )
    script = (
        f"<script>let frame = open('about:blank').document.createElement('iframe'); frame.src = '{inner.url('/?5')}';"
        " frame.referrerPolicy = 'no-referrer'; frame.ownerDocument.documentElement.append(frame)</script>"
    )
    server = serve({"/": f"{ICON}{quiet}{''.join(frames)}", "/opens": f"{ICON}{script}"}, PUBLIC)

    async def browse() -> dict[str, int]:
        async with (
            async_playwright() as playwright,
            Client("testbot", store=None, min_delay=0) as client,
            guard(client) as guarded,
        ):
            client.parts.client.network = Outside(client.parts.options.client)
            browser = await guarded.launch(playwright.chromium, **launch_options())
            context = await browser.new_context()
            for number, path in ((4, "/"), (5, "/opens")):
                page = await context.new_page()
                await page.goto(server.url(path))
                while sum(client.counts.refused.values()) < number and inner.paths == []:
                    await page.wait_for_timeout(20)
            page = await context.new_page()
            await page.goto(own.url())
            await browser.close()
            return client.counts.refused

    refused = asyncio.run(asyncio.wait_for(browse(), PATIENCE))
    refused.pop("robots.unreachable", None)  # of UPDATES
    assert refused == {"comity.inner-address": 5}
    assert inner.paths == []
    assert "/" in own.paths


@pytest.mark.requirement("SEC-7")
def test_credentials_stay_with_their_site(crawl: Crawl, serve: Serve, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("for-one-site")
    other = serve({"/frame": ICON, "/hop": ICON}, "127.0.0.2")
    server = serve({"/": f"{ICON}<iframe src={other.url('/frame')}></iframe>"})
    server.routes["/led"] = serve.Answer(status=302, headers={"Location": other.url("/hop")})
    session = {
        "token": f"file:{secret}",
        "bearer": f"file:{secret}",
        "cookies": f"file:{tmp_path / 'cookies'}",
    }
    (tmp_path / "cookies").write_text("a=for-one-site")
    crawl(
        Browses,
        settings(COMITY_SESSIONS={"127.0.0.1": session}),
        urls=[server.url(), server.url("/led")],
    )
    assert {"/frame", "/hop"} <= set(other.paths)
    assert [
        seen.headers
        for seen in server.seen
        if "for-one-site" in seen.headers.get("authorization", "")
    ]
    assert not [
        seen
        for seen in other.seen
        if any("for-one-site" in value for value in seen.headers.values())
    ]


@pytest.mark.requirement("WEB-1")
def test_a_persistent_context_is_guarded(crawl: Crawl, serve: Serve, tmp_path: Path) -> None:
    server = serve(
        {
            "/robots.txt": "User-agent: *\nDisallow: /private/",
            "/": f"{ICON}<img src=/private/a.png>",
        }
    )
    options = launch_options()
    contexts = {"kept": {"user_data_dir": str(tmp_path / "profile"), **options}}
    crawled = crawl(
        Browses,
        settings(PLAYWRIGHT_CONTEXTS=contexts),
        urls=[server.url()],
        meta={"playwright_context": "kept"},
    )
    (item,) = crawled.items
    assert (len(item["permissions"]["browser"]["refused"]), item["address"]) == (1, "127.0.0.1")
    assert "/private/a.png" not in server.paths


class BrowsesInTwoBrowsers(Browses):
    """Opens each URL in a browser of its own: in the default context, and in a persistent one."""

    name = "browses-in-two-browsers"

    async def start(self) -> AsyncIterator[Request]:
        for url, context in zip(self.urls, ("default", "kept"), strict=True):
            yield Request(
                url, meta={"playwright": True, "playwright_context": context}, errback=self.failed
            )


@pytest.mark.requirement("WEB-1")
def test_two_browsers_are_guarded(crawl: Crawl, serve: Serve, tmp_path: Path) -> None:
    page = f"{ICON}<img src=/a.png><img src=/private/a.png><p>here"
    robots = "User-agent: *\nDisallow: /private/"
    servers = [
        serve({"/robots.txt": robots, "/": page}, host) for host in ("127.0.0.1", "127.0.0.2")
    ]
    contexts = {
        "default": {},
        "kept": {"user_data_dir": str(tmp_path / "profile"), **launch_options()},
    }
    crawled = crawl(
        BrowsesInTwoBrowsers,
        settings(PLAYWRIGHT_CONTEXTS=contexts, CONCURRENT_REQUESTS=1, COMITY_MAX_DELAY=20),
        urls=[server.url() for server in servers],
    )
    assert [item.get("texts") for item in crawled.items] == [["here"], ["here"]]
    assert [sorted(server.paths) for server in servers] == [["/", "/a.png", "/robots.txt"]] * 2


@pytest.mark.requirement("WEB-3")
def test_a_browser_is_guarded_before_its_pages_go_anywhere(serve: Serve) -> None:
    """What a page has begun with goes on to go out as it does."""
    from playwright.async_api import async_playwright

    from comity.browser import guard
    from comity.client import Client
    from comity.policies import PolicyError

    server = serve({"/": ICON})

    async def browse() -> None:
        async with (
            async_playwright() as playwright,
            Client("testbot", store=None, min_delay=0) as client,
            guard(client) as guarded,
        ):
            browser = await playwright.chromium.launch(**launch_options())
            page = await browser.new_page()
            await page.goto(server.url())
            with pytest.raises(PolicyError, match="a page is open already"):
                await guarded.adopt(browser)
            await browser.close()

    asyncio.run(browse())


@pytest.mark.requirement("WEB-1")
def test_a_page_that_is_closed_takes_nobodys_turn(serve: Serve) -> None:
    """Its images wait for minutes; the next page of the host waits for its own turn alone."""
    from playwright.async_api import async_playwright

    from comity.browser import guard
    from comity.client import Client

    images = "".join(f"<img src=/{number}.png>" for number in range(60))
    server = serve(
        {"/robots.txt": "User-agent: *\nCrawl-delay: 1", "/": f"{ICON}{images}", "/next": ICON}
    )

    async def browse() -> None:
        async with (
            async_playwright() as playwright,
            Client("testbot", store=None, min_delay=0) as client,
            guard(client) as guarded,
        ):
            browser = await guarded.launch(playwright.chromium, **launch_options())
            context = await browser.new_context()
            page = await context.new_page()
            await page.goto(server.url(), wait_until="commit")
            await page.wait_for_selector("img", state="attached")
            await page.close()
            page = await context.new_page()
            await page.goto(server.url("/next"))
            await browser.close()

    asyncio.run(browse())
    assert "/next" in server.paths
    assert len([path for path in server.paths if path.endswith(".png")]) < 5
