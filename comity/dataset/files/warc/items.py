"""The records of a WARC file as comity reads them: items with their tag, what was answered, and what goes with an answer.

An item is a `metadata` record of JSON. It refers to the record of its response, which stands right behind its first item."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from comity.dataset.files.warc.records import Damage, Fields, WarcRecord
from comity.dataset.records import FIELD, Record, parsed
from comity.dataset.tags.sources import is_tag_like

MAX_BLOCK = (
    128 * 2**20
)  # octets of a record that are held; a longer body is left out, a longer item cannot be read
POLICY = "Comity-Policy-SHA256"  # field of the records of policy files: what their tags say in `policies`

# Fields of what belongs to an answer: its request, what others say of it, its further segments (WARC 1.1 section-5).
_BELONGS_TO = ("warc-concurrent-to", "warc-refers-to", "warc-segment-origin-id")


class ItemPosition(NamedTuple):
    """The position of an item, or of an answer without items."""

    offset: int  # where its record begins in the file
    answer: int  # `key` of the answer; 0: it has none


def key(name: str) -> int:
    """64 bits of the id of a record, 0 of none. Among a million records two share theirs once in 30 million files."""
    return (
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) or 1 if name else 0
    )


def name_of(record: WarcRecord | Damage) -> str:
    """The id of an answer; "" of other records."""
    if isinstance(record, Damage) or POLICY.lower() in record.fields:
        return ""
    is_answer = record.fields.get("warc-type") in ("response", "resource", "conversion")
    return record.fields.get("warc-record-id", f"at {record.offset}") if is_answer else ""


def belongs_to(record: WarcRecord) -> str:
    """The id of the answer that it is, or that it goes with; "" of what stands for itself."""
    return name_of(record) or next(
        (record.fields[field] for field in _BELONGS_TO if field in record.fields), ""
    )


def is_item(fields: Fields) -> bool:
    """Return whether a record may be an item. It may also be something else of another program: `item_of` tells."""
    media_type = fields.get("content-type", "").partition(";")[0].strip().lower()
    return fields.get("warc-type") == "metadata" and media_type == "application/json"


def refers_to(record: WarcRecord) -> str:
    """The id of the answer of an item; "" of other records."""
    return record.fields.get("warc-refers-to", "") if is_item(record.fields) else ""


def item_of(record: WarcRecord) -> Record | Damage | None:
    """The item of a record that `is_item`, with its whole block. None where it is something else of another program."""
    try:
        item = parsed(record.block)
    except (ValueError, RecursionError) as error:
        error_text = "is too long" if len(record.block) < record.length else f"is no JSON: {error}"
        return Damage(record.offset, record.end, error_text)
    is_ours = isinstance(item, dict) and (FIELD in item or any(map(is_tag_like, item.values())))
    return item if is_ours else None
