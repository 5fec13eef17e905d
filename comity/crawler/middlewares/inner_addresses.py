"""Stops answers from servers to which the referring site may not link (SEC-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl
from comity.gate.request.access import inner_address

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class AddressMiddleware:
    """Downloader middleware at 950, so that it sees a response before caches and other middlewares.

    Scrapy's downloader resolves a host name again after comity has. The response contains the
    address that it then connected to."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawl = Crawl.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    # Scrapy awaits every result. Awaiting a plain value costs it five calls more.
    async def process_response(self, request: Request, response: Response) -> Response:
        self._check(request, response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        response = getattr(exception, "response", None)  # StopDownload has one, for the errback
        if isinstance(response, Response):
            self._check(request, response)

    def _check(self, request: Request, response: Response) -> None:
        refused = self._crawl.referrals.check_response(request, response)
        if refused is not None:
            referrer_reach, reach = refused
            decision = inner_address(
                request.url, referrer_reach, f"the answer came from a {reach.value} address"
            )
            self._crawl.access.record_stopped(request, decision)
            raise IgnoreRequest(str(decision))
