"""A bound for requests that another scheduler hands out faster than hosts may be asked.

Such requests wait in the middleware. The rest stays in the queue of that scheduler, where other
processes can take them, and where a kill does not lose them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy.http import Request
from scrapy.settings import BaseSettings

from comity.crawler.scrapy_internals import in_downloader, scheduler_of, wake

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

DEFAULT_MOST = 16  # requests, if CONCURRENT_REQUESTS is 0, which means no limit


def most_waiting(settings: BaseSettings) -> int:
    """Return the number of requests that a crawl has at a time."""
    return max(0, settings.getint("CONCURRENT_REQUESTS")) or DEFAULT_MOST


class Backlog:
    """The requests between the project's scheduler, which handed them out, and our middleware."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._most = most_waiting(crawler.settings)
        self._handed_out: set[Request] = set()
        self._next_of_scheduler: Callable[[], Request | None] | None = None

    def bind(self) -> None:
        """From now on, ask the scheduler for no request while CONCURRENT_REQUESTS of them wait."""
        scheduler = scheduler_of(self._crawler)
        if scheduler is not None and self._next_of_scheduler is None:
            self._next_of_scheduler = scheduler.next_request
            scheduler.next_request = self._next  # type: ignore[method-assign]

    def _next(self) -> Request | None:
        assert self._next_of_scheduler
        if len(self._handed_out) >= self._most:
            # Other middlewares may have answered or refused a request before it came to ours.
            active = in_downloader(self._crawler)
            self._handed_out = {request for request in self._handed_out if request in active}
            if len(self._handed_out) >= self._most:
                return None
        request = self._next_of_scheduler()
        if request is not None:
            self._handed_out.add(request)
        return request

    @contextmanager
    def passing(self, request: Request) -> Iterator[None]:
        """Hold the request while our middleware has it. Then it is no longer in the backlog."""
        try:
            yield
        finally:
            if request in self._handed_out:
                self._handed_out.remove(request)
                wake(self._crawler)

    def __contains__(self, request: Request) -> bool:
        return request in self._handed_out
