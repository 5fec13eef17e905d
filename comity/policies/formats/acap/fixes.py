"""Fixes for the lines of ACAP that leave their meaning as it is."""

from __future__ import annotations

import re

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix

# ACAP-crawler fields are left out, because the fixes of robots.txt write their colons.
_WITHOUT_COLON = re.compile(rb"[ \t]*+(?i:acap-(?!crawler))[^:#\s]++(?=[ \t]++[^ \t:#])")


def write_colon(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the missing colon of an ACAP field.

    None means that the line is not such a field, or is not safe to change.
    """
    match = _WITHOUT_COLON.match(draft.mendable_line(finding))
    return (
        Fix("Write a colon", (draft.replace_octets(finding.line, match.end() + 1, 0, b":"),))
        if match
        else None
    )


def leave_out(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that removes a repeated line, or None if the file is not safe to change."""
    return draft.line_out(finding.line) if draft.mendable_line(finding) else None


FIXES = {"acap.syntax": write_colon, "acap.repeated": leave_out}
