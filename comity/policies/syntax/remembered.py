"""Functions with a cache for their results, for the statements that pages of a site share."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from comity.bounded import Bounded

# Octets of the largest value whose result is cached.
MAX_OCTETS = 4096
# Results that most functions cache.
MAX_REMEMBERED = 1024

T = TypeVar("T")


class Remembered(Generic[T]):
    """A pure function of plain data, with a cache. Callers do not change its results."""

    def __init__(self, function: Callable[[Any], T], *, most: int) -> None:
        """`most` is the number of results to cache."""
        self._function = function
        self._results: Bounded[bytes, T] = Bounded(most)

    def __len__(self) -> int:
        return len(self._results)

    def __call__(self, value: Any) -> T:
        try:
            # In version 2 values have equal octets only if they and their types are equal.
            octets = marshal.dumps(value, 2)
        except ValueError:  # the value is not plain data
            return self._function(value)
        result = self._results.get(octets)
        if result is None:
            result = self._function(value)
            if len(octets) <= MAX_OCTETS:
                self._results[octets] = result
        return result
