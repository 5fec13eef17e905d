"""HTTP/1.1 as the proxy of a browser reads along with it: streams, requests and answers.

Bodies and answers pass as they are. httptools says where an answer ends."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import httptools

from comity.gate.fetching.network import Destination
from comity.gate.fetching.proxies import Proxy
from comity.policies.syntax.urls import DEFAULT_PORTS

MAX_HEAD = 256 * 1024  # octets of a request line and its header fields
PIECE = 64 * 1024  # octets that are handed on at once
OF_PROXIES = ("proxy-connection", "proxy-authorization")  # header fields that no server gets


class Stream(asyncio.StreamReaderProtocol):
    """One side of a connection."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader(limit=MAX_HEAD)
        super().__init__(self.reader)
        self.has_ended = asyncio.Event()  # the other end sends no more
        self._writer: asyncio.StreamWriter | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        self._writer = asyncio.StreamWriter(
            transport, self, self.reader, asyncio.get_running_loop()
        )

    def eof_received(self) -> bool:
        self.has_ended.set()
        return bool(super().eof_received())

    def connection_lost(self, error: Exception | None) -> None:
        self.has_ended.set()
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

    async def hand_on(self, length: int | None, receiver: Stream | None) -> None:
        """Hand on octets. `length`: their number; None: all that come. `receiver`: None: they are dropped."""
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
    """A request as the browser sends it."""

    method: str
    url: str  # with http or https also for a WebSocket
    fields: dict[str, str]  # header fields
    destination: Destination
    target: str  # of the request line, for the server itself
    lines: tuple[bytes, ...]  # of the header fields
    length: int  # of the body

    @classmethod
    def read(cls, head: bytes, tunnel: Destination | None) -> Self:
        """Read the request line and the header fields. ValueError: Chromium sends no such request.

        `tunnel`: where the tunnel leads through which the request comes; None: the URL is in the request line."""
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

    def head(self, proxy: Proxy | None) -> bytes:
        """The request line and header fields, as they go out. RFC 9112 section-3.2.2: a proxy gets the URL, but in no tunnel."""
        if self.destination.scheme == "https" or self.is_socket:
            proxy = None
        lines = [
            f"{self.method} {self.url if proxy else self.target} HTTP/1.1".encode("ascii"),
            *self.lines,
        ]
        if proxy and proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}".encode("latin-1"))
        return b"\r\n".join((*lines, b"", b""))


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
            self.is_complete, self.is_switched, self._is_kept_open = True, True, False
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


def destination_of(scheme: str, authority: str) -> Destination:
    parts = urlsplit(f"//{authority}")
    return Destination(scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(scheme, 0))


def origin_of(destination: Destination) -> str:
    scheme, host, port = destination
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" if port == DEFAULT_PORTS[scheme] else f"{scheme}://{name}:{port}"
