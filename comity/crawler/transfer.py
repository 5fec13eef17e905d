"""One hop of the fetch of a policy file, bounded in octets and in where it may lead, in both modes of Scrapy.

It goes through the project's own downloader middlewares (proxy, user agent, credentials) like every other request."""

from __future__ import annotations

import re
import zlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from comity.crawler.addresses import IPAddress, Reach, literal, reach_of
from comity.crawler.engine import lent_place
from comity.policies.lines import MAX_BYTES
from comity.policies.text import printable

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

META = {
    "allow_offsite": True,
    "dont_redirect": True,
    "dont_retry": True,
    "handle_httpstatus_all": True,
    "dont_cache": True,
    "dont_merge_cookies": True,
    "download_maxsize": 0,
    "download_warnsize": 0,
    "download_fail_on_dataloss": True,
    "comity": {"session": False},  # a site could lead to what only the operator may see
}
HEADERS = {"Accept": "text/plain,*/*;q=0.8", "Accept-Encoding": "identity"}


class TransferError(Exception):
    """Why a hop brought nothing, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What one request brought."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes  # content decoded, at most MAX_BYTES octets
    oversized: bool  # there was more
    reach: Reach  # of the server


@dataclass(slots=True)
class _Underway:
    judged: bool
    origin_reach: Reach | None  # of the site that led here; None: the operator's own wish, wherever it leads
    reach: Reach | None = None  # of the server, where the request was made here
    received: int = 0  # octets
    content_encoding: bytes = b""
    refused: str = ""


class PolicyTransfer:
    """Downloader middleware, last before the downloader (950). It touches no requests but those made here.

    Without it in DOWNLOADER_MIDDLEWARES, nothing that leads from a policy file to another origin is followed: nothing could
    judge where it leads."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._underway: dict[Request, _Underway] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """The one among the crawl's downloader middlewares, or one that stands alone."""
        return crawler.get_downloader_middleware(cls) or cls(crawler)

    def reach(self, address: IPAddress) -> Reach:
        return reach_of(address)

    def resolver(self) -> AbstractResolver:
        import aiohttp

        return aiohttp.ThreadedResolver()

    def owns(self, request: Request) -> bool:
        """Whether nobody has to judge the request."""
        underway = self._underway.get(request)
        return underway is not None and not underway.judged

    def made(self, request: Request) -> bool:
        """Whether the request was made here."""
        return request in self._underway

    def led_from(self, request: Request) -> Reach | None:
        """The reach of the site that leads to the request, as of `hop`."""
        underway = self._underway.get(request)
        return underway.origin_reach if underway is not None else None

    async def hop(
        self, url: str, *, headers: Mapping[str, str], seconds: float, led_from: Reach | None, judged: bool = False
    ) -> Hop:
        """`led_from`: the reach of the site that redirected or referred to another origin, None for what the operator asked
        for. `judged`: by the policies of its own site and at its pace, as policy files are not."""
        underway = _Underway(judged, led_from)
        if led_from is not None:
            self._check(url, led_from)
        try:
            meta = {**META, "download_timeout": seconds, "download_slot": f"comity {url}"}
            request = Request(url, callback=NO_CALLBACK, headers={**HEADERS, **headers}, meta=meta)
        except ValueError as error:
            raise TransferError(str(error)) from None
        if not self._underway:
            self._crawler.signals.connect(self._bytes_received, signals.bytes_received)
        self._underway[request] = underway
        try:
            assert self._crawler.engine
            with lent_place(self._crawler):
                response = await self._crawler.engine.download_async(request)
        except Exception as error:  # its class differs between the modes and says nothing that could be relied on
            raise TransferError(underway.refused or _described(error)) from None
        finally:
            del self._underway[request]
            if not self._underway:
                self._crawler.signals.disconnect(self._bytes_received, signals.bytes_received)
        body, more = decoded(response.body, underway.content_encoding or _content_encoding(response))
        return Hop(
            status=response.status,
            headers=tuple((name, value) for name, values in response.headers.items() for value in values),
            body=body[:MAX_BYTES],
            oversized=more or len(body) > MAX_BYTES or underway.received > MAX_BYTES,
            reach=underway.reach or self._reach_of(request, response),
        )

    def _check(self, url: str, led_from: Reach) -> None:
        """Judges what can be judged before the request is made."""
        host = urlsplit(url).hostname or ""
        address = literal(host)
        if address is not None and not led_from.may_lead_to(self.reach(address)):
            raise TransferError(f"led to {printable(host.encode())}, which is a {self.reach(address).value} address")
        if self._crawler.get_downloader_middleware(type(self)) is not self:
            raise TransferError("led to another origin: add comity.crawler.transfer.PolicyTransfer to DOWNLOADER_MIDDLEWARES")

    def _reach_of(self, request: Request, response: Response) -> Reach:
        """Public where nobody knows, so that it may redirect to the public only."""
        address = literal(urlsplit(request.url).hostname or "")
        if address is None and not request.meta.get("proxy"):
            address = response.ip_address
        return Reach.PUBLIC if address is None else self.reach(address)

    def _bytes_received(self, data: bytes, request: Request) -> None:
        underway = self._underway.get(request)
        if underway is not None:
            underway.received += len(data)
            if underway.received > MAX_BYTES:
                raise StopDownload(fail=False)

    def process_request(self, request: Request) -> Awaitable[Response] | None:
        underway = self._underway.get(request)
        if underway is None or underway.origin_reach is None or request.meta.get("proxy"):
            return None  # a proxy resolves names by itself
        return self._download(request, underway, underway.origin_reach)

    def process_response(self, request: Request, response: Response) -> Response:
        """Takes Content-Encoding off, or HttpCompressionMiddleware would decode a bomb."""
        underway = self._underway.get(request)
        if underway is not None:
            underway.content_encoding = _content_encoding(response)
            response.headers.pop("Content-Encoding", None)
        return response

    async def _download(self, request: Request, underway: _Underway, led_from: Reach) -> Response:
        from comity.crawler import guarded

        resolver = guarded.Resolver(self.resolver(), lambda address: led_from.may_lead_to(self.reach(address)))
        try:
            response = await guarded.get(request, resolver, self._crawler.settings)
        finally:
            underway.refused = resolver.refused
            # As the downloader does: the delay of the host counts from here.
            self._crawler.signals.send_catch_log(signals.request_left_downloader, request=request, spider=self._crawler.spider)
        underway.received = len(response.body)
        address = literal(urlsplit(request.url).hostname or "")
        reaches = {self.reach(address)} if address is not None else {self.reach(address) for address in resolver.answered}
        underway.reach = Reach.PUBLIC if Reach.PUBLIC in reaches else led_from
        return response


