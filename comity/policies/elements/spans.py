"""Remove from an item the parts that may not be used.

removals(fields, spans) -> Removals       the parts that the spans of elements cover
Cut(fields, removals)                     .fields are the other parts, .moved(spans) their spans"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

# [field], [field, member of the list] or [field, first character, first character after it].
Span = Sequence[Any]
# A span before it is written as JSON.
FieldSpan = tuple[str] | tuple[str, int] | tuple[str, int, int]
# Spans of one field. If there are more, they are not distinguished.
MAX_SPANS = 10_000
# Members of a list or characters of a text, ascending, without contact or overlap.
Ranges = list[tuple[int, int]]
# Field -> the parts of its value to remove. None: the whole value.
Removals = dict[str, Ranges | None]

_SEQUENCES = (str, list, tuple)


def removals(fields: Mapping[str, Any], spans: Iterable[Span]) -> Removals:
    """Return the parts that the spans cover.

    A span that does not fit its value covers the whole value, because the value was changed after
    the span was recorded."""
    ranges_of: dict[str, Ranges] = {}
    whole: Removals = {}
    for span in spans:
        field = span[0]
        value = fields.get(field)
        if not is_empty(value):
            covered = _range(value, span)
            if covered is None:
                whole[field] = None
            else:
                ranges_of.setdefault(field, []).append(covered)
    merged = {
        field: merge(part for part in ranges if part[0] < part[1])
        for field, ranges in ranges_of.items()
    }
    return merged | whole


def _range(value: Any, span: Span) -> tuple[int, int] | None:
    """Return the range of a value that a span covers. None: the whole value."""
    if len(span) == 2 and isinstance(value, list | tuple) and span[1] < len(value):
        return span[1], span[1] + 1
    if len(span) == 3 and isinstance(value, str) and span[1] <= span[2] <= len(value):
        return span[1], span[2]
    return None


def merge(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges in ascending order. Ranges that touch or overlap become one."""
    merged: Ranges = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


class Cut:
    """A copy of the fields, without the removed parts."""

    def __init__(
        self, fields: Mapping[str, Any], removed: Removals, dropped: Collection[str] = ()
    ) -> None:
        """`dropped` are the fields to remove completely, with their names."""
        removed = removed | dict.fromkeys(dropped)
        self._before = fields
        self._removed = removed
        self._shifts = {
            field: _Shifts(ranges) for field, ranges in removed.items() if ranges is not None
        }
        remaining = {**fields, **{field: self._rest(field) for field in removed if field in fields}}
        self.fields = {field: value for field, value in remaining.items() if field not in dropped}

    def _rest(self, field: str) -> Any:
        value = self._before[field]
        return self._shifts[field].rest(value) if field in self._shifts else empty_value(value)

    def moved(self, spans: Iterable[Span]) -> list[Span]:
        """Return the spans, moved to their places after the removal, without the removed parts."""
        return [moved for span in spans if (moved := self._move(span)) is not None]

    def _move(self, span: Span) -> Span | None:
        field = span[0]
        if field not in self._removed:
            return span
        if is_empty(self.fields.get(field)):
            return None
        covered = _range(self._before[field], span)
        if covered is None:
            return [field]
        start, end = (self._shifts[field].after(boundary) for boundary in covered)
        if start == end:
            return None
        return [field, start] if len(span) == 2 else [field, start, end]

    def shortens(self, spans: Iterable[Span]) -> bool:
        """Return True if a part of the spans is removed, and another part remains."""
        lost = remains = False
        for span in spans:
            value = self._before.get(span[0])
            if not is_empty(value):
                start, end = _range(value, span) or (
                    0,
                    len(value) if isinstance(value, _SEQUENCES) else 1,
                )
                count = self._count_kept(span[0], start, end)
                lost, remains = lost or count < end - start, remains or count > 0
        return lost and remains

    def _count_kept(self, field: str, start: int, end: int) -> int:
        if field not in self._removed:
            return end - start
        shifts = self._shifts.get(field)
        return shifts.after(end) - shifts.after(start) if shifts else 0


class _Shifts:
    """Positions in a text or a list after ranges of it are removed."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._starts = [start for start, _ in ranges]
        self._lost = [0, *accumulate(end - start for start, end in ranges)]  # before each range

    def after(self, boundary: int) -> int:
        """Return the position of a boundary after the removal."""
        before = bisect_right(self._starts, boundary)  # ranges that begin here or before it
        if not before:
            return boundary
        start, end = self._ranges[before - 1]
        return boundary - self._lost[before - 1] - (min(boundary, end) - start)

    def rest(self, value: Any) -> Any:
        """Return the value without the ranges."""
        pieces = [value[start:end] for start, end in self._kept_ranges(len(value))]
        return (
            "".join(pieces)
            if isinstance(value, str)
            else type(value)(member for part in pieces for member in part)
        )

    def _kept_ranges(self, length: int) -> Iterator[tuple[int, int]]:
        position = 0
        for start, end in self._ranges:
            yield position, start
            position = end
        yield position, length


def empty_value(value: Any) -> Any:
    """Return an empty value of the same type; None for types that have no empty value."""
    return type(value)() if isinstance(value, str | bytes | list | tuple | dict) else None


def is_empty(value: Any) -> bool:
    """Return True for None and for a text or collection without members."""
    return value is None or (isinstance(value, str | bytes | list | tuple | dict) and not value)
