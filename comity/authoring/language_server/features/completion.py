"""Completion: the possible words at a position, with their documentation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    CompletionList,
    InsertTextFormat,
    MarkupContent,
    MarkupKind,
    Position,
    TextEdit,
)

from comity.authoring.language_server.features import names
from comity.authoring.language_server.features.hover import section
from comity.authoring.language_server.features.snippets import Snippet, member_snippets, snippets
from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.samples import NONE, Samples
from comity.authoring.language_server.statements import (
    COLON,
    FileStatement,
    Span,
    StatementForm,
    field,
    open_brackets,
)
from comity.authoring.language_server.words import (
    AGENT,
    NAME,
    PATH,
    PLACEHOLDER,
    SELECTORS,
    Word,
    kinds_at,
)
from comity.policies.vocabulary.known_crawlers import known_crawlers

MAX_ITEMS = 300

_TYPED_NAME = re.compile(r"[\ufeff\s]*([A-Za-z0-9_.()-]*(?: [A-Za-z]*)?)")
_LAST_WORD = re.compile(r"[^\s,;]*\Z")
_LAST_NAME = re.compile(r"[A-Za-z0-9_.:-]*\Z")


class _Items:
    """Completion items that replace the text between two columns of a line."""

    def __init__(self, outline: FileOutline, line: int, start: int, end: int) -> None:
        self._range = outline.document.range(line, start, end)
        self.typed = outline.document.line(line)[start:end]
        self.items: dict[str, CompletionItem] = {}

    def add(
        self,
        label: str,
        kind: CompletionItemKind,
        *,
        detail: str = "",
        documentation: str = "",
        text: str | None = None,
        is_snippet: bool = False,
    ) -> None:
        """Add an item, if its label begins with the typed text, in upper or lower case."""
        begins = len(self.typed) <= len(label) and label.lower().startswith(self.typed.lower())
        if label in self.items or len(self.items) >= MAX_ITEMS or not begins:
            return
        self.items[label] = CompletionItem(
            label=label,
            kind=kind,
            detail=detail or None,
            documentation=MarkupContent(MarkupKind.Markdown, documentation)
            if documentation
            else None,
            text_edit=TextEdit(self._range, label if text is None else text),
            insert_text_format=InsertTextFormat.Snippet
            if is_snippet
            else InsertTextFormat.PlainText,
            filter_text=label,
            sort_text=f"{len(self.items):04}",
        )


def completion(
    outline: FileOutline, position: Position, samples: Samples = NONE, *, has_snippets: bool = False
) -> CompletionList:
    """Return the completion items at a position.

    `has_snippets`: True if the editor can insert texts with placeholders."""
    line, column = outline.document.line_and_column(position)
    outline = outline.part(line, line)
    items = _of_documents(outline, line, column, has_snippets=has_snippets)
    complete = {
        StatementForm.LINES: _of_line,
        StatementForm.XML: _of_xml,
        StatementForm.JSON: _of_json,
        StatementForm.HTML: _of_html,
    }[outline.form]
    items += (
        complete(outline, line, column, samples, has_snippets=has_snippets)
        if outline.document.kind
        else []
    )
    return CompletionList(is_incomplete=len(items) >= MAX_ITEMS, items=items)


def _of_documents(
    outline: FileOutline, line: int, column: int, *, has_snippets: bool
) -> list[CompletionItem]:
    """Return the snippets for XML, JSON and HTML, which are not written line by line.

    An empty XML or JSON file gets snippets of whole documents. The start of a line in HTML gets
    elements, and a JSON array gets members."""
    document = outline.document
    items = _Items(outline, line, column, column)
    if outline.form is StatementForm.HTML:
        if not document.line(line)[:column].strip("\ufeff \t"):
            _add_snippets(items, snippets(outline), has_snippets=has_snippets)
    elif outline.form is not StatementForm.LINES and not document.text.strip("\ufeff \t\r\n"):
        _add_snippets(items, snippets(outline), has_snippets=has_snippets)
    elif outline.form is StatementForm.JSON:
        before = "".join(document.lines[:line]) + document.line(line)[:column]
        if open_brackets(before) == "[":
            last = before.rstrip()[-1:]
            next_char = (
                document.line(line)[column:] + "".join(document.lines[line + 1 :])
            ).lstrip()[:1]
            marks = ", " if last not in "[," else "", "," if next_char not in ("", "]", ",") else ""
            _add_snippets(items, member_snippets(outline), has_snippets=has_snippets, around=marks)
    return list(items.items.values())


def _documentation(word: Word) -> str:
    return f"{word.directive.summary}.\n\n{section(word.directive.spec)}"


def _add_words(items: _Items, words: Iterator[Word], *, after: str = "") -> None:
    for word in words:
        name = word.directive.name
        text = f"{name}{after}"
        items.add(
            name,
            CompletionItemKind.Keyword,
            detail=word.directive.spec,
            documentation=_documentation(word),
            text=text,
        )


def expected_words(outline: FileOutline, line: int) -> Iterator[Word]:
    """Yield the words with which a line may begin, those of the innermost block first."""
    seen: set[str] = set()
    before = outline.between(0, line - 1)
    if before:
        last = outline.statements[before[-1]]
        for block in (last, *outline.ancestors(last)):
            if block.name.lower() not in seen:
                seen.add(block.name.lower())
                yield from outline.words.below(block.name)
    yield from outline.words.anywhere


def _of_line(
    outline: FileOutline, line: int, column: int, samples: Samples, *, has_snippets: bool
) -> list[CompletionItem]:
    text = outline.document.line(line)
    before = text[:column]
    separator = outline.words.separator
    line_field = field(before, separator)
    if line_field is None:
        typed = _TYPED_NAME.fullmatch(before)
        if typed is None:
            return []
        end = column
        while end < len(text) and (text[end].isalnum() or text[end] in "-_"):
            end += 1
        items = _Items(outline, line, typed.start(1), end)
        items.typed = typed[1]
        is_complete = text[end:].lstrip().startswith(separator)
        after = f"{separator} " if separator == COLON else separator
        _add_words(items, expected_words(outline, line), after="" if is_complete else after)
        if not before[: typed.start(1)].strip("\ufeff"):
            _add_snippets(items, snippets(outline), has_snippets=has_snippets)
        return list(items.items.values())
    number = next(iter(outline.between(line, line)), None)
    statement = outline.statements[number] if number is not None else None
    word = outline.word(statement) if statement else None
    if word is None:
        return []
    value = before[line_field.value_start :]
    kinds = word.value_kinds
    typed_word = _typed_part(value, kinds)
    earlier = len(re.findall(r"[^\s,;]+", value[: len(value) - len(typed_word)]))
    return _values(
        outline,
        word,
        kinds_at(kinds, earlier),
        Span(line, column - len(typed_word), column),
        samples,
        value,
    )


def _typed_part(value: str, kinds: tuple[str, ...]) -> str:
    """Return the part of a value that the user is typing: the last word, or a whole selector."""
    if kinds[:1] and kinds[0] in SELECTORS:
        return value
    return value[_LAST_WORD.search(value).start() :]  # type: ignore[union-attr]


def _add_snippets(
    items: _Items,
    offered: Iterable[Snippet],
    *,
    has_snippets: bool,
    around: tuple[str, str] = ("", ""),
) -> None:
    """Add snippets for the wishes of publishers.

    `around`: texts to insert before and after a snippet."""
    for snippet in offered:
        items.add(
            snippet.title,
            CompletionItemKind.Snippet,
            detail=snippet.format,
            documentation=f"{snippet.summary}\n\n```\n{snippet.text.rstrip()}\n```",
            text=(snippet.template if has_snippets else snippet.text).join(around),
            is_snippet=has_snippets,
        )


def _values(
    outline: FileOutline,
    word: Word,
    kinds: tuple[str, ...],
    span: Span,
    samples: Samples,
    value: str = "",
) -> list[CompletionItem]:
    """Return the completion items for the part of a value that the user is typing.

    `word`: the word of the directive. `kinds`: the kinds of value that may follow here.
    `span`: the place of the typed part. `value`: the value up to the cursor; its earlier parts are
    not offered again."""
    items = _Items(outline, *span)
    present = set(re.findall(r"[^\s,;]+", value.lower()[: len(value) - len(items.typed)]))
    for kind in kinds:
        if kind == AGENT:
            for name in outline.agents:
                if name.lower() not in present and name.lower() != items.typed.lower():
                    items.add(name, CompletionItemKind.Reference, detail="named in this file")
        for text, summary in word.values_of(kind).items():
            if text.endswith(PLACEHOLDER):
                continue
            if text.lower() not in present:
                item_kind = (
                    CompletionItemKind.File if kind == PATH else CompletionItemKind.EnumMember
                )
                items.add(
                    text,
                    item_kind,
                    detail=summary,
                    documentation=f"{summary}.\n\n{section(word.directive.spec)}",
                )
        if kind == AGENT:
            for crawler in known_crawlers():
                if crawler.token.lower() not in present and not crawler.retired:
                    documentation = f"{crawler.operator}: {crawler.purpose}. <{crawler.source}>"
                    items.add(
                        crawler.token,
                        CompletionItemKind.Constant,
                        detail=crawler.operator,
                        documentation=documentation,
                    )
        elif kind == PATH:
            if word.directive.form == "line":
                for text in (
                    names.set_values(outline) if outline.form is StatementForm.LINES else ()
                ):
                    items.add(text, CompletionItemKind.Reference, detail="a set of this file")
            for path in (*samples.folders, *samples.targets):
                items.add(path, CompletionItemKind.File, detail="of this folder")
        elif kind in SELECTORS:
            for selector in samples.selectors:
                items.add(selector, CompletionItemKind.Class, detail="in pages of this folder")
        elif kind == "usage" and NAME in word.value_kinds:
            for name in names.defined_names(outline, usages=True):
                items.add(f"({name})", CompletionItemKind.Reference, detail="a usage of this file")
    return list(items.items.values())


def _of_xml(
    outline: FileOutline, line: int, column: int, samples: Samples, *, has_snippets: bool
) -> list[CompletionItem]:
    before = outline.document.line(line)[:column]
    typed = _LAST_NAME.search(before)[0]  # type: ignore[index]
    start = column - len(typed)
    if statement := _statement_by_value(outline, line, column):
        return _of_value(outline, statement, line, column, samples)
    if not before[:start].endswith("<"):
        tag = re.search(r"<([A-Za-z][\w.-]*)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*\Z", before)
        if tag is None:
            return []
        items = _Items(outline, line, start, column)
        for word in outline.words.below(tag[1]):
            if word.directive.form == "attribute":
                _add_property(items, word, has_snippets=has_snippets)
        return list(items.items.values())
    items = _Items(outline, line, start, column)
    block = _element_around(outline, line, column)
    words = outline.words.below(block.name) if block else outline.words.anywhere
    for word in words:
        if word.directive.form == "element":
            name = word.directive.name
            detail, documentation = word.directive.spec, _documentation(word)
            items.add(name, CompletionItemKind.Class, detail=detail, documentation=documentation)
    return list(items.items.values())


def _add_property(items: _Items, word: Word, *, has_snippets: bool) -> None:
    name = word.directive.name
    items.add(
        name,
        CompletionItemKind.Property,
        detail=word.directive.spec,
        documentation=_documentation(word),
        text=f'{name}="$1"' if has_snippets else name,
        is_snippet=has_snippets,
    )


def _element_around(outline: FileOutline, line: int, column: int) -> FileStatement | None:
    """Return the innermost element that is open at a place."""
    text = "\n".join(outline.document.line(number) for number in range(max(0, line - 5000), line))
    text += "\n" + outline.document.line(line)[:column].rpartition("<")[0]
    open_names: list[str] = []
    counts: Counter[str] = Counter()
    for match in re.finditer(
        r"<(/?)([A-Za-z][\w.:-]*)(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*?(/?)>", text
    ):
        if match[1]:
            name = "" if counts[match[2]] else match[2]
            while name != match[2]:
                name = open_names.pop()
                counts[name] -= 1
        elif not match[3]:
            open_names.append(match[2])
            counts[match[2]] += 1
    if not open_names:
        return None
    return next(
        (statement for statement in outline.statements if statement.name == open_names[-1]), None
    )


def _of_value(
    outline: FileOutline, statement: FileStatement, line: int, column: int, samples: Samples
) -> list[CompletionItem]:
    """Return the completion items for the value of a statement."""
    word = outline.word(statement)
    if word is None:
        return []
    value = outline.document.line(line)[statement.value_span.start : column]
    kinds = word.value_kinds or outline.kinds_by_attribute(statement, word)
    typed = _typed_part(value, kinds)
    earlier = len(re.findall(r"[^\s,;]+", value[: len(value) - len(typed)]))
    return _values(
        outline,
        word,
        kinds_at(kinds, earlier),
        Span(line, column - len(typed), column),
        samples,
        value,
    )


def _of_json(
    outline: FileOutline, line: int, column: int, samples: Samples, *, has_snippets: bool
) -> list[CompletionItem]:
    before = outline.document.line(line)[:column]
    statement = _statement_by_value(outline, line, column)
    if statement := statement or _member_without_value(outline, line, column):
        return _of_value(outline, statement, line, column, samples)
    typed = re.search(r"[A-Za-z0-9_-]*\Z", before)[0]  # type: ignore[index]
    start = column - len(typed)
    has_quote = before[:start].endswith('"')
    items = _Items(outline, line, start, column)
    for word in outline.words.words:
        name = word.directive.name
        text = name if has_quote else f'"{name}": '
        detail, documentation = word.directive.spec, _documentation(word)
        items.add(
            name, CompletionItemKind.Property, detail=detail, documentation=documentation, text=text
        )
    return list(items.items.values())


def _statement_by_value(outline: FileOutline, line: int, column: int) -> FileStatement | None:
    """Return the statement that has its value at a position, or None.

    The position may be in the value, or at an empty value that the user begins to type."""
    for number in reversed(outline.between(line - 20, line)):
        statement = outline.statements[number]
        if statement.name_span.holds(line, column):
            return None
        if statement.value_span.holds(line, column):
            # While the start tag of an element has no `>`, the user types the tag, not content.
            is_content = outline.form is StatementForm.XML and not statement.is_attribute
            before = outline.document.line(line)[: statement.value_span.start]
            return (
                None
                if is_content and not statement.value and not before.endswith(">")
                else statement
            )
    return None


def _member_without_value(outline: FileOutline, line: int, column: int) -> FileStatement | None:
    """Return the JSON member before a position on the line, if the member has no value yet."""
    for number in reversed(outline.between(line, line)):
        statement = outline.statements[number]
        if (
            statement.value_span.line == line
            and statement.name_span.end < column
            and not statement.value
        ):
            return statement
    return None


def _of_html(
    outline: FileOutline, line: int, column: int, samples: Samples, *, has_snippets: bool
) -> list[CompletionItem]:
    if statement := _statement_by_value(outline, line, column):
        return _of_value(outline, statement, line, column, samples)
    match = outline.statement_at(line, column)
    statement = match[0] if match else None
    if statement and statement.name_span.holds(line, column):
        items = _Items(outline, *statement.name_span)
        items.typed = items.typed[: column - statement.name_span.start]
        _add_words(
            items,
            (word for word in outline.words.anywhere if word.directive.form in ("meta", "field")),
        )
        return list(items.items.values())
    return []
