"""The symbols of a file: its groups and lines, and its folding ranges."""

from __future__ import annotations

from lsprotocol.types import DocumentSymbol, FoldingRange, FoldingRangeKind, Range, SymbolKind

from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.statements import FileStatement, StatementForm
from comity.authoring.language_server.words import AGENT, NAME

MAX_SYMBOLS = 2000  # of files with more statements, only groups are symbols
MAX_RANGES = 5000


def symbols(outline: FileOutline) -> list[DocumentSymbol]:
    """Return the symbols of a file, as a tree."""
    statements = outline.statements
    numbers = list(range(len(statements)))
    if len(statements) > MAX_SYMBOLS:
        numbers = [
            number
            for number in numbers
            if statements[number].last_line > statements[number].name_span.line
        ][:MAX_SYMBOLS]
    symbol_of: dict[int, DocumentSymbol] = {}
    roots: list[DocumentSymbol] = []
    for number in numbers:
        symbol = symbol_of[number] = _symbol(outline, statements[number])
        parent = statements[number].parent
        siblings = symbol_of[parent].children if parent in symbol_of else roots
        assert siblings is not None
        list.append(siblings, symbol)  # type: ignore[arg-type]
    return roots


def _symbol(outline: FileOutline, statement: FileStatement) -> DocumentSymbol:
    word = outline.word(statement)
    document = outline.document
    selection = document.range(*statement.name_span)
    end = max(statement.last_line, statement.name_span.line)
    extent = Range(selection.start, document.position(end, len(document.line(end))))
    kind = SymbolKind.Property
    if statement.last_line > statement.name_span.line or (word and AGENT in word.value_kinds):
        kind = SymbolKind.Namespace
    elif word and word.value_kinds[:1] == (NAME,):
        kind = SymbolKind.Variable
    name = (
        f"{statement.name}: {statement.value[:80]}"
        if statement.value and outline.form is StatementForm.LINES
        else statement.name
    )
    return DocumentSymbol(
        name=name,
        kind=kind,
        range=extent,
        selection_range=selection,
        detail=statement.value[:80]
        if outline.form is not StatementForm.LINES and statement.value
        else None,
        children=[],
    )


def folding(outline: FileOutline) -> list[FoldingRange]:
    """Return the folding ranges: blocks, and comments of several lines."""
    ranges = [
        FoldingRange(statement.name_span.line, statement.last_line)
        for statement in outline.statements
        if statement.last_line > statement.name_span.line and not statement.is_attribute
    ][:MAX_RANGES]
    if outline.form is StatementForm.LINES:
        ranges += _comments(outline)[: MAX_RANGES - len(ranges)]
    return ranges


def _comments(outline: FileOutline) -> list[FoldingRange]:
    ranges, first = [], -1
    for number, line in enumerate((*outline.document.lines, "")):
        if line.lstrip().startswith("#"):
            first = number if first < 0 else first
        else:
            if 0 <= first < number - 1:
                ranges.append(FoldingRange(first, number - 1, kind=FoldingRangeKind.Comment))
            first = -1
    return ranges
