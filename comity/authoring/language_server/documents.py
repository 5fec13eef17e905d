"""Texts as editors see them.

Lines end at CR, LF and CRLF only. Columns count UTF-16 units, or the units that the editor and the
server agreed on.

Buffer(text)      a text that is edited
Document(...)     a text at one moment, for the features"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from urllib.parse import unquote, urlsplit

from lsprotocol.types import Position, PositionEncodingKind, Range

from comity.authoring.lint import LintKind, kind_of
from comity.policies.formats.authoring import Draft, Edit

# The maximum length of a text, in characters. A larger file counts as no policy file. Crawlers read
# at most 512 KiB of a policy.
MAX_TEXT = 4 * 1024 * 1024

_LINES = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can escape half of a pair

UTF8, UTF16, UTF32 = (
    PositionEncodingKind.Utf8,
    PositionEncodingKind.Utf16,
    PositionEncodingKind.Utf32,
)


def split(text: str) -> list[str]:
    """Return the lines of a text with their ends. The last line has no end, and may be empty."""
    lines = _LINES.findall(text)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def without_surrogates(text: str) -> str:
    """Return the text with U+FFFD in place of surrogates, which no file can contain."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _width(char: str, encoding: str) -> int:
    """Return the length of a character in units of the editor."""
    if encoding == UTF8:
        return len(char.encode("utf-8", "replace"))
    return 2 if encoding == UTF16 and char > "\uffff" else 1


def units(text: str, encoding: str) -> int:
    """Return the length of a text in units of the editor."""
    return len(text) if text.isascii() else sum(_width(char, encoding) for char in text)


def characters(text: str, count: int, encoding: str) -> int:
    """Return the number of characters before a column of a line.

    `count`: the column, in units of the editor. A column inside a character counts as the start of
    the character."""
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
    """Return the editor's column of each character of a line, and of its end."""
    if line.isascii() or encoding == UTF32:
        return range(len(line) + 1)
    return list(accumulate((_width(char, encoding) for char in line), initial=0))


def without_end(line: str) -> str:
    return line.rstrip("\r\n")


class Buffer:
    """A text that is edited. The time of an edit depends only on the lines that it touches."""

    def __init__(self, text: str, version: int | None = None) -> None:
        self.lines = split(without_surrogates(text))
        self.version = version

    def replace(self, range_: Range | None, text: str, encoding: str) -> None:
        """Replace a range by a text.

        `range_`: None means the whole text. Positions outside the text count as the nearest ones in
        it."""
        text = without_surrogates(text)
        if range_ is None:
            self.lines = split(text)
            return
        first, start = self._line_and_column(range_.start, encoding)
        last, end = self._line_and_column(range_.end, encoding)
        if (last, end) < (first, start):
            last, end = first, start
        # The edit may join a CR and an LF into one line end, so the adjacent lines are split again.
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
    """A text at one moment.

    Lines and columns count from 0, and columns count characters. Only `Position` counts units of
    the editor."""

    def __init__(
        self, uri: str, text: str, *, encoding: str = UTF16, lines: list[str] | None = None
    ) -> None:
        """`lines`: the lines of the text, if they are known already."""
        self.uri = uri
        self.text = text
        self.encoding = encoding
        self.path = unquote(urlsplit(uri).path) if ":" in uri else uri
        if lines is not None:
            self.lines = lines
        # Both keep the result for the line that was asked for last, with its number: `line` and
        # `units_before` are called often for one line, which may be as long as the whole text.
        self._bare = -1, ""
        self._measured: tuple[int, Sequence[int]] = -1, range(1)

    @cached_property
    def lines(self) -> list[str]:
        return split(self.text)

    @cached_property
    def body(self) -> bytes:
        return self.text.encode("utf-8", "replace")

    @cached_property
    def kind(self) -> LintKind | None:
        """The kind of file. None means that it is no policy file, or larger than MAX_TEXT."""
        return None if len(self.text) > MAX_TEXT else kind_of(self.path, self.body)

    @cached_property
    def draft(self) -> Draft:
        return Draft(self.uri, self.body)

    def line(self, number: int) -> str:
        """Return a line without its end, or "" if it does not exist."""
        if self._bare[0] != number:
            self._bare = (
                number,
                without_end(self.lines[number]) if 0 <= number < len(self.lines) else "",
            )
        return self._bare[1]

    def position(self, line: int, column: int) -> Position:
        """Return the editor's position for a line and column."""
        return Position(line, self.units_before(line, column))

    def units_before(self, line: int, column: int) -> int:
        """Return the number of the editor's units before a column of a line."""
        if self._measured[0] != line:
            self._measured = line, _measure(self.line(line), self.encoding)
        widths = self._measured[1]
        return widths[max(0, min(column, len(widths) - 1))]

    def range(self, line: int, start: int, end: int, last: int | None = None) -> Range:
        """Return the editor's range from column `start` of `line` to column `end` of `last`.

        `last`: None means `line`."""
        return Range(self.position(line, start), self.position(line if last is None else last, end))

    def line_and_column(self, position: Position) -> tuple[int, int]:
        """Return the line and column for a position of the editor.

        A position outside the text counts as the nearest position inside it."""
        number = max(0, min(position.line, len(self.lines) - 1))
        if number < position.line:
            return number, len(self.line(number))
        return number, characters(self.line(number), position.character, self.encoding)

    @property
    def end(self) -> Position:
        """The end of the text."""
        return self.position(len(self.lines) - 1, len(self.lines[-1]))

    def range_of(self, edit: Edit) -> Range:
        """Return the editor's range for an edit. Edits count octets of `body`."""
        return Range(self._position_of_octet(edit.start), self._position_of_octet(edit.end))

    def _position_of_octet(self, octets: int) -> Position:
        line = min(max(bisect_right(self._octets, octets) - 1, 0), len(self.lines) - 1)
        before = self.body[self._octets[line] : octets].decode("utf-8", "replace")
        return Position(line, units(before, self.encoding))

    @cached_property
    def _octets(self) -> list[int]:
        """The number of octets before each line, and of the whole body."""
        return list(
            accumulate((len(line.encode("utf-8", "replace")) for line in self.lines), initial=0)
        )
