"""The proxy of a guarded browser: each of its requests goes out here, or nowhere.

How it works. Chromium sends requests that it does not tell the DevTools protocol of (docs/browsers.md lists them). All requests
come to this proxy. It asks the guard about each one, and makes the connection to the server itself.

    http              the URL is in the request line (RFC 9112 section-3.2.2)
    https, ws, wss    the browser asks for a tunnel (RFC 9110 section-9.3.6). TLS ends in the proxy, which reads the requests

The browser trusts one key beside its own roots: the proxy's, which lasts as long as the proxy. The proxy verifies the
certificates of servers. If it cannot, it shows the browser a certificate of another key: the browser fails, or goes on with
`ignore_https_errors`.

Both sides speak HTTP/1.1. Bodies and answers pass as they are; httptools reads along to find their ends. A connection of the
browser has one connection to a server at a time."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it
from weakref import WeakSet

import httptools
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from comity.bounded import Bounded
from comity.crawler.fetching.connection import TransferError, described
from comity.crawler.fetching.network import CertificateError, Destination, Network
from comity.crawler.fetching.options import TLS
from comity.crawler.fetching.proxies import Proxy
from comity.crawler.fetching.reach import IPAddress, Reach
from comity.policies.syntax.urls import DEFAULT_PORTS

logger = logging.getLogger(__name__)

MAX_HEAD = 256 * 1024  # octets of a request line and its header fields
PIECE = 64 * 1024  # octets that are handed on at once
MAX_SERVERS = 10_000  # that are remembered
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
NOT_ESTABLISHED = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
# RFC 9209 section-2.3.15. Chromium asks again where a connection ends without an answer.
REFUSED = (
    b"HTTP/1.1 403 Forbidden\r\nProxy-Status: comity; error=http_request_denied\r\nCache-Control: no-store\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)
TLS_HANDSHAKE = b"\x16"  # RFC 8446 section-5.1: the first octet of a ClientHello
OF_PROXIES = ("proxy-connection", "proxy-authorization")  # header fields that no server gets

T = TypeVar("T")


class Route(NamedTuple):
    """The way of requests from the proxy to servers."""

    proxy: Proxy | None = None  # the operator's own; None: there is none
    bypass: str = ""  # domains that are asked without it, divided by commas
    is_strict: bool = False  # the browser would not mind a certificate that cannot be verified: there is no connection

    def proxy_for(self, host: str) -> Proxy | None:
        return None if self.bypass and proxy_bypass_environment(host, {"no": self.bypass}) else self.proxy


class BrowserRequest(NamedTuple):
    """A request as the browser sends it."""

    method: str
    url: str  # with http or https also for a WebSocket
    fields: dict[str, str]  # header fields
    is_socket: bool  # a WebSocket


class Passage(Protocol):
    """The permission of one request to go out."""

    @property
    def referrer_reach(self) -> Reach | None:
        """The reach of the site that leads there; None: the operator does."""

    def answered(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The header fields of the answer came."""

    def unsent(self) -> None:
        """No server was reached. The browser may send the request again."""

    def ended(self) -> None:
        """The request is over."""


class Judge(Protocol):
    """Decides about requests."""

    async def let_out(self, request: BrowserRequest) -> Passage | None:
        """The permission, once it is the request's turn. None: the request is refused."""

    def announced(self, origin: str) -> Passage | None:
        """The permission of a request to this origin that has not come yet. None: there is none."""


