"""Tags in a separate file, the sidecar.

A crawl with `COMITY_TAG = "sidecar:FILE"` writes the file, and datasets are read with it. Each item
has a row, which is a line of JSON:

    {"id": "9f86d0...", "url": "https://example.com/a", "permissions": {...}}

`id` is the `item_id` of the item. It is computed from the item alone, so the order of the rows does
not matter. `url` is the URL of the page. If items of several pages are equal, they share an `id`,
and the tags of all these pages apply. If there are several rows for a page, the last row counts."""

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
    ARRIVED_AT,
    FIELD,
    REQUEST,
    SPARE_FIELD,
    DatasetError,
    PositionedRecord,
    Record,
    parse_json,
)
from comity.dataset.tags.sources import GUESSED, RawTag
from comity.policies import Agent
from comity.policies.tag import TagError, join_tags, read_tag

MAX_JOINED = 1_000  # the maximum number of joined tags in memory, one for each `id`
_EXACT = 2**53  # whole numbers up to this are exact as floats
# The beginning of a row. The end of the row may be missing.
_ROW = re.compile(rb'\{"id":"([0-9a-f]{64})"(?:,"url":("(?:[^"\\]|\\.)*"))?')


def item_id(item: Record) -> str:
    """Return the SHA-256 of an item in JSON, in hexadecimal digits.

    `item`: without its tag. The order of fields, fields with null, the difference between 1 and
    1.0, and the fields that COMITY_ITEMS adds do not matter."""
    present = {
        name: _plain(value)
        for name, value in item.items()
        if value is not None and name not in (REQUEST, ARRIVED_AT)
    }
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
    """Return the row of an item, as a line. `item`: without its tag. `url`: the URL of its page."""
    return (
        json.dumps({"id": item_id(item), "url": url, FIELD: tag}, separators=(",", ":")).encode()
        + b"\n"
    )


class Sidecar:
    """A source of tags. It can be pickled, and takes 16 octets a row.

    Each tag is read from the file when it is needed."""

    fields = None

    def __init__(self, path: Path) -> None:
        """DatasetError: the file cannot be read. Invalid rows are ignored: they permit nothing."""
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
        """Return the number of rows."""
        return len(self._keys)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None, "_joined": Bounded(MAX_JOINED)}

    def find(self, record: Record) -> RawTag:
        """Return the tag of a record, from its row. If it has no row, return the tag in its fields.

        Records of WARC files and of exports have their tags in a field, even if the crawl wrote a
        sidecar. TagError: the record has no tag, or several."""
        try:
            tags = [] if isinstance(record, PositionedRecord) else self._tags_of(item_id(record))
        except RecursionError:  # a record with such deep nesting has no row
            raise TagError("no-tag") from None
        if not tags:
            return GUESSED.find(record)
        [tag] = tags
        return RawTag(tag, SPARE_FIELD if FIELD in record else FIELD)

    def _tags_of(self, identity: str) -> list[Any]:
        """Return the tag for an `item_id`, in a list of one. If there is no row, the list is empty.

        The tags of several pages with equal items are joined to one tag."""
        if identity in self._joined:
            return [self._joined[identity]]
        rows = [*self._tags(identity)]
        if len(rows) < 2:
            return [tag for _, tag in rows]
        joined = self._joined[identity] = _join([*dict(rows).values()])
        return [joined]

    def _tags(self, identity: str) -> Iterator[tuple[bytes, Any]]:
        """Yield the URL and the tag of each row for an `item_id`, in the order of the rows.

        An incomplete row is included, because its missing part may have refused something."""
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


def _join(tags: list[Any]) -> Any:
    """Join the tags of several pages. If a tag is invalid, return that one: it permits nothing."""
    for tag in tags:
        try:
            read_tag(tag)
        except TagError:
            return tag
    return reduce(partial(join_tags, Agent(tags[0]["agent"])), tags)


def _key(identity: str) -> int:
    """Return the first 64 bits of an identity, which has hexadecimal digits."""
    return int(identity[:16], 16)


def _tag_of(line: bytes) -> Any:
    """Return the tag of a row. If the row is incomplete, return an object that is not a tag."""
    try:
        return parse_json(line).get(FIELD) or {}
    except (ValueError, RecursionError):
        return {"cut": "off"}
