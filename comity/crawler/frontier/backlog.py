"""A bound for what another scheduler hands out faster than hosts may be asked, and which waits in the middleware: the rest stays
in the queue of that scheduler, where other processes can have it, and where a kill does not lose it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy.http import Request
from scrapy.settings import BaseSettings

from comity.crawler.scrapy_internals import in_downloader, scheduler_of, wake

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

DEFAULT_MOST = 16  # requests, where CONCURRENT_REQUESTS is 0: no limit


def most_waiting(settings: BaseSettings) -> int:
    """The number of requests that a crawl has at a time."""
    return max(0, settings.getint("CONCURRENT_REQUESTS")) or DEFAULT_MOST


class Backlog:
    """The requests that the scheduler of the project has handed out and that have not come through our middleware yet."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._most = most_waiting(crawler.settings)
        self._handed_out: set[Request] = set()
        self._next_of_scheduler: Callable[[], Request | None] | None = None

    def bind(self) -> None:
        """Ask the scheduler for no more requests, from now on, while as many wait as a crawl has at a time."""
        scheduler = scheduler_of(self._crawler)
        if scheduler is not None and self._next_of_scheduler is None:
            self._next_of_scheduler = scheduler.next_request
            scheduler.next_request = self._next  # type: ignore[method-assign]

    def _next(self) -> Request | None:
        assert self._next_of_scheduler
        if len(self._handed_out) >= self._most:
            active = in_downloader(
                self._crawler
            )  # others may have answered or refused a request before it came to us
            self._handed_out = {request for request in self._handed_out if request in active}
            if len(self._handed_out) >= self._most:
                return None
        request = self._next_of_scheduler()
        if request is not None:
            self._handed_out.add(request)
        return request

    @contextmanager
    def passing(self, request: Request) -> Iterator[None]:
        """While our middleware has the request."""
        try:
            yield
        finally:
            if request in self._handed_out:
                self._handed_out.remove(request)
                wake(self._crawler)

    def __contains__(self, request: Request) -> bool:
        return request in self._handed_out
