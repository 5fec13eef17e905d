"""The names and values that stand in a document, with their places, whatever is wrong with it: half a line, no end of an element.

statements(text, lines, form)    in their order
form_of(kind, text)              whether it is lines, XML, JSON or HTML"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

from comity.authoring.lint import PAGE, Kind

MAX_STATEMENTS = 50_000  # of one document


class Form(Enum):
    """How names and values are written."""

    LINES = "lines"
    XML = "xml"
    JSON = "json"
    HTML = "html"


class Span(NamedTuple):
    """A piece of a line: 0-based, in characters."""

    line: int
    start: int
    end: int

    def holds(self, line: int, column: int) -> bool:
        return line == self.line and self.start <= column <= self.end


class Statement(NamedTuple):
    """A name with its value: a line, an element, an attribute, a member, a `meta`."""

    name: str
    name_at: Span
    value: str
    value_at: Span
    depth: int
    parent: int  # its number among the statements; -1: none
    last_line: int  # of all that stands in it
    is_attribute: bool = False


class Nesting(NamedTuple):
    """Where lines of a name stand."""

    within: frozenset[str]  # names of the lines below which they can, in lower case
    is_open: bool  # others can stand below them
    is_free: bool  # they can stand below none


_UNKNOWN = Nesting(frozenset(), False, False)


_BEFORE = r"[\ufeff \t\v\f\xa0]*+"
_FIELD = re.compile(_BEFORE + r"([A-Za-z][A-Za-z0-9_.()-]*+(?:[ \t][A-Za-z]++)?)[ \t]*+:[ \t]*+([^\r\n]*)")


def form_of(kind: Kind | None, text: str) -> Form:
    if kind is not None and kind.name == PAGE:
        return Form.HTML
    start = text[:1000].lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        return Form.XML
    if start.startswith(("{", "[")) or (kind is not None and kind.name.endswith(".json")):
        return Form.JSON
    return Form.XML if kind is not None and kind.name.endswith(".xml") else Form.LINES


def statements(text: str, lines: list[str], form: Form, nesting: Mapping[str, Nesting]) -> list[Statement]:
    """`nesting`: of lines, by their names in lower case."""
    if form is Form.LINES:
        return list(fields(lines, nesting))
    places = _Places(lines)
    read = {Form.XML: _elements, Form.JSON: _members, Form.HTML: _metas}[form]
    return list(read(text, places))


def field(line: str) -> tuple[str, int, int, str, int] | None:
    """A line as a name, with its start and end, and a value, with its start; None where it has no colon behind a name."""
    match = _FIELD.match(line)
    if match is None:
        return None
    return match[1], match.start(1), match.end(1), match[2].rstrip(), match.start(2)


def beginning(names: Iterable[str]) -> Callable[[str], object]:
    """Whether a line has one of these names, whatever their case."""
    named = "|".join(map(re.escape, names))
    return re.compile(_BEFORE + rf"(?:{named})[ \t]*+:", re.IGNORECASE | re.ASCII).match


def begins_anew(line: str, nesting: Mapping[str, Nesting]) -> bool:
    """Whether nothing before a line matters to what stands behind it: it stands below none, and others below it."""
    read = field(line) if ":" in line else None
    allowed, is_open, is_free = nesting.get(read[0].lower(), _UNKNOWN) if read else _UNKNOWN
    return is_open and is_free and not allowed


def fields(lines: list[str], nesting: Mapping[str, Nesting], first: int = 0) -> Iterator[Statement]:
    """A line stands below the last one before it below which it can; one with an unknown name below the last that is open.

    `first`: the number of the first of these lines."""
    read: list[Statement] = []
    open_numbers: list[int] = []
    for number, line in enumerate(lines, first):
        line_read = field(line) if ":" in line else None
        if line_read is None:
            continue
        if len(read) == MAX_STATEMENTS:
            break
        name, start, end, value, value_start = line_read
        allowed, is_open, is_free = nesting.get(name.lower(), _UNKNOWN)
        if allowed:
            parent = next((other for other in reversed(open_numbers) if read[other].name.lower() in allowed), -1)
        else:
            parent = -1 if is_free or not open_numbers else open_numbers[-1]
        depth = read[parent].depth + 1 if parent >= 0 else 0
        if is_open:
            while open_numbers and read[open_numbers[-1]].depth >= depth:
                open_numbers.pop()
            open_numbers.append(len(read))
        value_at = Span(number, value_start, value_start + len(value))
        read.append(Statement(name, Span(number, start, end), value, value_at, depth, parent, number))
    last = [statement.last_line for statement in read]
    for number in range(len(read) - 1, -1, -1):
        if (parent := read[number].parent) >= 0:
            last[parent] = max(last[parent], last[number])
    for statement, end in zip(read, last, strict=True):
        yield statement._replace(last_line=end) if end > statement.last_line else statement


class _Places:
    """Lines and columns of places in a text."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._starts = list(accumulate(map(len, lines), initial=0))

    def at(self, offset: int) -> tuple[int, int]:
        line = min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1)
        return line, offset - self._starts[line]

    def span(self, start: int, end: int) -> Span:
        """As far as the first line goes."""
        line, column = self.at(start)
        return Span(line, column, min(column + end - start, len(self._lines[line].rstrip("\r\n"))))


