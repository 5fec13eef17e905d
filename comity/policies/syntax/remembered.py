"""Functions of plain data that remember their results: pages of a site have most of what is said of them in common."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any, Generic, TypeVar

MAX_OCTETS = 4096  # of a value whose result is remembered

T = TypeVar("T")


class Remembered(Generic[T]):
    """A pure function of plain data. Nobody changes its results."""

    def __init__(self, function: Callable[[Any], T], *, most: int) -> None:
        """`most`: results that are remembered; when there are so many, all are forgotten."""
        self._function = function
        self._most = most
        self._results: dict[bytes, T] = {}

    def __len__(self) -> int:
        return len(self._results)

    def __call__(self, value: Any) -> T:
        try:
            octets = marshal.dumps(value, 2)  # version 2 tells equal values of equal types from all others, and nothing else
        except ValueError:  # no plain data
            return self._function(value)
        result = self._results.get(octets)
        if result is None:
            result = self._function(value)
            if len(octets) <= MAX_OCTETS:
                if len(self._results) >= self._most:
                    self._results.clear()
                self._results[octets] = result
        return result
