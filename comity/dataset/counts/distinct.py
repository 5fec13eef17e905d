"""Count the distinct values among any number of values, in bounded memory.

    count = DistinctCount()
    count.add("https://example.com/robots.txt")
    count.number, count.is_exact

A hash turns each value into a number below 2**64. Only the smallest KEPT numbers are kept. If there
are at most KEPT distinct numbers, their count is exact. If there are more, the density of the kept
numbers gives an estimate of the count, with an error of about 0.4 percent (K minimum values,
Bar-Yossef et al. 2002, section 2.1)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

KEPT = 2**16
_END = 2**64


@lru_cache(maxsize=4096)  # batches of a dataset name the same policy files
def hashed(value: str) -> int:
    """Return a number below 2**64. Different values nearly always have different numbers."""
    octets = value.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(octets, digest_size=8).digest())


@dataclass
class DistinctCount:
    """A count of distinct values. It can be merged and pickled."""

    _numbers: set[int] = field(default_factory=set)
    _end: int = _END  # only numbers below this are kept

    def add(self, value: str) -> None:
        """Count a value, if it is new."""
        self.add_hash(hashed(value))

    def add_hash(self, number: int) -> None:
        """Count a value, if it is new. `number`: the value's `hashed` number."""
        if number < self._end:
            self._numbers.add(number)
            if len(self._numbers) > 2 * KEPT:
                self._cut()

    def merge(self, other: DistinctCount) -> None:
        self._end = min(self._end, other._end)
        self._numbers |= other._numbers
        if len(self._numbers) > 2 * KEPT:
            self._cut()

    def _cut(self) -> None:
        self._end = self._smallest[-1] + 1
        self._numbers = set(self._smallest)

    @property
    def _smallest(self) -> list[int]:
        return sorted(self._numbers)[:KEPT]

    @property
    def is_exact(self) -> bool:
        """False if `number` is an estimate."""
        return self._end == _END and len(self._numbers) <= KEPT

    @property
    def number(self) -> int:
        """The number of distinct values."""
        return (
            len(self._numbers) if self.is_exact else round((KEPT - 1) * _END / self._smallest[-1])
        )
