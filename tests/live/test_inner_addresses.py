"""Sites lead nobody into a network that the operator has not asked for (SEC-7), in both modes of Scrapy, against real servers."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from aiohappyeyeballs import AddrInfoType
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, StopDownload
from scrapy.http import Headers, Request, Response, TextResponse
from scrapy.pipelines.files import FilesPipeline
from scrapy.spiders import SitemapSpider

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.fetching.network import Network
from comity.gate.fetching.options import ClientOptions
from comity.gate.fetching.reach import IPAddress, Reach
from comity.gate.fetching.store import PolicyStore
from comity.gate.request.referrals import KEY
from comity.policies.formats import WELL_KNOWN
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Serve

Crawl = Callable[..., "Crawled"]

RULE = "comity.inner-address"
PUBLIC = "127.0.0.2"


class Outside(Network):
    """Takes 127.0.0.2 for a public address, 127.0.0.3 for a private one, and some names for names of these."""

    REACHES: ClassVar = {PUBLIC: Reach.PUBLIC, "127.0.0.3": Reach.PRIVATE}
    NAMES: ClassVar = {
        "outside.test": PUBLIC,
        "inside.test": "127.0.0.1",
        "metadata.test": "169.254.169.254",
    }

    def reach(self, address: IPAddress) -> Reach:
        return self.REACHES.get(str(address), super().reach(address))

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        if host not in self.NAMES:
            return await super().resolve(host, port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (self.NAMES[host], port))]


class Rebound(Outside):
    """A name whose address changes between comity's look-up and that of Scrapy's downloader."""

    NAMES: ClassVar = {"localhost": PUBLIC}


class Moving(Outside):
    """A name whose address changes after the first connection."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options)
        self._addresses = iter([PUBLIC])

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        if host != "localhost":
            return await super().resolve(host, port)
        address = next(self._addresses, "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))]


class Looks:
    """An extension that makes comity see the addresses so."""

    network: type[Network] = Outside

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Looks:
        crawl = OwnCrawl.of(crawler)
        crawl.client.network = cls.network(crawl.options.client)
        return cls()


class LooksRebound(Looks):
    network = Rebound


class LooksMoving(Looks):
    network = Moving


class Follows(Spider):
    """Follows every link, and says what became of it."""

    name = "follows"
    urls: tuple[str, ...] = ()
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {Looks: 0}}  # type: ignore[misc]

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if isinstance(response, TextResponse):
            for link in response.css("a::attr(href)").getall():
                yield self.request(response, response.urljoin(link))

    def request(self, response: Response, url: str) -> Request:
        return Request(url, errback=self.failed)

    def failed(self, failure: Any) -> Any:
        return {"refused": failure.request.url, "why": str(failure.value)}


class FollowsWithMeta(Follows):
    name = "follows-with-meta"

    def request(self, response: Response, url: str) -> Request:
        return response.follow(url, meta=response.meta, errback=self.failed)


class FollowsByEngine(Follows):
    """Hands the requests to the engine by itself."""

    name = "follows-by-engine"

    def parse(self, response: Response) -> Iterator[Any]:
        assert self.crawler.engine
        for result in super().parse(response):
            if isinstance(result, Request):
                self.crawler.engine.crawl(result)
            else:
                yield result


class FollowsInline(Follows):
    """Waits for the responses where it stands."""

    name = "follows-inline"

    async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
        assert self.crawler.engine
        for result in super().parse(response):
            if not isinstance(result, Request):
                yield result
                continue
            try:
                other = await self.crawler.engine.download_async(result)
            except Exception as error:
                yield {"refused": result.url, "why": str(error)}
            else:
                yield {"url": other.url}


class FollowsTwiceInline(FollowsInline):
    """Follows the links of what it has waited for, too."""

    name = "follows-twice-inline"

    async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
        assert self.crawler.engine
        yield {"url": response.url}
        assert isinstance(response, TextResponse)
        for link in response.css("a::attr(href)").getall():
            other = await self.crawler.engine.download_async(Request(link))
            assert isinstance(other, TextResponse)
            for url in other.css("a::attr(href)").getall():
                yield self.request(response, url)


