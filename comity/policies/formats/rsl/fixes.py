"""Fixes for RSL documents, and for the lines of robots.txt that name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.fixes import Mend, first_of, write, write_proposed
from comity.policies.formats.rsl.grammar import VOCABULARY
from comity.policies.syntax.suspicions import nearest

_AMPERSAND = re.compile(rb"&(?![A-Za-z]+;|#[0-9]+;|#x[0-9A-Fa-f]+;)")
_LITERAL = re.compile(rb"<[!?]|-->|]]>|\?>")
_ADDRESS = re.compile(rb":[ \t]*(/[^ \t#]*)")
_NAMES = tuple(sorted({name for names in VOCABULARY.values() for name in names[0]}))


def _write_path(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the first slash of the url of a content."""
    span = draft.mendable_quotation(finding)
    if span is None or "neither a URL nor a path" not in finding.message:
        return None
    return write(draft, finding, b"/" + draft.line(finding.line)[slice(*span)], span)


def _write_element(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix for a misspelled element that begins and ends in one line."""
    match = re.search(r"no element `([A-Za-z-]+)`", finding.message)
    name = nearest(match[1], _NAMES) if match else ""
    line = draft.mendable_line(finding)
    if not match or not name:
        return None
    tags = [*re.finditer(rb"(?<=[</])%s(?=[\s>/])" % match[1].encode(), line)]
    edits = tuple(
        draft.replace_octets(finding.line, tag.start() + 1, len(tag[0]), name.encode())
        for tag in tags
    )
    return Fix(f"Write `{name}`", edits, changes_decisions=True) if len(tags) == 2 else None


def _escape_ampersands(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that escapes the ampersands of a line.

    None if the line has a comment, CDATA or an instruction, where `&` means itself.
    """
    line = draft.mendable_line(finding)
    if _LITERAL.search(line):
        return None
    edits = tuple(
        draft.replace_octets(finding.line, match.start() + 1, 1, b"&amp;")
        for match in _AMPERSAND.finditer(line)
    )
    return Fix("Write `&amp;`", edits, changes_decisions=True) if edits else None


def _write_address(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the absolute address of a document, if the host is known."""
    match = _ADDRESS.search(draft.mendable_line(finding))
    parts = urlsplit(draft.url)
    if not match or "not absolute" not in finding.message or parts.netloc == "example.com":
        return None
    address = f"{parts.scheme}://{parts.netloc}".encode() + match[1]
    return write(draft, finding, address, match.span(1), changes_decisions=False)


FIXES: Mapping[str, Mend] = {
    "rsl.reference": _write_address,
    "rsl.syntax": _escape_ampersands,
    "rsl.usage": write_proposed,
    "rsl.value": first_of(_write_path, _write_element, write_proposed),
}
