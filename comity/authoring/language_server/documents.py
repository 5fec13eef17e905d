"""Texts as editors have them: lines end at CR, LF and CRLF and at nothing else, columns count UTF-16 units, or what was agreed.

Buffer(text)      a text that is edited
Document(...)     a text as it stands at one moment, which features are asked about"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from urllib.parse import unquote, urlsplit

from lsprotocol.types import Position, PositionEncodingKind, Range

from comity.authoring.lint import Kind, kind_of
from comity.policies.formats.authoring import Draft, Edit

# Of a file that is larger not even what it is is looked at: policies are read up to 512 KiB.
MAX_TEXT = 4 * 1024 * 1024  # characters

_LINES = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can escape half of a pair

UTF8, UTF16, UTF32 = (
    PositionEncodingKind.Utf8,
    PositionEncodingKind.Utf16,
    PositionEncodingKind.Utf32,
)


def split(text: str) -> list[str]:
    """The lines of a text with their ends. The last one has none, and may be empty."""
    lines = _LINES.findall(text)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def without_surrogates(text: str) -> str:
    """The text without halves of characters, which no file can have."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _width(char: str, encoding: str) -> int:
    """The length of a character as the editor counts."""
    if encoding == UTF8:
        return len(char.encode("utf-8", "replace"))
    return 2 if encoding == UTF16 and char > "\uffff" else 1


def units(text: str, encoding: str) -> int:
    """The length of a text as the editor counts."""
    return len(text) if text.isascii() else sum(_width(char, encoding) for char in text)


def characters(text: str, count: int, encoding: str) -> int:
    """The number of characters before a column of a line; of a column within a character, those before the character."""
    if text.isascii() or encoding == UTF32:
        return max(0, min(count, len(text)))
    number = 0
    for char in text:
        count -= _width(char, encoding)
        if count < 0:
            break
        number += 1
    return number


def _measure(line: str, encoding: str) -> Sequence[int]:
    """Return what the editor counts before each character of a line, and before its end."""
    if line.isascii() or encoding == UTF32:
        return range(len(line) + 1)
    return list(accumulate((_width(char, encoding) for char in line), initial=0))


def without_end(line: str) -> str:
    return line.rstrip("\r\n")


class Buffer:
    """A text that is edited. What an edit costs depends on the lines that it touches alone."""

    def __init__(self, text: str, version: int | None = None) -> None:
        self.lines = split(without_surrogates(text))
        self.version = version

    def replace(self, range_: Range | None, text: str, encoding: str) -> None:
        """Replace a range by a text. A position that does not exist is the nearest that does. `range_` None: everything."""
        text = without_surrogates(text)
        if range_ is None:
            self.lines = split(text)
            return
        first, start = self._line_and_column(range_.start, encoding)
        last, end = self._line_and_column(range_.end, encoding)
        if (last, end) < (first, start):
            last, end = first, start
        # A CR and an LF that come together are one end of a line: the lines around are split again.
        before, after = max(first - 1, 0), min(last + 1, len(self.lines) - 1)
        head = "".join(self.lines[before:first]) + self.lines[first][:start]
        tail = self.lines[last][end:] + "".join(self.lines[last + 1 : after + 1])
        lines = split(head + text + tail)
        if after + 1 < len(self.lines) and not lines[-1]:
            lines.pop()
        self.lines[before : after + 1] = lines

    def _line_and_column(self, position: Position, encoding: str) -> tuple[int, int]:
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = without_end(self.lines[position.line])
        return position.line, characters(line, position.character, encoding)

    @property
    def text(self) -> str:
        return "".join(self.lines)


class Document:
    """A text as it stands at one moment. Lines and columns are 0-based here, and columns count characters, but in `Position`."""

    def __init__(
        self, uri: str, text: str, *, encoding: str = UTF16, lines: list[str] | None = None
    ) -> None:
        """`lines`: of the text, where they are known."""
        self.uri = uri
        self.text = text
        self.encoding = encoding
        self.path = unquote(urlsplit(uri).path) if ":" in uri else uri
        if lines is not None:
            self.lines = lines
        # The line that was asked for last: one line may have all that is asked about.
        self._bare = -1, ""
        self._measured: tuple[int, Sequence[int]] = -1, range(1)

    @cached_property
    def lines(self) -> list[str]:
        return split(self.text)

    @cached_property
    def body(self) -> bytes:
        return self.text.encode("utf-8", "replace")

    @cached_property
    def kind(self) -> Kind | None:
        """The kind of file; None: none that is known here."""
        return None if len(self.text) > MAX_TEXT else kind_of(self.path, self.body)

    @cached_property
    def draft(self) -> Draft:
        return Draft(self.uri, self.body)

    def line(self, number: int) -> str:
        """A line without its end; "" where there is none."""
        if self._bare[0] != number:
            self._bare = (
                number,
                without_end(self.lines[number]) if 0 <= number < len(self.lines) else "",
            )
        return self._bare[1]

    def position(self, line: int, column: int) -> Position:
        """The position as the editor counts."""
        return Position(line, self.units_before(line, column))

    def units_before(self, line: int, column: int) -> int:
        """Return what the editor counts before a column of a line."""
        if self._measured[0] != line:
            self._measured = line, _measure(self.line(line), self.encoding)
        widths = self._measured[1]
        return widths[max(0, min(column, len(widths) - 1))]

    def range(self, line: int, start: int, end: int, last: int | None = None) -> Range:
        """The range between two columns. `last`: the line of the end, where it is another one."""
        return Range(self.position(line, start), self.position(line if last is None else last, end))

    def line_and_column(self, position: Position) -> tuple[int, int]:
        """Line and column of the editor's position, the nearest that exist."""
        number = max(0, min(position.line, len(self.lines) - 1))
        if number < position.line:
            return number, len(self.line(number))
        return number, characters(self.line(number), position.character, self.encoding)

    @property
    def end(self) -> Position:
        return self.position(len(self.lines) - 1, len(self.lines[-1]))

    def range_of(self, edit: Edit) -> Range:
        """The range of octets of the body."""
        return Range(self._of_octets(edit.start), self._of_octets(edit.end))

    def _of_octets(self, octets: int) -> Position:
        line = min(max(bisect_right(self._octets, octets) - 1, 0), len(self.lines) - 1)
        before = self.body[self._octets[line] : octets].decode("utf-8", "replace")
        return Position(line, units(before, self.encoding))

    @cached_property
    def _octets(self) -> list[int]:
        """The octets before each line."""
        return list(
            accumulate((len(line.encode("utf-8", "replace")) for line in self.lines), initial=0)
        )
