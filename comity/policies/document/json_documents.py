"""JSON as it came: its value, and its text without some members, everything else as it is written.

    Json(octets)           one document, or several, one after the other, as in NDJSON
    Json.value             of several: a list of their values
    Json.without(paths)    numbers, escapes and white space stay as they are
RFC 8259. A name that stands twice in an object is not read: readers differ in which of the two counts (section-4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 300  # objects and arrays within each other

_CONTAINERS = (dict, list)
JsonPath = tuple[
    str | int, ...
]  # names of members, and places in arrays and among documents, from the top

_SPACE = re.compile(
    r"[ \t\r\n\x1e]*+"
)  # and what stands before each document of a JSON text sequence (RFC 7464)
_GAP = re.compile(
    r"[ \t\r\n]*+[,:]?+[ \t\r\n]*+"
)  # between a name and its value, and between members


class Json:
    """A document of JSON. ValueError where it is none that is read, or deeper than is read."""

    def __init__(self, octets: bytes) -> None:
        self._encoding = json.detect_encoding(octets)
        self._text = octets.decode(self._encoding)
        self._decoder = json.JSONDecoder(object_pairs_hook=_object)
        try:
            values = self._values()
        except RecursionError:
            raise ValueError("it is too deep") from None
        if not values or _is_deep(values):
            raise ValueError("it is empty, or too deep")
        self._is_several = len(values) > 1
        self.value = values if self._is_several else values[0]

    def _values(self) -> list[Any]:
        values, text = [], self._text
        position = _end(_SPACE, text, 0)
        while position < len(text):
            value, position = self._decoder.raw_decode(text, position)
            values.append(value)
            position = _end(_SPACE, text, position)
        return values

    def without(self, paths: Iterable[JsonPath]) -> bytes:
        """The octets without these members. Linear in the text."""
        removed: dict[Any, Any] = {}
        for path in paths:
            ways = removed
            for step in path[:-1]:
                ways = ways.setdefault(step, {})
                if ways is _ALL:  # what holds it goes already
                    break
            else:
                ways[path[-1]] = _ALL
        pieces, position = [], 0
        for start, end in sorted(
            _Cuts(self._text, self._decoder).find(removed, is_several=self._is_several)
        ):
            pieces.append(self._text[position:start])
            position = end
        return "".join((*pieces, self._text[position:])).encode(self._encoding)


_ALL: dict[Any, Any] = {"": None}  # of a tree of what goes: all of it


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return members


def _is_deep(values: list[Any]) -> bool:
    level = [value for value in values if type(value) in _CONTAINERS]
    for _ in range(MAX_DEPTH):
        level = [
            member
            for value in level
            for member in (value.values() if type(value) is dict else value)
            if type(member) in _CONTAINERS
        ]
        if not level:
            return False
    return True


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


class _Container:
    """An object or an array that something goes from, at one of its members."""

    def __init__(self, ways: dict[Any, Any], *, is_object: bool) -> None:
        self.ways = ways
        self.is_object = is_object
        self.index = -1  # of the member
        self.start = self.end = 0  # of the member, with its name
        self.is_gone = False  # the member goes
        self.is_kept = False  # one before it stays
        self.from_start: int | None = (
            None  # where what goes begins, as long as nothing stays before it
        )


class _Cuts:
    """The ranges of members in a text, each with one of the commas beside it."""

    def __init__(self, text: str, decoder: json.JSONDecoder) -> None:
        self._text = text
        self._decode = decoder.raw_decode
        self._cuts: list[tuple[int, int]] = []

    def find(self, removed: dict[Any, Any], *, is_several: bool) -> list[tuple[int, int]]:
        text, index = self._text, 0
        position = _end(_SPACE, text, 0)
        while position < len(text):
            position = self._value(position, removed.get(index) if is_several else removed)
            position, index = _end(_SPACE, text, position), index + 1
        return self._cuts

    def _value(self, position: int, ways: dict[Any, Any] | None) -> int:
        """Return the end of the value that begins here. No recursion: a value is as deep as it likes."""
        text = self._text
        if not self._is_entered(position, ways):
            return int(self._decode(text, position)[1])
        stack = [self._entered(position, ways)]
        position = _end(_SPACE, text, position + 1)
        while stack:
            top = stack[-1]
            if text[position] in "]}":
                if top.from_start is not None:
                    self._cuts.append((top.from_start, top.end))
                stack.pop()
                position += 1
                if stack:
                    position = self._member_ends(stack[-1], position)
                continue
            position, inner = self._member_begins(top, position)
            if not top.is_gone and self._is_entered(position, inner):
                stack.append(self._entered(position, inner))
                position = _end(_SPACE, text, position + 1)
            else:
                position = self._member_ends(top, int(self._decode(text, position)[1]))
        return position

    def _is_entered(self, position: int, ways: dict[Any, Any] | None) -> bool:
        return bool(ways) and self._text[position] in "[{"

    def _entered(self, position: int, ways: dict[Any, Any] | None) -> _Container:
        return _Container(ways or {}, is_object=self._text[position] == "{")

    def _member_begins(self, top: _Container, position: int) -> tuple[int, dict[Any, Any] | None]:
        """Return where the value of the member begins, and what goes of that."""
        top.start = position
        top.index += 1
        step: str | int = top.index
        if top.is_object:
            step, position = self._decode(self._text, position)
            position = _end(_GAP, self._text, position)
        if top.from_start is not None:
            self._cuts.append((top.from_start, top.start))
            top.from_start = None
        ways = top.ways.get(step)
        top.is_gone = ways is _ALL
        return position, ways

    def _member_ends(self, top: _Container, position: int) -> int:
        """Return where the next member begins, or the container ends."""
        if not top.is_gone:
            top.is_kept = True
        elif top.is_kept:
            self._cuts.append((top.end, position))
        else:
            top.from_start = top.start
        top.end = position
        return _end(_GAP, self._text, position)
