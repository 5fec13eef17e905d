"""The tokens of tinyhtml5, each in a time that grows with its length.

tinyhtml5 reads names, comments and references letter by letter and joins them as strings, so that a
hostile page takes the square of its length. `int` raises for a reference with 5,000 digits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tinyhtml5.constants import Token, replacement_characters
from tinyhtml5.inputstream import HTMLUnicodeInputStream
from tinyhtml5.tokenizer import HTMLTokenizer

from comity.policies.document.html.tree import UnreadError

# Attributes of a tag. tinyhtml5 compares each name with all before it.
MAX_ATTRIBUTES = 1_000
# Characters of a doctype.
MAX_DOCTYPE = 10_000
# The longest name of an element in which there are no tags: `noscript` and `plaintext` are shorter.
_MAX_RAW_NAME = 20

_COMMENT = re.compile(  # section-13.2.5.43 and those after it
    r"-?>|(?P<data>.*?)(?:--!?>|(?:--!|--?)?\Z)", re.DOTALL
)
_NEWLINE = re.compile(r"\n|&#(?:0*+10(?!\d)|[xX]0*+[aA](?![0-9a-fA-F]));?")
_NAME_ENDS = frozenset("\t\n\f />")
_ATTRIBUTE_ENDS = _NAME_ENDS | {"="}
_DECIMAL = re.compile("0*+([0-9]*+);?")
_HEX = re.compile("0*+([0-9a-fA-F]*+);?")
_UNREADABLE_NUMBER = 0x110000
_SURROGATES = range(0xD800, 0xE000)


class Stream(HTMLUnicodeInputStream):
    """The text of a page in one piece, so that an offset in it is a place of the page.

    The stream of tinyhtml5 opens a file if the text of a page is the path of one."""

    def __init__(self, text: str) -> None:
        self.encoding = (None, "certain")
        self.errors: list[str] = []
        self.chunk = text
        self.chunk_size = len(text)
        self.chunk_offset = 0

    def read_chunk(self) -> bool:
        return False

    def chars_until(self, characters: Any, opposite: bool = False) -> str:  # noqa: FBT001, FBT002  # as in tinyhtml5
        start, chunk = self.chunk_offset, self.chunk
        match = _set_of(frozenset(characters), is_negated=not opposite).match(chunk, start)
        self.chunk_offset = match.end() if match else start
        return chunk[start : self.chunk_offset]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what the pattern matches."""
        match = pattern.match(self.chunk, self.chunk_offset)
        self.chunk_offset = match.end() if match else self.chunk_offset
        return match


_SETS: dict[tuple[frozenset[str], bool], re.Pattern[str]] = {}


def _set_of(characters: frozenset[str], *, is_negated: bool) -> re.Pattern[str]:
    """Return the pattern of one or more of the characters; negated: of one or more others."""
    key = characters, is_negated
    if key not in _SETS:
        letters = "".join(f"\\x{ord(character):02x}" for character in sorted(characters))
        _SETS[key] = re.compile(f"[{'^' if is_negated else ''}{letters}]++")
    return _SETS[key]


