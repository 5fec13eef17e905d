"""A host that answers 429 or 503 is asked too often: it waits, not the one URL (RFC 9110 section-10.2.3, RFC 6585 section-4)."""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from scrapy.http import Request, Response

from comity.crawler.freshness import retry_after
from comity.crawler.runtime import Runtime

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

TOO_MANY = (429, 503)


class RateMiddleware:
    """Downloader middleware at 560: it sees the answer before RetryMiddleware (550), which would ask again at once."""

    def __init__(self, crawler: Crawler) -> None:
        self._runtime = Runtime.of(crawler)
        assert crawler.stats is not None
        self._stats = crawler.stats
        settings = crawler.settings
        self._most = settings.getint("RETRY_TIMES") if settings.getbool("RETRY_ENABLED") else 0
        self._held: WeakKeyDictionary[Request, int] = WeakKeyDictionary()  # -> how often

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if response.status not in TOO_MANY or self._runtime.policies.owns(request):
            return response
        headers = ((b"retry-after", value) for value in response.headers.getlist("Retry-After"))
        wait = self._runtime.pace.penalize(request.url, retry_after(headers, time()))
        self._stats.inc_value(f"comity/pace/{response.status}")
        logger.info(
            "HTTP status %(status)d from %(url)s: its host is asked again in %(wait).0f s",
            {"status": response.status, "url": request.url, "wait": wait},
        )
        held = self._held.get(request, 0)
        scheduler = self._runtime.scheduler
        if request.meta.get("dont_retry") or held >= self._most or scheduler is None or not scheduler.hold(request, wait):
            return response  # for whoever retries, or takes it as it is; what comes after it waits
        self._held[request] = held + 1
        return request
