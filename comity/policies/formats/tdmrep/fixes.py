"""Fixes for a tdmrep.json that change none of its rules."""

from __future__ import annotations

import codecs

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.formats.tdmrep.lenient_json import strict_problem, strict_replacement
from comity.policies.formats.tdmrep.reservation import TdmRule, read


def write_number(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a reservation as a number.

    None means that the value is neither "0" nor "1". For `true` and `false` there is no fix,
    because comity ignores them.
    """
    if not (finding.line and finding.column and finding.length):
        return None
    start = finding.column - 1
    digit = draft.line(finding.line)[start : start + finding.length].strip(b'" ')
    if digit not in (b"0", b"1"):
        return None
    return Fix(
        f"Write {digit.decode()}",
        (draft.replace_octets(finding.line, finding.column, finding.length, digit),),
    )


def write_strict(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes strict JSON with the same rules.

    None means that removing comments and correcting commas does not make the file strict, or would
    change its rules.
    """
    start = len(codecs.BOM_UTF8) if draft.body.startswith(codecs.BOM_UTF8) else 0
    try:
        text = draft.body[start:].decode()
    except UnicodeDecodeError:
        return None
    replacement = strict_replacement(text)
    before = start + len(text[: replacement.start].encode())
    within = len(text[replacement.start : replacement.end].encode())
    edit = Edit(before, before + within, replacement.text.encode())
    mended = draft.body[: edit.start] + edit.text + draft.body[edit.end :]
    if strict_problem(mended[start:].decode()) or _rules(mended) != _rules(draft.body):
        return None
    return Fix("Write strict JSON", (edit,))


def _rules(body: bytes) -> list[TdmRule]:
    """Return the rules of a file without line numbers and texts, for comparison."""
    return [rule._replace(line=0, text="") for rule in read(body).rules]


FIXES = {"tdmrep.text": write_number, "tdmrep.strict": write_strict}
