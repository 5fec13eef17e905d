"""JSON as people write it: with comments, and with commas before `]` and `}`.

    without_extras(text)      the text with spaces instead of these comments and commas
    strict_problem(text)      the reason why a strict reader refuses the text, and its offset
    strict_replacement(text)  the edit that makes the text strict JSON

The time is linear in the characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

_STRING = r"\"(?:[^\"\\\n]++|\\.)*+\"?+"
# A `/*` without `*/` matches up to the end of the text. For `_is_comment` it is not a comment.
_COMMENT = r"//[^\r\n]*+|#[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+"
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|{_COMMENT}")
_STRING_OR_COMMAS = re.compile(rf"{_STRING}|,[\s,]*+")
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}:,]|[^\s\"\[\]{{}}:,]++")
_CONSTANT = re.compile(r"[:\[,]\s*+(-?(?:NaN|Infinity))")
_NO_LINE_END = re.compile(r"[^\r\n]")
_SPACES = re.compile(r"[ \t]*+")
_LINE_END = re.compile(r"\r\n?|\n|\Z")


class TextReplacement(NamedTuple):
    """A replacement of the characters from `start` up to `end` of a text by another text.

    Attributes:
        start: The offset of the first character to replace.
        end: The offset behind the last one.
        text: The new text.
    """

    start: int
    end: int
    text: str


def without_extras(text: str) -> str:
    """Return the text with spaces instead of comments, and of commas before `]` and `}`.

    Offsets and line ends stay the same.
    """
    if any(sign in text for sign in ("//", "/*", "#")):
        text = _STRING_OR_COMMENT.sub(_blank_comment, text)

    def blank_commas(match: re.Match[str]) -> str:
        is_extra = match[0][0] == "," and text[match.end() : match.end() + 1] in ("]", "}")
        return match[0].replace(",", " ") if is_extra else match[0]

    return _STRING_OR_COMMAS.sub(blank_commas, text)


def _blank_comment(match: re.Match[str]) -> str:
    return _NO_LINE_END.sub(" ", match[0]) if _is_comment(match[0]) else match[0]


def _is_comment(token: str) -> bool:
    is_closed = len(token) > 3 and token.endswith("*/")
    return token[0] != '"' and (is_closed or not token.startswith("/*"))


def strict_problem(text: str) -> tuple[str, int] | None:
    """Return the reason why a strict reader refuses the text, and its offset in characters.

    None means that the text is strict JSON, or cannot be checked because it exceeds a limit of the
    decoder, such as the depth.
    """
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        pairs = zip(text, without_extras(text), strict=True)
        first = next((place for place, (written, kept) in enumerate(pairs) if written != kept), -1)
        if first < 0:
            return error.msg, error.pos
        if text[first] == ",":
            return "JSON has no comma before `]` and `}`", first
        return "JSON has no comments", first
    except _ConstantError:
        place = _CONSTANT.search(text)
        return "JSON has no NaN and no Infinity", place.start(1) if place else 0
    except (ValueError, RecursionError):  # the text exceeds a limit of the decoder
        return None
    return None


class _ConstantError(Exception):
    """The text has a constant that Python reads and JSON does not allow."""


def _refuse(constant: str) -> NoReturn:
    raise _ConstantError


def strict_replacement(text: str) -> TextReplacement:
    """Return the edit that makes the text strict JSON.

    It removes comments and superfluous commas, and inserts missing commas between the values of the
    outer array.
    """
    comments = (match for match in _STRING_OR_COMMENT.finditer(text) if _is_comment(match[0]))
    edits = [_without_comment(text, match.start(), match.end()) for match in comments]
    edits += _comma_edits(_STRING_OR_COMMENT.sub(_blank_comment, text))
    edits.sort()
    start = end = edits[0].start if edits else 0
    pieces: list[str] = []
    for edit in edits:
        pieces += text[end : edit.start], edit.text
        end = edit.end
    return TextReplacement(start, end, "".join(pieces))


def _without_comment(text: str, start: int, end: int) -> TextReplacement:
    """Return the edit that removes a comment.

    It also removes a line with nothing else in it, and the spaces before a comment at the end of a
    line.
    """
    before = start
    while before and text[before - 1] in " \t":
        before -= 1
    behind = _SPACES.match(text, end)
    assert behind  # the match may be empty
    if not (line_end := _LINE_END.match(text, behind.end())):
        return TextReplacement(start, behind.end(), "")
    is_alone = before == 0 or text[before - 1] in "\r\n"
    return TextReplacement(before, line_end.end() if is_alone else end, "")


def _comma_edits(text: str) -> Iterator[TextReplacement]:
    """Yield the edits of commas in a text without comments."""
    depth, last, last_end, comma = 0, "", 0, (0, 0)
    outer = text.lstrip("\ufeff \t\r\n,")[:1]
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if kind == ",":
            if last in ("", "[", ","):
                yield TextReplacement(*token.span(), "")
                continue
            comma = token.span()
        elif kind in ("]", "}"):
            if last == ",":
                yield TextReplacement(*comma, "")
            depth -= 1
        elif kind != ":" and depth == 1 and outer == "[" and last not in ("[", ",", ":"):
            yield TextReplacement(last_end, last_end, ",")
        depth += kind in ("[", "{")
        last, last_end = kind, token.end()
