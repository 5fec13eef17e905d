"""HTTP/1.1 for the proxy of a browser: streams, requests and answers.

Bodies and answers pass unchanged. httptools finds the ends of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, Self, cast
from urllib.parse import urlsplit

import httptools

from comity.gate.fetching.network import Destination
from comity.gate.fetching.proxies import Proxy
from comity.policies.document.offer import PAYING
from comity.policies.syntax.urls import DEFAULT_PORTS

MAX_HEAD = 256 * 1024  # the maximum octets of a request line and its header fields
PIECE = 64 * 1024  # the maximum octets that are handed on at once
OF_PROXIES = ("proxy-connection", "proxy-authorization")  # header fields for proxies only


class Stream(asyncio.StreamReaderProtocol):
    """One side of a connection.

    Attributes:
        reader: The octets from the other end.
        has_ended: Set when the other end sends no more.
    """

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader(limit=MAX_HEAD)
        super().__init__(self.reader)
        self.has_ended = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # The transports of uvloop are not instances of asyncio.Transport.
        self._writer = asyncio.StreamWriter(
            cast("asyncio.Transport", transport), self, self.reader, asyncio.get_running_loop()
        )

    def eof_received(self) -> bool:
        self.has_ended.set()
        return bool(super().eof_received())

    def connection_lost(self, error: Exception | None) -> None:
        self.has_ended.set()
        super().connection_lost(error)

    async def head(self) -> bytes:
        """Return the request line and header fields of the next request, or b"" if there is none.

        ValueError: the head is longer than MAX_HEAD."""
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

    async def hand_on(self, length: int | None, receiver: Stream | None) -> None:
        """Read octets from the other end, and write them to the receiver.

        `length`: the number of octets. None means all until the other end sends no more.
        `receiver`: None means that the octets are dropped."""
        while length is None or length > 0:
            data = await self.reader.read(PIECE if length is None else min(length, PIECE))
            if not data:
                break
            if receiver is not None:
                await receiver.write(data)
            length = None if length is None else length - len(data)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


class BrowserRequest(NamedTuple):
    """A request as the browser sends it.

    Attributes:
        method: The method.
        url: The URL. It begins with http or https for WebSockets, too.
        fields: The header fields, by their names in lower case.
        destination: The server.
        target: The target in the request line for the server.
        lines: The lines of the header fields, without those for proxies.
        length: The length of the body in octets.
    """

    method: str
    url: str
    fields: dict[str, str]
    destination: Destination
    target: str
    lines: tuple[bytes, ...]
    length: int

    @classmethod
    def read(cls, head: bytes, tunnel: Destination | None) -> Self:
        """Read the request line and the header fields.

        `tunnel`: the destination of the tunnel that the request comes through. None means that the
        URL is in the request line.
        ValueError: Chromium sends no such request."""
        line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        method, target, _ = line.decode("ascii").split(" ")
        if tunnel is None:
            scheme, separator, rest = target.partition("://")
            authority, slash, path = rest.partition("/")
            destination, target = destination_of(scheme, authority), slash + path
            if scheme != "http" or not slash:
                raise ValueError(
                    f"`{method} {scheme}{separator}{authority}` is no request to a proxy"
                )
        else:
            destination = tunnel
        fields: dict[str, str] = {}
        kept_lines = []
        for text in lines:
            name, colon, value = text.decode("latin-1").partition(":")
            if not colon:
                raise ValueError(f"`{name}` is no header field")
            if (name := name.lower()) not in OF_PROXIES:
                fields[name] = (
                    f"{fields[name]}, {value.strip()}" if name in fields else value.strip()
                )
                kept_lines.append(text)
        if "transfer-encoding" in fields:
            raise ValueError("Chromium sends no such body by HTTP/1.1")
        if "connection" not in fields:
            kept_lines.append(b"Connection: keep-alive")
        url, length = f"{origin_of(destination)}{target}", int(fields.get("content-length", "0"))
        return cls(method, url, fields, destination, target, tuple(kept_lines), length)

    @property
    def is_socket(self) -> bool:
        """True for a WebSocket."""
        return self.fields.get("upgrade", "").lower() == "websocket"

    def head(
        self,
        proxy: Proxy | None,
        own_fields: Mapping[str, str] = {},  # never changed
    ) -> bytes:
        """Return the request line and header fields for the server, or for the operator's proxy.

        RFC 9112 section-3.2.2: a proxy gets the URL, except in a tunnel.
        `own_fields`: header fields that replace those of the browser. Fields that offer money are
        left out: a script of a page could have set them."""
        if self.destination.scheme == "https" or self.is_socket:
            proxy = None
        lines = [
            f"{self.method} {self.url if proxy else self.target} HTTP/1.1".encode("ascii"),
            *self._lines_without(own_fields),
            *(f"{name}: {value}".encode("latin-1") for name, value in own_fields.items()),
        ]
        if proxy and proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}".encode("latin-1"))
        return b"\r\n".join((*lines, b"", b""))

    def _lines_without(self, replaced: Mapping[str, str]) -> tuple[bytes, ...]:
        names = {name.lower().encode("latin-1") for name in (*replaced, *PAYING)}
        return tuple(line for line in self.lines if line.partition(b":")[0].lower() not in names)


class AnswerReader:
    """The state of an answer that passes. The octets are only read, never changed.

    An answer that cannot be parsed goes on to the browser until the server ends the connection.

    Attributes:
        is_begun: True after the first octet.
        has_head: True after the header fields of the final answer. Answers with status 1xx do not
            count.
        is_complete: True after the last octet.
        is_switched: True if the connection has switched to another protocol.
        status: The status of the final answer. 0 means that it has not come.
        headers: The header fields.
    """

    def __init__(self, request: BrowserRequest) -> None:
        self.is_begun = False
        self.has_head = False
        self.is_complete = False
        self.is_switched = False
        self._is_kept_open = False  # True if the server keeps the connection open
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._has_no_body = request.method == "HEAD"
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    @property
    def leaves_open(self) -> bool:
        """True if more requests may follow on the connection."""
        return self.is_complete and self._is_kept_open

    def read(self, data: bytes) -> None:
        """Update the state with the next octets."""
        self.is_begun = True
        if self._parser is None:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.is_complete, self.is_switched, self._is_kept_open = True, True, False
        except httptools.HttpParserError:
            self._parser, self.is_complete, self._is_kept_open = None, False, False

    # Callbacks of httptools

    def on_message_begin(self) -> None:
        if self.has_head:
            self._is_kept_open = False  # the server sends a second answer

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


def destination_of(scheme: str, authority: str) -> Destination:
    """Return the destination for a scheme and authority. A missing port is the default one."""
    parts = urlsplit(f"//{authority}")
    return Destination(scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(scheme, 0))


def origin_of(destination: Destination) -> str:
    """Return the origin of a destination, without a default port."""
    scheme, host, port = destination
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" if port == DEFAULT_PORTS[scheme] else f"{scheme}://{name}:{port}"
