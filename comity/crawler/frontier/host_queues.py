"""Waiting requests, in one queue per origin and one per scope with limits of its own.

HostQueues decides which queue is next. Nothing here reads a clock: times are seconds of the
caller's clock, which must always be the same one."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from scrapy.http import Request

from comity.policies.syntax.urls import host_name

if TYPE_CHECKING:
    from comity.gate.fetching.fetcher import OriginPolicies
    from comity.gate.pace.limiter import Limiter


def _key(origin: str, scopes: tuple[Limiter, ...]) -> tuple[str, ...]:
    return (origin, *(scope.name for scope in scopes))


_arrivals = count(1)  # of all queues: a request that moves to another queue keeps its place


class HostQueue:
    """The waiting requests of one origin, or of some scopes of it.

    Higher priority first, in order of arrival within one priority.

    Attributes:
        origin: The origin; "" for URLs that have none.
        scopes: The scopes; () for requests whose scopes are not known, or have no limits.
        key: The key of the queue in HostQueues.
        limiters: The limiters whose pace the queue keeps; () for URLs without an origin.
        entry: The number of the valid entry in the heap of HostQueues; 0 if the queue has no date.
        due: The last date of the queue, in monotonic seconds.
        aside: The reason why the crawl does not wait for the queue; "" if it waits.
        fetched: Policies that were just fetched, or None. They are good for one turn, even if they
            are stale by then.
    """

    __slots__ = ("_heap", "aside", "due", "entry", "fetched", "key", "limiters", "origin", "scopes")

    def __init__(self, origin: str, host: Limiter | None, scopes: tuple[Limiter, ...] = ()) -> None:
        self.origin = origin
        self.scopes = scopes
        self.key = _key(origin, scopes)
        self.limiters = scopes if host is None else (host, *scopes)
        self.entry = 0
        self.due = 0.0
        self.aside = ""
        self.fetched: OriginPolicies | None = None
        self._heap: list[tuple[int, int, Request | int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Request | int]:
        return (request for _, _, request in self._heap)

    def push(self, request: Request | int, priority: int) -> None:
        """Add a request. `request`: the request, or its key in the queue on disk."""
        heappush(self._heap, (-priority, next(_arrivals), request))

    def push_back(self, request: Request) -> None:
        """Put a request that was out already in front of its priority."""
        heappush(self._heap, (-request.priority, -next(_arrivals), request))

    def peek(self) -> Request | int:
        return self._heap[0][2]

    def replace(self, request: Request) -> None:
        """Replace the first entry, which is a key, by its request."""
        self._heap[0] = (*self._heap[0][:2], request)

    def pop(self) -> Request | int:
        return heappop(self._heap)[2]

    def move(self, other: HostQueue, key: int | None) -> bool:
        """Move the first request to its place in the other queue.

        `key`: its key in the queue on disk; None if it is not there.

        Return True if the key takes the place of the request. A request that was out already may
        differ from the one on disk, so it never becomes a key again."""
        priority, arrival, request = heappop(self._heap)
        is_stored = key is not None and arrival > 0
        heappush(
            other._heap, (priority, arrival, key if key is not None and is_stored else request)
        )
        return is_stored


class HostQueues:
    """The queues by origin and scope, and a heap of their dates.

    Of the queues that are due, the one that is due longest is next."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, ...], HostQueue] = {}
        self._of_host: dict[str, dict[tuple[str, ...], HostQueue]] = {}  # _queues by host name
        self._heap: list[tuple[float, int, HostQueue]] = []
        self._entries = count(1)
        self._aside = 0
        self._parked: dict[Limiter, list[HostQueue]] = {}

    def __bool__(self) -> bool:
        """True if the crawl waits for any request."""
        return len(self._queues) > self._aside  # an empty queue is dropped

    def aside(self) -> list[HostQueue]:
        return [queue for queue in self._queues.values() if queue.aside]

    def set_aside(self, queue: HostQueue, reason: str) -> None:
        """Let the crawl not wait for the queue, even if it is due. `reason`: "" to wait."""
        self._aside += bool(reason) - bool(queue.aside)
        queue.aside = reason

    def get(self, origin: str, scopes: tuple[Limiter, ...] = ()) -> HostQueue | None:
        return self._queues.get(_key(origin, scopes))

    def of_host(self, host: str) -> list[HostQueue]:
        """Return the queues of all origins of a host name."""
        return [*self._of_host.get(host, {}).values()]

    def add(self, queue: HostQueue) -> None:
        self._queues[queue.key] = queue
        self._of_host.setdefault(host_name(queue.origin), {})[queue.key] = queue

    def drop(self, queue: HostQueue) -> None:
        self.set_aside(queue, "")
        queue.entry = 0
        del self._queues[queue.key]
        host = host_name(queue.origin)
        del self._of_host[host][queue.key]
        if not self._of_host[host]:
            del self._of_host[host]

    def date(self, queue: HostQueue, due: float) -> None:
        """Make the queue due at this moment, and at no other."""
        queue.entry, queue.due = next(self._entries), due
        heappush(self._heap, (due, queue.entry, queue))

    def park(self, queue: HostQueue, limiter: Limiter) -> None:
        """Let the queue wait for the end of a request under the limiter (see `unpark`).

        The queue has no date, because `next` has returned it."""
        self._parked.setdefault(limiter, []).append(queue)

    def unpark(self, limiter: Limiter) -> bool:
        """Make the queues that waited for the limiter due at `limiter.free_at`.

        Return True if any queue waited."""
        parked = self._parked.pop(limiter, ())
        for queue in parked:
            if queue:  # an empty queue was dropped
                self.date(queue, limiter.free_at)
        return bool(parked)

    def next(self, now: float) -> HostQueue | None:
        """Return the next queue that is due, or None. The queue has no date any more."""
        self._skip()
        if not self._heap or self._heap[0][0] > now:
            return None
        queue = heappop(self._heap)[2]
        queue.entry = 0
        return queue

    def next_due(self) -> float | None:
        """Return the moment when the next queue is due; None if no queue has a date."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def _skip(self) -> None:
        while self._heap and self._heap[0][2].entry != self._heap[0][1]:
            heappop(self._heap)