class TriesAgain(Follows):
    """Makes a new request of whatever failed."""

    name = "tries-again"

    def failed(self, failure: Any) -> Any:
        yield super().failed(failure)
        if not failure.request.meta.get("again"):
            yield Request(
                failure.request.url, meta={"again": True}, errback=self.failed, dont_filter=True
            )


class Files(Follows):
    """Has the linked files fetched by a pipeline."""

    name = "files"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {Looks: 0},
        "ITEM_PIPELINES": {FilesPipeline: 1},
    }

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        links = response.css("a::attr(href)").getall()
        yield {"url": response.url, "file_urls": [response.urljoin(link) for link in links]}


def page(*links: str) -> str:
    return "".join(f'<a href="{link}">link</a>' for link in links)


def refused(crawled: Crawled) -> set[str]:
    """URLs that were refused by the rule, and by no other."""
    assert crawled.stats.get(f"comity/access/deny/{RULE}", 0) == crawled.stats.get(
        "comity/access/deny", 0
    ), crawled.log
    items = [item for item in crawled.items if "refused" in item]
    assert all(RULE in item["why"] for item in items), items
    return {item["refused"] for item in items}


def fetched(crawled: Crawled) -> set[str]:
    return {item["url"] for item in crawled.items if "url" in item}


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    ("spider", "host"),
    one_in(
        2,
        [
            pytest.param(
                spider,
                host,
                marks=[pytest.mark.slow] * (spider is not Follows and host != "inside.test"),
            )
            for spider in (Follows, FollowsWithMeta, FollowsByEngine, FollowsInline, TriesAgain)
            for host in ("127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "inside.test")
        ],
    ),
)
def test_a_public_site_leads_nobody_inside(
    serve: Serve, crawl: Crawl, spider: type[Follows], host: str
) -> None:
    """By links, whatever the spider makes of them. There is no connection, not even for policies."""
    inside = serve({"/secret": "<p>secret</p>"})
    public = serve(
        {"/a": page(f"http://{host}:{inside.port}/secret", "/b"), "/b": page()}, host=PUBLIC
    )
    crawled = crawl(spider, urls=[public.url("/a")])
    assert fetched(crawled) == {public.url("/a"), public.url("/b")}
    assert {url.rpartition("/")[2] for url in refused(crawled)} == {"secret"}
    assert inside.seen == []
    assert f"Refused <GET http://{host}:{inside.port}/secret>: deny: {RULE}" in crawled.log


@pytest.mark.requirement("SEC-7")
def test_metadata_services_are_link_local(serve: Serve, crawl: Crawl) -> None:
    """By where names lead, not by lists of names."""
    links = [
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.test/",
        "http://[fd00:ec2::254]/latest/",
        "http://[fe80::1]/",
    ]
    public = serve({"/a": page(*links)}, host=PUBLIC)
    assert len(refused(crawl(Follows, urls=[public.url("/a")]))) == len(links)


def moved(serve: Serve, location: str) -> Any:
    return serve.Answer(status=302, headers={"Location": location})


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("spider", [Follows, FollowsInline])
def test_nor_by_redirects(serve: Serve, crawl: Crawl, spider: type[Follows]) -> None:
    """Of HTTP and of HTML, of what the operator asks for and of what a page links."""
    inside = serve({"/secret": "<p>secret</p>"})
    refresh = f'<meta http-equiv="refresh" content="0; url={inside.url("/secret?4")}">'
    public = serve(
        {
            "/start": moved(serve, inside.url("/secret?1")),
            "/a": page("/linked", "/refresh"),
            "/linked": moved(serve, "/onward"),
            "/onward": moved(serve, inside.url("/secret?2")),
            "/refresh": refresh,
        },
        host=PUBLIC,
    )
    crawled = crawl(spider, urls=[public.url("/start"), public.url("/a")])
    assert fetched(crawled) == {public.url("/a")}
    assert crawled.stats[f"comity/access/deny/{RULE}"] == 3
    assert inside.seen == []


