"""The turns of the host queues: which request goes out next, and when.

How it works. `Turns.add` judges a new request if the policies of its origin are known. A refused
request is handed out next, without a wait, and the middleware refuses it. Any other request waits
in the host queue of its origin, or of its scopes.

`Turns.next` checks the queue that is due longest: Are its policies fresh? Does `Access.decide`
permit its first request? Is that request in the scope of this queue? If not, it moves to another
one. Does its pace let it out? The first no decides for which event the queue waits
(host_queues.py). If all answers are yes, the request is handed out. The queue is due again at
once, or when the next request may go out in its turn."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from time import monotonic, time
from typing import TYPE_CHECKING

from comity.crawler.crawl import Crawl
from comity.crawler.frontier.book import Book, Entry
from comity.crawler.frontier.waiting.host_queue import HostQueue
from comity.crawler.frontier.waiting.waiting_requests import ROUNDING, WaitingRequests
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.pace.limiter import Limiter, slowest, windows_for
from comity.policies import Verdict

if TYPE_CHECKING:
    from scrapy.http import Request

ASIDE = 600.0  # seconds until a host that was too slow is checked again
MIN_WAIT = 0.1  # seconds; postponed requests wait at least so long, or the engine would spin
MOVES = 64  # requests that move to the queue of their scope at a time; more would hold up others
FORGET_EACH = 0.1  # seconds between two looks for requests that left the downloader unnoticed

POSTPONED = "it asks to come back later"  # why a request waits, for messages


class Turns:
    """Decides which waiting request goes out next.

    Attributes:
        refused: Requests that are known to be refused, so they do not wait. They go out first.
    """

    def __init__(self, crawl: Crawl, waiting: WaitingRequests, book: Book) -> None:
        self._crawl = crawl
        self._waiting = waiting
        self._book = book
        self._forget_at = 0.0  # monotonic
        self._moved = 0  # requests moved between queues since the engine asked for one
        self.refused: deque[Entry] = deque()

    def add(self, entry: Entry, origin: str) -> None:
        """Let a new request wait for its turn, if it is not refused."""
        request = entry.request
        policies = self._crawl.policies.cached(origin) if origin else None
        verdict = None  # no policies are known
        # Unreachable policies may be reachable when the request's turn comes.
        if policies is not None and not policies.unreachable:
            verdict = self._crawl.access.decide(policies, request, waits=True).verdict
            if verdict is Verdict.DENY:
                self.refused.append(entry)
                return
        scopes = self._scopes(policies, request)
        # A queue without scopes has older requests, of all scopes: this one waits behind them.
        queue = self._waiting.queues.get(origin)
        if queue is None:
            queue = self._waiting.queue_for(origin, scopes)
        queue.push(
            entry if entry.key is None else entry.key,
            request.priority,
            is_allowed=verdict is Verdict.ALLOW and scopes == queue.scopes,
        )
        self._waiting.number += 1

    def put_back(self, entry: Entry, origin: str) -> None:
        """Let a held request wait in front of its queue, and the queue until `held_until`."""
        policies = self._crawl.policies.cached(origin) if origin else None
        queue = self._waiting.queue_for(origin, self._scopes(policies, entry.request))
        queue.push_back(entry)
        queue.fetched = None
        self._waiting.number += 1
        self._waiting.wait(queue, monotonic(), entry.held_until, POSTPONED)

    def next(self) -> Request | None:
        """Hand out the next request. Return None if no request may go out now."""
        now = monotonic()
        if now >= self._forget_at:
            self._forget_at = now + FORGET_EACH
            self._crawl.pace.forget_departed()
        request = self._next(now)
        if request is None and self._crawl.pace.forget_departed():
            request = self._next(now)
        return request

    def _next(self, now: float) -> Request | None:
        if self.refused:
            entry = self.refused.popleft()
            self._book.hand_out(entry)
            self._crawl.pace.start(entry.request, (), handed_out=True)
            return entry.request
        self._moved = 0
        while self._moved < MOVES and (queue := self._waiting.queues.next(now)) is not None:
            if (request := self._from_queue(queue, now)) is not None:
                return request
        return None

    def _from_queue(self, queue: HostQueue, now: float) -> Request | None:
        """Hand out the first request of a queue that is due.

        Return None if the queue waits on: it is then dated again, or an event will date it."""
        crawl = self._crawl
        # For this turn only: while the queue waits on, the policies may become stale.
        fetched, queue.fetched = queue.fetched, None
        entry = self._waiting.first(queue)
        if entry is None:
            return None
        request = entry.request
        if not queue.limiters:
            crawl.access.decide(None, request)
            return self._hand_out(queue, entry, now)
        referrer_reach = crawl.referrals.referrer_reach(request)
        policies = crawl.policies.cached(queue.origin, referrer_reach)
        if (
            policies is None
            and fetched is not None
            and fetched.barred_for in (None, referrer_reach)
        ):
            policies = fetched.seen_from(referrer_reach)
        if policies is None:
            self._waiting.fetches.want(queue)
            return None
        if self._waiting.fetches.misses_files(policies, request) and self._waits_for_files(
            queue, policies, now
        ):
            return None
        if referrer_reach is None:
            crawl.referrals.learn(policies)
        decision = crawl.access.decide(policies, request)
        if decision.verdict is Verdict.DENY:
            # The middleware refuses it, at no cost for the host.
            return self._hand_out(queue, entry, now)
        if decision.not_before is not None:
            wait = (decision.not_before - datetime.now(UTC)).total_seconds()
            self._waiting.wait(queue, now, now + max(wait, MIN_WAIT), POSTPONED)
            return None
        if (scopes := self._scopes(policies, request)) != queue.scopes:
            self._move(queue, scopes, fetched, now)
            return None
        grant = self._grant(queue, policies, now)
        return None if grant is None else self._hand_out(queue, entry, now, queue.limiters, grant)

    def _scopes(self, policies: OriginPolicies | None, request: Request) -> tuple[Limiter, ...]:
        """Return the limiters of the request's scopes: those that are known and have own limits."""
        if policies is None:
            return ()
        limits = policies.site.limits(self._crawl.agent, request.url)
        return tuple(map(self._crawl.pace.scope, limits))

    def _waits_for_files(self, queue: HostQueue, policies: OriginPolicies, now: float) -> bool:
        """Let the queue wait until its missing policy files may be fetched again; return True.

        Return False if it does not have to wait, or has waited RETRY_TIMES times. Then its requests
        go out, and are refused if robots.txt cannot be fetched."""
        if self._waiting.fetches.failures.are_final(queue.origin):
            return False
        wait = policies.fresh_until - time()
        if not policies.unreachable and wait > self._crawl.options.max_delay + ROUNDING:
            return False  # nothing is refused, so nothing is set aside
        self._waiting.wait(
            queue,
            now,
            now + max(wait, MIN_WAIT),
            f"its policies ({policies.error}) are not to be asked for",
        )
        return True

    def _move(
        self,
        queue: HostQueue,
        scopes: tuple[Limiter, ...],
        fetched: OriginPolicies | None,
        now: float,
    ) -> None:
        """Move the first request of the queue to the queue of its scopes.

        There it waits for no requests of other scopes, and they do not wait for it."""
        queue.move(self._waiting.queue_for(queue.origin, scopes, fetched))
        if queue:
            self._waiting.queues.date(queue, now)
        else:
            self._waiting.queues.drop(queue)
        self._moved += 1

    def _grant(self, queue: HostQueue, policies: OriginPolicies, now: float) -> int | None:
        """Return a grant of the queue's limiters. Return None if the queue waits for them."""
        host = queue.limiters[0]
        host.restrict(queue.origin, windows_for(policies.site, self._crawl.agent))
        delay = host.delay(time())
        if delay > self._crawl.options.max_delay:
            reason = f"its host is to be asked each {delay:.0f} s"
            self._waiting.set_aside(queue, reason, now + ASIDE)
            return None
        if queue.aside:
            self._waiting.queues.set_aside(queue, "")
        for limiter in queue.limiters:
            if limiter.full or limiter.awaited:
                self._waiting.queues.park(queue, limiter)
                return None
        grant = (
            None
            if slowest(queue.limiters).free_at > now
            else self._crawl.pace.try_acquire(queue.limiters)
        )
        if grant is None:
            limiter = slowest(queue.limiters)
            if limiter.full:  # the ledger is being asked
                self._waiting.queues.park(queue, limiter)
            else:
                self._waiting.wait(queue, now, limiter.free_at, limiter.reason)
        return grant

    def _hand_out(
        self,
        queue: HostQueue,
        entry: Entry,
        now: float,
        limiters: tuple[Limiter, ...] = (),
        grant: int = 0,
    ) -> Request:
        """Hand out the first request of the queue. It was decided on before."""
        self._book.hand_out(entry)
        self._crawl.pace.start(entry.request, limiters, handed_out=True, grant=grant)
        self._waiting.take_first(queue, now)
        return entry.request
