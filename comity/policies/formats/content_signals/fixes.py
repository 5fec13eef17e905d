"""Fixes for the lines of Content Signals that change no signal."""

from __future__ import annotations

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.content_signals.checks import usual_form
from comity.policies.formats.content_signals.signals import NAMES


def respell(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a line in the spelling of the specification.

    None means that the line is not a signal line, or that no spelling has the same meaning.
    """
    name, colon, rest = draft.mendable_line(finding).partition(b":")
    value = rest.partition(b"#")[0]
    usual = usual_form(value.strip(b" \t"))
    if not colon or not usual or name.strip(b" \t").lower().decode("utf-8", "replace") not in NAMES:
        return None
    indentation = len(name) - len(name.lstrip(b" \t"))
    length = len(name) - indentation + len(colon) + len(value.rstrip(b" \t"))
    text = b"Content-Signal: " + usual
    return Fix(
        f"Write `{text.decode()}`",
        (draft.replace_octets(finding.line, indentation + 1, length, text),),
    )


FIXES = {"content-signal.spelling": respell}
