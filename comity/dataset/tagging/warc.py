"""Captures in WARC files of any writer, as records to be tagged.

A `response` is a page, and a `resource` too; a `revisit` is one with the body of its original, where that is in the same file;
a `conversion` (WET) is the text of a page that is not at hand. Every such record comes out: as one, as left out with a reason
(another status than 2xx, a policy file, another scheme), or as one that cannot be read."""

from __future__ import annotations

import hashlib
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

from comity.bounded import Bounded
from comity.dataset.files import formats
from comity.dataset.files.formats import Part
from comity.dataset.files.warc.items import MAX_BLOCK, POLICY, is_item, item_of, name_of, refers_to
from comity.dataset.files.warc.messages import (
    content_length,
    covers_another,
    has_head,
    is_http,
    message,
    unchunked,
    words,
)
from comity.dataset.files.warc.records import (
    BUFFER,
    GZIP,
    PACKED,
    Damage,
    Fields,
    WarcRecord,
    fields_at,
    records,
)
from comity.dataset.records import Batch, DatasetError, Record, Unreadable
from comity.dataset.tagging.captured import PART_OF_PAGE, CapturedPage, CapturedRecord, moment_of
from comity.dataset.tags.sources import GUESSED
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import DEFAULT_PORTS, origin_or_empty, target_of
from comity.policies.tag import TagError

PART = 4 * 2**20  # octets of the file
BATCH = 32  # records; each may have a body of some MB
MAX_INFO = (
    64 * 2**10
)  # octets of a warcinfo, of a request, and of what is named of what cannot be read
MAX_REMEMBERED = 100_000  # names of captures of which a later revisit may be
MAX_METHOD = 64  # octets in which the method of a request stands
PIECE = 2**12  # octets that are unpacked at a time
ZSTD = b"\x28\xb5\x2f\xfd"  # a frame begins so (RFC 8878 section-3.1.1)
SKIPPABLE = b"\x2a\x4d\x18"  # and so, behind any octet, one without content (section-3.1.2)
FIRST = 100  # records in which the crawler of the first captures is looked for

PAGES = ("response", "resource", "revisit", "conversion")  # types of records
Head = list[tuple[bytes, bytes]]


class Sent(NamedTuple):
    """A request record."""

    method: str
    target: str  # URL


class Stretch(NamedTuple):
    """Position of a part."""

    start: int
    end: int
    originals: dict[
        str, int
    ]  # name of a capture that stands before it, and is the original of a revisit in it -> its offset
    crawler: str  # User-Agent of what begins there
    sent: Sent | None = None  # request before it, whose answer is to come
    answered_url: str = ""  # URL of the capture before it, whose request is to come


class Reader(formats.Reader):
    """A WARC file. Picklable, as all Readers are."""

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        return True

    def parts(self) -> Iterator[Part]:
        start = end = 0
        awaited = ""  # id of the answer of the item that stood before: its tag is for that
        seen: Bounded[str, int] = Bounded(MAX_REMEMBERED)
        originals: dict[str, int] = {}
        requests = _Requests()
        sent, answered_url = requests.state
        with self.path.open("rb", BUFFER) as file:
            crawler = beginning = self._first_crawler(file)
            for record in records(file, 0, self.size, _block_limit_of_others):
                if record.offset - start >= PART and not awaited:
                    stretch = Stretch(
                        start, record.offset, originals, beginning, sent, answered_url
                    )
                    yield Part(stretch, record.offset - start)
                    start, originals, beginning = record.offset, {}, crawler
                    sent, answered_url = requests.state
                end, awaited = record.end, ""
                if isinstance(record, Damage):
                    if record.error == PACKED:
                        raise DatasetError(
                            f"{self.path} is packed as a whole, its records cannot be found: gunzip it first"
                        )
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
        """A request may stand behind its response."""
        first = islice(records(file, 0, self.size, _block_limit_of_others), FIRST)
        return next(
            filter(
                None, (crawler_of(record) for record in first if isinstance(record, WarcRecord))
            ),
            "",
        )

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
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
        with self.path.open("rb", BUFFER) as file, self.path.open("rb", BUFFER) as lookup:
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
                    yield _captured(
                        record, original, crawler, method or "GET", tags.tags_of(record)
                    )
                except ValueError as error:
                    yield Unreadable(
                        f"record at octet {record.offset}", record.block[:MAX_INFO], str(error)
                    )


def _unreadable(file: IO[bytes], damage: Damage) -> Unreadable:
    file.seek(damage.offset)
    octets = file.read(min(MAX_INFO, damage.end - damage.offset))
    return Unreadable(f"record at octet {damage.offset}", octets, damage.error)


