"""The page that a record of somebody else was made of, as far as it is at hand: by it the record is tagged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from comity.dataset.records import Record, Repeating, every_value
from comity.dataset.records import moment_of as moment_of

Fields = tuple[tuple[bytes, bytes], ...]  # of a header

_HEADER_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*)")


PART_OF_PAGE = "a part of the page (HTTP status 206)"


class CapturedPage(NamedTuple):
    """A page as somebody has captured it."""

    url: str  # "": the record has none
    captured_at: datetime | None  # aware; None: the record has no date that can be read
    fields: Fields = ()  # of its header
    body: bytes | None = None  # without content codings; None: it is not at hand
    status: int = 200
    method: str = "GET"  # of the request
    crawler: str = ""  # User-Agent by which it was captured; "": nobody knows
    unread: str = ""  # why the capture does not tell all that the page says: it is cut off, say
    media_types: str = ""  # with commas between, of a page without the header field

    @property
    def header(self) -> Fields:
        """The header fields, and the media type of a record that has it apart from them."""
        if not self.media_types or any(name.lower() == b"content-type" for name, _ in self.fields):
            return self.fields
        return (*self.fields, (b"content-type", self.media_types.encode("ascii")))

    @property
    def left_out(self) -> str:
        """Why the capture is no page; "" if it is one."""
        return "" if self.status // 100 == 2 else f"status {self.status}"


class CapturedRecord(Record):
    """A record of a WARC file: the page, and what is to be kept of it besides."""

    __slots__ = ("earlier", "left_out", "page")

    def __init__(
        self,
        record: Record,
        page: CapturedPage | None,
        *,
        earlier: Iterable[Any] = (),
        left_out: str = "",
    ) -> None:
        """`earlier`: tags that were written with it. `left_out`: why it is no page: then `page` is None."""
        super().__init__(record)
        self.page = page
        self.earlier = tuple(earlier)
        self.left_out = left_out


def fields_of(value: Any) -> Fields:
    """The header fields that a value means: an object, a list of pairs, or text as it was sent.

    ValueError, TypeError, KeyError or RecursionError where it is none of these: nobody knows what they state."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        text = value.strip()
        if text.startswith(("{", "[")):
            return fields_of(json.loads(text, object_pairs_hook=every_value))
        lines = re.sub(r"\r?\n[ \t]+", " ", text).splitlines()
        matches = [
            _HEADER_LINE.fullmatch(line) for line in lines if line and not line.startswith("HTTP/")
        ]
        pairs: Iterable[Any] = [match.groups() if match else None for match in matches]
    else:
        pairs = (
            value.pairs
            if isinstance(value, Repeating)
            else value.items()
            if isinstance(value, Mapping)
            else value
        )
    fields: list[tuple[bytes, bytes]] = []
    for pair in pairs:
        name, values = (pair["name"], pair["value"]) if isinstance(pair, Mapping) else pair
        members = values if isinstance(values, list | tuple) else (values,)
        fields += [(_octets(name), _octets(member)) for member in members if member is not None]
    return tuple(fields)


def _octets(text: Any) -> bytes:
    if not isinstance(text, str | int | float):
        raise TypeError
    return str(text).encode("utf-8", "replace")
