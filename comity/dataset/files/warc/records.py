"""The records of WARC files (ISO 28500), which are plain or have a gzip member for each record.

    records(file, start, end)       the records and the damages between two offsets

A damage ends where the next record begins. The functions raise OSError only. Only as many octets of
a block are kept in memory as the caller asks for.

A file may be a WarcFiles, which has several WARC files one after the other."""

from __future__ import annotations

import io
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

GZIP = b"\x1f\x8b\x08"  # the beginning of a member: magic number, method (RFC 1952 section-2.3.1)
MAX_HEAD = 2**20  # the maximum number of octets of the fields of a record
CHUNK = 2**14  # octets that are read at a time
# The size in octets of the buffer for opening files. It is large because between two records, the
# position in the file is set back a little.
BUFFER = 2**20
VERSION = b"WARC/1.1\r\n"  # the version of the records that comity writes
CUT_OFF = "the file ends within it"
PACKED = "one gzip member holds several records"  # their beginnings cannot be found

# section-4
#   warc-record = header CRLF block CRLF CRLF
#   version = "WARC/" 1*DIGIT "." 1*DIGIT CRLF
_VERSION = re.compile(rb"WARC/[0-9]+\.[0-9]+\r\n")
_BEGINNING = re.compile(rb"(?<=\n)WARC/[0-9]+\.[0-9]+\r\n")
# Possible beginnings of a record after a damage. The damage may include the octet directly before
# the record.
# The pattern begins with the letters, which is ten times as fast.
_PLAIN_START = re.compile(rb"WARC/(?:(?<=\nWARC/)|(?<=\r\n\r.WARC/))", re.DOTALL)
_MEMBER_START = re.compile(re.escape(GZIP))

# Name in lower case -> value, of the first field with that name. The value of `warc-type` is in
# lower case too.
Fields = dict[str, str]


class WarcRecord(NamedTuple):
    """A record of a WARC file."""

    offset: int
    """The offset in the file at which it begins."""
    end: int
    """The offset behind its last octet."""
    fields: Fields
    """The fields of the WARC header."""
    block: bytes
    """The beginning of the block, as long as the caller asked for."""
    length: int
    """The length of the whole block in octets."""


class Damage(NamedTuple):
    """A stretch of the file that is not a record."""

    offset: int
    """The offset in the file at which it begins."""
    end: int
    """The offset behind its last octet."""
    error: str
    """The problem, in words."""


class _DamageError(Exception):
    """The octets at an offset are not a record."""


class WarcSpan(NamedTuple):
    """The place of a WARC file within a WarcFiles."""

    name: str
    """The printable name of the WARC file."""
    start: int
    """The offset at which it begins."""
    end: int
    """The offset behind its last octet."""
    is_compressed: bool
    """True if it has a gzip member for each record."""


class WarcFiles(io.BufferedReader):
    """Several WARC files as one file of octets."""

    def __init__(self, raw: io.RawIOBase, spans: Sequence[WarcSpan]) -> None:
        """`spans`: the places of the WARC files, in their order."""
        super().__init__(raw, BUFFER)
        self.spans = spans


def looks_compressed(beginning: bytes, name: str) -> bool:
    """Return True if a file begins like gzip. If its beginning is damaged, its name decides.

    `beginning`: the first 5 octets."""
    return beginning.startswith(GZIP) or (beginning != b"WARC/" and name.lower().endswith(".gz"))


def is_compressed(file: IO[bytes]) -> bool:
    """Return True if the records of a WARC file are compressed."""
    file.seek(0)
    # A file of a store has a path instead of a name.
    name = getattr(file, "name", getattr(file, "path", ""))
    return looks_compressed(file.read(5), str(name))


def end_of(file: IO[bytes]) -> int:
    """Return the offset behind the last octet."""
    if isinstance(file, WarcFiles):
        return file.spans[-1].end if file.spans else 0
    return file.seek(0, os.SEEK_END)


