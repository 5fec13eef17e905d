"""Crawls with COMITY_DOWNLOAD_HANDLER: comity's client fetches policy files and pages.

test_with_download_handler.py repeats essential live tests with the handler.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from scrapy.settings import Settings

from comity.crawler.addon import Addon
from comity.gate.options import SettingsError
from comity.policies.formats import WELL_KNOWN

if TYPE_CHECKING:
    from tests.certificates import Authority
    from tests.conftest import Crawled, Serve
    from tests.gate.fetching.conftest import Server
    from tests.live.conftest import CrawledUrls

    Crawl = Callable[..., Crawled]

WITH_HANDLER = {"COMITY_DOWNLOAD_HANDLER": True}


@pytest.fixture
def crawl(crawl: Crawl) -> Crawl:
    def run(
        spider: type[Spider], settings: dict[str, Any] | None = None, **arguments: Any
    ) -> Crawled:
        return crawl(spider, WITH_HANDLER | (settings or {}), **arguments)

    return run


@pytest.fixture
def crawl_urls(crawl_urls: Callable[..., CrawledUrls]) -> Callable[..., CrawledUrls]:
    def run(*urls: str, settings: dict[str, Any] | None = None, **environment: str) -> CrawledUrls:
        return crawl_urls(*urls, settings=WITH_HANDLER | (settings or {}), **environment)

    return run


class Outcomes(Spider):
    """Yield the outcome of each URL: the response, or the error."""

    name = "outcomes"
    urls: tuple[str, ...] = ()
    options: ClassVar[dict[str, Any]] = {}

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, errback=self.failed, dont_filter=True, **self.options)

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {
            "url": response.url,
            "body": response.body.decode("latin-1"),
            "flags": response.flags,
            "fields": sorted(name.decode() for name in response.headers),
            "protocol": response.protocol,
            "ip_address": str(response.ip_address),
            "has_certificate": bool(response.certificate),
        }

    def failed(self, failure: Any) -> dict[str, str]:
        return {
            "url": failure.request.url,
            "error": type(failure.value).__name__,
            "why": str(failure.value),
        }


def by_path(crawled: Crawled) -> dict[str, dict[str, Any]]:
    return {item["url"].rpartition("/")[2]: item for item in crawled.items}


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize("secured", [False, True], ids=["http", "https"])
def test_policy_files_and_pages_share_a_connection(
    serve: Serve, crawl_urls: Callable[..., CrawledUrls], authority: Authority, *, secured: bool
) -> None:
    ports: list[int] = []

    def note(body: str, status: int = 200) -> Callable[[Any], Any]:
        def route(handler: Any) -> Any:
            ports.append(handler.client_address[1])
            return serve.Answer(body, status=status)

        return route

    routes: dict[str, Any] = dict.fromkeys(WELL_KNOWN, note("", 404)) | dict.fromkeys(
        ["/a", "/b", "/c"], note("x")
    )
    server = serve(routes, certificate=authority.issue("127.0.0.1") if secured else None)
    urls = [server.url(path) for path in ("/a", "/b", "/c")]
    crawled = crawl_urls(*urls, settings={"CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    assert crawled.came == urls
    assert len(ports) == len(WELL_KNOWN) + 3
    assert len(set(ports)) == 1


OK = "HTTP/1.1 200 OK\r\n"
CHUNKED = f"{OK}Transfer-Encoding: chunked\r\n\r\n"
# Path -> the octets of the answer. Afterwards the server ends the connection.
ANSWERS = {
    "length": f"{OK}Content-Length: 2\r\n\r\nab",
    "chunks": f"{CHUNKED}1\r\na\r\n1;x=y\r\nb\r\n0\r\nX-Robots-Tag: none\r\n\r\n",
    "until-close": f"{OK}X: y\r\n\r\nab",
    "old": "HTTP/1.0 200 OK\r\n\r\nab",
    "interim": f"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{OK}Content-Length: 2\r\n\r\nab",
    "short": f"{OK}Content-Length: 3\r\n\r\nab",
    "short-chunks": f"{CHUNKED}2\r\nab\r\n",
    "two-lengths": f"{OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "both-lengths": f"{OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "surplus": f"{OK}Content-Length: 2\r\n\r\nab{OK}Content-Length: 1\r\n\r\nc",
    "switch": "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    "other-protocol": "SSH-2.0-OpenSSH_9.7\r\n",
    "endless-head": f"{OK}X: {'y' * 100_000}\r\n\r\n",
    "nothing": "",
}


@pytest.fixture
def scripted() -> Iterator[Server]:
    """A server that sends ANSWERS, each over a connection of its own."""
    from tests.gate.fetching.conftest import Peer, Server

    def script(peer: Peer) -> None:
        while True:
            peer.read()
            path = peer.paths[-1].removeprefix("/")
            if path in ANSWERS:
                peer.send(ANSWERS[path].encode())
                peer.sock.shutdown(socket.SHUT_WR)
                with suppress(OSError):
                    peer.wait_for_the_end()
                return
            peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    server = Server(script)
    yield server
    server.close()


@pytest.mark.requirement("SEC-3")
@pytest.mark.parametrize("accepts_loss", [False, True])
def test_answers_that_can_be_read_in_one_way_only(
    crawl: Crawl, scripted: Server, *, accepts_loss: bool
) -> None:
    urls = [f"{scripted.origin}/{name}" for name in ANSWERS]
    settings = {"RETRY_ENABLED": False, "DOWNLOAD_FAIL_ON_DATALOSS": not accepts_loss}
    found = by_path(crawl(Outcomes, settings, urls=urls))
    assert found.keys() == ANSWERS.keys()
    whole = {name: item for name, item in found.items() if "body" in item and not item["flags"]}
    assert whole.keys() == {"length", "chunks", "until-close", "old", "interim"}
    assert {item["body"] for item in whole.values()} == {"ab"}
    assert whole["chunks"]["fields"] == ["Transfer-Encoding"]  # a trailer is no header field
    assert whole["old"]["protocol"] == "HTTP/1.0"
    assert whole["length"]["ip_address"] == "127.0.0.1"
    for item in (found.pop("short"), found.pop("short-chunks")):
        if accepts_loss:
            assert (item["body"], item["flags"]) == ("ab", ["dataloss"])
        else:
            assert item["error"] == "ResponseDataLossError"
    errors = {name: item["error"] for name, item in found.items() if "error" in item}
    assert errors == dict.fromkeys(
        found.keys() - whole.keys(),
        "DownloadFailedError",
    )


@pytest.mark.requirement("SEC-3")
def test_limits_end_a_download(serve: Serve, crawl: Crawl) -> None:
    """A size that is announced, a size that is not, and a time."""
    written: list[str] = []

    def endless(handler: Any) -> None:
        handler.wfile.write(f"{CHUNKED}".encode())
        with suppress(OSError):
            while True:
                handler.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
        written.append(handler.path)
        handler.close_connection = True

    def silent(handler: Any) -> None:
        handler.wfile.write(f"{OK}Content-Length: 5\r\n\r\nab".encode())
        with suppress(OSError):
            handler.rfile.read(1)
        handler.close_connection = True

    def framing(handler: Any) -> None:
        handler.wfile.write(f"{CHUNKED}1;".encode())
        with suppress(OSError):
            while True:
                handler.wfile.write(b"x" * 65536)
        written.append(handler.path)
        handler.close_connection = True

    server = serve(
        {
            "/large": "x" * 5000,
            "/small": "x" * 4000,
            "/endless": endless,
            "/framing": framing,
            "/silent": silent,
        }
    )
    paths = ("/large", "/small", "/endless", "/framing", "/silent")
    settings = {
        "DOWNLOAD_MAXSIZE": 4500,
        "DOWNLOAD_WARNSIZE": 3000,
        "DOWNLOAD_TIMEOUT": 3,
        "RETRY_ENABLED": False,
    }
    crawled = crawl(Outcomes, settings, urls=[server.url(path) for path in paths])
    found = by_path(crawled)
    assert {path: item.get("error") for path, item in found.items()} == {
        "large": "DownloadCancelledError",
        "small": None,
        "endless": "DownloadCancelledError",
        "framing": "DownloadFailedError",
        "silent": "DownloadTimeoutError",
    }
    assert "Expected to receive 5000 bytes which is larger than download max size" in crawled.log
    assert "Expected to receive 4000 bytes which is larger than download warn size" in crawled.log
    assert sorted(written) == ["/endless", "/framing"]  # the connections have ended


class Stops:
    """Stop downloads, and count the parts of bodies."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Stops:
        stops = cls()
        crawler.signals.connect(stops.headers_received, signals.headers_received)
        crawler.signals.connect(stops.bytes_received, signals.bytes_received)
        return stops

    def headers_received(self, request: Request, body_length: int) -> None:
        if request.url.endswith("/headers"):
            assert body_length == 2
            raise StopDownload(fail=False)

    def bytes_received(self, request: Request, data: bytes) -> None:
        if request.url.endswith("/errback"):
            raise StopDownload(fail=True)
        if request.url.endswith("/bytes"):
            raise StopDownload(fail=False)


