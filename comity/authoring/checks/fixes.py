"""Fixes for the findings that are beyond single formats: names of crawlers, and encodings."""

from __future__ import annotations

import re

from comity.policies import Finding
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.formats.fixes import write_proposed
from comity.policies.syntax.lines import MAX_BYTES, text_of

_UNDECODED = re.compile("[\udc80-\udcff]+")


def write_utf_8(draft: Draft, _: Finding) -> Fix | None:
    """Return the fix that saves a file as UTF-8.

    Octets that are not UTF-8 are read as Windows-1252. A path with them becomes another path. None
    means that the file is UTF-8 already, or that it exceeds the limit before or after the fix.
    """
    if not draft.has_places:
        text, is_changed = text_of(draft.body)[0], False
    else:
        decoded = draft.body.decode("utf-8", "surrogateescape")
        text, is_changed = _UNDECODED.sub(_from_windows, decoded).encode(), True
    if text == draft.body or max(len(text), len(draft.body)) > MAX_BYTES:
        return None
    edit = Edit(0, len(draft.body), text)
    return Fix("Save the file as UTF-8", (edit,), is_changed)


def _from_windows(match: re.Match[str]) -> str:
    octets = match[0].encode("utf-8", "surrogateescape")
    try:
        return octets.decode("cp1252")
    except UnicodeDecodeError:  # five octets mean no character there
        return octets.decode("latin-1")


FIXES = {
    "comity.agent-misspelled": write_proposed,
    "comity.agent-retired": write_proposed,
    "comity.file-encoding": write_utf_8,
}
