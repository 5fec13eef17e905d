"""A document with the words of its formats: its statements, their values and their agents.

FileOutline(document)
FileOutline.statement_at(line, column)    the statement at a position, and the word of its value
FileOutline.part(first, last)             the outline of some lines
FileOutline.with_agents(line)             the outline of a line, and of the lines with its agents"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.statements import (
    FileStatement,
    Span,
    StatementForm,
    beginning,
    begins_anew,
    field,
    fields,
    form_of,
    statements,
)
from comity.authoring.language_server.words import AGENT, FileWords, Word, kinds_at, words_of

# Spaces, commas and semicolons separate the words of a value.
_VALUE_WORD = re.compile(r"[^\s,;]+")
# `ACAP-allow-(mine)` permits a usage that the file defines. The word of `ACAP-allow-other`
# describes it.
_PARENTHESES = re.compile(r"\(.*\)")
# Kinds of value that are one word, spaces and `#` included.
_WHOLE = ("selector", "element", "text", "guideline", "url")


class ValueWord(NamedTuple):
    """One word of a value.

    Attributes:
        text: The word.
        span: Its place.
        kinds: The possible kinds of value.
    """

    text: str
    span: Span
    kinds: tuple[str, ...]  # the possible kinds of value


class FileOutline:
    """The statements of a document, parsed when they are first needed.

    Attributes:
        document: The document.
        whole: The outline of the whole document, which is this one unless it is a part.
        form: The way in which names and values are written.
        words: The words of the formats in this kind of file.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.whole = self
        self.form = form_of(document.kind, document.text)
        self.words: FileWords = words_of(document.kind, self.form)

    @cached_property
    def statements(self) -> list[FileStatement]:
        """The statements in their order. A part has only those of its lines."""
        if self.document.kind is None:
            return []
        nesting, separator = self.words.nesting(), self.words.separator
        return statements(self.document.text, self.document.lines, self.form, nesting, separator)

    def part(self, first: int, last: int) -> FileOutline:
        """Return the outline of some lines, and of the lines above that they belong to.

        A key must not wait for the rest of a large file. The part ends with the line `last`:
        statements do not extend beyond it, and a list of agents may be incomplete."""
        return self._between_lines(self._start(first), last) if self._has_parts else self

    def with_agents(self, line: int) -> FileOutline:
        """Return the outline of a line and of lines above it, as far as they name its agents."""
        if not self._has_parts or not self.words.openers:
            return self
        lines = self.document.lines
        first = start = self._start(line + 1)
        name = self._name(lines[start])
        while first > 0 and self._name(lines[first - 1]) in ("", name):
            first -= 1
            start = first if self._name(lines[first]) else start
        return self._between_lines(start, line)

    @property
    def _has_parts(self) -> bool:
        """True if parts are worth their own outline: the whole document is not parsed yet."""
        return (
            self.form is StatementForm.LINES
            and self.document.kind is not None
            and "statements" not in self.__dict__
        )

    def _start(self, line: int) -> int:
        """Return the nearest line above `line` at which parsing can begin."""
        nesting = self.words.nesting()
        start = min(line, len(self.document.lines)) - 1
        while start > 0 and not begins_anew(
            self.document.lines[start], nesting, self.words.separator
        ):
            start -= 1
        return max(start, 0)

    def _name(self, line: str) -> str:
        """Return the name of a line in lower case, or "" if it has none."""
        line_field = field(line, self.words.separator)
        return line_field.name.lower() if line_field else ""

    def _between_lines(self, first: int, last: int) -> FileOutline:
        part = FileOutline(self.document)
        part.whole = self
        part.statements = list(
            fields(
                self.document.lines[first : last + 1],
                self.words.nesting(),
                first,
                separator=self.words.separator,
            )
        )
        return part

    @cached_property
    def _lines(self) -> list[int]:
        return [statement.name_span.line for statement in self.statements]

    def word(self, statement: FileStatement) -> Word | None:
        """Return the word for the name of a statement. None means that no format has the name."""
        name = (
            _PARENTHESES.sub("other", statement.name) if "(" in statement.name else statement.name
        )
        return self.words.get(
            name, self.statements[statement.parent].name if statement.parent >= 0 else ""
        )

    def between(self, first: int, last: int) -> range:
        """Return the numbers of the statements with names in these lines."""
        return range(bisect_right(self._lines, first - 1), bisect_right(self._lines, last))

    def statement_at(self, line: int, column: int) -> tuple[FileStatement, ValueWord | None] | None:
        """Return the statement at a position, and the word of its value at the position.

        The word is None if the position is in the name. The result is None if no statement is at
        the position, or if the position is in the value and not in a word."""
        for number in reversed(self.between(line - 20, line)):
            statement = self.statements[number]
            if statement.name_span.holds(line, column):
                return statement, None
            if (
                statement.value_span.line == line
                and statement.value_span.start <= column <= statement.value_span.end
            ):
                word = next(
                    (word for word in self.value_words(statement) if word.span.holds(line, column)),
                    None,
                )
                return (statement, word) if word else None
        return None

    def value_words(self, statement: FileStatement) -> Iterator[ValueWord]:
        """Yield the words in the first line of a value."""
        word = self.word(statement)
        line, start, end = statement.value_span
        value = self.document.line(line)[start:end]
        kinds = word.value_kinds if word else ()
        kinds = kinds or self.kinds_by_attribute(statement, word)
        if any(kind in _WHOLE for kind in kinds[:1]):
            if value:
                yield ValueWord(value, statement.value_span, kinds[:1])
            return
        if self.form is StatementForm.LINES:
            value = without_comment(value)
        for number, match in enumerate(_VALUE_WORD.finditer(value)):
            span = Span(line, start + match.start(), start + match.end())
            yield ValueWord(match[0], span, kinds_at(kinds, number))

    def kinds_by_attribute(self, statement: FileStatement, word: Word | None) -> tuple[str, ...]:
        """Return the kind of an element's content, if an attribute has the kind as its value.

        ("usage",) for an element with `type="usage"`; () for other elements and statements."""
        if word is None or self.form is not StatementForm.XML or statement.is_attribute:
            return ()
        number = self._numbers[statement]
        attributes = (
            other for other in self.statements[number + 1 : number + 11] if other.is_attribute
        )
        return tuple(
            other.value for other in attributes if other.value in word.format.authoring.values
        )[:1]

    @cached_property
    def _numbers(self) -> dict[FileStatement, int]:
        return {statement: number for number, statement in enumerate(self.statements)}

    def ancestors(self, statement: FileStatement) -> Iterator[FileStatement]:
        """Yield the statements that contain a statement, the innermost first."""
        while statement.parent >= 0:
            statement = self.statements[statement.parent]
            yield statement

    def agents_of(self, statement: FileStatement) -> list[str]:
        """Return the agents that a statement applies to: the nearest list of agents above it.

        In formats without nesting, return all agents that the block of the statement names."""
        for naming in (statement, *self.ancestors(statement)):
            word = self.word(naming)
            if word and AGENT in word.value_kinds:
                return self._agent_list(naming)
        return [] if self.words.openers else self._of_block(statement)

    def _of_block(self, statement: FileStatement) -> list[str]:
        """Return the agents in the block of a statement. Blank lines separate blocks."""
        number = self._numbers[statement]
        first = last = number
        while first and self._lines[first] - self._lines[first - 1] == 1:
            first -= 1
        while last + 1 < len(self._lines) and self._lines[last + 1] - self._lines[last] == 1:
            last += 1
        block = self.statements[first : last + 1]
        naming = [
            other for other in block if (word := self.word(other)) and AGENT in word.value_kinds
        ]
        return [word.text for other in naming for word in self.value_words(other)]

    def _agent_list(self, naming: FileStatement) -> list[str]:
        """Return the values of a list of agents: of adjacent statements with the same name."""
        if naming.parent >= 0 and naming.is_attribute:
            return [word.text for word in self.value_words(naming)]
        number = bisect_right(self._lines, naming.name_span.line) - 1
        first = number
        while first and _joins(self.statements[first - 1], naming):
            first -= 1
        last = number
        while (
            last + 1 < len(self.statements)
            and self._is_empty(last)
            and _joins(self.statements[last + 1], naming)
        ):
            last += 1
        return [
            word.text
            for statement in self.statements[first : last + 1]
            for word in self.value_words(statement)
        ]

    def _is_empty(self, number: int) -> bool:
        """Return True if a statement contains no other statement."""
        return self.statements[number].last_line == self.statements[number].name_span.line

    @cached_property
    def agents(self) -> list[str]:
        """The agents in the whole document, each once."""
        if self.whole is not self:
            return self.whole.agents
        return list(
            dict.fromkeys(
                value.text
                for statement in self.statements_with(AGENT)
                for value in self.value_words(statement)
            )
        )

    def statements_with(self, kind: str) -> Iterator[FileStatement]:
        """Yield the statements of the whole document that may have a value of this kind.

        If the names of lines tell the kind, only those lines are parsed: a key must not wait for
        the rest of a large file."""
        whole = self.whole
        names = (
            self.words.names_with(kind)
            if whole.form is StatementForm.LINES and "statements" not in whole.__dict__
            else None
        )
        if names is None:
            yield from (
                statement
                for statement in whole.statements
                if (word := whole.word(statement)) and kind in word.value_kinds
            )
        elif names and whole.document.kind is not None:
            begins = beginning(names, whole.words.separator)
            for number, line in enumerate(whole.document.lines):
                if begins(line):
                    yield from fields([line], {}, number, separator=whole.words.separator)


def _joins(other: FileStatement, naming: FileStatement) -> bool:
    return other.name.lower() == naming.name.lower() and other.depth == naming.depth


def without_comment(value: str) -> str:
    """Return a value without its comment: `#` at the start, or after a space or tab."""
    if value.startswith("#"):
        return ""
    end = min(
        (position for mark in (" #", "\t#") if (position := value.find(mark)) >= 0), default=-1
    )
    return value[:end].rstrip() if end >= 0 else value
