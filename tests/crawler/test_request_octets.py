"""Requests of Scrapy as octets of HTTP/1.1, by comity's download handler."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import NotSupported, UnsupportedURLSchemeError
from scrapy.settings import Settings

from comity.crawler.downloads.octets import octets_of
from comity.crawler.downloads.route import Routes


def octets(url: str, **options: Any) -> bytes:
    request = Request(url, **options)
    return octets_of(request, *Routes(Settings()).of(request))


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("http://a.example", {}, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ("http://a.example:80/a#b", {}, b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ("https://a.example:80?x", {}, b"GET /?x HTTP/1.1\r\nHost: a.example:80\r\n\r\n"),
        ("http://[::1]:8080/", {}, b"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"),
        ("http://u:p@a.example/", {}, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        (
            "http://a.example/",
            {"method": "POST"},
            b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "http://a.example/",
            {"method": "PUT", "body": b"ab", "headers": {"Content-Length": "9"}},
            b"PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nab",
        ),
        (
            "http://a.example/?a[0]",
            {"meta": {"verbatim_url": True}, "headers": {"X": ["1", "2"]}},
            b"GET /?a[0] HTTP/1.1\r\nHost: a.example\r\nX: 1\r\nX: 2\r\n\r\n",
        ),
        (
            "http://a.example/b",
            {"meta": {"proxy": "p.example:1"}, "headers": {"Proxy-Authorization": "Basic eA=="}},
            b"GET http://a.example/b HTTP/1.1\r\nHost: a.example\r\n"
            b"Proxy-Authorization: Basic eA==\r\n\r\n",
        ),
        (
            "https://a.example/b",  # the proxy only tunnels, and gets its field by CONNECT
            {"meta": {"proxy": "http://p"}, "headers": {"Proxy-Authorization": "Basic eA=="}},
            b"GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n",
        ),
    ],
)
def test_requests(url: str, options: dict[str, Any], expected: bytes) -> None:
    assert octets(url, **options) == expected


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize(
    "options",
    [
        {"method": "GET /b HTTP/1.1\r\nHost: x\r\n\r\nGET"},
        {"method": "G T"},
        {"method": "GËT"},
        {"headers": {"X": "a\r\nHost: b"}},
        {"headers": {"X": "a\nb"}},
        {"headers": {"X": "a\0b"}},
        {"headers": {"X: a\r\nHost": "b"}},
        {"headers": {" X": "a"}},
        {"headers": {":path": "/b"}},
        {"headers": {"": "a"}},
        {"headers": {"Host": "a\r\nX: b"}},
        {"headers": {"Proxy-Authorization": "a\r\nX: b"}, "meta": {"proxy": "http://p"}},
    ],
)
def test_no_request_can_be_read_as_another(options: dict[str, Any]) -> None:
    with pytest.raises(NotSupported, match="cannot be sent"):
        octets("http://a.example/a", **options)


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize(
    "url", ["http://a.example/a b", "http://a.example/ü", "http://a.example/a\r\nX: b"]
)
def test_verbatim_urls_are_refused_where_http_does_not_permit_them(url: str) -> None:
    with pytest.raises(NotSupported, match="cannot be sent"):
        octets(url, meta={"verbatim_url": True})


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize(
    ("url", "meta", "error", "words"),
    [
        ("ftp://a.example/", {}, UnsupportedURLSchemeError, "not a server of http or https"),
        (
            "http://a.example:x/",
            {"verbatim_url": True},
            UnsupportedURLSchemeError,
            "not a server of http or https",
        ),
        (
            "http://ü.example/",
            {"verbatim_url": True},
            UnsupportedURLSchemeError,
            "not a server of http or https",
        ),
        ("http://a.example/", {"proxy": "socks5://p:1"}, NotSupported, "write http://host:port"),
        ("http://a.example/", {"proxy": "https://u:p@p:1"}, NotSupported, "`https://p:1`"),
        ("http://a.example/", {"bindaddress": ("a", "b")}, NotSupported, "bindaddress"),
    ],
)
def test_routes_that_cannot_be_taken(
    url: str, meta: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        octets(url, meta=meta)
