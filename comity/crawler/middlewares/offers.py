"""Refuses responses that ask for payment or for a licence: status 402, and 401 of RSL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl
from comity.gate.http import fields_of
from comity.policies.document.offer import ASKING, offer_in

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class OfferMiddleware:
    """Downloader middleware at 570, before RetryMiddleware (550): an offer is no failure.

    HttpCompressionMiddleware (590) has decoded the body, which may have the terms."""

    def __init__(self, crawler: Crawler) -> None:
        self._access = Crawl.of(crawler).access

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    # Scrapy awaits every result. Awaiting a plain value costs it five calls more.
    async def process_response(self, request: Request, response: Response) -> Response:
        if response.status not in ASKING:
            return response
        offer = offer_in(
            response.status, fields_of(response.headers), response.body, url=response.url
        )
        if offer is None:
            return response
        raise IgnoreRequest(str(self._access.refuse_for_offer(request, offer)))
