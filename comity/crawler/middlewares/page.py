"""Between spider and engine: drops links that may not be followed, and notes the page of items."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl
from comity.crawler.elements import register
from comity.gate.run.flights import ClosingError
from comity.policies import Page
from comity.policies.document.nofollow import canonical

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class PageMiddleware:
    """Spider middleware at 10, behind all others, so it sees the items that the pipelines see."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawl = Crawl.of(crawler)
        assert crawler.stats is not None
        self._stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_spider_input(self, response: Response) -> None:
        self._crawl.referrals.handle(response.request)
        register(response, self._crawl.responses)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Pass items on, with a note of their page, and the requests that the page may lead to."""
        try:
            page = await self._crawl.responses.page(response)
        except ClosingError:  # the policies are not known any more
            page, may_follow = None, False
        else:
            may_follow = page is None or page.is_followed
        marked = self._crawl.responses.rel_nofollow(response) if may_follow else frozenset()
        is_completed = False
        async for output in result:
            if isinstance(output, Request):
                if not may_follow:
                    self._stats.inc_value("comity/links/not-followed")
                elif marked and canonical(output.url) in marked:
                    self._stats.inc_value("comity/links/rel-nofollow")
                else:
                    yield output
                continue
            # None goes to no pipeline.
            if output is not None and self._crawl.item_pages.has_pipeline:
                if not is_completed and page is not None:
                    page = await self._complete(response, page)
                    is_completed = True
                self._crawl.item_pages.put(output, page)
            yield output

    async def _complete(self, response: Response, page: Page) -> Page | None:
        try:
            return await self._crawl.responses.completed(response, page)
        except ClosingError:
            return None
