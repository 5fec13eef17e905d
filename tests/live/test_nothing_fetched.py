"""Whatever keeps a crawl from fetching anything, one warning names the cause and a remedy, and so does the summary."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Serve

    Crawl = Callable[..., Crawled]

OPEN = "User-agent: *\nDisallow:\n"
ONCE = {"RETRY_TIMES": 0, "COMITY_PROGRESS": "summary"}


class Urls(Spider):
    name = "urls"
    urls = ""
    handle_httpstatus_list: tuple[int, ...] = ()

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls.split():
            yield Request(url)

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, str]]:
        yield {"url": response.url}


@pytest.fixture
def deaf() -> Iterator[Callable[[str], str]]:
    """`deaf(host)` returns an origin where nothing listens, and where nothing can begin to listen meanwhile."""
    with ExitStack() as stack:

        def bind(host: str) -> str:
            bound = stack.enter_context(socket.socket())
            bound.bind((host, 0))
            return f"http://{host}:{bound.getsockname()[1]}"

        yield bind


def warnings(crawled: Crawled) -> list[str]:
    levels = ("WARNING comity.", "ERROR", "CRITICAL")
    return [
        line
        for line in crawled.log.splitlines()
        if line.startswith(levels) and "USER_AGENT" not in line
    ]


def silent(handler: Any) -> None:
    handler.rfile.read(1)  # until the client hangs up


@pytest.mark.requirement("RFC-7", "WHY-2")
@pytest.mark.parametrize(
    ("name", "words", "remedy"),
    one_in(
        2,
        [
            (
                "untrusted",
                "the certificate is not trusted: self-signed certificate",
                "SSL_CERT_FILE",
            ),
            ("no TLS", "no TLS connection", "Check the scheme"),
            ("proxy away", "the proxy cannot be reached: 127.0.0.1:", "COMITY_PROXY"),
            ("proxy forbids", "the proxy answered CONNECT with HTTP status 403", "COMITY_PROXY"),
            ("bind address", "no way leads to the address of the server", "DOWNLOAD_BIND_ADDRESS"),
            ("refused", "the server refuses the connection", "the port of the URL"),
            ("late", "no answer within 1 seconds", "COMITY_POLICY_TIMEOUT"),
            ("fails", "HTTP status 503", "The server fails"),
        ],
    ),
)
def test_one_warning_names_the_cause_and_a_remedy(
    crawl: Crawl,
    serve: Serve,
    certificate: Path,
    deaf: Callable[[str], str],
    name: str,
    words: str,
    remedy: str,
) -> None:
    """The origins are two: a million may have the cause."""
    from tests.conftest import Answer

    settings: dict[str, Any] = {}
    robots: Any = OPEN
    match name:
        case "proxy away":
            settings = {"COMITY_PROXY": deaf("127.0.0.1")}
        case "bind address":
            settings = {"DOWNLOAD_BIND_ADDRESS": "192.0.2.1"}  # of documentation: no machine has it
        case "late":
            settings, robots = {"COMITY_POLICY_TIMEOUT": 1}, silent
        case "fails":
            robots = Answer("", status=503)
    secured = certificate if name in ("untrusted", "proxy forbids") else None
    servers = [
        serve({"/robots.txt": robots, "/": "page"}, host, certificate=secured)
        for host in ("127.0.0.1", "127.0.0.2")
    ]
    if name == "proxy forbids":
        settings["COMITY_PROXY"] = serve(
            {f"127.0.0.1:{servers[0].port}": Answer("", status=403)}, "127.0.0.3"
        ).origin
        servers = servers[:1]
    urls = [server.url("/") for server in servers]
    if name == "no TLS":
        urls = [url.replace("http:", "https:") for url in urls]
    if name == "refused":
        urls = [f"{deaf(host)}/" for host in ("127.0.0.1", "127.0.0.2")]

    crawled = crawl(Urls, ONCE | settings, urls=" ".join(urls))

    assert not crawled.items
    assert all(path == "/robots.txt" for server in servers for path in server.paths)
    cause, nothing = warnings(crawled)
    origins = [url.removesuffix("/") for url in urls]
    assert any(
        cause.startswith(
            f"WARNING comity.gate.fetching.fetcher: Nothing of {origin} is fetched: {words}"
        )
        for origin in origins
    )
    assert remedy in cause
    assert "`comity policy http" in cause
    assert (
        f"No page came: {len(urls)} requests were refused (robots.unreachable: {len(urls)}). `comity policy http"
        in nothing
    )
    (row,) = (
        line for line in crawled.log.splitlines() if remedy in line and line.split()[0].isdigit()
    )
    assert row.split()[0] == str(len(urls))


@pytest.mark.requirement("WHY-2")
def test_each_cause_has_its_warning(crawl: Crawl, serve: Serve, certificate: Path) -> None:
    from tests.conftest import Answer

    secured = serve({"/robots.txt": OPEN, "/": "page"}, certificate=certificate)
    failing = serve({"/robots.txt": Answer("", status=500), "/": "page"})
    good = serve({"/robots.txt": OPEN, "/": "page"})
    crawled = crawl(Urls, ONCE, urls=f"{secured.url()} {failing.url()} {good.url()}")
    assert [item["url"] for item in crawled.items] == [good.url()]
    assert sorted(line.split(" is fetched: ")[1].split(".")[0] for line in warnings(crawled)) == [
        "HTTP status 500",
        "the certificate is not trusted: self-signed certificate",
    ]


@pytest.mark.requirement("WHY-2")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "barred",
            "No page came: 2 requests were refused (robots.disallow: 2). `comity policy http",
        ),
        ("forbidden", "No page came: 2 answers were errors (HTTP status 403: 2)."),
        (
            "unusable",
            "No page came: 2 requests were refused (content-usage.disallow: 2). `comity policy http",
        ),
    ],
)
def test_a_crawl_that_no_site_lets_in_says_so(
    crawl: Crawl, serve: Serve, name: str, words: str
) -> None:
    from tests.conftest import Answer

    page: Any = Answer("no", status=403) if name == "forbidden" else "page"
    robots = {
        "barred": "User-agent: *\nDisallow: /\n",
        "unusable": "User-agent: *\nContent-Usage: train-ai=n\n",
    }.get(name, OPEN)
    server = serve({"/robots.txt": robots, "/1": page, "/2": page})
    uses = (
        {"COMITY_USES": "train-ai", "COMITY_DEFAULTS": "train-ai:allow"}
        if name == "unusable"
        else {}
    )
    crawled = crawl(Urls, ONCE | uses, urls=f"{server.url('/1')} {server.url('/2')}")
    assert not crawled.items
    (warning,) = warnings(crawled)
    assert words in warning


@pytest.mark.requirement("WHY-2")
def test_a_crawl_that_some_pages_refuse_has_no_such_warning(crawl: Crawl, serve: Serve) -> None:
    from tests.conftest import Answer

    server = serve(
        {
            "/robots.txt": "User-agent: *\nDisallow: /no\n",
            "/yes": "page",
            "/bad": Answer("no", status=403),
        }
    )
    crawled = crawl(
        Urls, ONCE, urls=f"{server.url('/no')} {server.url('/yes')} {server.url('/bad')}"
    )
    assert len(crawled.items) == 1
    assert not warnings(crawled)
