"""Fixes for a tdmrep.json, which change no rule of it."""

from __future__ import annotations

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix


def write_number(draft: Draft, finding: Finding) -> Fix | None:
    """Write the reservation as a number. A truth value is none: comity reads it as nothing."""
    if not (finding.line and finding.column and finding.length):
        return None
    start = finding.column - 1
    digit = draft.line(finding.line)[start : start + finding.length].strip(b'" ')
    if digit not in (b"0", b"1"):
        return None
    return Fix(f"Write {digit.decode()}", (draft.replaced(finding.line, finding.column, finding.length, digit),))


FIXES = {"tdmrep.text": write_number}
