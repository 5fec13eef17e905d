"""Makes a host wait after it answers 429 or 503, instead of one URL.

Such a host was asked too often (RFC 9110 section-10.2.3, RFC 6585 section-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from weakref import ref

from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl
from comity.gate.fetching.freshness import TOO_MANY
from comity.gate.http import fields_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class RateMiddleware:
    """Downloader middleware at 560, before RetryMiddleware (550), which would retry at once."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawl = Crawl.of(crawler)
        self._crawl.pauses_hosts = True
        self._retries = crawler.settings.getbool("RETRY_ENABLED")
        self._retry_times = crawler.settings.getint("RETRY_TIMES")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    # Scrapy awaits every result. Awaiting a plain value costs it five calls more.
    async def process_response(self, request: Request, response: Response) -> Request | Response:
        if response.status not in TOO_MANY or "cached" in response.flags:
            return response
        passage = self._crawl.passages[ref(request)]
        wait, passage.pause = passage.pause, None
        if wait is None:
            wait = self._crawl.back_off(request.url, response.status, fields_of(response.headers))
        if wait is None or not self._may_retry(request) or not self._crawl.hold(request, wait):
            # Another middleware or the spider handles it. Later requests to the host wait.
            return response
        request.meta["retry_times"] = request.meta.get("retry_times", 0) + 1
        return request

    def _may_retry(self, request: Request) -> bool:
        """Return True if the meta keys of RetryMiddleware permit another try.

        RetryMiddleware counts on from here, so both give up at the same number of tries."""
        if not self._retries or request.meta.get("dont_retry"):
            return False
        most: int | None = request.meta.get("max_retry_times")
        return bool(
            request.meta.get("retry_times", 0) < (self._retry_times if most is None else most)
        )