class BrowserProxy:
    """The proxy. `listen` binds a port; `start` serves the ports."""

    def __init__(self, judge: Judge, network: Callable[[], Network]) -> None:
        self.judge = judge
        self._network = network
        self._listeners: dict[Route, socket.socket] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: WeakSet[Stream] = WeakSet()
        self._is_started = False
        self._addresses: Bounded[str, IPAddress | None] = Bounded(MAX_SERVERS)
        self.identity = Identity()  # that the browser is to trust
        self.foreign_identity = Identity()
        self.unverified: Bounded[str, None] = Bounded(MAX_SERVERS)  # origins whose certificates could not be verified

    def listen(self, route: Route) -> str:
        """Return the URL of the proxy whose requests take this route."""
        listener = self._listeners.get(route)
        if listener is None:
            self._listeners[route] = listener = socket.create_server(("127.0.0.1", 0), backlog=512)
            listener.setblocking(False)
            if self._is_started:
                self._spawn(self._accept(listener, route))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def start(self) -> None:
        """Serve. To be called within the loop."""
        self._is_started = True
        for route, listener in self._listeners.items():
            self._spawn(self._accept(listener, route))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.abort()
        for listener in self._listeners.values():
            listener.close()

    def address_of(self, host: str) -> IPAddress | None:
        """The address of the last connection to this host. None: there was none, or only another proxy knows."""
        return self._addresses.get(host)

    async def open(
        self, destination: Destination, reach: Reach | None, route: Route, *, is_tunnel: bool, is_verified: bool
    ) -> Stream:
        """Connect to a server. TransferError: there is no connection. CertificateError: its certificate cannot be verified; the
        browser gets to know with its next connection.

        `reach`: of the site that leads there; None: the operator does. `is_tunnel`: tunnel through the operator's proxy for http,
        too."""
        try:
            server, self._addresses[destination.host] = await self._network().open(
                destination,
                reach,
                self.new_stream,
                proxy=route.proxy_for(destination.host),
                context=self._verifying if is_verified else self._trusting,
                is_tunnel=is_tunnel,
            )
        except CertificateError:
            self.unverified[_origin(destination)] = None
            raise
        if is_verified:
            self.unverified.pop(_origin(destination), None)
        return server

    @cached_property
    def _verifying(self) -> ssl.SSLContext:
        return TLS().context()  # reads the certificates of the machine

    @cached_property
    def _trusting(self) -> ssl.SSLContext:
        return TLS(is_verified=False).context()

    def new_stream(self) -> Stream:
        stream = Stream()
        self._streams.add(stream)
        return stream

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket, route: Route) -> None:
        while True:
            sock, _ = await asyncio.get_running_loop().sock_accept(listener)
            self._spawn(self._serve(sock, route))

    async def _serve(self, sock: socket.socket, route: Route) -> None:
        """Serve one connection of the browser."""
        conversation = Conversation(self, route)
        try:
            await conversation.begin(sock)
            await conversation.go_on()
        except (OSError, ValueError, EOFError, TransferError) as error:
            logger.debug("A connection of the browser ends: %(error)s", {"error": described(error)})
        except Exception:
            logger.exception("A request of the browser was not judged, and does not go out")
        finally:
            conversation.close()


