"""The facts about a request that policies ask for, besides its URL.

A crawler infers them from the request that it is about to send, a server from the request that it
received (docs/automation.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

# Kinds of request.
DOCUMENT, API, XHR = "document", "api", "xhr"
KINDS = (DOCUMENT, API, XHR)
# Kinds of credentials that a session can carry.
CREDENTIALS = ("cookie", "token", "bearer")

# draft-liao-aipref-autoctl-core-01 defines no field for the purpose.
PURPOSE_HEADER = "Automation-Purpose"

# Applications and frameworks that know these fields obey them instead of the request line.
_METHOD_FIELDS = ("x-http-method-override", "x-http-method", "x-method-override")
# Methods that are read from one of these fields. The rest of the value counts as one method.
MAX_METHODS = 4

# Value of Sec-Fetch-Dest for fetch() and XMLHttpRequest (Fetch Metadata section-2.1).
_XHR_DESTINATION = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session with a site, as far as policies ask for it. It holds no credentials.

    Attributes:
        human_initiated: True if the operator declares that a person began the session.
        carries: kinds of credentials, of CREDENTIALS.
        started_at: when it began, an aware datetime. None: unknown."""

    human_initiated: bool = False
    carries: frozenset[str] = frozenset()
    started_at: datetime | None = None


_READING = frozenset(("GET", "HEAD"))  # methods of plain requests


class Facts(NamedTuple):
    """One request. Facts that are not given are those of a plain GET of a page.

    Attributes:
        method: HTTP method in upper case.
        kinds: all kinds that apply, of KINDS.
        automations: mechanisms that make the request, e.g. "cdp" and "headless". (): a plain HTTP
            client.
        purposes: purposes of the request. None: those of the agent.
        has_key: True for credentials in Authorization, or a key in the field for keys.
        referer: absolute URL of the referring page. None: unknown.
        session: session to which the request belongs. None: none is declared.
        overriding: methods that header fields set in place of `method`. Each of them needs
            permission too."""

    method: str = "GET"
    kinds: tuple[str, ...] = (DOCUMENT,)
    automations: tuple[str, ...] = ()
    purposes: tuple[str, ...] | None = None
    has_key: bool = False
    referer: str | None = None
    session: Session | None = None
    overriding: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """True if any crawler that knows robots.txt alone makes such requests."""
        if self.kinds != (DOCUMENT,) or self.automations:
            return False
        return self.method in _READING and _READING.issuperset(self.overriding)


PLAIN = Facts()


def facts_of(
    *,
    method: str,
    kind: str | Iterable[str] | None,
    automations: Iterable[str],
    purposes: Iterable[str] | None,
    fields: Mapping[str, str],
    key_header: str,
    referer: str | None,
    session: Session | None,
) -> Facts:
    """Return the facts about a request.

    Args:
        kind: one or several of KINDS. None: `fields` decide. ValueError for other words.
        fields: header fields by lower-case name, several of one name joined with commas.
        key_header: name of the header field that carries a key.
        referer: absolute URL of the referring page. None: the Referer field decides."""
    kinds = kinds_of(fields) if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
    for name in kinds:
        if name not in KINDS:
            raise ValueError(f"`{name}` is not a kind of request: write {', '.join(KINDS)}")
    carries = credentials(fields, key_header)
    if session:
        carries |= session.carries
    return Facts(
        method=method.upper(),
        kinds=kinds,
        automations=tuple(automations),
        purposes=None
        if purposes is None
        else tuple(stripped for purpose in purposes if (stripped := purpose.strip())),
        has_key="token" in carries or "bearer" in carries,
        referer=_page(fields.get("referer", "") if referer is None else referer),
        session=session,
        overriding=tuple(map(str.upper, overriding_methods(fields))),
    )


def overriding_methods(fields: Mapping[str, str]) -> tuple[str, ...]:
    """Return the methods that header fields set in place of that of the request line.

    `fields` is the argument of `facts_of`."""
    words = (
        word.strip()
        for name in _METHOD_FIELDS
        if name in fields
        for word in fields[name].split(",", MAX_METHODS)
    )
    return tuple(dict.fromkeys(filter(None, words)))


def _page(referer: str) -> str | None:
    """Return the URL in a Referer field; None if there is none, or several."""
    words = referer.split()
    return words[0] if len(words) == 1 else None


def credentials(fields: Mapping[str, str], key_header: str) -> frozenset[str]:
    """Return the kinds of credentials that a request carries, of CREDENTIALS.

    `fields` is the argument of `facts_of`. Empty values do not count: a field without a value, an
    authentication scheme without credentials (RFC 9110 section-11.4), a cookie without a value."""
    kinds = set()
    if authorization := fields.get("authorization"):
        members = (member.split() for member in authorization.split(","))
        schemes = {words[0].lower() for words in members if len(words) > 1}
        kinds |= {"token"} if schemes else set()
        kinds |= {"bearer"} & schemes
    if fields.get(key_header.lower(), "").strip(", \t"):
        kinds.add("token")
    if (cookie := fields.get("cookie")) and any(
        crumb.partition("=")[2].strip(' \t"') for crumb in re.split("[;,]", cookie)
    ):
        kinds.add("cookie")
    return frozenset(kinds)


def kinds_of(fields: Mapping[str, str]) -> tuple[str, ...]:
    """Return the kinds of a request with these header fields, by lower-case name.

    A request that sends or asks for JSON is of kind `api`. One with `X-Requested-With` or
    `Sec-Fetch-Dest: empty` comes from a script and is of kind `xhr`."""
    kinds = []
    if any(map(_is_json, _members(fields.get("content-type")))) or any(
        map(_is_json, _members(fields.get("accept"))[:1])
    ):
        kinds.append(API)
    if "x-requested-with" in fields or _XHR_DESTINATION in _members(fields.get("sec-fetch-dest")):
        kinds.append(XHR)
    return tuple(kinds) or (DOCUMENT,)


def _members(field: str | None) -> list[str]:
    """Return the members of a list field in lower case, without their parameters."""
    return (
        [member.partition(";")[0].strip().lower() for member in field.split(",")] if field else []
    )


_JSON = ("application/json", "text/json")  # MIME Sniffing section-4.6


def _is_json(media_type: str) -> bool:
    return media_type in _JSON or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
