"""Records without the parts that may not be used.

removals(record, spans) -> Removals         what the spans of elements cover
Cut(record, removals)                       .record without it, .moved(span) for what else is said of it
beyond(record, limit) -> Removals           what is more than a permission allows to show"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from comity.dataset.records import IDENTITY, Record
from comity.dataset.tags import Span
from comity.policies.snippets import snippet
from comity.policies.values import UseDecision

Ranges = list[tuple[int, int]]  # members of a list, or characters of a text; ascending, neither touching nor overlapping
Removals = dict[str, Ranges | None]  # field -> what of its value goes; None: all of it


def removals(record: Record, spans: Iterable[Span]) -> Removals:
    """What the spans cover. One that does not fit its value covers all of it: somebody has altered it since."""
    found: dict[str, Ranges] = {}
    whole: Removals = {}
    for span in spans:
        field = span[0]
        value = record.get(field)
        if not is_empty(value):
            covered = _range(value, span)
            if covered is None:
                whole[field] = None
            else:
                found.setdefault(field, []).append(covered)
    return {field: _merged(ranges) for field, ranges in found.items()} | whole


def _range(value: Any, span: Span) -> tuple[int, int] | None:
    """None: the whole value."""
    if len(span) == 2 and isinstance(value, list) and span[1] < len(value):
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
    """A record without what is removed. `record` is a copy; its tag is as it was."""

    def __init__(self, record: Record, removed: Removals) -> None:
        self._before = record
        self._removed = removed
        self._places = {field: _Places(ranges) for field, ranges in removed.items() if ranges is not None}
        self.record = record | {field: self._rest(field) for field in removed if field in record}

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
        if is_empty(self.record.get(field)):
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
                start, end = _range(value, span) or (0, len(value) if isinstance(value, list | str) else 1)
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
        return "".join(kept) if isinstance(value, str) else [member for part in kept for member in part]

    def _left(self, length: int) -> Iterator[tuple[int, int]]:
        at = 0
        for start, end in self._ranges:
            yield at, start
            at = end
        yield at, length


def emptied(value: Any) -> Any:
    """Nothing, of the same type where that has one."""
    return type(value)() if isinstance(value, str | list | dict) else None


def is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def content(record: Record) -> list[str]:
    """The fields that hold something of the page."""
    return [field for field, value in record.items() if field not in IDENTITY and not is_empty(value)]


def beyond(record: Record, limit: UseDecision) -> Removals:
    """What goes for the record to show no more text than `max_chars` and `max_words` of the limit permit.

    `text`, or else the first text, is cut to the limit, and other fields stay as long as all together are within it. `title`
    counts by itself: it names the page beside its snippet."""
    removed: Removals = {}
    fields = content(record)
    texts = [field for field in fields if isinstance(record[field], str) and field != "title"]
    main = "text" if "text" in texts else next(iter(texts), "")
    shown: list[str] = []
    for field in sorted(fields, key=lambda field: field != main):  # the main text first, others as they come
        value = record[field]
        beside = [] if field == "title" else shown
        if fits(" ".join((*beside, *_texts(value))), limit):
            beside.extend(_texts(value))
        elif field in ("title", main) and isinstance(value, str):
            cut = snippet(value, limit)
            beside.append(cut)
            removed[field] = [(len(cut), len(value))]
        else:
            removed[field] = None
    return removed


def fits(text: str, limit: UseDecision) -> bool:
    """Whether it is no longer than `max_chars` and `max_words` of the limit permit."""
    is_short = limit.max_chars is None or len(text) <= limit.max_chars
    return is_short and (limit.max_words is None or len(text.split(None, limit.max_words)) <= limit.max_words)


def _texts(value: Any) -> Iterator[str]:
    """All of them, names of members too, as they come."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += reversed([one for member in value.items() for one in member])
        elif isinstance(value, list):
            pending += reversed(value)
