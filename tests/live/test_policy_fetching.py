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
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest
from aiohappyeyeballs import AddrInfoType
from scrapy import Spider

from comity.crawler.crawl import Crawl
from comity.crawler.progress import summary
from comity.crawler.scrapy_internals import ScrapyRun, closing
from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.fetcher import PolicyFetcher
from comity.gate.fetching.files import PolicyFiles
from comity.gate.fetching.network import Channel, Network
from comity.gate.fetching.network import Route as ServerRoute
from comity.gate.fetching.options import ClientOptions
from comity.gate.fetching.reach import IPAddress, Reach
from comity.gate.fetching.store import PolicyStore
from comity.gate.run.flights import ClosingError
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.lines import MAX_BYTES
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Crawled, Loopback

ALONE: dict[str, Any] = {"ADDONS": {}}
RULES = "User-agent: *\nDisallow: /private\n"

Route = Callable[[BaseHTTPRequestHandler], None]


def http(status: int, body: bytes | str = b"", **headers: str) -> Route:
    """An answer without any header that is not asked for, but the length."""
    octets = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": "text/plain", "Content-Length": str(len(octets))} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    head = f"HTTP/1.1 {status} Status\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in fields.items() if value
    )
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
            time.sleep(0.05)  # a server that drips

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
    paths: tuple[str, ...] = WELL_KNOWN
    network = Network
    # Far from the real time, so that no test depends on it.
    start_at = 2_000_000_000.0

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        crawl = Crawl.of(self.crawler)
        now = self.start_at
        await crawl.policies.close()
        client = PolicyClient(crawl.options.client, self.network)
        store, timeout = PolicyStore(crawl.options.store), crawl.options.policy_timeout
        files = PolicyFiles(store, client, timeout=timeout, clock=lambda: now)
        crawl.policies = PolicyFetcher(
            ScrapyRun(self.crawler), files, crawl.agent, paths=self.paths
        )
        for seconds, url in json.loads(self.steps):
            now = self.start_at + seconds
            origin = "/".join(url.split("/")[:3])
            policies = await crawl.policies.get(origin)
            file = policies.site.files[f"{origin}/robots.txt"]
            decision = policies.site.access(crawl.agent, url)
            yield {
                "verdict": decision.verdict.value,
                "rule": decision.reasons[0].rule,
                "unreachable": policies.unreachable,
                "why": policies.error,
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

    @property
    def settings(self) -> dict[str, Any]:
        """Nobody waits long for what never comes; all else may take its time on a busy machine."""
        return {"COMITY_POLICY_TIMEOUT": 3} if self.why == "no answer" else {}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9999999\r\n\r\n"
BROKEN_OFF = HEAD + RULES.encode() + b"# filler\n" * ((MAX_BYTES - len(RULES)) // 9)
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
    Outcome(
        "location-file", redirect("file:///etc/passwd"), "deny", "not an http or https URL", "SEC-2"
    ),
    Outcome(
        "location-ftp",
        redirect("ftp://127.0.0.1/robots.txt"),
        "deny",
        "not an http or https URL",
        "SEC-2",
    ),
    Outcome(
        "location-data", redirect("data:text/plain,x"), "deny", "not an http or https URL", "SEC-2"
    ),
    Outcome(
        "location-no-host",
        redirect("http:///robots.txt"),
        "deny",
        "not an http or https URL",
        "RFC-5",
    ),
    Outcome(
        "location-bad-port",
        redirect("http://127.0.0.1:99999/"),
        "deny",
        "not an http or https URL",
        "RFC-5",
    ),
    Outcome(
        "location-bad-brackets",
        redirect("http://[::1/"),
        "deny",
        "not an http or https URL",
        "RFC-5",
    ),
    Outcome("reset", reset, "deny", "e"),
    Outcome("closed-without-answer", octets_of(b""), "deny", "e"),
    Outcome("no-http", octets_of(b"\x00\xff SSH-2.0 hello\r\n\r\n"), "deny", "e"),
    Outcome(
        "truncated",
        octets_of(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nAllow: /"
        ),
        "deny",
        "e",
    ),
    Outcome(
        "truncated-chunks",
        octets_of(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nAllow: /\n\r\n9\r\nAl"
        ),
        "deny",
        "e",
    ),
    Outcome(
        "broken-off-behind-the-limit",
        octets_of(BROKEN_OFF + b"#" * 1000),
        "deny",
        requirement="RFC-9",
    ),
    Outcome("broken-off-before-the-limit", octets_of(BROKEN_OFF[:-1000]), "deny", "e", "RFC-9"),
    Outcome("huge-header", http(200, RULES, X_Filler="x" * 100_000), "deny", "e", "SEC-3"),
    Outcome(
        "slow-headers", dribble(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), "deny", "no answer", "SEC-3"
    ),
    Outcome(
        "slow-body",
        dribble(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"#"),
        "deny",
        "no answer",
        "SEC-3",
    ),
    Outcome("endless-body", endless, "deny", requirement="SEC-3"),
    Outcome(
        "html-type",
        http(200, RULES, Content_Type="text/html; charset=utf-8"),
        "deny",
        requirement="RFC-10",
    ),
    Outcome(
        "other-type",
        http(200, RULES, Content_Type="application/octet-stream"),
        "deny",
        requirement="RFC-10",
    ),
    Outcome(
        "page",
        http(200, "<!DOCTYPE html><p>Not found", Content_Type="text/html"),
        "allow",
        requirement="RFC-10",
    ),
    Outcome(
        "page-as-text",
        http(200, "<p>Not found\nDisallow: /private\n"),
        "allow",
        requirement="RFC-10",
    ),
    Outcome("html-body", http(200, "<!DOCTYPE html><p>" + RULES), "deny", requirement="RFC-10"),
    Outcome(
        "pre",
        http(200, f"<pre>{RULES}Allow: /private</pre>", Content_Type="text/html"),
        "deny",
        requirement="RFC-10",
    ),
    Outcome(
        "br",
        http(200, "User-agent: *<br>Disallow: /private<br>", Content_Type="text/html"),
        "deny",
        requirement="RFC-10",
    ),
    Outcome("gzip", http(200, GZIPPED, Content_Encoding="gzip"), "deny", requirement="SEC-3"),
    Outcome(
        "gzip-members",
        http(200, GZIPPED + GZIPPED, Content_Encoding="gzip"),
        "deny",
        requirement="SEC-3",
    ),
    Outcome(
        "gzip-and-identity",
        http(200, GZIPPED, Content_Encoding="gzip, identity"),
        "deny",
        requirement="SEC-3",
    ),
    Outcome("gzip-without-its-field", http(200, GZIPPED), "deny", requirement="SEC-3"),
    Outcome(
        "deflate",
        http(200, zlib.compress(RULES.encode()), Content_Encoding="deflate"),
        "deny",
        requirement="SEC-3",
    ),
    Outcome(
        "gzip-broken-off",
        http(200, GZIPPED[:-9], Content_Encoding="gzip"),
        "deny",
        "breaks off",
        "SEC-3",
    ),
    Outcome(
        "gzip-and-more",
        http(200, GZIPPED + b"more", Content_Encoding="gzip"),
        "deny",
        "goes on after",
        "SEC-3",
    ),
    Outcome(
        "no-gzip", http(200, RULES, Content_Encoding="gzip"), "deny", "cannot be decoded", "SEC-3"
    ),
    Outcome(
        "unknown-coding", http(200, RULES, Content_Encoding="br"), "deny", "not asked for", "SEC-3"
    ),
    Outcome(
        "two-codings",
        http(200, GZIPPED, Content_Encoding="gzip, gzip"),
        "deny",
        "not asked for",
        "SEC-3",
    ),
]


@pytest.mark.requirement("RFC-5", "RFC-6", "RFC-7", "RFC-8", "RFC-9", "RFC-10", "SEC-2", "SEC-3")
@pytest.mark.parametrize(
    "outcome",
    one_in(
        2,
        [
            pytest.param(
                outcome,
                id=f"{outcome.requirement}-{outcome.name}",
                marks=[pytest.mark.slow] * (place % 3 > 0),
            )
            for place, outcome in enumerate(OUTCOMES)
        ],
    ),
)
def test_outcomes(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], outcome: Outcome
) -> None:
    site = serve({"/robots.txt": outcome.route})
    settings = ALONE | outcome.settings | {"DOWNLOAD_FAIL_ON_DATALOSS": False}
    crawled = crawl(Asks, settings, steps=steps(site.url("/private"), site.url("/private")))
    assert len(crawled.items) == 2, crawled.log
    first, again = crawled.items
    assert first["verdict"] == outcome.verdict
    assert again["verdict"] == outcome.verdict
    assert outcome.why in first["why"]
    assert first["unreachable"] is (first["rule"] == "robots.unreachable")
    assert first["unreachable"] is bool(outcome.why)
    assert first["unreachable"] is ("Cannot fetch" in crawled.log)
    assert site.paths == ["/robots.txt"]  # nobody asks again before it is due


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/private", "http://nowhere.invalid/private"])
def test_no_server(crawl: Callable[..., Crawled], url: str) -> None:
    crawled = crawl(Asks, ALONE | {"COMITY_POLICY_TIMEOUT": 2}, steps=steps(url))
    assert [(item["verdict"], item["rule"]) for item in crawled.items] == [
        ("deny", "robots.unreachable")
    ]


