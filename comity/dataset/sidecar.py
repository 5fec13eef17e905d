"""Tags in a file of their own: a crawl with `COMITY_TAG = "sidecar:FILE"` writes it, datasets are read with it.

A row, a line of JSON, for each item:

    {"id": "9f86d0...", "url": "https://example.com/a", "permissions": {...}}

`id` is that of the item's content, by item_id: whoever has the item can compute it, in whatever order they come. `url` is that of
the page. The same content of several pages is bound by all of them; of one page the last row counts."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial, reduce
from pathlib import Path
from typing import IO, Any
from weakref import finalize

from comity.bounded import Bounded
from comity.dataset.records import (
    FIELD,
    SPARE_FIELD,
    DatasetError,
    PositionedRecord,
    Record,
    parsed,
)
from comity.dataset.tags.sources import GUESSED, RawTag
from comity.policies import Agent
from comity.policies.tag import TagError, join_tags, read_tag

MAX_JOINED = (
    1_000  # tags of content with several rows that are remembered: each takes a look at all of them
)
_EXACT = 2**53  # whole numbers up to it are the same as floats
_ROW = re.compile(
    rb'\{"id":"([0-9a-f]{64})"(?:,"url":("(?:[^"\\]|\\.)*"))?'
)  # how it begins, though it may be cut off


def item_id(item: Record) -> str:
    """SHA-256, in hexadecimal, of an item without its tag, as JSON has it.

    The order of its fields does not count, nor do fields that are null, nor whether a whole number is written as 1 or 1.0."""
    present = {name: _plain(value) for name, value in item.items() if value is not None}
    return hashlib.sha256(
        json.dumps(present, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return (
        {name: _plain(member) for name, member in value.items()}
        if isinstance(value, dict)
        else value
    )


def row(item: Record, url: str, tag: dict[str, Any]) -> bytes:
    """A line."""
    return (
        json.dumps({"id": item_id(item), "url": url, FIELD: tag}, separators=(",", ":")).encode()
        + b"\n"
    )


class Sidecar:
    """A source of tags. It takes 16 octets a row, can be pickled, and reads each tag when it is asked for."""

    fields = None

    def __init__(self, path: Path) -> None:
        """DatasetError where it cannot be read. What is no row is passed over: nothing is permitted by it."""
        self.path = path
        self._file: IO[bytes] | None = None
        self._joined: Bounded[str, Any] = Bounded(MAX_JOINED)
        keys, offsets, offset = array("Q"), array("Q"), 0
        try:
            with path.open("rb") as file:
                for line in file:
                    if match := _ROW.match(line):
                        keys.append(_key(match[1].decode()))
                        offsets.append(offset)
                    offset += len(line)
        except OSError as error:
            raise DatasetError(f"{path} cannot be read: {error.strerror}") from None
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._keys = array("Q", (keys[number] for number in order))
        self._offsets = array("Q", (offsets[number] for number in order))

    def __len__(self) -> int:
        """Rows."""
        return len(self._keys)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None, "_joined": Bounded(MAX_JOINED)}

    def find(self, record: Record) -> RawTag:
        """The tag of its content. WARC files and exports carry their tags in a field, also where the crawl wrote a sidecar."""
        try:
            tags = [] if isinstance(record, PositionedRecord) else self._tags_of(item_id(record))
        except RecursionError:  # of what is so deep no row was written
            raise TagError("no-tag") from None
        if not tags:
            return GUESSED.find(record)
        [tag] = tags
        return RawTag(tag, SPARE_FIELD if FIELD in record else FIELD)

    def _tags_of(self, identity: str) -> list[Any]:
        """The tag of an identity, that of all pages with this content joined; none where it has no row."""
        if identity in self._joined:
            return [self._joined[identity]]
        rows = [*self._tags(identity)]
        if len(rows) < 2:
            return [tag for _, tag in rows]
        joined = self._joined[identity] = _joined([*dict(rows).values()])
        return [joined]

    def _tags(self, identity: str) -> Iterator[tuple[bytes, Any]]:
        """URL and tag of each row, in their order. A row that was cut off counts: nobody knows what it would have refused."""
        key = _key(identity)
        for number in range(bisect_left(self._keys, key), len(self._keys)):
            if self._keys[number] != key:
                break
            line = self._line(self._offsets[number])
            match = _ROW.match(line)
            if match and match[1].decode() == identity:
                yield match[2] or b"", _tag_of(line)

    def _line(self, offset: int) -> bytes:
        if self._file is None:
            self._file = self.path.open("rb")
            finalize(self, self._file.close)
        self._file.seek(offset)
        return self._file.readline()


def _joined(tags: list[Any]) -> Any:
    """Return one tag of those of several pages: where one is not understood that one, which permits nothing."""
    for tag in tags:
        try:
            read_tag(tag)
        except TagError:
            return tag
    return reduce(partial(join_tags, Agent(tags[0]["agent"])), tags)


def _key(identity: str) -> int:
    """Return the first 64 bits of an identity, which is hexadecimal."""
    return int(identity[:16], 16)


def _tag_of(line: bytes) -> Any:
    """The tag of a row; something that is none, where the row was cut off."""
    try:
        return parsed(line).get(FIELD) or {}
    except (ValueError, RecursionError):
        return {"cut": "off"}
