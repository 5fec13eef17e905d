"""The directives of automation-preferences.txt as values: what a group of the file, or an annotation in a page, states.

A directive may stand more than once. Each time it does is kept, and all hold together: of lists what is in all of them, of
other values the most restrictive. What cannot be read has the most restrictive value of its directive (AUTX-14)."""

from __future__ import annotations

from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

from comity.policies.syntax.windows import Window

T = TypeVar("T")


PATH = "/automation-preferences.txt"  # core draft, file-location-and-format
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
)  # core, formal-syntax
API_AUTOMATION = ("none", "with-key-only", "open")  # extension section-3.3
ALLOW_XHR = ("none", "read-only", "open")  # extension section-3.3
# Extension section-3.4, and what of comity.policies.answers.request.CREDENTIALS each asks for.
SESSION_VALIDATION = {
    "cookie-based": "cookie",
    "token-based": "token",
    "oauth": "bearer",
    "none": "",
}

NOWHERE = "?"  # instead of a host that cannot be read: no host is so named


class DirectiveValue(NamedTuple, Generic[T]):
    """One directive, once."""

    value: T
    line: int = 0  # 1-based
    offset: int = 0  # where the line starts in the text
    advice: str = ""  # what to write instead of a value that cannot be read


class UrlPattern(NamedTuple):
    """A url-pattern (core, formal-syntax): `*` for any characters, `$` at the end for the end, else a prefix."""

    host: str  # of an absolute URL, as `host_pattern` makes it, or NOWHERE; "": any host that the file speaks for
    path: str  # normal form of comity.policies.syntax.path_patterns


class Directives(NamedTuple):
    """The directives of a group or an annotation; () for one that it leaves out."""

    allowed_methods: tuple[DirectiveValue[frozenset[str]], ...] = ()  # upper case
    allowed_purposes: tuple[DirectiveValue[frozenset[str]], ...] = ()  # lower case
    allowed_automations: tuple[DirectiveValue[frozenset[str]], ...] = ()  # lower case
    api_automation: tuple[DirectiveValue[str], ...] = ()  # of API_AUTOMATION
    allow_xhr: tuple[DirectiveValue[str], ...] = ()  # of ALLOW_XHR
    disallow_fetch_from: tuple[DirectiveValue[tuple[UrlPattern, ...]], ...] = ()
    require_human_initiated_session: tuple[DirectiveValue[bool], ...] = ()
    session_validation: tuple[
        DirectiveValue[str], ...
    ] = ()  # of SESSION_VALIDATION; "": unreadable, no session satisfies it
    session_ttl: tuple[
        DirectiveValue[timedelta | None], ...
    ] = ()  # None: unreadable, no session is permitted
    request_limit: tuple[
        DirectiveValue[Window | None], ...
    ] = ()  # None: unreadable, as slow as the operator's settings allow
    concurrent_limit: tuple[DirectiveValue[int], ...] = ()


class Group(NamedTuple):
    """One group of the file (core, scope-and-applicability)."""

    line: int  # of its first line, 1-based
    offset: int  # where that starts in the text
    scopes: tuple[
        UrlPattern, ...
    ]  # (): none is written; `/`, which any group with a matching scope outranks
    hosts: (
        tuple[str, ...] | None
    )  # as `host_pattern` makes them; None: absent, the whole host; (): none that can be read
    agents: (
        frozenset[str] | None
    )  # product tokens, lower case, or "*"; None: absent, all; empty: nobody
    directives: Directives
    key: str = ""  # of a group with limits: digest of its scopes, hosts and agents, the same in every process
