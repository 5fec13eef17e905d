"""Fixes for robots meta elements. Header fields are not in a file, so they have no fixes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.fixes import Mend, proposed, write

_PROPERTY = re.compile(rb"(?i:property)(?=[ \t]*=)")
_ELEMENT = re.compile(rb"(?i:<meta)\b[^<>]*>?")
_NUMBER = re.compile(rb"[0-9]+")


def _span(draft: Draft, finding: Finding) -> tuple[int, int] | None:
    """Return the place of a message's first quotation in the element of the finding.

    None means that the place is not known: the line has several elements, or the element goes on
    in the next line.
    """
    elements = [*_ELEMENT.finditer(draft.mendable_line(finding))]
    span = draft.quotation(finding) if len(elements) == 1 else None
    return span if span and _has(elements[0], span) else None


def _has(element: re.Match[bytes], span: tuple[int, int]) -> bool:
    return element.start() < span[0] and span[1] <= element.end()


def _write_word(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the word of a message. comity may read the old word already."""
    is_read = finding.message.startswith("Other crawlers")
    span = _span(draft, finding)
    return (
        write(draft, finding, proposed(finding), span, changes_decisions=not is_read)
        if span
        else None
    )


def _write_name(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes `name` for `property`. comity reads both."""
    line = draft.mendable_line(finding)
    matches, elements = [*_PROPERTY.finditer(line)], [*_ELEMENT.finditer(line)]
    if (
        (len(matches), len(elements)) != (1, 1)
        or not _has(elements[0], matches[0].span())
        or "`property`" not in finding.message
    ):
        return None
    return write(draft, finding, b"name", matches[0].span(), changes_decisions=False)


def _write_number(draft: Draft, finding: Finding) -> Fix | None:
    span = _span(draft, finding)
    if span is None or "is not a number" not in finding.message:
        return None
    number = _NUMBER.match(draft.line(finding.line)[slice(*span)])
    return write(draft, finding, number[0], span) if number else None


def _delete_word(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that deletes a directive without effect, and a comma beside it."""
    span = _span(draft, finding)
    if span is None:
        return None
    line = draft.line(finding.line)
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
