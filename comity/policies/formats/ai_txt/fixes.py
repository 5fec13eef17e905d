"""Fixes for an ai.txt.

A fix that changes no rule is not offered if the file has patterns of Spawning's format, or exceeds
a limit. The effect of a line may then depend on the lines before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.answers.element_rule import ACTIONS
from comity.policies.document.document import FILE_TYPES
from comity.policies.formats.ai_txt.checks import (
    COMMA,
    NOT_ASCII,
    KeywordEntry,
    keyword_lines,
    percent_escape,
)
from comity.policies.formats.ai_txt.grammar import LINE, SPELLINGS, Keyword, parse
from comity.policies.formats.ai_txt.reading import NAME
from comity.policies.formats.ai_txt.spawning import spawning
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.formats.fixes import Mend, first_of, quoted, write
from comity.policies.syntax.lines import MAX_BYTES, text_of
from comity.policies.syntax.printable import printable
from comity.policies.syntax.suspicions import nearest

_UNITS = (b"  ", b"    ", b"\t")
_PLAIN = re.compile(rb"[ \t]*")
# The start of a value that belongs to Spawning's form if its line is not indented.
_SPAWNING_VALUE = re.compile(rb"[/*.]")


class _File(NamedTuple):
    """An ai.txt in which fixes are safe.

    Attributes:
        entries: The lines of the file with a keyword.
        numbers: Line number -> index of the line in `entries`.
        unit: The indentation for one level, such as two spaces.
    """

    entries: tuple[KeywordEntry, ...]
    numbers: dict[int, int]
    unit: bytes


@lru_cache(maxsize=2)  # the fix for each finding reads the file again
def _read_file(body: bytes) -> _File | None:
    """Read a file, or return None if no fix is safe in it."""
    text, cut = text_of(body)
    ai_txt = parse(text, cut=cut)
    if (
        cut
        or spawning(text).patterns
        or any(finding.rule == "ait.limit" for finding in ai_txt.findings)
    ):
        return None
    entries = tuple(keyword_lines(text))
    return _File(
        entries, {entry.line: number for number, entry in enumerate(entries)}, _unit(entries)
    )


def _unit(entries: tuple[KeywordEntry, ...]) -> bytes:
    """Return the indentation for one level: two spaces, four spaces or a tab.

    The first line that is indented by one of them for each level decides. The default is two
    spaces.
    """
    for entry in entries:
        if level := entry.keyword.level:
            for unit in _UNITS:
                if entry.indentation == unit * level:
                    return unit
    return _UNITS[0]


def _read_line(draft: Draft, finding: Finding) -> tuple[_File, re.Match[bytes]] | None:
    """Return the file and the line of a finding.

    None means that the line has no keyword, or that no fix is safe.
    """
    file = _read_file(draft.body) if draft.has_places and finding.line else None
    match = LINE.match(draft.line(finding.line)) if file and finding.line in file.numbers else None
    return (file, match) if file and match else None


def indent(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that indents a line to the level of its keyword."""
    if not (in_file := _read_line(draft, finding)):
        return None
    file, match = in_file
    # Readers of Spawning's form ignore a line after other white space, such as a no-break space.
    # With plain indentation they would read it.
    if not _PLAIN.fullmatch(match[1]):
        return None
    keyword = SPELLINGS[match[2].lower()]
    return Fix(
        "Indent the line",
        (draft.replace_octets(finding.line, 1, len(match[1]), file.unit * keyword.level),),
    )