# Half of a tag, as it is typed, ends before the next one.
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[?!][^<>]*+>?"
    r"|<(/?)([A-Za-z_][\w.:-]*+)((?:[^<>\"']++|\"[^\"<]*+\"?|'[^'<]*+'?)*+)(>?)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([A-Za-z_][\w.:-]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^\s\"'>]++)))?")
_CONTENT = re.compile(r"\s*+([^<]*)")


def _attributes(match: re.Match[str]) -> Iterator[tuple[str, int, str, int]]:
    """Name, its place, value, its place."""
    start = match.start(3)
    for found in _ATTRIBUTE.finditer(match[3]):
        group = next((group for group in (2, 3, 4) if found[group] is not None), 0)
        yield (
            found[1],
            start + found.start(1),
            found[group] if group else "",
            start + (found.start(group) if group else found.end()),
        )


def _elements(text: str, places: _Places) -> Iterator[Statement]:
    read: list[Statement] = []
    open_numbers: list[int] = []
    for match in _TAG.finditer(text):
        if not match[2] or len(read) > MAX_STATEMENTS:
            continue
        line = places.at(match.end() - 1)[0]
        if match[1]:
            names = [read[number].name for number in open_numbers]
            if match[2] in names:
                while read[number := open_numbers.pop()].name != match[2]:
                    pass
                read[number] = read[number]._replace(last_line=line)
            continue
        content = _CONTENT.match(text, match.end())
        value = content[1].rstrip() if content and match[4] else ""
        at = content.start(1) if content and value else match.end()
        parent = open_numbers[-1] if open_numbers else -1
        depth = len(open_numbers)
        number = len(read)
        name_at = places.span(match.start(2), match.end(2))
        read.append(Statement(match[2], name_at, value, places.span(at, at + len(value)), depth, parent, line))
        for name, start, value, value_start in _attributes(match):
            spans = places.span(start, start + len(name)), places.span(value_start, value_start + len(value))
            read.append(Statement(name, spans[0], value, spans[1], depth + 1, number, spans[1].line, is_attribute=True))
        if match[4] and not match[3].endswith("/"):
            open_numbers.append(number)
    yield from read


_JSON = re.compile(r'"((?:[^"\\\r\n]|\\.)*+)"?(?:(\s*+:)\s*+("(?:[^"\\\r\n]|\\.)*+"?|[^\s{}\[\],"]++)?)?|[\[\]{}]')
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"')


def _members(text: str, places: _Places) -> Iterator[Statement]:
    read: list[Statement] = []
    open_numbers: list[int] = []
    last = -1  # the member whose value may begin
    for match in _JSON.finditer(text):
        if match[0] in ("{", "["):
            open_numbers.append(last)
        elif match[0] in ("}", "]"):
            if open_numbers and (number := open_numbers.pop()) >= 0:
                read[number] = read[number]._replace(last_line=places.at(match.start())[0])
        elif match[2] and len(read) < MAX_STATEMENTS:
            parent = next((number for number in reversed(open_numbers) if number >= 0), -1)
            value = match[3] or ""
            name_at = places.span(match.start(1), match.end(1))
            start = match.start(3) if value else match.end()
            quoted = value.startswith('"')
            if quoted:
                start, value = start + 1, value[1:].removesuffix('"')
            last = len(read)
            value_at = places.span(start, start + len(value))
            read.append(Statement(match[1], name_at, value, value_at, len(open_numbers), parent, value_at.line))
    yield from read


def open_brackets(text: str) -> str:
    """The brackets of JSON that have no end before the end of a text, outermost first; a quote at the end within a text."""
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


_NAMING = ("name", "http-equiv", "property", "rel", "type")
_VALUED = ("content", "href")


def _metas(text: str, places: _Places) -> Iterator[Statement]:
    count = 0
    for match in _TAG.finditer(text):
        if not match[2] or match[1] or match[2].lower() not in ("meta", "link") or count > MAX_STATEMENTS:
            continue
        attributes = {name.lower(): (value, at) for name, _, value, at in _attributes(match)}
        naming = next((attributes[name] for name in _NAMING if name in attributes), None)
        if naming:
            count += 1
            value, at = next((attributes[name] for name in _VALUED if name in attributes), ("", match.end()))
            value_at = places.span(at, at + len(value))
            yield Statement(naming[0], places.span(naming[1], naming[1] + len(naming[0])), value, value_at, 0, -1, value_at.line)
