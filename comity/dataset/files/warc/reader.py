"""WARC files: the items in files of comity (docs/datasets.md), and the responses in other files.

The record of an item has the JSON of its `metadata` record, further facts from its response, and
the text of the response as `html`. A response without an item before it becomes a record without a
tag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from comity.dataset.files.formats import Part
from comity.dataset.files.warc.items import (
    MAX_BLOCK,
    ItemPosition,
    is_item,
    item_of,
    key,
    name_of,
    refers_to,
)
from comity.dataset.files.warc.messages import covers_another, is_http, message
from comity.dataset.files.warc.records import (
    Damage,
    Fields,
    WarcRecord,
    end_of,
    place_of,
    records,
)
from comity.dataset.files.warc.wacz import open_warc
from comity.dataset.files.warc.warc_input import WarcReader, check_packed
from comity.dataset.records import (
    PAGE_URLS,
    Batch,
    DatasetError,
    PositionedRecord,
    Record,
    Unreadable,
    is_blank,
)
from comity.dataset.tags.sources import from_json, is_tag_like
from comity.policies.document.document import Content

PART = 4 * 2**20  # octets of the file in a part
BATCH = 256  # records in a batch
MAX_HEAD = 64 * 2**10  # the maximum number of octets to read of an HTTP head
MAX_REMEMBERED = 100_000  # the maximum number of responses that are kept for later items

_PAGE = (*PAGE_URLS, "fetched_at")  # fields that identify the page and the moment
NONE = "none"  # not the id of any record
HTML = "html"


class WarcPart(NamedTuple):
    """The position of a part."""

    start: int
    """The offset at which the part begins, in octets."""
    end: int
    """The offset at which the part ends."""
    before: dict[str, int]
    """Id -> offset of an earlier response to which an item in this part refers."""


class Reader(WarcReader):
    """A WARC file, or the WARC files in a WACZ file."""

    def record_parts(self) -> Iterator[Part]:
        start, end, awaited = 0, 0, ""
        seen: dict[str, int] = {}  # id of a response -> its offset, the oldest first
        before: dict[str, int] = {}
        with open_warc(self.path) as file:
            for record in records(file, 0, end_of(file)):
                name = name_of(record)
                if record.offset - start >= PART and (not awaited or awaited != name):
                    yield Part(WarcPart(start, record.offset, before), record.offset - start)
                    start, before = record.offset, {}
                end, awaited = record.end, ""
                if isinstance(record, Damage):
                    check_packed(self.path, file, record)
                    continue
                if answer := refers_to(record):
                    position = seen.get(answer)
                    if position is None:
                        awaited = answer
                    elif position < start:
                        before[answer] = position
                elif name:
                    seen[name] = record.offset
                    if len(seen) > MAX_REMEMBERED:
                        del seen[next(iter(seen))]
        if end > start:
            yield Part(WarcPart(start, end, before), end - start)

    def read_records(self, part: Part, fields: Sequence[str] | None) -> Iterator[Batch]:
        batch: Batch = []
        for record in self._read(part.position, wants_html=fields is None or HTML in fields):
            batch.append(record)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _read(
        self, stretch: WarcPart, *, wants_html: bool
    ) -> Iterator[PositionedRecord | Unreadable]:
        seen = dict(stretch.before)
        awaited = ""  # id of the response that should come next
        item = PositionedRecord({}, None)  # the item that awaits this response

        def keep(fields: Fields) -> int:
            if is_item(fields) or (
                wants_html and awaited and fields.get("warc-record-id") == awaited
            ):
                return MAX_BLOCK
            return MAX_HEAD

        with open_warc(self.path) as file, open_warc(self.path) as lookup:
            for record in records(file, stretch.start, stretch.end, keep):
                name = name_of(record)
                if awaited and name != awaited:
                    yield item
                    awaited = ""
                if isinstance(record, Damage):
                    yield from self._unreadable(record)
                elif name:
                    seen[name] = record.offset
                    if awaited:
                        yield _complete(item, record, wants_html=wants_html)
                    else:
                        yield PositionedRecord(
                            _facts(record), ItemPosition(record.offset, key(name))
                        )
                    awaited = ""
                elif is_item(record.fields):
                    fields, answer = item_of(record), refers_to(record)
                    if isinstance(fields, Damage):
                        yield from self._unreadable(fields)
                    elif fields is not None:
                        identity = _identity(record) if answer else {}
                        item = PositionedRecord(
                            _combine(identity, fields), ItemPosition(record.offset, key(answer))
                        )
                        if answer in seen:
                            yield _complete(
                                item, _record_at(lookup, seen[answer]), wants_html=wants_html
                            )
                        else:  # if the item has a response, the response is the next record
                            awaited = answer or NONE
            if awaited:
                yield item

    def _unreadable(self, damage: Damage) -> Iterator[Unreadable]:
        """Yield a damage in parts, because it may be too long for memory."""
        with open_warc(self.path) as file:
            for offset in range(damage.offset, damage.end, PART):
                file.seek(offset)
                yield Unreadable(
                    place_of(file, offset),
                    file.read(min(PART, damage.end - offset)),
                    damage.error,
                )


class Writer:
    """WARC cannot be written: records do not contain the requests and answers."""

    def __init__(self, path: Path) -> NoReturn:
        raise DatasetError(f"{path}: records cannot be written as WARC: choose .jsonl or .parquet")


def _record_at(file: IO[bytes], offset: int) -> WarcRecord | None:
    record = next(records(file, offset, offset + 1, lambda fields: MAX_BLOCK), None)
    return record if isinstance(record, WarcRecord) else None


def _complete(
    item: PositionedRecord, answer: WarcRecord | None, *, wants_html: bool
) -> PositionedRecord:
    if answer is None:
        return item
    record = PositionedRecord(_combine(_facts(answer), item), item.position)
    if (
        wants_html
        and record.get(HTML) is None
        and not _rules_parts(item)
        and (text := _text(answer))
    ):
        record[HTML] = text
    return record


def _combine(facts: Record, item: Record) -> Record:
    """Return the item with further facts from its record or its response.

    The item's own fields take precedence. But a blank field must not replace a fact that identifies
    the page: take-downs and later fetches of the page need it."""
    return {
        **facts,
        **{name: value for name, value in item.items() if name not in _PAGE or not is_blank(value)},
    }


def _rules_parts(item: Record) -> bool:
    """Return True if a tag prohibits something on parts of the page.

    The places of these parts in the source are unknown. All tags of the item count, because the
    caller chooses one of them later."""
    tags = [
        from_json(value) if isinstance(value, str) else value
        for value in item.values()
        if is_tag_like(value)
    ]
    return not tags or any(map(_has_parts, tags))


def _has_parts(tag: Any) -> bool:
    elements = tag.get("elements") if isinstance(tag, dict) else None
    if not isinstance(elements, list):
        return True
    return any(
        not isinstance(element, dict)
        or (element.get("deny") != [] and element.get("whole") is not True)
        for element in elements
    )


def _identity(record: WarcRecord) -> Record:
    """Return the fields that identify the page."""
    url = record.fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")
    return {"url": url, "final_url": url, "fetched_at": record.fields.get("warc-date", "")}


def _facts(record: WarcRecord) -> Record:
    """Return the fields of the record of a response besides its body."""
    facts = _identity(record)
    if not is_http(record):
        return {**facts, "content_type": record.fields.get("content-type", "")}
    first, fields, _ = message(record.block)
    status = first.split(b" ")[1:2]
    content_type = next((value for name, value in fields if name == b"content-type"), b"")
    return {
        **facts,
        "status": int(status[0]) if status and status[0].isdigit() and len(status[0]) == 3 else 0,
        "content_type": content_type.decode("latin-1"),
    }


def _text(record: WarcRecord) -> str:
    """Return the body of a response as text. "" if it is not text, or is incomplete or coded."""
    if len(record.block) < record.length:
        return ""
    fields = [(b"content-type", record.fields.get("content-type", "").encode())]
    body = record.block
    if is_http(record):
        _, fields, body = message(body)
        if covers_another(fields, body):
            return ""
    if any(name == b"content-encoding" for name, _ in fields):
        return ""
    content = Content(fields, body)
    if content.text or not content.media_type.endswith(("json", "xml")):
        return content.text
    try:
        return body.decode()
    except UnicodeDecodeError:
        return ""