def _block_limit_of_others(fields: Fields) -> int:
    """Octets of the block of a record that are wanted of what is no page."""
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
    """The request record of each capture: the one before it, or the one right behind it, for the same URL."""

    def __init__(self, sent: Sent | None = None, answered_url: str = "") -> None:
        self.state = (
            sent,
            answered_url,
        )  # a request whose answer is to come; URL of a capture whose request is to come

    def note(self, record: WarcRecord) -> str:
        """The method of the request that stood before a capture; "" where none did."""
        (sent, answered_url), fields = self.state, record.fields
        self.state = sent, ""
        if fields.get("warc-type") == "request" and (request := _sent(record)) is not None:
            self.state = (sent, "") if request.target == answered_url else (request, "")
        elif _is_answer(fields):
            is_there = sent is not None and sent.target == _target(fields)
            self.state = None, "" if is_there else _target(fields)
            return sent.method if sent is not None and is_there else ""
        return ""


def _is_answer(fields: Fields) -> bool:
    return fields.get("warc-type") in ("response", "revisit")


def _sent(record: WarcRecord) -> Sent | None:
    """Return the request of a record; None where nobody knows by which method it was sent."""
    words = record.block[:MAX_METHOD].split(None, 1)
    method = words[0].decode("latin-1") if words else ""
    return (
        Sent(method.upper(), _target(record.fields))
        if method.isascii() and method.isalpha()
        else None
    )


def _method_after(file: IO[bytes], record: WarcRecord) -> str:
    """The method of the request right behind a capture; "" where none is there."""
    next_fields = fields_at(file, record.end)
    if next_fields.get("warc-type") != "request" or _target(next_fields) != _target(record.fields):
        return ""
    request = _record_at(file, record.end)
    sent = _sent(request) if request else None
    return sent.method if sent else ""


class _TagsOfItems:
    """Tags of items of ours, which stand before the response that they are of."""

    def __init__(self) -> None:
        self._answer = ""
        self._tags: list[Any] = []

    def note(self, record: WarcRecord) -> None:
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
        return self._tags if self._answer and name_of(record) == self._answer else []


# Names by which records refer to each other


def _names_as_original(fields: Fields) -> Iterator[str]:
    """Yield what a revisit may call a capture, in 64 bits each."""
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
    """Yield what a revisit calls the capture that has its body, the surest first."""
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
    """The User-Agent that a warcinfo or a request names; "" where it names none."""
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


def _captured(
    record: WarcRecord, original: WarcRecord | None, crawler: str, method: str, earlier: list[Any]
) -> CapturedRecord:
    """Return the record of a capture. `crawler`, `method`: of the request.

    ValueError, with what is wrong, where nobody knows what was captured."""
    fields, url = record.fields, _target(record.fields)
    identity = {"url": url, "final_url": url, "fetched_at": fields.get("warc-date", "")}
    if not origin_or_empty(url):
        scheme = url.partition(":")[0].lower()
        if (
            scheme in DEFAULT_PORTS
        ):  # of no host: whatever it says, nobody may be asked what may be done with it
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
        return _revisited(record, original, page, identity)
    if not is_http(record):
        head = [(b"content-type", fields.get("content-type", "").encode("latin-1", "replace"))]
        unread = unread or ("no answer of HTTP" if kind == "response" else "")
        return CapturedRecord(
            identity,
            page._replace(fields=tuple(head), body=record.block, unread=unread),
            earlier=earlier,
        )
    status, head, body = _message(record.block)
    if status // 100 != 2:
        return CapturedRecord({}, None, left_out=f"status {status}")
    body, missing = _content(head, body, is_cut=bool(unread))
    unread = unread or (PART_OF_PAGE if status == 206 else "")
    page = page._replace(fields=tuple(head), body=body, status=status, unread=unread or missing)
    return CapturedRecord(identity, page, earlier=earlier)


def _revisited(
    record: WarcRecord, original: WarcRecord | None, page: CapturedPage, identity: dict[str, Any]
) -> CapturedRecord:
    """The page with the body of its original. What either says in its header counts."""
    status, cut = 0, ""
    head: Head = []
    if record.block:
        cut = "" if has_head(record.block) else "its header fields are cut off"
        status, head, _ = _message(record.block + b"\r\n\r\n" * bool(cut))
    if status and status // 100 != 2 and status != 304:
        return CapturedRecord({}, None, left_out=f"status {status}")
    if original is None:
        raise ValueError("a revisit whose original is not in this file")
    if not is_http(original):
        raise ValueError("a revisit of what is no answer of HTTP")
    original_status, original_head, body = _message(original.block)
    if original_status // 100 != 2:
        return CapturedRecord({}, None, left_out=f"status {original_status}")
    body, missing = _content(original_head, body, is_cut="warc-truncated" in original.fields)
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


