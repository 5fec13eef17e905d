"""The frontier of the crawl as a Scrapy scheduler: the requests that wait, and those that are out.

A request goes out when its policies are known and its host may be asked. docs/scheduler.md says how
this differs from Scrapy's own scheduler.

How it works. A request that the engine puts into the queue goes one of four ways:

    seen            The duplicate filter knows it, or a request for the same page (Clean-param): it
                    is dropped.
    refused         The policies are known and refuse it: it is handed out next, without a wait, and
                    the middleware refuses it.
    waiting         It is put into the host queue of its origin. With JOBDIR, that queue has only
                    its key in the journal. With COMITY_STATE it waits in the shared state until a
                    worker leases its host. Then it is put into the host queue at that worker.
    held            It was out already, and a middleware returned it (`hold`). It is put at the
                    front of its host queue.

The engine calls `next_request` whenever it has room, and when it is woken. A timer wakes it when
the first host queue is due. Fetched policies wake it too, and with COMITY_STATE a leased host.

The scheduler is made of two parts. The queues and their dates (waiting/): turns.py decides which
request is next, and policy_fetches.py fetches the policies that queues wait for. The book: book.py
has the requests that are out or stored, and writes.py marks them as done."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import NotConfigured
from scrapy.http import Request
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import load_object

from comity.bounded import Bounded
from comity.crawler.crawl import Crawl
from comity.crawler.frontier.book import Book
from comity.crawler.frontier.item_barrier import ItemBarrier
from comity.crawler.frontier.storages import (
    is_stored,
    make_dupefilter,
    open_storage,
    stop_if_unusable,
)
from comity.crawler.frontier.waiting.turns import MIN_WAIT, Turns
from comity.crawler.frontier.waiting.waiting_requests import WaitingRequests
from comity.crawler.frontier.waiting.wake_timer import WakeTimer
from comity.crawler.frontier.writes import Writes
from comity.crawler.scrapy_internals import WAKE
from comity.gate.http import Request as AnyRequest
from comity.gate.options import stop
from comity.policies import PolicyError, Verdict
from comity.policies.syntax.urls import origin_or_empty

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

# Key of request.meta: the request comes from `start()`, and was put into the shared queue.
STARTED = "comity_started"
MAX_MOVES = 1_000  # the maximum number of redirects to the same page that are remembered


class Scheduler(BaseScheduler):
    """Scrapy's scheduler interface, and `hold` for the downloader middleware."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if crawler.crawling and not is_asyncio_available():
            raise NotConfigured(
                "comity needs an asyncio loop: set TWISTED_REACTOR to"
                " twisted.internet.asyncioreactor.AsyncioSelectorReactor"
            )
        return cls(crawler)

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._crawl = crawl = Crawl.of(crawler)
        crawl.scheduler = self
        # True if this class is the crawl's scheduler: then `enqueue_request` runs in the context
        # that makes the request. A scheduler that wraps this one may call it in another context.
        self._makes = load_object(crawler.settings["SCHEDULER"]) is Scheduler
        if self._makes:
            # `enqueue_request` calls `make` itself: it is faster than a signal.
            crawler.signals.disconnect(crawl.referrals.make, signals.request_scheduled)
        self._dupefilter = make_dupefilter(crawler, is_stored=is_stored(crawler))
        options = crawl.options
        barrier = ItemBarrier(crawler, crawl.flushes, options.part_seconds, options.part_octets)
        with stop_if_unusable(crawler):
            storage = open_storage(crawler, self._dupefilter)
            self._book = Book(crawler, self._dupefilter, storage)
            self._waiting = WaitingRequests(crawler, self._book)
            self._turns = Turns(crawl, self._waiting, self._book)
            if storage is not None:
                storage.begin(self._waiting)
        self._writes = (
            Writes(crawl, barrier, self._book, storage, self) if storage is not None else None
        )
        self._timer = WakeTimer(crawler)
        # `redirect_urls` of the redirects to the same page.
        self._moves: Bounded[tuple[str, ...], None] = Bounded(MAX_MOVES)

    def open(self, spider: Spider) -> Deferred[None] | None:
        self._spider = spider
        if self._writes is None:
            return self._dupefilter.open()
        opening = self._writes.open(spider)
        if opening is not None:
            return deferred_from_coro(self._open(opening, self._writes))
        if waiting := self._waiting.number:
            logger.info(
                "JOBDIR: the crawl goes on with %(left)d requests that wait", {"left": waiting}
            )
        self._writes.write()
        return self._dupefilter.open()

    async def _open(self, opening: Awaitable[None], writes: Writes) -> None:
        try:
            await opening
        except PolicyError as error:
            stop(str(error))
        writes.write()
        opened: Any = self._dupefilter.open()
        if opened is not None:
            await maybe_deferred_to_future(opened)

    @property
    def goes_on(self) -> bool:
        return self._book.storage is not None and self._book.storage.has_begun

    @property
    def run(self) -> int:
        return 1 if self._book.storage is None else self._book.storage.run

    def __len__(self) -> int:
        return self._waiting.number + len(self._turns.refused) + len(self._book.held)

    def has_pending_requests(self) -> bool:
        if self._book.held:
            self._book.forget_stopped()
        is_left = bool(self._waiting.queues or self._turns.refused or self._book.held)
        return is_left or not (self._book.storage is None or self._book.storage.is_finished)

    def enqueue_request(self, request: Request) -> bool:
        """Take a request on one of the four ways of the module's docstring. False: it was seen."""
        if request is WAKE:
            return True
        if self._makes:
            self._crawl.referrals.make(request)
        origin = origin_or_empty(request.url)
        book = self._book
        if book.held and (entry := book.take_back(request)) is not None:
            self._turns.put_back(entry, origin)
            return True
        is_start = book.is_shared and _is_start_of_all(request)
        if is_start:
            request.meta[STARTED] = True
        is_filtered = is_start or not (request.dont_filter or self._is_moved(request, origin))
        page = self._page_of(request, origin) if is_filtered and "?" in request.url else request
        entry = book.enter(request, origin, page, is_filtered=is_filtered)
        if entry is None:
            self._dupefilter.log(request, self._spider)
            if page is not request:
                self._stats.inc_value("comity/scheduler/cleaned")
            return False
        if entry.key is None or not book.is_shared:  # else it arrives once its host is leased
            self._turns.add(entry, origin)
        return True

    def _page_of(self, request: Request, origin: str) -> Request:
        """Return the request for the same page without the parameters that make no other page.

        The duplicate filter compares it. The request itself is returned if its site names no such
        parameter, or refuses the request: then a permitted link to the page must not be dropped as
        a duplicate of the refused one."""
        crawl = self._crawl
        if not crawl.options.clean_param or request.method not in ("GET", "HEAD"):
            return request
        policies = crawl.policies.cached(origin) if origin else None
        url = request.url if policies is None else policies.site.clean(request.url)
        if url == request.url:
            return request
        if crawl.access.decide(policies, request, waits=True).verdict is Verdict.DENY:
            return request
        # Not `replace`: the class of a request may have other arguments.
        others = {name: getattr(request, name) for name in Request.attributes if name != "url"}
        return Request(url, **others)

    def _is_moved(self, request: Request, origin: str) -> bool:
        """Return True for a redirect from another URL of the same page.

        The page was not fetched yet, although it is seen. Each redirect counts once: a spider may
        copy its meta to any number of links."""
        before = request.meta.get("redirect_urls")
        if not (before and origin and self._crawl.options.clean_param):
            return False
        urls = tuple(url.partition("#")[0] for url in before)
        if urls in self._moves:
            return False
        policies = self._crawl.policies.cached(origin)
        url = request.url.partition("#")[0]
        if policies is None or url in urls:
            return False
        clean = policies.site.clean
        if clean(url) not in map(clean, urls):
            return False
        self._moves[urls] = None
        return True

    def next_request(self) -> Request | None:
        request = self._turns.next()
        if request is None:
            self._waiting.fetches.start()
            self._timer.set(self._waiting.queues.next_due())
            self._book.counts.write()
        self._crawl.referrals.handle(request)
        return request

    def hold(self, request: AnyRequest, wait: float) -> bool:
        """Take back a request that a middleware returns. It goes out again in `wait` seconds.

        `process_request` or `process_response` of the middleware returns the request that it got.
        The request stays unchanged. All requests in its host queue wait for this time.

        Return False if the scheduler did not hand out the request. If the middleware returned that
        request, the engine would ask for it again without a pause."""
        pace = self._crawl.pace
        if not (pace.was_handed_out(request) and isinstance(request, Request)):
            return False
        pace.free_limiters(request)
        self._book.hold(request, monotonic() + max(wait, MIN_WAIT))
        return True

    def close(self, reason: str) -> Deferred[None] | None:
        return deferred_from_coro(self._close(reason))

    async def _close(self, reason: str) -> None:
        self._timer.set(None)
        self._book.counts.write()
        await self._waiting.fetches.close()
        self._tell_waiting(reason)
        if self._writes is not None:
            await self._writes.close()
        closed: Any = self._dupefilter.close(reason)
        if closed is not None:
            await maybe_deferred_to_future(closed)

    def _tell_waiting(self, reason: str) -> None:
        """Warn of the requests that still wait, and of those that were set aside."""
        storage = self._book.storage
        aside = self._waiting.queues.aside()
        number_aside = sum(map(len, aside))
        if aside:
            self._stats.set_value("comity/scheduler/set-aside", number_aside)
        for queue in aside:
            logger.warning(
                "%(number)d requests to %(origin)s were set aside: %(why)s, at most %(most)g s"
                " (COMITY_MAX_DELAY); %(kept)s",
                {
                    "number": len(queue),
                    "origin": queue.origin,
                    "why": queue.aside,
                    "most": self._crawl.options.max_delay,
                    "kept": f"{storage.setting} keeps them"
                    if storage is not None
                    else "set JOBDIR to keep such requests",
                },
            )
        if left := len(self) - number_aside:
            self._stats.set_value("comity/scheduler/left", left)
            logger.warning(
                "%(left)d requests were still waiting when the crawl ended (%(reason)s)%(kept)s",
                {
                    "left": left,
                    "reason": reason,
                    "kept": f"; {storage.setting} keeps them" if storage is not None else "",
                },
            )


def _is_start_of_all(request: Request) -> bool:
    """Return True for a start request that was not enqueued before.

    All workers of a shared crawl make the start requests, so these are filtered in spite of
    `dont_filter`. A retry or redirect of a start request has a copy of its meta, with STARTED. It
    is not filtered for that reason."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get(STARTED)
