"""Requests that wait, in one lane per origin and one for each of its scopes that has limits of its own; and which lane is next.

Nothing here reads a clock: times are seconds of whatever clock the caller uses, as long as it is always the same."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from scrapy.http import Request

if TYPE_CHECKING:
    from comity.crawler.fetching.fetcher import Policies
    from comity.crawler.pace.limiter import Unit


def _key(origin: str, scopes: tuple[Unit, ...]) -> tuple[str, ...]:
    return (origin, *(scope.name for scope in scopes))


_arrivals = count(1)  # of all lanes: a request that is moved to another one keeps its place


class Lane:
    """The waiting requests of one origin, or of some scopes of it: higher priority first, in order of arrival within one
    priority."""

    __slots__ = ("_heap", "aside", "fetched", "key", "origin", "scopes", "turn", "units")

    def __init__(self, origin: str, host: Unit | None, scopes: tuple[Unit, ...] = ()) -> None:
        self.origin = origin  # "": for URLs that have none
        self.scopes = scopes  # (): those of all requests whose scopes are not known, or have no limits
        self.key = _key(origin, scopes)
        self.units = scopes if host is None else (host, *scopes)  # whose pace it keeps; (): it has no origin
        self.turn = 0  # the entry in the heap of Lanes that counts; 0: none, the lane waits for something else
        self.aside = ""  # why nobody waits for it; "": it is waited for
        self.fetched: Policies | None = None  # just fetched: good for one turn, however short they are fresh
        self._heap: list[tuple[int, int, Request | int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, request: Request | int, priority: int) -> None:
        """`request`: or its key in the queue on disk."""
        heappush(self._heap, (-priority, next(_arrivals), request))

    def push_back(self, request: Request) -> None:
        """To the front of its priority: it was out already."""
        heappush(self._heap, (-request.priority, -next(_arrivals), request))

    def peek(self) -> Request | int:
        return self._heap[0][2]

    def replace(self, request: Request) -> None:
        """The first one, by the request that its key stands for."""
        self._heap[0] = (*self._heap[0][:2], request)

    def pop(self) -> Request | int:
        return heappop(self._heap)[2]

    def move(self, other: Lane, key: int | None) -> bool:
        """The first one goes to where it belongs in the other lane. `key`: in the queue on disk, where it is there.

        True where the key stands for it from now on; what was out already may not be any more what is on disk."""
        priority, arrival, request = heappop(self._heap)
        is_stored = key is not None and arrival > 0
        heappush(other._heap, (priority, arrival, key if key is not None and is_stored else request))
        return is_stored


class Lanes:
    """The lanes by origin and scope, and a heap of when each is due. Of lanes that are due, the one due longest is next."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, ...], Lane] = {}
        self._heap: list[tuple[float, int, Lane]] = []
        self._turns = count(1)
        self._aside = 0

    def __bool__(self) -> bool:
        """Whether there are requests that are waited for."""
        return len(self._lanes) > self._aside  # an empty lane is dropped

    def aside(self) -> list[Lane]:
        return [lane for lane in self._lanes.values() if lane.aside]

    def set_aside(self, lane: Lane, why: str) -> None:
        """Nobody waits for it until it comes back with "", though it may be due again."""
        self._aside += bool(why) - bool(lane.aside)
        lane.aside = why

    def get(self, origin: str, scopes: tuple[Unit, ...] = ()) -> Lane | None:
        return self._lanes.get(_key(origin, scopes))

    def add(self, lane: Lane) -> None:
        self._lanes[lane.key] = lane

    def drop(self, lane: Lane) -> None:
        self.set_aside(lane, "")
        lane.turn = 0
        del self._lanes[lane.key]

    def date(self, lane: Lane, due: float) -> None:
        """The lane's turn comes when it is due; what was dated before is forgotten."""
        lane.turn = next(self._turns)
        heappush(self._heap, (due, lane.turn, lane))

    def next(self, now: float) -> Lane | None:
        """The next lane that is due. It has no date any more."""
        self._skip()
        if not self._heap or self._heap[0][0] > now:
            return None
        lane = heappop(self._heap)[2]
        lane.turn = 0
        return lane

    def next_due(self) -> float | None:
        """When the next lane is due; None where no lane has a date."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def _skip(self) -> None:
        while self._heap and self._heap[0][2].turn != self._heap[0][1]:
            heappop(self._heap)
