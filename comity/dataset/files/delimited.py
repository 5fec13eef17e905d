"""CSV and TSV (RFC 4180): the first line names the columns, and each further record is a row.

All values are texts, because a number would lose digits and leading zeros. CSV is only read: it has
no nulls, lists or objects, so a tagged record would lose something.

A part of a file consists of whole records. A part of a plain file has only the position of its
lines. A compressed file can only be read from its beginning, so its parts contain the lines
themselves."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from comity.dataset.files import formats
from comity.dataset.files.formats import Part
from comity.dataset.files.jsonl import (
    DAMAGED,
    ESCAPED,
    MAX_LINE,
    PART,
    LinePart,
    codec_of,
    uncompressed,
)
from comity.dataset.records import BOM, Batch, DatasetError, Record, Unreadable
from comity.gc_pause import gc_paused
from comity.policies.syntax.printable import printable

# Python's limit of 128 KiB for a field is for all readers of the process.
csv.field_size_limit(max(MAX_LINE, csv.field_size_limit()))
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# The beginning of an error of Python's reader that is about its own arguments -> what it means.
_ERRORS = {
    "new-line character": "a carriage return is outside quotation marks",
    "unexpected end of data": "the file ends within quotation marks",
}
_DELIMITERS = ";\t|,"
_REMEDY = "write the names of the columns into the first line, e.g. url,date,text"


class _Row(NamedTuple):
    """A record of the file, or the octets in its place."""

    number: int
    """The number of its first line."""
    octets: bytes
    """Its lines."""
    values: list[str]
    """The values. Empty for an empty line."""
    error: str = ""
    """The reason why the record cannot be read. "" if it can be read."""


class _Lines:
    """The lines of a file as texts, for csv.reader. Also the octets of the current record."""

    def __init__(self, file: IO[bytes], path: Path, number: int = 1) -> None:
        """`number`: the number of the first line."""
        self._file, self._path = file, path
        self.next = number
        """The number of the next line."""
        self.begin()

    def begin(self) -> None:
        """Begin a new record with the next line."""
        self._number, self._is_text = self.next, True
        self._record: list[bytes] = []
        self._octets = 0

    def row(self, values: list[str], error: str = "") -> _Row:
        """Return the current record."""
        error = error or ("" if self._is_text else "is not UTF-8")
        return _Row(self._number, b"".join(self._record), values, error)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._file.readline(MAX_LINE + 1)
        except DAMAGED as error:
            raise DatasetError(
                f"{self._path} is damaged, or cut off while it was written: {error}"
            ) from None
        if not line:
            raise StopIteration
        self._record.append(line)
        self._octets += len(line)
        if self._octets > MAX_LINE:
            raise DatasetError(
                f"{self._path}: the record at line {self._number} has more than {MAX_LINE} octets."
                " Close its quotation mark"
            )
        self.next += 1
        if self.next == 2:
            line = line.removeprefix(BOM)
        try:
            return line.decode()
        except UnicodeDecodeError:
            self._is_text = False
            return line.decode(errors="replace")


def _rows(lines: _Lines, delimiter: str) -> Iterator[_Row]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin()
        try:
            yield lines.row(next(reader))
        except StopIteration:
            return
        except csv.Error as error:
            text = str(error)
            known = (meaning for start, meaning in _ERRORS.items() if text.startswith(start))
            yield lines.row([], f"is not CSV: {next(known, text)}")


class Reader(formats.Reader):
    """A file of CSV or TSV. Empty lines are ignored."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._delimiter = "\t" if ".tsv" in path.name.lower() else ","

    @cached_property
    def column_names(self) -> Sequence[str]:
        """The names of the columns.

        DatasetError: the file has no header, or its values are separated in another way."""
        with self.path.open("rb") as file:
            header = next(self._rows(file), _Row(1, b"", []))
        if error := _header_error(header, self._delimiter):
            raise DatasetError(f"{self.path}, line {header.number}: {error}")
        return tuple(header.values)

    def _rows(self, file: IO[bytes]) -> Iterator[_Row]:
        lines = _Lines(uncompressed(self.path, file), self.path)
        return (row for row in _rows(lines, self._delimiter) if row.values or row.error)

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        word = key.encode()
        with self.path.open("rb") as file:
            return any(word in row.octets or ESCAPED.search(row.octets) for row in self._rows(file))

    def parts(self) -> Iterator[Part]:
        assert self.column_names
        is_plain = not codec_of(self.path)
        number, start, done = 0, 0, 0
        lines: list[bytes] = []
        length = 0
        with self.path.open("rb") as file:
            text = _Lines(uncompressed(self.path, file), self.path)
            rows = _rows(text, self._delimiter)
            for header in rows:
                start += len(header.octets)
                if header.values:
                    break
            number = text.next
            for row in rows:
                length += len(row.octets)
                if not is_plain:
                    lines.append(row.octets)
                if length >= PART:
                    end = start + length if is_plain else file.tell()
                    yield Part(LinePart(number, start, b"".join(lines), length), end - done)
                    number, start, done = text.next, start + length, end
                    lines, length = [], 0
        yield Part(LinePart(number, start, b"".join(lines), length), self.size - done)

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        place: LinePart = part.position
        octets = place.octets
        if not octets:
            with self.path.open("rb") as file:
                file.seek(place.start)
                octets = file.read(place.length)
        names = self.column_names
        rows = _rows(_Lines(BytesIO(octets), self.path, place.number), self._delimiter)
        with gc_paused():
            batch = [_record(row, names) for row in rows if row.values or row.error]
        yield batch


def _header_error(header: _Row, delimiter: str) -> str:
    """Return the reason why a record is not a header. "" if it may be one."""
    names = header.values
    if header.octets.startswith(_UTF16):
        return "the file is UTF-16: convert it with `iconv -f utf-16 -t utf-8`"
    if header.error:
        return header.error
    if not names:
        return f"there is no header: {_REMEDY}"
    if url := next((name for name in names if "://" in name), ""):
        return f"`{printable(url)}` is a URL, so this line is not a header: {_REMEDY}"
    if repeated := next((name for name in names if names.count(name) > 1), ""):
        return f"two of its columns are called `{printable(repeated)}`"
    other = next((sign for sign in _DELIMITERS if sign in names[0]), "")
    if len(names) == 1 and other:
        sign = {"\t": "tabs", ",": "commas"}.get(delimiter, delimiter)
        return f"`{printable(names[0])}` is one name: separate columns by {sign}"
    return ""


def _record(row: _Row, names: Sequence[str]) -> Record | Unreadable:
    error = row.error
    if not error and len(row.values) != len(names):
        error = f"has {len(row.values)} values, and the header has {len(names)}"
    return (
        Unreadable(f"line {row.number}", row.octets, error)
        if error
        else dict(zip(names, row.values, strict=True))
    )


class Writer:
    """CSV cannot be written: it has no nulls, lists and objects."""

    def __init__(self, path: Path) -> NoReturn:
        raise DatasetError(
            f"{path}: records cannot be written as CSV without loss: choose .jsonl or .parquet"
        )
