"""An external sort of pairs of a key and a value. The pairs may be too many for memory.

runs = SortedRuns()
runs.add(sorted(pairs))         # several times: each call writes a run to a temporary file
for key, value in runs: ...     # all pairs, sorted by key"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import IO, Generic, TypeVar
from weakref import finalize

CHUNK = 256  # default of `chunk`

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


def chunks(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield the items in tuples of `size`. The last tuple may be shorter."""
    iterator = iter(items)
    while chunk := tuple(islice(iterator, size)):
        yield chunk


class SortedRuns(Generic[K, V]):
    """Sorted runs of pairs in a temporary file, which is removed with this object.

    Only one iterator at a time may be in use."""

    def __init__(self, chunk: int = CHUNK) -> None:
        """`chunk`: the number of pairs of a run that are in memory at a time."""
        self._chunk = chunk
        self._file: IO[bytes] | None = None
        self._ends: list[int] = []  # ends of the runs in the file
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._ends)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self._count

    def add(self, pairs: Iterable[tuple[K, V]]) -> None:
        """Add a run. `pairs`: sorted by key."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by the finalizer
            finalize(self, self._file.close)
        self._file.seek(self._ends[-1] if self._ends else 0)
        for chunk in chunks(pairs, self._chunk):
            pickle.dump(chunk, self._file, pickle.HIGHEST_PROTOCOL)
            self._count += len(chunk)
        self._ends.append(self._file.tell())

    def __iter__(self) -> Iterator[tuple[K, V]]:
        starts = [0, *self._ends[:-1]]
        return heapq.merge(*map(self._run, starts, self._ends), key=itemgetter(0))

    def _run(self, position: int, end: int) -> Iterator[tuple[K, V]]:
        assert self._file
        while position < end:
            self._file.seek(position)
            chunk = pickle.load(self._file)  # noqa: S301  # this process wrote it
            position = self._file.tell()
            yield from chunk
