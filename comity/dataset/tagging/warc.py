"""Captures in WARC and WACZ files of any program, as records to be tagged.

A `response` or `resource` is a page. A `revisit` is a page with the body of its original, which
must be in the same file. A `conversion` (WET) is the text of a page that is not available. Each of
these WARC records becomes a record to tag, a record to leave out for a reason (a status other than
2xx, a policy file, a scheme other than http and https), or an Unreadable."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

from comity.bounded import Bounded
from comity.dataset.files.formats import Part
from comity.dataset.files.warc.items import MAX_BLOCK, POLICY, is_item, item_of, name_of, refers_to
from comity.dataset.files.warc.messages import (
    has_head,
    is_http,
    message,
)
from comity.dataset.files.warc.records import (
    Damage,
    Fields,
    WarcRecord,
    end_of,
    fields_at,
    place_of,
    records,
)
from comity.dataset.files.warc.wacz import open_warc
from comity.dataset.files.warc.warc_input import WarcReader, check_packed
from comity.dataset.records import Batch, Record, Unreadable
from comity.dataset.tagging.captured import PART_OF_PAGE, CapturedPage, CapturedRecord, moment_of
from comity.dataset.tagging.http_content import Head, content_of, read_answer
from comity.dataset.tags.sources import GUESSED
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.urls import DEFAULT_PORTS, origin_or_empty, target_of
from comity.policies.tag import TagError

PART = 4 * 2**20  # octets of the file
BATCH = 32  # records in a batch; each may have a body of some MB
# The maximum number of octets to read of a warcinfo, of a request, and of an unreadable record.
MAX_INFO = 64 * 2**10
# The maximum number of names of captures that are kept for later revisits.
MAX_REMEMBERED = 100_000
MAX_METHOD = 64  # octets of a request that are searched for its method
FIRST = 100  # records at the beginning that are searched for the crawler of the first captures

PAGES = ("response", "resource", "revisit", "conversion")  # types of records with a page


class Sent(NamedTuple):
    """A request record."""

    method: str
    """The method of the request."""
    target: str
    """The URL of the request."""


class Stretch(NamedTuple):
    """The position of a part, with the facts that reading it needs from earlier parts."""

    start: int
    """The offset at which the part begins, in octets."""
    end: int
    """The offset at which the part ends."""
    originals: dict[str, int]
    """Name -> offset of an earlier capture that is the original of a revisit in this part."""
    crawler: str
    """The User-Agent of the first captures in this part."""
    sent: Sent | None = None
    """The request right before this part. Its answer may be the first record."""
    answered_url: str = ""
    """The URL of the capture right before this part. Its request may be the first record."""


class Reader(WarcReader):
    """A WARC file, or the WARC files in a WACZ file, read as captures. It can be pickled."""

    def record_parts(self) -> Iterator[Part]:
        start = end = 0
        awaited = ""  # id of the answer that follows an item, which has the answer's tag
        seen: Bounded[str, int] = Bounded(MAX_REMEMBERED)
        originals: dict[str, int] = {}
        requests = _Requests()
        sent, answered_url = requests.state
        with open_warc(self.path) as file:
            crawler = beginning = self._first_crawler(file)
            for record in records(file, 0, end_of(file), _block_limit_of_others):
                if record.offset - start >= PART and not awaited:
                    stretch = Stretch(
                        start, record.offset, originals, beginning, sent, answered_url
                    )
                    yield Part(stretch, record.offset - start)
                    start, originals, beginning = record.offset, {}, crawler
                    sent, answered_url = requests.state
                end, awaited = record.end, ""
                if isinstance(record, Damage):
                    check_packed(self.path, file, record)
                    continue
                crawler = crawler_of(record) or crawler
                requests.note(record)
                awaited = refers_to(record)
                if record.fields.get("warc-type") == "revisit":
                    if (
                        name := next(
                            (name for name in _names_of_original(record.fields) if name in seen), ""
                        )
                    ) and seen[name] < start:
                        originals[name] = seen[name]
                else:
                    for name in _names_as_original(record.fields):
                        seen[name] = record.offset
        if end > start:
            yield Part(Stretch(start, end, originals, beginning, sent, answered_url), end - start)

    def _first_crawler(self, file: IO[bytes]) -> str:
        """Return the first crawler that a record names. "" if none does.

        It captured the first page too, even if the request follows its response."""
        first = islice(records(file, 0, end_of(file), _block_limit_of_others), FIRST)
        return next(
            filter(
                None, (crawler_of(record) for record in first if isinstance(record, WarcRecord))
            ),
            "",
        )

    def read_records(self, part: Part, fields: Sequence[str] | None) -> Iterator[Batch]:
        captures = self._captures(part.position)
        while batch := [*islice(captures, BATCH)]:
            yield batch

    def _captures(self, stretch: Stretch) -> Iterator[Record | Unreadable]:
        seen: Bounded[str, int] = Bounded(MAX_REMEMBERED)
        seen.update(stretch.originals)
        crawler, tags, requests = (
            stretch.crawler,
            _TagsOfItems(),
            _Requests(stretch.sent, stretch.answered_url),
        )
        with open_warc(self.path) as file, open_warc(self.path) as lookup:
            for record in records(file, stretch.start, stretch.end, _block_limit):
                if isinstance(record, Damage):
                    yield _unreadable(file, record)
                    continue
                crawler = crawler_of(record) or crawler
                method = requests.note(record)
                if is_item(record.fields):
                    tags.note(record)
                if record.fields.get("warc-type") not in PAGES or POLICY.lower() in record.fields:
                    continue
                original = None
                if record.fields["warc-type"] == "revisit":
                    offset = next(
                        (seen[name] for name in _names_of_original(record.fields) if name in seen),
                        None,
                    )
                    original = None if offset is None else _record_at(lookup, offset)
                for name in _names_as_original(record.fields):
                    seen[name] = record.offset
                try:
                    method = (
                        method or _method_after(lookup, record) if _is_answer(record.fields) else ""
                    )
                    captured = _read_capture(
                        record, original, crawler, method or "GET", tags.tags_of(record)
                    )
                    captured.record_id = record.fields.get("warc-record-id", "")
                    captured.target = _target(record.fields)
                    yield captured
                except ValueError as error:
                    yield Unreadable(
                        place_of(file, record.offset), record.block[:MAX_INFO], str(error)
                    )


def _unreadable(file: IO[bytes], damage: Damage) -> Unreadable:
    file.seek(damage.offset)
    octets = file.read(min(MAX_INFO, damage.end - damage.offset))
    return Unreadable(place_of(file, damage.offset), octets, damage.error)


def _block_limit_of_others(fields: Fields) -> int:
    """Return the number of octets to read of the block of a record that is not a page."""
    return MAX_INFO if fields.get("warc-type") in ("warcinfo", "request") else 0


def _block_limit(fields: Fields) -> int:
    return (
        MAX_BLOCK
        if fields.get("warc-type") in PAGES or is_item(fields)
        else _block_limit_of_others(fields)
    )


def _record_at(file: IO[bytes], offset: int) -> WarcRecord | None:
    record = next(records(file, offset, offset + 1, lambda fields: MAX_BLOCK), None)
    return record if isinstance(record, WarcRecord) else None


class _Requests:
    """Finds the request record of each capture: a record with the same URL before the capture, or
    directly after it."""

    def __init__(self, sent: Sent | None = None, answered_url: str = "") -> None:
        # The last request without an answer, and the URL of the last capture without a request.
        self.state = (sent, answered_url)

    def note(self, record: WarcRecord) -> str:
        """Note a record. If it is a capture, return the method of the request before it.

        "" if it is not a capture, or there is no request before it."""
        (sent, answered_url), fields = self.state, record.fields
        self.state = sent, ""
        if fields.get("warc-type") == "request" and (request := _read_request(record)) is not None:
            self.state = (sent, "") if request.target == answered_url else (request, "")
        elif _is_answer(fields):
            is_there = sent is not None and sent.target == _target(fields)
            self.state = None, "" if is_there else _target(fields)
            return sent.method if sent is not None and is_there else ""
        return ""


def _is_answer(fields: Fields) -> bool:
    return fields.get("warc-type") in ("response", "revisit")


def _read_request(record: WarcRecord) -> Sent | None:
    """Return the request of a record. None if its method cannot be read."""
    words = record.block[:MAX_METHOD].split(None, 1)
    method = words[0].decode("latin-1") if words else ""
    return (
        Sent(method.upper(), _target(record.fields))
        if method.isascii() and method.isalpha()
        else None
    )


def _method_after(file: IO[bytes], record: WarcRecord) -> str:
    """Return the method of the request directly after a capture. "" if there is no request."""
    next_fields = fields_at(file, record.end)
    if next_fields.get("warc-type") != "request" or _target(next_fields) != _target(record.fields):
        return ""
    request = _record_at(file, record.end)
    sent = _read_request(request) if request else None
    return sent.method if sent else ""


class _TagsOfItems:
    """The tags of comity's items, which precede the response that they belong to."""

    def __init__(self) -> None:
        self._answer = ""
        self._tags: list[Any] = []

    def note(self, record: WarcRecord) -> None:
        """Note the tag of an item."""
        item, answer = item_of(record), refers_to(record)
        if not isinstance(item, dict):
            return
        if answer != self._answer:
            self._answer, self._tags = answer, []
        try:
            self._tags.append(GUESSED.find(item).raw)
        except TagError as error:
            self._tags.append(str(error))

    def tags_of(self, record: WarcRecord) -> list[Any]:
        """Return the tags of the items that belong to a response."""
        return self._tags if self._answer and name_of(record) == self._answer else []


