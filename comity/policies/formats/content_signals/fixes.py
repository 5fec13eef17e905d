"""Fixes for the lines of Content Signals."""

from __future__ import annotations

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.content_signals.checks import usual_form
from comity.policies.formats.content_signals.signals import NAMES
from comity.policies.formats.fixes import open_group, write, write_key


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


def write_verdict(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes yes or no for the value of a signal.

    A value that is neither refuses, so `no` changes no decision.
    """
    span = draft.mendable_quotation(finding)
    verdict = next((word for text, word in _VERDICTS.items() if text in finding.message), b"")
    if span is None or not verdict:
        return None
    key = draft.line(finding.line)[slice(*span)].partition(b"=")[0].rstrip()
    changes = verdict == b"yes"
    return write(draft, finding, key + b"=" + verdict, span, changes_decisions=changes)


# A part of the message -> the value to write.
_VERDICTS = {"neither yes nor no": b"no", "Write yes": b"yes"}

FIXES = {
    "content-signal.label": write_key,
    "content-signal.outside": open_group,
    "content-signal.spelling": respell,
    "content-signal.value": write_verdict,
}
