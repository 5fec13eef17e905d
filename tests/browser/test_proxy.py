"""The proxy of a browser, between real sockets: requests that go out, and requests that do not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from comity.browser.http1 import BrowserRequest
from comity.browser.proxy import REFUSED, BrowserProxy, Route
from comity.gate.fetching.network import Destination, Network
from comity.gate.fetching.options import TLS, ClientOptions
from comity.gate.fetching.proxies import Proxies, Proxy
from comity.gate.fetching.reach import Reach

pytestmark = pytest.mark.requirement("WEB-1")

NETWORK = Network(
    ClientOptions(user_agent="testbot", proxies=Proxies(), tls=TLS(), bind_address=None)
)
PATIENCE = 30.0  # seconds for a test on a busy machine
DIRECT = Route()


class Judge:
    """Refuse paths with `private`. The object is also the permission of all other requests."""

    def __init__(self, *, announces: bool = False, reach: Reach | None = None) -> None:
        self.referrer_reach = reach
        self.asked: list[BrowserRequest] = []
        self.statuses: list[int] = []
        self.number_of_unsent = 0
        self.has_ended = asyncio.Event()
        self._announces = announces

    async def let_out(self, request: BrowserRequest) -> Judge | None:
        self.asked.append(request)
        return None if "private" in request.url else self

    def expected_passage(self, origin: str) -> Judge | None:
        return self if self._announces else None

    def note_answer(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.statuses.append(status)

    def note_no_server(self) -> None:
        self.number_of_unsent += 1

    def note_end(self) -> None:
        self.has_ended.set()


class Peer(NamedTuple):
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, *lines: str, body: bytes = b"") -> None:
        self.writer.write("\r\n".join((*lines, "", "")).encode() + body)
        await self.writer.drain()

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")


Script = Callable[[Peer], Awaitable[None]]


class Server:
    """A server with a script for each connection. `heads`: the requests of each connection."""

    def __init__(self, script: Script) -> None:
        self.heads: list[list[str]] = []
        self._script = script

    async def follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads: list[str] = []
        self.heads.append(heads)
        peer = Peer(reader, writer)
        try:
            while True:
                heads.append((await peer.head()).decode())
                await self._script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @property
    def number_of_requests(self) -> int:
        return sum(map(len, self.heads))


@asynccontextmanager
async def serving(
    script: Script, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Server, int]]:
    """Start a server. Yield it and its port."""
    server = Server(script)
    listener = await asyncio.start_server(server.follow, "127.0.0.1", ssl=context)
    yield server, listener.sockets[0].getsockname()[1]
    listener.close()


@asynccontextmanager
async def run_proxy(
    judge: Judge, route: Route = DIRECT
) -> AsyncIterator[tuple[BrowserProxy, Callable[[], Any]]]:
    """Start a proxy. Yield it, and a function that connects to it."""
    proxy = BrowserProxy(judge, lambda: NETWORK)
    port = urlsplit(proxy.listen(route)).port
    proxy.start()
    peers: list[Peer] = []

    async def connect() -> Peer:
        peers.append(Peer(*await asyncio.open_connection("127.0.0.1", port)))
        return peers[-1]

    yield proxy, connect
    for peer in peers:
        peer.writer.close()
    await proxy.close()


def run(work: Awaitable[None]) -> None:
    async def within() -> None:
        await asyncio.wait_for(work, PATIENCE)

    asyncio.run(within())


def says(octets: bytes, *, closes: bool = False) -> Script:
    async def script(peer: Peer) -> None:
        peer.writer.write(octets)
        await peer.writer.drain()
        if closes:
            peer.writer.close()

    return script


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"


def ends_its_first_connection() -> Script:
    """Return a script that ends the first connection at its second request.

    A server may close an old connection while the next request is on its way."""
    connections: list[Peer] = []

    async def script(peer: Peer) -> None:
        if connections == [peer]:
            peer.writer.close()
        else:
            connections.append(peer)
            await says(OK)(peer)

    return script


KEPT_OPEN = {
    "length": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nab"
    ),
    "chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1;x=y\r\nb\r\n0\r\n"
        b"T: 1\r\n\r\n"
    ),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
    "interim": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK,
}
UNTIL_CLOSED = {
    "no length": b"HTTP/1.1 200 OK\r\n\r\nab",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab",
    "announced": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab",
    "unclear": b"HTTP/1.1 200 OK\r\nA\x01: b\r\n\r\nab",
    "no HTTP": b"here",
    "switched": (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n"
    ),
    "too much": OK + b"more",
}


@pytest.mark.parametrize("name", KEPT_OPEN)
def test_an_answer_passes_as_it_is_and_the_connection_stays(name: str) -> None:
    async def work() -> None:
        judge = Judge()
        async with (
            serving(says(KEPT_OPEN[name])) as (server, port),
            run_proxy(judge) as (_, connect),
        ):
            browser = await connect()
            for _ in range(2):
                await browser.ask(
                    f"GET http://127.0.0.1:{port}/a HTTP/1.1", f"Host: 127.0.0.1:{port}"
                )
                assert await browser.reader.readexactly(len(KEPT_OPEN[name])) == KEPT_OPEN[name]
        assert list(map(len, server.heads)) == [2]
        assert len(judge.statuses) == 2

    run(work())


@pytest.mark.parametrize("name", UNTIL_CLOSED)
def test_an_answer_that_may_have_no_end_lasts_as_long_as_the_connection(name: str) -> None:
    async def work() -> None:
        async with (
            serving(says(UNTIL_CLOSED[name], closes=True)) as (_, port),
            run_proxy(Judge()) as (_, connect),
        ):
            browser = await connect()
            await browser.ask(f"GET http://127.0.0.1:{port}/a HTTP/1.1", f"Host: 127.0.0.1:{port}")
            assert await browser.reader.read() == UNTIL_CLOSED[name]

    run(work())


def test_an_answer_to_head_has_no_body() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"

    async def work() -> None:
        async with serving(says(answer)) as (server, port), run_proxy(Judge()) as (_, connect):
            browser = await connect()
            for _ in range(2):
                await browser.ask(
                    f"HEAD http://127.0.0.1:{port}/ HTTP/1.1", f"Host: 127.0.0.1:{port}"
                )
                assert await browser.reader.readexactly(len(answer)) == answer
        assert server.number_of_requests == 2

    run(work())


@pytest.mark.parametrize(
    ("tunnel", "target", "url"),
    [
        (None, "http://[::1]:8080/a?b", "http://[::1]:8080/a?b"),
        (None, "http://a.example:80/", "http://a.example/"),
        (Destination("https", "::1", 443), "/a", "https://[::1]/a"),
        (Destination("https", "a.example", 8443), "/", "https://a.example:8443/"),
        (Destination("http", "a.example", 80), "/", "http://a.example/"),
    ],
)
def test_the_url_of_a_request_is_that_of_the_browser(
    tunnel: Destination | None, target: str, url: str
) -> None:
    assert BrowserRequest.read(f"GET {target} HTTP/1.1\r\n\r\n".encode(), tunnel).url == url


def test_a_server_gets_the_request_that_the_browser_made() -> None:
    async def script(peer: Peer) -> None:
        bodies.append(await peer.reader.readexactly(100_000))
        await says(OK)(peer)

    bodies: list[bytes] = []

    async def work() -> None:
        judge = Judge()
        async with serving(script) as (server, port), run_proxy(judge) as (_, connect):
            browser = await connect()
            fields = (
                f"Host: 127.0.0.1:{port}",
                "Content-Length: 100000",
                "A: 1",
                "a: 2",
                "Referer: http://a.example/",
            )
            own = ("Proxy-Connection: keep-alive", "Proxy-Authorization: Basic YTpi")
            await browser.ask(
                f"POST http://127.0.0.1:{port}/%C3%A9?b HTTP/1.1",
                *fields,
                *own,
                body=b"b" * 100_000,
            )
            await browser.reader.readexactly(len(OK))
        ((head,),) = server.heads
        assert head.split("\r\n") == [
            "POST /%C3%A9?b HTTP/1.1",
            *fields,
            "Connection: keep-alive",
            "",
            "",
        ]
        (asked,) = judge.asked
        assert (asked.method, asked.url) == ("POST", f"http://127.0.0.1:{port}/%C3%A9?b")
        assert asked.fields == {
            "host": f"127.0.0.1:{port}",
            "content-length": "100000",
            "a": "1, 2",
            "referer": "http://a.example/",
        }

    run(work())
    assert bodies == [b"b" * 100_000]


@pytest.mark.parametrize("body", [b"", b"b" * 100_000])
def test_a_request_that_is_refused_reaches_nobody(body: bytes) -> None:
    async def work() -> None:
        judge = Judge()
        async with serving(says(OK)) as (server, port), run_proxy(judge) as (_, connect):
            browser = await connect()
            length = f"Content-Length: {len(body)}"
            await browser.ask(f"POST http://127.0.0.1:{port}/private HTTP/1.1", length, body=body)
            assert await browser.reader.read() == REFUSED
        assert server.heads == []
        assert not judge.has_ended.is_set()

    run(work())


@pytest.mark.parametrize(
    "line",
    [
        "GET / HTTP/1.1",
        "GET https://127.0.0.1:%d/ HTTP/1.1",
        "GET ftp://127.0.0.1:%d/ HTTP/1.1",
        "GET http://127.0.0.1:%d HTTP/1.1",
        "GET  http://127.0.0.1:%d/ HTTP/1.1",
        "GET http://127.0.0.1:%d/\r\nno field HTTP/1.1",
        "POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked",
        "POST http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: many",
        "CONNECT 127.0.0.1:many HTTP/1.1",
    ],
)
def test_a_request_that_no_browser_sends_reaches_nobody(line: str) -> None:
    async def work() -> None:
        judge = Judge(announces=True)
        async with serving(says(OK)) as (server, port), run_proxy(judge) as (_, connect):
            browser = await connect()
            await browser.ask(line % port if "%" in line else line, f"Host: 127.0.0.1:{port}")
            assert await browser.reader.read() == b""
        assert (server.heads, judge.asked) == ([], [])

    run(work())


@pytest.mark.requirement("BOT-1")
def test_each_sending_is_signed_anew_in_place_of_fields_of_the_browser() -> None:
    async def work() -> None:
        numbers = iter(range(9))
        async with (
            serving(ends_its_first_connection()) as (server, port),
            run_proxy(Judge()) as (proxy, connect),
        ):
            proxy.signed_fields = lambda url: {"Signature": f"{next(numbers)} for {url}"}
            browser = await connect()
            for _ in range(2):
                await browser.ask(
                    f"GET http://127.0.0.1:{port}/a HTTP/1.1", "SIGNATURE: b", "Signature-B: c"
                )
                assert await browser.reader.readexactly(len(OK)) == OK
        heads = [head.split("\r\n") for heads in server.heads for head in heads]
        signed = [[line for line in head if line.lower().startswith("signature")] for head in heads]
        assert signed == [
            ["Signature-B: c", f"Signature: {number} for http://127.0.0.1:{port}/a"]
            for number in range(3)
        ]

    run(work())


@pytest.mark.requirement("PAY-1")
def test_no_page_offers_money_in_the_name_of_the_operator() -> None:
    async def work() -> None:
        async with serving(says(OK)) as (server, port), run_proxy(Judge()) as (_, connect):
            browser = await connect()
            await browser.ask(
                f"GET http://127.0.0.1:{port}/a HTTP/1.1",
                "Crawler-Max-Price: USD 9",
                "crawler-exact-price:USD 9",
                "X: y",
            )
            assert await browser.reader.readexactly(len(OK)) == OK
        ((head,),) = server.heads
        assert "X: y" in head
        assert "price" not in head.lower()

    run(work())


@pytest.mark.parametrize("body", [b"", b"body"])
def test_an_old_connection_that_the_server_has_ended_is_replaced(body: bytes) -> None:
    """Requests with a body are not repeated, because only the browser has the body."""

    async def work() -> None:
        judge = Judge()
        async with (
            serving(ends_its_first_connection()) as (server, port),
            run_proxy(judge) as (_, connect),
        ):
            browser = await connect()
            await browser.ask(f"GET http://127.0.0.1:{port}/ HTTP/1.1")
            await browser.reader.readexactly(len(OK))
            await browser.ask(
                f"POST http://127.0.0.1:{port}/ HTTP/1.1", f"Content-Length: {len(body)}", body=body
            )
            if body:
                assert await browser.reader.read() == b""
            else:
                assert await browser.reader.readexactly(len(OK)) == OK
        assert list(map(len, server.heads)) == ([2] if body else [2, 1])
        assert len(judge.asked) == 2

    run(work())


@pytest.mark.parametrize("waits_for", ["turn", "answer"])
def test_a_request_that_the_browser_gives_up_ends(waits_for: str) -> None:
    async def work() -> None:
        came, given_up = asyncio.Event(), asyncio.Event()

        class Waits(Judge):
            async def let_out(self, request: BrowserRequest) -> Judge | None:
                if waits_for == "turn":
                    await wait()
                return self

        async def script(peer: Peer) -> None:
            came.set()
            assert await peer.reader.read() == b""
            given_up.set()

        async def wait() -> None:
            came.set()
            try:
                await asyncio.Event().wait()
            finally:
                given_up.set()

        judge = Waits()
        async with serving(script) as (_, port), run_proxy(judge) as (_, connect):
            browser = await connect()
            await browser.ask(f"GET http://127.0.0.1:{port}/ HTTP/1.1")
            await came.wait()
            browser.writer.close()
            await given_up.wait()
            if waits_for == "answer":
                await judge.has_ended.wait()

    run(work())


# Tunnels


@pytest.fixture
def context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def tunnel(browser: Peer, port: int, *, is_secure: bool = True) -> str:
    """Open a tunnel, as a browser that accepts all certificates.

    Return the fingerprint of the key in the certificate."""
    await browser.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1", f"Host: 127.0.0.1:{port}")
    assert (await browser.head()).startswith(b"HTTP/1.1 200 ")
    if not is_secure:
        return ""
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    accepting.check_hostname, accepting.verify_mode = False, ssl.CERT_NONE
    await browser.writer.start_tls(accepting)
    shown = x509.load_der_x509_certificate(
        browser.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    )
    key = shown.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key).digest()).decode()


@pytest.mark.usefixtures("each_event_loop")
def test_a_request_in_a_tunnel_is_judged_before_the_server_is_connected_to(
    context: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def work() -> None:
        judge = Judge()
        async with (
            serving(says(OK), context) as (server, port),
            run_proxy(judge) as (proxy, connect),
        ):
            for path in ("private", "open"):
                browser = await connect()
                assert await tunnel(browser, port) == proxy.identity.fingerprint
                assert server.heads == []
                await browser.ask(f"GET /{path} HTTP/1.1", f"Host: 127.0.0.1:{port}")
                expected = OK if path == "open" else REFUSED
                assert await browser.reader.readexactly(len(expected)) == expected
            assert [request.url for request in judge.asked] == [
                f"https://127.0.0.1:{port}/{path}" for path in ("private", "open")
            ]
            assert [[head.partition("\r\n")[0] for head in heads] for heads in server.heads] == [
                ["GET /open HTTP/1.1"]
            ]

    run(work())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_certificate_that_cannot_be_verified_is_not_vouched_for(
    context: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    if is_known:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def work() -> None:
        judge = Judge(announces=True)
        async with serving(says(OK), context) as (_, port), run_proxy(judge) as (proxy, connect):
            expected = proxy.identity if is_known else proxy.foreign_identity
            for _ in range(2):
                browser = await connect()
                assert await tunnel(browser, port) == expected.fingerprint
                await browser.ask("GET / HTTP/1.1", f"Host: 127.0.0.1:{port}")
                assert await browser.reader.readexactly(len(OK)) == OK
                judge._announces = False  # the proxy remembers the validity of the certificate

    run(work())


def test_a_request_that_was_not_announced_goes_to_no_server_that_cannot_be_verified(
    context: ssl.SSLContext,
) -> None:
    async def work() -> None:
        judge = Judge()
        async with serving(says(OK), context) as (server, port), run_proxy(judge) as (_, connect):
            browser = await connect()
            await tunnel(browser, port)
            await browser.ask("GET / HTTP/1.1", f"Host: 127.0.0.1:{port}")
            assert await browser.reader.read() == b""
            await judge.has_ended.wait()
        assert (server.number_of_requests, judge.number_of_unsent) == (0, 1)

    run(work())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_tunnel_to_a_server_that_is_not_connected_to_is_not_opened(
    context: ssl.SSLContext, *, is_there: bool
) -> None:
    """The server does not listen, or its certificate is invalid and the browser would accept it."""

    async def work() -> None:
        async with serving(says(OK), context) as (server, port):
            if not is_there:
                port = 1
            async with run_proxy(Judge(announces=True), Route(is_strict=True)) as (_, connect):
                browser = await connect()
                await browser.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1")
                assert (await browser.head()).startswith(b"HTTP/1.1 502 ")
        assert server.number_of_requests == 0

    run(work())


def test_no_site_leads_to_an_inner_address() -> None:
    """The address of the name at the time of the connection counts (SEC-7)."""

    async def work() -> None:
        judge = Judge(reach=Reach.PUBLIC)
        async with serving(says(OK)) as (server, port), run_proxy(judge) as (_, connect):
            browser = await connect()
            await browser.ask(f"GET http://localhost:{port}/ HTTP/1.1")
            assert await browser.reader.read() == b""
        assert server.heads == []

    run(work())


@pytest.mark.usefixtures("each_event_loop")
@pytest.mark.parametrize("path", ["open", "private"])
def test_a_websocket_is_judged_and_handed_on(path: str) -> None:
    async def script(peer: Peer) -> None:
        await says(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\n\r\nhello"
        )(peer)
        while data := await peer.reader.read(100):
            peer.writer.write(data.upper())

    async def work() -> None:
        judge = Judge()
        async with serving(script) as (server, port), run_proxy(judge) as (_, connect):
            browser = await connect()
            await tunnel(browser, port, is_secure=False)
            await browser.ask(f"GET /{path} HTTP/1.1", "Connection: Upgrade", "Upgrade: WebSocket")
            if path == "private":
                assert await browser.reader.read() == REFUSED
                assert server.heads == []
                return
            assert (await browser.head()).startswith(b"HTTP/1.1 101 ")
            assert await browser.reader.readexactly(5) == b"hello"
            browser.writer.write(b"there")
            assert await browser.reader.readexactly(5) == b"THERE"
            (asked,) = judge.asked
            assert (asked.url, asked.is_socket) == (f"http://127.0.0.1:{port}/{path}", True)
            browser.writer.close()
            await judge.has_ended.wait()

    run(work())


@pytest.mark.parametrize("bypass", ["", "127.0.0.1"])
def test_the_operators_proxy_is_asked(bypass: str) -> None:
    """It gets the URL for http, and is asked for a tunnel for https and WebSockets."""

    async def work() -> None:
        judge = Judge()
        async with serving(says(OK)) as (direct, port), serving(says(OK)) as (other, other_port):
            route = Route(Proxy("127.0.0.1", other_port, "Basic YTpi"), bypass)
            async with run_proxy(judge, route) as (_, connect):
                browser = await connect()
                await browser.ask(
                    f"GET http://127.0.0.1:{port}/a HTTP/1.1", f"Host: 127.0.0.1:{port}"
                )
                assert await browser.reader.readexactly(len(OK)) == OK
                for is_secure in (False,) if bypass else (False, True):
                    browser = await connect()
                    await tunnel(browser, port, is_secure=is_secure)
                    await browser.ask(
                        "GET / HTTP/1.1", *([] if is_secure else ["Upgrade: websocket"])
                    )
                    await browser.reader.read(1)
        lines = [head.partition("\r\n")[0] for heads in other.heads for head in heads]
        if bypass:
            assert lines == []
            assert direct.number_of_requests == 2
        else:
            tunnels = [f"CONNECT 127.0.0.1:{port} HTTP/1.1"] * 2
            assert lines == [f"GET http://127.0.0.1:{port}/a HTTP/1.1", *tunnels]
            assert all(
                "Proxy-Authorization: Basic YTpi" in head for heads in other.heads for head in heads
            )
            assert direct.heads == []

    run(work())
