"""Fixes for an automation-preferences.txt that change none of its groups."""

from __future__ import annotations

import re

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.formats.automation.grammar import MAX_REPEATED, RECORD, SELECTORS, is_plain

_MARKUP = re.compile(rb"[ \t]*+(<!--)")


def add_colon(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the colon of a scope, host or user-agent.

    These lines have the same effect without a colon. Any other directive has its most restrictive
    value without a colon, so the colon would change the rules, and there is no fix.
    """
    match = RECORD.match(draft.line(finding.line)) if finding.line else None
    if match is None or match[2] or match[1].lower() not in SELECTORS:
        return None
    return Fix("Write the colon", (draft.replace_octets(finding.line, match.end(1) + 1, 0, b":"),))


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
    "automation.repeated": leave_out_repetition,
    "automation.unknown": Draft.comment,
}
