"""What a crawl sends under automation-preferences.txt, by what the servers saw: methods, kinds, purposes and sessions."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import FormRequest, JsonRequest, Request, Response

from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

FILE = "/automation-preferences.txt"
SECRET = "s3cr3t-value"
CLASSES = {"form": FormRequest, "json": JsonRequest, "plain": Request}


class Requests(Spider):
    """Makes requests as it is told and says what came of each."""

    name = "requests"
    requests: list[dict[str, Any]]

    async def start(self) -> AsyncIterator[Any]:
        for stated in self.requests:
            yield self.request(**stated)

    def request(self, url: str, cls: str = "plain", **arguments: Any) -> Request:
        own: dict[str, Any] = {
            "callback": self.parse,
            "errback": self.failed,
            "cb_kwargs": {"asked": url},
            "dont_filter": True,
        }
        return CLASSES[cls](url, **own, **arguments)

    def parse(self, response: Response, asked: str) -> Any:
        assert response.request
        sent = {
            name.decode(): value.decode()
            for name, values in response.request.headers.items()
            for value in values
        }
        got = {
            name.decode(): value.decode()
            for name, values in response.headers.items()
            for value in values
        }
        meta = {
            key: value
            for key, value in response.request.meta.items()
            if isinstance(value, str | bool | dict | list)
        }
        yield {
            "asked": asked,
            "url": response.url,
            "status": response.status,
            "sent": sent,
            "got": got,
            "meta": meta,
        }

    def failed(self, failure: Any) -> Any:
        yield {
            "asked": failure.request.cb_kwargs["asked"],
            "error": str(failure.value),
            "sent": str(failure.request.headers),
        }


class OneAfterTheOther(Requests):
    """Each when the one before is through."""

    async def start(self) -> AsyncIterator[Any]:
        yield self.request(**self.requests[0])

    def parse(self, response: Response, asked: str) -> Any:
        yield from super().parse(response, asked)
        yield from self.next()

    def failed(self, failure: Any) -> Any:
        yield from super().failed(failure)
        yield from self.next()

    def next(self) -> Any:
        del self.requests[0]
        if self.requests:
            yield self.request(**self.requests[0])


class NamesAnotherHost:
    """A middleware of the project that leaves a request at the address of its URL and asks for another site there."""

    def process_request(self, request: Request) -> None:
        request.headers.setdefault("Host", "other.test")


class AddsField:
    """A middleware of the project that makes scripts' requests of what it sees, before comity does."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/changed"):
            request.headers["X-Requested-With"] = "XMLHttpRequest"


def site(preferences: Any, **more: Any) -> dict[str, Any]:
    routes = {f"/{name}": route for name, route in more.items()}
    return {
        "/robots.txt": "User-agent: *\nDisallow: /private\n",
        FILE: preferences,
        "/": "<p>page</p>",
        **routes,
    }