def member_at(file: IO[bytes], offset: int) -> str:
    """Return the name of the WARC file at an offset of a WarcFiles. "" for another file."""
    return next((span.name for span in _spans_at(file, offset)), "")


def place_of(file: IO[bytes], offset: int) -> str:
    """Return the place of a record in words, e.g. "record at octet 93"."""
    for span in _spans_at(file, offset):
        return f"{span.name}, record at octet {offset - span.start}"
    return f"record at octet {offset}"


def _spans_at(file: IO[bytes], offset: int) -> Iterator[WarcSpan]:
    spans = file.spans if isinstance(file, WarcFiles) else ()
    return (span for span in spans if span.start <= offset <= span.end)


def records(
    file: IO[bytes], start: int, end: int, keep: Callable[[Fields], int] = lambda fields: 0
) -> Iterator[WarcRecord | Damage]:
    """Yield the records of a part of a file.

    `start`, `end`: offsets at which records begin, or the ends of the file. `keep`: returns the
    number of octets of the block to read."""
    spans = (
        file.spans
        if isinstance(file, WarcFiles)
        else (WarcSpan("", start, end, is_compressed(file)),)
    )
    for span in spans:
        offset, last = max(start, span.start), min(end, span.end)
        while offset < last:
            try:
                record = (_of_member if span.is_compressed else _of_plain)(file, offset, keep)
            except _DamageError as error:
                next_offset = _next(file, offset + 1, last, compressed=span.is_compressed)
                yield Damage(offset, next_offset, str(error))
                offset = next_offset
            else:
                yield record
                offset = record.end


def end_of_records(file: IO[bytes]) -> int:
    """Return the end of the last complete record, if the file ends within the record after it.

    Otherwise return the size of the file. Of a compressed file, only the last member is unpacked.
    """
    size = file.seek(0, os.SEEK_END)
    start = _last_member(file, size) if is_compressed(file) else 0
    last = next(iter(deque(records(file, start, size), 1)), None)
    return last.offset if isinstance(last, Damage) and last.error == CUT_OFF else size


def _last_member(file: IO[bytes], size: int) -> int:
    """Return the offset of the last member. 0 if there is none."""
    position = size
    while position:
        start = max(0, position - CHUNK)
        file.seek(start)
        octets = file.read(position - start + len(GZIP) - 1)
        found = octets.rfind(GZIP)
        while found >= 0:
            if _begins(file, start + found, compressed=True):
                return start + found
            found = octets.rfind(GZIP, 0, found + len(GZIP) - 1)
        position = start
    return 0


def fields_at(file: IO[bytes], offset: int) -> Fields:
    """Return the fields of the record at an offset, even if the rest of it is damaged.

    Empty if there is no record."""
    file.seek(offset)
    is_member = file.read(3) == GZIP
    file.seek(offset)
    member = _Member(file, offset) if is_member else None
    try:
        return _head(member.read if member else lambda: file.read(CHUNK))[0]
    except _DamageError:
        return {}


def _of_plain(file: IO[bytes], offset: int, keep: Callable[[Fields], int]) -> WarcRecord:
    file.seek(offset)
    fields, length, front = _head(lambda: file.read(CHUNK))
    begin = file.tell() - len(front)
    file.seek(begin)
    block = file.read(min(length, keep(fields)))
    try:
        file.seek(begin + length)
    except OSError:  # longer than any file of this file system
        raise _DamageError(CUT_OFF) from None
    _check_end(file.read(4))
    return WarcRecord(offset, begin + length + 4, fields, block, length)


def _of_member(file: IO[bytes], offset: int, keep: Callable[[Fields], int]) -> WarcRecord:
    member = _Member(file, offset)
    fields, length, front = _head(member.read)
    limit, block, tail, done = min(length, keep(fields)), bytearray(), b"", 0
    while front:
        block += front[: max(0, limit - done)]
        tail = (tail + front[max(0, length - done) :])[:20]
        done += len(front)
        front = member.read()
    if _VERSION.match(tail[4:]):
        raise _DamageError(PACKED)
    _check_end(tail)
    return WarcRecord(offset, member.end, fields, bytes(block), length)


