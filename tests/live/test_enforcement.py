"""What is refused for every declared use is not fetched, by what the servers saw, in both modes of Scrapy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from scrapy import Spider
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK
from scrapy.pipelines import media
from scrapy.pipelines.media import MediaPipeline

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

# Up to Scrapy 2.17 media pipelines log each refused file as an error.
LOGS_REFUSED_FILES = not hasattr(media, "_MediaRequestFiltered")

OPEN = "User-agent: *\nDisallow:\n"
NO_TRAINING = f"{OPEN}Content-Signal: ai-train=no\n"
TRAIN: dict[str, Any] = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow"}
INDEX: dict[str, Any] = {"COMITY_USES": "index", "COMITY_DEFAULTS": "index:allow"}
PATIENCE = 60  # seconds after which a server sends the body that nobody should want


def answer(body: str | bytes, status: int = 200, /, **headers: str) -> Any:
    from tests.conftest import Answer

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        body,
        status=status,
        content_type=named.pop("Content-Type", "text/html; charset=utf-8"),
        headers=named,
    )


def outcome(crawled: Crawled) -> dict[str, Any]:
    return {item["asked"]: item.get("body", item.get("error")) for item in crawled.items}


class Urls(Spider):
    """Asks for URLs and says what came of each."""

    name = "urls"
    urls: list[str]
    method = "GET"

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(
                url, self.parse, self.method, errback=self.failed, cb_kwargs={"asked": url}
            )

    def parse(self, response: Response, asked: str) -> Any:
        yield {
            "asked": asked,
            "body": response.text if hasattr(response, "text") else len(response.body),
        }

    def failed(self, failure: Any) -> Any:
        yield {"asked": failure.request.cb_kwargs["asked"], "error": str(failure.value)}


TOLD = {"COMITY_DROP_UNUSABLE": False}  # or what errbacks say is dropped


class TestSites:
    @pytest.mark.requirement("MEET-3", "SIG-1")
    def test_one_that_refuses_every_declared_use_is_not_crawled(
        self, serve: Serve, crawl: Crawl
    ) -> None:
        refusing = serve({"/robots.txt": NO_TRAINING, "/a": "a", "/b": "b"})
        silent = serve(
            {
                "/robots.txt": OPEN,
                "/a": "a",
                "/away": answer("moved", 302, Location=refusing.url("/c")),
            }
        )
        asked = [refusing.url("/a"), silent.url("/a"), refusing.url("/b"), silent.url("/away")]
        crawled = crawl(Urls, TRAIN | TOLD, urls=asked)
        assert refusing.paths == ["/robots.txt"]
        assert sorted(silent.paths) == ["/a", "/away", "/robots.txt"]
        outcomes = outcome(crawled)
        assert outcomes.pop(silent.url("/a")) == "a"
        assert len(outcomes) == 3
        for error in outcomes.values():
            assert error.startswith("deny: content-signal.disallow (")
            assert f"{refusing.url('/robots.txt')}:3: 'Content-Signal: ai-train=no'" in error
        assert crawled.stats["comity/sites/unusable"] == 1
        assert crawled.stats["comity/access/deny/content-signal.disallow"] == 3
        assert (
            crawled.log.count(
                f"{refusing.origin} is not crawled: it refuses every one of COMITY_USES (train)"
            )
            == 1
        )
        assert "COMITY_SKIP_UNUSABLE=False" in crawled.log

    @pytest.mark.requirement("META-3")
    def test_its_files_are_not_fetched_for_the_pages_of_others(
        self, serve: Serve, crawl: Crawl, tmp_path: Path
    ) -> None:
        refusing = serve({"/robots.txt": NO_TRAINING, "/f.pdf": "f"})
        silent = serve({"/robots.txt": OPEN, "/a": "a"})
        crawled = crawl(
            Embedding,
            TRAIN | files(tmp_path),
            chain=[silent.url("/a")],
            files=[refusing.url("/f.pdf")],
        )
        assert refusing.paths == ["/robots.txt"]
        assert [item["files"] for item in crawled.items] == [[]]

    @pytest.mark.requirement("MEET-3", "USE-14")
    @pytest.mark.parametrize(
        ("robots", "settings"),
        [
            (NO_TRAINING, {"COMITY_SKIP_UNUSABLE": False}),
            (NO_TRAINING, {"COMITY_USES": ""}),
            (NO_TRAINING, {"COMITY_USES": "train,index"}),
            (
                NO_TRAINING,
                {
                    "COMITY_ARRANGEMENTS": {
                        "127.0.0.1": {"uses": ["train"], "reference": "contract 7"}
                    }
                },
            ),
            (f"{OPEN}Content-Usage: /b/ train-ai=n\n", {}),
            ("User-agent: other\nContent-Usage: train-ai=n\n", {}),
            (OPEN, {"COMITY_DEFAULTS": "train:deny"}),
        ],
        ids=["setting", "no-uses", "another-use", "licence", "a-part", "another-agent", "default"],
    )
    def test_others_are_crawled(
        self, serve: Serve, crawl: Crawl, robots: str, settings: Any
    ) -> None:
        server = serve({"/robots.txt": robots, "/a": "a"})
        crawled = crawl(Urls, TRAIN | TOLD | settings, urls=[server.url("/a")])
        assert outcome(crawled) == {server.url("/a"): "a"}
        assert "comity/sites/unusable" not in crawled.stats


class Holding:
    """Sends the header fields of a page, and its body only when nobody has gone away in PATIENCE seconds."""

    def __init__(self, **headers: str) -> None:
        self._headers = headers
        self.sent: list[bool] = []  # of each request: whether the body went out to the end

    def __call__(self, handler: Any) -> None:
        body = b"<p>held</p>"
        handler.send_response(200)
        for name, value in {
            "Content-Type": "text/html",
            "Content-Length": str(len(body)),
            **self._headers,
        }.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.flush()
        handler.connection.settimeout(PATIENCE)
        try:
            gone = handler.connection.recv(1) == b""
        except TimeoutError:
            gone = False
        except OSError:
            gone = True
        self.sent.append(not gone)
        if not gone:
            handler.wfile.write(body)


class TestHeaders:
    @pytest.mark.requirement("META-1", "META-3", "USE-13")
    @pytest.mark.parametrize(
        ("field", "value", "rule"),
        [
            ("X_Robots_Tag", "noai", "robots-meta.disallow"),
            ("X_Robots_Tag", "testbot: none, noml", "robots-meta.disallow"),
            ("Content_Usage", "train-ai=n", "content-usage.disallow"),
        ],
    )
    def test_a_body_that_nobody_may_use_is_not_read(
        self, serve: Serve, crawl: Crawl, field: str, value: str, rule: str
    ) -> None:
        held = Holding(**{field: value})
        server = serve({"/robots.txt": OPEN, "/a": held})
        crawled = crawl(Urls, TRAIN | TOLD, urls=[server.url("/a")])
        assert server.paths == ["/robots.txt", "/a"]
        assert held.sent == [False]
        error = outcome(crawled)[server.url("/a")]
        assert error.startswith(f"deny: {rule} (")
        assert server.url("/a") in error
        assert value.rpartition(" ")[2] in error
        assert f"Refused the response to <GET {server.url('/a')}>: deny: {rule} (" in crawled.log
        assert (
            crawled.stats["comity/access/stopped"]
            == crawled.stats[f"comity/access/stopped/{rule}"]
            == 1
        )
        assert "Traceback" not in crawled.log

    @pytest.mark.requirement("META-3")
    def test_of_files_too(self, serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
        held = Holding(X_Robots_Tag="noai", Content_Type="image/png")
        server = serve({"/robots.txt": OPEN, "/a": "a", "/f.png": held})
        crawled = crawl(
            Embedding,
            TRAIN | files(tmp_path),
            chain=[server.url("/a")],
            files=[server.url("/f.png")],
        )
        assert held.sent == [False]
        assert [item["files"] for item in crawled.items] == [[]]
        assert LOGS_REFUSED_FILES or "ERROR" not in crawled.log

    @pytest.mark.requirement("META-1", "META-4")
    @pytest.mark.parametrize(
        ("headers", "settings"),
        [
            ({"X_Robots_Tag": "noai"}, {"COMITY_SKIP_UNUSABLE": False}),
            ({"X_Robots_Tag": "noai"}, {"COMITY_USES": ""}),
            ({"X_Robots_Tag": "noai"}, {"COMITY_USES": "train,index"}),
            ({"X_Robots_Tag": "noai"}, {"COMITY_ARRANGEMENTS": {"127.0.0.1": {"uses": ["train"]}}}),
            ({"X_Robots_Tag": "otherbot: nofollow, noai"}, {}),
            ({"X_Robots_Tag": "noimageai"}, {}),
            ({}, {"COMITY_DEFAULTS": "train:deny"}),
        ],
        ids=["setting", "no-uses", "another-use", "licence", "another-agent", "images", "default"],
    )
    def test_other_bodies_are_read(
        self, serve: Serve, crawl: Crawl, headers: dict[str, str], settings: Any
    ) -> None:
        server = serve({"/robots.txt": OPEN, "/a": answer("a", **headers)})
        crawled = crawl(Urls, TRAIN | TOLD | settings, urls=[server.url("/a")])
        assert outcome(crawled) == {server.url("/a"): "a"}
        assert "comity/access/stopped" not in crawled.stats

    def test_redirects_are_followed_and_failures_asked_for_again(
        self, serve: Serve, crawl: Crawl
    ) -> None:
        def failing(handler: Any) -> Any:
            first = server.paths.count("/again") == 1
            return answer(
                "at last", 500 if first else 200, **({"X_Robots_Tag": "noai"} if first else {})
            )

        moved = answer("moved", 302, X_Robots_Tag="noai", Location="/there")
        server = serve({"/robots.txt": OPEN, "/moved": moved, "/there": "there", "/again": failing})
        crawled = crawl(Urls, TRAIN | TOLD, urls=[server.url("/moved"), server.url("/again")])
        assert sorted(server.paths) == ["/again", "/again", "/moved", "/robots.txt", "/there"]
        assert outcome(crawled) == {server.url("/moved"): "there", server.url("/again"): "at last"}
        assert "comity/access/stopped" not in crawled.stats

    @pytest.mark.requirement("RATE-1")
    @pytest.mark.parametrize("status", [429, 503])
    def test_an_answer_that_puts_the_request_off_refuses_no_later_one(
        self, serve: Serve, crawl: Crawl, status: int
    ) -> None:
        """It comes to the same request, which waits in the queue meanwhile."""

        def overloaded(handler: Any) -> Any:
            first = server.paths.count("/again") == 1
            return (
                answer("sorry", status, X_Robots_Tag="noai", Retry_After="1")
                if first
                else answer("at last")
            )

        server = serve({"/robots.txt": OPEN, "/again": overloaded})
        crawled = crawl(Urls, TRAIN | TOLD, urls=[server.url("/again")])
        assert server.paths == ["/robots.txt", "/again", "/again"]
        assert outcome(crawled) == {server.url("/again"): "at last"}
        assert "comity/access/stopped" not in crawled.stats

    def test_where_a_redirect_leads_is_kept_in_the_cache(
        self, serve: Serve, crawl: Crawl, tmp_path: Path
    ) -> None:
        moved = answer("moved", 302, X_Robots_Tag="noai", Location="/there")
        server = serve({"/robots.txt": OPEN, "/moved": moved, "/there": "there"})
        settings = (
            TRAIN | TOLD | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
        )
        for _ in range(2):
            assert outcome(crawl(Urls, settings, urls=[server.url("/moved")])) == {
                server.url("/moved"): "there"
            }
        assert server.paths == ["/robots.txt", "/moved", "/there"]

    def test_a_redirect_that_is_not_followed_is_refused(self, serve: Serve, crawl: Crawl) -> None:
        server = serve(
            {
                "/robots.txt": OPEN,
                "/a": answer("moved", 302, X_Robots_Tag="noai", Location="/there"),
            }
        )
        settings = {"REDIRECT_ENABLED": False, "HTTPERROR_ALLOW_ALL": True}
        crawled = crawl(Urls, TRAIN | TOLD | settings, urls=[server.url("/a")])
        assert outcome(crawled)[server.url("/a")].startswith("deny: robots-meta.disallow (")

    @pytest.mark.parametrize(("method", "body"), [("HEAD", "a"), ("GET", "")])
    def test_responses_without_a_body_are_refused_too(
        self, serve: Serve, crawl: Crawl, method: str, body: str
    ) -> None:
        server = serve({"/robots.txt": OPEN, "/a": answer(body, X_Robots_Tag="noai")})
        crawled = crawl(Urls, TRAIN | TOLD, urls=[server.url("/a")], method=method)
        assert outcome(crawled)[server.url("/a")].startswith("deny: robots-meta.disallow (")

    @pytest.mark.parametrize("first", [{}, {"COMITY_USES": ""}], ids=["refused", "used"])
    def test_a_cache_changes_nothing(
        self, serve: Serve, crawl: Crawl, tmp_path: Path, first: Any
    ) -> None:
        """It has nothing that was cut, and what it has from other crawls is refused as the server's own answer is."""
        server = serve({"/robots.txt": OPEN, "/a": answer("a", X_Robots_Tag="noai")})
        settings = (
            TRAIN | TOLD | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
        )
        crawl(Urls, settings | first, urls=[server.url("/a")])
        crawled = crawl(Urls, settings, urls=[server.url("/a")])
        assert outcome(crawled)[server.url("/a")].startswith("deny: robots-meta.disallow (")
        assert server.paths.count("/a") == (1 if first else 2)
        used = crawl(Urls, settings | {"COMITY_USES": ""}, urls=[server.url("/a")])
        assert outcome(used) == {server.url("/a"): "a"}

    @pytest.mark.requirement("META-2")
    @pytest.mark.parametrize(
        "content_type",
        [
            "application/xml",
            *(
                pytest.param(other, marks=pytest.mark.slow)
                for other in ("text/xml; charset=utf-8", "application/x-gzip")
            ),
        ],
    )
    def test_sitemaps_are_read(self, serve: Serve, crawl: Crawl, content_type: str) -> None:
        """Nobody wants them in an index, and their links are what a crawl begins with."""
        server = serve(
            {
                "/robots.txt": OPEN,
                "/a": answer("<urlset/>", X_Robots_Tag="noindex", Content_Type=content_type),
            }
        )
        crawled = crawl(Urls, INDEX | TOLD, urls=[server.url("/a")])
        assert "deny" not in str(outcome(crawled)[server.url("/a")])

    @pytest.mark.requirement("ACAP-33")
    def test_what_policies_ask_for_is_read(self, serve: Serve, crawl: Crawl) -> None:
        """Neither a policy file nor a resource is content of which use is made."""
        robots = "ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-allow-index: / must-use-resource=/r.txt\nACAP-disallow-crawl: /no\n"
        refused = {"X_Robots_Tag": "noindex, noai", "Content_Type": "text/plain"}
        server = serve(
            {
                "/robots.txt": answer(robots, **refused),
                "/a": "a",
                "/r.txt": answer("instead", **refused),
                "/no": "no",
            }
        )
        settings = INDEX | {"COMITY_ARRANGEMENTS": "127.0.0.1:must-use-resource"}
        crawled = crawl(Urls, settings, urls=[server.url("/a"), server.url("/no")])
        assert server.paths == ["/robots.txt", "/a", "/r.txt"]
        [item] = crawled.items
        assert item["permissions"]["uses"]["index"]["must_use"][0]["content"] == "instead"