# Names by which records refer to each other


def _names_as_original(fields: Fields) -> Iterator[str]:
    """Yield the names by which a revisit may refer to a capture, as hashes of 96 bits."""
    if fields.get("warc-type") not in ("response", "resource"):
        return
    for name in (
        fields.get("warc-record-id", ""),
        _dated_target(_target(fields), fields.get("warc-date", "")),
        _payload(fields),
    ):
        if name:
            yield _short(name)


def _names_of_original(fields: Fields) -> Iterator[str]:
    """Yield the names by which a revisit refers to the capture with its body.

    The most reliable name comes first: the record id, then URL and date, then the digest."""
    target = fields.get("warc-refers-to-target-uri", "").strip("<>")
    names = [
        fields.get("warc-refers-to", ""),
        _dated_target(target, fields.get("warc-refers-to-date", "")),
    ]
    if "identical-payload-digest" in fields.get("warc-profile", ""):
        names.append(_payload(fields))
    return map(_short, filter(None, names))


def _short(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _dated_target(target: str, date: str) -> str:
    return f"{target} {date}" if target and date else ""


def _payload(fields: Fields) -> str:
    return fields.get("warc-payload-digest", "")


def _target(fields: Fields) -> str:
    return fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")


def crawler_of(record: WarcRecord) -> str:
    """Return the User-Agent that a warcinfo or a request names. "" if it names none."""
    kind = record.fields.get("warc-type")
    if kind == "request":
        pairs = message(record.block)[1]
        field_name = b"user-agent"
    elif kind == "warcinfo":
        pairs = message(b"\r\n" + record.block + b"\r\n\r\n")[1]
        field_name = b"http-header-user-agent"
    else:
        return ""
    return next((value.decode("latin-1") for name, value in pairs if name == field_name), "")


# Pages


def _read_capture(
    record: WarcRecord, original: WarcRecord | None, crawler: str, method: str, earlier: list[Any]
) -> CapturedRecord:
    """Return the record of a capture.

    `original`: for a revisit, the record with its body. None: it is not found. `crawler`: the
    User-Agent. `method`: the method of the request. `earlier`: the tags that the capture already
    has. ValueError, with the cause: the capture cannot be read."""
    fields, url = record.fields, _target(record.fields)
    identity = {"url": url, "final_url": url, "fetched_at": fields.get("warc-date", "")}
    if not origin_or_empty(url):
        scheme = url.partition(":")[0].lower()
        # The URL has no host, so there are no policies. The page is judged as one without a URL.
        if scheme in DEFAULT_PORTS:
            return CapturedRecord(identity, CapturedPage(url, moment_of(identity["fetched_at"])))
        return CapturedRecord(
            {}, None, left_out=f"scheme {scheme}" if scheme.isalnum() else "no URL"
        )
    if target_of(url) in WELL_KNOWN:
        return CapturedRecord({}, None, left_out="policy file")
    if len(record.block) < record.length:
        raise ValueError(f"it has more than {MAX_BLOCK} octets")
    unread = f"WARC-Truncated: {fields['warc-truncated']}" if "warc-truncated" in fields else ""
    unread = unread or ("a segment of a record" if "warc-segment-number" in fields else "")
    page = CapturedPage(
        url, moment_of(identity["fetched_at"]), crawler=crawler, method=method, unread=unread
    )
    kind = fields["warc-type"]
    if kind == "conversion":
        text = record.block.decode("utf-8", "replace")
        return CapturedRecord(
            {**identity, "content_type": fields.get("content-type", ""), "text": text}, page
        )
    if kind == "revisit":
        return _read_revisit(record, original, page, identity)
    if not is_http(record):
        head = [(b"content-type", fields.get("content-type", "").encode("latin-1", "replace"))]
        unread = unread or ("not an HTTP answer" if kind == "response" else "")
        return CapturedRecord(
            identity,
            page._replace(fields=tuple(head), body=record.block, unread=unread),
            earlier=earlier,
        )
    status, head, body = read_answer(record.block)
    if status // 100 != 2:
        return CapturedRecord({}, None, left_out=f"status {status}")
    body, missing = content_of(head, body, is_cut=bool(unread))
    unread = unread or (PART_OF_PAGE if status == 206 else "")
    page = page._replace(fields=tuple(head), body=body, status=status, unread=unread or missing)
    return CapturedRecord(identity, page, earlier=earlier)


def _read_revisit(
    record: WarcRecord, original: WarcRecord | None, page: CapturedPage, identity: dict[str, Any]
) -> CapturedRecord:
    """Return the page of a revisit, with the body of its original and the header fields of both.

    ValueError, with the cause: the original is not found, or cannot be read."""
    status, cut = 0, ""
    head: Head = []
    if record.block:
        cut = "" if has_head(record.block) else "its header fields are cut off"
        status, head, _ = read_answer(record.block + b"\r\n\r\n" * bool(cut))
    if status and status // 100 != 2 and status != 304:
        return CapturedRecord({}, None, left_out=f"status {status}")
    if original is None:
        raise ValueError("a revisit whose original is not in this file")
    if not is_http(original):
        raise ValueError("a revisit of a record without an HTTP answer")
    original_status, original_head, body = read_answer(original.block)
    if original_status // 100 != 2:
        return CapturedRecord({}, None, left_out=f"status {original_status}")
    body, missing = content_of(original_head, body, is_cut="warc-truncated" in original.fields)
    missing = missing or (PART_OF_PAGE if 206 in (status, original_status) else "")
    missing = missing or ("its original is cut off" if "warc-truncated" in original.fields else "")
    fields = (*original_head, *(field for field in head if field not in original_head))
    page = page._replace(
        fields=fields,
        body=body,
        status=status if status // 100 == 2 else original_status,
        unread=page.unread or cut or missing,
    )
    return CapturedRecord(identity, page)
