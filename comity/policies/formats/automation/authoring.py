"""Help for authors of automation-preferences.txt files and of annotations in pages."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.automation.annotation import TYPE, WITHOUT_EFFECT
from comity.policies.formats.automation.checks import check_site
from comity.policies.formats.automation.directives import (
    ALLOW_XHR,
    API_AUTOMATION,
    METHODS,
    SESSION_VALIDATION,
)
from comity.policies.formats.automation.fixes import FIXES
from comity.policies.formats.automation.words import MECHANISMS

_CORE = "draft-liao-aipref-autoctl-core-01"
_EXT = "draft-liao-aipref-autoctl-ext"
_LINES = (
    Directive(
        "scope",
        f"{_CORE} scope-and-applicability",
        "The URLs that the group applies to: a path and everything beneath it, or a pattern",
        "path",
    ),
    Directive(
        "host",
        f"{_CORE} scope-and-applicability",
        "The host of the site that the group applies to",
        "host",
    ),
    Directive(
        "user-agent",
        f"{_CORE} scope-and-applicability",
        "The agents that the group binds: product tokens, or `*` for any agent",
        "agent",
    ),
    Directive(
        "allowed-methods",
        f"{_CORE} http-method-restrictions",
        "The permitted methods; without it, none",
        "method",
    ),
    Directive(
        "allowed-purposes",
        f"{_CORE} purpose-declaration",
        "The permitted purposes; without it, any",
        "purpose",
    ),
    Directive(
        "allowed-automations",
        f"{_EXT} section-3.2",
        "The permitted tools; without it, none",
        "mechanism",
    ),
    Directive(
        "api-automation",
        f"{_EXT} section-3.3",
        "Whether requests to APIs are permitted; without it, none",
        "api-automation",
    ),
    Directive(
        "allow-xhr",
        f"{_EXT} section-3.3",
        "Whether requests by scripts are permitted; without it, none",
        "allow-xhr",
    ),
    Directive(
        "disallow-fetch-from",
        f"{_EXT} section-3.3",
        "The pages whose scripts must not make requests",
        "path",
    ),
    Directive(
        "require-human-initiated-session",
        f"{_EXT} section-3.4",
        "Whether requests need a session that a person has begun",
        "boolean",
    ),
    Directive(
        "session-validation",
        f"{_EXT} section-3.4",
        "The credential that a session must carry",
        "session-validation",
    ),
    Directive(
        "session-ttl",
        f"{_EXT} section-3.4",
        "The greatest age of a session, such as `30m` or `1h`",
        "duration",
    ),
    Directive(
        "request-limit",
        f"{_EXT} section-3.1",
        "The permitted number of requests in a period, such as `60/minute`",
        "rate",
    ),
    Directive(
        "concurrent-limit",
        f"{_EXT} section-3.1",
        "The permitted number of requests at a time",
        "number",
    ),
)


def _member_name(directive: Directive) -> str:
    """Return the name of a directive in JSON-LD (extension section-3.5)."""
    first, *others = directive.name.split("-")
    return first + "".join(part.capitalize() for part in others)


_MEMBERS = tuple(
    Directive(
        _member_name(line),
        f"{_EXT} section-3.5",
        line.summary.partition(";")[0],
        line.value,
        (TYPE,),
        "member",
    )
    for line in _LINES
    if line.name.replace("-", "") not in WITHOUT_EFFECT
)

_METHODS = {
    "GET": "reads a resource",
    "HEAD": "reads the header fields of a resource",
    "POST": "sends something",
    "PUT": "stores a resource",
    "DELETE": "deletes a resource",
    "PATCH": "changes a resource",
    "OPTIONS": "asks what may be done",
    "TRACE": "asks for what was sent",
    "CONNECT": "opens a tunnel",
}
_OF_API = {
    "none": "no requests",
    "with-key-only": "requests that have a key",
    "open": "any requests",
}
_OF_XHR = {"none": "no requests", "read-only": "GET alone", "open": "any requests"}
_OF_SESSIONS = {
    "cookie-based": "a cookie",
    "token-based": "a token",
    "oauth": "a bearer token of OAuth",
    "none": "nothing",
}

AUTHORING = Authoring(
    directives=(
        *_LINES,
        Directive(
            TYPE,
            f"{_EXT} section-3.5",
            "Rules of a page for the requests that it makes or leads to, in JSON-LD",
            form="member",
        ),
        *_MEMBERS,
    ),
    values={
        "method": {method: _METHODS[method] for method in METHODS},
        "mechanism": MECHANISMS,
        "api-automation": {value: _OF_API[value] for value in API_AUTOMATION},
        "allow-xhr": {value: _OF_XHR[value] for value in ALLOW_XHR},
        "session-validation": {value: _OF_SESSIONS[value] for value in SESSION_VALIDATION},
        "boolean": {"true": "yes", "false": "no"},
        "rate": {
            "2/second": "two in a second",
            "60/minute": "60 in a minute",
            "100/hour": "100 in an hour",
            "500/day": "500 in a day",
        },
        "duration": {"30m": "30 minutes", "1h": "one hour", "1d": "one day"},
        "agent": {"*": "any agent"},
    },
    check_site=check_site,
    fixes=FIXES,
)