class Links(Spider):
    """Follows what its pages link, and asks for `more` besides."""

    name = "links"
    url: str
    more: tuple[str, ...] = ()

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Any) -> Any:
        for href in [*response.css("a::attr(href), area::attr(href)").getall(), *self.more]:
            yield response.follow(href, self.read)

    def read(self, response: Response) -> None:
        pass


LINKS = """<a href="/one" rel="noopener NoFollow">1</a> <a href="/two#top" rel=nofollow>2</a> <a href="/two">2</a>
    <a href="/three" rel="ugc sponsored">3</a> <area href="/four" rel="nofollow"> <a href="/five">nofollow</a>"""


class TestLinks:
    OTHERS = ("/five", "/three", "/two")

    def follow(
        self, serve: Serve, crawl: Crawl, page: Any, **settings: Any
    ) -> tuple[list[str], Crawled]:
        paths = ("/one", "/two", "/three", "/four", "/five", "/six", "/b/one", "/robots")
        server = serve({"/robots.txt": OPEN, "/": page} | dict.fromkeys(paths, "page"))
        crawled = crawl(Links, settings, url=server.url("/"), more=settings.pop("more", ()))
        return sorted(set(server.paths) - {"/", "/robots.txt"}), crawled

    @pytest.mark.requirement("MEET-2")
    def test_rel_nofollow_where_it_is_set(self, serve: Serve, crawl: Crawl) -> None:
        followed, crawled = self.follow(serve, crawl, LINKS, COMITY_REL_NOFOLLOW=True)
        assert followed == sorted(self.OTHERS)
        assert crawled.stats["comity/links/rel-nofollow"] == 2
        assert "comity/links/not-followed" not in crawled.stats

    @pytest.mark.requirement("MEET-2")
    def test_rel_nofollow_where_it_is_not_set(self, serve: Serve, crawl: Crawl) -> None:
        followed, crawled = self.follow(serve, crawl, LINKS)
        assert followed == sorted((*self.OTHERS, "/one", "/four"))
        assert "comity/links/rel-nofollow" not in crawled.stats

    @pytest.mark.requirement("MEET-2")
    def test_rel_nofollow_with_a_base(self, serve: Serve, crawl: Crawl) -> None:
        page = '<base href="/b/"><a href="one" rel="nofollow">1</a><a href="/one">1</a>'
        assert self.follow(serve, crawl, page, COMITY_REL_NOFOLLOW=True)[0] == ["/one"]

    @pytest.mark.requirement("MEET-2")
    def test_rel_nofollow_speaks_of_links_in_html(self, serve: Serve, crawl: Crawl) -> None:
        page = '<a href="/one" rel="nofollow">1</a>'
        assert self.follow(serve, crawl, page, COMITY_REL_NOFOLLOW=True, more=["/six"])[0] == [
            "/six"
        ]
        text = answer(page, Content_Type="text/plain")
        assert self.follow(serve, crawl, text, COMITY_REL_NOFOLLOW=True)[0] == ["/one"]

    @pytest.mark.requirement("MEET-2", "META-1", "META-5")
    @pytest.mark.parametrize(
        "page",
        [
            f'<meta name="robots" content="nofollow">{LINKS}',
            f'<meta name="TestBot" content="none">{LINKS}',
            f'<meta property="robots" content="noindex,nofollow">{LINKS}',
            f'<meta http-equiv="X-Robots-Tag" content="nofollow">{LINKS}',
            lambda handler: answer(LINKS, X_Robots_Tag="nofollow"),
        ],
        ids=["meta", "meta-agent", "property", "http-equiv", "header"],
    )
    def test_nofollow_of_the_page_refuses_all(self, serve: Serve, crawl: Crawl, page: Any) -> None:
        followed, crawled = self.follow(serve, crawl, page)
        assert followed == []
        assert crawled.stats["comity/links/not-followed"] == 6


