"""Refuses what the policies refuse, whoever asks: the spider, a redirect, a retry, a media pipeline."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

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
    """The last word on every request: position 100, before anything can answer or change it.

    A request that our scheduler handed out was decided on there. Any other is decided on here, and waits here until it may go
    out."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = Crawl.of(crawler)
        self._access = self._crawl.access
        self._pace = self._crawl.pace
        self._slots = Slots(crawler, self._pace)
        self._backlog = Backlog(crawler)
        self._stopped: WeakKeyDictionary[Request, Decision] = (
            WeakKeyDictionary()
        )  # whose responses came without their bodies
        if self._access.skips_unusable:
            crawler.signals.connect(self._headers_received, signals.headers_received)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)

    def _spider_opened(self) -> None:
        """Our own scheduler hands out what may go out, and nothing waits here for long."""
        if self._crawl.scheduler is None:
            self._backlog.bind()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request) -> Request | None:
        self._stopped.pop(request, None)  # of a 429 or 503, after which it is asked again as it is
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
        """The decision about a request that our scheduler did not hand out as it is, once it may go out."""
        referrals = self._crawl.referrals
        referrals.make(request, is_awaited=True)
        referrals.handle(request)
        self._pace.free_limiters(
            request
        )  # or it would wait for itself, where another middleware made a new request of it
        try:
            with lent_place(self._crawler), self._occupy_slot(request):
                return await self._crawl.gate.wait(request, referrals.referrer_reach(request))
        except ClosingError:
            is_running = engine_of(self._crawler) is not None  # in a test of this alone it is not
            raise IgnoreRequest(
                "the crawl is ending" if is_running else "no crawl is running to ask for policies"
            ) from None

    def _occupy_slot(self, request: Request) -> AbstractContextManager[None]:
        return self._slots.occupy(request) if request in self._backlog else nullcontext()

    def _headers_received(
        self, headers: Headers, body_length: int | None, request: Request
    ) -> None:
        """End the download where the header fields refuse every declared use: nothing could be done with the body.

        A redirect goes its way, and so does a response after which the request is made again."""
        if request.method == "HEAD" or body_length == 0 or "Location" in headers:
            return
        decision = self._access.refused_by_headers(request, headers)
        if decision is not None:
            request.meta["dont_cache"] = (
                True  # HttpCacheMiddleware would keep the response without its body
            )
            self._stopped[request] = decision
            raise StopDownload(fail=False)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Refuse, as a request is refused, what was stopped for its header fields, or would have been had it not come from a
        cache."""
        decision = self._stopped.pop(request, None)
        if decision is None:
            decision = self._access.refused_by_headers(request, response.headers)
        if decision is not None:
            self._access.record_stopped(request, decision)
            raise IgnoreRequest(str(decision))
        if self._access.outgoing(request) is None:
            return response
        if self._crawl.options.elements == "strip":
            response.request = request  # Scrapy says so later only
            try:
                response = await self._crawl.responses.stripped(request, response)
            except ClosingError:
                raise IgnoreRequest("the crawl is ending") from None
        register(response, self._crawl.responses)
        return response
