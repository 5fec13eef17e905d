"""The captured page from which a record of another program was made, as far as it is available."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from comity.dataset.records import Record, Repeating, every_value
from comity.dataset.records import moment_of as moment_of
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.urls import origin_or_empty, target_of

Fields = tuple[tuple[bytes, bytes], ...]  # names and values of a header

_HEADER_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*)")


PART_OF_PAGE = "a part of the page (HTTP status 206)"
# The media type of revisits in CDX indexes. The record has no body.
REVISIT = "warc/revisit"


class CapturedPage(NamedTuple):
    """A page that another crawler has captured."""

    url: str
    """The URL. Empty if the record has none."""
    captured_at: datetime | None
    """The aware moment of the capture. None if the record has no readable date."""
    fields: Fields = ()
    """The header fields of the answer."""
    body: bytes | None = None
    """The body without content codings. None if it is not available."""
    status: int = 200
    """The HTTP status of the answer."""
    method: str = "GET"
    """The method of the request."""
    crawler: str = ""
    """The User-Agent of the crawler. Empty if it is unknown."""
    unread: str = ""
    """The reason why statements of the page may be missing, e.g. that the capture is cut off. Empty
    if the page is complete."""
    media_types: str = ""
    """Media types, separated by commas, for a page without the header field Content-Type."""

    sha256: str = ""
    """The SHA-256 of the body, in hexadecimal, if the body is not available. Empty: unknown."""
    beside: tuple[CapturedPage, ...] = ()
    """Further pages that must permit a use too, e.g. the page that shows this image."""
    is_indexed: bool = False
    """True for a row of an index of captures, which has rows of policy files too."""

    @property
    def header(self) -> Fields:
        """The header fields, with the media type if the record has it in a field of its own."""
        if not self.media_types or any(name.lower() == b"content-type" for name, _ in self.fields):
            return self.fields
        return (*self.fields, (b"content-type", self.media_types.encode("ascii")))

    @property
    def left_out(self) -> str:
        """The reason for leaving the capture out, e.g. "status 404". Empty if it is a page."""
        if REVISIT in self.media_types.split(","):
            return "revisit"
        if self.is_indexed and origin_or_empty(self.url) and target_of(self.url) in WELL_KNOWN:
            return "policy file"
        return "" if self.status // 100 == 2 else f"status {self.status}"


class CapturedRecord(Record):
    """A record of a WARC file, with its page and its earlier tags."""

    __slots__ = ("earlier", "left_out", "page", "record_id", "target")

    def __init__(
        self,
        record: Record,
        page: CapturedPage | None,
        *,
        earlier: Iterable[Any] = (),
        left_out: str = "",
    ) -> None:
        """`earlier`: the tags that the record already has in the file. `left_out`: the reason why
        the record is not a page. Then `page` is None. "" if it is a page.

        The attributes `record_id` and `target` are the WARC-Record-ID and the URL of the WARC
        record. They are "" until the reader sets them."""
        super().__init__(record)
        self.page = page
        self.earlier = tuple(earlier)
        self.left_out = left_out
        self.record_id = self.target = ""


class JudgedRecord(Record):
    """A record of a table that was judged before, with its tag."""

    __slots__ = ("answer",)

    def __init__(self, record: Record, answer: dict[str, Any] | None) -> None:
        """`answer`: the tag. None: the record must be kept apart."""
        super().__init__(record)
        self.answer = answer


def fields_of(value: Any) -> Fields:
    """Return header fields from a value: an object, a list of pairs, or the header's text.

    ValueError, TypeError, KeyError or RecursionError: the value has none of these forms."""
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
