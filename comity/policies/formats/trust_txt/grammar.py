"""The lines of a trust.txt about the training of AI models.

    parse(text) -> TrustTxt

Sources: JournalList's reference document for trust.txt, and the draft of its protocol
(draft-org-trust-relationship-protocol). A file has lines of the form `name=value`, and comments
that begin with `#`. Only the name `datatrainingallowed` is about the uses of a site's content. The
readings of open points are in docs/trust-txt.md.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.syntax.lines import MAX_LINE, Findings, line_ends
from comity.policies.syntax.printable import printable

NAME = "datatrainingallowed"
# LENIENT: a refusal may be spelt with `-`, `_` and white space in the name, and with `:` for `=`.
_TRAINING = rb"[ \t]*+(data[-_ \t]*+training[-_ \t]*+allowed)[ \t]*+([=:])[ \t]*+([^#\r\n]*+)"
LIKE_TRAINING = re.compile(_TRAINING, re.IGNORECASE)
_LINE = re.compile(rb"[\r\n]" + _TRAINING, re.IGNORECASE)


class TrainingLine(NamedTuple):
    """The line that decides about training.

    Attributes:
        verdict: ALLOW or DENY.
        line: The number of the line, from 1.
        text: The line without its comment, printable.
    """

    verdict: Verdict
    line: int
    text: str


class TrustTxt(NamedTuple):
    """The reading of one trust.txt.

    Attributes:
        training: The line that decides about training; None if no line does.
        findings: Findings for the author, without the URL of the file.
    """

    training: TrainingLine | None
    findings: tuple[Finding, ...]


def parse(text: bytes, *, cut: bool = False) -> TrustTxt:
    """Read the text of a trust.txt. The time is linear in its octets.

    `cut`: True if the end of the file is missing. Then nothing is permitted, because a line that
    is missing may refuse.
    """
    findings = Findings("")
    lines: list[TrainingLine] = []
    refusal: TrainingLine | None = None
    number, before = 1, 0  # the line of this number starts at the octet `before`
    for match in _LINE.finditer(b"\n" + text):
        number += line_ends(text, before, match.start())
        before = match.start()
        name, mark, value = match[1], match[2], match[3][:MAX_LINE].rstrip(b" \t")
        permits, is_usual = value.lower() == b"yes", value.lower() in (b"yes", b"no")
        is_exact = mark == b"=" and name.lower() == NAME.encode()
        record = text[match.start(1) - 1 : match.end(3) - 1].rstrip(b" \t")
        line = TrainingLine(Verdict.ALLOW if permits else Verdict.DENY, number, printable(record))
        if is_exact:
            lines.append(line)
        if not permits:
            refusal = refusal or line
        problem = _problem(is_exact=is_exact, is_usual=is_usual, permits=permits)
        if problem or len(lines) > 1:
            rule, message = problem or ("trust-txt.repeated", _REPEATED)
            findings.report(
                rule,
                message,
                record,
                line=number,
                column=match.start(1) - match.start(),
                length=len(record),
            )
    if refusal is None and len(lines) > 1:
        refusal = lines[1]._replace(verdict=Verdict.DENY)
    permission = lines[0] if lines and not cut else None
    return TrustTxt(refusal or permission, tuple(findings))


_REPEATED = "`{}` is a second line about training, so both are read as no. Delete one of them."


def _problem(*, is_exact: bool, is_usual: bool, permits: bool) -> tuple[str, str] | None:
    """Return the rule and the message for a line that is not in the usual form, or None."""
    if not is_exact and permits:
        return "trust-txt.name", f"`{{}}` permits nothing. Write `{NAME}=yes`."
    if not is_exact:
        return "trust-txt.name", f"Few readers understand `{{}}`. Write `{NAME}=no`."
    if not is_usual:
        return "trust-txt.value", f"`{{}}` is read as no. Write `{NAME}=no`."
    return None
