"""Read JSON, and remove members from its text without a change to the rest.

    Json(octets)           one document, or several in sequence, as in NDJSON
    Json.value             the value; for several documents a list of their values
    Json.without(paths)    the octets without some members

The rest of the text keeps its numbers, escapes and white space. RFC 8259. An object with the same
name twice is refused, because readers differ in which of the two counts (section-4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 300  # of nested objects and arrays

_CONTAINERS = (dict, list)
# Names of members, and indices in arrays and among documents, from the top.
JsonPath = tuple[str | int, ...]

# White space, and the mark before each document of a JSON text sequence (RFC 7464).
_SPACE = re.compile(r"[ \t\r\n\x1e]*+")
# The characters between a name and its value, and between members.
_GAP = re.compile(r"[ \t\r\n]*+[,:]?+[ \t\r\n]*+")


class Json:
    """A JSON document, or several in sequence.

    ValueError: it is not valid, has a name twice in an object, or is nested more than MAX_DEPTH.

    Attributes:
        value: the value; for several documents a list of their values."""

    def __init__(self, octets: bytes) -> None:
        self._encoding = json.detect_encoding(octets)
        self._text = octets.decode(self._encoding)
        self._decoder = json.JSONDecoder(object_pairs_hook=_object)
        try:
            values = self._values()
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if not values or _is_deep(values):
            raise ValueError("it is empty, or nested too deeply")
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
        """Return the octets without these members. Linear in the text."""
        removed: dict[Any, Any] = {}
        for path in paths:
            ways = removed
            for step in path[:-1]:
                ways = ways.setdefault(step, {})
                if ways is _ALL:  # a container of the member is removed already
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


# In the tree of removals: the whole value.
_ALL: dict[Any, Any] = {"": None}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a name twice")
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
    """An object or an array from which something is removed, with its current member.

    Attributes:
        ways: the tree of removals for this container.
        is_object: True for an object.
        index: index of the member.
        start, end: the range of the member in the text, with its name.
        is_gone: True if the member is removed.
        is_kept: True if a member before it is kept.
        from_start: start of the removed range, as long as no member before it is kept. None: there
            is no such range."""

    def __init__(self, ways: dict[Any, Any], *, is_object: bool) -> None:
        self.ways = ways
        self.is_object = is_object
        self.index = -1
        self.start = self.end = 0
        self.is_gone = False
        self.is_kept = False
        self.from_start: int | None = None


class _Cuts:
    """The ranges of members in a text, each with one of the commas next to it."""

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
        """Return the end of the value that begins here, without recursion: it may be deep."""
        text = self._text
        if not self._is_entered(position, ways):
            return int(self._decode(text, position)[1])
        stack = [self._enter(position, ways)]
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
                stack.append(self._enter(position, inner))
                position = _end(_SPACE, text, position + 1)
            else:
                position = self._member_ends(top, int(self._decode(text, position)[1]))
        return position

    def _is_entered(self, position: int, ways: dict[Any, Any] | None) -> bool:
        return bool(ways) and self._text[position] in "[{"

    def _enter(self, position: int, ways: dict[Any, Any] | None) -> _Container:
        return _Container(ways or {}, is_object=self._text[position] == "{")

    def _member_begins(self, top: _Container, position: int) -> tuple[int, dict[Any, Any] | None]:
        """Return the start of the member's value, and the tree of removals for it."""
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
        """Return the start of the next member, or the end of the container."""
        if not top.is_gone:
            top.is_kept = True
        elif top.is_kept:
            self._cuts.append((top.end, position))
        else:
            top.from_start = top.start
        top.end = position
        return _end(_GAP, self._text, position)
