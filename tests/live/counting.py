"""A spider for processes of their own: it counts the pages of each host in its state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.http import Request, Response, TextResponse


class Counting(Spider):
    """Follows every link. Yields the state at the start, and the pages of the host up to now."""

    name = "counting"
    urls: str
    state: dict[str, Any]

    async def start(self) -> AsyncIterator[Any]:
        yield {"start": repr(self.state)}
        self.state["settings"] = ("a", b"\0", {"last": self.urls})
        for url in self.urls.split():
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        host = urlsplit(response.url).hostname
        self.state.setdefault(f"pages of {host}", []).append(response.url)
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)
