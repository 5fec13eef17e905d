"""Fixes for robots.txt. After a fix, other crawlers read the line in the same way as comity.

No fix changes a decision of comity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.robots.grammar import TOKEN
from comity.policies.syntax.records import RULE_KINDS, Record, RecordKind, read_record
from comity.policies.syntax.suspicions import INVISIBLE

_SPELLINGS = {kind: kind.value.capitalize() for kind in RecordKind} | {
    RecordKind.ACAP_CRAWLER: b"ACAP-crawler"
}


def _read_record(draft: Draft, finding: Finding) -> tuple[Record, bytes] | None:
    """Return the record in the line of a finding, and the line itself.

    None means that the line has no record, or that it is not safe to change the line.
    """
    line = draft.mendable_line(finding)
    record = read_record(line)
    return (record, line) if record else None


def _fix_spelling(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _read_record(draft, finding)):
        return None
    record, line = record_and_line
    spelling = _SPELLINGS[record.kind]
    column = line.lower().find(record.name) + 1
    return Fix(
        f"Write `{spelling.decode()}`",
        (draft.replace_octets(finding.line, column, len(record.name), spelling),),
    )


def _add_colon(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _read_record(draft, finding)) or record_and_line[0].colon:
        return None
    record, line = record_and_line
    end = line.lower().find(record.name) + len(record.name)
    return Fix("Write a colon", (draft.replace_octets(finding.line, end + 1, 0, b":"),))


def _trim_agent(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that removes a version or invisible characters after a name.

    None means that the rest of the value may name another agent, as in `examplebot otherbot`.
    """
    if (
        not (record_and_line := _read_record(draft, finding))
        or record_and_line[0].kind is not RecordKind.AGENT
    ):
        return None
    record, line = record_and_line
    token = TOKEN.match(record.value)
    if not token:
        return None
    rest = record.value[token.end() :]
    if (rest[:1] != b"/" and INVISIBLE.sub(b"", rest) not in (b"", b"*")) or len(rest.split()) > 1:
        return None
    edit = draft.replace_octets(finding.line, record.column(line) + token.end(), len(rest), b"")
    return Fix(f"Write `{token[0].decode()}`", (edit,))


def _remove_duplicate(draft: Draft, finding: Finding) -> Fix | None:
    if (
        not (record_and_line := _read_record(draft, finding))
        or record_and_line[0].kind not in RULE_KINDS
    ):
        return None
    return draft.line_out(finding.line)


def _remove_stars(draft: Draft, finding: Finding) -> Fix | None:
    if (
        not (record_and_line := _read_record(draft, finding))
        or record_and_line[0].kind not in RULE_KINDS
    ):
        return None
    record, line = record_and_line
    bare = record.value.rstrip(b"*")
    stars = len(record.value) - len(bare)
    edit = draft.replace_octets(finding.line, record.column(line) + len(bare), stars, b"")
    return Fix("Delete the `*`", (edit,)) if stars else None


FIXES: Mapping[str, Callable[[Draft, Finding], Fix | None]] = {
    "robots.agent": _trim_agent,
    "robots.duplicate": _remove_duplicate,
    "robots.misplaced": Draft.comment,
    "robots.misspelled": _fix_spelling,
    "robots.missing-colon": _add_colon,
    "robots.star": _remove_stars,
}
