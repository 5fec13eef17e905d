"""Verdicts, reasons, decisions and findings.

They are plain values: no function here reads a file, a clock or a socket. A decision always
carries its reasons, the deciding one first."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime

from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.answers.rule import RULES, without_page

# Stands for the URL of the page in a shared source. `with_page_url` replaces it.
OF_PAGE = "\0"


class Verdict(enum.Enum):
    """The answer to "may this be done?". DEFER means "not now", see `Decision.not_before`."""

    ALLOW = "allow"
    DEFER = "defer"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a statement: a file, a header field, an element or a setting.

    Attributes:
        url: URL of the file or page, or the name of a setting.
        part: "body", "status", "header X-Robots-Tag" and others. "setting": the operator's own.
        line: 1-based line number in the received bytes. 0: the statement follows from a status or
            from absence.
        text: the statement as written, printable.
        sha256: hash of the file's body in hexadecimal. "": there is no body.
        fetched_at: when the file was fetched, an aware datetime. None: unknown."""

    url: str
    part: str = "body"
    line: int = 0
    text: str = ""
    sha256: str = ""
    fetched_at: datetime | None = None

    def __str__(self) -> str:
        position = f"{self.url}:{self.line}" if self.line else self.url
        return f"{position}: {self.text!r}" if self.text else position


class _Hashed:
    """A slot for the hash of an immutable object. It is no field: copies and pickles lack it."""

    __slots__ = ("_hash",)

    _hash: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(_Hashed):
    """A rule that took part in a decision.

    Attributes:
        rule: a key of `comity.policies.answers.rule.RULES`.
        source: where the statement is.
        citation: the specification and section that this reason quotes, for rules that rest on
            several. "": the specification and section in RULES."""

    rule: str
    source: Source
    citation: str = ""

    @property
    def spec(self) -> str:
        """Specification and section, e.g. "RFC 9309 section-2.2.2"."""
        return self.citation or RULES[self.rule].spec

    def __hash__(self) -> int:
        """Hash the four fields that differ most, once.

        Every page puts dozens of reasons into sets, so a hash has to be fast."""
        try:
            return self._hash
        except AttributeError:
            source = self.source
            object.__setattr__(
                self, "_hash", hash((self.rule, source.url, source.line, source.text))
            )
            return self._hash

    def __str__(self) -> str:
        return f"{self.rule} ({without_page(self.spec)}) at {self.source}"


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
    """The answer to "may this request be made?".

    Attributes:
        verdict: ALLOW, DEFER or DENY.
        reasons: the rules that took part, the deciding one first.
        not_before: earliest time of the request, an aware datetime. It is set for DEFER, and for
            DENY if the wait would be too long."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    not_before: datetime | None = None

    def __bool__(self) -> bool:
        raise TypeError("a Decision has no truth value; compare .verdict")

    def __str__(self) -> str:
        until = f" until {self.not_before.isoformat()}" if self.not_before else ""
        return f"{self.verdict.value}{until}: {self.reasons[0]}"

    def _repr_html_(self) -> str:
        """Return the decision as a notebook shows it."""
        from comity import notebook

        return notebook.decision(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDecision(Qualifiers):
    """The answer to "may the content be used in this way?", with the restrictions.

    Attributes:
        verdict: ALLOW or DENY.
        stated: False if no source mentions this use, so that the operator's default decided.
        reasons: the rules that took part, the deciding one first."""

    verdict: Verdict
    stated: bool
    reasons: tuple[Reason, ...]

    def __bool__(self) -> bool:
        raise TypeError("a UseDecision has no truth value; compare .verdict")

    def __str__(self) -> str:
        return f"{self.verdict.value}: {self.reasons[0]}"

    def _repr_html_(self) -> str:
        """Return the decision as a notebook shows it."""
        from comity import notebook

        return notebook.decision(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A hint for the author of a policy file. It never changes a verdict.

    Attributes:
        rule: a key of `comity.policies.answers.rule.RULES`.
        message: what is wrong and what to write instead.
        url: URL of the file. "": unknown.
        line: 1-based line number. 0: the whole file.
        column: 1-based column in octets. 0: the whole line.
        length: octets from `column`. 0: to the end of the word."""

    rule: str
    message: str
    url: str = ""
    line: int = 0
    column: int = 0
    length: int = 0

    def __str__(self) -> str:
        position = ":".join(str(part) for part in (self.url, self.line, self.column) if part)
        return (
            f"{position}: {self.rule}: {self.message}"
            if position
            else f"{self.rule}: {self.message}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """A site's request to do something (ACAP 1.0 section-2.6).

    Attributes:
        action: "take-down" or "re-crawl".
        url: URL of the resource.
        arranged: True if the operator has arranged to carry out the action. False: comity only
            reports the request.
        reason: the line that makes the request."""

    action: str
    url: str
    arranged: bool
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A line that permits only some requests, e.g. "only requests for research" under /api/.

    Attributes:
        scopes: path patterns for which the condition holds. (): everywhere.
        words: the condition as a phrase, e.g. "API requests only with a key" or "no API requests".
        reason: the reason in the decision about a request that does not meet the condition.
        can_be_met: False if no request can meet the condition."""

    scopes: tuple[str, ...]
    words: str
    reason: Reason
    can_be_met: bool = True
