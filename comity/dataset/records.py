"""Records: the items of a dataset as a line of JSON has them, with their tag in the field `permissions`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from comity.bounded import Bounded

Record = dict[str, Any]  # as a line of JSON Lines has it: the item's fields and its tag
FIELD = "permissions"  # the tag's, where COMITY_TAG names no other
SPARE_FIELD = "comity_permissions"  # the tag's, in items that have data of their own in that field
TAG_FIELDS = "\0tag"  # among the fields that are asked for: whatever may be one with a tag
LICENSE = (
    "license"  # field of an export: under which licences the uses are permitted, a list of texts
)
ATTRIBUTION = "attribution"  # field of an export: what is to be shown with it, a list of resources as the tag has them
INSTEAD = "must_use"  # field of an export: what alone may be used, a list of resources as the tag has them

# Fields that say which page it is, and nothing of what stands there. Their names are those of comity.spiders.pages.PageItem.
IDENTITY = frozenset(("url", "final_url", "status", "fetched_at", "content_type", "sha256"))
PAGE_URLS = ("url", "final_url")  # by which the page is known


def is_blank(value: Any) -> bool:
    """Return whether such a field tells nothing."""
    return value is None or value == ""


class PositionedRecord(Record):
    """A record that is not written anew where it stays: its octets are copied. It can be pickled."""

    __slots__ = ("position",)

    def __init__(self, record: Record, position: Any) -> None:
        super().__init__(record)
        self.position = position  # for the Rewriter of its format


class DatasetError(Exception):
    """A mistake of the operator, or a file that cannot be used: one line, which names the file."""


class Unreadable(NamedTuple):
    """Octets that stand where a record should and are none."""

    position: str  # "line 12", "row 4711", "record at octet 93"
    octets: bytes  # as they stand there
    error: str


Batch = list[Record | Unreadable]


_COMPACT = re.compile(r"[0-9]{14}")  # a moment as the names of captures have it: 20240518015810
_MILLISECONDS = 100_000_000_000  # more are no seconds since 1970


def moment_of(value: Any) -> datetime | None:
    """The moment that a value means: a date and time as text, by ISO 8601 or compact, or seconds or milliseconds since 1970.

    None where it is none. What names no offset is UTC."""
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


def parsed(text: str | bytes) -> Any:
    """Parse the JSON of records or tags. ValueError for what is none, and where a name of a tag, or a tag, stands twice.

    Of names that stand twice JSON says nothing, and of two tags the one that is passed over may refuse. Octets are UTF-8, as
    whoever looks for a word in them takes them; half of a surrogate pair may stand there."""
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
# To look at the names of each object takes a third longer than to parse them, and most records of a site have the same tag, at
# their end. That no name of a tag stands twice is remembered of the text from the tag on, by its last characters.
_END = 100  # characters: of a tag the copies of policies that decided, and when they were fetched
_MAX_TAIL = 10_000  # characters
_TAILS: Bounded[str, str] = Bounded(1_000)


def _may_hold_names(text: str, end: int) -> bool:
    """Return whether names may stand before `end` that are looked at: those of a tag, as an object or a text, or what stands in
    its field, with letters that are escaped; and those of any object in the record, which may be a header of HTTP."""
    signs = ('"uses', f'"{FIELD}"', "\\u00")
    return text.find("{", text.find("{") + 1, end) >= 0 or any(
        text.find(sign, 0, end) >= 0 for sign in signs
    )


class _RepetitionError(Exception):
    """A name stands twice in an object."""


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _RepetitionError
    return members


_decode = json.JSONDecoder(object_pairs_hook=_unrepeated).decode


class Repeating(Record):
    """An object in which a name stands twice. The last value counts, but for whoever takes it for the header of a page."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def every_value(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members: a name that stands twice gets the list of its values."""
    values_of: dict[str, list[Any]] = {}
    for name, value in pairs:
        values_of.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in values_of.items()}


def _repeated(pairs: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield the names that stand twice."""
    return (name for name, times in Counter(name for name, _ in pairs).items() if times > 1)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members. Of fields of headers that stand twice both are heard; else the last one counts."""
    members: dict[str, Any] = dict(pairs)
    if len(members) < len(pairs):
        members = Repeating(pairs)
        of_tags = {name for name, value in pairs if name in _OF_TAGS or _may_be_tag(value)}
        if name := next(filter(of_tags.__contains__, _repeated(pairs)), ""):
            raise ValueError(f"`{name}` stands there twice")
    if members.keys() >= _OF_TAGS and (name := _repeated_in(members)):
        raise ValueError(f"`{name}` stands there twice")
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
    """Return a name that stands twice in an object of the value; ""."""
    if isinstance(value, Repeating):
        return next(_repeated(value.pairs))
    members = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return next(filter(None, map(_repeated_in, members)), "")
