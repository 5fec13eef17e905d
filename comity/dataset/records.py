"""Records: the items of a dataset as a line of JSON has them, with their tag in the field `permissions`."""

from __future__ import annotations

from typing import Any, NamedTuple

Record = dict[str, Any]
FIELD = "permissions"


class DatasetError(Exception):
    """A mistake of the operator, or a file that cannot be used: one line that names the file."""


class Unreadable(NamedTuple):
    """What stands where a record should and is none."""

    place: str  # "line 12", "row 4711", "record at octet 93"
    octets: bytes
    why: str


Batch = list[Record | Unreadable]
