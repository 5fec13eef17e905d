"""The proxy of a guarded browser, which is its only way to the network.

How it works. Chromium does not report all requests to the DevTools protocol (docs/browsers.md lists
the others). All requests come to this proxy. It asks the guard about each one, and makes the
connection to the server itself.

    http              the URL is in the request line (RFC 9112 section-3.2.2)
    https, ws, wss    the browser asks for a tunnel (RFC 9110 section-9.3.6); TLS ends in the proxy,
                      which reads the requests

Beside its own roots, the browser trusts one key: that of the proxy, which exists as long as the
proxy. The proxy verifies the certificates of servers. If it cannot, it shows the browser a
certificate of another key. Then the browser fails, or goes on with `ignore_https_errors`.

Both sides speak HTTP/1.1. Bodies and answers pass unchanged. httptools reads along to find their
ends. A connection of the browser has one connection to a server at a time."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it
from weakref import WeakSet

from comity.bounded import Bounded
from comity.browser.http1 import (
    MAX_HEAD,
    PIECE,
    AnswerReader,
    BrowserRequest,
    Stream,
    destination_of,
    origin_of,
)
from comity.browser.identity import Identity
from comity.gate.fetching.causes import described
from comity.gate.fetching.connection import TransferError
from comity.gate.fetching.network import CertificateError, Destination, Network
from comity.gate.fetching.options import TLS
from comity.gate.fetching.proxies import Proxy
from comity.gate.fetching.reach import IPAddress, Reach

logger = logging.getLogger(__name__)

ACCEPT_AGAIN = 1.0  # seconds before the next try to accept connections
MAX_SERVERS = 10_000  # the maximum number of servers that are remembered
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
NOT_ESTABLISHED = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
# RFC 9209 section-2.3.15. Without an answer, Chromium would repeat the request.
REFUSED = (
    b"HTTP/1.1 403 Forbidden\r\nProxy-Status: comity; error=http_request_denied\r\n"
    b"Cache-Control: no-store\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)
TLS_HANDSHAKE = b"\x16"  # RFC 8446 section-5.1: the first octet of a ClientHello

T = TypeVar("T")


class Route(NamedTuple):
    """The way of requests from the proxy to servers.

    Attributes:
        proxy: The operator's own proxy. None means no further proxy.
        bypass: Domains that are asked without the operator's proxy, separated by commas.
        is_strict: True to refuse connections to servers with invalid certificates, because the
            browser would accept them.
    """

    proxy: Proxy | None = None
    bypass: str = ""
    is_strict: bool = False

    def proxy_for(self, host: str) -> Proxy | None:
        """Return the operator's proxy for a host, or None."""
        return (
            None
            if self.bypass and proxy_bypass_environment(host, {"no": self.bypass})
            else self.proxy
        )


