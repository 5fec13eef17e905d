"""Crawls of sites whose certificates come from an authority that the operator trusts, and from others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.selection import one_in

if TYPE_CHECKING:
    from tests.certificates import Authority
    from tests.conftest import Loopback, Serve
    from tests.live.conftest import ConnectProxy, CrawledUrls

OPEN = "User-agent: *\nDisallow: /no\n"


def site(serve: Serve, certificate: Path | None, **pages: Any) -> Loopback:
    return serve(
        {"/robots.txt": OPEN, "/a": "page", "/no": "page", **pages}, certificate=certificate
    )


@pytest.mark.requirement("RFC-7", "MEET-1")
def test_only_sites_with_a_certificate_that_is_trusted_are_crawled(
    serve: Serve, crawl_urls: Callable[..., CrawledUrls], authority: Authority, certificate: Path
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
    crawled = crawl_urls(
        by_name, good.url("/a"), good.url("/no"), *(other.url("/a") for other in others)
    )
    assert crawled.came == sorted([good.url("/a"), by_name])
    assert "/no" not in good.paths
    assert set(good.names) == {"localhost", None}
    assert not any(other.seen for other in others)
    for words in ("not trusted", "not valid at this time", "for another name"):
        assert crawled.log.count(f"is fetched: the certificate is {words}") == 1


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize("kind", one_in(3, ["unknown", "expired", "another name"]))
def test_a_page_does_not_come_from_a_server_that_is_not_trusted_any_more(
    serve: Serve,
    crawl_urls: Callable[..., CrawledUrls],
    authority: Authority,
    certificate: Path,
    kind: str,
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
    crawled = crawl_urls(server.url("/a"))
    assert crawled.failed == [server.url("/a")]
    assert "/a" not in server.paths
    trusting = crawl_urls(server.url("/a"), settings={"DOWNLOAD_VERIFY_CERTIFICATES": False})
    assert trusting.came == [server.url("/a")]


@pytest.mark.requirement("RFC-5", "RFC-7", "MEET-1")
def test_redirects_between_http_and_https(
    serve: Serve, crawl_urls: Callable[..., CrawledUrls], authority: Authority, certificate: Path
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
    crawled = crawl_urls(
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


@pytest.mark.requirement("RFC-7", "MEET-1")
def test_through_a_proxy_certificates_are_those_of_the_sites(
    serve: Serve,
    crawl_urls: Callable[..., CrawledUrls],
    authority: Authority,
    certificate: Path,
    connect_proxy: ConnectProxy,
) -> None:
    """The proxy sees names and ports alone, and the sites see nothing of the proxy's password."""
    good = site(serve, authority.issue("127.0.0.1"))
    unknown = site(serve, certificate)
    crawled = crawl_urls(
        good.url("/a"),
        good.url("/no"),
        unknown.url("/a"),
        HTTPS_PROXY=connect_proxy.url,
        NO_PROXY="",
    )
    assert crawled.came == [good.url("/a")]
    assert "/no" not in good.paths
    assert not unknown.seen
    authorities = {
        f"CONNECT 127.0.0.1:{server.port} HTTP/1.1".encode() for server in (good, unknown)
    }
    assert {head.partition(b"\r\n")[0] for head in connect_proxy.heads} == authorities
    assert all(b"proxy-authorization: basic" in head.lower() for head in connect_proxy.heads)
    assert not any(name.startswith("proxy-") for seen in good.seen for name in seen.headers)
