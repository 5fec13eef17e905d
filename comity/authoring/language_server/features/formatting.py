"""Formatting: indent the lines of an ai.txt, and remove spaces at the ends of lines in all files.

The grammar of ai.txt gives each keyword a level. The indentation of other files is up to their
authors. Formatting never changes a decision."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import TextEdit

from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.statements import StatementForm, field
from comity.policies.formats.ai_txt import kind_of
from comity.policies.formats.ai_txt.grammar import Keyword

_LEVELS = {keyword.value[0].decode().lower(): keyword.level for keyword in Keyword}
_PATH = "/ai.txt"


def formatting(outline: FileOutline, *, tab_size: int = 2, spaces: bool = True) -> list[TextEdit]:
    """Return the edits that format a file.

    `tab_size`, `spaces`: the indentation that is set in the editor. It is used only if the file
    itself has no usual indentation."""
    if outline.form is not StatementForm.LINES or outline.document.kind is None:
        return []
    is_nested = outline.document.kind.path == _PATH and kind_of(outline.document.body) == "elements"
    unit = _unit(outline) or (" " * (tab_size if tab_size in (2, 4) else 2) if spaces else "\t")
    edits = _indentation(outline, unit) if is_nested else iter(())
    return [*edits, *_line_ends(outline)]


def _unit(outline: FileOutline) -> str:
    """Return the indentation of the first line of level 1.

    "" means that there is no such line, or that it is not indented by two spaces, four spaces or a
    tab."""
    for line in outline.document.lines:
        line_field = field(line)
        if line_field and _LEVELS.get(line_field.name.lower()) == 1:
            start = line[: line_field.start]
            return start if start in ("  ", "    ", "\t") else ""
    return ""


def _indentation(outline: FileOutline, unit: str) -> Iterator[TextEdit]:
    for number in range(len(outline.document.lines)):
        line = outline.document.line(number)
        line_field = field(line)
        level = _LEVELS.get(line_field.name.lower()) if line_field else None
        if line_field and level is not None:
            start = line[: line_field.start]
            mark = "\ufeff" if number == 0 and start.startswith("\ufeff") else ""
            # A byte order mark within a file, and a no-break space, are ordinary characters. To
            # remove them would change the meaning of the line.
            if start != mark + unit * level and not start.removeprefix(mark).strip(" \t"):
                yield TextEdit(
                    outline.document.range(number, len(mark), line_field.start), unit * level
                )


def _line_ends(outline: FileOutline) -> Iterator[TextEdit]:
    for number in range(len(outline.document.lines)):
        line = outline.document.line(number)
        end = len(line.rstrip(" \t"))
        if end < len(line) and (end or line.isspace()):
            line_field = field(line)
            if end == 0 or (
                line[:end].strip("\ufeff \t") and (line_field is None or end >= line_field.end)
            ):
                yield TextEdit(outline.document.range(number, end, len(line)), "")
