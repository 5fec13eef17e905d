"""Fixes that several formats share.

    write_proposed    write the text that the message of a finding proposes
    write_equal       the same, if the text means the same to comity
    put_above(line)   write a line above the line of a finding
    open_group        write a group of robots.txt for a line about uses that no group contains
    delete_line       delete a line of robots.txt without effect

All but `write_equal` and `delete_line` change decisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Edit, Fix
from comity.policies.syntax.printable import printable
from comity.policies.syntax.records import OF_NO_GROUP, RecordKind, read_record

Mend = Callable[[Draft, Finding], Fix | None]
_PROPOSED = re.compile(r"\b[Ww]rite `([^`]+)`")
# The usual form of a rule, which all readers know, and a field of ACAP.
_RULE = re.compile(rb"[ \t]*+(?i:dis)?+(?i:allow)[ \t]*+:")
_FIELD = re.compile(rb"[ \t]*+(?i:acap-)")
# A line about uses, which belongs in a group.
_USES = re.compile(
    rb"[ \t]*+(?i:content-signals?|content-usage|usage(?:-pref)?|(?:dis)?allowaitraining)[ \t]*+:"
)
_UNSURE = ("…", "\ufffd")  # signs that `printable` has cut or changed the text


def quoted(pattern: re.Pattern[str], finding: Finding) -> bytes:
    """Return the octets that the group of a pattern finds in a message.

    b"" means that it finds none, or that `printable` has changed them.
    """
    match = pattern.search(finding.message)
    if not match or any(sign in match[1] for sign in _UNSURE):
        return b""
    return match[1].encode()


def proposed(finding: Finding) -> bytes:
    """Return the text that a message proposes: b"x" for "Write `x`". b"" means that it has none."""
    return quoted(_PROPOSED, finding)


def write(
    draft: Draft,
    finding: Finding,
    text: bytes,
    span: tuple[int, int] | None = None,
    *,
    changes_decisions: bool = True,
) -> Fix | None:
    """Return the fix that writes a text at a place in the line of a finding.

    `span`: the start and end in the line, in octets from 0. By default it is the column of the
    finding, or else the first quotation of its message.
    The result is None if the place is not known, if the line has the text already, or if it is not
    safe to change.
    """
    line = draft.mendable_line(finding)
    if not line or not text:
        return None
    if span is None:
        span = draft.place(finding) if finding.column else draft.quotation(finding)
    if span is None or line[span[0] : span[1]] == text:
        return None
    edit = draft.replace_octets(finding.line, span[0] + 1, span[1] - span[0], text)
    return Fix(f"Write `{printable(text)}`", (edit,), changes_decisions)


def write_proposed(draft: Draft, finding: Finding) -> Fix | None:
    return write(draft, finding, proposed(finding))


def write_equal(draft: Draft, finding: Finding) -> Fix | None:
    return write(draft, finding, proposed(finding), changes_decisions=False)


def write_key(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the key of a proposed `key=value`, and keeps the value."""
    return write(draft, finding, proposed(finding).partition(b"=")[0])


def put_above(line: bytes) -> Mend:
    """Return the function for the fix that writes a line above the line of a finding."""

    def fix(draft: Draft, finding: Finding) -> Fix | None:
        if not draft.mendable_line(finding):
            return None
        start = draft.start(finding.line)
        edit = Edit(start, start, line + draft.line_end)
        return Fix(f"Write `{line.decode()}` above the line", (edit,), changes_decisions=True)

    return fix


def open_group(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that makes a group for `*` of lines about uses that no group contains.

    The fix is the same for all lines between which there are only comments and blank lines, so it
    is made once.
    """
    if not draft.mendable_line(finding):
        return None
    first, last = (_end_of_uses(draft, finding.line, step) for step in (-1, 1))
    start, end = draft.start(first), draft.start(last) + len(draft.line(last))
    above = Edit(start, start, b"User-agent: *" + draft.line_end)
    below = Edit(end, end, draft.line_end + b"Disallow:")
    return Fix("Write `User-agent: *` above the line", (above, below), changes_decisions=True)


def _end_of_uses(draft: Draft, line: int, step: int) -> int:
    """Return the first (`step` -1) or last (1) of the lines about uses around a line."""
    end = line
    while 0 < (line := line + step) <= draft.lines:
        text = draft.line(line)
        if _USES.match(text):
            end = line
        elif text.partition(b"#")[0].strip():
            break
    return end


def delete_line(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that deletes a line of robots.txt without effect, and keeps its comment.

    None means that the line is not safe to change, or that it ends a list of agents.
    """
    if not is_loose(draft, finding) or finding.line in _lines_ending_agents(draft.body):
        return None
    return draft.line_out(finding.line)


def is_loose(draft: Draft, finding: Finding) -> bool:
    """Return True if a line without effect is safe to change, and keeps no License in its group.

    An empty line before a License puts it outside of the group (`rsl.references`).
    """
    line = draft.mendable_line(finding)
    if not line or line.strip().lower().startswith(OF_NO_GROUP):
        return bool(line)
    before = draft.line(finding.line - 1).strip() if finding.line > 1 else b""
    if before and not before.lower().startswith(OF_NO_GROUP):
        return True
    for number in range(finding.line + 1, draft.lines + 1):
        after = draft.line(number).strip().lower()
        if not after.startswith(OF_NO_GROUP):
            return True
        if after.startswith(b"license"):
            return False
    return True


@lru_cache(maxsize=2)  # the fix for each finding asks for the same file
def _lines_ending_agents(body: bytes) -> frozenset[int]:
    """Return the numbers of the lines that keep the agents of two groups apart.

    Each group keeps its first rule, and each record of ACAP its first field. A group without a rule
    keeps all its lines, because readers disagree about the line that ends its agents.
    """
    ending: set[int] = set()
    since_agent: list[int] = []  # the lines of a group that has no rule yet
    has_rule, needs_field = True, False  # no group is open before the first agent
    draft = Draft("", body)
    for number in range(1, draft.lines + 1):
        line = draft.line(number)
        record = read_record(line)
        if record and record.kind is RecordKind.AGENT:
            ending.update(since_agent)
            since_agent, has_rule = [], False
        elif not has_rule:
            since_agent.append(number)
            if has_rule := _RULE.match(line) is not None:
                ending.add(number)
                since_agent = []
        if record and record.kind is RecordKind.ACAP_CRAWLER:
            needs_field = True
        elif needs_field and _FIELD.match(line):
            ending.add(number)
            needs_field = False
    return frozenset(ending.union(since_agent))


def comment_out(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that makes a line without effect a comment."""
    if not is_loose(draft, finding):
        return None
    return Fix("Write `#` before the line", (draft.replace_octets(finding.line, 1, 0, b"# "),))


def first_of(*mends: Mend) -> Mend:
    """Return the function for the first of several fixes that is possible."""

    def fix(draft: Draft, finding: Finding) -> Fix | None:
        return next((fix for mend in mends if (fix := mend(draft, finding))), None)

    return fix