class EndsElsewhere:
    """Downloader middleware: a page ends at another URL than was asked for, as in a browser."""

    final = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> EndsElsewhere:
        middleware = cls()
        middleware.final = crawler.settings["FINAL"]
        return middleware

    def process_response(self, request: Request, response: Response) -> Response:
        return response.replace(url=self.final) if response.url.endswith("/a") else response


class EndsAtTheServer(Follows):
    name = "ends-at-the-server"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {Looks: 0},
        "DOWNLOADER_MIDDLEWARES": {EndsElsewhere: 960},
    }


class EndsBehindComity(Follows):
    name = "ends-behind-comity"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {Looks: 0},
        "DOWNLOADER_MIDDLEWARES": {EndsElsewhere: 500},
    }


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    ("spider", "is_refused"), [(EndsAtTheServer, True), (EndsBehindComity, False)]
)
def test_nor_by_a_page_that_ends_inside(
    serve: Serve, crawl: Crawl, spider: type[Follows], is_refused: bool
) -> None:
    """Not even to the policies, neither for the page nor for what its site wants to be used with it. What has changed behind
    comity's own middleware comes through, as what should not have been crawled."""
    inside = serve({"/secret": "secret"})
    terms = "ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-allow-index: / must-use-resource=/short.txt"
    public = serve({"/robots.txt": terms, "/a": page(), "/short.txt": "In short"}, host=PUBLIC)
    settings = {
        "COMITY_ARRANGEMENTS": f"{PUBLIC}:must-use-resource",
        "COMITY_DROP_UNUSABLE": False,
        "FINAL": inside.url("/secret"),
    }
    (item,) = crawl(spider, settings, urls=[public.url("/a")]).items
    assert "/a" in public.paths
    assert inside.seen == []
    if is_refused:
        assert RULE in item["why"]
    else:
        uses = item["permissions"]["uses"]
        assert (uses["crawl"]["verdict"], uses["index"]["verdict"]) == ("deny", "deny")


@pytest.mark.requirement("SEC-7")
def test_a_page_may_end_where_the_operator_goes(serve: Serve, crawl: Crawl) -> None:
    """Or at the public, or at its own kind."""
    inner, public = serve({"/b": page()}), serve({"/b": page()}, host=PUBLIC)
    start = serve({"/a": page(), "/b": page()})
    for final in (inner.url("/b"), public.url("/b"), start.url("/b")):
        assert fetched(crawl(EndsAtTheServer, {"FINAL": final}, urls=[start.url("/a")])) == {final}
    outside, urls = serve({"/a": page()}, host=PUBLIC), [inner.url("/b")]
    crawled = crawl(EndsAtTheServer, {"FINAL": inner.url("/b")}, urls=[*urls, outside.url("/a")])
    assert [item["url"] for item in crawled.items] == urls * 2


@pytest.mark.requirement("SEC-7")
def test_nor_by_files_of_its_items(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    inside = serve({"/secret": "secret"})
    public = serve(
        {"/a": page(inside.url("/secret"), "/open", "/moved"), "/open": "open"}, host=PUBLIC
    )
    public.routes["/moved"] = moved(serve, inside.url("/secret"))
    settings = {"FILES_STORE": str(tmp_path / "files"), "MEDIA_ALLOW_REDIRECTS": True}
    (item,) = crawl(Files, settings, urls=[public.url("/a")]).items
    assert [file["url"] for file in item["files"]] == [public.url("/open")]
    assert inside.seen == []


class BySitemap(SitemapSpider):
    """Begins with robots.txt, or with the sitemap itself."""

    name = "by-sitemap"
    urls: tuple[str, ...] = ()
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {Looks: 0}}  # type: ignore[misc]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sitemap_urls = self.urls

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


def sitemap(*urls: str) -> str:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


