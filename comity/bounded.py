"""A dictionary that cannot grow without end: whatever sites or clients name, it holds what was put there last."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar

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