class Tokenizer(HTMLTokenizer):
    """The tokenizer of tinyhtml5. Start tags have the keys `start` and `end`: their offsets."""

    def __init__(self, text: str, parser: Any) -> None:
        self.stream = Stream(text)
        self.parser = parser
        self.state = self.data_state
        self.current_token: Any = None
        self._parts: list[str] = []  # of the value that is being read

    def parse_error(self, _data: str, **datavars: Any) -> None:
        """Do nothing: errors of a page are of no interest here."""

    def skip_newline(self) -> None:
        """Skip a line end that follows: it begins the content of a `pre` or `textarea`."""
        self.stream.take(_NEWLINE)

    def tag_open_state(self) -> bool:
        start = self.stream.chunk_offset - 1
        going: bool = super().tag_open_state()
        if self.state == self.tag_name_state:
            self.current_token["start"] = start
        return going

    def emit_current_token(self) -> None:
        self._join_parts()
        if self.current_token["type"] is Token.START_TAG:
            self.current_token["end"] = self.stream.chunk_offset
        super().emit_current_token()

    def tag_name_state(self) -> bool:
        self.current_token["name"] += self._until(_NAME_ENDS)
        return bool(super().tag_name_state())

    def attribute_name_state(self) -> bool:
        attributes = self.current_token["data"]
        if len(attributes) > MAX_ATTRIBUTES:
            raise UnreadError
        attributes[-1][0] += self._until(_ATTRIBUTE_ENDS)
        return bool(super().attribute_name_state())

    def _until(self, characters: frozenset[str]) -> str:
        return self.stream.chars_until(characters).replace("\0", "\ufffd")

    def attribute_value_double_quoted_state(self) -> bool:
        return self._in_value(super().attribute_value_double_quoted_state)

    def attribute_value_single_quoted_state(self) -> bool:
        return self._in_value(super().attribute_value_single_quoted_state)

    def attribute_value_unquoted_state(self) -> bool:
        return self._in_value(super().attribute_value_unquoted_state)

    def _in_value(self, read: Callable[[], bool]) -> bool:
        """Read a part of a value, and join the parts behind the last one."""
        attribute = self.current_token["data"][-1]
        self._parts.append(attribute[1])
        attribute[1] = ""
        state = self.state
        read()
        if self.state != state:
            self._join_parts()
        return True

    def _join_parts(self) -> None:
        if self._parts:
            attribute = self.current_token["data"][-1]
            attribute[1] = "".join((*self._parts, attribute[1]))
            self._parts.clear()

    def consume_number_entity(self, is_hex: bool) -> str:  # noqa: FBT001  # as in tinyhtml5
        match = self.stream.take(_HEX if is_hex else _DECIMAL)
        digits = (match[1] if match else "") or "0"
        number = int(digits, 16 if is_hex else 10) if len(digits) < 8 else _UNREADABLE_NUMBER
        if number in replacement_characters:
            return str(replacement_characters[number])
        return "\ufffd" if number >= _UNREADABLE_NUMBER or number in _SURROGATES else chr(number)

    def comment_start_state(self) -> bool:
        match = self.stream.take(_COMMENT)
        data = (match["data"] if match else None) or ""
        self.token_queue.append({"type": Token.COMMENT, "data": data.replace("\0", "\ufffd")})
        self.state = self.data_state
        return True

    def doctype_state(self) -> bool:
        stream = self.stream
        end = stream.chunk_offset + MAX_DOCTYPE
        if end < stream.chunk_size and stream.chunk.find(">", stream.chunk_offset, end) < 0:
            raise UnreadError
        return bool(super().doctype_state())


def _ended(state: Callable[[Any], bool], raw_state: str, output: str) -> Callable[[Any], bool]:
    """Return the state for the name of an end tag, ended by a name longer than any that counts.

    `output`: text that was read and is not yet a token, before the name."""

    def bounded(self: Any) -> bool:
        if len(self.temporary_buffer) <= _MAX_RAW_NAME:
            return state(self)
        if output:
            self.characters(output + self.temporary_buffer)
        self.state = getattr(self, raw_state)
        return True

    return bounded


for _name, _raw_state, _output in (
    ("rcdata_end_tag_name_state", "rcdata_state", "</"),
    ("rawtext_end_tag_name_state", "rawtext_state", "</"),
    ("script_data_end_tag_name_state", "script_data_state", "</"),
    ("script_data_escaped_end_tag_name_state", "script_data_escaped_state", "</"),
    ("script_data_double_escape_start_state", "script_data_escaped_state", ""),
    ("script_data_double_escape_end_state", "script_data_double_escaped_state", ""),
):
    setattr(Tokenizer, _name, _ended(getattr(HTMLTokenizer, _name), _raw_state, _output))
