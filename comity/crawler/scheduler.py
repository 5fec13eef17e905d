"""The queue of the crawl: requests wait in lanes by origin, and go out when the policies are known and the host may be asked.

docs/scheduler.md says how it differs from Scrapy's own."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Self

from scrapy.core.scheduler import BaseScheduler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.exceptions import NotConfigured
from scrapy.http import Request
from scrapy.utils.asyncio import CallLaterResult, call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object

from comity.crawler.engine import WAKE, closing, wake
from comity.crawler.fetcher import ClosingError, Policies
from comity.crawler.lanes import Lane, Lanes
from comity.crawler.pace import Host, asked_delay
from comity.crawler.runtime import Runtime
from comity.policies import Decision, Verdict
from comity.policies.urls import origin_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

MIN_WAIT = 0.1  # seconds; what is put off comes back no sooner, or it would spin
REAP = 0.1  # seconds between two looks for requests that left the downloader unnoticed, while others go out


class Scheduler(BaseScheduler):
    """Scrapy's scheduler interface, and `hold` for the downloader middleware."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not is_asyncio_available():
            raise NotConfigured(
                "comity needs an asyncio loop: set TWISTED_REACTOR to twisted.internet.asyncioreactor.AsyncioSelectorReactor"
            )
        return cls(crawler)

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._runtime = Runtime.of(crawler)
        self._runtime.scheduler = self
        self._pace = self._runtime.pace
        self._pace.freed = self._unpark
        self._dupefilter = _dupefilter(crawler)
        self._max_delay = self._runtime.options.max_delay
        self._retry_times = settings.getint("RETRY_TIMES") if settings.getbool("RETRY_ENABLED") else 0
        self._lanes = Lanes()
        self._refused: deque[tuple[Request, Decision]] = deque()  # known to be refused: they wait for nothing
        self._held: dict[Request, float] = {}  # on its way back through the engine -> when it may go out
        self._failures: dict[str, int] = {}  # origin -> how often in a row its policies could not be had
        self._wanted: deque[Lane] = deque()
        self._fetches: set[asyncio.Task[None]] = set()
        self._most_fetches = max(1, settings.getint("CONCURRENT_REQUESTS"))
        self._timer: CallLaterResult | None = None
        self._timer_due = float("inf")
        self._reap_at = 0.0
        self._handed_out = 0  # not counted yet

    def open(self, spider: Spider) -> Deferred[None] | None:
        self._spider = spider
        return self._dupefilter.open()

    def close(self, reason: str) -> Deferred[None] | None:
        return deferred_from_coro(self._close(reason))

    async def _close(self, reason: str) -> None:
        self._set_timer(None)
        self._count()
        self._wanted.clear()
        for task in self._fetches:
            task.cancel()
        await asyncio.gather(*self._fetches, return_exceptions=True)
        if left := len(self):
            self._stats.set_value("comity/scheduler/left", left)
            logger.warning(
                "%(left)d requests were still waiting when the crawl ended (%(reason)s)", {"left": left, "reason": reason}
            )
        closed: Any = self._dupefilter.close(reason)
        if closed is not None:
            await maybe_deferred_to_future(closed)

    def __len__(self) -> int:
        return len(self._lanes) + len(self._refused) + len(self._held)

    def has_pending_requests(self) -> bool:
        return bool(self._lanes or self._refused or self._held)

    def enqueue_request(self, request: Request) -> bool:
        if request is WAKE:
            return True
        due = self._held.pop(request, None)
        if due is None:
            if not request.dont_filter and self._dupefilter.request_seen(request):
                self._dupefilter.log(request, self._spider)
                return False
            self._stats.inc_value("scheduler/enqueued")
            self._stats.inc_value("scheduler/enqueued/memory")
        try:
            origin = origin_of(request.url)
        except ValueError:
            origin = ""
        refusal = self._refusal(origin, request) if due is None else None
        if refusal is not None:
            self._refused.append((request, refusal))
            return True
        lane = self._lanes.get(origin)
        if lane is None:
            lane = self._new_lane(origin)
        if due is None:
            lane.push(request)
        else:
            lane.push_back(request)
            lane.not_before = due
            if lane.turn:
                self._lanes.date(lane, due)
        return True

    def _refusal(self, origin: str, request: Request) -> Decision | None:
        """The refusal, where it is known before the request has had its turn."""
        policies = self._runtime.policies.known(origin) if origin else None
        if policies is None or policies.unreachable:  # that may be over when its turn comes
            return None
        decision = self._runtime.judge(policies.site, request.url)
        return decision if decision.verdict is Verdict.DENY else None

    def hold(self, request: Request, not_before: datetime) -> bool:
        """The middleware returns the request, that it was handed, instead of letting it through: it goes out again, as it is,
        at that time, and its whole origin waits.

        False where the request was not handed out from here: to return it would make the engine spin."""
        if not self._pace.was_handed_out(request):
            return False
        self._pace.release(request)
        wait = (not_before - datetime.now(UTC)).total_seconds()
        self._held[request] = monotonic() + max(wait, MIN_WAIT)
        self._handed_out -= 1
        self._stats.inc_value("comity/scheduler/held")
        return True

    def next_request(self) -> Request | None:
        now = monotonic()
        if now >= self._reap_at:
            self._reap_at = now + REAP
            self._pace.reap()
        request = self._next(now)
        if request is None and self._pace.reap():
            request = self._next(now)
        if request is None:
            self._set_timer(self._lanes.next_due())
            self._count()
        else:
            self._handed_out += 1
        return request

    def _count(self) -> None:
        """A statistic costs as much as the rest of a hand-out, so they are written where there is time."""
        if self._handed_out:
            self._stats.inc_value("scheduler/dequeued", self._handed_out)
            self._stats.inc_value("scheduler/dequeued/memory", self._handed_out)
            self._handed_out = 0

    def _next(self, now: float) -> Request | None:
        if self._refused:
            refused, refusal = self._refused.popleft()
            self._pace.book(refused, refusal, None, None, handed_out=True)
            return refused
        while (lane := self._lanes.next(now)) is not None:
            if (request := self._from_lane(lane, now)) is not None:
                return request
        return None

    def _from_lane(self, lane: Lane, now: float) -> Request | None:
        """The first request of a lane that is due; None where it waits on, for whatever will date it again."""
        request = lane.peek()
        if lane.host is None:
            return self._hand_out(lane, request, now, self._runtime.judge(None, request.url))
        policies = self._runtime.policies.known(lane.origin) or lane.fetched
        if policies is None:
            self._want_policies(lane)
            return None
        if policies.unreachable and self._asks_again(lane, policies, now):
            return None
        delay = asked_delay(policies.site, self._runtime.agent)
        decision = self._runtime.judge(policies.site, request.url, delay)
        if decision.verdict is Verdict.DENY:
            return self._hand_out(lane, request, now, decision)  # the middleware refuses it; it costs the host nothing
        if decision.not_before is not None:
            wait = (decision.not_before - datetime.now(UTC)).total_seconds()
            self._lanes.date(lane, now + max(wait, MIN_WAIT))
            return None
        host = lane.host
        host.states(lane.origin, delay)
        if host.full or host.awaited:
            host.parked.append(lane)
            return None
        if host.free_at > now:
            self._lanes.date(lane, host.free_at)
            return None
        return self._hand_out(lane, request, now, decision, policies, host)

    def _hand_out(
        self,
        lane: Lane,
        request: Request,
        now: float,
        decision: Decision,
        policies: Policies | None = None,
        host: Host | None = None,
    ) -> Request:
        lane.pop()
        lane.fetched = None
        if lane:
            self._lanes.date(lane, now)
        else:
            self._drop(lane)
        self._pace.book(request, decision, policies.site if policies else None, host, handed_out=True)
        return request

    def _new_lane(self, origin: str) -> Lane:
        host = self._pace.host(origin) if origin else None
        lane = Lane(origin, host)
        if host is not None:
            host.lanes += 1
        self._lanes.add(lane)
        if host is None or self._runtime.policies.known(origin):
            self._lanes.date(lane, monotonic())
        else:
            self._want_policies(lane)
        return lane

    def _drop(self, lane: Lane) -> None:
        if lane.host is not None:
            lane.host.lanes -= 1
        self._lanes.drop(lane)

    def _unpark(self, host: Host) -> None:
        for lane in host.parked:
            self._lanes.date(lane, host.free_at)
        host.parked.clear()

    def _asks_again(self, lane: Lane, policies: Policies, now: float) -> bool:
        """Whether the lane waits for a host whose robots.txt cannot be had, instead of giving its requests up."""
        wait = policies.fresh_until - time()
        if self._failures.get(lane.origin, 0) > self._retry_times or wait > self._max_delay:
            return False
        lane.fetched = None
        self._lanes.date(lane, now + max(wait, MIN_WAIT))
        return True

    def _want_policies(self, lane: Lane) -> None:
        self._wanted.append(lane)
        self._start_fetches()

    def _start_fetches(self) -> None:
        while self._wanted and len(self._fetches) < self._most_fetches and not closing(self._crawler):
            task = asyncio.create_task(self._fetch(self._wanted.popleft()))
            self._fetches.add(task)
            task.add_done_callback(self._fetches.discard)

    async def _fetch(self, lane: Lane) -> None:
        try:
            policies = await self._runtime.policies.get(lane.origin)
        except ClosingError:
            return
        if policies.unreachable:
            self._failures[lane.origin] = self._failures.get(lane.origin, 0) + 1
        else:
            self._failures.pop(lane.origin, None)
        lane.fetched = policies
        self._lanes.date(lane, monotonic())
        asyncio.get_running_loop().call_soon(self._start_fetches)
        wake(self._crawler)

    def _set_timer(self, due: float | None) -> None:
        """Wakes the engine when the next lane is due; None: nothing to wait for."""
        if self._timer is not None:
            if due == self._timer_due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer_due = due
            self._timer = call_later(max(0.0, due - monotonic()), self._wake)

    def _wake(self) -> None:
        self._timer = None
        wake(self._crawler)


def _dupefilter(crawler: Crawler) -> BaseDupeFilter:
    dupefilter_class = load_object(crawler.settings["DUPEFILTER_CLASS"])
    if job_dir(crawler.settings):
        logger.warning("JOBDIR: comity does not keep the queue on disk yet. A crawl that is started again begins anew.")
        if dupefilter_class is RFPDupeFilter:  # with a file, it would filter the requests that were lost
            debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
            return RFPDupeFilter(None, debug, fingerprinter=crawler.request_fingerprinter)
    dupefilter: BaseDupeFilter = build_from_crawler(dupefilter_class, crawler)
    return dupefilter