@pytest.mark.requirement("RFC-9", "SEC-3")
def test_oversized_file_is_cut(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    filler = "# filler\n" * (MAX_BYTES // 9)
    bomb = zlib.compress((RULES + filler * 50).encode())
    site = serve({"/robots.txt": http(200, RULES + filler + "Disallow: /late\n")})
    declared = serve({"/robots.txt": http(200, RULES + filler * 8)})
    bombing = serve({"/robots.txt": http(200, bomb, Content_Encoding="deflate")})
    urls = (
        site.url("/private"),
        site.url("/late"),
        declared.url("/private"),
        bombing.url("/private"),
    )
    items = crawl(Asks, ALONE | {"DOWNLOAD_MAXSIZE": 1000}, steps=steps(*urls)).items
    assert [item["verdict"] for item in items] == ["deny", "allow", "deny", "deny"]
    assert all(item["oversized"] and item["length"] == MAX_BYTES for item in items)


@pytest.mark.requirement("RFC-5")
@pytest.mark.parametrize(
    "status",
    [301, 308, *(pytest.param(status, marks=pytest.mark.slow) for status in (302, 303, 307))],
)
def test_five_hops(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], status: int
) -> None:
    """The result holds for the origin that was asked for, not for those on the way."""
    last = serve({"/robots.txt": RULES, "/rules.txt": RULES})
    site = serve(
        {"/robots.txt": redirect("/1", status), "/4": redirect(last.url("/rules.txt"), status)}
    )
    site.routes |= {f"/{n}": redirect(f"/{n + 1}", status) for n in range(1, 4)}
    crawled = crawl(Asks, ALONE, steps=steps(site.url("/private")))
    assert [item["rule"] for item in crawled.items] == ["robots.disallow"]
    assert site.paths == ["/robots.txt", "/1", "/2", "/3", "/4"]
    assert last.paths == ["/rules.txt"]


@pytest.mark.requirement("RFC-5")
def test_more_than_five_hops_are_unavailable(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    site = serve(
        {"/robots.txt": redirect("/1")}
        | {f"/{n}": redirect(f"/{n + 1}") for n in range(1, 5)}
        | {"/5": redirect("/6")}
    )
    loop = serve({"/robots.txt": redirect("/robots.txt")})
    items = crawl(Asks, ALONE, steps=steps(site.url("/private"), loop.url("/private"))).items
    assert [item["rule"] for item in items] == ["robots.unavailable", "robots.unavailable"]
    assert site.paths == ["/robots.txt", "/1", "/2", "/3", "/4", "/5"]
    assert len(loop.paths) == 6


@pytest.mark.requirement("RFC-5")
def test_hops_carry_no_secrets(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
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
def test_allowed_domains_do_not_stop_a_redirect(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    other = serve({"/robots.txt": RULES}, host="127.0.0.2")
    site = serve({"/robots.txt": redirect(other.url("/robots.txt"))})
    crawled = crawl(Narrow, ALONE, steps=steps(site.url("/private")))
    assert [item["verdict"] for item in crawled.items] == ["deny"]
    assert other.paths == ["/robots.txt"]


@pytest.mark.requirement("RFC-1")
def test_two_ports_have_policies_of_their_own(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    one, other = serve({"/robots.txt": RULES}), serve({"/robots.txt": "User-agent: *\nAllow: /\n"})
    items = crawl(Asks, ALONE, steps=steps(one.url("/private"), other.url("/private"))).items
    assert [item["verdict"] for item in items] == ["deny", "allow"]


@pytest.mark.requirement("RFC-1", "RFC-7")
def test_tls(
    serve: Callable[..., Loopback],
    crawl: Callable[..., Crawled],
    tls: Callable[[Loopback], str],
    tmp_path: Path,
) -> None:
    """http and https of one host have policies of their own; what cannot be verified is not had."""
    secure, plain = serve({"/robots.txt": RULES}), serve({"/robots.txt": ""})
    origin = tls(secure)
    urls = steps(plain.url("/private"), f"{origin}/private")
    items = crawl(Asks, ALONE | {"DOWNLOAD_VERIFY_CERTIFICATES": False}, steps=urls).items
    assert [item["rule"] for item in items] == ["robots.no-group", "robots.disallow"]
    items = crawl(
        Asks,
        ALONE
        | {"DOWNLOAD_VERIFY_CERTIFICATES": True, "COMITY_STORE": str(tmp_path / "other.sqlite")},
        steps=urls,
    ).items
    assert [item["rule"] for item in items] == ["robots.no-group", "robots.unreachable"]


@pytest.fixture
def tls(certificate: Path) -> Callable[[Loopback], str]:
    """Puts a server behind a self-signed certificate and returns its origin."""

    def secure(server: Loopback) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        return server.origin.replace("http:", "https:")

    return secure


HOUR = 3600
DAY = 24 * HOUR


@pytest.mark.requirement("RFC-8")
def test_conditional_requests(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    """Fresh copies are used, stale ones are confirmed, and a 304 counts for as long as its own headers say."""

    def route(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers["If-None-Match"] == '"1"' and handler.headers["If-Modified-Since"]:
            http(304, Cache_Control="max-age=7200", Content_Type="", Content_Length="")(handler)
        else:
            http(
                200,
                RULES,
                Cache_Control="max-age=3600",
                ETag='"1"',
                Last_Modified="Sat, 01 Jan 2022 00:00:00 GMT",
            )(handler)

    site = serve({"/robots.txt": route})
    url = site.url("/private")
    crawled = crawl(
        Asks,
        ALONE,
        steps=json.dumps(
            [[0, url], [HOUR - 1, url], [HOUR, url], [3 * HOUR - 1, url], [3 * HOUR, url]]
        ),
    )
    assert [item["verdict"] for item in crawled.items] == ["deny"] * 5
    assert [item["wait"] for item in crawled.items] == [HOUR, 1, 2 * HOUR, 1, 2 * HOUR]
    assert len(site.paths) == 3
    assert ("if-none-match" in site.seen[0].headers, "if-none-match" in site.seen[2].headers) == (
        False,
        True,
    )
    assert crawled.stats["comity/policies/not_modified"] == 2


@pytest.mark.requirement("RFC-8")
def test_a_changed_file_replaces_the_copy(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    site = serve(
        {
            "/robots.txt": in_turn(
                http(200, RULES, ETag='"1"'), http(200, "", ETag='"2"'), http(404), http(200, RULES)
            )
        }
    )
    url = site.url("/private")
    items = crawl(Asks, ALONE, steps=json.dumps([[day * DAY, url] for day in range(4)])).items
    assert [item["rule"] for item in items] == [
        "robots.disallow",
        "robots.no-group",
        "robots.unavailable",
        "robots.disallow",
    ]
    assert [seen.headers.get("if-none-match") for seen in site.seen] == [None, '"1"', '"2"', None]


@pytest.mark.requirement("RFC-8")
def test_validators_go_to_the_url_that_gave_them(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    """And of all the hops, the shortest lifetime counts."""
    other = serve({"/rules.txt": http(200, RULES, ETag='"1"', Cache_Control="max-age=7200")})
    site = serve(
        {
            "/robots.txt": redirect(
                other.url("/rules.txt"), Cache_Control="max-age=600", ETag='"hop"'
            )
        }
    )
    url = site.url("/private")
    items = crawl(Asks, ALONE, steps=json.dumps([[0, url], [600, url]])).items
    assert [item["wait"] for item in items] == [600, 600]
    assert [seen.headers.get("if-none-match") for seen in site.seen] == [None, None]
    assert [seen.headers.get("if-none-match") for seen in other.seen] == [None, '"1"']


@pytest.mark.requirement("RFC-7")
def test_last_good_copy_stands_in(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    """For 30 days since it was confirmed; then everything is refused, until the server answers again."""
    site = serve({"/robots.txt": in_turn(http(200, RULES), http(503), http(503), http(200, RULES))})
    public = site.url("/public")
    moments = [0, DAY, 30 * DAY - 1, 30 * DAY, 31 * DAY]
    items = crawl(Asks, ALONE, steps=json.dumps([[moment, public] for moment in moments])).items
    assert [item["rule"] for item in items] == ["robots.no-match"] * 3 + [
        "robots.unreachable",
        "robots.no-match",
    ]
    assert [item["stands_in"] for item in items] == [False, True, True, False, False]
    assert [item["wait"] for item in items] == [
        DAY,
        5,
        1,
        9,
        DAY,
    ]  # not beyond the moment in which the copy expires
    assert len(site.paths) == 4


AUTOMATION = "/automation-preferences.txt"
CLOSED = "scope: /\n"  # no method is listed


@pytest.mark.requirement("AUTO-16", "AUTO-15")
def test_each_file_is_as_fresh_as_its_own_answer_says(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    fresh = http(200, CLOSED, Cache_Control="max-age=600", ETag='"1"')
    site = serve(
        {
            "/robots.txt": http(200, ""),
            AUTOMATION: in_turn(fresh, http(304, Cache_Control="max-age=900", ETag='"1"')),
        }
    )
    items = crawl(
        Asks, ALONE, steps=json.dumps([[moment, site.url()] for moment in (0, 599, 600, 1499)])
    ).items
    assert [item["rule"] for item in items] == ["automation.method"] * 4
    assert [item["wait"] for item in items] == [600, 1, 900, 1]
    asked = [seen.headers.get("if-none-match") for seen in site.seen if seen.path == AUTOMATION]
    assert (asked, site.paths.count("/robots.txt")) == ([None, '"1"'], 1)


@pytest.mark.parametrize("failing", [http(503), http(200, "scope: /\n\0")])
@pytest.mark.requirement("AUTO-20", "AUTO-4")
def test_a_copy_stands_in_for_a_file_that_fails_or_is_rejected(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], failing: Route
) -> None:
    site = serve(
        {"/robots.txt": http(200, ""), AUTOMATION: in_turn(http(200, CLOSED), failing, http(404))}
    )
    moments = [0, DAY, DAY + 299, DAY + 300]
    crawled = crawl(Asks, ALONE, steps=json.dumps([[moment, site.url()] for moment in moments]))
    assert [item["rule"] for item in crawled.items] == ["automation.method"] * 3 + [
        "robots.no-group"
    ]
    assert [item["unreachable"] for item in crawled.items] == [False] * 4
    assert (
        site.paths.count(AUTOMATION) == 3
    )  # the origin waits while it is asked for: not soon again
    assert "its last good copy is obeyed" in crawled.log


@pytest.mark.requirement("AUTO-20")
def test_pages_are_fetched_without_it(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    site = serve({"/robots.txt": http(200, ""), AUTOMATION: http(503, Retry_After="1")})
    crawled = crawl(Asks, ALONE, steps=json.dumps([[moment, site.url()] for moment in (0, 2, 300)]))
    assert [item["rule"] for item in crawled.items] == ["robots.no-group"] * 3
    assert site.paths.count(AUTOMATION) == 2
    assert "no requests but plain ones for pages are made" in crawled.log


@pytest.mark.parametrize(("last", "lost"), [(http(503), 1), (http(404), 0)])
def test_a_file_that_fails_is_counted_once(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], last: Route, lost: int
) -> None:
    """However often it is asked for. One that is had at last is not counted."""
    site = serve(
        {
            "/robots.txt": http(200, ""),
            AUTOMATION: in_turn(http(503, Retry_After="1"), http(503, Retry_After="1"), last),
        }
    )
    crawled = crawl(
        Asks, ALONE, steps=json.dumps([[moment, site.url()] for moment in (0, 302, 604)])
    )
    assert site.paths.count(AUTOMATION) == 3
    assert crawled.stats["comity/policies/unreachable"] == 2 + lost
    assert crawled.stats["comity/policies/lost"] == lost
    rows = summary(crawled.stats, "finished").columns[1].cells
    assert ("policy files could not be fetched" in map(str, rows)) is bool(lost)


@pytest.mark.requirement("RFC-7")
def test_absence_does_not_stand_in(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    site = serve({"/robots.txt": in_turn(http(404), http(503))})
    items = crawl(Asks, ALONE, steps=json.dumps([[0, site.url()], [DAY, site.url()]])).items
    assert [item["rule"] for item in items] == ["robots.unavailable", "robots.unreachable"]


@pytest.mark.requirement("RFC-6", "RFC-7")
def test_back_off(serve: Callable[..., Loopback], crawl: Callable[..., Crawled]) -> None:
    """Twice as long after each failure, as long as the server wants where it says so, forgiven after a success, and
    not forgotten between two crawls."""
    answers = [
        http(503),
        http(500),
        http(429, Retry_After="100"),
        http(503),
        http(200, "", Cache_Control="no-cache"),
        http(503),
    ]
    site = serve({"/robots.txt": in_turn(*answers)})
    moments = [0, 4, 5, 14, 15, 114, 115, 154, 155, 214, 215]
    one, two = ([[moment, site.url()] for moment in part] for part in (moments[:4], moments[4:]))
    items = [
        item for part in (one, two) for item in crawl(Asks, ALONE, steps=json.dumps(part)).items
    ]
    assert [item["wait"] for item in items] == [5, 1, 10, 1, 100, 1, 40, 1, 60, 1, 5]
    assert [item["unreachable"] for item in items] == [True] * 8 + [False] * 2 + [False]
    assert len(site.paths) == 6


@pytest.mark.requirement("RFC-8")
def test_the_next_crawl_reads_the_store(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    site = serve({"/robots.txt": RULES})
    runs = [crawl(Asks, ALONE, steps=steps(site.url("/private"))) for _ in range(2)]
    assert [run.items[0]["verdict"] for run in runs] == ["deny", "deny"]
    assert site.paths == ["/robots.txt"]
    assert runs[1].stats["comity/policies/from_store"] == 1


def in_turn(*routes: Route) -> Route:
    """One answer after the other, the last one for ever."""
    waiting = list(routes)

    def route(handler: BaseHTTPRequestHandler) -> None:
        (waiting.pop(0) if len(waiting) > 1 else waiting[0])(handler)

    return route


class Gathers(Spider):
    """Asks for the policies of all URLs at once."""

    name = "gathers"
    steps = "[]"

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        crawl = Crawl.of(self.crawler)
        origins = [url.rpartition("/")[0] for _, url in json.loads(self.steps)]
        impatient = asyncio.create_task(crawl.policies.get(origins[0]))
        await asyncio.sleep(0)
        impatient.cancel()  # whoever waits no more takes nothing from the others
        for policies in await asyncio.gather(*(crawl.policies.get(origin) for origin in origins)):
            yield {"origin": policies.site.origin, "unreachable": policies.unreachable}


@pytest.mark.requirement("RFC-5")
def test_one_fetch_per_origin(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    site = serve({"/robots.txt": RULES})
    items = crawl(Gathers, ALONE, steps=steps(*[site.url()] * 20)).items
    assert items == [{"origin": site.origin, "unreachable": False}] * 20
    assert site.paths == ["/robots.txt"]


class TwoFiles(Asks):
    """As if a format had added its path."""

    name = "two-files"
    paths = ("/robots.txt", "/other.txt")


@pytest.mark.requirement("RFC-1")
def test_files_of_an_origin_go_over_one_connection(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    ports: list[int] = []

    def route(handler: BaseHTTPRequestHandler) -> Any:
        ports.append(handler.client_address[1])
        return serve.Answer(RULES)  # type: ignore[attr-defined]

    site = serve({"/robots.txt": route, "/other.txt": route})
    items = crawl(TwoFiles, ALONE | {"DOWNLOAD_DELAY": 20}, steps=steps(site.url("/private"))).items
    assert [item["verdict"] for item in items] == ["deny"]
    assert site.paths == ["/robots.txt", "/other.txt"]
    assert len(set(ports)) == 1


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize("failing", [http(503), reset])
def test_while_robots_txt_refuses_everything_nothing_else_is_asked_for(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], failing: Route
) -> None:
    """But where its last good copy stands in, the others count."""
    other = http(200, "", Cache_Control="max-age=60")
    never = serve({"/robots.txt": failing, "/other.txt": other})
    had = serve({"/robots.txt": in_turn(http(200, RULES), failing), "/other.txt": other})
    moments = [[0, never.url("/public")], [0, had.url("/public")], [DAY, had.url("/public")]]
    items = crawl(TwoFiles, ALONE, steps=json.dumps(moments)).items
    assert [item["rule"] for item in items] == [
        "robots.unreachable",
        "robots.no-match",
        "robots.no-match",
    ]
    assert never.paths == ["/robots.txt"]
    crawl(
        TwoFiles, ALONE, steps=json.dumps([[1, never.url("/public")]])
    )  # it knows from the store that robots.txt is not due
    assert never.paths == ["/robots.txt"]
    assert had.paths == ["/robots.txt", "/other.txt"] * 2


class Begins(Network):
    """Says when there is a connection."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options)
        self.begun = asyncio.Event()

    async def connect(self, route: ServerRoute, referrer_reach: Reach | None) -> Channel:
        channel = await super().connect(route, referrer_reach)
        self.begun.set()
        return channel


class Closes(Spider):
    """Ends the crawl while policies are being fetched."""

    name = "closes"
    url = ""

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        crawl = Crawl.of(self.crawler)
        crawl.client.network = network = Begins(crawl.options.client)
        flight = asyncio.create_task(crawl.policies.get(self.url))
        await network.begun.wait()
        assert self.crawler.engine
        self.ending = asyncio.create_task(self.crawler.engine.close_spider_async(reason="enough"))
        for policies in (flight, crawl.policies.get("http://127.0.0.1:1")):
            try:
                await policies
            except ClosingError:
                self.logger.info("Told that the crawl ends")
        if not closing(self.crawler):
            yield {}


@pytest.mark.requirement("RFC-7", "SEC-6")
def test_closing_teaches_nothing(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    """The end of the crawl does not wait for the deadline, and the site is not held unreachable in the next crawl."""
    release = threading.Event()
    gave_up = []

    def route(handler: BaseHTTPRequestHandler) -> None:
        gave_up.append(not release.wait(30))
        http(200, RULES)(handler)

    site = serve({"/robots.txt": route})
    crawled = crawl(Closes, ALONE | {"COMITY_POLICY_TIMEOUT": 60}, url=site.origin)
    release.set()
    assert crawled.finish_reason == "enough"
    assert crawled.log.count("Told that the crawl ends") == 2
    assert "Cannot fetch" not in crawled.log
    assert "Traceback" not in crawled.log
    assert "comity/policies/unreachable" not in crawled.stats
    assert [
        item["verdict"] for item in crawl(Asks, ALONE, steps=steps(site.url("/private"))).items
    ] == ["deny"]
    assert gave_up == [False, False]


class TwoPlaces(Network):
    """Takes 127.0.0.1 for a public address, and knows some names."""

    NAMES: ClassVar = {
        "outside.test": ["127.0.0.1"],
        "inside.test": ["127.0.0.2"],
        "both.test": ["127.0.0.2", "127.0.0.1"],
        "nowhere.test": [],
    }

    def reach(self, address: IPAddress) -> Reach:
        return Reach.PUBLIC if str(address) == "127.0.0.1" else super().reach(address)

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        if host not in self.NAMES:
            return await super().resolve(host, port)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))
            for address in self.NAMES[host]
        ]


class Guarded(Asks):
    name = "guarded"
    network = TwoPlaces


GUARDED: dict[str, Any] = {"ADDONS": {}}


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.2", "inside.test", "[::ffff:127.0.0.2]"),
        *(
            pytest.param(host, marks=pytest.mark.slow)
            for host in ("2130706434", "0x7f.2", "nowhere.test", "0.0.0.0")
        ),
    ],
)
def test_a_public_site_leads_nowhere_else(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], host: str
) -> None:
    inside = serve({"/robots.txt": ""}, host="127.0.0.2")
    site = serve({"/robots.txt": redirect(f"http://{host}:{inside.port}/robots.txt")})
    (item,) = crawl(Guarded, GUARDED, steps=steps(site.url("/private"))).items
    assert (item["verdict"], item["rule"]) == ("deny", "robots.unreachable")
    assert f"led to {host.strip('[]')}" in item["why"]
    assert inside.seen == []


@pytest.mark.requirement("SEC-2", "RFC-5")
@pytest.mark.parametrize("host", ["127.0.0.1", "outside.test", "both.test"])
def test_a_public_site_may_redirect_to_a_public_address(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], host: str
) -> None:
    """Of a name with both kinds of addresses, the public one is taken."""
    other = serve({"/rules.txt": RULES})
    inside = serve({"/rules.txt": ""}, host="127.0.0.2", port=other.port)
    site = serve({"/robots.txt": redirect(f"http://{host}:{other.port}/rules.txt")})
    (item,) = crawl(
        Guarded, GUARDED | {"USER_AGENT": "guarded/1"}, steps=steps(site.url("/private"))
    ).items
    assert item["rule"] == "robots.disallow"
    assert inside.seen == []
    (seen,) = other.seen
    assert seen.headers["host"] == f"{host}:{other.port}"
    assert seen.headers["user-agent"] == "guarded/1"
    assert seen.headers["accept-encoding"] == "identity"


@pytest.mark.requirement("SEC-2")
def test_an_inner_site_may_redirect_within(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    """But a public site on the way leads outside for good."""
    inner = serve({"/robots.txt": RULES}, host="127.0.0.3")
    site = serve({"/robots.txt": redirect(inner.url("/robots.txt"))}, host="127.0.0.2")
    public = serve({"/robots.txt": redirect(inner.url("/robots.txt"))})
    over = serve({"/robots.txt": redirect(public.url("/robots.txt"))}, host="127.0.0.2")
    items = crawl(Guarded, GUARDED, steps=steps(site.url("/private"), over.url("/private"))).items
    assert [item["rule"] for item in items] == ["robots.disallow", "robots.unreachable"]
    assert len(inner.seen) == 1


@pytest.mark.slow  # the outcomes without a redirect are not
@pytest.mark.requirement("SEC-2", "SEC-3")
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: str(outcome.name))
def test_outcomes_behind_a_redirect(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled], outcome: Outcome
) -> None:
    """The guarded connection tells the same story as Scrapy's own."""
    other = serve({"/robots.txt": outcome.route})
    site = serve({"/robots.txt": redirect(f"http://outside.test:{other.port}/robots.txt")})
    crawled = crawl(Guarded, GUARDED | outcome.settings, steps=steps(site.url("/private")))
    (item,) = crawled.items
    assert item["verdict"] == outcome.verdict
    assert item["unreachable"] is bool(item["why"])
    assert site.paths == ["/robots.txt"]


@pytest.mark.requirement("SEC-2")
def test_a_proxy_resolves_names_and_literal_addresses_are_judged(
    serve: Callable[..., Loopback], crawl: Callable[..., Crawled]
) -> None:
    proxy = serve(
        {
            "http://site.test/robots.txt": redirect("http://other.test/robots.txt"),
            "http://other.test/robots.txt": http(200, RULES),
            "http://bad.test/robots.txt": redirect("http://10.0.0.1/robots.txt"),
        }
    )
    settings = ALONE | {"COMITY_PROXY": proxy.origin}
    items = crawl(
        Asks, settings, steps=steps("http://site.test/private", "http://bad.test/private")
    ).items
    assert [item["rule"] for item in items] == ["robots.disallow", "robots.unreachable"]
    assert [path for path in proxy.paths if path.endswith("/robots.txt")] == [
        f"http://{host}.test/robots.txt" for host in ("site", "other", "bad")
    ]
