"""Functions of plain data that remember their results: pages of a site have most of what is said of them in common."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from comity.bounded import Bounded

MAX_OCTETS = 4096  # of a value whose result is remembered
MAX_REMEMBERED = 1024  # results of one function, of most

T = TypeVar("T")


class Remembered(Generic[T]):
    """A pure function of plain data. Nobody changes its results."""

    def __init__(self, function: Callable[[Any], T], *, most: int) -> None:
        """`most`: results that are remembered."""
        self._function = function
        self._results: Bounded[bytes, T] = Bounded(most)

    def __len__(self) -> int:
        return len(self._results)

    def __call__(self, value: Any) -> T:
        try:
            octets = marshal.dumps(
                value, 2
            )  # version 2 tells equal values of equal types from all others, and nothing else
        except ValueError:  # no plain data
            return self._function(value)
        result = self._results.get(octets)
        if result is None:
            result = self._function(value)
            if len(octets) <= MAX_OCTETS:
                self._results[octets] = result
        return result