class Passage(Protocol):
    """The permission of one request to go out."""

    @property
    def referrer_reach(self) -> Reach | None:
        """The reach of the site that leads to the request.

        None means that the operator leads to it."""

    def note_answer(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Note that the header fields of the answer came."""

    def note_no_server(self) -> None:
        """Note that no server was reached. The browser may repeat the request."""

    def note_end(self) -> None:
        """Note that the request is over."""


class RequestJudge(Protocol):
    """The decisions about requests."""

    async def let_out(self, request: BrowserRequest) -> Passage | None:
        """Wait until the request may go out, and return its permission. None means a refusal."""

    def expected_passage(self, origin: str) -> Passage | None:
        """Return the permission of a request to this origin that the proxy has not received yet.

        None means that no such request is known."""


class BrowserProxy:
    """The proxy. `listen` binds a port; `start` serves the ports."""

    def __init__(
        self,
        judge: RequestJudge,
        network: Callable[[], Network],
        signed_fields: Callable[[str], Mapping[str, str]] = lambda url: {},
    ) -> None:
        """`signed_fields`: returns the header fields that sign one request to a URL."""
        self.judge = judge
        self.signed_fields = signed_fields
        self._network = network
        self._listeners: dict[Route, socket.socket] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: WeakSet[Stream] = WeakSet()
        self._is_started = False
        self._addresses: Bounded[str, IPAddress | None] = Bounded(MAX_SERVERS)
        self.identity = Identity()  # the browser trusts this one
        self.foreign_identity = Identity()
        # Origins of servers with invalid certificates.
        self.unverified: Bounded[str, None] = Bounded(MAX_SERVERS)

    def listen(self, route: Route) -> str:
        """Return the URL of the proxy for this route."""
        listener = self._listeners.get(route)
        if listener is None:
            self._listeners[route] = listener = socket.create_server(("127.0.0.1", 0), backlog=512)
            listener.settimeout(0)
            if self._is_started:
                self._spawn(self._accept(listener, route))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def start(self) -> None:
        """Serve all routes. Call this method within the event loop."""
        self._is_started = True
        for route, listener in self._listeners.items():
            self._spawn(self._accept(listener, route))

    async def close(self) -> None:
        """End all connections, and close the ports."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.abort()
        for listener in self._listeners.values():
            listener.close()

    def address_of(self, host: str) -> IPAddress | None:
        """Return the address of the last connection to this host.

        None means that there was no connection, or that only another proxy knows the address."""
        return self._addresses.get(host)

    async def open(
        self,
        destination: Destination,
        reach: Reach | None,
        route: Route,
        *,
        is_tunnel: bool,
        is_verified: bool,
    ) -> Stream:
        """Connect to a server.

        `reach`: the reach of the site that leads to the server. None means that the operator leads
        to it.
        `is_tunnel`: use a tunnel through the operator's proxy for http, too.
        `is_verified`: False accepts every certificate of the server.
        TransferError: there is no connection.
        CertificateError: the certificate cannot be verified. The browser learns this with its next
        connection."""
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
            self.unverified[origin_of(destination)] = None
            raise
        if is_verified:
            self.unverified.pop(origin_of(destination), None)
        return server

    @cached_property
    def _verifying(self) -> ssl.SSLContext:
        return TLS().context()  # reads the root certificates of the machine

    @cached_property
    def _trusting(self) -> ssl.SSLContext:
        return TLS(is_verified=False).context()

    def new_stream(self) -> Stream:
        """Return a stream that is aborted when the proxy closes."""
        stream = Stream()
        self._streams.add(stream)
        return stream

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket, route: Route) -> None:
        while True:
            try:
                sock, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError as error:  # for example, too many open files
                logger.warning(
                    "The browser is not connected to: %(error)s", {"error": described(error)}
                )
                await asyncio.sleep(ACCEPT_AGAIN)
            else:
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
        self._tunnel: Destination | None = None  # None: each request line has the URL
        self._is_verified = True  # True if the certificate of the server is valid
        self._server: Stream | None = None
        self._destination: Destination | None = None  # the address of the server

    def close(self) -> None:
        """Close the connections to both sides."""
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
                self._tunnel = destination_of("https", head.split(b" ")[1].decode("ascii"))
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
        """Return the identity for a tunnel.

        If the certificate of the server is invalid, it is an identity that the browser does not
        trust. The proxy connects to the server before it reads the request, but only if a permitted
        request is expected.
        TransferError: there is no connection to the server."""
        origin = origin_of(tunnel)
        if (passage := self._proxy.judge.expected_passage(origin)) is not None:
            try:
                await self._connect(tunnel, passage.referrer_reach)
            except CertificateError:
                if self._route.is_strict:
                    raise
        self._is_verified = self._route.is_strict or origin not in self._proxy.unverified
        return self._proxy.identity if self._is_verified else self._proxy.foreign_identity

    async def go_on(self) -> None:
        """Judge and make the requests of the browser, one after the other.

        Return when one side ends the connection, or a request is refused."""
        while head := await self._browser.head():
            if not await self._while_there(self._let_out(head)):
                return

    async def _let_out(self, head: bytes) -> bool:
        """Judge one request, and make it if it is permitted.

        Return True if both sides stay connected."""
        request = BrowserRequest.read(head, self._tunnel)
        passage = await self._proxy.judge.let_out(request)
        if passage is None:
            # Read the body, or the end of the connection would overtake the answer.
            await self._browser.hand_on(request.length, None)
            await self._browser.write(REFUSED)
            return False
        try:
            return await self._exchange(request, passage)
        finally:
            passage.note_end()

    async def _connect(
        self, destination: Destination, reach: Reach | None, *, is_tunnel: bool = False
    ) -> Stream:
        """Connect to a server, in place of the previous connection."""
        if self._server is not None:
            self._server.close()
        self._server = await self._proxy.open(
            destination, reach, self._route, is_tunnel=is_tunnel, is_verified=self._is_verified
        )
        self._destination = destination
        return self._server

    async def _exchange(self, request: BrowserRequest, passage: Passage) -> bool:
        """Hand on a request to its server, and the answer to the browser.

        Return True if both sides stay connected.

        If a server closes an old connection without an answer, and the request has no body, the
        request is sent once more."""
        server = self._server
        if (
            server is not None
            and self._destination == request.destination
            and not server.has_ended.is_set()
        ):
            answer = AnswerReader(request)
            try:
                await self._ask(server, request, passage, answer)
            except ConnectionError:
                if answer.is_begun or request.length:
                    raise
            if answer.is_begun or request.length:
                return answer.leaves_open
        try:
            server = await self._connect(
                request.destination, passage.referrer_reach, is_tunnel=request.is_socket
            )
        except TransferError:
            passage.note_no_server()
            raise
        answer = AnswerReader(request)
        await self._ask(server, request, passage, answer)
        return answer.leaves_open

    async def _ask(
        self, server: Stream, request: BrowserRequest, passage: Passage, answer: AnswerReader
    ) -> None:
        own_proxy = self._route.proxy_for(request.destination.host)
        await server.write(request.head(own_proxy, self._proxy.signed_fields(request.url)))
        await self._browser.hand_on(request.length, server)
        while not answer.is_complete and (data := await server.reader.read(PIECE)):
            had_head = answer.has_head
            answer.read(data)
            if answer.has_head and not had_head:
                passage.note_answer(answer.status, answer.headers)
            await self._browser.write(data)
        if answer.is_switched and request.is_socket:
            await self._relay(server)

    async def _relay(self, server: Stream) -> None:
        """Hand on the octets of both sides until one of them ends (RFC 9110 section-15.2.2)."""
        pairs = ((self._browser, server), (server, self._browser))
        directions = [asyncio.create_task(source.hand_on(None, target)) for source, target in pairs]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work.

        EOFError: the browser has ended the connection meanwhile."""
        task, end = asyncio.create_task(work), asyncio.create_task(self._browser.has_ended.wait())
        try:
            await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise EOFError("the browser ended the connection")
            return task.result()
        finally:
            end.cancel()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _first_head(sock: socket.socket) -> bytes:
    """Return the first octets of a connection.

    They are the whole head of a request for a tunnel, or the beginning of another request. b""
    means that there are none."""
    received = b""
    while len(received) < MAX_HEAD:
        data = await asyncio.get_running_loop().sock_recv(sock, PIECE)
        received += data
        if (
            not data
            or (len(received) > 7 and not received.startswith(b"CONNECT "))
            or received.endswith(b"\r\n\r\n")
        ):
            return received
    raise ValueError("a longer head than is read")


async def _peek(sock: socket.socket) -> bytes:
    """Return the next octet without reading it. b"" means that the other end sends no more."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sock)
    return sock.recv(1, socket.MSG_PEEK)