def _message(block: bytes) -> tuple[int, Head, bytes]:
    if not has_head(block):
        raise ValueError("no answer of HTTP/1: its header does not end")
    first, head, body = message(block)
    words = first.split(None, 2)
    if (
        not first.startswith((b"HTTP/", b"ICY "))
        or len(words) < 2
        or len(words[1]) != 3
        or not words[1].isdigit()
    ):
        raise ValueError("no answer of HTTP/1: it has no status")
    return int(words[1]), head, body


def _content(head: Head, body: bytes, *, is_cut: bool) -> tuple[bytes, str]:
    """The body without codings, and why it is not whole; "" where it is. ValueError where nobody knows what it says."""
    if covers_another(head, body):
        raise ValueError("its length covers another record")
    codings = [coding for coding in words(head, b"content-encoding") if coding != b"identity"]
    transfer_codings = [
        coding for coding in words(head, b"transfer-encoding") if coding != b"identity"
    ]
    missing = ""
    if b"chunked" in transfer_codings:
        body, is_whole = unchunked(body)
        missing = "" if is_whole else "the body in chunks breaks off"
    elif not codings and content_length(head) > len(body):
        missing = "the body is shorter than its Content-Length"
    others = b", ".join(coding for coding in transfer_codings if coding != b"chunked")
    if others and body and not _is_document(body):
        missing = missing or f"Transfer-Encoding {printable(others)} cannot be taken off"
    for coding in reversed(codings) if body else ():
        body, is_whole = _decoded(body, coding)
        missing = missing or ("" if is_whole else "the compressed body breaks off")
    return body, "" if is_cut else missing


def _decoded(body: bytes, coding: bytes) -> tuple[bytes, bool]:
    """The content, and whether it is whole. ValueError where it cannot be had.

    Some archives take the coding off and leave the field: what cannot be decoded and is a document as it stands is one."""
    try:
        if coding in (b"gzip", b"x-gzip"):
            return _inflated(body, zlib.MAX_WBITS | 16)
        if coding == b"deflate":
            try:
                return _inflated(body, zlib.MAX_WBITS)
            except zlib.error:
                return _inflated(body, -zlib.MAX_WBITS)
        if coding == b"br":
            return _without_brotli(body)
        if coding == b"zstd":
            return _without_zstd(body)
    except ImportError as error:
        raise ValueError(
            f"Content-Encoding {printable(coding)}: {error.name} is not installed"
        ) from None
    except ValueError:
        raise
    except Exception as error:  # by the errors of whatever library knows the coding
        if _is_document(body):
            return body, True
        raise ValueError(
            f"Content-Encoding {printable(coding)} cannot be taken off: {error}"
        ) from None
    raise ValueError(f"Content-Encoding {printable(coding)} is not known")


def _without_brotli(body: bytes) -> tuple[bytes, bool]:
    import brotli  # type: ignore[import-untyped]  # it ships no types

    decoder = brotli.Decompressor()
    content = decoder.process(body, output_buffer_limit=MAX_BLOCK)
    if not decoder.is_finished() and _is_document(body):  # any octets may begin as brotli does
        return body, True
    return _limited(content, is_more=not decoder.can_accept_more_data()), decoder.is_finished()


def _without_zstd(body: bytes) -> tuple[bytes, bool]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return _unpacked(
        body, zstd.ZstdDecompressor, lambda octets: octets == ZSTD or octets[1:] == SKIPPABLE
    )


def _is_document(body: bytes) -> bool:
    """Return whether it is text that begins as markup or JSON does."""
    try:
        return body.lstrip()[:1] in (b"<", b"{", b"[") and b"\0" not in body and bool(body.decode())
    except UnicodeDecodeError:
        return False


def _inflated(body: bytes, bits: int) -> tuple[bytes, bool]:
    return _unpacked(
        body,
        lambda: zlib.decompressobj(bits),
        lambda octets: bits > zlib.MAX_WBITS and octets.startswith(GZIP[:2]),
    )


def _unpacked(
    body: bytes, decoder_of: Callable[[], Any], is_start: Callable[[bytes], bool]
) -> tuple[bytes, bool]:
    """The content of all members or frames, and whether the last one is whole. What is behind them is none of it.

    `is_start`: whether four octets begin a further one."""
    content, position, decoder = bytearray(), 0, decoder_of()
    while position < len(body):
        piece = body[position : position + PIECE]  # a decoder copies what is behind its end
        content += _limited(
            decoder.decompress(piece, MAX_BLOCK + 1 - len(content)), before=len(content)
        )
        position += len(piece) - len(decoder.unused_data)
        if decoder.eof:
            if not is_start(body[position : position + 4]):
                break
            decoder = decoder_of()
    return bytes(content), decoder.eof


def _limited(content: bytes, *, before: int = 0, is_more: bool = False) -> bytes:
    """Return content that is not too long. `before`: octets that stand before it."""
    if is_more or before + len(content) > MAX_BLOCK:
        raise ValueError(f"unpacked it has more than {MAX_BLOCK} octets")
    return content
