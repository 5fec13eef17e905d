"""Fixes for robots meta elements. Header fields are not in a file, so they have no fixes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.fixes import Mend, proposed, write

_PROPERTY = re.compile(rb"(?i:property)(?=[ \t]*=)")
_NUMBER = re.compile(rb"[0-9]+")


def _write_word(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the word of a message. comity may read the old word already."""
    is_read = finding.message.startswith("Other crawlers")
    return write(draft, finding, proposed(finding), changes_decisions=not is_read)


def _write_name(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes `name` for `property`. comity reads both."""
    matches = [*_PROPERTY.finditer(draft.mendable_line(finding))]
    if len(matches) != 1 or "`property`" not in finding.message:
        return None
    return write(draft, finding, b"name", matches[0].span(), changes_decisions=False)


def _write_number(draft: Draft, finding: Finding) -> Fix | None:
    span = draft.quotation(finding) if draft.mendable_line(finding) else None
    if span is None or "is not a number" not in finding.message:
        return None
    number = _NUMBER.match(draft.line(finding.line)[slice(*span)])
    return write(draft, finding, number[0], span) if number else None


def _delete_word(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that deletes a directive without effect, and a comma beside it."""
    line = draft.mendable_line(finding)
    span = draft.quotation(finding) if line else None
    if span is None:
        return None
    start, end = span
    if before := re.search(rb",[ \t]*\Z", line[:start]):
        start = before.start()
    elif behind := re.match(rb"[ \t]*,[ \t]*", line[end:]):
        end += behind.end()
    edit = draft.replace_octets(finding.line, start + 1, end - start, b"")
    return Fix("Delete the word", (edit,))


FIXES: Mapping[str, Mend] = {
    "robots-meta.attribute": _write_name,
    "robots-meta.misspelled": _write_word,
    "robots-meta.obsolete": _delete_word,
    "robots-meta.value": _write_number,
}