def decoded(body: bytes, content_encoding: bytes) -> tuple[bytes, bool]:
    """The content, and whether there is more than MAX_BYTES of it. Nothing was asked for but the plain octets ("identity")."""
    if content_encoding in (b"", b"identity"):
        return body, False
    if content_encoding not in (b"gzip", b"x-gzip", b"deflate"):
        raise TransferError(f"Content-Encoding {printable(content_encoding)}, which was not asked for")
    cut = len(body) > MAX_BYTES
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first octets say
    try:
        content = decoder.decompress(body, MAX_BYTES + 1)
    except zlib.error as error:
        raise TransferError(f"compressed content that cannot be decoded: {error}") from None
    more = cut or len(content) > MAX_BYTES
    if not more and (decoder.unused_data or not decoder.eof):
        raise TransferError("compressed content that breaks off or goes on after its end")
    return content, more


def _content_encoding(response: Response) -> bytes:
    return b",".join(response.headers.getlist("Content-Encoding")).strip().lower()


# What libraries wrap around the words that say what happened.
_WRAPPING = re.compile(r"<twisted\.python\.failure\.Failure [\w.]*\.|ssl:<[^>]*> |[<>\[\]]")


def _described(error: Exception) -> str:
    """One printable line."""
    words = _WRAPPING.sub("", " ".join(str(error).split()))
    return printable(words.encode("utf-8", "replace")) or type(error).__name__