def answer(body: str = "", status: int = 200, **headers: str) -> Any:
    from tests.conftest import Answer

    return Answer(
        body,
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def pages(server: Loopback) -> list[tuple[str, str]]:
    return [(seen.method, seen.path) for seen in server.seen if not seen.path.endswith(".txt")]


def outcomes(crawled: Crawled) -> list[Any]:
    """Sorted by what was asked for: the status, or the rule that refused."""
    items = sorted(crawled.items, key=lambda item: str(item["asked"]))
    return [
        item.get("status") or item["error"].partition("deny: ")[2].partition(" ")[0]
        for item in items
    ]


READING = "scope: /\nallowed-methods: GET, HEAD\n"
OPEN = "scope: /\nallowed-methods: GET, POST\n"


@pytest.mark.requirement("AUTO-6", "AUTO-7", "AUTO-15")
def test_methods_that_change_something_are_refused_unless_listed(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve(
        site(
            f"{READING}\nscope: /form\nallowed-methods: GET, POST\napi-automation: open\n",
            form="",
            form1="",
        )
    )
    crawled = crawl(
        Requests,
        requests=[
            {"url": server.url("/?0")},
            {"url": server.url("/?1"), "cls": "form", "formdata": {"a": "b"}},
            {"url": server.url("/?2"), "cls": "json", "data": {"a": 1}},
            {"url": server.url("/?3"), "method": "PUT"},
            {"url": server.url("/?4"), "method": "delete"},
            {"url": server.url("/?5"), "method": "HEAD"},
            {"url": server.url("/form"), "cls": "form", "formdata": {"a": "b"}},
            {"url": server.url("/form1"), "cls": "json", "data": {"a": 1}},
            {"url": server.url("/form2"), "method": "PATCH"},
        ],
    )
    assert sorted(pages(server)) == [
        ("GET", "/?0"),
        ("HEAD", "/?5"),
        ("POST", "/form"),
        ("POST", "/form1"),
    ]
    assert {seen.body for seen in server.seen if seen.method == "POST"} == {b"a=b", b'{"a": 1}'}
    method = "automation.method"
    assert outcomes(crawled) == [200, method, method, method, method, 200, 200, 200, method]
    assert crawled.stats["comity/access/deny/automation.method"] == 5
    assert f"{FILE}:2: 'allowed-methods: GET, HEAD'" in crawled.log
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("AUTO-14")
def test_robots_txt_refuses_all_the_same(serve: Serve, crawl: Crawl) -> None:
    server = serve(site(OPEN, private=""))
    crawled = crawl(
        Requests,
        requests=[
            {"url": server.url("/private")},
            {"url": server.url("/private?1"), "method": "POST"},
        ],
    )
    assert pages(server) == []
    assert outcomes(crawled) == ["robots.disallow"] * 2


@pytest.mark.requirement("AUTO-12")
def test_nobody_is_refused_where_there_is_no_file(serve: Serve, crawl: Crawl) -> None:
    server = serve(site(answer(status=404)))
    requests = [
        {"url": server.url("/"), "method": "PUT"},
        {"url": server.url("/"), "cls": "json", "data": {}},
        {"url": server.url("/"), "headers": {"X-Requested-With": "XMLHttpRequest"}},
    ]
    crawled = crawl(Requests, requests=requests)
    assert outcomes(crawled) == [200] * 3
    assert sorted(pages(server)) == [("GET", "/"), ("POST", "/"), ("PUT", "/")]


@pytest.mark.requirement("AUTX-5", "AUTX-6", "AUTX-7", "AUTX-4")
@pytest.mark.parametrize(
    ("preferences", "request_", "outcome"),
    one_in(
        2,
        [
            ("", {"headers": {"Accept": "application/json"}}, "automation.api"),
            ("", {"meta": {"comity": {"kind": "api"}}}, "automation.api"),
            ("api-automation: open", {"headers": {"Accept": "application/json"}}, 200),
            (
                "api-automation: with-key-only",
                {"headers": {"Accept": "application/json"}},
                "automation.key",
            ),
            (
                "api-automation: with-key-only",
                {"headers": {"Accept": "application/json", "X-API-Key": "k"}},
                200,
            ),
            (
                "api-automation: with-key-only",
                {"headers": {"Accept": "application/json", "Authorization": "Basic eDp5"}},
                200,
            ),
            (
                "",
                {
                    "headers": {"Accept": "application/json"},
                    "meta": {"comity": {"kind": "document"}},
                },
                200,
            ),
            ("", {"headers": {"X-Requested-With": "XMLHttpRequest"}}, "automation.xhr"),
            ("allow-xhr: read-only", {"headers": {"X-Requested-With": "XMLHttpRequest"}}, 200),
            (
                "allow-xhr: read-only",
                {"headers": {"X-Requested-With": "x"}, "cls": "form", "formdata": {"a": "b"}},
                "automation.xhr",
            ),
            (
                "allow-xhr: open",
                {"headers": {"X-Requested-With": "x"}, "cls": "form", "formdata": {"a": "b"}},
                200,
            ),
            (
                "allow-xhr: open\ndisallow-fetch-from: /account",
                {"headers": {"X-Requested-With": "x"}},
                "automation.fetch-from",
            ),
            ("", {"meta": {"playwright": True}}, "automation.mechanism"),
            ("allowed-automations: cdp", {"meta": {"playwright": True}}, "automation.mechanism"),
            ("allowed-automations: cdp, headless", {"meta": {"playwright": True}}, 200),
            (
                "allowed-automations: webdriver",
                {"meta": {"comity": {"automations": "webdriver"}}},
                200,
            ),
        ],
    ),
)
@pytest.mark.parametrize("mode", ["reactor"])
def test_what_a_request_is(
    serve: Serve, crawl: Crawl, preferences: str, request_: dict[str, Any], outcome: Any
) -> None:
    server = serve(site(f"scope: /\nallowed-methods: GET, POST\n{preferences}\n"))
    crawled = crawl(Requests, requests=[{"url": server.url("/"), **request_}])
    assert outcomes(crawled) == [outcome]
    assert len(pages(server)) == (outcome == 200)


@pytest.mark.requirement("AUTX-6", "AUTX-7")
@pytest.mark.parametrize("mode", ["reactor"])
def test_a_script_asks_from_the_page_that_led_to_it(serve: Serve, crawl: Crawl) -> None:
    """The Referer that Scrapy sets by itself counts; and so does what a middleware before comity's changes."""
    server = serve(
        site(
            "scope: /\nallowed-methods: GET\nallow-xhr: open\ndisallow-fetch-from: /account/\n",
            changed="",
        )
    )
    fields = {"X-Requested-With": "XMLHttpRequest"}
    requests = [
        {"url": server.url("/?1"), "headers": {**fields, "Referer": server.url("/account/1")}},
        {"url": server.url("/?2"), "headers": {**fields, "Referer": server.url("/shop")}},
        {"url": server.url("/changed"), "headers": {"Referer": server.url("/account/1")}},
    ]
    crawled = crawl(WithMiddleware, requests=requests)
    assert pages(server) == [("GET", "/?2")]
    assert outcomes(crawled) == ["automation.fetch-from", 200, "automation.fetch-from"]


class Loud(Requests):
    """With all that anybody logs."""

    async def start(self) -> AsyncIterator[Any]:
        logging.getLogger().setLevel(logging.DEBUG)
        async for request in super().start():
            yield request


class WithHostMiddleware(Requests):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {NamesAnotherHost: 560}}  # noqa: RUF012


class WithMiddleware(Requests):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {AddsField: 50}}  # noqa: RUF012


