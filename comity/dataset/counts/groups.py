"""Values by key that can be merged. There may be too many for memory.

groups = Groups(Host)
groups["https://example.com"].records += 1
for origin, host in groups.items(): ...        # sorted by key
groups.largest(10, lambda host: host.records)"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, Protocol, Self, TypeVar

from comity.dataset.execution.sorted_runs import SortedRuns, chunks

MAX_HELD = 50_000  # the maximum number of groups in memory


class Value(Protocol):
    """The value of a group."""

    def merge(self, other: Self) -> None:
        """Add the counts of `other`."""


K = TypeVar("K")
V = TypeVar("V", bound=Value)


class Groups(Generic[K, V]):
    """Key -> value. It can be merged and pickled.

    A process keeps at most MAX_HELD values in memory. When there are more, it moves them to a
    sorted temporary file."""

    def __init__(self, make: Callable[[], V]) -> None:
        """`make`: returns the value of a new group. It can be pickled."""
        self._make = make
        self.held: dict[K, V] = {}  # earlier counts of a group may be in the file
        self._runs: SortedRuns[K, V] = SortedRuns()

    def __getitem__(self, key: K) -> V:
        """Return the value to which the counts of a group are added."""
        value = self.held.get(key)
        if value is None:
            if len(self.held) >= MAX_HELD:
                self._spill()
            value = self.held[key] = self._make()
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]  # it can change

    def get(self, key: K) -> V | None:
        """Return the value of a group. None: there is no such group. It may read all groups."""
        return next((value for name, value in self.items() if name == key), None)

    def merge(self, other: Groups[K, V]) -> None:
        for key, value in other.items():
            self[key].merge(value)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield each group once, sorted by key."""
        if not self._runs:
            yield from self._sorted()
            return
        self._spill()
        for key, rows in groupby(self._runs, itemgetter(0)):
            value = self._make()
            for _, part in rows:
                value.merge(part)
            yield key, value

    def largest(self, number: int, size: Callable[[V], int]) -> list[tuple[K, V]]:
        """Return the groups with the largest sizes, at most `number` of them."""
        return heapq.nsmallest(number, self.items(), lambda entry: (-size(entry[1]), entry[0]))

    def by_size(self, size: Callable[[V], int]) -> Iterator[tuple[K, V]]:
        """Yield each group once, the largest first, then by key."""
        runs: SortedRuns[tuple[int, K], V] = SortedRuns()
        for chunk in chunks(self.items(), MAX_HELD):
            ranked = (((-size(value), key), value) for key, value in chunk)
            runs.add(sorted(ranked, key=itemgetter(0)))
        return ((key, value) for (_, key), value in runs)

    def _sorted(self) -> list[tuple[K, V]]:
        return sorted(self.held.items(), key=itemgetter(0))

    def _spill(self) -> None:
        self._runs.add(self._sorted())
        self.held = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "held": dict(self.items()), "_runs": SortedRuns()}
