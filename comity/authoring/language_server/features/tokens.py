"""Semantic tokens: the types of the words in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol.types import SemanticTokens, SemanticTokensLegend

from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.statements import Span, StatementForm
from comity.authoring.language_server.words import AGENT, NAME, PATH, URL

TYPES = ("keyword", "string", "variable", "enumMember", "comment", "type", "property", "class")
LEGEND = SemanticTokensLegend(token_types=list(TYPES), token_modifiers=[])
# The maximum number of tokens in one answer. Of larger files, editors request the visible part.
MAX_TOKENS = 20_000

_OF_KIND = {
    AGENT: "type",
    PATH: "string",
    URL: "string",
    NAME: "variable",
    "selector": "class",
    "text": "string",
}
_COMMENT = re.compile(r"(?:^[ \t\ufeff]*|[ \t])(#.*)")


def tokens(outline: FileOutline, first: int = 0, last: int | None = None) -> SemanticTokens:
    """Return the tokens of the lines from `first` to `last`. None means the last line."""
    first, last = (
        max(first, 0),
        len(outline.document.lines) - 1
        if last is None
        else min(last, len(outline.document.lines) - 1),
    )
    spans = sorted(_spans(outline.part(first, last), first, last), key=lambda token: token[0][:2])[
        :MAX_TOKENS
    ]
    data: list[int] = []
    line, start = 0, 0
    end = -1, 0
    for span, kind in spans:
        if (span.line, span.start) < end or span.end <= span.start:
            continue
        end = span.line, span.end
        column = outline.document.units_before(span.line, span.start)
        length = outline.document.units_before(span.line, span.end) - column
        data += [span.line - line, column - start if span.line == line else column, length, kind, 0]
        line, start = span.line, column
    return SemanticTokens(data)


def _spans(outline: FileOutline, first: int, last: int) -> Iterator[tuple[Span, int]]:
    for number in outline.between(first, last):
        statement = outline.statements[number]
        word = outline.word(statement)
        if word is None:
            continue
        yield statement.name_span, TYPES.index("property" if statement.is_attribute else "keyword")
        for value in outline.value_words(statement):
            kinds = (
                kind
                for kind in value.kinds
                if value.text.lower() in map(str.lower, word.values_of(kind))
            )
            kind = next(kinds, next((kind for kind in value.kinds if kind in _OF_KIND), ""))
            yield value.span, TYPES.index(_OF_KIND.get(kind, "enumMember"))
    if outline.form is StatementForm.LINES:
        for number in range(first, last + 1):
            line = outline.document.line(number)
            match = _COMMENT.search(line) if "#" in line else None
            if match:
                yield Span(number, match.start(1), match.end(1)), TYPES.index("comment")