@pytest.mark.requirement("AUTO-13", "AUTO-15")
def test_the_purpose_is_declared_to_servers(serve: Serve, crawl: Crawl) -> None:
    """To all of them, whether they have the file or not, on each hop; not with policy files."""
    other = serve({"/robots.txt": "", "/b": "<p>page</p>"}, host="127.0.0.2")
    preferences = "scope: /\nallowed-methods: GET\nallowed-purposes: Search, news, research\n"
    server = serve(site(preferences, moved=answer(status=302, Location=other.url("/b"))))
    requests = [
        {"url": server.url("/?1")},
        {"url": server.url("/?2"), "headers": {"Automation-Purpose": "anything"}},
        {"url": server.url("/?3"), "meta": {"comity": {"purposes": ["research"]}}},
        {"url": server.url("/?4"), "meta": {"comity": {"purposes": ["research", "ads"]}}},
        {"url": server.url("/?5"), "meta": {"comity": {"purposes": []}}},
        {"url": server.url("/moved"), "meta": {"comity": {"purposes": "research,news"}}},
    ]
    crawled = crawl(Requests, {"COMITY_PURPOSES": "search,news"}, requests=requests)
    declared = {
        seen.path: seen.headers.get("automation-purpose") for seen in server.seen + other.seen
    }
    assert declared == {
        "/robots.txt": None,
        FILE: None,
        "/?1": "search, news",
        "/?2": "search, news",
        "/?3": "research",
        "/moved": "research, news",
        "/b": "research, news",
    }
    assert outcomes(crawled) == [200, 200, 200, "automation.purpose", "automation.purpose", 200]


