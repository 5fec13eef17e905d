"""Refuses requests by the policies, of any source: a spider, redirect, retry or media pipeline."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Self
from weakref import ref

from scrapy import signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Headers, Request, Response

from comity.crawler.crawl import Crawl
from comity.crawler.elements import register
from comity.crawler.frontier.backlog import Backlog
from comity.crawler.scrapy_internals import engine_of, lent_place
from comity.crawler.slots import Slots
from comity.gate.run.flights import ClosingError
from comity.policies import Decision, Verdict

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class AccessMiddleware:
    """Downloader middleware at 100, so that no other can answer or change a request before.

    The scheduler has decided on the requests that it handed out. All other requests are decided on
    here, and wait here until they may go out."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = Crawl.of(crawler)
        self._passages = self._crawl.passages
        self._access = self._crawl.access
        self._pace = self._crawl.pace
        self._slots = Slots(crawler, self._pace)
        self._backlog = Backlog(crawler)
        if self._access.skips_unusable:
            crawler.signals.connect(self._headers_received, signals.headers_received)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)

    def _spider_opened(self) -> None:
        """Bound the backlog, unless comity's scheduler is in use: then requests wait there."""
        if self._crawl.scheduler is None:
            self._backlog.bind()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request) -> Request | None:
        # After a 429 or 503 the request is made again as it is.
        self._passages[ref(request)].stopped = None
        # A middleware before this one may have changed what was handed out.
        decision = self._access.decide_again(request) if self._pace.claim(request) else None
        if decision is None:
            with self._backlog.passing(request):
                decision = await self._wait(request)
        if decision.verdict is not Verdict.DEFER:
            self._access.record(request, decision)
        if decision.verdict is Verdict.DEFER:
            return request  # held by the scheduler
        if decision.verdict is Verdict.DENY:
            raise IgnoreRequest(str(decision))
        if self._access.admit(request):
            self._slots.free(request)
        return None

    async def _wait(self, request: Request) -> Decision:
        """Return the decision about a request once it may go out.

        comity's scheduler did not hand it out, or it was changed since."""
        referrals = self._crawl.referrals
        referrals.make(request, is_awaited=True)
        referrals.handle(request)
        # If another middleware made a new request of it, it would wait for itself.
        self._pace.free_limiters(request)
        try:
            with lent_place(self._crawler), self._occupy_slot(request):
                return await self._crawl.gate.wait(request, referrals.referrer_reach(request))
        except ClosingError:
            is_running = engine_of(self._crawler) is not None  # False in a test of this class alone
            raise IgnoreRequest(
                "the crawl is ending" if is_running else "no crawl is running to ask for policies"
            ) from None

    def _occupy_slot(self, request: Request) -> AbstractContextManager[None]:
        return self._slots.occupy(request) if request in self._backlog else nullcontext()

    def _headers_received(
        self, headers: Headers, body_length: int | None, request: Request
    ) -> None:
        """End the download if the header fields refuse every declared use of the body.

        Redirects, and responses after which the request is made again, are not stopped."""
        if request.method == "HEAD" or body_length == 0 or "Location" in headers:
            return
        decision = self._access.refused_by_headers(request, headers)
        if decision is not None:
            # HttpCacheMiddleware would keep the response without its body.
            request.meta["dont_cache"] = True
            self._passages[ref(request)].stopped = decision
            raise StopDownload(fail=False)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Refuse the response if it was stopped for its header fields.

        A response from a cache is refused if its header fields would have stopped it."""
        passage = self._passages[ref(request)]
        decision, passage.stopped = passage.stopped, None
        if decision is None:
            decision = self._access.refused_by_headers(request, response.headers)
        if decision is not None:
            self._access.record_stopped(request, decision)
            raise IgnoreRequest(str(decision))
        if passage.outgoing_to(request.url) is None:
            return response
        if self._crawl.options.elements == "strip":
            response.request = request  # Scrapy sets it later only
            try:
                response = await self._crawl.responses.stripped(request, response)
            except ClosingError:
                raise IgnoreRequest("the crawl is ending") from None
        register(response, self._crawl.responses)
        return response
