"""Requests that wait, in one queue per origin and one for each of its scopes that has limits of its own; and which queue is next.

Nothing here reads a clock: times are seconds of whatever clock the caller uses, as long as it is always the same."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from scrapy.http import Request

from comity.policies.syntax.urls import host_name

if TYPE_CHECKING:
    from comity.gate.fetching.fetcher import Policies
    from comity.gate.pace.limiter import Limiter


def _key(origin: str, scopes: tuple[Limiter, ...]) -> tuple[str, ...]:
    return (origin, *(scope.name for scope in scopes))


_arrivals = count(1)  # of all queues: a request that is moved to another one keeps its place


class HostQueue:
    """The waiting requests of one origin, or of some scopes of it: higher priority first, in order of arrival within one
    priority."""

    __slots__ = ("_heap", "aside", "due", "entry", "fetched", "key", "limiters", "origin", "scopes")

    def __init__(self, origin: str, host: Limiter | None, scopes: tuple[Limiter, ...] = ()) -> None:
        self.origin = origin  # "": for URLs that have none
        self.scopes = (
            scopes  # (): those of all requests whose scopes are not known, or have no limits
        )
        self.key = _key(origin, scopes)
        self.limiters = (
            scopes if host is None else (host, *scopes)
        )  # whose pace it keeps; (): it has no origin
        self.entry = 0  # the entry in the heap of HostQueues that counts; 0: none, the queue waits for something else
        self.due = 0.0  # monotonic; the date that it had last
        self.aside = ""  # why nobody waits for it; "": it is waited for
        self.fetched: Policies | None = (
            None  # just fetched: good for one turn, however short they are fresh
        )
        self._heap: list[tuple[int, int, Request | int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Request | int]:
        return (request for _, _, request in self._heap)

    def push(self, request: Request | int, priority: int) -> None:
        """`request`: or its key in the queue on disk."""
        heappush(self._heap, (-priority, next(_arrivals), request))

    def push_back(self, request: Request) -> None:
        """Put the request, which was out already, to the front of its priority."""
        heappush(self._heap, (-request.priority, -next(_arrivals), request))

    def peek(self) -> Request | int:
        return self._heap[0][2]

    def replace(self, request: Request) -> None:
        """Put the request in the place of the first one, its key."""
        self._heap[0] = (*self._heap[0][:2], request)

    def pop(self) -> Request | int:
        return heappop(self._heap)[2]

    def move(self, other: HostQueue, key: int | None) -> bool:
        """Move the first one to where it belongs in the other queue. `key`: in the queue on disk, where it is there.

        True where the key stands for it from now on; what was out already may not be any more what is on disk."""
        priority, arrival, request = heappop(self._heap)
        is_stored = key is not None and arrival > 0
        heappush(
            other._heap, (priority, arrival, key if key is not None and is_stored else request)
        )
        return is_stored


class HostQueues:
    """The queues by origin and scope, and a heap of when each is due. Of queues that are due, the one due longest is next."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, ...], HostQueue] = {}
        self._of_host: dict[str, dict[tuple[str, ...], HostQueue]] = {}  # the same, by host name
        self._heap: list[tuple[float, int, HostQueue]] = []
        self._entries = count(1)
        self._aside = 0
        self._parked: dict[Limiter, list[HostQueue]] = {}

    def __bool__(self) -> bool:
        """True where there are requests that are waited for."""
        return len(self._queues) > self._aside  # an empty queue is dropped

    def aside(self) -> list[HostQueue]:
        return [queue for queue in self._queues.values() if queue.aside]

    def set_aside(self, queue: HostQueue, reason: str) -> None:
        """Let nobody wait for the queue until it comes back with "", though it may be due again."""
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
        """Let the queue wait until something of the limiter is through. It has no date any more."""
        self._parked.setdefault(limiter, []).append(queue)

    def unpark(self, limiter: Limiter) -> bool:
        """Date the queues that waited for the limiter. Whether there were any."""
        parked = self._parked.pop(limiter, ())
        for queue in parked:
            if queue:  # else it was dropped
                self.date(queue, limiter.free_at)
        return bool(parked)

    def next(self, now: float) -> HostQueue | None:
        """The next queue that is due. It has no date any more."""
        self._skip()
        if not self._heap or self._heap[0][0] > now:
            return None
        queue = heappop(self._heap)[2]
        queue.entry = 0
        return queue

    def next_due(self) -> float | None:
        """The moment when the next queue is due; None where no queue has a date."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def _skip(self) -> None:
        while self._heap and self._heap[0][2].entry != self._heap[0][1]:
            heappop(self._heap)
