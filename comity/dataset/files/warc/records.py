"""WARC files as they stand (ISO 28500): record after record, plain or with a gzip member for each record.

records(file, start, end)       what stands between two places, what cannot be read included
What is damaged is passed over up to the next record: nothing raises but OSError, and no more of a record is held than is asked
for."""

from __future__ import annotations

import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

GZIP = (
    b"\x1f\x8b\x08"  # a member begins so: its magic number and its method (RFC 1952 section-2.3.1)
)
MAX_HEAD = 2**20  # octets of the fields of a record
CHUNK = 2**14  # octets that are read at a time
BUFFER = 2**20  # octets, for the files that are given: between records they are set back a little
VERSION = b"WARC/1.1\r\n"  # of the records that comity writes
CUT_OFF = "the file ends within it"
PACKED = "one gzip member holds several records"  # why there is no telling where the others begin

# section-4
#   warc-record = header CRLF block CRLF CRLF
#   version = "WARC/" 1*DIGIT "." 1*DIGIT CRLF
_VERSION = re.compile(rb"WARC/[0-9]+\.[0-9]+\r\n")
_BEGINNING = re.compile(rb"(?<=\n)WARC/[0-9]+\.[0-9]+\r\n")
# Where one may begin behind what is damaged: the last octet of that too.
_PLAIN_START = re.compile(rb"(?:(?<=\n)|(?<=\r\n\r.))WARC/", re.DOTALL)
_MEMBER_START = re.compile(re.escape(GZIP))

Fields = dict[
    str, str
]  # names in lower case, and the `warc-type` too; of fields of one name, the first


class WarcRecord(NamedTuple):
    offset: int  # where it begins in the file
    end: int
    fields: Fields
    block: bytes  # as much of it as was asked for, from its front
    length: int  # octets of the whole block


class Damage(NamedTuple):
    """A stretch of the file that is no record."""

    offset: int
    end: int
    error: str


class _DamageError(Exception):
    """The error because of which something is no record."""


def is_compressed(file: IO[bytes]) -> bool:
    """Return whether the file begins as gzip does; where its beginning is damaged, whether its name says so."""
    file.seek(0)
    start = file.read(5)
    return start.startswith(GZIP) or (start != b"WARC/" and str(file.name).lower().endswith(".gz"))


def records(
    file: IO[bytes], start: int, end: int, keep: Callable[[Fields], int] = lambda fields: 0
) -> Iterator[WarcRecord | Damage]:
    """Yield the records of a part of a file.

    `start`, `end`: where records begin, or the ends of the file. `keep`: octets of the block that are wanted."""
    compressed = is_compressed(file)
    offset = start
    while offset < end:
        try:
            record = (_of_member if compressed else _of_plain)(file, offset, keep)
        except _DamageError as error:
            next_offset = _next(file, offset + 1, end, compressed=compressed)
            yield Damage(offset, next_offset, str(error))
            offset = next_offset
        else:
            yield record
            offset = record.end


def end_of_records(file: IO[bytes]) -> int:
    """Return where the last whole record ends, if the file was cut off behind it; else the size of the file.

    Of a compressed file the last member alone is unpacked, and what is behind it."""
    size = file.seek(0, os.SEEK_END)
    start = _last_member(file, size) if is_compressed(file) else 0
    last = next(iter(deque(records(file, start, size), 1)), None)
    return last.offset if isinstance(last, Damage) and last.error == CUT_OFF else size


def _last_member(file: IO[bytes], size: int) -> int:
    """Return where the last member begins; 0 if none begins anywhere."""
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
    """The fields of the record at an offset, whatever the rest of it is; none where there is none."""
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
    except OSError:  # no file of this file system is so long
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
    """A member of a gzip file, some octets at a time."""

    def __init__(self, file: IO[bytes], offset: int) -> None:
        self._file = file
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._input = b""  # compressed
        file.seek(offset)

    def read(self) -> bytes:
        """b"" at its end."""
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
        """The offset at which the next one begins, once all is read."""
        return self._file.tell() - len(self._inflater.unused_data)


def _head(read_chunk: Callable[[], bytes]) -> tuple[Fields, int, bytes]:
    """The fields, the length of the block, and what was read of it already."""
    octets, end = bytearray(), -1
    while end < 0:
        before = len(octets)
        octets += read_chunk()
        is_beginning = bool(octets) and VERSION.startswith(octets)  # the rest of the line may come
        if not (is_beginning or _VERSION.match(octets[:20])):
            raise _DamageError("no WARC record begins here")
        end = octets.find(b"\r\n\r\n", max(0, before - 3))
        # Or each of many beginnings would be read up to the same end.
        if _BEGINNING.search(octets, max(1, before - 20), len(octets) if end < 0 else end):
            raise _DamageError("another one begins within its fields")
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
        raise _DamageError("it does not say what it is")
    fields["warc-type"] = kind
    length = fields.get("content-length", "")
    if not re.fullmatch("[0-9]{1,15}", length):
        raise _DamageError("it does not say how long it is")
    return fields, int(length), bytes(octets[end + 4 :])


def _check_end(octets: bytes) -> None:
    """Check what follows a block."""
    if octets != b"\r\n\r\n":
        raise _DamageError("it does not end where it says" if len(octets) >= 4 else CUT_OFF)


def _next(file: IO[bytes], offset: int, end: int, *, compressed: bool) -> int:
    """The offset at which the next record begins, `end` where none does."""
    overlap = 32
    while offset < end:
        file.seek(offset)
        octets = file.read(min(CHUNK, end - offset) + overlap)
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
