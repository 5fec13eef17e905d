"""Crawls with uvloop, with Scrapy's download handler for aiohttp, and with comity's handler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import version_info

from comity.policies.formats import WELL_KNOWN

if TYPE_CHECKING:
    from pathlib import Path

    from tests.certificates import Authority
    from tests.conftest import Loopback, Serve
    from tests.live.conftest import ConnectProxy, CrawledUrls

RULES = "User-agent: *\nDisallow: /no\n"
RESOLVER = "scrapy.resolver.CachingHostnameResolver"  # for IPv6 with a reactor
AIOHTTP = "scrapy.core.downloader.handlers._aiohttp"
SETTINGS = [
    pytest.param(
        {
            "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
            "DNS_RESOLVER": RESOLVER,  # before Scrapy 2.19
            "TWISTED_DNS_RESOLVER": RESOLVER,
        },
        id="uvloop",
        marks=pytest.mark.skipif(sys.platform == "win32", reason="uvloop does not run on Windows"),
    ),
    pytest.param(
        {
            "DOWNLOAD_HANDLERS": dict.fromkeys(
                ("http", "https"), f"{AIOHTTP}.AiohttpDownloadHandler"
            )
        },
        id="aiohttp",
        marks=pytest.mark.skipif(
            find_spec(AIOHTTP) is None, reason="this version of Scrapy has no handler for aiohttp"
        ),
    ),
    pytest.param({"COMITY_DOWNLOAD_HANDLER": True}, id="comity"),
]
pytestmark = pytest.mark.parametrize("settings", SETTINGS)


@pytest.mark.requirement("RFC-1", "RFC-7", "MEET-1")
def test_http_https_and_ipv6(
    serve: Serve,
    crawl_urls: Callable[..., CrawledUrls],
    authority: Authority,
    settings: dict[str, Any],
) -> None:
    """The policy files of an origin come over one connection."""
    ports: dict[str, set[int]] = {}

    def start(host: str, **options: Any) -> Loopback:
        def policy_file(handler: Any) -> Any:
            ports.setdefault(server.origin, set()).add(handler.client_address[1])
            if handler.path == "/robots.txt":
                return serve.Answer(RULES)
            return serve.Answer(status=404)

        routes: dict[str, Any] = {"/a": "page", "/b": "page", "/no": "page"}
        server = serve(routes | dict.fromkeys(WELL_KNOWN, policy_file), host, **options)
        return server

    sites = [start("127.0.0.1"), start("::1")]
    # With its oldest packages, Scrapy 2.17 fails to open TLS with uvloop and the reactor.
    if version_info >= (2, 18) or "ASYNCIO_EVENT_LOOP" not in settings:
        sites.append(start("127.0.0.1", certificate=authority.issue("127.0.0.1")))
    urls = [site.url(path) for site in sites for path in ("/a", "/no", "/b")]
    crawled = crawl_urls(*urls, settings=settings)
    assert crawled.came == sorted(url for url in urls if not url.endswith("/no"))
    for site in sites:
        assert {"/a", "/b", "/robots.txt"} < set(site.paths)
        assert "/no" not in site.paths
        assert len(ports[site.origin]) == 1


@pytest.mark.requirement("RFC-7", "MEET-1")
def test_a_certificate_that_is_not_trusted(
    serve: Serve,
    crawl_urls: Callable[..., CrawledUrls],
    certificate: Path,
    settings: dict[str, Any],
) -> None:
    server = serve({"/robots.txt": "", "/a": "page"}, certificate=certificate)
    crawled = crawl_urls(server.url("/a"), settings=settings)
    assert not crawled.came
    assert not server.seen
    assert "is fetched: the certificate is not trusted" in crawled.log


@pytest.mark.requirement("RFC-7", "MEET-1")
def test_through_proxies(
    serve: Serve,
    crawl_urls: Callable[..., CrawledUrls],
    authority: Authority,
    connect_proxy: ConnectProxy,
    settings: dict[str, Any],
) -> None:
    """One proxy tunnels to a site with TLS. The other fetches pages without TLS itself."""
    secured = serve({"/robots.txt": RULES, "/a": "page"}, certificate=authority.issue("127.0.0.1"))
    proxy = serve({"http://site.test/robots.txt": RULES, "http://site.test/a": "page"})
    urls = [*map(secured.url, ("/a", "/no")), "http://site.test/a", "http://site.test/no"]
    crawled = crawl_urls(
        *urls,
        settings=settings,
        HTTP_PROXY=proxy.origin,
        HTTPS_PROXY=connect_proxy.url,
        NO_PROXY="",
    )
    assert crawled.came == sorted([secured.url("/a"), "http://site.test/a"])
    assert {"/robots.txt", "/a"} <= set(secured.paths)
    assert "/no" not in secured.paths
    assert {"http://site.test/robots.txt", "http://site.test/a"} <= set(proxy.paths)
    assert "http://site.test/no" not in proxy.paths
    assert {head.split(b"\r\n")[0] for head in connect_proxy.heads} == {
        f"CONNECT 127.0.0.1:{secured.port} HTTP/1.1".encode()
    }
