"""The directives of automation-preferences.txt as values: the content of a group or an annotation.

A directive may be repeated, and all its values apply. If they are lists, only items that are in all
lists are permitted. Of other values, the most restrictive one applies. A value that cannot be read
counts as the most restrictive value of its directive (AUTX-14).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

from comity.policies.syntax.windows import Window

T = TypeVar("T")


PATH = "/automation-preferences.txt"  # core draft, file-location-and-format
# Core, formal-syntax.
METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "TRACE",
    "CONNECT",
)
API_AUTOMATION = ("none", "with-key-only", "open")  # extension section-3.3
ALLOW_XHR = ("none", "read-only", "open")  # extension section-3.3
# Extension section-3.4: value -> the credential that a session must carry, one of
# comity.policies.answers.request.CREDENTIALS.
SESSION_VALIDATION = {
    "cookie-based": "cookie",
    "token-based": "token",
    "oauth": "bearer",
    "none": "",
}

NOWHERE = "?"  # replaces a host that cannot be read, because no host has this name


class DirectiveValue(NamedTuple, Generic[T]):
    """One value of a directive.

    Attributes:
        line: From 1.
        offset: The start of the line in the text.
        advice: Advice to the author if the value cannot be read.
    """

    value: T
    line: int = 0
    offset: int = 0
    advice: str = ""


class UrlPattern(NamedTuple):
    """A url-pattern (core, formal-syntax).

    `*` stands for any characters and a final `$` for the end. Without `$` the pattern is a prefix.

    Attributes:
        host: The host of an absolute URL, as returned by `host_pattern`, or NOWHERE. "" means any
            host that the file applies to.
        path: In the normal form of comity.policies.syntax.path_patterns.
    """

    host: str
    path: str


class Directives(NamedTuple):
    """The directives of a group or an annotation. () stands for an absent directive.

    Attributes:
        allowed_methods: Upper case.
        allowed_purposes: Lower case.
        allowed_automations: Lower case.
        api_automation: One of API_AUTOMATION.
        allow_xhr: One of ALLOW_XHR.
        session_validation: One of SESSION_VALIDATION. "" means unreadable: no session satisfies it.
        session_ttl: None means unreadable: no session is permitted.
        request_limit: None means unreadable. Requests are then as slow as the operator's settings
            allow.
        concurrent_limit: The maximum number of requests at a time.
    """

    allowed_methods: tuple[DirectiveValue[frozenset[str]], ...] = ()
    allowed_purposes: tuple[DirectiveValue[frozenset[str]], ...] = ()
    allowed_automations: tuple[DirectiveValue[frozenset[str]], ...] = ()
    api_automation: tuple[DirectiveValue[str], ...] = ()
    allow_xhr: tuple[DirectiveValue[str], ...] = ()
    disallow_fetch_from: tuple[DirectiveValue[tuple[UrlPattern, ...]], ...] = ()
    require_human_initiated_session: tuple[DirectiveValue[bool], ...] = ()
    session_validation: tuple[DirectiveValue[str], ...] = ()
    session_ttl: tuple[DirectiveValue[timedelta | None], ...] = ()
    request_limit: tuple[DirectiveValue[Window | None], ...] = ()
    concurrent_limit: tuple[DirectiveValue[int], ...] = ()


class Group(NamedTuple):
    """One group of the file (core, scope-and-applicability).

    Attributes:
        line: The number of its first line, from 1.
        offset: The start of this line in the text.
        scopes: () means that the group has no scope line. It then applies to every path, but any
            group with a matching scope overrides it.
        hosts: As returned by `host_pattern`. None means that the group has no host line, and
            applies to any host of the file. () means that its host lines cannot be read.
        agents: Product tokens in lower case, or "*". None means that the group has no user-agent
            line, and applies to all agents. The empty set means no agent.
        key: For a group with limits: a digest of its scopes, hosts and agents that is equal in
            every process.
    """

    line: int
    offset: int
    scopes: tuple[UrlPattern, ...]
    hosts: tuple[str, ...] | None
    agents: frozenset[str] | None
    directives: Directives
    key: str = ""
