"""The result of a recheck of one record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from comity.policies import Verdict
from comity.policies.answers.decision import Reason

SAME, GAINED, LOST, RESTRICTED = "same", "gained", "lost", "restricted"


class Cause(NamedTuple):
    """The statement that decides today. `rule`: a key of comity.policies.answers.rule.RULES, or a word of this module."""

    rule: str
    url: str = ""
    part: str = ""  # "": the text of a file
    line: int = 0
    text: str = ""

    def __str__(self) -> str:
        position = f"{self.url}:{self.line}" if self.line else self.url
        return ": ".join(
            filter(None, (f"{self.rule} at {position}" if position else self.rule, self.text))
        )


class UseToday(NamedTuple):
    """One use of one record."""

    use: str
    verdict: Verdict
    change: str  # SAME, GAINED, LOST, or RESTRICTED: permitted as before, with conditions that its tag has not
    cause: Cause


class Rechecked(NamedTuple):
    """One record."""

    url: str  # "": it has none
    origin: str
    agent: str  # token of its tag
    uses: tuple[UseToday, ...] = ()
    refusals: tuple[Cause, ...] = ()  # why it is not compliant today; none: it is
    is_unknown: bool = False  # nobody knows what today's policies say of it
    gained_elements: bool = False  # the tag refuses parts of it that today's files do not


def cause_of(reason: Reason) -> Cause:
    source = reason.source
    return Cause(
        reason.rule,
        source.url,
        "" if source.part == "body" else source.part,
        source.line,
        source.text,
    )


def quoted(reason: Mapping[str, Any]) -> Cause:
    return Cause(
        reason["rule"], reason["url"], reason.get("part", ""), reason["line"], reason["text"]
    )
