"""The records of a WARC file as comity reads them: items with tags, answers, and their companions.

An item is a `metadata` record with JSON. It refers to the record of the response from which it was
made. If a response has several items, the first item is directly before the response."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from comity.dataset.files.warc.records import Damage, Fields, WarcRecord
from comity.dataset.records import FIELD, Record, parse_json
from comity.dataset.tags.sources import is_tag_like

# The maximum number of octets to read of a record. A longer body is omitted, and a longer item is
# unreadable.
MAX_BLOCK = 128 * 2**20
# The field of records of policy files, with the SHA-256 that tags have in `policies`.
POLICY = "Comity-Policy-SHA256"
# The field of a kept capture that could not be read, with the cause
UNREAD = "Comity-Unread"

# Fields of records that belong to an answer: its request, metadata about it, its further segments
# (WARC 1.1 section-5).
_BELONGS_TO = ("warc-concurrent-to", "warc-refers-to", "warc-segment-origin-id")


class ItemPosition(NamedTuple):
    """The position of an item, or of an answer without items."""

    offset: int
    """The offset of the record in the file."""
    answer: int
    """The `key` of the id of the answer. 0 if the item has no answer."""


def key(name: str) -> int:
    """Return 64 bits of a hash of a record's id. 0 for "".

    In about one of 30 million files of a million records, two records have equal keys."""
    return (
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) or 1 if name else 0
    )


def name_of(record: WarcRecord | Damage) -> str:
    """Return the id of an answer. "" for other records."""
    if isinstance(record, Damage) or POLICY.lower() in record.fields:
        return ""
    is_answer = record.fields.get("warc-type") in ("response", "resource", "conversion")
    return record.fields.get("warc-record-id", f"at {record.offset}") if is_answer else ""


def belongs_to(record: WarcRecord) -> str:
    """Return the id of a record that is an answer, or else of the answer to which it belongs.

    "" if the record belongs to no answer."""
    return name_of(record) or next(
        (record.fields[field] for field in _BELONGS_TO if field in record.fields), ""
    )


def is_item(fields: Fields) -> bool:
    """Return True if a record may be an item.

    It may also be a record of another program: `item_of` decides."""
    media_type = fields.get("content-type", "").partition(";")[0].strip().lower()
    return fields.get("warc-type") == "metadata" and media_type == "application/json"


def refers_to(record: WarcRecord) -> str:
    """Return the id of the answer that an item refers to. "" for other records."""
    return record.fields.get("warc-refers-to", "") if is_item(record.fields) else ""


def item_of(record: WarcRecord) -> Record | Damage | None:
    """Return the item of a record. None if it is a record of another program.

    `record`: a record for which `is_item` is True, with its whole block. Return a Damage if the
    block is not JSON, or is too long."""
    try:
        item = parse_json(record.block)
    except (ValueError, RecursionError) as error:
        error_text = "is too long" if len(record.block) < record.length else f"is no JSON: {error}"
        return Damage(record.offset, record.end, error_text)
    is_ours = isinstance(item, dict) and (FIELD in item or any(map(is_tag_like, item.values())))
    return item if is_ours else None