@pytest.mark.requirement("SEC-7")
def test_nor_by_sitemaps(serve: Serve, crawl: Crawl) -> None:
    inside = serve({"/secret": "<p>secret</p>", "/sitemap.xml": sitemap("http://127.0.0.1/")})
    public = serve({"/a": page()}, host=PUBLIC)
    public.routes["/robots.txt"] = (
        f"Sitemap: {public.url('/sitemap.xml')}\nSitemap: {inside.url('/sitemap.xml')}\n"
    )
    public.routes["/sitemap.xml"] = serve.Answer(
        sitemap(public.url("/a"), inside.url("/secret")), content_type="text/xml"
    )
    crawled = crawl(BySitemap, urls=[public.url("/robots.txt")])
    assert fetched(crawled) == {public.url("/a")}
    assert crawled.stats[f"comity/access/deny/{RULE}"] == 2
    assert inside.seen == []


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("spider", [Follows, FollowsInline])
def test_nor_to_what_is_on_this_machine(
    serve: Serve, crawl: Crawl, tmp_path: Path, spider: type[Follows]
) -> None:
    """file: and s3: name data of the operator's own; what a page has in a data: URL is its own."""
    secret = tmp_path / "secret.html"
    secret.write_text("secret")
    data = "data:text/html,embedded"
    public = serve({"/a": page(secret.as_uri(), "s3://bucket/key", data)}, host=PUBLIC)
    crawled = crawl(spider, urls=[public.url("/a")])
    assert fetched(crawled) == {public.url("/a"), data}
    assert refused(crawled) == {secret.as_uri(), "s3://bucket/key"}


# What may be


