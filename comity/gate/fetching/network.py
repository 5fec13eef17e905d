"""Connections: names, the addresses that may be reached, proxies and TLS.

Addresses are judged anew for each connection. The host name is resolved once. Addresses that may
not be reached are left out, and the connection goes to one of the remaining addresses. The address
in use is read from the connected socket."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import NamedTuple, TypeVar, cast

import aiohappyeyeballs
import httptools
from aiohappyeyeballs import AddrInfoType

from comity.gate.fetching.causes import PROXY, described, failure_of, no_host
from comity.gate.fetching.connection import MAX_HEAD, Connection, TransferError
from comity.gate.fetching.options import ClientOptions
from comity.gate.fetching.proxies import Proxy
from comity.gate.fetching.reach import IPAddress, Reach, literal, reach_of
from comity.policies.syntax.printable import printable

# RFC 8305 section-5: seconds after which the next address is tried, too.
SECOND_TRY = 0.25

P = TypeVar("P", bound=asyncio.Protocol)


class BarredError(TransferError):
    """A site led to an address that it may not lead to. No connection was made."""


class CertificateError(TransferError):
    """The certificate of the server cannot be verified. The connection was ended."""


class Destination(NamedTuple):
    """The server to connect to.

    Attributes:
        scheme: "http" or "https".
        host: A name, or an address without brackets.
        port: The port.
    """

    scheme: str
    host: str
    port: int


class Route(NamedTuple):
    """The way to a server. Requests with equal routes can go over one connection.

    Attributes:
        destination: The server.
        proxy: The proxy in between; None for a direct connection.
        bind_address: The own host and port that the connection comes from; None for those of the
            operator's options.
    """

    destination: Destination
    proxy: Proxy | None = None
    bind_address: tuple[str, int] | None = None


class Channel(NamedTuple):
    """A connection to a server or proxy.

    Attributes:
        connection: The connection.
        reach: The reach of the server's address; PUBLIC if only a proxy knows the address.
        route: The way to the server.
    """

    connection: Connection
    reach: Reach
    route: Route

    @property
    def proxy(self) -> Proxy | None:
        """The proxy that the requests go to, with absolute URLs.

        None if there is no proxy, or if it only tunnels."""
        return self.route.proxy if self.route.destination.scheme == "http" else None


class Network:
    """Connect to servers. Tests replace `resolve` and `reach` to move names and addresses."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options

    @functools.cached_property
    def _context(self) -> ssl.SSLContext:
        return self._options.tls.context()  # reads the certificates of the machine

    def reach(self, address: IPAddress) -> Reach:
        return reach_of(address)

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        """Return the addresses of a host. OSError: the host has no address, or the look-up fails.

        Each name is looked up in a thread of its own, so that a slow look-up delays neither other
        look-ups nor the end of the program.
        """
        address = literal(host)
        # Connect to the very address that was judged, plus its zone. No name server is asked.
        if address is not None:
            return list(
                socket.getaddrinfo(
                    host if "%" in host else str(address), port, type=socket.SOCK_STREAM
                )
            )
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[AddrInfoType] | OSError] = loop.create_future()

        def settle(result: list[AddrInfoType] | OSError) -> None:
            if not answer.done():
                answer.set_result(result)

        def look_up() -> None:
            result: list[AddrInfoType] | OSError
            try:
                result = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except socket.gaierror as error:
                result = OSError(no_host(host)) if error.errno == socket.EAI_NONAME else error
            except (OSError, UnicodeError) as error:
                result = error if isinstance(error, OSError) else OSError(str(error))
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(settle, result)

        threading.Thread(target=look_up, name="comity-names", daemon=True).start()
        result = await answer
        if isinstance(result, OSError):
            raise result
        return result

    def check(self, host: str, referrer_reach: Reach | None) -> None:
        """Judge an address that is written in a URL.

        BarredError: a site of `referrer_reach` may not lead there.
        """
        address = literal(host)
        if (
            referrer_reach is not None
            and address is not None
            and not referrer_reach.may_lead_to(self.reach(address))
        ):
            raise BarredError(
                f"led to {printable(host.encode())}, which is a {self.reach(address).value} address"
            )

    def route(self, destination: Destination) -> Route:
        """Return the way to a server by the operator's options."""
        return Route(
            destination, self._options.proxies.select(destination.scheme, destination.host)
        )

    async def connect(self, route: Route, referrer_reach: Reach | None) -> Channel:
        """Connect to a server, for HTTP/1.1.

        `referrer_reach`: the reach of the site that leads there; None if the operator asks.
        TransferError: the connection fails. BarredError: the site may not lead there.
        """
        destination, proxy, bind_address = route
        connection, address = await self.open(
            destination,
            referrer_reach,
            Connection,
            proxy=proxy,
            context=self._context,
            bind_address=bind_address,
        )
        reach = Reach.PUBLIC if address is None else self.reach(address)
        return Channel(connection, reach, route)

    async def open(
        self,
        destination: Destination,
        referrer_reach: Reach | None,
        protocol: Callable[[], P],
        *,
        proxy: Proxy | None,
        context: ssl.SSLContext,
        bind_address: tuple[str, int] | None = None,
        is_tunnel: bool = False,
    ) -> tuple[P, IPAddress | None]:
        """Connect to a server. Return the protocol of the connection, and the server's address.

        The address is None if only a proxy knows it. `referrer_reach`: the reach of the site that
        leads there; None if the operator asks. `context`: the TLS context for https.
        `bind_address`: the own host and port; None for those of the operator's options.
        `is_tunnel`: tunnel through the proxy for http, too.

        TransferError: the connection fails. BarredError: the site may not lead there.
        CertificateError: the certificate cannot be verified.
        """
        self.check(destination.host, referrer_reach)
        bind_address = bind_address or self._options.bind_address
        try:
            if proxy is not None:
                opened = await self._through(
                    proxy, destination, protocol, context, bind_address, is_tunnel=is_tunnel
                )
                return opened, literal(destination.host)
            return await self._direct(destination, referrer_reach, protocol, context, bind_address)
        except ssl.SSLCertVerificationError as error:
            raise CertificateError(failure_of(error)) from None
        except (OSError, UnicodeError) as error:
            raise TransferError(failure_of(error)) from None

    async def _direct(
        self,
        destination: Destination,
        referrer_reach: Reach | None,
        protocol: Callable[[], P],
        context: ssl.SSLContext,
        bind_address: tuple[str, int] | None,
    ) -> tuple[P, IPAddress]:
        scheme, host, port = destination
        infos = await self.resolve(host, port)
        if referrer_reach is not None:
            infos = self._reachable(host, infos, referrer_reach)
        if not infos:
            raise TransferError(f"{host} has no address")
        sock = await _socket(infos, bind_address)
        address = ip_address(sock.getpeername()[0].partition("%")[0])
        return await _over(sock, protocol, context if scheme == "https" else None, host), address

    def _reachable(
        self, host: str, infos: list[AddrInfoType], referrer_reach: Reach
    ) -> list[AddrInfoType]:
        addresses = [literal(str(info[4][0])) for info in infos]
        reachable = [
            info
            for info, address in zip(infos, addresses, strict=True)
            if address is not None and referrer_reach.may_lead_to(self.reach(address))
        ]
        if not reachable:
            raise BarredError(
                f"led to {host}, which is at {', '.join(map(str, addresses)) or 'no address'}"
            )
        return reachable

    async def _through(
        self,
        proxy: Proxy,
        destination: Destination,
        protocol: Callable[[], P],
        context: ssl.SSLContext,
        bind_address: tuple[str, int] | None,
        *,
        is_tunnel: bool,
    ) -> P:
        """Connect through a proxy.

        RFC 9112 section-3.2.2 for http, RFC 9110 section-9.3.6 for tunnels.
        """
        try:
            sock = await _socket(await self.resolve(proxy.host, proxy.port), bind_address)
        except OSError as error:
            raise TransferError(
                f"{PROXY.words}: {proxy.host}:{proxy.port}: {failure_of(error)}"
            ) from None
        if destination.scheme == "http" and not is_tunnel:
            return await _over(sock, protocol, None, "")
        loop = asyncio.get_running_loop()
        try:
            transport, tunnel = await loop.create_connection(_Tunnel, sock=sock)
        except BaseException:
            sock.close()
            raise
        try:
            await tunnel.open(proxy, destination)
            connection = protocol()
            if destination.scheme == "http":
                transport.set_protocol(connection)
                connection.connection_made(transport)
                return connection
            name = destination.host.rstrip(".")
            secured = await loop.start_tls(transport, connection, context, server_hostname=name)
            assert secured
            connection.connection_made(secured)
        except BaseException:
            transport.abort()
            raise
        return connection


