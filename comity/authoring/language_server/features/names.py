"""Find and rename the names that a file defines, for example the sets and usages of ACAP.

A directive defines a name if the first kind of its value is `name`. A name is the name of a set or
of a usage. References to a set have a prefix, which the format lists in its values as
`the-acap:resource-set:NAME`. References to a usage are in parentheses, in names of lines
(`ACAP-allow-(NAME)`) and in values of definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lsprotocol.types import Location, Position, Range, TextEdit, WorkspaceEdit

from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.statements import FileStatement, Span, StatementForm
from comity.authoring.language_server.words import NAME, PLACEHOLDER, Word

_VALID = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_PARENTHESES = re.compile(r"\(([A-Za-z][A-Za-z0-9._-]*)\)")


class Definition(NamedTuple):
    """The definition of a name.

    A set and a usage may have equal names. Names are compared without regard to case.

    Attributes:
        name: The name, as written.
        span: The place of the name.
        word: The word of the directive that defines the name.
        statement: The statement that defines the name.
    """

    name: str
    span: Span
    word: Word
    statement: FileStatement

    @property
    def is_usage(self) -> bool:
        """True for a usage, False for a set."""
        return _reference_prefix(self.word) == ""


class Occurrence(NamedTuple):
    """A place where a name is written: in its definition, or in a reference to it.

    Attributes:
        key: (True for a usage or False for a set, the name in lower case).
        span: The place of the name.
        is_definition: True for a definition.
    """

    key: tuple[bool, str]
    span: Span
    is_definition: bool


def _reference_prefix(word: Word) -> str:
    """Return the text before the name in references to a name that the word defines.

    For a set it is "the-acap:resource-set:". "" means that the name is a usage: references are in
    parentheses, without a prefix."""
    last = word.directive.name.partition("-")[2].lower()
    for values in word.format.authoring.values.values():
        for value in values:
            if value.endswith(f":{PLACEHOLDER}") and f":{last}:" in value.lower():
                return value.removesuffix(PLACEHOLDER).lower()
    return ""


def definitions(outline: FileOutline) -> Iterator[Definition]:
    """Yield the definitions in the whole document."""
    outline = outline.whole
    for statement in outline.statements_with(NAME) if outline.form is StatementForm.LINES else ():
        word = outline.word(statement)
        if word and word.value_kinds[:1] == (NAME,):
            first = next(outline.value_words(statement), None)
            if first and _VALID.fullmatch(first.text):
                yield Definition(first.text, first.span, word, statement)


def occurrences(outline: FileOutline) -> Iterator[Occurrence]:
    """Yield the occurrences in the outline, statement by statement.

    Only names that the whole document defines have occurrences."""
    definition_of: dict[tuple[bool, str], Definition] = {}
    prefixes: dict[str, None] = {}
    for definition in definitions(outline):
        definition_of.setdefault((definition.is_usage, definition.name.lower()), definition)
        if prefix := _reference_prefix(definition.word):
            prefixes[prefix] = None
    if not definition_of:
        return
    for statement in outline.statements:
        word = outline.word(statement)
        is_defining = word is not None and word.value_kinds[:1] == (NAME,)
        for span in (statement.name_span, *((statement.value_span,) if is_defining else ())):
            for match in _PARENTHESES.finditer(
                outline.document.line(span.line)[span.start : span.end]
            ):
                key = (True, match[1].lower())
                if key in definition_of:
                    in_parentheses = Span(
                        span.line, span.start + match.start(1), span.start + match.end(1)
                    )
                    yield Occurrence(key, in_parentheses, is_definition=False)
        for number, value in enumerate(outline.value_words(statement)):
            if is_defining and number == 0:
                key = (_is_usage(word), value.text.lower())
                if key in definition_of:
                    yield Occurrence(key, value.span, is_definition=True)
                continue
            before = next(
                (prefix for prefix in prefixes if value.text.lower().startswith(prefix)), None
            )
            if (
                before is not None
                and (key := (False, value.text[len(before) :].lower())) in definition_of
            ):
                line, start, end = value.span
                yield Occurrence(key, Span(line, start + len(before), end), is_definition=False)


def _is_usage(word: Word | None) -> bool:
    return word is not None and _reference_prefix(word) == ""


def defined_names(outline: FileOutline, *, usages: bool) -> list[str]:
    """Return the names of all usages, or of all sets, that the file defines."""
    names = (
        definition.name for definition in definitions(outline) if definition.is_usage is usages
    )
    return list(dict.fromkeys(names))


def set_values(outline: FileOutline) -> list[str]:
    """Return a reference to each set that the file defines: "the-acap:resource-set:images"."""
    sets = [definition for definition in definitions(outline) if not definition.is_usage]
    return list(
        dict.fromkeys(_reference_prefix(definition.word) + definition.name for definition in sets)
    )


def occurrence_at(outline: FileOutline, position: Position) -> Occurrence | None:
    """Return the occurrence of a name at a position, if there is one."""
    line, column = outline.document.line_and_column(position)
    return next(
        (occurrence for occurrence in occurrences(outline) if occurrence.span.holds(line, column)),
        None,
    )


def name_range(outline: FileOutline, position: Position) -> Range | None:
    """Return the range of the name at a position, if there is one."""
    occurrence = occurrence_at(outline, position)
    return outline.document.range(*occurrence.span) if occurrence else None


def locations(
    outline: FileOutline,
    position: Position,
    *,
    definitions_only: bool,
    with_definitions: bool = True,
) -> list[Location]:
    """Return the places in the file of the name at a position.

    These are its references and its definitions.

    `definitions_only`: True to return the definitions only.
    `with_definitions`: False to return the references only."""
    target = occurrence_at(outline, position)
    return [
        Location(outline.document.uri, outline.document.range(*occurrence.span))
        for occurrence in (occurrences(outline) if target else ())
        if target
        and occurrence.key == target.key
        and (
            occurrence.is_definition
            if definitions_only
            else with_definitions or not occurrence.is_definition
        )
    ]


def rename(outline: FileOutline, position: Position, new_name: str) -> WorkspaceEdit | None:
    """Return the edits that rename the name at a position.

    None means that there is no name at the position, or that the new name cannot be used: it is
    invalid, or another set (for a set) or usage (for a usage) has it. The usages of the format
    itself count as well."""
    target = occurrence_at(outline, position)
    if target is None or not _VALID.fullmatch(new_name):
        return None
    is_taken = (
        new_name.lower() in map(str.lower, defined_names(outline, usages=target.key[0]))
        and new_name.lower() != target.key[1]
    )
    if is_taken or (target.key[0] and _is_built_in(outline, new_name)):
        return None
    edits = [
        TextEdit(outline.document.range(*occurrence.span), new_name)
        for occurrence in occurrences(outline)
        if occurrence.key == target.key
    ]
    return WorkspaceEdit(changes={outline.document.uri: edits})


def _is_built_in(outline: FileOutline, name: str) -> bool:
    return any(
        name.lower() in map(str.lower, word.values_of("usage")) for word in outline.words.words
    )
