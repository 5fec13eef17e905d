"""Fixes for the lines of usage preferences. All of them may change decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from comity.policies.answers.decision import Finding
from comity.policies.formats.aipref import content_usage
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.fixes import Mend, open_group, write, write_key
from comity.policies.syntax.lines import Findings

_VERDICTS = {
    **dict.fromkeys((b"yes", b"true", b"allow", b"1"), b"y"),
    **dict.fromkeys((b"no", b"false", b"disallow", b"0"), b"n"),
}
# Word of Content Signals -> the label of a preference with nearly the same meaning.
_LABELS = {b"ai-train": b"train-ai", b"ai-input": b"ai-use"}
_VALUE = re.compile(rb"[ \t]*=[ \t]*([A-Za-z0-9]+)")
_PARAMETER = re.compile(rb";(?=[ \t]*[a-z-]+=)")


def _write_value(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes y or n for the value of a label."""
    line = draft.mendable_line(finding)
    span = draft.quotation(finding) if line else None
    match = _VALUE.match(line, span[1]) if span else None
    value = _VERDICTS.get(match[1].lower()) if match else None
    return write(draft, finding, value, match.span(1)) if match and value else None


def _write_label(draft: Draft, finding: Finding) -> Fix | None:
    span = draft.mendable_quotation(finding)
    label = _LABELS.get(draft.line(finding.line)[slice(*span)].lower()) if span else None
    return write(draft, finding, label, span) if label else None


def _write_dictionary(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the value in lower case, or with a slash before its path."""
    line = draft.mendable_line(finding)
    start = line.find(b":") + 1
    value = line[start:].partition(b"#")[0].strip(b" \t")
    if not start or not value:
        return None
    at = line.find(value, start)
    for candidate in (value.lower(), b"/" + value, b"/" + value.lower()):
        if content_usage.read(content_usage.parts(candidate)[1], Findings("")):
            return write(draft, finding, candidate, (at, at + len(value)))
    return None


def _write_comma(draft: Draft, finding: Finding) -> Fix | None:
    match = _PARAMETER.search(draft.mendable_line(finding))
    return write(draft, finding, b",", match.span()) if match else None


FIXES: Mapping[str, Mend] = {
    "content-usage.label": _write_label,
    "content-usage.outside": open_group,
    "content-usage.parameter": _write_comma,
    "content-usage.syntax": _write_dictionary,
    "content-usage.unknown": write_key,
    "content-usage.value": _write_value,
    "usage.label": write_key,
    "usage.outside": open_group,
}
