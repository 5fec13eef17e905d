"""The statement of a source about a use: one word of one vocabulary.

A source is a vocabulary: all that robots.txt, the header and the markup say in it about one page belongs together."""

from __future__ import annotations

from typing import NamedTuple

from comity.policies.answers.decision import Verdict
from comity.policies.answers.qualifiers import Qualifiers

NO_QUALIFIERS = Qualifiers()


class Location(NamedTuple):
    """The position of a statement. Only what it takes to make a `Source` of it."""

    part: str = "body"  # as `Source.part`: "body" of a policy file, "header X-Robots-Tag", "meta robots", ...
    line: int = 0  # 1-based; 0: no line
    text: str = ""  # the statement as written, printable
    url: str = ""  # of the file; "": of the page


class Statement(NamedTuple):
    """A permission, a refusal, or a limit."""

    term: str  # "vocabulary:label", as vocabulary.toml has them, e.g. "usage:ai"
    verdict: (
        Verdict | None
    )  # ALLOW or DENY; None: it permits nothing, and restricts what others permit
    rule: str  # a key of RULES
    location: Location
    qualifiers: Qualifiers = (
        NO_QUALIFIERS  # what restricts a permission, this one or that of others
    )
