"""The statement of a source about a use: one word of one vocabulary.

All statements about a page in one vocabulary are one source, whether they are in robots.txt, in a
header field or in the markup."""

from __future__ import annotations

from typing import NamedTuple

from comity.policies.answers.decision import Verdict
from comity.policies.answers.qualifiers import Qualifiers

NO_QUALIFIERS = Qualifiers()


class Location(NamedTuple):
    """The position of a statement, as much of it as a `Source` needs.

    Attributes:
        part: "body" of a policy file, "header X-Robots-Tag", "meta robots" and others, see
            `Source.part`.
        line: 1-based line number. 0: no line.
        text: the statement as written, printable.
        url: URL of the file. "": the page."""

    part: str = "body"
    line: int = 0
    text: str = ""
    url: str = ""


class Statement(NamedTuple):
    """A permission, a refusal, or a limit on permissions.

    Attributes:
        term: "vocabulary:word" of vocabulary.toml, e.g. "usage:ai".
        verdict: ALLOW or DENY. None: the statement permits nothing, and restricts the permissions
            of others.
        rule: a key of RULES.
        location: position of the statement.
        qualifiers: restrictions on this permission, or on those of others."""

    term: str
    verdict: Verdict | None
    rule: str
    location: Location
    qualifiers: Qualifiers = NO_QUALIFIERS
