"""JSON Lines (https://jsonlines.org): one record a line, plain or compressed (gzip, Zstandard).

A part of a file consists of whole lines. A part of a plain file has only the position of its lines.
A compressed file can only be read from its beginning, so its parts contain the lines themselves."""

from __future__ import annotations

import gzip
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
from comity.dataset.files.replacement import Replacement
from comity.dataset.records import (
    BOM,
    Batch,
    DatasetError,
    Record,
    Unreadable,
    encode_line,
    parse_json,
)
from comity.gc_pause import gc_paused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd  # Scrapy requires this package too

PART = 2 * 2**20  # octets of text that are read at a time
# The maximum octets of a line. A longer line is a mistake and not a record, and takes too much
# memory.
MAX_LINE = 128 * 2**20
# An escaped ASCII letter. It may be part of a key.
ESCAPED = re.compile(rb"\\u00[4-7]")


class Codec(NamedTuple):
    """A form of compression.

    A file consists of members one after the other, each complete in itself (RFC 1952 section-2.2,
    RFC 8878 section-3.1)."""

    opened: Callable[[IO[bytes]], Any]
    """Opens a compressed file for reading."""
    member: Callable[[bytes], bytes]
    """Compresses octets into a member."""


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


def codec_of(path: Path) -> str:
    """Return the key of a file in CODECS. "" if the file is not compressed."""
    return next((ending for ending in CODECS if path.name.lower().endswith(ending)), "")


def uncompressed(path: Path, file: IO[bytes]) -> IO[bytes]:
    """Return the text of an open file. If the file is not compressed, it is the file itself.

    DatasetError: the file is compressed, and has no octets."""
    codec = codec_of(path)
    # Python reads an empty file as gzip without members, that is as no records.
    if codec and not path.stat().st_size:
        raise DatasetError(f"{path} is damaged, or cut off while it was written: it has no octets")
    return cast(IO[bytes], CODECS[codec].opened(file)) if codec else file


class LinePart(NamedTuple):
    """The position of a part."""

    number: int
    """The number of the first line of the part. The first line of the file is 1."""
    start: int
    """The offset of the part in the uncompressed text, in octets."""
    octets: bytes
    """The lines of the part if the file is compressed. Empty for a plain file."""
    length: int
    """The length of the lines in octets."""


class Reader(formats.Reader):
    """A file of JSON Lines. Empty lines are ignored."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._codec = codec_of(path)

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        word = key.encode()
        with self.path.open("rb") as file:
            return any(
                word in lines or ESCAPED.search(lines)
                for lines in self._lines(uncompressed(self.path, file))
            )

    def parts(self) -> Iterator[Part]:
        number, start, done = 1, 0, 0
        with self.path.open("rb") as file:
            for lines in self._lines(uncompressed(self.path, file)):
                end = file.tell() if self._codec else start + len(lines)
                yield Part(
                    LinePart(number, start, lines if self._codec else b"", len(lines)), end - done
                )
                done = end
                number += lines.count(b"\n")
                start += len(lines)

    def _lines(self, text: IO[bytes]) -> Iterator[bytes]:
        """Yield the text in pieces of whole lines. The last line may lack its line feed."""
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
        lines: LinePart = part.position
        octets = lines.octets
        if not octets:
            with self.path.open("rb") as file:
                file.seek(lines.start)
                octets = file.read(lines.length)
        if lines.start == 0:
            octets = octets.removeprefix(BOM)
        numbered = enumerate(octets.split(b"\n"), lines.number)
        with gc_paused():
            found = (
                self.record(line, number)
                for number, line in numbered
                if not line.isspace() and line
            )
            batch = [record for record in found if record is not None]
        yield batch

    def record(self, line: bytes, number: int) -> Record | Unreadable | None:
        """Return the record of a line. None if the line has none."""
        try:
            record = parse_json(line)
        except (ValueError, RecursionError) as error:
            return Unreadable(f"line {number}", line, f"is no JSON: {error}")
        if isinstance(record, dict):
            return record
        return Unreadable(f"line {number}", line, "is no object")


def encode(records: Sequence[Record]) -> bytes:
    """Return records as lines."""
    return b"".join(map(encode_line, records))


def encode_columns(rows: Any) -> bytes:
    """Return columns as lines. `rows`: a Rows of arrow_schema."""
    # Imported here because pyarrow is installed only where there are columns.
    from comity.dataset.files.columns.arrow_lines import lines

    return lines(rows)


def compress(codec: str, octets: bytes) -> bytes:
    """Return octets as a compressed member. b"" if `octets` is empty. `codec`: a key of CODECS."""
    return CODECS[codec].member(octets) if octets else b""


def encode_compressed(codec: str, records: Sequence[Record]) -> bytes:
    """Return records as compressed lines."""
    return compress(codec, encode(records))


def encode_columns_compressed(codec: str, rows: Any) -> bytes:
    """Return columns as compressed lines."""
    return compress(codec, encode_columns(rows))


class Writer:
    """A new file of JSON Lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._codec = codec_of(path)
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
            # An empty file is not a valid compressed file.
            self._file.write(CODECS[self._codec].member(b""))
        self._replacement.__exit__(kind, error, trace)