class Conversation:
    """The requests of one connection of the browser, one after the other."""

    def __init__(self, proxy: BrowserProxy, route: Route) -> None:
        self._proxy = proxy
        self._route = route
        self._browser = proxy.new_stream()
        self._tunnel: Destination | None = None  # None: each request names its server
        self._is_verified = True  # the certificate of the server
        self._server: Stream | None = None
        self._destination: Destination | None = None  # of the server

    def close(self) -> None:
        self._browser.close()
        if self._server is not None:
            self._server.close()

    async def begin(self, sock: socket.socket) -> None:
        """Take over the socket of the browser, and open the tunnel if the browser asks for one."""
        loop = asyncio.get_running_loop()
        context = None
        try:
            head = await _first_head(sock)
            if head.startswith(b"CONNECT "):
                self._tunnel = _destination("https", head.split(b" ")[1].decode("ascii"))
                try:
                    identity = await self._identity(self._tunnel)
                except TransferError:
                    await loop.sock_sendall(sock, NOT_ESTABLISHED)
                    raise
                await loop.sock_sendall(sock, ESTABLISHED)
                if await _peek(sock) == TLS_HANDSHAKE:
                    context = identity.context
                else:  # a WebSocket without TLS
                    self._tunnel = self._tunnel._replace(scheme="http")
            else:
                self._browser.reader.feed_data(head)
            await loop.connect_accepted_socket(lambda: self._browser, sock, ssl=context)
        except BaseException:
            sock.close()
            raise

    async def _identity(self, tunnel: Destination) -> Identity:
        """The identity to show in a tunnel: that which the browser does not trust, if the certificate of the server cannot be
        verified. TransferError: there is no connection to the server.

        Only a permitted request that is to come allows to connect to the server before the request is read."""
        origin = _origin(tunnel)
        if (passage := self._proxy.judge.announced(origin)) is not None:
            try:
                await self._connect(tunnel, passage.referrer_reach)
            except CertificateError:
                if self._route.is_strict:
                    raise
        self._is_verified = self._route.is_strict or origin not in self._proxy.unverified
        return self._proxy.identity if self._is_verified else self._proxy.foreign_identity

    async def go_on(self) -> None:
        """Let requests out until one side ends the connection, or a request is refused."""
        while head := await self._browser.head():
            if not await self._while_there(self._let_out(head)):
                return

    async def _let_out(self, head: bytes) -> bool:
        """Let one request out, if it is permitted. True: both sides stay connected."""
        request, octets = _read(head, self._tunnel)
        passage = await self._proxy.judge.let_out(request)
        if passage is None:
            await self._browser.hand_on(octets.length, None)  # or the end of the connection would overtake the answer
            await self._browser.write(REFUSED)
            return False
        try:
            return await self._exchange(request, octets, passage)
        finally:
            passage.ended()

    async def _connect(self, destination: Destination, reach: Reach | None, *, is_tunnel: bool = False) -> Stream:
        """Connect to another server, or anew."""
        if self._server is not None:
            self._server.close()
        self._server = await self._proxy.open(destination, reach, self._route, is_tunnel=is_tunnel, is_verified=self._is_verified)
        self._destination = destination
        return self._server

    async def _exchange(self, request: BrowserRequest, octets: Outgoing, passage: Passage) -> bool:
        """Hand on a request and its answer. True: both sides stay connected.

        If a server has closed an old connection instead of answering a request without a body, it is asked once more."""
        server = self._server
        if server is not None and self._destination == octets.destination and not server.gone.is_set():
            answer = Answer(request)
            try:
                await self._ask(server, request, octets, passage, answer)
            except ConnectionError:
                if answer.is_begun or octets.length:
                    raise
            if answer.is_begun or octets.length:
                return answer.leaves_open
        try:
            server = await self._connect(octets.destination, passage.referrer_reach, is_tunnel=request.is_socket)
        except TransferError:
            passage.unsent()
            raise
        answer = Answer(request)
        await self._ask(server, request, octets, passage, answer)
        return answer.leaves_open

    async def _ask(self, server: Stream, request: BrowserRequest, octets: Outgoing, passage: Passage, answer: Answer) -> None:
        is_direct = octets.destination.scheme == "https" or request.is_socket
        await server.write(octets.head(None if is_direct else self._route.proxy_for(octets.destination.host)))
        await self._browser.hand_on(octets.length, server)
        while not answer.is_complete and (data := await server.reader.read(PIECE)):
            had_head = answer.has_head
            answer.read(data)
            if answer.has_head and not had_head:
                passage.answered(answer.status, answer.headers)
            await self._browser.write(data)
        if answer.is_switched:
            await self._switched(server)

    async def _switched(self, server: Stream) -> None:
        """Hand on the octets of both sides, until one of them ends (RFC 9110 section-15.2.2)."""
        pairs = ((self._browser, server), (server, self._browser))
        directions = [asyncio.create_task(source.hand_on(None, target)) for source, target in pairs]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work. EOFError: the browser ended the connection meanwhile."""
        task, gone = asyncio.create_task(work), asyncio.create_task(self._browser.gone.wait())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise EOFError("the browser ended the connection")
            return task.result()
        finally:
            gone.cancel()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class Stream(asyncio.StreamReaderProtocol):
    """One side of a connection."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader(limit=MAX_HEAD)
        super().__init__(self.reader)
        self.gone = asyncio.Event()  # the other end sends no more
        self._writer: asyncio.StreamWriter | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        self._writer = asyncio.StreamWriter(transport, self, self.reader, asyncio.get_running_loop())

    def eof_received(self) -> bool:
        self.gone.set()
        return bool(super().eof_received())

    def connection_lost(self, error: Exception | None) -> None:
        self.gone.set()
        super().connection_lost(error)

    async def head(self) -> bytes:
        """The request line and header fields of the next request; b"": there is none."""
        try:
            return await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""
        except asyncio.LimitOverrunError as error:
            raise ValueError(str(error)) from None

    async def write(self, data: bytes) -> None:
        assert self._writer
        self._writer.write(data)
        await self._writer.drain()

    async def hand_on(self, length: int | None, to: Stream | None) -> None:
        """Hand on so many octets. `length`: None: all that come. `to`: None: nowhere."""
        while length is None or length > 0:
            data = await self.reader.read(PIECE if length is None else min(length, PIECE))
            if not data:
                break
            if to is not None:
                await to.write(data)
            length = None if length is None else length - len(data)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