class _Member:
    """A member of a gzip file, which is read some octets at a time."""

    def __init__(self, file: IO[bytes], offset: int) -> None:
        self._file = file
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._input = b""  # compressed octets
        file.seek(offset)

    def read(self) -> bytes:
        """Return the next octets, b"" at the end of the member.

        _DamageError: the octets cannot be unpacked, or the file ends within the member."""
        while not self._inflater.eof:
            if not self._input:
                self._input = self._file.read(CHUNK)
                if not self._input:
                    raise _DamageError(CUT_OFF)
            try:
                octets = self._inflater.decompress(self._input, CHUNK)
            except zlib.error as error:
                raise _DamageError(f"it cannot be unpacked: {error}") from None
            self._input = self._inflater.unconsumed_tail
            if octets:
                return octets
        return b""

    @property
    def end(self) -> int:
        """The offset of the next member, after this one was read to its end."""
        return self._file.tell() - len(self._inflater.unused_data)


def _head(read_chunk: Callable[[], bytes]) -> tuple[Fields, int, bytes]:
    """Read the fields of a record.

    Return the fields, the length of the block, and the beginning of the block, which was read with
    the fields. _DamageError: the octets are not a record."""
    octets, end = bytearray(), -1
    while end < 0:
        before = len(octets)
        octets += read_chunk()
        # The rest of the first line may still follow.
        is_beginning = bool(octets) and VERSION.startswith(octets)
        if not (is_beginning or _VERSION.match(octets[:20])):
            raise _DamageError("no WARC record begins here")
        end = octets.find(b"\r\n\r\n", max(0, before - 3))
        # Without this check, a file with many beginnings of records and no end would take quadratic
        # time: each beginning would be read up to the same end.
        if _BEGINNING.search(octets, max(1, before - 20), len(octets) if end < 0 else end):
            raise _DamageError("another record begins within its fields")
        if len(octets) == before:
            raise _DamageError(CUT_OFF)
        if len(octets) > MAX_HEAD and end < 0:
            raise _DamageError(f"it has more than {MAX_HEAD} octets of fields")
    fields: Fields = {}
    lines = re.sub(rb"\r\n[ \t]+", b" ", octets[:end]).split(b"\r\n")[1:]
    for line in lines:
        name, colon, value = line.decode("utf-8", "replace").partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    if not (kind := fields.get("warc-type", "").lower()):
        raise _DamageError("it has no WARC-Type")
    fields["warc-type"] = kind
    length = fields.get("content-length", "")
    if not re.fullmatch("[0-9]{1,15}", length):
        raise _DamageError("it has no valid Content-Length")
    return fields, int(length), bytes(octets[end + 4 :])


def _check_end(octets: bytes) -> None:
    """Check the octets that follow a block."""
    if octets != b"\r\n\r\n":
        raise _DamageError("it does not end at its Content-Length" if len(octets) >= 4 else CUT_OFF)


def _next(file: IO[bytes], offset: int, end: int, *, compressed: bool) -> int:
    """Return the offset of the next record. `end` if there is none."""
    overlap = 32
    while offset < end:
        file.seek(offset)
        octets = file.read(min(CHUNK, end - offset) + overlap)
        if not octets:  # a member of a WACZ file that cannot be unpacked to its end
            break
        for beginning in (_MEMBER_START if compressed else _PLAIN_START).finditer(octets):
            position = offset + beginning.start()
            if position < end and _begins(file, position, compressed=compressed):
                return position
        offset += CHUNK
    return end


def _begins(file: IO[bytes], offset: int, *, compressed: bool) -> bool:
    file.seek(offset)
    try:
        octets = _Member(file, offset).read() if compressed else file.read(20)
    except _DamageError:
        return False
    return _VERSION.match(octets) is not None