def files(folder: Path) -> dict[str, Any]:
    pipelines = {"scrapy.pipelines.files.FilesPipeline": 1}
    return {"ITEM_PIPELINES": pipelines, "FILES_STORE": str(folder / "files")}


class Embedding(Spider):
    """One page after the other, an item of each with the same files; `last` is asked for behind them, in both ways."""

    name = "embedding"
    chain: list[str]
    files: list[str]
    last: str = ""

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.chain[0], cb_kwargs={"number": 0})

    async def parse(self, response: Response, number: int) -> AsyncIterator[Any]:
        yield {"url": response.url, "file_urls": self.files, "files": []}
        if number + 1 < len(self.chain):
            yield Request(self.chain[number + 1], cb_kwargs={"number": number + 1})
        elif self.last:
            assert self.crawler.engine
            await self.crawler.engine.download_async(
                Request(f"{self.last}?now", callback=NO_CALLBACK)
            )
            yield Request(f"{self.last}?later", self.read)

    def read(self, response: Response) -> None:
        pass


class Together(Embedding):
    """All pages at once."""

    async def start(self) -> AsyncIterator[Any]:
        for url in self.chain:
            yield Request(url, cb_kwargs={"number": len(self.chain)})


class Others(MediaPipeline):
    """A media pipeline of somebody's own, which makes requests one by one and keeps what came."""

    def get_media_requests(self, item: Any, info: Any) -> Iterator[Request]:  # type: ignore[override]  # as many do
        for url in item["file_urls"]:
            yield Request(url)

    def media_to_download(self, request: Request, info: Any, *, item: Any = None) -> None:
        return None

    def media_downloaded(
        self, response: Response, request: Request, info: Any, *, item: Any = None
    ) -> Any:
        return {"url": response.url}

    def media_failed(self, failure: Any, request: Request, info: Any) -> Any:
        raise failure.value

    def item_completed(self, results: Any, item: Any, info: Any) -> Any:
        item["files"] = [result["url"] for ok, result in results if ok]
        return item

    def file_path(
        self, request: Request, response: Any = None, info: Any = None, *, item: Any = None
    ) -> str:
        return ""


