"""Counters that cannot grow without end, whatever sites name: what is counted least gives way."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from heapq import nlargest
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Tally(Generic[K]):
    """A counter of how often each of some keys came. At least `most` keys are kept; the total is exact whatever happens.

    Where more than twice as many came, those that came least often are counted together, in `others`: a key that comes again
    after that begins anew, so its number is a least one."""

    __slots__ = ("counts", "most", "others")

    def __init__(self, most: int) -> None:
        self.counts: dict[K, int] = {}
        self.others = 0
        self.most = most

    def add(self, key: K, number: int = 1) -> None:
        counts = self.counts
        counts[key] = counts.get(key, 0) + number
        if len(counts) > 2 * self.most:
            self._fold()

    def update(self, other: Tally[K] | Mapping[K, int]) -> None:
        counts = other
        if isinstance(other, Tally):
            self.others += other.others
            counts = other.counts
        assert isinstance(counts, Mapping)
        for key, number in counts.items():
            self.add(key, number)

    def _fold(self) -> None:
        largest = dict(nlargest(self.most, self.counts.items(), key=lambda item: item[1]))
        self.others += sum(self.counts.values()) - sum(largest.values())
        self.counts = largest

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + self.others

    def largest(self, number: int) -> list[tuple[K, int]]:
        """Return those that came most often, the first one of several that came as often first."""
        return nlargest(number, self.counts.items(), key=lambda item: item[1])

    def rest(self, number: int) -> int:
        """Return how often the others came."""
        return self.total - sum(count for _, count in self.largest(number))

    def __iter__(self) -> Iterator[K]:
        return iter(self.counts)

    def __len__(self) -> int:
        """The number of keys, as far as they are told apart."""
        return len(self.counts)

    def __bool__(self) -> bool:
        return bool(self.counts or self.others)
