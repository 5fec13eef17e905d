"""JSON Lines, https://jsonlines.org: a record a line, also compressed by gzip or Zstandard.

A plain file is read in parts that begin and end with a line. A compressed one can only be read from its front: its parts hold
their lines."""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self, cast

from comity.dataset.files import formats
from comity.dataset.files.formats import Part
from comity.dataset.files.gc_pause import gc_paused
from comity.dataset.files.replacement import Replacement
from comity.dataset.records import BOM, Batch, DatasetError, Record, Unreadable, parsed

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd  # Scrapy needs it too

PART = 2 * 2**20  # octets of text
MAX_LINE = (
    128 * 2**20
)  # octets; what is longer is no record but a mistake, and would have to be held whole
_ESCAPED = re.compile(
    rb"\\u00[4-7]"
)  # a letter of ASCII that need not be escaped, and then may be one of a key


class Codec(NamedTuple):
    """A form of compression. The file is made of members, one after the other, each complete in itself (RFC 1952 section-2.2, RFC
    8878 section-3.1)."""

    opened: Callable[[IO[bytes]], Any]  # to be read
    member: Callable[[bytes], bytes]


CODECS = {
    ".gz": Codec(
        lambda file: gzip.GzipFile(fileobj=file), lambda octets: gzip.compress(octets, 6, mtime=0)
    ),
    ".zst": Codec(
        zstd.ZstdFile,
        lambda octets: zstd.compress(octets, options={zstd.CompressionParameter.checksum_flag: 1}),
    ),
}
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError)


def _codec_of(path: Path) -> str:
    """The one of CODECS; "": it is not compressed."""
    return next((ending for ending in CODECS if path.name.lower().endswith(ending)), "")


class Lines(NamedTuple):
    """Place of a part."""

    number: int  # of its first line, from 1
    start: int  # where that begins: octets from the front of the text
    octets: bytes  # the lines, where the file is compressed
    length: int  # octets


class Reader(formats.Reader):
    """A file of JSON Lines. What is empty is no record."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._codec = _codec_of(path)

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        word = key.encode()
        with self.path.open("rb") as file:
            return any(
                word in lines or _ESCAPED.search(lines) for lines in self._lines(self._text(file))
            )

    def _text(self, file: IO[bytes]) -> IO[bytes]:
        if (
            self._codec and not self.size
        ):  # which Python takes for no members of gzip, and so for no records
            raise DatasetError(
                f"{self.path} is damaged, or cut off while it was written: it has no octets"
            )
        return cast(IO[bytes], CODECS[self._codec].opened(file)) if self._codec else file

    def parts(self) -> Iterator[Part]:
        number, start, done = 1, 0, 0
        with self.path.open("rb") as file:
            for lines in self._lines(self._text(file)):
                end = file.tell() if self._codec else start + len(lines)
                yield Part(
                    Lines(number, start, lines if self._codec else b"", len(lines)), end - done
                )
                done = end
                number += lines.count(b"\n")
                start += len(lines)

    def _lines(self, text: IO[bytes]) -> Iterator[bytes]:
        """Some whole lines at a time; at the end what stands there."""
        partial = b""
        while True:
            try:
                chunk = text.read(PART)
            except DAMAGED as error:
                raise DatasetError(
                    f"{self.path} is damaged, or cut off while it was written: {error}"
                ) from None
            if not chunk:
                break
            end = chunk.rfind(b"\n") + 1
            if end:
                yield partial + chunk[:end]
                partial = chunk[end:]
            else:
                partial += chunk
                if len(partial) > MAX_LINE:
                    raise DatasetError(f"{self.path} has a line of more than {MAX_LINE} octets")
        if partial:
            yield partial

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        lines: Lines = part.position
        octets = lines.octets
        if not octets:
            with self.path.open("rb") as file:
                file.seek(lines.start)
                octets = file.read(lines.length)
        if lines.start == 0:
            octets = octets.removeprefix(BOM)
        numbered = enumerate(octets.split(b"\n"), lines.number)
        with gc_paused():
            batch = [
                _record(line, number) for number, line in numbered if not line.isspace() and line
            ]
        yield batch


def _record(line: bytes, number: int) -> Record | Unreadable:
    try:
        record = parsed(line)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"line {number}", line, f"is no JSON: {error}")
    return (
        record if isinstance(record, dict) else Unreadable(f"line {number}", line, "is no object")
    )


to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encoded(record: Record) -> bytes:
    """A line."""
    try:
        return to_json(record).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can have and UTF-8 cannot
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def encode(records: Sequence[Record]) -> bytes:
    return b"".join(map(encoded, records))


def encode_columns(rows: Any) -> bytes:
    """Return columns as lines. `rows`: a Rows of arrow_schema."""
    from comity.dataset.files.arrow_lines import lines  # pyarrow is there where there are columns

    return lines(rows)


def compressed(codec: str, octets: bytes) -> bytes:
    return CODECS[codec].member(octets) if octets else b""


def encode_compressed(codec: str, records: Sequence[Record]) -> bytes:
    return compressed(codec, encode(records))


def encode_columns_compressed(codec: str, rows: Any) -> bytes:
    return compressed(codec, encode_columns(rows))


class Writer:
    """A new file of JSON Lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._codec = _codec_of(path)
        self.encode: Callable[[Sequence[Record]], bytes] = (
            partial(encode_compressed, self._codec) if self._codec else encode
        )
        self.encode_columns = (
            partial(encode_columns_compressed, self._codec) if self._codec else encode_columns
        )
        self._replacement = Replacement(path)

    def __enter__(self) -> Self:
        self._file = self._replacement.__enter__()
        self._empty = True
        return self

    def write(self, encoded: bytes) -> None:
        self._empty = self._empty and not encoded
        self._file.write(encoded)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._empty and self._codec and error is None:
            self._file.write(
                CODECS[self._codec].member(b"")
            )  # no octets at all are no compressed file
        self._replacement.__exit__(kind, error, trace)
