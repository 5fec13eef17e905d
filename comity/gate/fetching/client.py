"""Requests for policy files: their header fields, and one connection for each origin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from comity.gate.fetching.connection import Headers, HttpAnswer, TransferError, UnansweredError
from comity.gate.fetching.network import Channel, Destination, Network, Route
from comity.gate.fetching.options import ClientOptions
from comity.gate.fetching.pool import Pool
from comity.gate.fetching.reach import Reach
from comity.policies.syntax.content_coding import decoded
from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import DEFAULT_PORTS, target_of

ACCEPT = "text/plain,*/*;q=0.8"

# Called with the name of a count ("requests", "connections", "bytes"), the number, and the origin.
Count = Callable[[str, int, str], None]


class Hop(NamedTuple):
    """The outcome of one request.

    Attributes:
        status: The HTTP status.
        headers: The header fields, as they were sent.
        body: The decoded content, at most MAX_BYTES octets.
        oversized: True if the content was longer.
        reach: The reach of the server's address.
    """

    status: int
    headers: Headers
    body: bytes
    oversized: bool
    reach: Reach


class PolicyClient:
    """An HTTP client for policy files, independent of Scrapy.

    Its requests pass no middleware, download handler, cookie jar or cache of Scrapy.

    Attributes:
        network: The network that it connects to.
        pool: Its open connections, shared with comity's download handler.
    """

    def __init__(
        self,
        options: ClientOptions,
        network: Callable[[ClientOptions], Network] = Network,
        *,
        patience: float = 3.0,
    ) -> None:
        """Take the operator's options.

        `patience`: the maximum seconds to wait for the answer to one of several requests that went
        out together. Some servers read only the first of them.
        """
        self.network = network(options)
        self.pool = Pool()
        self.patience = patience
        self.signed_fields = options.signed_fields
        self.fields = (
            f"User-Agent: {options.user_agent}\r\nAccept: {ACCEPT}\r\nAccept-Encoding: identity\r\n"
        ).encode()

    def server(self, origin: str, referrer_reach: Reach | None, count: Count) -> OriginRequests:
        """Return an object for requests to an origin. Nothing is sent yet.

        `referrer_reach`: the reach of the site that leads to the origin. None means that the
        operator asks for the origin.
        `count`: called with "requests", "connections" and "bytes" (received octets), the number,
        and the origin.
        """
        return OriginRequests(self, origin, referrer_reach, count)


class _Sent(NamedTuple):
    """A request that went out."""

    channel: Channel
    answer: asyncio.Future[HttpAnswer | TransferError]


class OriginRequests:
    """The requests to one origin, all with the same reach of the referring site.

    The requests go out one after the other, over one connection if the server keeps the connection
    open. After an answer that keeps it open, the next request takes all announced requests with it
    (HTTP pipelining), except through a proxy. After a failure, each request has its own connection.

    Use each object as a context manager, in one task only.
    """

    def __init__(
        self, client: PolicyClient, origin: str, referrer_reach: Reach | None, count: Count
    ) -> None:
        parts = urlsplit(origin)
        self.origin = origin
        self.referrer_reach = referrer_reach
        # The host, with its port unless that is the default of the scheme.
        self._host = origin.partition("://")[2]
        self._client = client
        self._count = count
        self._destination = Destination(
            parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
        )
        self._route: Route | None = None  # read at the first request
        self._channel: Channel | None = None
        self._is_new = False  # True if the connection was made for the last request
        self._announced: dict[str, Mapping[str, str]] = {}  # URL -> its own header fields
        self._underway: dict[str, _Sent] = {}  # URL -> the announced request that went out
        self._is_together = False  # True if the requests under way went out together
        self._is_one_by_one = False  # True if each request gets a connection of its own
        self._counts: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._let_go()
        for name, number in self._counts.items():
            self._count(name, number, self.origin)

    def announce(self, url: str, fields: Mapping[str, str]) -> None:
        """Announce that `get` will be called with these arguments."""
        self._announced[url] = fields

    async def get(self, url: str, fields: Mapping[str, str]) -> Hop:
        """Return the outcome of a request.

        `fields`: header fields in addition to those of every request.
        TransferError: the server gave no complete, valid answer, or the URL or a field cannot be
        written into a request. BarredError: a site of `referrer_reach` may not lead to the server.

        A server may close a connection that was idle for too long, instead of answering. So an
        unanswered request on a used connection is made once more, on a new connection. Cancelling
        this call ends the connection.
        """
        try:
            sent = self._underway.pop(url, None)
            is_announced = sent is not None
            sent = sent or await self._send(url, fields)
            is_fresh = self._is_new and not is_announced
            answer = await self._answer(sent)
            if not is_fresh and (isinstance(answer, UnansweredError) or _is_of_connection(answer)):
                self._hang_up()
                self._is_one_by_one = True
                sent = await self._send(url, fields)
                answer = await self._answer(sent)
        except BaseException:
            self._hang_up()
            self._is_one_by_one = True
            raise
        if isinstance(answer, TransferError):
            self._hang_up()
            raise answer
        return _hop(answer, sent.channel)

    async def _answer(self, sent: _Sent) -> HttpAnswer | TransferError:
        if self._is_together and not sent.answer.done():
            await asyncio.wait([sent.answer], timeout=self._client.patience)
            if not sent.answer.done():
                return UnansweredError("requests that go out together are not answered")
        return await sent.answer

    async def _send(self, url: str, fields: Mapping[str, str]) -> _Sent:
        self._announced.pop(url, None)
        if self._underway:
            await asyncio.wait(
                [sent.answer for sent in self._underway.values()], timeout=self._client.patience
            )
        if self._channel is None or not self._channel.connection.is_reusable or self._is_one_by_one:
            self._hang_up()
            await self._connect()
            together = {}
        else:
            self._is_new = False
            together = {} if self._channel.proxy else self._announced
        assert self._channel
        requests = {url: self._request(url, fields)}
        for other in together:
            with suppress(TransferError):  # raised again when this URL itself is requested
                requests[other] = self._request(other, together[other])
        together.clear()
        self._is_together = len(requests) > 1
        self._add("requests", len(requests))
        for sent_url, answer in zip(
            requests, self._channel.connection.ask(list(requests.values())), strict=True
        ):
            self._underway[sent_url] = _Sent(self._channel, answer)
        return self._underway.pop(url)

    async def _connect(self) -> None:
        """Take a connection from the pool, or make one."""
        if self._route is None:
            self._route = self._client.network.route(self._destination)
        self._channel = (
            None
            if self._is_one_by_one
            else self._client.pool.take(self._route, self.referrer_reach)
        )
        self._is_new = self._channel is None
        if self._is_new:
            self._add("connections", 1)
            self._channel = await self._client.network.connect(self._route, self.referrer_reach)

    def _request(self, url: str, fields: Mapping[str, str]) -> bytes:
        """Return the octets of a GET request (RFC 9112 section-3).

        The request is signed anew, with the signature of this origin only, if there is a key.
        TransferError: the URL or a field contains characters that a request cannot have."""
        target = target_of(url)
        fields = {**fields, **self._client.signed_fields(self.origin)}
        proxy = self._channel.proxy if self._channel else None
        if proxy and proxy.authorization:
            fields = {**fields, "Proxy-Authorization": proxy.authorization}
        try:
            place = f"{self.origin if proxy else ''}{target}"
            first = f"GET {place} HTTP/1.1\r\nHost: {self._host}\r\n".encode("ascii")
            last = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode(
                "latin-1"
            )
        except UnicodeError:
            first = last = b""
        if (
            " " in target
            or not target.isprintable()
            or len((first + last).splitlines()) != 2 + len(fields)
        ):
            raise TransferError(f"`{printable(url.encode(errors='replace'))}` cannot be asked for")
        return b"%s%s%s\r\n" % (first, self._client.fields, last)

    def _hang_up(self) -> None:
        """End the connection. The answers that came are kept."""
        if self._channel is not None:
            self._channel.connection.close()
        self._let_go()

    def _let_go(self) -> None:
        """Give the connection to the pool, which ends it if it cannot be used again."""
        if self._channel is not None:
            self._add("bytes", self._channel.connection.octets)
            self._client.pool.give(self._channel)
        self._channel = None
        self._underway = {
            url: sent
            for url, sent in self._underway.items()
            if sent.answer.done() and not sent.answer.cancelled()
        }

    def _add(self, name: str, number: int) -> None:
        self._counts[name] = self._counts.get(name, 0) + number


def _hop(answer: HttpAnswer, channel: Channel) -> Hop:
    if channel.proxy is not None and (error := _proxy_error(answer)):
        raise TransferError(error)
    body, oversized = answer.body, answer.is_cut
    codings = [
        value.strip().lower()
        for name, value in answer.headers
        if name.lower() == b"content-encoding"
    ]
    if answer.status // 100 == 2 and body:
        try:
            body, oversized = decoded(body, b",".join(codings), is_cut=answer.is_cut)
        except ValueError as error:
            raise TransferError(str(error)) from None
    return Hop(answer.status, answer.headers, body[:MAX_BYTES], oversized, channel.reach)


def _is_of_connection(answer: HttpAnswer | TransferError) -> bool:
    """Return True if the answer is about an idle connection, not about the request.

    Some servers send a 408 when a connection was idle for too long (RFC 9110 section-15.5.9).
    """
    return isinstance(answer, HttpAnswer) and answer.status == 408


def _proxy_error(answer: HttpAnswer) -> str:
    """Return an error message if the answer is an error of the proxy itself.

    "" means that the answer may be the server's."""
    names = {name.lower(): value.lower() for name, value in answer.headers}
    # RFC 9209 section-2.1.1
    has_failed = b"x-squid-error" in names or b"error=" in names.get(b"proxy-status", b"")
    if answer.status == 407 or has_failed:
        return f"the proxy answered with HTTP status {answer.status}"
    return ""
