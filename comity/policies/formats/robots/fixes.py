"""Fixes for robots.txt: other readers then read what comity reads, and comity decides as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.robots.grammar import TOKEN
from comity.policies.syntax.records import RULE_KINDS, Kind, Record, read_record
from comity.policies.syntax.suspicions import INVISIBLE

_SPELLINGS = {kind: kind.value.capitalize() for kind in Kind} | {Kind.ACAP_CRAWLER: b"ACAP-crawler"}


def _record(draft: Draft, finding: Finding) -> tuple[Record, bytes] | None:
    """The record in the line of a finding, and the line; None: there is none, or nothing about it is safe."""
    line = draft.mendable_line(finding)
    record = read_record(line)
    return (record, line) if record else None


def _spelling(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _record(draft, finding)):
        return None
    record, line = record_and_line
    spelling = _SPELLINGS[record.kind]
    column = line.lower().find(record.name) + 1
    return Fix(
        f"Write `{spelling.decode()}`",
        (draft.replaced(finding.line, column, len(record.name), spelling),),
    )


def _colon(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _record(draft, finding)) or record_and_line[0].colon:
        return None
    record, line = record_and_line
    end = line.lower().find(record.name) + len(record.name)
    return Fix("Write a colon", (draft.replaced(finding.line, end + 1, 0, b":"),))


def _agent(draft: Draft, finding: Finding) -> Fix | None:
    """Leave a version, or what cannot be seen, out behind a name: nothing by which another agent may be meant."""
    if (
        not (record_and_line := _record(draft, finding))
        or record_and_line[0].kind is not Kind.AGENT
    ):
        return None
    record, line = record_and_line
    token = TOKEN.match(record.value)
    if not token:
        return None
    rest = record.value[token.end() :]
    if (rest[:1] != b"/" and INVISIBLE.sub(b"", rest) not in (b"", b"*")) or len(rest.split()) > 1:
        return None
    edit = draft.replaced(finding.line, record.column(line) + token.end(), len(rest), b"")
    return Fix(f"Write `{token[0].decode()}`", (edit,))


def _duplicate(draft: Draft, finding: Finding) -> Fix | None:
    if (
        not (record_and_line := _record(draft, finding))
        or record_and_line[0].kind not in RULE_KINDS
    ):
        return None
    return draft.line_out(finding.line)


def _star(draft: Draft, finding: Finding) -> Fix | None:
    if (
        not (record_and_line := _record(draft, finding))
        or record_and_line[0].kind not in RULE_KINDS
    ):
        return None
    record, line = record_and_line
    bare = record.value.rstrip(b"*")
    stars = len(record.value) - len(bare)
    edit = draft.replaced(finding.line, record.column(line) + len(bare), stars, b"")
    return Fix("Take the `*` out", (edit,)) if stars else None


FIXES: Mapping[str, Callable[[Draft, Finding], Fix | None]] = {
    "robots.agent": _agent,
    "robots.duplicate": _duplicate,
    "robots.misplaced": Draft.comment,
    "robots.misspelled": _spelling,
    "robots.missing-colon": _colon,
    "robots.star": _star,
}