class Answer:
    """Reads along an answer. What is not clear HTTP goes on to the browser until the server ends the connection."""

    def __init__(self, request: BrowserRequest) -> None:
        self.is_begun = False
        self.has_head = False  # that of the answer itself, not of one with status 1xx
        self.is_complete = False
        self.is_switched = False  # to another protocol
        self._is_kept_open = False  # by the server
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._has_no_body = request.method == "HEAD"
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    @property
    def leaves_open(self) -> bool:
        """True if more requests may follow on the connection."""
        return self.is_complete and self._is_kept_open

    def read(self, data: bytes) -> None:
        self.is_begun = True
        if self._parser is None:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.is_complete = self.is_switched = True
        except httptools.HttpParserError:
            self._parser, self.is_complete, self._is_kept_open = None, False, False

    # Of httptools

    def on_message_begin(self) -> None:
        if self.has_head:
            self._is_kept_open = False  # more octets than were asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._parser
        status = self._parser.get_status_code()
        if self.has_head or (status < 200 and status != 101):
            return
        self.has_head, self.status = True, status
        self._is_kept_open = self._parser.should_keep_alive()
        self.is_complete = self._has_no_body

    def on_body(self, body: bytes) -> None:
        if self._has_no_body:
            self._is_kept_open = False

    def on_message_complete(self) -> None:
        if self.has_head:
            self.is_complete = True
        else:
            self.headers.clear()


class Outgoing(NamedTuple):
    """The octets of a request."""

    destination: Destination
    line: tuple[str, str]  # the method, and the target for the server itself
    url: str
    fields: tuple[bytes, ...]  # lines of header fields
    length: int  # of the body

    def head(self, proxy: Proxy | None) -> bytes:
        """The request line and header fields. `proxy`: that gets the URL; None: the server gets the target."""
        method, target = self.line
        lines = [f"{method} {self.url if proxy else target} HTTP/1.1".encode("ascii"), *self.fields]
        if proxy and proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}".encode("latin-1"))
        return b"\r\n".join((*lines, b"", b""))


def _read(head: bytes, tunnel: Destination | None) -> tuple[BrowserRequest, Outgoing]:
    """The request with this head. `tunnel`: to where it comes; None: its URL is in the request line. ValueError: it is none that
    Chromium sends."""
    line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, target, _ = line.decode("ascii").split(" ")
    if tunnel is None:
        scheme, separator, rest = target.partition("://")
        authority, slash, path = rest.partition("/")
        destination, target = _destination(scheme, authority), slash + path
        if scheme != "http" or not slash:
            raise ValueError(f"`{method} {scheme}{separator}{authority}` is no request to a proxy")
    else:
        destination = tunnel
    fields: dict[str, str] = {}
    kept = []
    for text in lines:
        name, colon, value = text.decode("latin-1").partition(":")
        if not colon:
            raise ValueError(f"`{name}` is no header field")
        if (name := name.lower()) not in OF_PROXIES:
            fields[name] = f"{fields[name]}, {value.strip()}" if name in fields else value.strip()
            kept.append(text)
    if "transfer-encoding" in fields:
        raise ValueError("Chromium sends no such body by HTTP/1.1")
    if "connection" not in fields:
        kept.append(b"Connection: keep-alive")
    url = f"{_origin(destination)}{target}"
    request = BrowserRequest(method, url, fields, fields.get("upgrade", "").lower() == "websocket")
    return request, Outgoing(destination, (method, target), url, tuple(kept), int(fields.get("content-length", "0")))


def _destination(scheme: str, authority: str) -> Destination:
    parts = urlsplit(f"//{authority}")
    return Destination(scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(scheme, 0))


def _origin(destination: Destination) -> str:
    scheme, host, port = destination
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" if port == DEFAULT_PORTS[scheme] else f"{scheme}://{name}:{port}"


class Identity:
    """A key, and a certificate for it that nobody else has signed. No name counts: the browser is told of the key."""

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    @property
    def fingerprint(self) -> str:
        """The SHA-256 digest of the key (RFC 7469 section-2.4)."""
        der = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        return base64.b64encode(hashlib.sha256(self._key.public_key().public_bytes(*der)).digest()).decode("ascii")

    @cached_property
    def context(self) -> ssl.SSLContext:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "comity")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=365))
            .sign(self._key, hashes.SHA256())
        )
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with NamedTemporaryFile() as file:  # `ssl` reads files alone
            file.write(self._key.private_bytes(*form) + certificate.public_bytes(serialization.Encoding.PEM))
            file.flush()
            context.load_cert_chain(file.name)
        return context


async def _first_head(sock: socket.socket) -> bytes:
    """The first octets of a connection: the whole head of a request for a tunnel, or some of another request. b"": there are
    none."""
    received = b""
    while len(received) < MAX_HEAD:
        data = await asyncio.get_running_loop().sock_recv(sock, PIECE)
        received += data
        if not data or (len(received) > 7 and not received.startswith(b"CONNECT ")) or received.endswith(b"\r\n\r\n"):
            return received
    raise ValueError("a longer head than is read")


async def _peek(sock: socket.socket) -> bytes:
    """The next octet, which stays to be read. b"": the other end sends no more."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sock)
    return sock.recv(1, socket.MSG_PEEK)
