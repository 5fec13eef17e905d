"""The conditions of a group of automation-preferences.txt in words, for people.

conditions(group.directives)    the condition of each line, such as "only requests for research"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from comity.policies.formats.automation.directives import (
    METHODS,
    SESSION_VALIDATION,
    Directives,
    DirectiveValue,
    UrlPattern,
)
from comity.policies.syntax.printable import printable

NOTHING = "no requests"
_PLAIN = re.compile(r"[A-Za-z0-9/_.~%*$?&=:@+,;!()-]+")


class ToldCondition(NamedTuple):
    """The condition of a directive in words.

    Attributes:
        rule: The rule that refuses requests which do not meet the condition.
        words: The permitted requests, such as "only requests for research".
        directive: None means that the group has no such directive, which is a condition too.
    """

    rule: str
    words: str
    directive: DirectiveValue[Any] | None = None

    @property
    def can_be_met(self) -> bool:
        """True unless the condition refuses every request."""
        return self.words != NOTHING


def conditions(directives: Directives) -> Iterator[ToldCondition]:
    """Yield the conditions of a group, purposes and methods first.

    Directives that permit all requests are left out.
    """
    told = chain(
        _describe("automation.purpose", directives.allowed_purposes, _purposes),
        _describe("automation.method", directives.allowed_methods, _methods, absent=NOTHING),
        _describe(
            "automation.mechanism",
            directives.allowed_automations,
            _automations,
            absent="no requests with tools",
        ),
        _api(directives),
        _describe("automation.xhr", directives.allow_xhr, _xhr, absent="no requests by scripts"),
        _describe("automation.fetch-from", directives.disallow_fetch_from, _pages),
        _describe("automation.session", directives.require_human_initiated_session, _session),
        _describe("automation.session-validation", directives.session_validation, _validation),
        _describe("automation.session-ttl", directives.session_ttl, _ttl),
        _describe("automation.none", directives.request_limit, _rate),
        _describe("automation.none", directives.concurrent_limit, _concurrency),
    )
    return (condition for condition in told if condition.words)


def _describe(
    rule: str, stated: Sequence[DirectiveValue[Any]], words_of: Any, *, absent: str = ""
) -> Iterator[ToldCondition]:
    """Yield the condition of each value of a directive.

    `stated` are the values, and `words_of` returns the words for a value. `absent` are the words
    for a group without the directive.
    """
    for directive in stated:
        yield ToldCondition(rule, words_of(directive.value), directive)
    if not stated:
        yield ToldCondition(rule, absent)


def _join(names: Iterable[str], conjunction: str) -> str:
    """Return the names as a list in words."""
    *others, last = map(_quote, names)
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def _quote(name: str) -> str:
    """Return a word of the file for a sentence: plain words as they are, others as code."""
    if _PLAIN.fullmatch(name):
        return name
    return f"`{printable(name.encode('utf-8', 'replace')).replace('`', chr(39))}`"


def _purposes(allowed: frozenset[str]) -> str:
    return f"only requests for {_join(sorted(allowed), 'or')}" if allowed else NOTHING


def _methods(allowed: frozenset[str]) -> str:
    return (
        f"only {_join(sorted(allowed, key=METHODS.index), 'and')} requests" if allowed else NOTHING
    )


def _automations(allowed: frozenset[str]) -> str:
    return (
        f"with tools only requests by {_join(sorted(allowed), 'or')}"
        if allowed
        else "no requests with tools"
    )


def _api(directives: Directives) -> Iterator[ToldCondition]:
    for directive in directives.api_automation:
        if directive.value == "none":
            yield ToldCondition("automation.api", "no API requests", directive)
        elif directive.value == "with-key-only":
            yield ToldCondition("automation.key", "API requests only with a key", directive)
    if not directives.api_automation:
        yield ToldCondition("automation.api", "no API requests")


def _xhr(value: str) -> str:
    return {"open": "", "read-only": "requests by scripts only with GET"}.get(
        value, "no requests by scripts"
    )


def _pages(patterns: tuple[UrlPattern, ...]) -> str:
    return (
        f"no requests by scripts of {_join(map(pattern_text, patterns), 'or')}" if patterns else ""
    )


def pattern_text(pattern: UrlPattern) -> str:
    """Return a pattern as people write it."""
    return _quote(pattern.host + pattern.path)


def _session(is_required: bool) -> str:  # noqa: FBT001  # the value of a directive
    return "only requests in a session that a person began" if is_required else ""


def _validation(value: str) -> str:
    if value == "none":
        return ""
    credential = SESSION_VALIDATION.get(value)
    words = {"cookie": "a cookie", "token": "a token", "bearer": "a bearer token"}
    return (
        f"in a session only requests with {words[credential]}"
        if credential
        else "no requests in a session"
    )


def _ttl(ttl: Any) -> str:
    return (
        f"in a session only requests until {ttl.total_seconds():g} s after it began"
        if ttl
        else "no requests in a session"
    )


def _rate(window: Any) -> str:
    if window is None:
        return "requests only at the slowest pace, because the limit cannot be read"
    return (
        f"at most {_count(window.requests)} in {window.seconds:g} s" if window.requests else NOTHING
    )


def _concurrency(number: int) -> str:
    return f"at most {_count(number)} at a time" if number else NOTHING


def _count(number: int) -> str:
    return f"{number} request{'s' if number != 1 else ''}"