@pytest.mark.requirement("SEC-7")
def test_where_the_operators_own_data_leads_the_operator_does(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    inside = serve({"/a": page()})
    urls = tmp_path / "urls.html"
    urls.write_text(page(inside.url("/a")))
    assert fetched(crawl(Follows, urls=[urls.as_uri()])) == {urls.as_uri(), inside.url("/a")}


@pytest.mark.requirement("SEC-7")
def test_the_operator_goes_anywhere_and_an_inner_site_to_its_own_kind(
    serve: Serve, crawl: Crawl
) -> None:
    """And to the public; but not from one kind to another, nor from the public back."""
    inner = serve({"/c": page("/d"), "/d": page()}, host="127.0.0.4")
    private = serve({"/secret": page()}, host="127.0.0.3")
    loopback = serve({"/secret": page()})
    public = serve({"/p": page(loopback.url("/secret"))}, host=PUBLIC)
    start = serve(
        {"/a": page(inner.url("/c"), private.url("/secret"), public.url("/p"))}, host="127.0.0.5"
    )
    crawled = crawl(Follows, urls=[start.url("/a")])
    assert fetched(crawled) == {start.url("/a"), inner.url("/c"), inner.url("/d"), public.url("/p")}
    assert refused(crawled) == {private.url("/secret"), loopback.url("/secret")}
    assert (private.seen, loopback.seen) == ([], [])


@pytest.mark.requirement("SEC-7")
def test_what_a_callback_has_waited_for_leads_too(serve: Serve, crawl: Crawl) -> None:
    """A public page that a callback of an inner one has had gets no rights from that."""
    secret = serve({"/secret": page()})
    public = serve({"/p": page(secret.url("/secret"))}, host=PUBLIC)
    inner = serve({"/a": page(public.url("/p"))}, host="127.0.0.4")
    crawled = crawl(FollowsTwiceInline, urls=[inner.url("/a")])
    assert (public.paths, refused(crawled)) == (["/robots.txt", "/p"], {secret.url("/secret")})
    assert secret.seen == []


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("spider", [Follows, FollowsInline])
def test_what_the_operator_has_asked_for_others_may_link(
    serve: Serve, crawl: Crawl, spider: type[Follows]
) -> None:
    """The origin, not only the page; another port is another origin."""
    inside, other = (serve({"/a": page(), "/b": page()}) for _ in range(2))
    public = serve({"/a": page(inside.url("/b"), other.url("/b"))}, host=PUBLIC)
    crawled = crawl(spider, urls=[inside.url("/a"), public.url("/a")])
    assert fetched(crawled) == {inside.url("/a"), inside.url("/b"), public.url("/a")}
    assert refused(crawled) == {other.url("/b")}
    assert other.seen == []


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("spider", [Follows, pytest.param(FollowsInline, marks=pytest.mark.slow)])
def test_the_operator_may_allow_it(serve: Serve, crawl: Crawl, spider: type[Follows]) -> None:
    """For pages. What policy files lead to stays where it is (SEC-2)."""
    inside = serve({"/a": page(), "/robots.txt": "User-agent: *\nDisallow: /private\n"})
    public = serve({"/a": page(inside.url("/a"), inside.url("/private"), "/moved")}, host=PUBLIC)
    public.routes["/moved"] = moved(serve, inside.url("/a?moved"))
    elsewhere = serve(
        {"/robots.txt": moved(serve, inside.url("/robots.txt")), "/a": page()}, host=PUBLIC
    )
    settings = {"COMITY_INNER": "allow", "RETRY_ENABLED": False}
    crawled = crawl(spider, settings, urls=[public.url("/a"), elsewhere.url("/a")])
    assert fetched(crawled) == {public.url("/a"), inside.url("/a"), inside.url("/a?moved")}
    assert f"comity/access/deny/{RULE}" not in crawled.stats
    assert crawled.stats["comity/access/deny/robots.disallow"] == 1
    assert crawled.stats["comity/access/deny/robots.unreachable"] == 1


class Feeds:
    """An extension that hands the operator's own URLs to the engine, whenever the crawl has nothing to do."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        crawler.signals.connect(self.idle, signals.spider_idle)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Feeds:
        return cls(crawler)

    def idle(self, spider: Any) -> None:
        assert self.crawler.engine
        while spider.later:
            self.crawler.engine.crawl(Request(spider.later.pop()))


class Fed(Follows):
    name = "fed"
    later: list[str]
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {Looks: 0, Feeds: 1}}  # type: ignore[misc]


@pytest.mark.requirement("SEC-7")
def test_what_an_extension_hands_to_the_engine_is_the_operators_wish(
    serve: Serve, crawl: Crawl
) -> None:
    """Though a page was the last that the engine has handled."""
    inside = serve({"/a": page("/b"), "/b": page()})
    public = serve({"/a": page(inside.url("/early")), "/b": page()}, host=PUBLIC)
    crawled = crawl(Fed, urls=[public.url("/a")], later=[inside.url("/a")])
    assert fetched(crawled) == {public.url("/a"), inside.url("/a"), inside.url("/b")}
    assert refused(crawled) == {inside.url("/early")}


@pytest.mark.requirement("SEC-7")
def test_what_an_earlier_crawl_has_learnt_bars_the_way_too(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """The policies of an inner site are in the store, where the operator's crawl has put them."""
    inside = serve({"/a": page(), "/robots.txt": "User-agent: *\nAllow: /\n"})
    public = serve({"/a": page(inside.url("/a"))}, host=PUBLIC)
    crawl(Follows, urls=[inside.url("/a")])
    assert inside.paths == ["/robots.txt", "/a"]
    crawled = crawl(Follows, urls=[public.url("/a")])
    assert refused(crawled) == {inside.url("/a")}
    assert inside.paths == ["/robots.txt", "/a"]
    crawl(Follows, urls=[inside.url("/a")])
    assert inside.paths == ["/robots.txt", "/a", "/a"]
    store = PolicyStore(tmp_path / "policies.sqlite")
    assert store.load(inside.origin)["/robots.txt"].failure is None
    store.close()


@pytest.mark.requirement("SEC-7")
def test_an_inner_site_is_known_over_its_redirects(serve: Serve, crawl: Crawl) -> None:
    """Whose policies are all had from another inner site, as where http leads to https."""
    secure = serve({"/robots.txt": "", "/a": page()})
    inside = serve(
        {path: moved(serve, secure.url("/robots.txt")) for path in WELL_KNOWN} | {"/a": page()}
    )
    public = serve({"/a": page(inside.url("/secret"))}, host=PUBLIC)
    crawl(Follows, urls=[inside.url("/a")])
    before = inside.paths
    assert refused(crawl(Follows, urls=[public.url("/a")])) == {inside.url("/secret")}
    assert inside.paths == before


# Past the crawl, and past comity's own look-up


class Stops(Follows):
    """Ends the crawl with its requests in the queue."""

    name = "stops"

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        raise CloseSpider("enough")


class GoesOn(Follows):
    name = "stops"


@pytest.mark.requirement("SEC-7")
def test_who_led_to_a_request_survives_jobdir(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    inside = serve({"/secret": page()})
    links = [inside.url("/secret"), *(f"/{number}" for number in range(3))]
    public = serve(
        {"/a": page(*links), **{f"/{number}": page() for number in range(3)}}, host=PUBLIC
    )
    settings = {"JOBDIR": str(tmp_path / "job")}
    assert refused(crawl(Stops, settings, urls=[public.url("/a")])) == set()
    assert public.paths == ["/robots.txt", "/a"]
    second = crawl(GoesOn, settings, urls=[])
    assert fetched(second) == {public.url(f"/{number}") for number in range(3)}
    assert refused(second) == {inside.url("/secret")}
    assert inside.seen == []


class FollowsRebound(Follows):
    name = "follows-rebound"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {LooksRebound: 0},
        "HTTPCACHE_ENABLED": True,
    }


@pytest.mark.requirement("SEC-7")
def test_an_answer_from_elsewhere_is_refused(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    """The name was public when the policies were asked for, and is not when the page is. The answer reaches no callback, cache or
    item, and its redirects are not followed."""
    inside = serve({"/secret": page("/more"), "/moved": ""})
    inside.routes["/moved"] = moved(serve, inside.url("/secret"))
    policies = serve({"/robots.txt": "User-agent: *\nAllow: /\n"}, host=PUBLIC, port=inside.port)
    links = [f"http://localhost:{inside.port}/{path}" for path in ("secret", "moved")]
    public = serve({"/a": page(*links)}, host=PUBLIC)
    settings = {"HTTPCACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # the second time, nothing of it is in the cache
        crawled = crawl(FollowsRebound, settings, urls=[public.url("/a")])
        assert fetched(crawled) == {public.url("/a")}
        assert {item["refused"] for item in crawled.items if "refused" in item} == set(links)
        assert crawled.stats[f"comity/access/stopped/{RULE}"] == 2
        assert f"comity/access/deny/{RULE}" not in crawled.stats
    assert policies.paths == ["/robots.txt"]
    assert sorted(inside.paths) == ["/moved", "/moved", "/secret", "/secret"]


class FollowsMoving(Follows):
    name = "follows-moving"
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {LooksMoving: 0}}  # type: ignore[misc]


class Rewrites:
    """A receiver that drops header fields, and makes a request while it handles the signal."""

    url = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Rewrites:
        rewrites = cls()
        rewrites.crawler = crawler
        crawler.signals.connect(rewrites.received, signals.headers_received)
        return rewrites

    crawler: Crawler

    def received(self, headers: Headers, request: Request) -> None:
        if headers.pop("X-Inside", None):
            headers.clear()
            url = self.crawler.settings["INSIDE"]
            self.crawler.engine.crawl(Request(url))


class Receives(Follows):
    name = "receives"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {Looks: 0, Rewrites: 1}
    }


class Stopping:
    """Ends downloads in such a way that errbacks get to see what has come."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Stopping:
        stopping = cls()
        crawler.signals.connect(stopping.received, signals.bytes_received)
        return stopping

    def received(self, request: Request) -> None:
        raise StopDownload(fail=True)


class ReadsFailures(Follows):
    """Follows the links of what came before a download was stopped."""

    name = "reads-failures"
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {Looks: 0, Stopping: 1}}  # type: ignore[misc]

    def failed(self, failure: Any) -> Any:
        yield super().failed(failure)
        if (response := getattr(failure.value, "response", None)) is not None:
            for link in response.css("a::attr(href)").getall():
                yield Request(response.urljoin(link), errback=self.failed)


@pytest.mark.requirement("SEC-7")
def test_what_an_errback_makes_of_a_response_its_site_leads_to(serve: Serve, crawl: Crawl) -> None:
    inside = serve({"/secret": page()})
    public = serve({"/a": page(inside.url("/secret"))}, host=PUBLIC)
    crawled = crawl(ReadsFailures, urls=[public.url("/a")])
    assert crawled.stats[f"comity/access/deny/{RULE}"] == 1
    assert inside.seen == []


class FetchesAgain:
    """A middleware of the project that asks for something else where a header field says so, by a request of its own."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        other = response.headers.get("X-Other")
        return Request(other.decode()) if other else response


class WithFetchesAgain(Follows):
    name = "with-fetches-again"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {Looks: 0},
        "DOWNLOADER_MIDDLEWARES": {FetchesAgain: 500},
    }


