"""Counters in bounded memory, for keys from sites. The rarest keys are counted together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from heapq import nlargest
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class KeyTally(Generic[K]):
    """A counter of keys. At least `most` keys are kept, and the total is always exact.

    If there are more than twice as many, the rarest keys are counted together, in `others`. If such
    a key comes again, its count begins anew. So the count of a key may be too low."""

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

    def update(self, other: KeyTally[K] | Mapping[K, int]) -> None:
        counts = other
        if isinstance(other, KeyTally):
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
        """Return the most frequent keys with their counts. Of equal ones, the first comes first."""
        return nlargest(number, self.counts.items(), key=lambda item: item[1])

    def rest(self, number: int) -> int:
        """Return the sum of the counts of all keys that `largest` leaves out."""
        return self.total - sum(count for _, count in self.largest(number))

    def __iter__(self) -> Iterator[K]:
        return iter(self.counts)

    def __len__(self) -> int:
        """Return the number of keys that are counted separately."""
        return len(self.counts)

    def __bool__(self) -> bool:
        return bool(self.counts or self.others)
