"""All host queues, and the moments when they are due.

A host queue (host_queue.py) is in one state at a time:

    wanted          Its policies are to be fetched, or are being fetched (policy_fetches.py).
    dated           It is due at some moment: now, when its host may be asked, when a Visit-time
                    begins, ...
    parked          It waits for the end of a request that occupies one of its limiters.
                    `Pace.freed` dates it.
    set aside       It is dated, but so late that the crawl does not wait for it.

Nothing here reads a clock: times are seconds of the caller's clock, which must always be the same
one."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from comity.crawler.frontier.waiting.host_queue import HostQueue, key_of
from comity.policies.syntax.urls import host_name

if TYPE_CHECKING:
    from comity.gate.pace.limiter import Limiter


class HostQueues:
    """The queues by origin and scope, and a heap of their dates.

    Of the queues that are due, the one that is due longest is next."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, ...], HostQueue] = {}
        self._of_host: dict[str, dict[tuple[str, ...], HostQueue]] = {}  # _queues by host name
        self._heap: list[tuple[float, int, HostQueue]] = []
        self._dates = count(1)
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
        return self._queues.get(key_of(origin, scopes))

    def of_host(self, host: str) -> list[HostQueue]:
        """Return the queues of all origins of a host name."""
        return [*self._of_host.get(host, {}).values()]

    def add(self, queue: HostQueue) -> None:
        """Add a queue, which now waits for its limiters."""
        for limiter in queue.limiters:
            limiter.queues += 1
        self._queues[queue.key] = queue
        self._of_host.setdefault(host_name(queue.origin), {})[queue.key] = queue

    def drop(self, queue: HostQueue) -> None:
        """Remove a queue: it is empty."""
        for limiter in queue.limiters:
            limiter.queues -= 1
        self.set_aside(queue, "")
        queue.date = 0
        del self._queues[queue.key]
        host = host_name(queue.origin)
        del self._of_host[host][queue.key]
        if not self._of_host[host]:
            del self._of_host[host]

    def date(self, queue: HostQueue, due: float) -> None:
        """Make the queue due at this moment, and at no other."""
        queue.date, queue.due = next(self._dates), due
        heappush(self._heap, (due, queue.date, queue))

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
        while self._heap and self._heap[0][0] <= now:
            _, date, queue = heappop(self._heap)
            if queue.date == date:  # else it was dated anew, or dropped
                queue.date = 0
                return queue
        return None

    def next_due(self) -> float | None:
        """Return the moment when the next queue is due; None if no queue has a date."""
        while self._heap and self._heap[0][2].date != self._heap[0][1]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
