"""Problems: findings for the authors of a file, with their spans in characters and their fixes.

problems_of(draft, findings, name)    the problems of one file"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.answers.rule import RULES, Severity
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Draft, Fix

_WORD = re.compile(rb"[^ \t]+")
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+<")
_QUOTED = re.compile(r"`([^`]+)`")  # the first quotation in a message names its subject


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
        fix: The edits that solve the problem. None means that there is no safe fix.
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
    def spec(self) -> str:
        """The specification and section."""
        return RULES[self.rule].spec


def problems_of(draft: Draft, findings: Iterable[Finding], name: str) -> list[Problem]:
    """Return the problems of a file in the order of their lines, the worst problem of a line first.

    `name`: the name of the file, as its user writes it."""
    ordered = sorted(dict.fromkeys(findings), key=_order)
    return [_problem(draft, finding, name) for finding in ordered]


def _order(finding: Finding) -> tuple[int, int, int]:
    return finding.line, _RANKS[RULES[finding.rule].severity], finding.column


def _problem(draft: Draft, finding: Finding, name: str) -> Problem:
    span, text = None, ""
    if draft.has_places and 0 < finding.line <= draft.lines:
        line = draft.line(finding.line)
        start, end = _octets(line, finding, is_markup=_MARKUP.match(draft.body) is not None)
        span = LineSpan(finding.line, _characters(line[:start]) + 1, _characters(line[:end]) + 1)
        text = line.decode("utf-8", "replace")
    mend = _MENDING.get(finding.rule) if draft.has_places else None
    fix = mend(draft, finding) if mend else None
    return Problem(name, finding.rule, finding.message, span, text, fix, finding)


def _octets(line: bytes, finding: Finding, *, is_markup: bool) -> tuple[int, int]:
    """Return the start and end of the finding in its line, in octets.

    `is_markup`: True if the file is XML or HTML. Their findings have a line and no column, so the
    first quotation of the message is searched in the line. If it occurs exactly once, it is the
    place of the finding."""
    if not 0 < finding.column <= len(line):
        if is_markup and (quoted := _QUOTED.search(finding.message)):
            text = re.escape(quoted[1].encode("utf-8", "replace"))
            quotations = [*islice(re.finditer(rb"(?<![\w-])" + text + rb"(?![\w-])", line), 2)]
            if len(quotations) == 1:
                return quotations[0].span()
        stripped = line.lstrip(b" \t")
        return len(line) - len(stripped), len(line.rstrip(b" \t")) or len(line)
    start = finding.column - 1
    if finding.length:
        return start, min(start + finding.length, len(line))
    word = _WORD.match(line, start)
    return start, word.end() if word else start + 1


def _characters(octets: bytes) -> int:
    return len(octets.decode("utf-8", "replace"))


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
_MENDING = {rule: mend for format_ in FORMATS for rule, mend in format_.authoring.fixes.items()}
