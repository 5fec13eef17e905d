"""The frontier of the crawl: requests wait in queues by origin and scope.

A request goes out when its policies are known and its host may be asked. docs/scheduler.md says how
this differs from Scrapy's own scheduler.

How it works. A request that the engine puts into the queue goes one of four ways:

    seen            The duplicate filter knows it: it is dropped.
    refused         The policies are known and refuse it: it is handed out next, without a wait, and
                    the middleware refuses it.
    waiting         It is put into the host queue of its origin. With JOBDIR, that queue has only
                    its key in the journal. With COMITY_STATE it waits in the shared state until a
                    worker leases its host. Then it is put into the host queue at that worker.
    held            It was out already, and a middleware returned it (`hold`). It is put at the
                    front of its host queue, unless it is stopped on its way.

A host queue (host_queues.py) is in one state at a time:

    wanted          Its policies are to be fetched, or are being fetched. `_fetch` dates the queue
                    when they are there.
    dated           It is due at some moment: now, when its host may be asked, when a Visit-time
                    begins, ...
    parked          It waits for the end of a request that occupies one of its limiters.
                    `Pace.freed` dates it.
    set aside       It is dated, but so late that the crawl does not wait for it.

The engine calls `next_request` whenever it has room, and when it is woken. A timer wakes it at the
moment when the first queue is due, and so does every step that dates a queue. `_from_queue` checks
the queue that is due longest: Are its policies fresh? Does `Access.decide` permit its first
request? Is that request in the scope of this queue? If not, it moves to another one. Does its pace
let it out? The first no decides for which event the queue waits. If all answers are yes, the
request is handed out, and the queue is due again at once.

The scheduler remembers a request that was handed out, as an object, until it leaves the engine.
Then the request is through. When its items are on the disk (item_barrier.py) it is done, and leaves
the journal. The requests found in its response are written before that or in the same transaction.
When a killed crawl is started again, it repeats the requests that were not done."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.exceptions import NotConfigured
from scrapy.http import Request
from scrapy.utils.asyncio import CallLaterResult, call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object

from comity.crawler.crawl import CANNOT_WRITE, ITEMS_LOST, Crawl
from comity.crawler.frontier.host_queues import HostQueue, HostQueues
from comity.crawler.frontier.item_barrier import ItemBarrier, ItemsLostError
from comity.crawler.frontier.journal import Journal
from comity.crawler.frontier.queue import Aside, Queue
from comity.crawler.frontier.scrapy_queues import take_over
from comity.crawler.scrapy_internals import WAKE, closing, in_progress, never_opened, wake
from comity.database import PATIENCE
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.files import ORIGINS_AT_ONCE
from comity.gate.http import Request as AnyRequest
from comity.gate.options import stop
from comity.gate.pace.limiter import Limiter, slowest, windows_for
from comity.gate.run.flights import ClosingError
from comity.policies import PolicyError, Verdict
from comity.policies.syntax.urls import host_name, origin_or_empty

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from comity.cluster.state import SharedState

logger = logging.getLogger(__name__)

# Key of request.meta: the request comes from `start()`, and was put into the shared queue.
STARTED = "comity_started"
FLUSH = 0.05  # seconds between two writes of the queue on disk
ASIDE = 600.0  # seconds until a host that was too slow is checked again
MIN_WAIT = 0.1  # seconds; postponed requests wait at least so long, or the engine would spin
REAP = 0.1  # seconds between two looks for requests that left the downloader without a signal
ROUNDING = 0.1  # seconds; a measured wait may be this much longer than the one that was set
FETCHES_AHEAD = 32  # with so many origins that wait for policies, no more are leased
MOVES = 64  # requests that move to the queue of their scope at a time; more would hold up others


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
        settings = crawler.settings
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._crawl = Crawl.of(crawler)
        self._crawl.scheduler = self
        self._pace = self._crawl.pace
        self._access = self._crawl.access
        self._is_stored = bool(job_dir(settings) or self._crawl.state)
        self._dupefilter = _dupefilter(crawler, is_stored=self._is_stored)
        # A scheduler that wraps this one may enqueue requests in another context than the one in
        # which they were made.
        self._makes = load_object(settings["SCHEDULER"]) is Scheduler
        if self._makes:
            # `enqueue_request` calls `make` itself for the engine's requests, because a signal is
            # slower.
            crawler.signals.disconnect(self._crawl.referrals.make, signals.request_scheduled)
        assert crawler.request_fingerprinter is not None
        self._fingerprint = crawler.request_fingerprinter.fingerprint
        self._max_delay = self._crawl.options.max_delay
        self._filters_here = self._is_stored and type(self._dupefilter) is RFPDupeFilter
        # Requests that are in memory and in the storage, until they are done -> their keys.
        self._keys: dict[Request, int] = {}
        # Requests that cannot be stored, until they are done -> their fingerprints.
        self._unkept: dict[Request, bytes | None] = {}
        self._out: set[Request] = set()  # requests of both maps that were handed out
        # The key and fingerprint of requests that are through and not done yet.
        self._through: list[tuple[int | None, bytes | None]] = []
        self._barrier = ItemBarrier(crawler, self._crawl.flushes, self._crawl.options.part_seconds)
        self._storing: asyncio.Task[None] | None = None
        self._tick: CallLaterResult | None = None
        self._log_at = 0.0
        self._failing_since: float | None = None  # monotonic seconds; None: the last write worked
        self._retry_times = (
            settings.getint("RETRY_TIMES") if settings.getbool("RETRY_ENABLED") else 0
        )
        self._queues = HostQueues()
        self._pace.freed = self._queues.unpark
        self._waiting = 0  # requests in the queues
        self._moved = 0  # requests moved between queues since the engine asked for one
        self._refused: deque[Request] = deque()  # known to be refused, so they do not wait
        self._hold_until: dict[Request, float] = {}  # requests on their way back to the queue
        # Origin -> how often in a row its policies could not be fetched, and when to try again.
        # The Policies are not kept: they take some kilobytes each, and a million hosts may be down.
        self._failures: dict[str, tuple[int, float]] = {}
        self._pending_fetches: deque[HostQueue] = deque()
        self._fetches: set[asyncio.Task[None]] = set()
        self._timer: CallLaterResult | None = None
        self._timer_due = float("inf")
        self._reap_at = 0.0
        self._storage = self._open_storage()
        self._storage_kind = (
            "memory" if self._storage is None else "shared" if self._storage.is_shared else "disk"
        )
        # Requests by the place that keeps them, and handed out ones, not in the statistics yet.
        self._enqueued = dict.fromkeys(("memory", self._storage_kind), 0)
        self._handed_out = 0

    def open(self, spider: Spider) -> Deferred[None] | None:
        self._spider = spider
        if self._storage is None:
            return self._dupefilter.open()
        self._barrier.open()
        opening = self._storage.open(spider)
        if opening is not None:
            return deferred_from_coro(self._open(opening))
        if waiting := self._waiting:
            logger.info(
                "JOBDIR: the crawl goes on with %(left)d requests that wait", {"left": waiting}
            )
        self._write()
        return self._dupefilter.open()

    async def _open(self, storage: Awaitable[None]) -> None:
        try:
            await storage
        except PolicyError as error:
            stop(str(error))
        self._write()
        opened: Any = self._dupefilter.open()
        if opened is not None:
            await maybe_deferred_to_future(opened)

    def _open_storage(self) -> Queue | None:
        """Return the storage for requests beyond this process, or None.

        Requests that wait in it for this process are put into the queues."""
        if not self._is_stored:
            return None
        try:
            storage = (
                self._open_journal()
                if self._crawl.state is None
                else self._shared_queue(self._crawl.state)
            )
            storage.begin(self)
        except PolicyError as error:
            never_opened(self._crawler)
            stop(str(error))
        return storage

    def _shared_queue(self, state: SharedState) -> Queue:
        from comity.crawler.frontier.shared_queue import SharedQueue  # it needs the extra `redis`

        options = self._crawl.options
        return SharedQueue(
            self._crawler,
            state.queue(),
            state.neighbours,
            rest=self._pace.rest,
            most=options.max_waiting,
            again_after=options.again_after,
        )

    def _open_journal(self) -> Queue:
        folder = Path(job_dir(self._crawler.settings) or "")
        journal = Journal(folder)
        if self._crawler.spider is not None:
            journal.open(self._crawler.spider)
            take_over(folder, journal, self._crawler, with_seen=self._filters_here)
        return journal

    @property
    def goes_on(self) -> bool:
        return self._storage is not None and self._storage.has_begun

    # The storage calls the methods of this section.

    @property
    def has_room(self) -> bool:
        """True if no host is due, and few hosts wait for their policies."""
        due = self._queues.next_due()
        return (due is None or due > monotonic()) and len(self._pending_fetches) + len(
            self._fetches
        ) < FETCHES_AHEAD

    def receive(self, key: int, origin: str, priority: int) -> None:
        self._queue_for(origin).push(key, priority)
        self._waiting += 1

    def forget(self, host: str) -> list[int]:
        keys = []
        for queue in self._queues.of_host(host):
            unkept = []
            self._waiting -= len(queue)
            while queue:
                request = queue.pop()
                if request in self._unkept:
                    unkept.append(request)
                else:
                    keys.append(
                        self._keys.pop(request) if isinstance(request, Request) else request
                    )
            self._drop(queue)
            for request in unkept:
                self._queue_for(queue.origin, queue.scopes).push(request, request.priority)
                self._waiting += 1
        return keys

    def waiting(self, host: str) -> int:
        return sum(
            request not in self._unkept for queue in self._queues.of_host(host) for request in queue
        )

    def aside(self, host: str) -> Aside | None:
        queues = self._queues.of_host(host)
        if not queues or not all(queue.aside for queue in queues):
            return None
        first = min(queues, key=lambda queue: queue.due)
        return Aside(first.due - monotonic(), first.aside)

    def _write(self) -> None:
        """Write the changes of the queue, again after FLUSH seconds."""
        assert self._storage
        self._tick = call_later(FLUSH, self._write)
        self._note_through(self._storage)
        if self._through and self._barrier.is_clear:
            self._acknowledge(self._storage, self._through)
            self._through = []
        elif self._through and self._barrier.is_due(
            len(self._through), is_idle=not (self._out or len(self))
        ):
            self._storing = asyncio.create_task(self._store(self._storage))
        try:
            self._storage.flush()
            self._failing_since = None
        except OSError as error:
            self._complain(error)
            self._give_up_if_it_fails_on(self._storage, error)

    def _give_up_if_it_fails_on(self, storage: Queue, error: OSError) -> None:
        """End the crawl if its file in JOBDIR could not be written for PATIENCE seconds.

        If the process were killed later, more and more work would be lost. A shared state never
        ends the crawl, because its server may be back at any time."""
        if self._failing_since is None:
            self._failing_since = monotonic()
        elif not storage.is_shared and monotonic() >= self._failing_since + PATIENCE:
            self._crawl.end(
                CANNOT_WRITE,
                f"{storage.setting}: {error}. Free space on its disk, and start the crawl again:"
                " it goes on with what was written last",
            )

    def _complain(self, error: Exception) -> None:
        """Log a failure of the storage, at most once a minute."""
        assert self._storage
        if monotonic() >= self._log_at:
            self._log_at = monotonic() + 60
            logger.error(
                "%(setting)s: %(error)s; comity tries again",
                {"setting": self._storage.setting, "error": error},
            )

    def _note_through(self, storage: Queue) -> None:
        """Note the requests that have left the engine.

        Their callbacks, and the pipelines of their items, have ended."""
        if not self._out:
            return
        progress = in_progress(self._crawler)
        for request in [request for request in self._out if request not in progress]:
            self._out.remove(request)
            if (key := self._keys.pop(request, None)) is not None:
                storage.mark_through(key)
                self._through.append((key, None))
            else:
                self._through.append((None, self._unkept.pop(request)))

    async def _store(self, storage: Queue) -> None:
        """Put the items of requests that are through on the disk, then count them as done."""
        through, self._through = self._through, []
        try:
            await self._barrier.store()
        except ItemsLostError as error:
            why = (
                f"{storage.setting}: {error}. If you start the crawl again, it fetches their pages"
                " once more"
            )
            self._crawl.end(ITEMS_LOST, why)
        except Exception as error:  # the flush of a pipeline may raise any
            self._through = through + self._through
            self._complain(error)
        else:
            self._acknowledge(storage, through)

    async def _store_last(self, storage: Queue) -> None:
        """Let all requests that are through be done. Scrapy closes its feeds later."""
        if self._storing is not None:
            await self._storing
        self._note_through(storage)
        if not self._barrier.has_failed:
            await self._store(storage)
        if self._through:
            logger.warning(
                "%(setting)s: the items of %(number)d pages are not stored. If you start the crawl"
                " again, it fetches these pages again",
                {"setting": storage.setting, "number": len(self._through)},
            )

    def _acknowledge(
        self, storage: Queue, through: Iterable[tuple[int | None, bytes | None]]
    ) -> None:
        """Tell the storage which requests are done."""
        for key, fingerprint in through:
            if key is not None:
                storage.mark_done(key)
            elif fingerprint is not None:
                storage.mark_seen(fingerprint)

    def close(self, reason: str) -> Deferred[None] | None:
        return deferred_from_coro(self._close(reason))

    async def _close(self, reason: str) -> None:
        self._set_timer(None)
        if self._tick is not None:
            self._tick.cancel()
        self._count()
        self._pending_fetches.clear()
        for task in self._fetches:
            task.cancel()
        await asyncio.gather(*self._fetches, return_exceptions=True)
        self._tell_aside()
        if waiting := len(self) - sum(map(len, self._queues.aside())):
            self._stats.set_value("comity/scheduler/left", waiting)
            remark = f"; {self._storage.setting} keeps them" if self._storage else ""
            logger.warning(
                "%(left)d requests were still waiting when the crawl ended (%(reason)s)%(kept)s",
                {"left": waiting, "reason": reason, "kept": remark},
            )
        if self._storage is not None:
            try:
                await self._store_last(self._storage)
                if (closing_storage := self._storage.close()) is not None:
                    await closing_storage
            except OSError as error:
                setting = self._storage.setting
                logger.error(
                    "%(setting)s: %(error)s; it lacks the latest changes",
                    {"setting": setting, "error": error},
                )
        closed: Any = self._dupefilter.close(reason)
        if closed is not None:
            await maybe_deferred_to_future(closed)

    def _tell_aside(self) -> None:
        aside = self._queues.aside()
        if not aside:
            return
        self._stats.set_value("comity/scheduler/set-aside", sum(map(len, aside)))
        remark = (
            f"{self._storage.setting} keeps them"
            if self._storage
            else "set JOBDIR to keep such requests"
        )
        for queue in aside:
            logger.warning(
                "%(number)d requests to %(origin)s were set aside: %(why)s, at most %(most)g s"
                " (COMITY_MAX_DELAY); %(kept)s",
                {
                    "number": len(queue),
                    "origin": queue.origin,
                    "why": queue.aside,
                    "most": self._max_delay,
                    "kept": remark,
                },
            )

    def __len__(self) -> int:
        return self._waiting + len(self._refused) + len(self._hold_until)

    def has_pending_requests(self) -> bool:
        if self._hold_until:
            self._forget_stopped()
        is_left = bool(self._queues or self._refused or self._hold_until)
        return is_left or not (self._storage is None or self._storage.is_finished)

    def enqueue_request(self, request: Request) -> bool:
        """Take a request on one of the four ways of the module's docstring. False: it was seen."""
        if request is WAKE:
            return True
        if self._makes:
            self._crawl.referrals.make(request)
        origin = origin_or_empty(request.url)
        policies = self._crawl.policies.cached(origin) if origin else None
        due = self._hold_until.pop(request, None)
        if due is not None:
            queue = self._queue_for(origin, self._scopes(policies, request))
            queue.push_back(request)
            queue.fetched = None
            self._waiting += 1
            self._wait(queue, monotonic(), due, "it asks to come back later")
            return True
        is_start = self._is_start_of_all(request)  # filtered in spite of dont_filter
        fingerprint = (
            self._fingerprint(request)
            if self._filters_here and (is_start or not request.dont_filter)
            else None
        )
        if is_start:
            request.meta[STARTED] = True
        if self._is_seen(request, fingerprint):
            self._dupefilter.log(request, self._spider)
            return False
        key = self._storage.put(origin, request, fingerprint) if self._storage is not None else None
        if self._storage is not None and key is None:
            self._unkept[request] = fingerprint
            self._stats.inc_value("scheduler/unserializable")
        self._enqueued["memory" if key is None else self._storage_kind] += 1
        if key is not None and self._storage is not None and self._storage.is_shared:
            return True  # it arrives once its host is leased
        if self._is_refused(policies, request):
            if key is not None:
                self._keys[request] = key
            self._refused.append(request)
            return True
        # A queue without scopes has older requests, of all scopes: this one waits behind them.
        queue = self._queues.get(origin) or self._queue_for(origin, self._scopes(policies, request))
        queue.push(request if key is None else key, request.priority)
        self._waiting += 1
        return True

    def _is_start_of_all(self, request: Request) -> bool:
        """Return True for a start request, if each worker of the crawl makes the start requests.

        A retry or redirect of a start request copies its meta, but is no start request. STARTED in
        the meta tells them apart."""
        is_shared = self._storage is not None and self._storage.is_shared
        return (
            is_shared
            and bool(request.meta.get("is_start_request"))
            and not request.meta.get(STARTED)
        )

    def _is_seen(self, request: Request, fingerprint: bytes | None) -> bool:
        if self._storage is not None and fingerprint is not None:
            return self._storage.is_seen(fingerprint)
        return not request.dont_filter and self._dupefilter.request_seen(request)

    def _is_refused(self, policies: OriginPolicies | None, request: Request) -> bool:
        """Return True if it is known already that the request will be refused."""
        # Unreachable policies may be reachable when the request's turn comes.
        if policies is None or policies.unreachable:
            return False
        return self._access.decide(policies, request, waits=True).verdict is Verdict.DENY

    def _scopes(self, policies: OriginPolicies | None, request: Request) -> tuple[Limiter, ...]:
        """Return the limiters of the request's scopes: those that are known and have own limits."""
        limits = (
            policies.site.limits(self._crawl.agent, request.url) if policies is not None else ()
        )
        return tuple(map(self._pace.scope, limits))

    def hold(self, request: AnyRequest, wait: float) -> bool:
        """Take back a request that a middleware returns. It goes out again in `wait` seconds.

        The middleware was handed this request, and returns it instead of passing it or its answer
        on. The request stays as it is, and its whole origin waits.

        Return False if the scheduler did not hand the request out: to return it would make the
        engine spin."""
        if not (self._pace.was_handed_out(request) and isinstance(request, Request)):
            return False
        self._pace.free_limiters(request)
        self._out.discard(request)
        self._hold_until[request] = monotonic() + max(wait, MIN_WAIT)
        self._handed_out -= 1
        self._stats.inc_value("comity/scheduler/held")
        return True

    def _forget_stopped(self) -> None:
        """Forget held requests that were stopped on their way back to the queue.

        A handler of `request_scheduled` may raise IgnoreRequest without the scheduler's knowledge.
        """
        with suppress(PolicyError):
            progress = in_progress(self._crawler)
            for request in [request for request in self._hold_until if request not in progress]:
                del self._hold_until[request]
                self._goes_out(request)
                self._handed_out += 1

    def next_request(self) -> Request | None:
        now = monotonic()
        if now >= self._reap_at:
            self._reap_at = now + REAP
            self._pace.forget_departed()
        request = self._next(now)
        if request is None and self._pace.forget_departed():
            request = self._next(now)
        if request is None:
            self._start_fetches()
            self._set_timer(self._queues.next_due())
            self._count()
        else:
            self._handed_out += 1
        self._crawl.referrals.handle(request)
        return request

    def _count(self) -> None:
        """Write the counts into the statistics.

        A statistic costs as much as the rest of a hand-out, so it waits for an idle moment."""
        for kind, number in self._enqueued.items():
            if number:
                self._stats.inc_value("scheduler/enqueued", number)
                self._stats.inc_value(f"scheduler/enqueued/{kind}", number)
                self._enqueued[kind] = 0
        if self._handed_out:
            self._stats.inc_value("scheduler/dequeued", self._handed_out)
            self._stats.inc_value(f"scheduler/dequeued/{self._storage_kind}", self._handed_out)
            self._handed_out = 0

    def _next(self, now: float) -> Request | None:
        if self._refused:
            refused = self._refused.popleft()
            self._goes_out(refused)
            self._pace.start(refused, (), handed_out=True)
            return refused
        self._moved = 0
        while self._moved < MOVES and (queue := self._queues.next(now)) is not None:
            if (request := self._from_queue(queue, now)) is not None:
                return request
        return None

    def _from_queue(self, queue: HostQueue, now: float) -> Request | None:
        """Return the first request of a queue that is due.

        None if the queue waits on: it is then dated again, or an event will date it."""
        # For this turn only: while the queue waits on, the policies may become stale.
        fetched, queue.fetched = queue.fetched, None
        request = self._first(queue)
        if request is None:
            return None
        if not queue.limiters:
            self._access.decide(None, request)
            return self._hand_out(queue, request, now)
        referrer_reach = self._crawl.referrals.referrer_reach(request)
        policies = self._crawl.policies.cached(queue.origin, referrer_reach)
        if (
            policies is None
            and fetched is not None
            and fetched.barred_for in (None, referrer_reach)
        ):
            policies = fetched.seen_from(referrer_reach)
        if policies is None:
            self._want_policies(queue)
            return None
        if self._misses_files(policies, request) and self._asks_again(queue, policies, now):
            return None
        if referrer_reach is None:
            self._crawl.referrals.learn(policies)
        decision = self._access.decide(policies, request)
        if decision.verdict is Verdict.DENY:
            # The middleware refuses it, at no cost for the host.
            return self._hand_out(queue, request, now)
        if decision.not_before is not None:
            wait = (decision.not_before - datetime.now(UTC)).total_seconds()
            self._wait(queue, now, now + max(wait, MIN_WAIT), "it asks to come back later")
            return None
        if (scopes := self._scopes(policies, request)) != queue.scopes:
            self._move(queue, request, scopes, fetched, now)
            return None
        host = queue.limiters[0]
        host.restrict(queue.origin, windows_for(policies.site, self._crawl.agent))
        delay = host.delay(time())
        if delay > self._max_delay:
            self._set_aside(queue, f"its host is to be asked each {delay:.0f} s", now + ASIDE)
            return None
        self._queues.set_aside(queue, "")
        for limiter in queue.limiters:
            if limiter.full or limiter.awaited:
                self._queues.park(queue, limiter)
                return None
        grant = (
            None
            if slowest(queue.limiters).free_at > now
            else self._pace.try_acquire(queue.limiters)
        )
        if grant is None:
            limiter = slowest(queue.limiters)
            if limiter.full:  # the ledger is being asked
                self._queues.park(queue, limiter)
            else:
                self._wait(queue, now, limiter.free_at, limiter.reason)
            return None
        return self._hand_out(queue, request, now, queue.limiters, grant)

    def _move(
        self,
        queue: HostQueue,
        request: Request,
        scopes: tuple[Limiter, ...],
        fetched: OriginPolicies | None,
        now: float,
    ) -> None:
        """Move the first request of the queue to the queue of its scopes.

        There it waits for no requests of other scopes, and they do not wait for it."""
        other = self._queue_for(queue.origin, scopes, fetched)
        if queue.move(other, self._keys.get(request)):
            del self._keys[request]
        if queue:
            self._queues.date(queue, now)
        else:
            self._drop(queue)
        self._moved += 1

    def _first(self, queue: HostQueue) -> Request | None:
        """Return the first readable request of the queue, or None."""
        while queue:
            request = queue.peek()
            if isinstance(request, Request):
                return request
            assert self._storage
            try:
                restored = self._storage.get(request)
            except LookupError as error:
                self._stats.inc_value("comity/scheduler/unreadable")
                logger.error(
                    "%(setting)s: %(error)s", {"setting": self._storage.setting, "error": error}
                )
                queue.pop()
                self._waiting -= 1
                continue
            self._keys[restored] = request
            queue.replace(restored)
            return restored
        self._drop(queue)
        return None

    def _wait(self, queue: HostQueue, now: float, due: float, reason: str) -> None:
        """Date the queue. If it is due late, the crawl does not wait for it until it is near."""
        wait = due - now
        if wait > self._max_delay + ROUNDING:
            self._set_aside(queue, f"{reason} for {wait:.0f} s", due - self._max_delay)
        else:
            self._queues.set_aside(queue, "")
            self._queues.date(queue, due)

    def _set_aside(self, queue: HostQueue, reason: str, due: float) -> None:
        """Let the crawl not wait for the queue until `due`."""
        self._queues.set_aside(queue, reason)
        self._queues.date(queue, due)
        if self._storage is not None:
            self._storage.set_aside(host_name(queue.origin))

    def _hand_out(
        self,
        queue: HostQueue,
        request: Request,
        now: float,
        limiters: tuple[Limiter, ...] = (),
        grant: int = 0,
    ) -> Request:
        """Take the first request out of its queue. It was decided on before."""
        queue.pop()
        self._waiting -= 1
        self._queues.set_aside(queue, "")
        if queue:
            self._queues.date(queue, now)
        else:
            self._drop(queue)
        self._goes_out(request)
        self._pace.start(request, limiters, handed_out=True, grant=grant)
        return request

    def _goes_out(self, request: Request) -> None:
        if request in self._keys or request in self._unkept:
            self._out.add(request)

    def _queue_for(
        self, origin: str, scopes: tuple[Limiter, ...] = (), fetched: OriginPolicies | None = None
    ) -> HostQueue:
        """Return the host queue of an origin and scopes. It is made if it does not exist.

        `fetched`: the policies for the first turn of a new queue."""
        queue = self._queues.get(origin, scopes)
        if queue is not None:
            return queue
        queue = HostQueue(origin, self._pace.host(origin) if origin else None, scopes)
        queue.fetched = fetched
        for limiter in queue.limiters:
            limiter.queues += 1
        self._queues.add(queue)
        if not origin or fetched or self._crawl.policies.cached(origin):
            self._queues.date(queue, monotonic())
        else:
            self._want_policies(queue)
        return queue

    def _drop(self, queue: HostQueue) -> None:
        for limiter in queue.limiters:
            limiter.queues -= 1
        self._queues.drop(queue)

    def _misses_files(self, policies: OriginPolicies, request: Request) -> bool:
        """Return True if the request should wait for policy files that cannot be fetched now.

        Without these files it would be refused, or its page could not be used."""
        if policies.barred_for is not None:
            return False
        return policies.unreachable or self._access.awaits_files(policies.site, request)

    def _asks_again(self, queue: HostQueue, policies: OriginPolicies, now: float) -> bool:
        """Let the queue wait until its policy files may be fetched again, and return True.

        Return False if it does not have to wait, or has waited RETRY_TIMES times. Then its requests
        go out, and are refused if robots.txt cannot be fetched."""
        wait = policies.fresh_until - time()
        if queue.origin in self._failures and self._failures[queue.origin][0] > self._retry_times:
            return False
        if not policies.unreachable and wait > self._max_delay + ROUNDING:
            return False  # nothing is refused, so nothing is set aside
        self._wait(
            queue,
            now,
            now + max(wait, MIN_WAIT),
            f"its policies ({policies.error}) are not to be asked for",
        )
        return True

    def _want_policies(self, queue: HostQueue) -> None:
        self._pending_fetches.append(queue)
        self._start_fetches()

    def _start_fetches(self) -> None:
        while (
            self._pending_fetches
            and len(self._fetches) < ORIGINS_AT_ONCE
            and not closing(self._crawler)
        ):
            task = asyncio.create_task(self._fetch(self._pending_fetches.popleft()))
            self._fetches.add(task)
            task.add_done_callback(self._end_fetch)

    def _end_fetch(self, task: asyncio.Task[None]) -> None:
        """Start the next fetch, even if the engine asks for no request meanwhile."""
        self._fetches.discard(task)
        self._start_fetches()

    async def _fetch(self, queue: HostQueue) -> None:
        request = self._first(queue)
        if request is None:
            return
        try:
            policies = await self._crawl.policies.get(
                queue.origin, self._crawl.referrals.referrer_reach(request)
            )
        except ClosingError:
            return
        if self._misses_files(policies, request):
            await self._count_failure(queue.origin, policies)
        else:
            self._failures.pop(queue.origin, None)
        queue.fetched = policies
        if queue:  # an empty queue was dropped meanwhile
            self._queues.date(queue, monotonic())
        wake(self._crawler)

    async def _count_failure(self, origin: str, policies: OriginPolicies) -> None:
        times, due = self._failures.get(origin, (0, 0.0))
        if policies.fresh_until == due:  # counted for another queue of this origin
            return
        times += 1
        if self._storage is not None:
            times = await self._storage.tries(
                origin, policies.failing_since, policies.fresh_until, here=times
            )
        self._failures[origin] = times, policies.fresh_until

    def _set_timer(self, due: float | None) -> None:
        """Set the timer that wakes the engine. `due`: monotonic seconds; None: no timer."""
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


def _dupefilter(crawler: Crawler, *, is_stored: bool) -> BaseDupeFilter:
    dupefilter_class = load_object(crawler.settings["DUPEFILTER_CLASS"])
    if is_stored:
        if dupefilter_class is RFPDupeFilter:  # the storage keeps the fingerprints
            debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
            return RFPDupeFilter(None, debug, fingerprinter=crawler.request_fingerprinter)
        logger.warning(
            "DUPEFILTER_CLASS is not Scrapy's own: it may know requests that a killed crawl has"
            " lost, and does not know requests of other workers"
        )
    dupefilter: BaseDupeFilter = build_from_crawler(dupefilter_class, crawler)
    return dupefilter