@pytest.mark.requirement("SEC-7")
def test_what_a_middleware_makes_of_a_response_its_site_leads_to(
    serve: Serve, crawl: Crawl
) -> None:
    """Many at a time, over connections that stay open, so that each has to be told apart."""
    inside, free = serve({"/secret": page()}), serve({"/free": page()})
    public = serve({"/a": page(*(f"/{number}" for number in range(9)))}, host=PUBLIC)
    for number in range(9):
        other = serve.Answer(page(), headers={"X-Other": inside.url(f"/secret?{number}")})
        public.routes[f"/{number}"] = other if number % 2 else page()
    start = serve(
        {"/a": serve.Answer("", headers={"X-Other": free.url("/free")})}, host="127.0.0.4"
    )
    crawled = crawl(WithFetchesAgain, urls=[start.url("/a"), public.url("/a")])
    assert crawled.stats[f"comity/access/deny/{RULE}"] == 4
    assert free.url("/free") in fetched(crawled)
    assert inside.seen == []


class ThroughProxy:
    """A middleware of the project that sends pages through a proxy."""

    def __init__(self, proxy: str) -> None:
        self.proxy = proxy

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ThroughProxy:
        return cls(crawler.settings["COMITY_PROXY"])

    def process_request(self, request: Request) -> None:
        request.meta["proxy"] = self.proxy


