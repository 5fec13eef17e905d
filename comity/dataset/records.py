"""Records: the items of a dataset, each a dict like a line of JSON Lines, with its tag."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from comity.bounded import Bounded

Record = dict[str, Any]  # a line of JSON Lines: the item's fields and its tag
FIELD = "permissions"  # the field of the tag, unless COMITY_TAG names another
SPARE_FIELD = "comity_permissions"  # the field of the tag if FIELD has other data
TAG_FIELDS = "\0tag"  # in a list of fields to read: all fields that may contain a tag
# Fields that an export adds. The licences that permit the uses, a list of texts:
LICENSE = "license"
# The resources to show with the record, a list in the form of the tag:
ATTRIBUTION = "attribution"
# The only resources that may be used, a list in the form of the tag:
INSTEAD = "must_use"

# Fields that identify the page, and contain none of its content. The names are those of
# comity.spiders.pages.PageItem.
KEY = "__key__"  # the key of a sample in a shard (see comity.dataset.files.shards.reader)
# Fields that a crawl adds to items in COMITY_ITEMS: the fingerprint of the request of the item's
# page, and the moment at which the page arrived.
REQUEST = "comity_request"
ARRIVED_AT = "comity_fetched_at"
IDENTITY = frozenset(
    (
        *("url", "final_url", "status", "fetched_at", "content_type", "sha256"),
        *(KEY, REQUEST, ARRIVED_AT),
    )
)
FETCH = ("fetched_at", REQUEST, ARRIVED_AT)  # fields that identify the fetch of a page
PAGE_URLS = ("url", "final_url")  # fields with a URL of the page


def is_blank(value: Any) -> bool:
    """Return True if a field with this value has no content."""
    return value is None or value == ""


class PositionedRecord(Record):
    """A record of a file that is rewritten by copying the octets of the records that stay.

    It can be pickled."""

    __slots__ = ("position",)

    def __init__(self, record: Record, position: Any) -> None:
        super().__init__(record)
        self.position = position  # as the Rewriter of its format needs it


class DatasetError(Exception):
    """A mistake of the operator, or an unusable file. The message is one line, and names the file
    or setting."""


class Unreadable(NamedTuple):
    """Octets in the place of a record that are not a valid record."""

    position: str
    """E.g. "line 12", "row 4711" or "record at octet 93"."""
    octets: bytes
    """The octets as they are in the file."""
    error: str
    """The problem, in words."""


Batch = list[Record | Unreadable]


_COMPACT = re.compile(r"[0-9]{14}")  # a moment as in names of captures: 20240518015810
_MILLISECONDS = 100_000_000_000  # lower numbers are seconds, others are milliseconds


def moment_of(value: Any) -> datetime | None:
    """Return the aware moment that a value means. None if it is not a moment.

    The value may be a text (ISO 8601, or 14 digits), a date or datetime, or a number of seconds or
    milliseconds since 1970. A moment without an offset is in UTC."""
    try:
        if isinstance(value, str):
            text = value.strip()
            moment = (
                datetime.strptime(text, "%Y%m%d%H%M%S")  # noqa: DTZ007
                if _COMPACT.fullmatch(text)
                else datetime.fromisoformat(text)
            )
        elif isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(
                value / 1000 if abs(value) >= _MILLISECONDS else value, UTC
            )
        else:
            return None
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None


to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_line(record: Record) -> bytes:
    """Return a record as a line of JSON Lines."""
    try:
        return to_json(record).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair: JSON can escape it, UTF-8 has none
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def parse_json(text: str | bytes) -> Any:
    """Parse the JSON of records or tags.

    `text`: octets must be UTF-8, because other code searches the octets for words. They may contain
    half of a surrogate pair.

    ValueError: the text is not JSON, or an object in it repeats the name of a tag, or a name within
    a tag. Parsers drop one of two values with the same name, and the dropped one may refuse."""
    if isinstance(text, bytes):
        text = text.removeprefix(BOM).decode("utf-8", "surrogatepass")
    end = text[-_END:]
    tail = _TAILS.get(end)
    if (
        tail is not None
        and text.endswith(tail)
        and not _may_hold_names(text, len(text) - len(tail))
    ):
        return json.loads(text)
    try:
        value = _decode(text)
    except _RepetitionError:
        return json.loads(text, object_pairs_hook=_object)
    start = max(text.find(f'"{FIELD}":'), 0)
    if len(text) - start <= _MAX_TAIL:
        _TAILS[end] = text[start:]
    return value


BOM = b"\xef\xbb\xbf"
# To check the names in each object takes a third longer than parsing alone. But most records of a
# site end with the same tag. Therefore the part of a record from its tag to its end is remembered,
# by its last characters, if it repeats no name. It is not checked again in the next record.
# Characters. This is enough to tell tags apart: a tag ends with the copies of policies, which have
# the times of fetching.
_END = 100
_MAX_TAIL = 10_000  # the maximum number of characters of a remembered part
_TAILS: Bounded[str, str] = Bounded(1_000)  # last characters -> the text from the tag on


def _may_hold_names(text: str, end: int) -> bool:
    """Return True if the names before `end` must be checked.

    This is so if the text before `end` may have a tag, as an object or as JSON text, an escaped
    letter, or an object in the record, which may be an HTTP header."""
    signs = ('"uses', f'"{FIELD}"', "\\u00")
    return text.find("{", text.find("{") + 1, end) >= 0 or any(
        text.find(sign, 0, end) >= 0 for sign in signs
    )


class _RepetitionError(Exception):
    """An object repeats a name."""


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with these members. _RepetitionError: a name is repeated."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _RepetitionError
    return members


_decode = json.JSONDecoder(object_pairs_hook=_make_object).decode


class Repeating(Record):
    """An object with a repeated name. It has the last value of the name, and `pairs` has all."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def every_value(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with these members. A repeated name has the list of its values."""
    values_of: dict[str, list[Any]] = {}
    for name, value in pairs:
        values_of.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in values_of.items()}


def _repeated_names(pairs: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield the names that are repeated."""
    return (name for name, times in Counter(name for name, _ in pairs).items() if times > 1)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with these members.

    If a name is repeated in an HTTP header (a member with `header` in its name), the value is the
    list of all values. In other objects it is the last value.

    ValueError: the name of a tag, or a name within a tag, is repeated."""
    members: dict[str, Any] = dict(pairs)
    if len(members) < len(pairs):
        members = Repeating(pairs)
        of_tags = {name for name, value in pairs if name in _OF_TAGS or _may_be_tag(value)}
        if name := next(filter(of_tags.__contains__, _repeated_names(pairs)), ""):
            raise ValueError(f"`{name}` is repeated")
    if members.keys() >= _OF_TAGS and (name := _repeated_in(members)):
        raise ValueError(f"`{name}` is repeated")
    for name, value in members.items():
        if isinstance(value, Repeating) and "header" in name.lower():
            members[name] = every_value(value.pairs)
    return members


_OF_TAGS = frozenset(("schema", "uses"))


def _may_be_tag(value: Any) -> bool:
    is_text = isinstance(value, str)
    return (is_text or isinstance(value, dict)) and any(
        (f'"{name}"' if is_text else name) in value for name in _OF_TAGS
    )


def _repeated_in(value: Any) -> str:
    """Return a name that an object in the value repeats. "" if there is none."""
    if isinstance(value, Repeating):
        return next(_repeated_names(value.pairs))
    members = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return next(filter(None, map(_repeated_in, members)), "")
