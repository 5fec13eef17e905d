"""Verdicts, reasons, decisions and findings, as values.

Nothing here reads a file, a clock or a socket. A decision always carries its reasons, the deciding one first."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime

from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.answers.rule import RULES

OF_PAGE = "\0"  # as the URL of a source: that of the page, whichever it is. Decisions are handed out with it in its place.


class Verdict(enum.Enum):
    """The answer to "may this be done?". DEFER: not now, see `Decision.not_before`."""

    ALLOW = "allow"
    DEFER = "defer"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a statement: the file, field or element that it was read from."""

    url: str
    part: str = "body"  # "body", "status", "header X-Robots-Tag", ...; "setting" for the operator's own word
    line: int = (
        0  # 1-based, in the bytes as received; 0: no line, it follows from a status or from absence
    )
    text: str = ""  # the statement as written, printable
    sha256: str = ""  # of the file's body, hexadecimal; "" where there is none
    fetched_at: datetime | None = None

    def __str__(self) -> str:
        position = f"{self.url}:{self.line}" if self.line else self.url
        return f"{position}: {self.text!r}" if self.text else position


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule that took part in a decision."""

    rule: str  # a key of `comity.policies.answers.rule.RULES`
    source: Source
    citation: str = ""  # specification and section of the cause, where the rule has several; "": those of the rule

    @property
    def spec(self) -> str:
        """Specification and section, e.g. "RFC 9309 section-2.2.2"."""
        return self.citation or RULES[self.rule].spec

    def __hash__(self) -> int:
        """Hash what tells most reasons apart: they are put into sets by the dozen for every page."""
        return hash((self.rule, self.source.line, self.source.text))

    def __str__(self) -> str:
        return f"{self.rule} ({self.spec}) at {self.source}"


def with_page_url(reasons: tuple[Reason, ...], url: str) -> tuple[Reason, ...]:
    """Return the reasons with the URL of the page in place of OF_PAGE."""
    if all(reason.source.url != OF_PAGE for reason in reasons):
        return reasons
    replaced = (
        replace(reason, source=replace(reason.source, url=url))
        if reason.source.url == OF_PAGE
        else reason
        for reason in reasons
    )
    return tuple(dict.fromkeys(replaced))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """May this request be made? `reasons[0]` decided.

    `not_before` is set where the verdict is DEFER, or DENY as it would have to wait for too long."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    not_before: datetime | None = None

    def __bool__(self) -> bool:
        raise TypeError("a Decision has no truth value; compare .verdict")

    def __str__(self) -> str:
        until = f" until {self.not_before.isoformat()}" if self.not_before else ""
        return f"{self.verdict.value}{until}: {self.reasons[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDecision(Qualifiers):
    """May the content be used in this way, and with which restrictions? The verdict is ALLOW or DENY."""

    verdict: Verdict
    stated: bool  # False: no source speaks of this use, the operator's default decided
    reasons: tuple[Reason, ...]

    def __bool__(self) -> bool:
        raise TypeError("a UseDecision has no truth value; compare .verdict")

    def __str__(self) -> str:
        return f"{self.verdict.value}: {self.reasons[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in a policy file that its author should know. It never changes a verdict."""

    rule: str  # a key of `comity.policies.answers.rule.RULES`
    message: str
    url: str = ""
    line: int = 0  # 1-based; 0: the file as a whole
    column: int = 0  # 1-based, in octets; 0: the line as a whole
    length: int = 0  # octets from there; 0: to the end of the word

    def __str__(self) -> str:
        position = ":".join(str(part) for part in (self.url, self.line, self.column) if part)
        return (
            f"{position}: {self.rule}: {self.message}"
            if position
            else f"{self.rule}: {self.message}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """A site asks for an action (ACAP 1.0 section-2.6)."""

    action: str  # "take-down" or "re-crawl"
    url: str  # of the resource
    arranged: bool  # False: nothing is done, it is only reported
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A line permits some requests and no others: "only requests for research" under /api/.

    `reason` is the one of a decision that refuses the others."""

    scopes: tuple[str, ...]  # patterns of paths for which it holds; (): everywhere
    words: str  # the requests that are permitted, or are not
    reason: Reason
    can_be_met: bool = True  # False: no request is permitted
