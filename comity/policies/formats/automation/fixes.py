"""Fixes for an automation-preferences.txt."""

from __future__ import annotations

import re

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.formats.automation.grammar import MAX_REPEATED, RECORD, SELECTORS, is_plain
from comity.policies.formats.fixes import (
    first_of,
    proposed,
    put_above,
    quoted,
    write,
    write_proposed,
)
from comity.policies.syntax.suspicions import nearest

_MARKUP = re.compile(rb"[ \t]*+(<!--)")


def add_colon(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the colon of a scope, host or user-agent.

    These lines have the same effect without a colon. Any other directive has its most restrictive
    value without a colon, so the colon changes decisions.
    """
    match = RECORD.match(draft.line(finding.line)) if finding.line else None
    if match is None or match[2]:
        return None
    is_selector = match[1].lower() in SELECTORS
    sign = _OTHER_SIGN.match(draft.line(finding.line), match.end(1))
    if is_selector and sign:
        return None
    start, length = sign.span() if sign else (match.end(1), match.end(1))
    edit = draft.replace_octets(finding.line, start + 1, length - start, b":")
    return Fix("Write the colon", (edit,), changes_decisions=not is_selector)


_OTHER_SIGN = re.compile(rb"[ \t]*[=;]")


def write_value(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a value in the form of its directive."""
    span = draft.mendable_quotation(finding)
    if span is None:
        return None
    value = draft.line(finding.line)[slice(*span)]
    if meant := quoted(_MEANT, finding):
        return write(draft, finding, meant, span)
    if "true nor false" in finding.message:
        # A value that is neither counts as true.
        is_no = value.lower() in (b"no", b"0", b"n", b"off")
        word = b"false" if is_no else b"true"
        return write(draft, finding, word, span, changes_decisions=is_no)
    if "is not a method" in finding.message:
        words = re.split(rb"[;,\s]+", value.upper())
        near = [nearest(word.decode("latin-1"), METHODS) for word in words]
        return write(draft, finding, ", ".join(near).encode(), span) if all(near) else None
    return None


_MEANT = re.compile(r"here `([^`]+)`")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT")


def write_scope(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the first slash of a scope, which is read so already.

    A group without a scope gets one for the whole site.
    """
    if "Add `scope: /`" in finding.message:
        return put_above(b"scope: /")(draft, finding)
    span = draft.mendable_quotation(finding)
    if span is None or "leading `/`" not in finding.message:
        return None
    value = b"/" + draft.line(finding.line)[slice(*span)]
    return write(draft, finding, value, span, changes_decisions=False)


def add_methods(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the methods of a message below the first line of a group."""
    line = draft.mendable_line(finding)
    text = proposed(finding)
    if not line or not text:
        return None
    end = draft.start(finding.line) + len(line)
    edit = Edit(end, end, draft.line_end + text)
    return Fix(f"Write `{text.decode()}`", (edit,), changes_decisions=True)


def comment_markup(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that turns markup comments (`<!--`) into comments with `#`.

    If the markup is after a value, only this line is changed. Otherwise this line and all lines
    below it that begin with markup are changed.
    """
    if not finding.line:
        return None
    if match := RECORD.match(draft.line(finding.line)):
        start = match[0].find(b"<!--") + 1
        edits = _edit_to_comment(draft, finding.line, start) if start else ()
    else:
        edits = tuple(
            edit
            for line in range(finding.line, draft.lines + 1)
            if (markup := _MARKUP.match(draft.line(line)))
            for edit in _edit_to_comment(draft, line, markup.start(1) + 1)
        )
    return Fix("Write comments with `#`", edits) if edits else None


def _edit_to_comment(draft: Draft, line: int, column: int) -> tuple[Edit, ...]:
    rest = draft.line(line)[column + 3 :].strip(b" \t")
    text = rest.removesuffix(b"-->").rstrip(b" \t") if rest.count(b"-->") == 1 else rest
    return (
        draft.replace_octets(
            line, column, len(draft.line(line)) - column + 1, b"# " + text if text else b"#"
        ),
    )


def leave_out_repetition(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that removes repetitions of a line from its block.

    None means that lines with this name have different values, or that a later block of the group
    has one too.
    """
    if not finding.line or not (match := RECORD.match(draft.line(finding.line))):
        return None
    first, last = finding.line, finding.line
    while first > 1 and draft.line(first - 1).strip(b" \t"):
        first -= 1
    while last < draft.lines and draft.line(last + 1).strip(b" \t"):
        last += 1
    # A block without selectors continues the group, so lines in it count too.
    for line in range(last + 1, draft.lines + 1):
        other = RECORD.match(draft.line(line))
        if other and other[1].lower() in SELECTORS:
            break
        if other and other[1].lower() == match[1].lower():
            return None
    same: list[int] = []
    for line in range(first, last + 1):
        other = RECORD.match(draft.line(line))
        if other and other[1].lower() == match[1].lower():
            if not is_plain(other) or _value(other) != _value(match):
                return None
            same.append(line)
    if same[0] == finding.line or len(same) > MAX_REPEATED:
        return None
    return Fix("Delete the repetitions", tuple(draft.without_line(line) for line in same[1:]))


def _value(record: re.Match[bytes]) -> bytes:
    return record[3].partition(b"<!--")[0].rstrip(b" \t")


FIXES = {
    "automation.colon": add_colon,
    "automation.markup": comment_markup,
    "automation.no-methods": add_methods,
    "automation.repeated": leave_out_repetition,
    "automation.scope": write_scope,
    "automation.unknown": first_of(Draft.comment, write_proposed),
    "automation.value": write_value,
    "automation.word": write_proposed,
}
