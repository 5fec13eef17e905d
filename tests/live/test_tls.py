"""Crawls of sites whose certificates come from an authority that the operator trusts, and from others."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.certificates import Authority
    from tests.conftest import Loopback, Serve

OPEN = "User-agent: *\nDisallow: /no\n"

PROGRAM = """
import json, sys
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess

class Urls(Spider):
    name = "urls"

    async def start(self):
        for url in sys.argv[2:]:
            yield Request(url, errback=self.failed)

    def parse(self, response):
        print("came", response.url, flush=True)

    def failed(self, failure):
        print("failed", failure.request.url, flush=True)

process = AsyncCrawlerProcess(json.loads(sys.argv[1]))
process.crawl(Urls)
process.start()
"""


class Crawled:
    def __init__(self, output: str, log: str) -> None:
        lines = [line.split(" ") for line in output.splitlines()]
        self.came = sorted(url for word, url in lines if word == "came")
        self.failed = sorted(url for word, url in lines if word == "failed")
        self.log = log


@pytest.fixture
def crawl(mode: str, tmp_path: Path, authority: Authority) -> Callable[..., Crawled]:
    """`crawl(*urls, settings={}, **environment)` in a process of its own that trusts the authority."""

    def run(*urls: str, settings: dict[str, Any] | None = None, **environment: str) -> Crawled:
        defaults = {
            "ADDONS": {"comity.crawler.addon.Addon": 100},
            "COMITY_STORE": str(tmp_path / "policies.sqlite"),
            "COMITY_AGENT": "testbot",
            "COMITY_MIN_DELAY": 0,
            "RETRY_TIMES": 0,
            "TWISTED_REACTOR_ENABLED": mode == "reactor",
        }
        command = [sys.executable, "-c", PROGRAM, json.dumps(defaults | (settings or {})), *urls]
        trusted = os.environ | {"SSL_CERT_FILE": str(authority.certificates)} | environment
        done = subprocess.run(
            command, env=trusted, capture_output=True, text=True, timeout=300, check=True
        )
        return Crawled(done.stdout, done.stderr)

    return run


def site(serve: Serve, certificate: Path | None, **pages: Any) -> Loopback:
    return serve(
        {"/robots.txt": OPEN, "/a": "page", "/no": "page", **pages}, certificate=certificate
    )


@pytest.mark.requirement("RFC-7", "MEET-1")
def test_only_sites_with_a_certificate_that_is_trusted_are_crawled(
    serve: Serve, crawl: Callable[..., Crawled], authority: Authority, certificate: Path
) -> None:
    good = site(serve, authority.issue("127.0.0.1", "localhost"))
    others = [
        site(serve, other)
        for other in (
            certificate,
            authority.expired("127.0.0.1"),
            authority.of_tomorrow("127.0.0.1"),
            authority.issue("127.0.0.2", "localhost"),
        )
    ]
    by_name = good.url("/a").replace("127.0.0.1", "localhost")
    crawled = crawl(
        by_name, good.url("/a"), good.url("/no"), *(other.url("/a") for other in others)
    )
    assert crawled.came == sorted([good.url("/a"), by_name])
    assert "/no" not in good.paths
    assert set(good.names) == {"localhost", None}
    assert not any(other.seen for other in others)
    for words in ("not trusted", "not valid at this time", "for another name"):
        assert crawled.log.count(f"is fetched: the certificate is {words}") == 1


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize("kind", ["unknown", "expired", "another name"])
def test_a_page_does_not_come_from_a_server_that_is_not_trusted_any_more(
    serve: Serve, crawl: Callable[..., Crawled], authority: Authority, certificate: Path, kind: str
) -> None:
    """The policies came from the site, and somebody on the way answers for its pages."""
    then = {
        "unknown": lambda: certificate,
        "expired": lambda: authority.expired("127.0.0.1"),
        "another name": lambda: authority.issue("localhost"),
    }[kind]()

    def last_file(handler: Any) -> Any:
        server.present(then)
        return serve.Answer("", status=404)

    server = site(serve, authority.issue("127.0.0.1"), **{"/.well-known/tdmrep.json": last_file})
    crawled = crawl(server.url("/a"))
    assert crawled.failed == [server.url("/a")]
    assert "/a" not in server.paths
    trusting = crawl(server.url("/a"), settings={"DOWNLOAD_VERIFY_CERTIFICATES": False})
    assert trusting.came == [server.url("/a")]


@pytest.mark.requirement("RFC-5", "RFC-7", "MEET-1")
def test_redirects_between_http_and_https(
    serve: Serve, crawl: Callable[..., Crawled], authority: Authority, certificate: Path
) -> None:
    """A policy file counts where it leads to with a trusted certificate. Pages there have the policies of that origin."""
    refusing = "User-agent: *\nDisallow: /a\n"

    def redirect(url: str) -> Any:
        return serve.Answer("", status=301, headers={"Location": url})

    secured = site(serve, authority.issue("127.0.0.1"), **{"/refusing": serve.Answer(refusing)})
    unknown = site(serve, certificate, **{"/robots.txt": serve.Answer(OPEN)})
    up = serve({"/robots.txt": redirect(secured.url("/refusing")), "/a": "page", "/b": "page"})
    to_unknown = serve({"/robots.txt": redirect(unknown.url("/robots.txt")), "/a": "page"})
    plain = serve(
        {"/robots.txt": OPEN, "/a": redirect(secured.url("/a")), "/b": redirect(secured.url("/no"))}
    )
    down = site(serve, authority.issue("127.0.0.1"), **{"/a": redirect(up.url("/a"))})
    crawled = crawl(
        *(up.url(path) for path in ("/a", "/b")),
        to_unknown.url("/a"),
        plain.url("/a"),
        plain.url("/b"),
        down.url("/a"),
    )
    assert crawled.came == sorted([up.url("/b"), secured.url("/a")])
    assert up.paths == ["/robots.txt", "/b"]
    assert to_unknown.paths == ["/robots.txt"]
    assert not unknown.seen
    assert "/no" not in secured.paths


class ConnectProxy:
    """Tunnels to wherever it is asked, and notes that."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://name:secret@127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._tunnel, args=(sock,), daemon=True).start()

    def _tunnel(self, sock: socket.socket) -> None:
        with suppress(OSError), sock:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (data := sock.recv(65536)):
                    return
                head += data
            self.heads.append(head)
            host, _, port = head.split(b" ")[1].decode().rpartition(":")
            with socket.create_connection((host, int(port))) as onward:
                sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=_copy, args=(onward, sock), daemon=True)
                back.start()
                _copy(sock, onward)
                back.join()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # it wakes the thread
        self._thread.join()
        self._listener.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    proxy = ConnectProxy()
    yield proxy
    proxy.close()


@pytest.mark.requirement("RFC-7", "MEET-1")
def test_through_a_proxy_certificates_are_those_of_the_sites(
    serve: Serve,
    crawl: Callable[..., Crawled],
    authority: Authority,
    certificate: Path,
    proxy: ConnectProxy,
) -> None:
    """The proxy sees names and ports alone, and the sites see nothing of the proxy's password."""
    good = site(serve, authority.issue("127.0.0.1"))
    unknown = site(serve, certificate)
    crawled = crawl(
        good.url("/a"), good.url("/no"), unknown.url("/a"), HTTPS_PROXY=proxy.url, NO_PROXY=""
    )
    assert crawled.came == [good.url("/a")]
    assert "/no" not in good.paths
    assert not unknown.seen
    authorities = {
        f"CONNECT 127.0.0.1:{server.port} HTTP/1.1".encode() for server in (good, unknown)
    }
    assert {head.partition(b"\r\n")[0] for head in proxy.heads} == authorities
    assert all(b"proxy-authorization: basic" in head.lower() for head in proxy.heads)
    assert not any(name.startswith("proxy-") for seen in good.seen for name in seen.headers)
