"""A download handler of Scrapy: it fetches pages with the client for policy files.

A request passes these steps:

    route         its server, proxy and own address (route.py)
    connection    an open connection of the client's pool, or a new one. Addresses to which the
                  referring site may not lead get no connection (SEC-7)
    octets        the request as HTTP/1.1 (octets.py)
    answer        `headers_received`, then `bytes_received` for each part of the body. The download
                  ends early by StopDownload, DOWNLOAD_MAXSIZE or the timeout, and then ends the
                  connection as well

Signals are sent in the task of the request, so that requests made by their receivers belong to it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pydispatch.dispatcher import getAllReceivers  # type: ignore[import-untyped]
from scrapy import signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    StopDownload,
)
from scrapy.http import Headers, Request, Response
from scrapy.responsetypes import responsetypes

from comity.crawler.crawl import Crawl
from comity.crawler.downloads.octets import octets_of
from comity.crawler.downloads.route import Routes
from comity.gate.fetching.causes import LOOK_UP, NO_HOST, PROXY, REFUSED, cause_of
from comity.gate.fetching.connection import Arrival, BrokenOffError, Connection, TransferError
from comity.gate.fetching.network import BarredError, Channel, Route
from comity.gate.request.access import inner_address
from comity.policies.syntax.lines import MAX_BYTES

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

# An answer, with chunk sizes, chunk extensions and trailers, may have this many times the octets of
# DOWNLOAD_MAXSIZE.
FRAMING = 8

_ERRORS = dict.fromkeys((NO_HOST, LOOK_UP), CannotResolveHostError) | dict.fromkeys(
    (REFUSED, PROXY), DownloadConnectionRefusedError
)


class DownloadHandler:
    """The download handler for http and https. COMITY_DOWNLOAD_HANDLER puts it in place."""

    lazy = False  # so that connections for policy files are kept open from the first one

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._crawl = Crawl.of(crawler)
        self._routes = Routes(settings)
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._limits = {
            name: settings.getint(f"DOWNLOAD_{name.upper()}") for name in ("maxsize", "warnsize")
        }
        self._fails_on_dataloss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._has_warned = False  # of lost data
        self._logs_tls = settings.getbool("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING")
        self._client = self._crawl.client
        self._client.pool.join()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def close(self) -> None:
        self._client.pool.leave()

    async def download_request(self, request: Request) -> Response:
        """Download the request.

        DownloadTimeoutError, DownloadFailedError, ...: as Scrapy's handlers. IgnoreRequest: the
        site that leads to the request may not lead to the address of the server.
        """
        seconds = request.meta.get("download_timeout") or self._timeout or None
        try:
            async with asyncio.timeout(seconds):
                return await self._download(request)
        except TimeoutError:
            raise DownloadTimeoutError(
                f"Getting {request.url} took longer than {seconds} seconds."
            ) from None

    async def _download(self, request: Request) -> Response:
        route, host = self._routes.of(request)
        octets = octets_of(request, route, host)
        maxsize = self._limit(request, "maxsize")
        start = monotonic()
        channel, is_new = await self._channel(request, route)
        connection = channel.connection
        try:
            arrival = connection.stream(
                octets,
                is_head=request.method == "HEAD",
                max_octets=maxsize and FRAMING * max(maxsize, MAX_BYTES),
            )
            await arrival.more()
            failure = arrival.result
            if isinstance(failure, TransferError) and not isinstance(failure, BrokenOffError):
                _fail(failure, is_new=is_new)
            request.meta["download_latency"] = monotonic() - start
            response = await self._receive(request, arrival, connection)
        except BaseException:
            connection.close()
            raise
        if dict.__contains__(request.headers, b"Connection"):
            connection.close()  # the request may have said so
        self._client.pool.give(channel)
        return response

    async def _channel(self, request: Request, route: Route) -> tuple[Channel, bool]:
        """Return a connection, and True if it is new."""
        reach = self._crawl.referrals.referrer_reach(request)
        if channel := self._client.pool.take(route, reach):
            return channel, False
        try:
            channel = await self._client.network.connect(route, reach)
        except BarredError as error:
            assert reach
            decision = inner_address(request.url, reach, str(error))
            self._crawl.access.record(request, decision)
            raise IgnoreRequest(str(decision)) from None
        except TransferError as error:
            _fail(error, is_new=True)
        if self._logs_tls and channel.connection.ssl_object is not None:
            _log_session(channel.connection.ssl_object)
        return channel, True

    def _limit(self, request: Request, name: str) -> int:
        """Return DOWNLOAD_MAXSIZE or DOWNLOAD_WARNSIZE for the request; 0 for no limit."""
        return request.meta.get(f"download_{name}", self._limits[name]) or 0

    async def _receive(
        self, request: Request, arrival: Arrival, connection: Connection
    ) -> Response:
        """Return the response to the request.

        StopDownload: a receiver of a signal has ended the download, and wants the errback.
        DownloadCancelledError: the body is larger than DOWNLOAD_MAXSIZE. ResponseDataLossError: the
        body breaks off.
        """
        headers = _headers(arrival)
        lengths = dict.get(headers, b"Content-Length")
        length = int(lengths[-1]) if lengths else None
        # The receivers get header fields of their own, which they may change.
        stop = self._stop(
            signals.headers_received, request, headers=_headers(arrival), body_length=length
        )
        body, flags = b"", None
        if stop is None:
            sizes = Sizes(
                request, self._limit(request, "maxsize"), self._limit(request, "warnsize")
            )
            if length is not None and not arrival.is_head:
                sizes.check(length, is_expected=True)
            body, stop = await self._body(request, arrival, sizes)
        if stop is None and isinstance(arrival.result, TransferError):
            self._lose(request, arrival.result)
            flags = ["dataloss"]
        url = request.url.partition("#")[0]
        response = responsetypes.from_args(headers=headers, url=url, body=body)(
            url=url,
            status=arrival.status,
            body=body,
            flags=flags,
            certificate=connection.certificate,
            ip_address=connection.address,
            protocol=f"HTTP/{arrival.version}",
        )
        response.headers = headers  # as a keyword, every name would be normalised again
        if stop is not None:
            response.flags.append("download_stopped")
            if stop.fail:
                stop.response = response
                raise stop
        return response

    async def _body(
        self, request: Request, arrival: Arrival, sizes: Sizes
    ) -> tuple[bytes, StopDownload | None]:
        """Return the body, or its beginning and the reason why a receiver has ended it."""
        body: list[bytes] = []
        size = 0
        while True:
            chunks, arrival.chunks = arrival.chunks, []
            has_receivers = chunks and self._has_receivers(signals.bytes_received)
            for chunk in chunks:
                body.append(chunk)
                size += len(chunk)
                stop = (
                    self._stop(signals.bytes_received, request, data=chunk)
                    if has_receivers
                    else None
                )
                if stop is not None:
                    return b"".join(body), stop
                sizes.check(size)
            if arrival.result is not None:
                return b"".join(body), None
            await arrival.more()

    def _lose(self, request: Request, failure: TransferError) -> None:
        """Return if an incomplete body is accepted; else raise ResponseDataLossError.

        TransferError other than of lost data: DownloadFailedError."""
        if not isinstance(failure, BrokenOffError):
            _fail(failure, is_new=True)
        if not request.meta.get("download_fail_on_dataloss", self._fails_on_dataloss):
            return
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Got data loss in %(url)s. To process broken responses, set"
                " DOWNLOAD_FAIL_ON_DATALOSS = False. Further losses are not logged",
                {"url": request.url},
            )
        raise ResponseDataLossError(str(failure)) from failure

    def _has_receivers(self, signal: object) -> bool:
        return any(True for _ in getAllReceivers(self._crawler.signals.sender, signal))

    def _stop(self, signal: object, request: Request, **values: Any) -> StopDownload | None:
        """Send the signal, and return StopDownload if a receiver raises it."""
        results = self._crawler.signals.send_catch_log(
            signal=signal, request=request, spider=self._crawler.spider, **values
        )
        for receiver, result in results:
            error = getattr(result, "value", None)  # of a Failure
            if isinstance(error, StopDownload):
                logger.debug(
                    "Download stopped for %(request)s from signal handler %(name)s",
                    {"request": request, "name": receiver.__qualname__},
                )
                return error
        return None


class Sizes:
    """The limits for the size of a body."""

    __slots__ = ("_maxsize", "_request", "_warnsize")

    def __init__(self, request: Request, maxsize: int, warnsize: int) -> None:
        """`maxsize`, `warnsize`: numbers of octets; 0 for no limit."""
        self._request = request
        self._maxsize = maxsize
        self._warnsize = warnsize

    def check(self, size: int, *, is_expected: bool = False) -> None:
        """Warn of a size above `warnsize`, once. DownloadCancelledError: it is above `maxsize`.

        `is_expected`: True for the size that the header fields announce."""
        if 0 < self._maxsize < size:
            message = self._message(size, "max", self._maxsize, is_expected=is_expected)
            logger.warning("%s", message)
            raise DownloadCancelledError(message)
        if 0 < self._warnsize < size:
            message = self._message(size, "warn", self._warnsize, is_expected=is_expected)
            logger.warning("%s", message)
            self._warnsize = 0

    def _message(self, size: int, name: str, limit: int, *, is_expected: bool) -> str:
        return (
            f"{'Expected to receive' if is_expected else 'Received'} {size} bytes which is larger"
            f" than download {name} size ({limit}) in request {self._request}."
        )


def _headers(arrival: Arrival) -> Headers:
    """Return the header fields of the answer. A caller may change them."""
    headers = Headers()
    for name, value in arrival.headers:
        # The method of Scrapy's class would normalise name and value in more steps.
        dict.setdefault(headers, name.title(), []).append(value)
    return headers


def _fail(failure: TransferError, *, is_new: bool) -> NoReturn:
    """Raise the failure as Scrapy's error.

    `is_new`: True if the connection is new. A request on another one is sent again if it has no
    answer, because an idle connection may end at any time (Crawl._send)."""
    error = _ERRORS.get(cause_of(str(failure)), DownloadFailedError)
    raise error(str(failure)) from (None if is_new else failure)


def _log_session(session: ssl.SSLObject) -> None:
    cipher = session.cipher()
    logger.debug(
        "SSL connection to %(host)s using protocol %(version)s, cipher %(cipher)s",
        {
            "host": session.server_hostname,
            "version": session.version(),
            "cipher": cipher[0] if cipher else None,
        },
    )
    if certificate := session.getpeercert():  # known only if certificates are verified
        logger.debug(
            'SSL connection certificate: issuer "%(issuer)s", subject "%(subject)s"', certificate
        )