class Proxied(Follows):
    name = "proxied"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {Looks: 0},
        "DOWNLOADER_MIDDLEWARES": {ThroughProxy: 740},
    }


@pytest.mark.requirement("SEC-7")
def test_through_a_proxy_only_addresses_in_urls_are_judged(serve: Serve, crawl: Crawl) -> None:
    """Where names lead, it knows alone. Its own address is nobody's."""
    proxy = serve({f"http://{host}.test/robots.txt": "" for host in ("one", "two")})
    proxy.routes["http://one.test/a"] = page("http://two.test/a", "http://127.0.0.1/a")
    proxy.routes["http://two.test/a"] = page("http://10.0.0.1/a")
    crawled = crawl(Proxied, {"COMITY_PROXY": proxy.origin}, urls=["http://one.test/a"])
    assert fetched(crawled) == {"http://one.test/a", "http://two.test/a"}
    assert refused(crawled) == {"http://127.0.0.1/a", "http://10.0.0.1/a"}


class WithSchedulerOfScrapy(Follows):
    name = "with-scheduler-of-scrapy"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "EXTENSIONS": {Looks: 0},
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    }


@pytest.mark.requirement("SEC-7")
def test_with_another_scheduler(serve: Serve, crawl: Crawl) -> None:
    inside = serve({"/secret": page()})
    public = serve(
        {
            "/a": page(inside.url("/secret"), "/moved"),
            "/moved": moved(serve, inside.url("/secret?2")),
        },
        host=PUBLIC,
    )
    crawled = crawl(WithSchedulerOfScrapy, urls=[public.url("/a")])
    assert crawled.stats[f"comity/access/deny/{RULE}"] == 2
    assert inside.seen == []


class Claims(Follows):
    """Writes into the key what it likes."""

    name = "claims"
    claim = ""

    def request(self, response: Response, url: str) -> Request:
        return Request(url, meta={KEY: self.claim}, errback=self.failed)


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize(
    "claim",
    [
        "operator",
        *(pytest.param(claim, marks=pytest.mark.slow) for claim in ("loopback", "", "public")),
    ],
)
def test_nothing_in_meta_gives_rights(serve: Serve, crawl: Crawl, claim: str) -> None:
    inside = serve({"/secret": page()})
    public = serve({"/a": page(inside.url("/secret"))}, host=PUBLIC)
    assert refused(crawl(Claims, urls=[public.url("/a")], claim=claim)) == {inside.url("/secret")}
    assert inside.seen == []
