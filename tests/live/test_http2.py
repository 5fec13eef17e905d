"""HTTP/2 by Scrapy's two handlers for it: what was judged goes out, over the connection of its own site, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled
    from tests.http2_server import Http2Server

    Crawl = Callable[..., Crawled]

PRIVATE = "User-agent: *\nDisallow: /private\nDisallow: /x;1/b$\n"
TARGETS = (
    *(
        "/a;b",
        "/a;b?c",
        "/a;x=1/b;y=2",
        "/a;",
        "/;a",
        "/a//b",
        "/a%2Fb",
        "/a%3Fb",
        "/?q=%2F",
        "/a?x=/../b",
        "/a?b;c",
    ),
    *("/%7Ea", "/a%25b", "/a%20b", "/a+b", "/*", "/a!$&()*+,=", "/a:b@c", "/%C3%BC", "/..;/a"),
)
REFUSED = (
    *(
        "/private",
        "/private;a",
        "/%70rivate",
        "//private",
        "/a/../private",
        "/a/%2e%2e/private",
        "/..;/private",
    ),
    *(
        "/x;1/b",
        "/x;1/b;",
        "/x;1/b;2",
    ),  # of those some clients leave out the parameters of the last segment
)

# A request that says in its fields, its method or its body that it is another one.
SHAPES: dict[str, dict[str, Any]] = {
    "path": {"headers": {":path": "/private"}},
    "path with a capital letter": {"headers": {":Path": "/private"}},
    "path after a space": {"headers": {" :path": "/private"}},
    "authority": {"headers": {":authority": "other.example"}},
    "method in the fields": {"headers": {":method": "DELETE"}},
    "host": {"headers": {"Host": "other.example"}},
    "two hosts": {"headers": {"Host": ["ORIGIN", "other.example"]}},
    "line end in a value": {"headers": {"X-A": "b\r\nHost: other.example"}},
    "line end in a name": {"headers": {"X-A: b\r\nHost": "other.example"}},
    "request in the method": {"method": "GET /private HTTP/1.1\r\nHost: x\r\n\r\nGET"},
    "chunks": {
        "method": "POST",
        "headers": {"Transfer-Encoding": "chunked"},
        "body": "0\r\n\r\nGET /private HTTP/1.1\r\n\r\n",
    },
    "short length": {
        "method": "POST",
        "headers": {"Content-Length": "1"},
        "body": "aGET /private HTTP/1.1\r\n\r\n",
    },
    "two lengths": {"method": "POST", "headers": {"Content-Length": ["3", "30"]}, "body": "abc"},
}


class Targets(Spider):
    name = "targets"
    origin = ""

    async def start(self) -> AsyncIterator[Request]:
        for target in TARGETS + REFUSED:
            yield Request(self.origin + target, headers={"X-Target": target}, dont_filter=True)

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, Any]]:
        yield {"url": response.url, "protocol": response.protocol}


class Shapes(Targets):
    name = "shapes"
    shape = ""

    async def start(self) -> AsyncIterator[Request]:
        shape = SHAPES[self.shape]
        host = urlsplit(self.origin).netloc
        fields = {
            name: [value.replace("ORIGIN", host) for value in values]
            if isinstance(values, list)
            else values
            for name, values in shape.get("headers", {}).items()
        }
        yield Request(f"{self.origin}/a", **{**shape, "headers": fields}, dont_filter=True)


@pytest.fixture
def settings(mode: str) -> dict[str, Any]:
    handler = {"reactor": "http2.H2DownloadHandler", "no-reactor": "_httpx.HttpxDownloadHandler"}[
        mode
    ]
    return {
        "DOWNLOAD_HANDLERS": {"https": f"scrapy.core.downloader.handlers.{handler}"},
        "HTTPX_HTTP2_ENABLED": True,
        "DOWNLOAD_VERIFY_CERTIFICATES": False,
        "HTTPERROR_ALLOW_ALL": True,
        "RETRY_ENABLED": False,
    }


@pytest.fixture
def server(certificate: Path) -> Iterator[Http2Server]:
    from tests.http2_server import Http2Server

    server = Http2Server(certificate, {"/robots.txt": PRIVATE})
    yield server
    server.close()


@pytest.mark.requirement("MEET-1", "MEET-6")
def test_over_http2_the_target_that_was_judged_goes_out(
    crawl: Crawl, server: Http2Server, settings: dict[str, Any]
) -> None:
    crawled = crawl(Targets, settings, origin=server.origin)
    assert {item["protocol"] for item in crawled.items} <= {"h2", "HTTP/2"}
    assert len(crawled.items) == len(TARGETS)
    assert {(stream.field(":path"), stream.field("x-target")) for stream in server.streams} == {
        (target, target) for target in TARGETS
    }
    assert {stream.field(":authority") for stream in server.streams} == {
        urlsplit(server.origin).netloc
    }
    assert crawled.stats["comity/access/deny/robots.disallow"] == len(REFUSED)


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize("shape", one_in(2, SHAPES))
def test_over_http2_no_request_is_another_one_than_was_judged(
    crawl: Crawl, server: Http2Server, settings: dict[str, Any], shape: str
) -> None:
    crawled = crawl(Shapes, settings, origin=server.origin, shape=shape)
    assert not crawled.items
    assert not server.streams
    assert crawled.stats["comity/access/deny/comity.declaration"] == 1


@pytest.mark.requirement("MEET-1")
def test_over_http2_each_site_has_a_connection_of_its_own(
    crawl: Crawl, certificate: Path, settings: dict[str, Any]
) -> None:
    """One certificate, and one address: a browser would send the requests for both sites over one connection."""
    from tests.http2_server import Http2Server

    allowing = Http2Server(certificate, {"/robots.txt": PRIVATE, "/a": "page"})
    other = allowing.origin.replace("127.0.0.1", "localhost")
    crawled = crawl(Both, settings, origin=f"{allowing.origin} {other}")
    allowing.close()
    assert len(crawled.items) == 2
    assert allowing.connections == 2
    assert sorted(stream.field(":authority") for stream in allowing.streams) == sorted(
        urlsplit(url).netloc for url in (allowing.origin, other)
    )


class Both(Targets):
    name = "both"

    async def start(self) -> AsyncIterator[Request]:
        for origin in self.origin.split():
            yield Request(f"{origin}/a")
