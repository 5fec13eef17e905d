"""Fixes for the lines of ACAP, which change nothing that they say."""

from __future__ import annotations

import re

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix

# Crawler fields are records of robots.txt, whose colons are mended there.
_WITHOUT_COLON = re.compile(rb"[ \t]*+(?i:acap-(?!crawler))[^:#\s]++(?=[ \t]++[^ \t:#])")


def write_colon(draft: Draft, finding: Finding) -> Fix | None:
    """Write the colon that a line lacks."""
    match = _WITHOUT_COLON.match(draft.mendable_line(finding))
    return (
        Fix("Write a colon", (draft.replace_octets(finding.line, match.end() + 1, 0, b":"),))
        if match
        else None
    )


def leave_out(draft: Draft, finding: Finding) -> Fix | None:
    """Take out a line that says what another one has said."""
    return draft.line_out(finding.line) if draft.mendable_line(finding) else None


FIXES = {"acap.syntax": write_colon, "acap.repeated": leave_out}
