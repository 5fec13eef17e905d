"""Dictionaries that cannot grow without end, whatever sites or clients name.

Bounded       holds what was put there last
BoundedSize   holds what was put there or asked for last, within a number of octets"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(OrderedDict[K, V]):
    """A cache of at most `most` entries: one more takes the place of the entry that was put there longest ago.

    To read an entry does not keep it longer. Where it should, `move_to_end(key)` makes it the last one."""

    __slots__ = ("most",)  # of some there is one for each site

    def __init__(self, most: int) -> None:
        """`most`: entries, at least one."""
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
    """A cache of at most `most` entries and `most_octets` octets of them; the last entry stays, however large it is."""

    def __init__(self, most: int, most_octets: int, size: Callable[[V], int]) -> None:
        """`size`: octets of an entry."""
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._most = most
        self._most_octets = most_octets
        self._size = size
        self._octets = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: K, value: V) -> None:
        if key in self._entries:
            self._octets -= self._size(self._entries.pop(key))
        self._entries[key] = value
        self._octets += self._size(value)
        while len(self._entries) > 1 and (
            len(self._entries) > self._most or self._octets > self._most_octets
        ):
            self._octets -= self._size(self._entries.popitem(last=False)[1])