class EmbeddingForOthers(Embedding):
    custom_settings: ClassVar[dict[str, Any]] = {"ITEM_PIPELINES": {Others: 1}}  # type: ignore[misc]  # of one class


NO_IMAGES = '<meta name="robots" content="noimageai">'
NO_AI = '<meta name="robots" content="noai">'


class TestEmbedded:
    def pages(self, serve: Serve) -> Loopback:
        routes = {
            "/no": NO_IMAGES,
            "/yes": "<p>yes</p>",
            "/nothing": NO_AI,
            "/f.png": answer(b"file"),
            "/last": "last",
        }
        return serve({"/robots.txt": OPEN} | routes)

    def found(self, crawled: Crawled) -> dict[str, int]:
        """Path of each page -> how many files its item has."""
        return {item["url"].rpartition("/")[2]: len(item["files"]) for item in crawled.items}

    @pytest.mark.requirement("META-3")
    @pytest.mark.parametrize(
        "order",
        [
            ["/no", "/yes", "/no"],
            *(
                pytest.param(order, marks=pytest.mark.slow)
                for order in (["/no", "/yes"], ["/yes", "/no"], ["/no"])
            ),
        ],
        ids=" ".join,
    )
    @pytest.mark.parametrize("own", [False, True], ids=["files", "own"])
    def test_each_item_is_bound_by_its_own_page(
        self, serve: Serve, crawl: Crawl, tmp_path: Path, order: list[str], own: bool
    ) -> None:
        server = self.pages(serve)
        settings = TRAIN | files(tmp_path)
        settings |= {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}
        spider = EmbeddingForOthers if own else Embedding
        crawled = crawl(
            spider,
            settings,
            chain=[server.url(path) for path in order],
            files=[server.url("/f.png")],
        )
        assert server.paths.count("/f.png") == order.count("/yes")
        assert self.found(crawled) == {path[1:]: int(path == "/yes") for path in order}
        for item in crawled.items:
            tag = item["permissions"]
            assert tag["uses"]["train"]["verdict"] == "allow"
            if item["url"].endswith("/no"):
                assert tag["embedded"]["train"]["verdict"] == "deny"
                rules = [
                    tag["reasons"][place]["rule"] for place in tag["embedded"]["train"]["because"]
                ]
                assert rules[0] == "robots-meta.disallow"
            else:
                assert "embedded" not in tag
        refused = f"Refused <GET {server.url('/f.png')}>: deny: robots-meta.disallow ("
        assert crawled.log.count(refused) == order.count("/no")
        assert crawled.stats["comity/access/deny/robots-meta.disallow"] == order.count("/no")
        assert "ERROR" not in crawled.log

    @pytest.mark.requirement("META-3")
    def test_also_at_the_same_time(self, serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
        server = self.pages(serve)
        urls = [server.url(path) for path in ("/no", "/yes")]
        crawled = crawl(Together, TRAIN | files(tmp_path), chain=urls, files=[server.url("/f.png")])
        assert self.found(crawled) == {"no": 0, "yes": 1}
        assert server.paths.count("/f.png") == 1

    @pytest.mark.requirement("META-3")
    def test_nothing_else_is_bound(self, serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
        server = self.pages(serve)
        urls = {
            "chain": [server.url("/no")],
            "files": [server.url("/f.png")],
            "last": server.url("/last"),
        }
        crawl(Embedding, TRAIN | files(tmp_path), **urls)
        assert server.paths == ["/robots.txt", "/no", "/last?now", "/last?later"]

    @pytest.mark.requirement("META-3", "USE-14")
    @pytest.mark.parametrize(
        ("path", "settings", "fetched"),
        [
            ("/nothing", {}, False),
            ("/nothing", {"COMITY_USES": "train,index"}, True),
            ("/nothing", {"COMITY_USES": ""}, True),
            ("/nothing", {"COMITY_ARRANGEMENTS": {"127.0.0.1": {"uses": ["train"]}}}, True),
            ("/no", {"COMITY_USES": "index"}, True),
            ("/yes", {"COMITY_DEFAULTS": {}}, True),
        ],
        ids=["refused", "another-use", "no-uses", "licence", "not-of-this", "silence"],
    )
    def test_every_declared_use_has_to_be_refused(
        self, serve: Serve, crawl: Crawl, tmp_path: Path, path: str, settings: Any, fetched: bool
    ) -> None:
        server = self.pages(serve)
        crawled = crawl(
            Embedding,
            TRAIN | TOLD | files(tmp_path) | settings,
            chain=[server.url(path)],
            files=[server.url("/f.png")],
        )
        assert ("/f.png" in server.paths) is fetched
        assert self.found(crawled) == {path[1:]: int(fetched)}

    @pytest.mark.requirement("META-3", "USE-13")
    @pytest.mark.parametrize("own", [False, True], ids=["files", "own"])
    def test_each_file_is_judged_as_a_page_is(
        self, serve: Serve, crawl: Crawl, tmp_path: Path, own: bool
    ) -> None:
        """By the policies for its path, by all that its header fields say, and by where a redirect has led."""
        robots = f"{OPEN}Content-Usage: train-ai=y\nContent-Usage: /not/ train-ai=n\n"
        reserved = answer(
            '[{"location": "/reserved/*", "tdm-reservation": 1}]', Content_Type="application/json"
        )
        no_ai = {"X_Robots_Tag": "noai"}
        refused: dict[str, Any] = {
            "/not/a.png": answer(b"file", Content_Type="image/png"),
            "/reserved/a.png": answer(b"file", Content_Type="image/png"),
            "/reserved.png": answer(b"file", Content_Type="image/png", tdm_reservation="1"),
            "/away": answer("moved", 302, Location="/not/a.png"),
            "/there.html": NO_AI,
        }
        allowed: dict[str, Any] = {
            "/yes.png": answer(b"file", Content_Type="image/png"),
            "/reserved/yes.png": answer(b"file", Content_Type="image/png", tdm_reservation="0"),
            "/moved": answer("moved", 302, Location="/yes.png", **no_ai),
        }
        policies = {"/robots.txt": robots, "/.well-known/tdmrep.json": reserved}
        server = serve({**policies, **refused, **allowed, "/a": "a"})
        asked = [server.url(path) for path in (*refused, *allowed)]
        spider, settings = (
            EmbeddingForOthers if own else Embedding,
            TRAIN | files(tmp_path) | {"MEDIA_ALLOW_REDIRECTS": True},
        )
        for skips in (
            True,
            False,
        ):  # a file leads nowhere: there is nothing for which it would be read
            settings["COMITY_SKIP_UNUSABLE"] = skips
            settings["FILES_STORE"] = str(tmp_path / str(skips))
            crawled = crawl(spider, settings, chain=[server.url("/a")], files=asked)
            kept = {
                (file if own else file["url"]).removeprefix(server.origin)
                for file in crawled.items[0]["files"]
            }
            assert kept == ({"/yes.png", "/reserved/yes.png"} if own else {*allowed})
            assert crawled.stats["comity/access/stopped"] == len(refused)
            assert (
                f"Refused the response to <GET {server.url('/reserved/a.png')}>: deny: tdmrep.reserved ("
                in crawled.log
            )
            # Scrapy logs what `Others.media_failed` raises.
            assert own or LOGS_REFUSED_FILES or "ERROR" not in crawled.log
            assert own or len(
                [path for path in Path(settings["FILES_STORE"]).rglob("*") if path.is_file()]
            ) == len(allowed)

    @pytest.mark.requirement("META-3")
    @pytest.mark.parametrize("content_type", ["application/gzip", "text/xml; charset=utf-8"])
    def test_no_file_is_read_for_its_links(
        self, serve: Serve, crawl: Crawl, tmp_path: Path, content_type: str
    ) -> None:
        """As a sitemap may be, which comes as the same types."""
        held = Holding(X_Robots_Tag="noai", Content_Type=content_type)
        server = serve({"/robots.txt": OPEN, "/a": "a", "/f.tar.gz": held})
        crawled = crawl(
            Embedding,
            TRAIN | files(tmp_path),
            chain=[server.url("/a")],
            files=[server.url("/f.tar.gz")],
        )
        assert held.sent == [False]
        assert self.found(crawled) == {"a": 0}

    @pytest.mark.requirement("META-3")
    def test_an_image_is_one_whatever_it_is_served_as(
        self, serve: Serve, crawl: Crawl, tmp_path: Path
    ) -> None:
        fields = {"X_Robots_Tag": "noimageai", "Content_Type": "application/octet-stream"}
        routes = {
            "/image": answer(b"\x89PNG\r\n\x1a\nfile", **fields),
            "/other": answer(b"file", **fields),
        }
        server = serve({"/robots.txt": OPEN, "/a": "a", **routes})
        asked = [server.url(path) for path in routes]
        crawled = crawl(Embedding, TRAIN | files(tmp_path), chain=[server.url("/a")], files=asked)
        assert [file["url"] for file in crawled.items[0]["files"]] == [server.url("/other")]
