"""The result of a recheck of one record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from comity.policies import Verdict
from comity.policies.answers.decision import Reason

SAME, GAINED, LOST, RESTRICTED = "same", "gained", "lost", "restricted"


class Cause(NamedTuple):
    """The statement that decides today."""

    rule: str
    """A key of comity.policies.answers.rule.RULES, or a word of this package."""
    url: str = ""
    """The URL of the statement. Empty if there is none."""
    part: str = ""
    """The part of the page with the statement. Empty for a policy file."""
    line: int = 0
    """The line in the file, from 1. 0 if the statement has no line."""
    text: str = ""
    """The statement as written, or the problem."""

    def __str__(self) -> str:
        position = f"{self.url}:{self.line}" if self.line else self.url
        return ": ".join(
            filter(None, (f"{self.rule} at {position}" if position else self.rule, self.text))
        )


class UseToday(NamedTuple):
    """Today's verdict on one use of one record."""

    use: str
    verdict: Verdict
    change: str
    """SAME, GAINED, LOST or RESTRICTED. RESTRICTED: still permitted, on conditions that are not in
    the tag."""
    cause: Cause
    """The statement that decides."""


class Rechecked(NamedTuple):
    """The result for one record."""

    url: str
    """The URL of the record's page. Empty if the record has no http or https URL."""
    origin: str
    """The origin of `url`."""
    agent: str
    """The product token of the agent in the record's tag. Empty if the tag cannot be read."""
    uses: tuple[UseToday, ...] = ()
    """The verdicts on the uses in the tag."""
    refusals: tuple[Cause, ...] = ()
    """The reasons why the record is not compliant today. Empty if it is compliant."""
    is_unknown: bool = False
    """True if today's policies for the record cannot be determined."""
    gained_elements: bool = False
    """True if the tag refuses parts of the record that today's files do not refuse."""


def cause_of(reason: Reason) -> Cause:
    """Return the cause for a reason of today's policies."""
    source = reason.source
    return Cause(
        reason.rule,
        source.url,
        "" if source.part == "body" else source.part,
        source.line,
        source.text,
    )


def quoted_cause(reason: Mapping[str, Any]) -> Cause:
    """Return the cause for a reason that a tag quotes."""
    return Cause(
        reason["rule"], reason["url"], reason.get("part", ""), reason["line"], reason["text"]
    )
