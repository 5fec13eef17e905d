"""Records: the items of a dataset as a line of JSON has them, with their tag in the field `permissions`."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Record = dict[str, Any]  # as a line of JSON Lines has it: the item's fields and its tag
FIELD = "permissions"  # the tag's, where COMITY_TAG names no other
SPARE_FIELD = "comity_permissions"  # the tag's, in items that have data of their own in that field
TAG_FIELDS = "\0tag"  # among the fields that are asked for: whatever may be one with a tag
LICENSE = "license"  # field of an export: under which licences the uses are permitted, a list of texts
ATTRIBUTION = "attribution"  # field of an export: what is to be shown with it, a list of resources as the tag has them
INSTEAD = "must_use"  # field of an export: what alone may be used, a list of resources as the tag has them

# Fields that say which page it is, and nothing of what stands there. Their names are those of comity.spiders.pages.PageItem.
IDENTITY = frozenset(("url", "final_url", "status", "fetched_at", "content_type", "sha256"))


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


def parsed(text: str | bytes) -> Any:
    """Parse the JSON of records or tags. ValueError for what is none, and where a name of a tag, or a tag, stands twice.

    Of names that stand twice JSON says nothing, and of two tags the one that is passed over may refuse."""
    start: Any = b'"uses' if isinstance(text, bytes) else '"uses'  # of `"uses"`, and of `\\"uses\\"` in a tag that is text
    is_doubtful = text.count(start) > 1
    return json.loads(text, object_pairs_hook=_object if is_doubtful else None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        of_tags = (name for name, value in pairs if name in _OF_TAGS or _may_be_tag(value))
        if repeated := next((name for name in of_tags if names.count(name) > 1), ""):
            raise ValueError(f"`{repeated}` stands there twice")
    return members


_OF_TAGS = ("schema", "uses")


def _may_be_tag(value: Any) -> bool:
    is_text = isinstance(value, str)
    return (is_text or isinstance(value, dict)) and any((f'"{name}"' if is_text else name) in value for name in _OF_TAGS)
