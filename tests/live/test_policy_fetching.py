"""Every outcome of asking for a policy file, in both modes of Scrapy, against real servers."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from scrapy import Request, Spider
from scrapy.crawler import Crawler

from comity.crawler.addresses import IPAddress, Reach
from comity.crawler.engine import closing
from comity.crawler.fetcher import ClosingError, PolicyFetcher
from comity.crawler.runtime import Runtime
from comity.crawler.store import PolicyStore
from comity.crawler.transfer import PolicyTransfer
from comity.policies.lines import MAX_BYTES

if TYPE_CHECKING:
    from tests.conftest import Crawled, Loopback

ALONE: dict[str, Any] = {"ADDONS": {}, "DOWNLOADER_MIDDLEWARES": {"comity.crawler.transfer.PolicyTransfer": 950}}
RULES = "User-agent: *\nDisallow: /private\n"

Route = Callable[[BaseHTTPRequestHandler], None]


def http(status: int, body: bytes | str = b"", **headers: str) -> Route:
    """An answer without any header that is not asked for, but the length."""
    octets = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": "text/plain", "Content-Length": str(len(octets))} | {k.replace("_", "-"): v for k, v in headers.items()}
    head = f"HTTP/1.1 {status} Status\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return octets_of(head.encode() + b"\r\n" + octets)


def octets_of(answer: bytes) -> Route:
    def route(handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(answer)
        except OSError:
            handler.close_connection = True  # the client has read enough

    return route


def redirect(location: str, status: int = 302, **headers: str) -> Route:
    return http(status, Location=location, **headers)


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def dribble(head: bytes, drop: bytes) -> Route:
    """Sends something for ever, so slowly that no single read times out."""

    def route(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(head)
        for _ in range(200):
            try:
                handler.wfile.write(drop)
            except OSError:
                return
            time.sleep(0.05)

    return route


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + RULES.encode())
    while True:
        try:
            handler.wfile.write(b"# more\n" * 10_000)
        except OSError:
            return


class Asks(Spider):
    """Asks for the policies of the origins of some URLs, one after the other, and may move the clock between two of them.

    `steps`: JSON, [[seconds since the start, URL], ...]; items: what the policies say of each URL."""

    name = "asks"
    steps = "[]"
    # Far from the real time, so that no test depends on it.
    start_at = 2_000_000_000.0

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        runtime = Runtime.of(self.crawler)
        now = self.start_at
        await runtime.policies.close()
        store = PolicyStore(runtime.options.store)
        runtime.policies = PolicyFetcher(self.crawler, store, timeout=runtime.options.policy_timeout, clock=lambda: now)
        for seconds, url in json.loads(self.steps):
            now = self.start_at + seconds
            origin = "/".join(url.split("/")[:3])
            policies = await runtime.policies.get(origin)
            file = policies.site.files[f"{origin}/robots.txt"]
            decision = policies.site.access(runtime.agent, url)
            yield {
                "verdict": decision.verdict.value,
                "rule": decision.reasons[0].rule,
                "unreachable": policies.unreachable,
                "why": policies.why,
                "wait": policies.fresh_until - now,
                "oversized": file.oversized,
                "length": len(file.body),
                "stands_in": file.unreachable_since is not None,
            }


def steps(*urls: str) -> str:
    return json.dumps([[0, url] for url in urls])


class Outcome(NamedTuple):
    name: str
    route: Route
    verdict: str  # for /private
    why: str = ""  # where it is unreachable: a part of the reason
    requirement: str = "RFC-7"


GZIPPED = gzip.compress(RULES.encode())
OUTCOMES = [
    Outcome("rules", http(200, RULES), "deny", requirement="RFC-5"),
    Outcome("no-body", http(204, Content_Type=""), "allow", requirement="RFC-5"),
    Outcome("rules-in-404", http(404, RULES), "allow", requirement="RFC-6"),
    Outcome("401", http(401, RULES), "allow", requirement="RFC-6"),
    Outcome("403", http(403, RULES), "allow", requirement="RFC-6"),
    Outcome("410", http(410, RULES), "allow", requirement="RFC-6"),
    Outcome("429", http(429, "slow down"), "deny", "429", "RFC-6"),
    Outcome("500", http(500, "Allow: /"), "deny", "500"),
    Outcome("503", http(503, "Allow: /"), "deny", "503"),
    Outcome("599", http(599), "deny", "599"),
    Outcome("status-of-no-class", http(799), "deny", "799"),
    Outcome("part-of-a-file", http(206, RULES), "deny", "206"),
    Outcome("300", http(300, RULES), "deny", "300", "RFC-5"),
    Outcome("304-to-no-condition", http(304), "deny", "304", "RFC-8"),
    Outcome("no-location", http(302), "deny", "without a Location", "RFC-5"),
    Outcome("location-file", redirect("file:///etc/passwd"), "deny", "no http or https URL", "SEC-2"),
    Outcome("location-ftp", redirect("ftp://127.0.0.1/robots.txt"), "deny", "no http or https URL", "SEC-2"),
    Outcome("location-data", redirect("data:text/plain,x"), "deny", "no http or https URL", "SEC-2"),
    Outcome("location-no-host", redirect("http:///robots.txt"), "deny", "no http or https URL", "RFC-5"),
    Outcome("location-bad-port", redirect("http://127.0.0.1:99999/"), "deny", "no http or https URL", "RFC-5"),
    Outcome("location-bad-brackets", redirect("http://[::1/"), "deny", "no http or https URL", "RFC-5"),
    Outcome("reset", reset, "deny", "e"),
    Outcome("closed-without-answer", octets_of(b""), "deny", "e"),
    Outcome("no-http", octets_of(b"\x00\xff SSH-2.0 hello\r\n\r\n"), "deny", "e"),
    Outcome("truncated", octets_of(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nAllow: /"), "deny", "e"),
    Outcome("truncated-chunks", octets_of(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nAllow: /\n\r\n9\r\nAl"), "deny", "e"),
    Outcome("huge-header", http(200, RULES, X_Filler="x" * 100_000), "deny", "e", "SEC-3"),
    Outcome("slow-headers", dribble(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), "deny", "", "SEC-3"),
    Outcome("slow-body", dribble(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"#"), "deny", "", "SEC-3"),
    Outcome("endless-body", endless, "deny", requirement="SEC-3"),
    Outcome("html-type", http(200, RULES, Content_Type="text/html; charset=utf-8"), "allow", requirement="RFC-10"),
    Outcome("html-body", http(200, "<!DOCTYPE html><p>" + RULES), "allow", requirement="RFC-10"),
    Outcome("gzip", http(200, GZIPPED, Content_Encoding="gzip"), "deny", requirement="SEC-3"),
    Outcome("deflate", http(200, zlib.compress(RULES.encode()), Content_Encoding="deflate"), "deny", requirement="SEC-3"),
    Outcome("gzip-broken-off", http(200, GZIPPED[:-9], Content_Encoding="gzip"), "deny", "breaks off", "SEC-3"),
    Outcome("gzip-and-more", http(200, GZIPPED + b"more", Content_Encoding="gzip"), "deny", "goes on after", "SEC-3"),
    Outcome("no-gzip", http(200, RULES, Content_Encoding="gzip"), "deny", "cannot be decoded", "SEC-3"),
    Outcome("unknown-coding", http(200, RULES, Content_Encoding="br"), "deny", "not asked for", "SEC-3"),
    Outcome("two-codings", http(200, GZIPPED, Content_Encoding="gzip, gzip"), "deny", "not asked for", "SEC-3"),
]


@pytest.mark.requirement("RFC-5", "RFC-6", "RFC-7", "RFC-8", "RFC-10", "SEC-2", "SEC-3")
@pytest.mark.parametrize("outcome", OUTCOMES, ids=[f"{outcome.requirement}-{outcome.name}" for outcome in OUTCOMES])
def test_outcomes(serve: Callable[..., Loopback], crawl: Callable[..., Crawled], outcome: Outcome) -> None:
    site = serve({"/robots.txt": outcome.route})
    crawled = crawl(Asks, ALONE | {"COMITY_POLICY_TIMEOUT": 1}, steps=steps(site.url("/private"), site.url("/private")))
    assert len(crawled.items) == 2, crawled.log
    first, again = crawled.items
    assert first["verdict"] == outcome.verdict
    assert again["verdict"] == outcome.verdict
    assert outcome.why in first["why"]
    assert first["unreachable"] is (first["rule"] == "robots.unreachable")
    assert first["unreachable"] is bool(first["why"])
    assert first["unreachable"] is ("Cannot have" in crawled.log)
    assert site.paths == ["/robots.txt"]  # once: no retry, and nobody asks again before it is due


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/private", "http://nowhere.invalid/private"])
def test_no_server(crawl: Callable[..., Crawled], url: str) -> None:
    crawled = crawl(Asks, ALONE | {"COMITY_POLICY_TIMEOUT": 2}, steps=steps(url))
    assert [(item["verdict"], item["rule"]) for item in crawled.items] == [("deny", "robots.unreachable")]


@pytest.mark.requirement("RFC-9", "SEC-3")
def test_oversized_file_is_cut(serve: Callable[..., Loopback], crawl: Callable[..., Crawled]) -> None:
    filler = "# filler\n" * (MAX_BYTES // 9)
    bomb = zlib.compress((RULES + filler * 50).encode())
    site = serve({"/robots.txt": http(200, RULES + filler + "Disallow: /late\n")})
    declared = serve({"/robots.txt": http(200, RULES + filler * 8)})
    bombing = serve({"/robots.txt": http(200, bomb, Content_Encoding="deflate")})
    urls = (site.url("/private"), site.url("/late"), declared.url("/private"), bombing.url("/private"))
    items = crawl(Asks, ALONE | {"DOWNLOAD_MAXSIZE": 1000}, steps=steps(*urls)).items
    assert [item["verdict"] for item in items] == ["deny", "allow", "deny", "deny"]
    assert all(item["oversized"] and item["length"] == MAX_BYTES for item in items)


@pytest.mark.requirement("RFC-5")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_five_hops(serve: Callable[..., Loopback], crawl: Callable[..., Crawled], status: int) -> None:
    """The result holds for the origin that was asked for, not for those on the way."""
    last = serve({"/robots.txt": RULES, "/rules.txt": RULES})
    site = serve({"/robots.txt": redirect("/1", status), "/4": redirect(last.url("/rules.txt"), status)})
    site.routes |= {f"/{n}": redirect(f"/{n + 1}", status) for n in range(1, 4)}
    crawled = crawl(Asks, ALONE, steps=steps(site.url("/private")))
    assert [item["rule"] for item in crawled.items] == ["robots.disallow"]
    assert site.paths == ["/robots.txt", "/1", "/2", "/3", "/4"]
    assert last.paths == ["/rules.txt"]


@pytest.mark.requirement("RFC-5")
def test_more_than_five_hops_are_unavailable(serve: Callable[..., Loopback], crawl: Callable[..., Crawled]) -> None:
    site = serve({"/robots.txt": redirect("/1")} | {f"/{n}": redirect(f"/{n + 1}") for n in range(1, 5)} | {"/5": redirect("/6")})
    loop = serve({"/robots.txt": redirect("/robots.txt")})
    items = crawl(Asks, ALONE, steps=steps(site.url("/private"), loop.url("/private"))).items
    assert [item["rule"] for item in items] == ["robots.unavailable", "robots.unavailable"]
    assert site.paths == ["/robots.txt", "/1", "/2", "/3", "/4", "/5"]
    assert len(loop.paths) == 6


@pytest.mark.requirement("RFC-5")
def test_hops_carry_no_secrets(serve: Callable[..., Loopback], crawl: Callable[..., Crawled]) -> None:
    """No cookies, no credentials and no fragment from a Location."""
    other = serve({"/rules.txt": RULES})
    location = other.url("/rules.txt#part").replace("//", "//name:secret@")
    site = serve({"/robots.txt": redirect(location, Set_Cookie="id=1")})
    crawled = crawl(Asks, ALONE, steps=steps(site.url("/private")))
    assert [item["verdict"] for item in crawled.items] == ["deny"]
    (seen,) = other.seen
    assert seen.path == "/rules.txt"
    assert not {"cookie", "authorization", "referer"} & set(seen.headers)
    assert seen.headers["accept-encoding"] == "identity"


class Narrow(Asks):
    name = "narrow"
    allowed_domains = ("127.0.0.1",)


@pytest.mark.requirement("RFC-5")
def test_allowed_domains_do_not_stop_a_redirect(serve: Callable[..., Loopback], crawl: Callable[..., Crawled]) -> None:
    other = serve({"/robots.txt": RULES}, host="127.0.0.2")
    site = serve({"/robots.txt": redirect(other.url("/robots.txt"))})
    crawled = crawl(Narrow, ALONE, steps=steps(site.url("/private")))
    assert [item["verdict"] for item in crawled.items] == ["deny"]
    assert other.paths == ["/robots.txt"]


@pytest.mark.requirement("RFC-1")
def test_two_ports_have_policies_of_their_own(serve: Callable[..., Loopback], crawl: Callable[..., Crawled]) -> None:
    one, other = serve({"/robots.txt": RULES}), serve({"/robots.txt": "User-agent: *\nAllow: /\n"})
    items = crawl(Asks, ALONE, steps=steps(one.url("/private"), other.url("/private"))).items
    assert [item["verdict"] for item in items] == ["deny", "allow"]


@pytest.mark.requirement("RFC-1", "RFC-7")
def test_tls(serve: Callable[..., Loopback], crawl: Callable[..., Crawled], tls: Callable[[Loopback], str]) -> None:
    """http and https of one host have policies of their own; what cannot be verified is not had."""
    secure, plain = serve({"/robots.txt": RULES}), serve({"/robots.txt": ""})
    origin = tls(secure)
    urls = steps(plain.url("/private"), f"{origin}/private")
    items = crawl(Asks, ALONE | {"DOWNLOAD_VERIFY_CERTIFICATES": False}, steps=urls).items
    assert [item["rule"] for item in items] == ["robots.no-group", "robots.disallow"]
    items = crawl(Asks, ALONE | {"DOWNLOAD_VERIFY_CERTIFICATES": True, "COMITY_STORE": "other.sqlite"}, steps=urls).items
    assert [item["rule"] for item in items] == ["robots.no-group", "robots.unreachable"]


@pytest.fixture
def tls(tmp_path: Path) -> Callable[[Loopback], str]:
    """Puts a server behind a self-signed certificate and returns its origin."""

    def secure(server: Loopback) -> str:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), 1, datetime(2020, 1, 1), datetime(2120, 1, 1))  # noqa: DTZ001
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = tmp_path / "server.pem"
        unencrypted = serialization.NoEncryption()
        pem.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted)
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        return server.origin.replace("http:", "https:")

    return secure
