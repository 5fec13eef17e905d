"""Caches of limited size, so that sites and clients cannot fill the memory.

Bounded       keeps the entries that were added last
BoundedSize   keeps the entries that were put or read last, up to a number of octets
BoundedSet    keeps digests of octet strings, in memory of a fixed size
ByObject      keeps the entries of objects that are in memory"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Generic, TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")

# Of a BoundedSet.
DIGEST = 12  # octets of a digest: two of 10^9 are equal once in 10^11 crawls
PLACES = 16  # digests in a bucket
BUCKET = PLACES * DIGEST  # octets


class Bounded(OrderedDict[K, V]):
    """A cache of at most `most` entries. A further entry replaces the oldest one.

    An entry is not kept longer by reading it, or by giving its key another value.
    `move_to_end(key)` makes it the newest one."""

    __slots__ = ("most",)  # some objects have a cache for each site

    def __init__(self, most: int) -> None:
        """`most`: the largest number of entries, at least 1. ValueError: it is smaller."""
        if most < 1:
            raise ValueError(f"`most` is {most}: write 1 or more")
        super().__init__()
        self.most = most

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.most,), None, None, iter(self.items())

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.most and key not in self:
            self.popitem(last=False)
        super().__setitem__(key, value)


class BoundedSize(Generic[K, V]):
    """A cache of at most `most` entries with `most_octets` octets together.

    The newest entry always stays, even if it is larger than that."""

    def __init__(self, most: int, most_octets: int, size: Callable[[V], int]) -> None:
        """`size`: a function that returns the octets of an entry."""
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._most = most
        self._most_octets = most_octets
        self._size = size
        self._octets = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return an entry, and make it the newest one. None means that it is not in the cache."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: K, value: V) -> None:
        """Add or replace an entry, and drop the oldest ones if there are too many."""
        if key in self._entries:
            self._octets -= self._size(self._entries.pop(key))
        self._entries[key] = value
        self._octets += self._size(value)
        while len(self._entries) > 1 and (
            len(self._entries) > self._most or self._octets > self._most_octets
        ):
            self._octets -= self._size(self._entries.popitem(last=False)[1])


class BoundedSet:
    """A set of the last `most` octet strings, roughly, in memory of fixed size.

    It takes 12 octets for each of them from the beginning. Keys of a Bounded take 160 to 230, and
    its memory grows until it is full.

    It keeps digests in buckets. A new digest takes the place of the oldest one in its bucket."""

    def __init__(self, most: int) -> None:
        self._buckets = max(1, most // PLACES)
        self.clear()

    def clear(self) -> None:
        self._digests = bytearray(self._buckets * BUCKET)  # an empty place is all zeros

    def add(self, octets: bytes) -> None:
        digest, bucket = self._find(octets)
        digests = self._digests[bucket : bucket + BUCKET]
        if digest not in digests:
            self._digests[bucket : bucket + BUCKET] = digest + digests[:-DIGEST]

    def __contains__(self, octets: bytes) -> bool:
        digest, bucket = self._find(octets)
        return self._digests.find(digest, bucket, bucket + BUCKET) >= 0

    def _find(self, octets: bytes) -> tuple[bytes, int]:
        """Return the digest of the string, and the index at which its bucket begins."""
        digest = blake2b(octets, digest_size=DIGEST).digest()
        return digest, int.from_bytes(digest[:6], "big") % self._buckets * BUCKET


class ByObject(dict[ref[K], V]):
    """Values by object: `values[ref(key)]`. A value goes when its object goes.

    Not a WeakKeyDictionary: each look-up there takes one to three calls of Python, here none."""

    def put(self, key: K, value: V) -> None:
        """Add or replace the value of an object."""
        self[ref(key, self.pop)] = value
