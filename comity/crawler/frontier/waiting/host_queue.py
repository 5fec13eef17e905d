"""The queue of one origin, or of some scopes of it.

A waiting request is in memory as an Entry (book.py). If the storage has it, its key waits instead,
until it is first in its queue: a key takes less memory."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from comity.crawler.frontier.book import Entry

if TYPE_CHECKING:
    from comity.gate.fetching.fetcher import OriginPolicies
    from comity.gate.pace.limiter import Limiter

_arrivals = count(1)  # of all queues: a request that moves to another queue keeps its place


def key_of(origin: str, scopes: tuple[Limiter, ...]) -> tuple[str, ...]:
    """Return the key in HostQueues of the queue for an origin and scopes."""
    return (origin, *[scope.name for scope in scopes]) if scopes else (origin,)


class HostQueue:
    """The waiting requests of one origin, or of some scopes of it.

    Higher priority first, in order of arrival within one priority.

    Attributes:
        origin: The origin; "" for URLs that have none.
        scopes: The scopes; () for requests whose scopes are not known, or have no limits.
        key: The key of the queue in HostQueues.
        limiters: The limiters whose pace the queue keeps; () for URLs without an origin.
        date: The number of the queue's valid date in HostQueues; 0 if the queue has no date.
        due: The last date of the queue, in monotonic seconds.
        aside: The reason why the crawl does not wait for the queue; "" if it waits.
        fetched: Policies that were just fetched, or None. They are good for one turn, even if they
            are stale by then.
    """

    __slots__ = (
        "_heap",
        "_judged_after",
        "aside",
        "date",
        "due",
        "fetched",
        "key",
        "limiters",
        "origin",
        "scopes",
    )

    def __init__(self, origin: str, host: Limiter | None, scopes: tuple[Limiter, ...] = ()) -> None:
        self.origin = origin
        self.scopes = scopes
        self.key = key_of(origin, scopes)
        self.limiters = scopes if host is None else (host, *scopes)
        self.date = 0
        self.due = 0.0
        self.aside = ""
        self.fetched: OriginPolicies | None = None
        self._heap: list[tuple[int, int, Entry | int]] = []
        self._judged_after = 0  # all requests that arrived after this one were allowed on arrival

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Entry | int]:
        return (waiting for _, _, waiting in self._heap)

    def push(self, waiting: Entry | int, priority: int, *, is_allowed: bool = False) -> None:
        """Add a request. `waiting`: its entry, or its key in the storage.

        `is_allowed`: True if its policies are known and allow it."""
        arrival = next(_arrivals)
        if not is_allowed:
            self._judged_after = arrival
        heappush(self._heap, (-priority, arrival, waiting))

    def push_back(self, entry: Entry) -> None:
        """Put a request that was out already in front of its priority."""
        heappush(self._heap, (-entry.request.priority, -next(_arrivals), entry))

    @property
    def is_next_allowed(self) -> bool:
        """True if the first request was allowed on arrival; False if it was not judged."""
        return self._heap[0][1] > self._judged_after

    def peek(self) -> Entry | int | None:
        """Return the first request; None if the queue is empty."""
        return self._heap[0][2] if self._heap else None

    def replace(self, entry: Entry) -> None:
        """Replace the first request, which is a key, by its entry."""
        self._heap[0] = (*self._heap[0][:2], entry)

    def pop(self) -> Entry | int:
        return heappop(self._heap)[2]

    def move(self, other: HostQueue) -> None:
        """Move the first request, which is an entry, to its place in the other queue.

        If the storage has the request, its key waits there. A request that was out already may
        differ from the stored one, so its entry waits."""
        priority, arrival, waiting = heappop(self._heap)
        if isinstance(waiting, Entry) and waiting.key is not None and arrival > 0:
            waiting = waiting.key
        other._judged_after = max(other._judged_after, arrival)
        heappush(other._heap, (priority, arrival, waiting))