@pytest.mark.requirement("AUTO-13", "AUTO-15")
@pytest.mark.parametrize(
    ("settings", "field", "value"),
    [
        (
            {"COMITY_PURPOSES": "search", "COMITY_PURPOSE_HEADER": "X-Purpose"},
            "x-purpose",
            "search",
        ),
        (
            {"COMITY_PURPOSES": "search", "COMITY_PURPOSE_HEADER": ""},
            "automation-purpose",
            "anything",
        ),
        ({"COMITY_PURPOSES": "search"}, "automation-purpose", "search"),
        pytest.param({}, "automation-purpose", None, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("mode", ["reactor"])
def test_the_field_of_the_purpose(
    serve: Serve, crawl: Crawl, settings: dict[str, Any], field: str, value: str | None
) -> None:
    """Nobody else's word goes out under its name: not the spider's, not the project's."""
    server = serve(site(READING))
    defaults = {"DEFAULT_REQUEST_HEADERS": {"Automation-Purpose": "anything"}}
    crawl(Requests, {**settings, **defaults}, requests=[{"url": server.url("/")}])
    (page,) = [seen for seen in server.seen if seen.path == "/"]
    assert page.headers.get(field) == value


@pytest.mark.requirement("AUTO-13")
@pytest.mark.parametrize("mode", ["reactor"])
def test_whoever_declares_no_purpose_is_refused_where_one_is_wanted(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve(site(READING + "allowed-purposes: search\n"))
    requests = [
        {"url": server.url("/?1")},
        {"url": server.url("/?2"), "meta": {"comity": {"purposes": "search"}}},
    ]
    crawled = crawl(Requests, requests=requests)
    assert pages(server) == [("GET", "/?2")]
    assert outcomes(crawled) == ["automation.purpose", 200]


def test_a_declaration_that_makes_no_sense_is_refused_whatever_the_site_says(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve({"/robots.txt": "", "/": "<p>page</p>"})
    requests = [
        {"url": server.url("/"), "meta": {"comity": {"kinds": "api"}}},
        {"url": server.url("/?1"), "meta": {"comity": {}}},
    ]
    crawled = crawl(Requests, requests=requests)
    assert pages(server) == [("GET", "/?1")]
    assert outcomes(crawled) == ["comity.declaration", 200]
    (line,) = [
        line
        for line in crawled.log.splitlines()
        if "comity.declaration" in line and line.startswith("ERROR")
    ]
    assert "`kinds` cannot be declared: write kind, automations, purposes or session" in line


@pytest.mark.parametrize("by", ["request", "project", "middleware"])
def test_a_request_goes_to_the_host_of_its_url(serve: Serve, crawl: Crawl, by: str) -> None:
    """A server tells its sites apart by Host (RFC 9110 section-7.2): what this one's files permit is not said of another."""
    server = serve({"/robots.txt": "", "/": "<p>page</p>"})
    own, other = server.origin.removeprefix("http://"), {"Host": "other.test"}
    requests: list[dict[str, Any]] = [
        {"url": server.url("/?1"), "headers": {"Host": own}},
        {"url": server.url("/?2")},
    ]
    settings: dict[str, Any] = {}
    if by == "request":
        requests[1]["headers"] = other
    elif by == "project":
        settings = {"DEFAULT_REQUEST_HEADERS": other}
    crawled = crawl(
        WithHostMiddleware if by == "middleware" else Requests, settings, requests=requests
    )
    assert pages(server) == [("GET", "/?1")]
    assert sorted(map(str, outcomes(crawled))) == ["200", "comity.declaration"]
    assert "`other.test` as Host names another site than the URL" in crawled.log


@pytest.mark.parametrize(
    "target",
    [
        "/\tno",
        *(pytest.param(target, marks=pytest.mark.slow) for target in ("/n\no", "/no?", "/n o")),
    ],
)
def test_a_verbatim_url_goes_out_as_it_is_or_not_at_all(
    serve: Serve, crawl: Crawl, target: str
) -> None:
    """Scrapy's handlers for aiohttp and Twisted leave out what this one is judged with."""
    server = serve({"/robots.txt": "User-agent: *\nDisallow: /no$\n", "/n": "<p>page</p>"})
    meta = {"verbatim_url": True}
    crawled = crawl(
        Requests,
        requests=[
            {"url": server.origin + path, "meta": meta} for path in (target, "/n", "/n?a=%20#?")
        ],
    )
    assert sorted(pages(server)) == [("GET", "/n"), ("GET", "/n?a=%20")]
    assert sorted(map(str, outcomes(crawled))) == ["200", "200", "comity.declaration"]
    assert "would not go out verbatim" in crawled.log


HAS_AIOHTTP = find_spec("scrapy.core.downloader.handlers._aiohttp") is not None


@pytest.mark.parametrize("verbatim", [{}, {"verbatim_url": False}], ids=["unsaid", "denied"])
def test_a_handler_that_would_write_the_url_anew_sends_it_as_it_was_judged(
    serve: Serve, crawl: Crawl, verbatim: dict[str, Any]
) -> None:
    """Scrapy's handler for aiohttp decodes `%2F` in a query, which is another target for patterns.

    Scrapy has it since 2.19. Before, its handler for httpx is the one that may write URLs anew."""
    server = serve({"/robots.txt": "User-agent: *\nDisallow: /*?to=/\n", "/n": "<p>page</p>"})
    name = "_aiohttp.AiohttpDownloadHandler" if HAS_AIOHTTP else "_httpx.HttpxDownloadHandler"
    handler = f"scrapy.core.downloader.handlers.{name}"
    settings = {"DOWNLOAD_HANDLERS": {"http": handler, "https": handler}}
    requests = [
        {"url": server.url(path), "meta": verbatim}
        for path in ("/n?to=%2F", "/n?to=/", "?here", "/n?a=|%27")
    ]
    crawl(Requests, settings, requests=requests)
    assert sorted(pages(server)) == [
        ("GET", "/?here"),
        ("GET", "/n?a=%7C%27"),
        ("GET", "/n?to=%2F"),
    ]


def started(ago: timedelta) -> str:
    return (datetime.now(UTC) - ago).isoformat()


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """A reference to it."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return f"file:{path}"


HUMAN = "scope: /\nallowed-methods: GET\nrequire-human-initiated-session: true\nsession-validation: cookie-based\nsession-ttl: 1h\n"


class GoesOn:
    """Downloader middleware: follows a redirect, and gives up what fails, before anybody else hears of it."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if response.status == 500:
            raise IgnoreRequest
        to = response.headers.get("Location")
        return response if to is None else request.replace(url=to.decode())


class GoesOnElsewhere(Requests):
    """Asks for `instead` where a request comes to nothing."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {GoesOn: 990}}  # noqa: RUF012
    instead: str

    def failed(self, failure: Any) -> Any:
        yield failure.request.replace(url=self.instead, errback=None)


def files_with(secret: str, folder: Path) -> list[str]:
    """Names of those that have it, apart from its own."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "secret"]
    assert len(files) > 2
    return [path.name for path in files if secret.encode() in path.read_bytes()]


@pytest.mark.requirement("AUTX-8", "AUTX-9")
def test_a_session_goes_to_its_host_and_nowhere_else(
    serve: Serve, crawl: Crawl, secret: str, tmp_path: Path
) -> None:
    """Not over a redirect or a retry, and into nothing that the crawl leaves behind."""
    other = serve({"/robots.txt": "", "/b": "<p>page</p>", "/c": "<p>page</p>"}, host="127.0.0.2")
    again = answer("<p>page</p>", Set_Cookie=f"sid={SECRET}; Path=/")
    failing = iter([500, 200])
    server = serve(
        site(
            HUMAN,
            moved=answer(status=302, Location=other.url("/b")),
            here=answer(status=302, Location="/again"),
            again=again,
            failing=lambda handler: answer(status=next(failing)),
            dropped=lambda handler: None,
        )
    )
    session = {
        "human_initiated": True,
        "cookies": {"sid": secret},
        "token": secret,
        "bearer": secret,
    }
    settings = {
        "COMITY_SESSIONS": {f"127.0.0.1:{server.port}": session},
        "JOBDIR": str(tmp_path / "job"),
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
        "FEEDS": {str(tmp_path / "items.jsonl"): {"format": "jsonlines"}},
        "COOKIES_DEBUG": True,
    }
    paths = ("/", "/moved", "/here", "/failing", "/dropped")
    crawled = crawl(
        Loud,
        settings,
        requests=[{"url": url} for url in (*map(server.url, paths), other.url("/c"))],
    )
    carried = [seen for seen in server.seen if not seen.path.endswith(".txt")]
    assert {seen.path for seen in carried} == {"/again", *paths}
    for seen in carried:
        assert seen.headers["cookie"] == f"sid={SECRET}"
        assert seen.headers["x-api-key"] == SECRET
        assert seen.headers["authorization"] == f"Bearer {SECRET}"
    assert sorted(other.paths) == ["/b", "/c", "/robots.txt"]
    policies = [seen for seen in server.seen if seen.path.endswith(".txt")]
    for seen in [*other.seen, *policies]:
        assert SECRET not in str(seen.headers)
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert sorted(item.get("status", 0) for item in items) == [0, *[200] * 5]
    assert files_with(SECRET, tmp_path) == []
    assert SECRET not in crawled.log
    assert "DEBUG scrapy.core.engine: Crawled (200)" in crawled.log
    assert crawled.stats["comity/session/sent"] == 9  # with the retries
    assert (
        crawled.stats["httpcache/store"] == 1
    )  # of the other host; what was led to from here is not


@pytest.mark.requirement("AUTX-8", "AUTX-9")
def test_a_session_goes_nowhere_with_what_others_make_of_its_request(
    serve: Serve, crawl: Crawl, secret: str
) -> None:
    other = serve({"/robots.txt": "", "/b": "<p>page</p>", "/c": "<p>page</p>"}, host="127.0.0.2")
    moved, failing = answer(status=302, Location=other.url("/b")), answer(status=500)
    server = serve(site(HUMAN, moved=moved, failing=failing))
    session = {
        "human_initiated": True,
        "cookies": {"sid": secret},
        "token": secret,
        "bearer": secret,
    }
    settings = {"COMITY_SESSIONS": {f"127.0.0.1:{server.port}": session}}
    requests = [{"url": server.url(path)} for path in ("/moved", "/failing")]
    crawl(GoesOnElsewhere, settings, requests=requests, instead=other.url("/c"))
    assert sorted(seen.path for seen in server.seen if SECRET in str(seen.headers)) == [
        "/failing",
        "/moved",
    ]
    assert sorted(other.paths) == ["/b", "/c", "/robots.txt"]
    assert not [seen.path for seen in other.seen if SECRET in str(seen.headers)]


@pytest.mark.requirement("AUTX-8")
@pytest.mark.parametrize("mode", ["reactor"])
def test_without_a_session_that_a_person_began(serve: Serve, crawl: Crawl, secret: str) -> None:
    server = serve(site(HUMAN))
    own = {"cookies": {"sid": secret}}
    sessions: list[dict[str, Any]] = [
        {},
        {"127.0.0.1": own},
        {"127.0.0.1": own | {"human_initiated": True}},
    ]
    for declared, outcome in zip(
        sessions, ["automation.session", "automation.session", 200], strict=True
    ):
        crawled = crawl(
            Requests, {"COMITY_SESSIONS": declared}, requests=[{"url": server.url("/")}]
        )
        assert outcomes(crawled) == [outcome]
    crawled = crawl(
        Requests,
        {"COMITY_SESSIONS": sessions[-1]},
        requests=[{"url": server.url("/"), "meta": {"comity": {"session": False}}}],
    )
    assert outcomes(crawled) == ["automation.session"]
    assert len(pages(server)) == 1


@pytest.mark.requirement("AUTX-10", "AUTX-8")
def test_an_expired_session_is_not_used(serve: Serve, crawl: Crawl, secret: str) -> None:
    server = serve(site(HUMAN))
    session = {"human_initiated": True, "cookies": {"sid": secret}}
    for ago, outcome in (
        (timedelta(minutes=59), 200),
        (timedelta(minutes=61), "automation.session-ttl"),
    ):
        settings = {"COMITY_SESSIONS": {"127.0.0.1": {**session, "started_at": started(ago)}}}
        assert outcomes(crawl(Requests, settings, requests=[{"url": server.url("/")}])) == [outcome]
    assert len(pages(server)) == 1


@pytest.mark.requirement("AUTX-10", "AUTX-15")
def test_where_no_session_is_wanted_requests_go_without_the_expired_one(
    serve: Serve, crawl: Crawl, secret: str
) -> None:
    """Its cookies are not sent by Scrapy's cookie jar either, if the server has set them anew in the meantime."""
    renewed = answer("<p>page</p>", Set_Cookie=f"sid={SECRET}; Path=/")
    routes = site(
        f"{READING}session-ttl: 1h\n\nscope: /open\nallowed-methods: GET\n",
        open=renewed,
        closed="",
        more="",
    )
    server = serve(routes)
    session = {
        "cookies": {"sid": secret},
        "token": secret,
        "started_at": started(timedelta(hours=2)),
    }
    settings = {"COMITY_SESSIONS": {f"127.0.0.1:{server.port}": session}}
    requests = [{"url": server.url(path)} for path in ("/open", "/closed", "/more")]
    crawled = crawl(OneAfterTheOther, settings, requests=requests)
    assert outcomes(crawled) == [200] * 3
    carried = {
        seen.path: (seen.headers.get("cookie"), seen.headers.get("x-api-key"))
        for seen in server.seen
    }
    assert carried["/open"] == (f"sid={SECRET}", SECRET)
    assert carried["/closed"] == carried["/more"] == (None, None)
    assert crawled.stats["comity/session/left/automation.session-ttl"] == 2
    (line,) = [line for line in crawled.log.splitlines() if "go without its session" in line]
    assert f"127.0.0.1:{server.port}" in line
    assert "'session-ttl: 1h'" in line
    (item,) = [item for item in crawled.items if item["url"].endswith("/closed")]
    tag = item["permissions"]
    rules = [tag["reasons"][number]["rule"] for number in tag["uses"]["crawl"]["because"]]
    assert rules == ["automation.allow", "comity.session", "automation.session-ttl"]


@pytest.mark.requirement("AUTX-9")
@pytest.mark.parametrize("mode", ["reactor"])
@pytest.mark.parametrize(
    ("validation", "carries", "outcome"),
    one_in(
        3,
        [
            ("cookie-based", "cookies", 200),
            ("cookie-based", "token", "automation.session-validation"),
            ("oauth", "bearer", 200),
            *(
                pytest.param(*case, marks=pytest.mark.slow)
                for case in (
                    ("token-based", "token", 200),
                    ("token-based", "cookies", "automation.session-validation"),
                    ("oauth", "token", "automation.session-validation"),
                    ("none", "token", 200),
                )
            ),
        ],
    ),
)
def test_what_a_session_has_to_carry(
    serve: Serve, crawl: Crawl, secret: str, validation: str, carries: str, outcome: Any
) -> None:
    server = serve(
        site(f"{READING}require-human-initiated-session: true\nsession-validation: {validation}\n")
    )
    carried = {"sid": secret} if carries == "cookies" else secret
    settings = {"COMITY_SESSIONS": {"127.0.0.1": {"human_initiated": True, carries: carried}}}
    crawled = crawl(Requests, settings, requests=[{"url": server.url("/")}])
    assert outcomes(crawled) == [outcome]


@pytest.mark.requirement("AUTX-5", "AUTX-9")
@pytest.mark.parametrize("mode", ["reactor"])
def test_the_key_of_a_session_is_a_key(serve: Serve, crawl: Crawl, secret: str) -> None:
    server = serve(site(f"{READING}api-automation: with-key-only\n"))
    settings = {"COMITY_SESSIONS": {"127.0.0.1": {"token": secret}}, "COMITY_KEY_HEADER": "X-Key"}
    api = {
        "url": server.url("/"),
        "headers": {"Accept": "application/json", "X-Key": "of the spider"},
    }
    crawled = crawl(Requests, settings, requests=[api])
    assert outcomes(crawled) == [200]
    assert server.seen[-1].headers["x-key"] == SECRET
    assert crawled.items[0]["sent"]["X-Key"] == "of the spider"


@pytest.mark.parametrize("mode", ["reactor"])
def test_cookies_of_a_session_stand_beside_those_of_the_jar(
    serve: Serve, crawl: Crawl, secret: str
) -> None:
    setting = answer("<p>page</p>", Set_Cookie="theme=dark; Path=/")
    server = serve({"/robots.txt": "", "/1": setting, "/2": "<p>page</p>"})
    settings = {"COMITY_SESSIONS": {"127.0.0.1": {"cookies": {"sid": secret}}}}
    requests = [
        {"url": server.url("/1")},
        {"url": server.url("/2"), "cookies": {"sid": "of the spider"}},
    ]
    crawled = crawl(OneAfterTheOther, settings, requests=requests)
    assert server.seen[-1].headers["cookie"] == f"theme=dark; sid={SECRET}"
    assert crawled.items[0]["got"]["Set-Cookie"] == "theme=dark; Path=/"


@pytest.mark.requirement("AUTX-8")
@pytest.mark.parametrize("mode", ["reactor"])
def test_without_the_middleware_that_sends_them_sessions_permit_nothing(
    serve: Serve, crawl: Crawl, secret: str
) -> None:
    server = serve(site(HUMAN))
    settings = {
        "COMITY_SESSIONS": {"127.0.0.1": {"human_initiated": True, "cookies": {"sid": secret}}},
        "DOWNLOADER_MIDDLEWARES": {"comity.crawler.middlewares.credentials.FieldsMiddleware": None},
    }
    crawled = crawl(Requests, settings, requests=[{"url": server.url("/")}])
    assert outcomes(crawled) == ["automation.session"]
    assert (
        "FieldsMiddleware: requests declare no purpose, and COMITY_SESSIONS are not used"
        in crawled.log
    )


@pytest.mark.requirement("AUTO-20")
def test_a_file_that_cannot_be_had_leaves_plain_requests_alone(serve: Serve, crawl: Crawl) -> None:
    server = serve(site(answer(status=503)))
    requests = [
        {"url": server.url("/?1")},
        {"url": server.url("/?2"), "method": "HEAD"},
        {"url": server.url("/?3"), "cls": "form", "formdata": {"a": "b"}},
        {"url": server.url("/?4"), "headers": {"Accept": "application/json"}},
        {"url": server.url("/?5"), "meta": {"playwright": True}},
    ]
    crawled = crawl(Requests, requests=requests)
    assert sorted(pages(server)) == [("GET", "/?1"), ("HEAD", "/?2")]
    assert outcomes(crawled) == [200, 200, *["automation.unreachable"] * 3]


@pytest.mark.requirement("AUTO-20")
def test_the_operator_can_choose_to_refuse_all(serve: Serve, crawl: Crawl) -> None:
    server = serve(site(answer(status=503)))
    other = serve({"/robots.txt": "", "/": "<p>page</p>"}, host="127.0.0.2")
    requests = [{"url": server.url("/")}, {"url": other.url("/")}]
    crawled = crawl(Requests, {"COMITY_AUTOMATION_REQUIRED": True}, requests=requests)
    assert pages(server) == []
    assert pages(other) == [("GET", "/")]
    assert outcomes(crawled) == ["automation.unreachable", 200]