def spell(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix for a keyword line: its spelling as in the paper, or its missing colon.

    For a line without a keyword that begins with `//`, the fix writes `#`.
    """
    if not (in_file := _read_line(draft, finding)):
        return draft.comment(finding) if _read_file(draft.body) else None
    _, match = in_file
    keyword = SPELLINGS[match[2].lower()]
    if finding.column == match.start(2) + 1 and match[2] != keyword.value[0]:
        name = keyword.value[0]
        return Fix(
            f"Write `{name.decode()}`",
            (draft.replace_octets(finding.line, finding.column, len(match[2]), name),),
        )
    if match[3] is None and finding.column == match.end(2) + 1:
        if keyword is Keyword.DISALLOW and _SPAWNING_VALUE.match(match[4]):
            return None
        return Fix(
            "Write the colon", (draft.replace_octets(finding.line, finding.column, 0, b":"),)
        )
    return None


def move_comment(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that moves a comment from the end of a line to a new line above."""
    if not (in_file := _read_line(draft, finding)) or not finding.column:
        return None
    _, match = in_file
    line = draft.line(finding.line)
    before = line[: finding.column - 1].rstrip(b" \t")
    if not line.startswith(b"#", finding.column - 1):
        return None
    start = draft.start(finding.line)
    own_line = match[1] + line[finding.column - 1 :].rstrip(b" \t") + draft.line_end
    return Fix(
        "Put the comment on a line of its own",
        (
            Edit(start, start, own_line),
            draft.replace_octets(finding.line, len(before) + 1, len(line) - len(before), b""),
        ),
    )


def leave_out_agent(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that removes a repeated name."""
    if not (in_file := _read_line(draft, finding)):
        return None
    file, _ = in_file
    entry = file.entries[file.numbers[finding.line]]
    end = 0
    for word in NAME.finditer(entry.value):
        if entry.column + word.start() == finding.column and end:
            edit = draft.replace_octets(finding.line, entry.column + end, word.end() - end, b"")
            return Fix(f"Delete `{printable(word[0])}`", (edit,))
        end = word.end()
    return None


def hyphenate(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes hyphens for the underscores of a language tag.

    Underscores are read as hyphens.
    """
    if not (in_file := _read_line(draft, finding)):
        return None
    file, _ = in_file
    entry = file.entries[file.numbers[finding.line]]
    if b"_" not in entry.value:
        return None
    tag = entry.value.replace(b"_", b"-")
    edit = draft.replace_octets(finding.line, entry.column, len(entry.value), tag)
    return Fix(f"Write `{printable(tag)}`", (edit,))


def leave_out_commas(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a space for each comma between actions."""
    in_file = _read_line(draft, finding)
    if not in_file:
        return None
    file, _ = in_file
    entry = file.entries[file.numbers[finding.line]]
    if entry.keyword not in (Keyword.DISALLOW, Keyword.GUIDE):
        return None
    actions = COMMA.sub(b" ", entry.value)
    edit = draft.replace_octets(finding.line, entry.column, len(entry.value), actions)
    return Fix(f"Write `{printable(actions)}`", (edit,))


def escape(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that percent-escapes the characters of a path that are not ASCII.

    None means that the finding is not about such a path, or that the fixed file might be too long:
    an escape is three times as long as its octet.
    """
    in_file = _read_line(draft, finding) if len(draft.body) * 3 < MAX_BYTES else None
    if not in_file:
        return None
    file, _ = in_file
    entry = file.entries[file.numbers[finding.line]]
    if entry.keyword is not Keyword.PATH or not NOT_ASCII.match(
        entry.value, finding.column - entry.column
    ):
        return None
    path = NOT_ASCII.sub(lambda match: percent_escape(match[0]), entry.value)
    return Fix(
        f"Write `{printable(path)}`",
        (draft.replace_octets(finding.line, entry.column, len(entry.value), path),),
    )


def leave_out_line(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that removes a Disallow that repeats one above.

    None means that the Disallow is the first line of its block, so removing it could empty the
    block, or that a Lang or Guideline line follows it.
    """
    if not (in_file := _read_line(draft, finding)):
        return None
    file, match = in_file
    number = file.numbers[finding.line]
    after = file.entries[number + 1].keyword if number + 1 < len(file.entries) else None
    before = number - 1
    # Lang and Guideline lines end no block.
    while before >= 0 and file.entries[before].keyword in (Keyword.LANG, Keyword.GUIDELINE):
        before -= 1
    is_alone = before < 0 or file.entries[before].keyword.level < Keyword.DISALLOW.level
    if (
        SPELLINGS[match[2].lower()] is not Keyword.DISALLOW
        or is_alone
        or after in (Keyword.LANG, Keyword.GUIDELINE)
    ):
        return None
    return Fix("Delete the line", (draft.without_line(finding.line),))


def write_action(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the action that is probably meant: `Train` for `Training`."""
    span = draft.place(finding) if draft.mendable_line(finding) and finding.column else None
    if span is None or "is unknown" not in finding.message:
        return None
    word = draft.line(finding.line)[slice(*span)].decode("latin-1")
    forms = {form: action for action in ACTIONS for form in _forms(action)}
    action = forms.get(nearest(word, forms), "")
    return write(draft, finding, action.encode(), span)


def _forms(action: str) -> tuple[str, ...]:
    stem = action.removesuffix("e")
    return action, f"{stem}ing", f"{stem}ed", f"{action}s"


def write_keyword(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the keyword that is probably meant."""
    span = draft.mendable_quotation(finding)
    if span is None or "is not a keyword" not in finding.message:
        return None
    word = draft.line(finding.line)[slice(*span)].decode("latin-1")
    names = [name.decode() for keyword in Keyword for name in keyword.value[:1]]
    return write(draft, finding, nearest(word, names).encode(), span)


def write_file_type(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the file type of a path: html, or the type that is misspelled."""
    line = draft.mendable_line(finding)
    end = len(line.partition(b"#")[0].rstrip(b" \t"))
    if not line or "Write html" not in finding.message:
        return None
    if "is missing" in finding.message:
        is_markup = line.lstrip().startswith(b"<")  # the type would be an attribute
        return None if is_markup else write(draft, finding, b" html", (end, end))
    span = draft.quotation(finding)
    word = line[slice(*span)].decode("latin-1") if span else ""
    return write(draft, finding, nearest(word, FILE_TYPES).encode(), span) if word else None


def write_path(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a path as it is read already."""
    span = draft.quotation(finding) if _read_line(draft, finding) else None
    if span is None:
        return None
    return write(draft, finding, quoted(_READ_AS, finding), span, changes_decisions=False)


_READ_AS = re.compile(r"is read as `([^`]+)`\Z")


def write_pattern(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a single pattern of Spawning's form."""
    span = draft.mendable_quotation(finding)
    if span is None:
        return None
    value = draft.line(finding.line)[slice(*span)]
    path = re.sub(rb"\Ahttps?://[^/]*", b"", value)
    if path != value:
        return write(draft, finding, path or b"/", span)
    return write(draft, finding, b"*." + value, span) if value.isalnum() else None


FIXES: Mapping[str, Mend] = {
    "ait.action": write_action,
    "ait.comment": move_comment,
    "ait.duplicate": leave_out_line,
    "ait.file-type": write_file_type,
    "ait.grammar": first_of(escape, leave_out_commas),
    "ait.indentation": indent,
    "ait.keyword": first_of(spell, write_keyword),
    "ait.language-tag": hyphenate,
    "ait.path": write_path,
    "ait.repeated-agent": leave_out_agent,
    "spawning.pattern": write_pattern,
}
