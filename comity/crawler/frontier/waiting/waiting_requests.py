"""The requests that wait here, in host queues.

The storage puts requests here and takes them away again, as the Taker of queue.py says."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from comity.crawler.crawl import Crawl
from comity.crawler.frontier.book import Book, Entry
from comity.crawler.frontier.queue import Aside
from comity.crawler.frontier.waiting.host_queue import HostQueue
from comity.crawler.frontier.waiting.host_queues import HostQueues
from comity.crawler.frontier.waiting.policy_fetches import PolicyFetches
from comity.policies.syntax.urls import host_name

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.gate.fetching.fetcher import OriginPolicies
    from comity.gate.pace.limiter import Limiter

ROUNDING = 0.1  # seconds; a measured wait may be this much longer than the one that was set
FETCHES_AHEAD = 32  # with so many origins that wait for policies, no more are leased


class WaitingRequests:
    """The host queues with the requests in them, and the fetches of their policies.

    Attributes:
        queues: The host queues. No queue in it is empty.
        fetches: The fetches of policies.
        number: The number of requests in all queues.
    """

    def __init__(self, crawler: Crawler, book: Book) -> None:
        self._crawl = Crawl.of(crawler)
        self._book = book
        self.queues = HostQueues()
        self._crawl.pace.freed = self.queues.unpark
        self.fetches = PolicyFetches(crawler, self.queues, book.storage, self.first)
        self.number = 0

    def queue_for(
        self, origin: str, scopes: tuple[Limiter, ...] = (), fetched: OriginPolicies | None = None
    ) -> HostQueue:
        """Return the host queue of an origin and scopes. It is made if it does not exist.

        The caller puts a request into it. `fetched`: the policies for the first turn of a new
        queue."""
        queue = self.queues.get(origin, scopes)
        if queue is not None:
            return queue
        queue = HostQueue(origin, self._crawl.pace.host(origin) if origin else None, scopes)
        queue.fetched = fetched
        self.queues.add(queue)
        if not origin or fetched or self._crawl.policies.cached(origin):
            self.queues.date(queue, monotonic())
        else:
            self.fetches.want(queue)
        return queue

    def first(self, queue: HostQueue) -> Entry | None:
        """Return the first readable request of the queue. If there is none, drop the queue."""
        while (waiting := queue.peek()) is not None:
            if isinstance(waiting, Entry):
                return waiting
            entry = self._book.read(waiting)
            if entry is not None:
                queue.replace(entry)
                return entry
            queue.pop()
            self.number -= 1
        self.queues.drop(queue)
        return None

    def take_first(self, queue: HostQueue, now: float) -> None:
        """Take the first request, which is out, from the queue.

        The queue is due again at once. If a limiter is full and the next request was allowed on
        arrival, it waits for the limiter instead. Any other request is looked at first, because a
        refused one goes out without a wait."""
        queue.pop()
        self.number -= 1
        if not queue:
            self.queues.drop(queue)
            return
        if queue.aside:
            self.queues.set_aside(queue, "")
        if queue.is_next_allowed:
            for limiter in queue.limiters:
                if limiter.full:
                    self.queues.park(queue, limiter)
                    return
        self.queues.date(queue, now)

    def wait(self, queue: HostQueue, now: float, due: float, reason: str) -> None:
        """Date the queue. If it is due late, the crawl does not wait for it until it is near."""
        wait, max_delay = due - now, self._crawl.options.max_delay
        if wait > max_delay + ROUNDING:
            self.set_aside(queue, f"{reason} for {wait:.0f} s", due - max_delay)
        else:
            self.queues.set_aside(queue, "")
            self.queues.date(queue, due)

    def set_aside(self, queue: HostQueue, reason: str, due: float) -> None:
        """Let the crawl not wait for the queue until `due`."""
        self.queues.set_aside(queue, reason)
        self.queues.date(queue, due)
        if self._book.storage is not None:
            self._book.storage.set_aside(host_name(queue.origin))

    # The storage calls the methods below.

    @property
    def has_room(self) -> bool:
        """True if no host is due, and few hosts wait for their policies."""
        due = self.queues.next_due()
        return (due is None or due > monotonic()) and len(self.fetches) < FETCHES_AHEAD

    def receive(self, key: int, origin: str, priority: int) -> None:
        self.queue_for(origin).push(key, priority)
        self.number += 1

    def forget(self, host: str) -> list[int]:
        keys = []
        for queue in self.queues.of_host(host):
            unstored = []
            self.number -= len(queue)
            while queue:
                waiting = queue.pop()
                if isinstance(waiting, int):
                    keys.append(waiting)
                elif waiting.key is not None:
                    keys.append(waiting.key)
                else:
                    unstored.append(waiting)
            self.queues.drop(queue)
            for entry in unstored:
                self.queue_for(queue.origin, queue.scopes).push(entry, entry.request.priority)
                self.number += 1
        return keys

    def waiting(self, host: str) -> int:
        return sum(
            isinstance(waiting, int) or waiting.key is not None
            for queue in self.queues.of_host(host)
            for waiting in queue
        )

    def aside(self, host: str) -> Aside | None:
        queues = self.queues.of_host(host)
        if not queues or not all(queue.aside for queue in queues):
            return None
        first = min(queues, key=lambda queue: queue.due)
        return Aside(first.due - monotonic(), first.aside)
