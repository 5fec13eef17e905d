"""HTTP/1.1 over one connection (RFC 9112).

Requests go out in order. The result of each is its answer, or the reason why it has none. `ask`
returns whole answers, of bounded size: those of policy files. `stream` returns an answer of any
size while it arrives: that of a page.

httptools (llhttp, strict) parses the octets. This module does the rest: it finds the request of an
answer, enforces limits, ends bodies that the end of the connection delimits, and rejects framing
that httptools lets pass though it can be read in two ways.

An answer with invalid or ambiguous framing is not clean, and counts as no answer. Other answers in
the same piece of octets do not count either, and no more octets are read."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from functools import cached_property
from ipaddress import ip_address
from typing import NamedTuple, cast

import httptools

from comity.gate.fetching.causes import described
from comity.gate.fetching.reach import IPAddress
from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable

MAX_HEAD = 64 * 1024  # the maximum octets of the status line and header fields of one answer
MAX_INTERIM = 8  # the maximum number of 1xx answers before the final answer
# The maximum octets of one answer as it is framed, with chunk sizes, chunk extensions and trailers.
MAX_ANSWER = 8 * MAX_BYTES

Headers = tuple[tuple[bytes, bytes], ...]


class TransferError(Exception):
    """The failure of a request, in words."""


class UnansweredError(TransferError):
    """No reliable octet of an answer arrived, so the request may be made again."""


class BrokenOffError(TransferError):
    """The server ended the connection within the body of an answer."""


class HttpAnswer(NamedTuple):
    """The answer to one request.

    Attributes:
        status: The HTTP status.
        headers: The header fields, as they were sent.
        body: The content as it was sent, not decoded.
        is_cut: True if the content is longer than MAX_BYTES octets. `body` has its beginning: these
            octets, and perhaps some more.
    """

    status: int
    headers: Headers
    body: bytes
    is_cut: bool


class _UncleanError(Exception):
    """Raised through the parser when the answer is not clean."""


class _EnoughError(Exception):
    """Raised through the parser when enough of an answer was read.

    Attributes:
        is_cut: True if the content is longer.
    """

    def __init__(self, *, is_cut: bool) -> None:
        self.is_cut = is_cut


class Arrival:
    """An answer while it arrives. Only its receiver takes `chunks` out.

        arrival = connection.stream(request)
        await arrival.more()
        arrival.status, arrival.chunks

    Attributes:
        is_head: True if the request has the method HEAD, so that the answer has no body.
        status: The HTTP status; 0 before the header fields have arrived.
        version: The version of HTTP, such as "1.1".
        headers: The header fields, as they were sent.
        chunks: The parts of the body that have arrived and were not taken yet, not decoded.
        result: The answer without its body, or the failure; None while more is to come.
    """

    __slots__ = (
        "_has_news",
        "_waker",
        "chunks",
        "headers",
        "is_head",
        "result",
        "status",
        "version",
    )

    def __init__(self, *, is_head: bool) -> None:
        self.is_head = is_head
        self.status = 0
        self.version = ""
        self.headers: Headers = ()
        self.chunks: list[bytes] = []
        self.result: HttpAnswer | TransferError | None = None
        self._has_news = False
        self._waker: asyncio.Future[None] | None = None

    async def more(self) -> None:
        """Return when more has arrived, or the answer has ended."""
        if not self._has_news:
            self._waker = asyncio.get_running_loop().create_future()
            await self._waker
        self._has_news = False

    def wake(self) -> None:
        """Let `more` return."""
        self._has_news = True
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    # As a future of `ask`, for the connection

    def done(self) -> bool:
        return self.result is not None

    def set_result(self, result: HttpAnswer | TransferError) -> None:
        self.result = result
        self.wake()

    def cancel(self) -> None:
        if not self.done():
            self.set_result(TransferError("the connection was ended"))


class Connection(asyncio.Protocol):
    """A connection to one server.

    Futures end with an HttpAnswer or a TransferError as their result, never with an exception.

    Attributes:
        octets: The number of octets received.
        is_reusable: True if the last answer was clean and the server keeps the connection open.
        address: The address of the peer; None if it is not known. A proxy can be the peer.
        ssl_object: The TLS session; None without TLS.
    """

    def __init__(self) -> None:
        self.octets = 0
        self.is_reusable = False
        self.address: IPAddress | None = None
        self.ssl_object: ssl.SSLObject | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiting: deque[asyncio.Future[HttpAnswer | TransferError] | Arrival] = deque()
        self._arrival: Arrival | None = None  # the receiver, if the answer is streamed
        self._max_octets = MAX_ANSWER
        self._answers: list[HttpAnswer] = []  # the complete answers in the octets at hand
        self._is_pipelined = False
        self._is_over = False
        self._is_kept_open = False  # True if the last answer says so
        # True if the end of the data is certain to come from the server, not from an attacker.
        self._is_closed_cleanly = False
        self._interim = 0
        self._begin_answer()

    @cached_property
    def certificate(self) -> bytes | None:
        """The certificate of the server, as DER; None without TLS."""
        return self.ssl_object.getpeercert(binary_form=True) if self.ssl_object else None

    def ask(self, requests: Sequence[bytes]) -> list[asyncio.Future[HttpAnswer | TransferError]]:
        """Send all requests in one piece, and return a future for the answer to each request.

        Do not call this method while an earlier request has no answer.
        """
        create_future = asyncio.get_running_loop().create_future
        futures = [create_future() for _ in requests]
        self._arrival, self._max_octets = None, MAX_ANSWER
        self._send(b"".join(requests), futures)
        return futures

    def stream(self, request: bytes, *, is_head: bool = False, max_octets: int = 0) -> Arrival:
        """Send the request, and return its answer while it arrives.

        `is_head`: True for the method HEAD. After its answer the connection ends. `max_octets`: the
        maximum octets of the answer as it is framed; 0 for any number.

        Do not call this method while an earlier request has no answer.
        """
        arrival = Arrival(is_head=is_head)
        self._arrival, self._max_octets = arrival, max_octets
        self._send(request, [arrival])
        return arrival

    def _send(
        self,
        octets: bytes,
        receivers: Sequence[asyncio.Future[HttpAnswer | TransferError] | Arrival],
    ) -> None:
        assert self._transport
        assert not self._waiting
        self._waiting.extend(receivers)
        self._is_pipelined = len(receivers) > 1
        self.is_reusable = False
        if self._is_over or self._transport.is_closing():
            self._give_up(UnansweredError("the server closed the connection"))
        else:
            self._transport.write(octets)

    def close(self) -> None:
        """End the connection. Requests under way get no answer."""
        self.is_reusable = False
        self._is_over = True
        for receiver in self._waiting:
            receiver.cancel()
        self._waiting.clear()
        if self._transport is not None:
            self._transport.abort()

    # Of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop are not instances of asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)
        self.ssl_object = transport.get_extra_info("ssl_object")
        if peer := transport.get_extra_info("peername"):
            self.address = ip_address(peer[0].partition("%")[0])
        if self._is_over:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self.octets += len(data)
        if not self._waiting:
            self.close()  # the server sent octets without a request
            return
        self._raw += len(data)
        try:
            self._parser.feed_data(data)
            if self._is_head and self._raw > MAX_HEAD:
                raise _UncleanError(f"the header section is larger than {MAX_HEAD} octets")
            if self._max_octets and self._raw > self._max_octets:
                raise _UncleanError(f"the answer is larger than {self._max_octets} octets")
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, _UncleanError) as error:
            cause = (
                error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else error
            )
            if isinstance(cause, _EnoughError):
                self._complete(is_cut=cause.is_cut)
                self._deliver()
            else:
                self._answers.clear()
            self._give_up(TransferError(f"not clean HTTP/1.1: {described(cause)}"))
        else:
            if self._answers:
                self._deliver()
            elif self._arrival is not None and not self._is_head:
                self._arrival.wake()

    def eof_received(self) -> None:
        """Note whether the end is clean: over TLS, only after a closure alert (section-9.8)."""
        self._is_closed_cleanly = self.ssl_object is None or _closure_alert(self.ssl_object)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_reusable = False
        if not self._waiting:
            return
        if self._is_until_close and self._is_closed_cleanly and error is None:
            self._complete()
            self._deliver()
        elif self._arrival is not None and not self._is_head:
            broken_off = TransferError if error else BrokenOffError
            self._give_up(broken_off(described(error) or "the answer breaks off"))
        elif not self._raw:
            self._give_up(
                UnansweredError(
                    described(error) or "the server closed the connection without an answer"
                )
            )
        self._give_up(TransferError(described(error) or "the answer breaks off"))

    # Of httptools

    def on_message_begin(self) -> None:
        if len(self._answers) == len(self._waiting):
            raise _UncleanError("octets after the end of the answer")
        self._begin_answer()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_head:
            return  # RFC 9110 section-6.5.1: trailers may not be merged into the header section
        self._head += len(name) + len(value)
        if self._head > MAX_HEAD:
            raise _UncleanError(f"the header section is larger than {MAX_HEAD} octets")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._is_head = False
        self._status = self._parser.get_status_code()
        version = self._parser.get_http_version()
        codings = [
            value.strip().lower()
            for name, value in self._headers
            if name.lower() == b"transfer-encoding"
        ]
        if version not in ("1.0", "1.1"):
            raise _UncleanError(f"the answer is of HTTP/{version}")
        if self._status < 100 or self._status == 101:
            raise _UncleanError(f"HTTP status {self._status}, which was not asked for")
        if codings and (version == "1.0" or codings != [b"chunked"]):  # section-6.1
            raise _UncleanError(
                f"Transfer-Encoding {printable(b', '.join(codings))} in an answer of HTTP/{version}"
            )
        has_length = any(name.lower() == b"content-length" for name, _ in self._headers)
        # section-6.3
        self._is_until_close = not (
            codings or has_length or self._status < 200 or self._status in (204, 304)
        )
        arrival = self._arrival
        if arrival is not None and self._status >= 200:
            arrival.status, arrival.version = self._status, version
            arrival.headers = tuple(self._headers)
            if arrival.is_head:
                raise _EnoughError(is_cut=False)  # the parser would wait for a body

    def on_body(self, data: bytes) -> None:
        if self._arrival is not None:
            self._arrival.chunks.append(data)
            return
        self._body += data
        if len(self._body) > MAX_BYTES:
            raise _EnoughError(is_cut=True)

    def on_message_complete(self) -> None:
        if self._status >= 200:
            # The parser knows this only until the end of the message.
            self._is_kept_open = self._parser.should_keep_alive()
            self._complete()
            return
        self._interim += 1
        if self._interim > MAX_INTERIM:
            raise _UncleanError("too many answers 1xx")
        self._begin_answer()

    # The answer at hand

    def _begin_answer(self) -> None:
        self._is_head = True
        self._head = 0  # octets of the answer's header fields
        self._raw = 0  # octets of the answer that were received so far
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._is_until_close = False

    def _complete(self, *, is_cut: bool = False) -> None:
        self._answers.append(
            HttpAnswer(self._status, tuple(self._headers), bytes(self._body), is_cut)
        )
        self._interim = 0
        self._begin_answer()

    def _deliver(self) -> None:
        """Hand over the complete answers."""
        for answer in self._answers:
            receiver = self._waiting.popleft()
            if not receiver.done():
                receiver.set_result(answer)
        self._answers.clear()
        if not self._is_kept_open:
            self._give_up(UnansweredError("the server closed the connection"))
        self.is_reusable = not (self._waiting or self._is_over)

    def _give_up(self, error: TransferError) -> None:
        """End the connection, and end all waiting requests with the error.

        If several requests were under way, the request with the invalid answer is unknown. So all
        of them count as unanswered, and may be made again one by one.
        """
        if self._is_pipelined and not isinstance(error, UnansweredError):
            error = UnansweredError(str(error))
        while self._waiting:
            receiver = self._waiting.popleft()
            if not receiver.done():
                receiver.set_result(error)
        self.close()


def _closure_alert(ssl_object: ssl.SSLObject) -> bool:
    """Return True if the peer announced the end of its data (RFC 8446 section-6.1)."""
    try:
        return not ssl_object.read(1)
    except ssl.SSLError:
        return False
