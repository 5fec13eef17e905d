"""Records: the items of a dataset as a line of JSON has them, with their tag in the field `permissions`."""

from __future__ import annotations

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
