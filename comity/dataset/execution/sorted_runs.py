"""More pairs of a key and a value than memory is to hold, in the order of their keys: an external sort.

runs = SortedRuns()
runs.add(sorted(pairs))     again and again: each time a run, which goes to a temporary file
for key, value in runs      all of them by their keys; equal keys come one after the other"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import IO, Generic, TypeVar
from weakref import finalize

CHUNK = 256  # pairs of a run that are held at a time

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


def chunks(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    iterator = iter(items)
    while chunk := tuple(islice(iterator, size)):
        yield chunk


class SortedRuns(Generic[K, V]):
    """Runs of pairs in one temporary file, which is gone with it. One reads at a time."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._ends: list[int] = []  # of the runs

    def __bool__(self) -> bool:
        return bool(self._ends)

    def add(self, pairs: Iterable[tuple[K, V]]) -> None:
        """Add a run. `pairs`: in the order of their keys."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # as long as this is there
            finalize(self, self._file.close)
        self._file.seek(self._ends[-1] if self._ends else 0)
        for chunk in chunks(pairs, CHUNK):
            pickle.dump(chunk, self._file, pickle.HIGHEST_PROTOCOL)
        self._ends.append(self._file.tell())

    def __iter__(self) -> Iterator[tuple[K, V]]:
        starts = [0, *self._ends[:-1]]
        return heapq.merge(*map(self._run, starts, self._ends), key=itemgetter(0))

    def _run(self, position: int, end: int) -> Iterator[tuple[K, V]]:
        assert self._file
        while position < end:
            self._file.seek(position)
            chunk = pickle.load(self._file)  # noqa: S301  # of this process
            position = self._file.tell()
            yield from chunk
