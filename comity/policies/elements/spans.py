"""Items without the parts that may not be used.

removals(fields, spans) -> Removals       what the spans of elements cover
Cut(fields, removals)                     .fields without it, .moved(spans) for what else is said of them"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

Span = Sequence[Any]  # [field], [field, member of the list] or [field, first character, first one after it]
Ranges = list[tuple[int, int]]  # members of a list, or characters of a text; ascending, neither touching nor overlapping
Removals = dict[str, Ranges | None]  # field -> what of its value goes; None: all of it

_SEQUENCES = (str, list, tuple)


def removals(fields: Mapping[str, Any], spans: Iterable[Span]) -> Removals:
    """What the spans cover. One that does not fit its value covers all of it: somebody has altered it since."""
    found: dict[str, Ranges] = {}
    whole: Removals = {}
    for span in spans:
        field = span[0]
        value = fields.get(field)
        if not is_empty(value):
            covered = _range(value, span)
            if covered is None:
                whole[field] = None
            else:
                found.setdefault(field, []).append(covered)
    return {field: _merged(ranges) for field, ranges in found.items()} | whole


def _range(value: Any, span: Span) -> tuple[int, int] | None:
    """None: the whole value."""
    if len(span) == 2 and isinstance(value, list | tuple) and span[1] < len(value):
        return span[1], span[1] + 1
    if len(span) == 3 and isinstance(value, str) and span[1] <= span[2] <= len(value):
        return span[1], span[2]
    return None


def _merged(ranges: Ranges) -> Ranges:
    merged: Ranges = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return merged


class Cut:
    """Fields without what is removed, as a copy."""

    def __init__(self, fields: Mapping[str, Any], removed: Removals, gone: Collection[str] = ()) -> None:
        """`gone`: fields that are removed with their names."""
        removed = removed | dict.fromkeys(gone)
        self._before = fields
        self._removed = removed
        self._places = {field: _Places(ranges) for field, ranges in removed.items() if ranges is not None}
        left = {**fields, **{field: self._rest(field) for field in removed if field in fields}}
        self.fields = {field: value for field, value in left.items() if field not in gone}

    def _rest(self, field: str) -> Any:
        value = self._before[field]
        return self._places[field].rest(value) if field in self._places else emptied(value)

    def moved(self, spans: Iterable[Span]) -> list[Span]:
        """Where it is now what the spans cover; what is gone is nowhere."""
        return [moved for span in spans if (moved := self._moved(span)) is not None]

    def _moved(self, span: Span) -> Span | None:
        field = span[0]
        if field not in self._removed:
            return span
        if is_empty(self.fields.get(field)):
            return None
        covered = _range(self._before[field], span)
        if covered is None:
            return [field]
        start, end = (self._places[field].after(place) for place in covered)
        if start == end:
            return None
        return [field, start] if len(span) == 2 else [field, start, end]

    def shortens(self, spans: Iterable[Span]) -> bool:
        """Whether a part of what the spans cover is gone, and a part is left."""
        lost = left = False
        for span in spans:
            value = self._before.get(span[0])
            if not is_empty(value):
                start, end = _range(value, span) or (0, len(value) if isinstance(value, _SEQUENCES) else 1)
                kept = self._kept(span[0], start, end)
                lost, left = lost or kept < end - start, left or kept > 0
        return lost and left

    def _kept(self, field: str, start: int, end: int) -> int:
        if field not in self._removed:
            return end - start
        places = self._places.get(field)
        return places.after(end) - places.after(start) if places else 0


class _Places:
    """Where a place of a text or a list is, once ranges of it are removed."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._starts = [start for start, _ in ranges]
        self._gone = [0, *accumulate(end - start for start, end in ranges)]  # before each range

    def after(self, place: int) -> int:
        before = bisect_right(self._starts, place)  # ranges that begin here or before it
        if not before:
            return place
        start, end = self._ranges[before - 1]
        return place - self._gone[before - 1] - (min(place, end) - start)

    def rest(self, value: Any) -> Any:
        kept = [value[start:end] for start, end in self._left(len(value))]
        return "".join(kept) if isinstance(value, str) else type(value)(member for part in kept for member in part)

    def _left(self, length: int) -> Iterator[tuple[int, int]]:
        at = 0
        for start, end in self._ranges:
            yield at, start
            at = end
        yield at, length


def emptied(value: Any) -> Any:
    """Nothing, of the same type where that has one."""
    return type(value)() if isinstance(value, str | bytes | list | tuple | dict) else None


def is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | bytes | list | tuple | dict) and not value)
