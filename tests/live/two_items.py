"""Spiders for processes of their own: two items a page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Spider
from scrapy.http import Request, Response, TextResponse

ITEMS = 2  # of a page


class TwoItems(Spider):
    """Yields the items of each page and follows its links."""

    name = "two_items"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        for number in range(ITEMS):
            yield {"url": response.url, "number": number, "text": response.css("p::text").get("")}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


class ForeignItems(Spider):
    """Yields items whose `url` is not that of their page, and one that came from no page."""

    name = "foreign_items"
    number = ITEMS

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.start_urls[0])
        if self.number:
            yield {"url": "of no page"}

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        for number in range(self.number):
            yield {"url": "https://example.com/", "page": response.url, "number": number}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)