class Stopped(Outcomes):
    name = "stopped"
    custom_settings: ClassVar[dict[str, Any]] = {"EXTENSIONS": {Stops: 0}}  # type: ignore[misc]


@pytest.mark.requirement("MEET-1")
def test_receivers_may_stop_a_download(serve: Serve, crawl: Crawl) -> None:
    server = serve(dict.fromkeys(("/headers", "/bytes", "/errback", "/whole"), "ab"))
    urls = [server.url(path) for path in ("/headers", "/bytes", "/errback", "/whole")]
    found = by_path(crawl(Stopped, urls=urls))
    assert found["headers"]["body"] == ""
    assert found["bytes"]["body"] == found["whole"]["body"] == "ab"
    assert found["errback"]["error"] == "StopDownload"
    assert found["headers"]["flags"] == found["bytes"]["flags"] == ["download_stopped"]
    assert found["whole"]["flags"] == []


class Heads(Outcomes):
    name = "heads"
    options: ClassVar[dict[str, Any]] = {"method": "HEAD"}


@pytest.mark.requirement("MEET-1")
def test_answers_to_head_have_no_body(serve: Serve, crawl: Crawl) -> None:
    def head(handler: Any) -> None:
        handler.wfile.write(f"{OK}Content-Length: 5000\r\n\r\n".encode())

    server = serve({"/a": head, "/b": head})
    crawled = crawl(Heads, {"DOWNLOAD_MAXSIZE": 100}, urls=[server.url("/a"), server.url("/b")])
    assert [item["body"] for item in crawled.items] == ["", ""]


@pytest.mark.requirement("MEET-1")
def test_a_handler_of_the_project_is_an_error() -> None:
    handlers = {"https": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}
    settings = Settings({"COMITY_DOWNLOAD_HANDLER": True, "DOWNLOAD_HANDLERS": handlers})
    with pytest.raises(SettingsError, match="has a handler for https too: remove one of them"):
        Addon().update_settings(settings)
