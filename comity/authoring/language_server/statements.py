"""Parse the names and values in a document, with their spans.

Incomplete documents are parsed too, because their author is still typing: half a line, or an
element without an end.

statements(text, lines, form, nesting)    the statements, in their order
form_of(kind, text)                       the form: lines, XML, JSON or HTML"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

from comity.authoring.lint import PAGE, LintKind

MAX_STATEMENTS = 50_000  # the maximum number of statements of one document that are parsed


class StatementForm(Enum):
    """The syntax of a document."""

    LINES = "lines"
    XML = "xml"
    JSON = "json"
    HTML = "html"


class Span(NamedTuple):
    """A piece of a line. Lines and columns count from 0, columns count characters."""

    line: int
    start: int
    end: int

    def holds(self, line: int, column: int) -> bool:
        """Return True if the span contains this place, or ends at it."""
        return line == self.line and self.start <= column <= self.end


class FileStatement(NamedTuple):
    """A name with its value: a line, an element, an attribute, a member or a `meta`.

    Attributes:
        name: The name.
        name_span: The place of the name.
        value: The value.
        value_span: The place of the value. If the value has several lines, only of the first line.
        depth: The number of statements around this one.
        parent: The number of the statement around this one, among all statements. -1 means none.
        last_line: The last line of the statement and of all statements in it.
        is_attribute: True for an attribute of an element.
    """

    name: str
    name_span: Span
    value: str
    value_span: Span
    depth: int
    parent: int
    last_line: int
    is_attribute: bool = False


class StatementField(NamedTuple):
    """A line as a name and a value.

    Attributes:
        name: The name.
        start: The column of the name in the line, in characters from 0.
        end: The column after the name.
        value: The value.
        value_start: The column of the value.
    """

    name: str
    start: int
    end: int
    value: str
    value_start: int


class Nesting(NamedTuple):
    """The rules for lines with one name: which lines they may belong to.

    In robots.txt, `Disallow` belongs to `User-agent`, and `Sitemap` belongs to no line.

    Attributes:
        within: The names, in lower case, of the lines to which lines with this name may belong.
        is_open: True if other lines may belong to a line with this name.
        is_free: True if a line with this name need not belong to any line.
    """

    within: frozenset[str]
    is_open: bool
    is_free: bool


_UNKNOWN = Nesting(frozenset(), is_open=False, is_free=False)


COLON = ":"  # between the name and the value of a line, in most formats
_BEFORE = r"[\ufeff \t\v\f\xa0]*+"
_FIELDS = {
    separator: re.compile(
        _BEFORE
        + r"([A-Za-z][A-Za-z0-9_.()-]*+(?:[ \t][A-Za-z]++)?)[ \t]*+"
        + separator
        + r"[ \t]*+([^\r\n]*)"
    )
    for separator in (COLON, "=")
}


def form_of(kind: LintKind | None, text: str) -> StatementForm:
    """Return the form of a text, by its first character and its kind."""
    if kind is not None and kind.name == PAGE:
        return StatementForm.HTML
    start = text[:1000].lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        return StatementForm.XML
    if start.startswith(("{", "[")) or (kind is not None and kind.name.endswith(".json")):
        return StatementForm.JSON
    return (
        StatementForm.XML
        if kind is not None and kind.name.endswith(".xml")
        else StatementForm.LINES
    )


def statements(
    text: str,
    lines: list[str],
    form: StatementForm,
    nesting: Mapping[str, Nesting],
    separator: str = COLON,
) -> list[FileStatement]:
    """Return the statements of a text in their order.

    `nesting`: name in lower case -> the Nesting of lines with this name. Only lines use it, and
    `separator`, the sign between a name and its value."""
    if form is StatementForm.LINES:
        return list(fields(lines, nesting, separator=separator))
    index = _LineIndex(lines)
    parse = {
        StatementForm.XML: _elements,
        StatementForm.JSON: _members,
        StatementForm.HTML: _metas,
    }[form]
    return list(parse(text, index))


def field(line: str, separator: str = COLON) -> StatementField | None:
    """Return the name and value of a line. None means that it has no name with a separator."""
    match = _FIELDS[separator].match(line) if separator in line else None
    if match is None:
        return None
    return StatementField(match[1], match.start(1), match.end(1), match[2].rstrip(), match.start(2))


def beginning(names: Iterable[str], separator: str = COLON) -> Callable[[str], object]:
    """Return a test for lines with one of these names, in upper or lower case."""
    alternatives = "|".join(map(re.escape, names))
    begin = _BEFORE + rf"(?:{alternatives})[ \t]*+{separator}"
    return re.compile(begin, re.IGNORECASE | re.ASCII).match


def begins_anew(line: str, nesting: Mapping[str, Nesting], separator: str = COLON) -> bool:
    """Return True if parsing can begin at this line, without the lines before it.

    Such a line never belongs to another line, and the following lines belong to it."""
    line_field = field(line, separator)
    allowed, is_open, is_free = (
        nesting.get(line_field.name.lower(), _UNKNOWN) if line_field else _UNKNOWN
    )
    return is_open and is_free and not allowed


def fields(
    lines: list[str], nesting: Mapping[str, Nesting], first: int = 0, *, separator: str = COLON
) -> Iterator[FileStatement]:
    """Yield the statements of lines.

    A line belongs to the nearest line above that may contain it. A line with an unknown name
    belongs to the nearest open line.
    `first`: the number of the first of these lines."""
    parsed: list[FileStatement] = []
    open_numbers: list[int] = []
    for number, line in enumerate(lines, first):
        line_field = field(line, separator)
        if line_field is None:
            continue
        if len(parsed) == MAX_STATEMENTS:
            break
        name, start, end, value, value_start = line_field
        allowed, is_open, is_free = nesting.get(name.lower(), _UNKNOWN)
        if allowed:
            parent = next(
                (
                    other
                    for other in reversed(open_numbers)
                    if parsed[other].name.lower() in allowed
                ),
                -1,
            )
        else:
            parent = -1 if is_free or not open_numbers else open_numbers[-1]
        depth = parsed[parent].depth + 1 if parent >= 0 else 0
        if is_open:
            while open_numbers and parsed[open_numbers[-1]].depth >= depth:
                open_numbers.pop()
            open_numbers.append(len(parsed))
        value_span = Span(number, value_start, value_start + len(value))
        parsed.append(
            FileStatement(name, Span(number, start, end), value, value_span, depth, parent, number)
        )
    last = [statement.last_line for statement in parsed]
    for number in range(len(parsed) - 1, -1, -1):
        if (parent := parsed[number].parent) >= 0:
            last[parent] = max(last[parent], last[number])
    for statement, end in zip(parsed, last, strict=True):
        yield statement._replace(last_line=end) if end > statement.last_line else statement


class _LineIndex:
    """The line and column of each offset in a text."""

    def __init__(self, lines: list[str]) -> None:
        self._lengths = [len(line.rstrip("\r\n")) for line in lines]
        self._starts = list(accumulate(map(len, lines), initial=0))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        line = min(bisect_right(self._starts, offset) - 1, len(self._lengths) - 1)
        return line, offset - self._starts[line]

    def span(self, start: int, end: int) -> Span:
        """Return the span between two offsets. It ends with the first line."""
        line, column = self.line_and_column(start)
        return Span(line, column, min(column + end - start, self._lengths[line]))


# An incomplete tag, which the author is still typing, ends before the next one.
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[?!][^<>]*+>?"
    r"|<(/?)([A-Za-z_][\w.:-]*+)((?:[^<>\"']++|\"[^\"<]*+\"?|'[^'<]*+'?)*+)(>?)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"([A-Za-z_][\w.:-]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^\s\"'>]++)))?"
)
_CONTENT = re.compile(r"\s*+([^<]*)")


def _attributes(match: re.Match[str]) -> Iterator[tuple[str, int, str, int]]:
    """Yield each attribute of a tag: the name, its offset, the value, its offset."""
    start = match.start(3)
    for attribute in _ATTRIBUTE.finditer(match[3]):
        group = next((group for group in (2, 3, 4) if attribute[group] is not None), 0)
        yield (
            attribute[1],
            start + attribute.start(1),
            attribute[group] if group else "",
            start + (attribute.start(group) if group else attribute.end()),
        )


def _elements(text: str, index: _LineIndex) -> Iterator[FileStatement]:
    parsed: list[FileStatement] = []
    open_numbers: list[int] = []
    open_names: Counter[str] = Counter()
    for match in _TAG.finditer(text):
        if not match[2] or len(parsed) > MAX_STATEMENTS:
            continue
        line = index.line_and_column(match.end() - 1)[0]
        if match[1]:
            if open_names[match[2]]:
                name = ""
                while name != match[2]:
                    name = parsed[number := open_numbers.pop()].name
                    open_names[name] -= 1
                parsed[number] = parsed[number]._replace(last_line=line)
            continue
        content = _CONTENT.match(text, match.end())
        value = content[1].rstrip() if content and match[4] else ""
        content_start = content.start(1) if content and value else match.end()
        parent = open_numbers[-1] if open_numbers else -1
        depth = len(open_numbers)
        number = len(parsed)
        name_span = index.span(match.start(2), match.end(2))
        parsed.append(
            FileStatement(
                match[2],
                name_span,
                value,
                index.span(content_start, content_start + len(value)),
                depth,
                parent,
                line,
            )
        )
        for name, start, value, value_start in _attributes(match):
            spans = (
                index.span(start, start + len(name)),
                index.span(value_start, value_start + len(value)),
            )
            parsed.append(
                FileStatement(
                    name,
                    spans[0],
                    value,
                    spans[1],
                    depth + 1,
                    number,
                    spans[1].line,
                    is_attribute=True,
                )
            )
        if match[4] and not match[3].endswith("/"):
            open_numbers.append(number)
            open_names[match[2]] += 1
    yield from parsed


_JSON = re.compile(
    r'"((?:[^"\\\r\n]|\\.)*+)"?(?:(\s*+:)\s*+("(?:[^"\\\r\n]|\\.)*+"?|[^\s{}\[\],"]++)?)?|[\[\]{}]'
)
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"')


def _members(text: str, index: _LineIndex) -> Iterator[FileStatement]:
    parsed: list[FileStatement] = []
    open_numbers: list[int] = []
    parents: list[int] = [-1]  # for each open bracket, the innermost member around its content
    last = -1  # the last member: a bracket may be its value
    for match in _JSON.finditer(text):
        if match[0] in ("{", "["):
            open_numbers.append(last)
            parents.append(last if last >= 0 else parents[-1])
        elif match[0] in ("}", "]"):
            if open_numbers:
                parents.pop()
                if (number := open_numbers.pop()) >= 0:
                    parsed[number] = parsed[number]._replace(
                        last_line=index.line_and_column(match.start())[0]
                    )
        elif match[2] and len(parsed) < MAX_STATEMENTS:
            parent = parents[-1]
            value = match[3] or ""
            name_span = index.span(match.start(1), match.end(1))
            start = match.start(3) if value else match.end()
            quoted = value.startswith('"')
            if quoted:
                start, value = start + 1, value[1:].removesuffix('"')
            last = len(parsed)
            value_span = index.span(start, start + len(value))
            parsed.append(
                FileStatement(
                    match[1],
                    name_span,
                    value,
                    value_span,
                    len(open_numbers),
                    parent,
                    value_span.line,
                )
            )
    yield from parsed


def open_brackets(text: str) -> str:
    """Return the brackets of JSON that are open at the end of a text, the outermost first: "[{".

    If a string is open too, the result ends with a quotation mark: '[{"'."""
    stack: list[str] = []
    for match in _JSON.finditer(text):
        if match[0] in ("{", "["):
            stack.append(match[0])
        elif match[0] in ("}", "]"):
            del stack[-1:]
        elif match.end() == len(text):
            last = (match[3] or "") if match[2] else match[0]
            if last.startswith('"') and not _JSON_TEXT.fullmatch(last):
                stack.append('"')
    return "".join(stack)


_NAME_ATTRIBUTES = ("name", "http-equiv", "property", "rel", "type")
_VALUE_ATTRIBUTES = ("content", "href")


def _metas(text: str, index: _LineIndex) -> Iterator[FileStatement]:
    count = 0
    for match in _TAG.finditer(text):
        if (
            not match[2]
            or match[1]
            or match[2].lower() not in ("meta", "link")
            or count > MAX_STATEMENTS
        ):
            continue
        attributes = {name.lower(): (value, start) for name, _, value, start in _attributes(match)}
        naming = next((attributes[name] for name in _NAME_ATTRIBUTES if name in attributes), None)
        if naming:
            count += 1
            value, start = next(
                (attributes[name] for name in _VALUE_ATTRIBUTES if name in attributes),
                ("", match.end()),
            )
            value_span = index.span(start, start + len(value))
            yield FileStatement(
                naming[0],
                index.span(naming[1], naming[1] + len(naming[0])),
                value,
                value_span,
                0,
                -1,
                value_span.line,
            )
