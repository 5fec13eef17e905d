"""Fixes for a tdmrep.json."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.formats.fixes import Mend, first_of, proposed, write
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
    if start and "byte order mark" in finding.message:
        return Fix("Delete the byte order mark", (Edit(0, start, b""),))
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


def write_json(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that makes an array of rules in JSON of the whole text.

    It writes the brackets around the rules, and double quotes around names and texts.
    """
    if len(draft.body) > MAX_JSON or draft.body.startswith(codecs.BOM_UTF8):
        return None
    text = draft.body.decode("utf-8", "replace")
    if _is_rules(text):
        return None
    quoted = _BARE_NAME.sub(r'\1"\2":', _SINGLE_QUOTED.sub(r'"\1"', text))
    end = len(text.rstrip())
    for candidate in (f"[{text[:end]}]{text[end:]}", f"{text[:end]}]{text[end:]}", quoted):
        if _is_rules(candidate):
            edit = Edit(0, len(draft.body), candidate.encode())
            return Fix("Write an array of rules in JSON", (edit,), changes_decisions=True)
    return None


MAX_JSON = 100_000  # longer files have no fix of their JSON
_SINGLE_QUOTED = re.compile(r"'([^'\"\\\n]*+)'")
_BARE_NAME = re.compile(r"([{,]\s*+)([A-Za-z_][A-Za-z0-9_-]*+)\s*+:")


def _is_rules(text: str) -> bool:
    try:
        rules = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(rules, list) and all(isinstance(rule, dict) for rule in rules)


def write_location(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the first slash of a location."""
    if "leading `/`" not in finding.message:
        return None
    span = draft.mendable_quotation(finding)
    return (
        write(draft, finding, b"/" + draft.line(finding.line)[slice(*span)], span) if span else None
    )


def write_digit(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes 1 for `true` and 0 for `false`."""
    span = draft.mendable_quotation(finding)
    digit = _DIGITS.get(draft.line(finding.line)[slice(*span)]) if span else None
    return write(draft, finding, digit, span) if digit else None


_DIGITS = {b"true": b"1", b"false": b"0"}


def write_member(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the name of a member, in its quotes, or of an element."""
    name = proposed(finding)
    if name and not finding.column:
        span = draft.mendable_quotation(finding)
        return write(draft, finding, name, span) if span else None
    return write(draft, finding, b'"%s"' % name) if name else None


def write_address(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the absolute address of a policy, if the host is known."""
    if not finding.column or not draft.mendable_line(finding):
        return None
    start, end = draft.place(finding)
    value, parts = draft.line(finding.line)[start:end], urlsplit(draft.url)
    if not value.startswith(b'"/') or parts.netloc == "example.com":
        return None
    origin = f"{parts.scheme}://{parts.netloc}".encode()
    return write(draft, finding, b'"' + origin + value[1:], changes_decisions=False)


def leave_out_policy(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that deletes the policy of a rule that reserves nothing."""
    end = finding.column - 1 + finding.length
    policies = _POLICY.finditer(draft.mendable_line(finding))
    match = next((match for match in policies if match.end() == end), None)
    if not match:
        return None
    edit = draft.replace_octets(finding.line, match.start() + 1, len(match[0]), b"")
    return Fix("Delete `tdm-policy`", (edit,))


_POLICY = re.compile(rb',[ \t]*"tdm-policy"[ \t]*:[ \t]*"[^"\\]*"')

FIXES: Mapping[str, Mend] = {
    "tdmrep.member": write_member,
    "tdmrep.policy": write_address,
    "tdmrep.strict": write_strict,
    "tdmrep.syntax": first_of(write_location, write_json),
    "tdmrep.text": write_number,
    "tdmrep.unused-policy": leave_out_policy,
    "tdmrep.value": write_digit,
}