async def _socket(infos: list[AddrInfoType], bind_address: tuple[str, int] | None) -> socket.socket:
    """Return a socket connected to the first of the addresses that answers."""
    local_infos = None
    if bind_address is not None:
        local_infos = socket.getaddrinfo(*bind_address, type=socket.SOCK_STREAM)
    return await aiohappyeyeballs.start_connection(
        infos, local_addr_infos=local_infos, happy_eyeballs_delay=SECOND_TRY
    )


async def _over(
    sock: socket.socket, protocol: Callable[[], P], context: ssl.SSLContext | None, host: str
) -> P:
    """Start the protocol over a connected socket.

    `context`: the TLS context; None for a connection without TLS. `host`: the host name that the
    certificate has to be for.
    """
    try:
        name = None if context is None else host.rstrip(".")
        _, connection = await asyncio.get_running_loop().create_connection(
            protocol, sock=sock, ssl=context, server_hostname=name
        )
    except BaseException:
        sock.close()
        raise
    return connection


class _Tunnel(asyncio.Protocol):
    """The first part of a connection through a proxy: a CONNECT request and its answer."""

    def __init__(self) -> None:
        self._received = b""
        self._head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are not instances of asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if (
            b"\r\n\r\n" in self._received or len(self._received) > MAX_HEAD
        ) and not self._head.done():
            self._head.set_result(self._received)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._head.done():
            self._head.set_result(self._received)

    async def open(self, proxy: Proxy, destination: Destination) -> None:
        """Ask the proxy to connect to the destination. TransferError: the proxy fails to do so."""
        host = f"[{destination.host}]" if ":" in destination.host else destination.host
        authority = f"{host}:{destination.port}"
        credentials = (
            f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
        )
        self._transport.write(
            f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{credentials}\r\n".encode(
                "latin-1"
            )
        )
        received = await self._head
        head, end, more = received.partition(b"\r\n\r\n")
        parser = httptools.HttpResponseParser(object())
        try:
            parser.feed_data(head + end)
            status = parser.get_status_code()
        except httptools.HttpParserError as error:
            raise TransferError(
                f"the proxy answered CONNECT with invalid HTTP/1.1: {described(error)}"
            ) from None
        if not end or status // 100 != 2 or more:
            answer = (
                f"HTTP status {status}"
                if end and status // 100 != 2
                else "no answer that can be read"
            )
            raise TransferError(f"the proxy answered CONNECT with {answer}")
