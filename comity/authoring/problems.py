"""Problems: findings as those see them who write the file, with their place in characters and with what mends them.

problems_of(draft, findings, name)    those of one file"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.answers.rule import RULES, Severity
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Draft, Fix

_WORD = re.compile(rb"[^ \t]+")


class Place(NamedTuple):
    """A piece of a line. Columns count characters (Unicode code points), from 1 on; the end is the column after the last."""

    line: int
    column: int
    end_column: int


class Problem(NamedTuple):
    """A finding in a file."""

    file: str  # as its user calls it
    rule: str  # a key of RULES: stable
    message: str
    place: Place | None  # None: the file as a whole
    text: str  # the line, "" where there is no place
    fix: Fix | None
    finding: Finding

    @property
    def severity(self) -> Severity:
        return RULES[self.rule].severity

    @property
    def spec(self) -> str:
        """Specification and section."""
        return RULES[self.rule].spec


def problems_of(draft: Draft, findings: Iterable[Finding], name: str) -> list[Problem]:
    """The problems of a file, in the order of their lines. `name`: what its user calls it."""
    found = sorted(dict.fromkeys(findings), key=lambda finding: (finding.line, finding.column))
    return [_problem(draft, finding, name) for finding in found]


def _problem(draft: Draft, finding: Finding, name: str) -> Problem:
    place, text = None, ""
    if draft.has_places and 0 < finding.line <= draft.lines:
        line = draft.line(finding.line)
        start, end = _octets(line, finding)
        place = Place(finding.line, _characters(line[:start]) + 1, _characters(line[:end]) + 1)
        text = line.decode("utf-8", "replace")
    mend = _MENDING.get(finding.rule) if draft.has_places else None
    fix = mend(draft, finding) if mend else None
    return Problem(name, finding.rule, finding.message, place, text, fix, finding)


def _octets(line: bytes, finding: Finding) -> tuple[int, int]:
    """Where the finding stands in its line: the octets before it, and before what follows it."""
    if not 0 < finding.column <= len(line):
        stripped = line.lstrip(b" \t")
        return len(line) - len(stripped), len(line.rstrip(b" \t")) or len(line)
    start = finding.column - 1
    if finding.length:
        return start, min(start + finding.length, len(line))
    word = _WORD.match(line, start)
    return start, word.end() if word else start + 1


def _characters(octets: bytes) -> int:
    return len(octets.decode("utf-8", "replace"))


_MENDING = {rule: mend for format_ in FORMATS for rule, mend in format_.authoring.fixes.items()}
