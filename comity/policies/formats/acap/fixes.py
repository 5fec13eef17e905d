"""Fixes for the lines of ACAP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from comity.policies.answers.decision import Finding
from comity.policies.formats.acap.usages import QUALIFIED, USAGES
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.formats.fixes import (
    Mend,
    delete_line,
    first_of,
    put_above,
    write,
    write_proposed,
)
from comity.policies.syntax.suspicions import nearest

_EQUALS = re.compile(rb"[ \t]*=[ \t]*")
_QUOTED = re.compile(r"`([a-z-]+)`")
_DATE = re.compile(rb"=[ \t]*until-([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})(?=[ \t#]|\Z)")
# ACAP-crawler fields are left out, because the fixes of robots.txt write their colons.
_WITHOUT_COLON = re.compile(rb"[ \t]*+(?i:acap-(?!crawler))[^:#\s]++(?=[ \t]++[^ \t:#])")


def write_colon(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the missing colon of an ACAP field.

    None means that the line is not such a field, or is not safe to change.
    """
    line = draft.mendable_line(finding)
    match = _WITHOUT_COLON.match(line)
    if match and (sign := _EQUALS.match(line, match.end())):
        return write(draft, finding, b": ", sign.span())
    return (
        Fix("Write a colon", (draft.replace_octets(finding.line, match.end() + 1, 0, b":"),))
        if match
        else None
    )


def write_word(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the usage or qualifier that a message's quotation misspells."""
    line, quoted = draft.mendable_line(finding), _QUOTED.search(finding.message)
    match = re.search(rb"(?<=[ \t-])%s(?=[ \t:=])" % quoted[1].encode(), line) if quoted else None
    if match is None:
        return None
    words = USAGES if finding.rule == "acap.unknown-usage" else QUALIFIED
    right = nearest(match[0].decode(), words).encode()
    return write(draft, finding, right, match.span())


def write_date(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the date of a time limit with the year first.

    None means that the line has no such date, or that its month is not clear, as in 01/02/2030.
    """
    match = _DATE.search(draft.mendable_line(finding))
    if match is None:
        return None
    day, month, year = map(int, match.groups())
    if day <= 12 and day != month:
        return None
    try:
        text = date(year, month, day).isoformat().encode()
    except ValueError:
        return None
    return write(draft, finding, text, (match.start(1), match.end()))


def move_to_top(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that moves a line to the beginning of the file."""
    line = draft.mendable_line(finding)
    if not line or "Put it before" not in finding.message:
        return None
    start = draft.start(1)
    edits = Edit(start, start, line + draft.line_end), draft.without_line(finding.line)
    return Fix("Move the line to the top", edits, changes_decisions=True)


FIXES: Mapping[str, Mend] = {
    "acap.conventional": put_above(b"User-agent: *"),
    "acap.ignored": move_to_top,
    "acap.outside-record": put_above(b"ACAP-crawler: *"),
    "acap.qualifier": first_of(write_word, write_date),
    "acap.quotes": write_proposed,
    "acap.repeated": delete_line,
    "acap.syntax": write_colon,
    "acap.unknown-usage": write_word,
}
