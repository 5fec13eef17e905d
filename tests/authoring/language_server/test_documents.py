"""Texts and positions in them, in the units of editors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, Range

from comity.authoring.language_server.documents import (
    UTF8,
    UTF16,
    UTF32,
    Buffer,
    Document,
    characters,
    split,
    units,
    without_surrogates,
)
from comity.policies.formats.authoring import Edit

# Characters that end lines in other programs, and characters of one to four octets.
TEXTS = st.text(st.sampled_from("ab :/#\r\n\t\x0b\x0c\x85\u2028é€\ufeff😀\ud800"), max_size=60)
ENCODINGS = [UTF8, UTF16, UTF32]


@given(TEXTS)
def test_lines_end_at_cr_lf_and_crlf_and_at_nothing_else(text: str) -> None:
    lines = split(text)
    assert "".join(lines) == text
    assert [line.rstrip("\r\n") for line in lines] == text.replace("\r\n", "\n").replace(
        "\r", "\n"
    ).split("\n")


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(TEXTS.map(without_surrogates))
def test_a_column_is_that_number_of_characters_again(encoding: str, text: str) -> None:
    for number in range(len(text) + 1):
        assert characters(text, units(text[:number], encoding), encoding) == number


@pytest.mark.parametrize(
    ("encoding", "columns"), [(UTF8, [0, 4, 6, 7]), (UTF16, [0, 2, 3, 4]), (UTF32, [0, 1, 2, 3])]
)
def test_characters_beyond_the_basic_plane_are_two_units_of_utf_16_and_four_of_utf_8(
    encoding: str, columns: list[int]
) -> None:
    text = "😀éx"
    assert [units(text[:number], encoding) for number in range(4)] == columns
    document = Document("file:///robots.txt", text, encoding=encoding)
    assert [document.position(0, number).character for number in range(4)] == columns


def test_a_column_within_a_character_is_the_one_before_it() -> None:
    assert characters("😀x", 1, UTF16) == 0
    assert characters("😀x", 3, UTF8) == 0


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(TEXTS, TEXTS, st.data())
def test_an_edit_makes_the_text_that_the_editor_has(
    encoding: str, text: str, new: str, data: st.DataObject
) -> None:
    text, new = without_surrogates(text), without_surrogates(new)
    buffer, document = Buffer(text), Document("untitled:a", text, encoding=encoding)
    places = [
        (line, column)
        for line in range(len(document.lines))
        for column in range(len(document.line(line)) + 1)
    ]
    start, end = sorted(data.draw(st.tuples(st.sampled_from(places), st.sampled_from(places))))
    buffer.replace(Range(document.position(*start), document.position(*end)), new, encoding)

    def offset(place: tuple[int, int]) -> int:
        return len("".join(document.lines[: place[0]])) + place[1]

    assert buffer.text == text[: offset(start)] + new + text[offset(end) :]
    assert buffer.lines == split(buffer.text)


@given(TEXTS, st.lists(st.tuples(*[st.integers(0, 2**31 - 1)] * 4, TEXTS), max_size=5))
def test_places_that_do_not_exist_are_the_nearest_that_do(
    text: str, edits: list[tuple[int, int, int, int, str]]
) -> None:
    buffer = Buffer(text)
    for line, column, last, end, new in edits:
        buffer.replace(Range(Position(line, column), Position(last, end)), new, UTF16)
        assert buffer.lines == split(buffer.text)
        buffer.text.encode()  # raises an error for surrogates


def test_octets_of_an_edit_are_a_range_of_the_editor() -> None:
    document = Document("file:///robots.txt", "# 😀\r\nAllow: é/\n")
    start = document.body.index(b"/")
    assert document.range_of(Edit(start, start + 1, b"")) == Range(Position(1, 8), Position(1, 9))


def test_a_document_knows_what_it_is_by_its_name_or_by_what_stands_in_it() -> None:
    named = Document("file:///a%20b/robots.txt", "")
    assert named.kind
    assert named.kind.path == "/robots.txt"
    written = Document("file:///terms.xml", '<rsl xmlns="https://rslstandard.org/rsl"/>')
    assert written.kind
    assert written.kind.name == "rsl.xml"
    assert Document("file:///main.py", "").kind is None
