"""Problems: findings for the authors of a file, with their spans in characters and their fixes.

problems_of(draft, findings, name)    the problems of one file"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from comity.authoring.checks.fixes import FIXES as CHECK_FIXES
from comity.authoring.ignoring import without_ignored
from comity.policies.answers.decision import Finding
from comity.policies.answers.rule import RULES, Severity
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Draft, Fix

CHANGES_DECISIONS = " (changes decisions)"  # the end of the titles of such fixes


class LineSpan(NamedTuple):
    """A piece of a line.

    Columns count characters (Unicode code points) from 1. `end_column` is the column after the last
    character."""

    line: int
    column: int
    end_column: int


class Problem(NamedTuple):
    """A finding in a file.

    Attributes:
        file: The name of the file, as its user writes it.
        rule: The id of the rule, a key of RULES. Ids are stable.
        message: The message, in English.
        span: The place in the file. None means the file as a whole.
        text: The line, or "" without a span.
        fix: The edits that solve the problem. None means that comity knows no right text.
        finding: The finding that the problem is made from.
    """

    file: str
    rule: str
    message: str
    span: LineSpan | None
    text: str
    fix: Fix | None
    finding: Finding

    @property
    def severity(self) -> Severity:
        return RULES[self.rule].severity

    @property
    def fix_title(self) -> str:
        """The instruction of the fix, and whether it changes decisions. "" without a fix."""
        if self.fix is None:
            return ""
        return self.fix.title + CHANGES_DECISIONS * self.fix.changes_decisions

    @property
    def spec(self) -> str:
        """The specification and section."""
        return RULES[self.rule].spec


def problems_of(draft: Draft, findings: Iterable[Finding], name: str) -> list[Problem]:
    """Return the problems of a file in the order of their lines, the worst problem of a line first.

    Problems that a comment in the file ignores are left out.
    `name`: the name of the file, as its user writes it."""
    ordered = sorted(dict.fromkeys(without_ignored(draft, findings)), key=_order)
    return [_problem(draft, finding, name) for finding in ordered]


def _order(finding: Finding) -> tuple[int, int, int]:
    return finding.line, _RANKS[RULES[finding.rule].severity], finding.column


def _problem(draft: Draft, finding: Finding, name: str) -> Problem:
    span, text = None, ""
    if draft.has_places and 0 < finding.line <= draft.lines:
        line = draft.line(finding.line)
        start, end = draft.place(finding)
        span = LineSpan(finding.line, _characters(line[:start]) + 1, _characters(line[:end]) + 1)
        text = line.decode("utf-8", "replace")
    # Findings about a whole file, such as its encoding, need no places.
    is_mendable = not finding.line or (draft.has_places and not draft.mixes_line_ends)
    mend = _MENDING.get(finding.rule) if is_mendable else None
    fix = mend(draft, finding) if mend else None
    return Problem(name, finding.rule, finding.message, span, text, fix, finding)


def _characters(octets: bytes) -> int:
    return len(octets.decode("utf-8", "replace"))


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
_MENDING = CHECK_FIXES | {
    rule: mend for format_ in FORMATS for rule, mend in format_.authoring.fixes.items()
}
