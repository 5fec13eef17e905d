"""The facts of a request that policies ask for: more than its URL.

A crawler infers the facts from the request that it is about to send, a server from the one that came (docs/automation.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

DOCUMENT, API, XHR = "document", "api", "xhr"  # kinds of request
KINDS = (DOCUMENT, API, XHR)
CREDENTIALS = ("cookie", "token", "bearer")  # what a session can carry

PURPOSE_HEADER = "Automation-Purpose"  # draft-liao-aipref-autoctl-core-01 names none

# Applications and frameworks that obey such fields do what these say, not what the request line says.
_METHOD_FIELDS = ("x-http-method-override", "x-http-method", "x-method-override")
MAX_METHODS = 4  # in one of these; what comes after them is read as one

_XHR_DESTINATION = (
    "empty"  # of Sec-Fetch-Dest, Fetch Metadata section-2.1: fetch() and XMLHttpRequest
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session with a site, as far as policies ask for it: what kinds of credentials it carries, never the credentials."""

    human_initiated: bool = False  # begun by a person, says the operator
    carries: frozenset[str] = frozenset()  # of CREDENTIALS
    started_at: datetime | None = None  # aware; None: nobody knows


class Facts(NamedTuple):
    """One request. What nobody says of it is what a plain GET of a page is."""

    method: str = "GET"
    kinds: tuple[str, ...] = (DOCUMENT,)  # of KINDS; all that it is
    automations: tuple[
        str, ...
    ] = ()  # mechanisms by which it is made, e.g. "cdp" and "headless"; (): a plain HTTP client
    purposes: tuple[str, ...] | None = None  # None: those of the agent
    has_key: bool = False  # credentials in Authorization, or a key in the field for keys
    referer: str | None = None  # absolute URL of the page from which it is made; None: nobody knows
    session: Session | None = None
    overriding: tuple[
        str, ...
    ] = ()  # methods that fields put in the place of the first one; they are wanted too

    @property
    def is_plain(self) -> bool:
        """True where it does no more than any crawler that knows of robots.txt alone."""
        is_read = all(method in ("GET", "HEAD") for method in (self.method, *self.overriding))
        return is_read and self.kinds == (DOCUMENT,) and not self.automations


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
    """`kind`: one or several of KINDS, ValueError for others; None: as the header fields say. `fields`: by lower-case name, those
    of one name joined with commas."""
    kinds = kinds_of(fields) if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
    for name in kinds:
        if name not in KINDS:
            raise ValueError(f"`{name}` is no kind of request: write {', '.join(KINDS)}")
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
    """Return the methods that header fields put in the place of that of the request line. `fields`: as of `facts_of`."""
    words = (
        word.strip()
        for name in _METHOD_FIELDS
        if name in fields
        for word in fields[name].split(",", MAX_METHODS)
    )
    return tuple(dict.fromkeys(filter(None, words)))


def _page(referer: str) -> str | None:
    """Return the URL of the page; None for none, and for several."""
    words = referer.split()
    return words[0] if len(words) == 1 else None


def credentials(fields: Mapping[str, str], key_header: str) -> frozenset[str]:
    """The kinds of credentials that a request carries, of CREDENTIALS. `fields`: as of `facts_of`.

    What is empty is none: a field without a value, an authentication scheme with nothing behind it (RFC 9110 section-11.4), and a
    cookie without a value."""
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
    """Return the kinds of a request with these header fields. `fields`: by lower-case name.

    JSON that is sent or asked for is an API's; `X-Requested-With` and `Sec-Fetch-Dest: empty` are those of a script."""
    kinds = []
    if any(map(_is_json, _members(fields.get("content-type")))) or any(
        map(_is_json, _members(fields.get("accept"))[:1])
    ):
        kinds.append(API)
    if "x-requested-with" in fields or _XHR_DESTINATION in _members(fields.get("sec-fetch-dest")):
        kinds.append(XHR)
    return tuple(kinds) or (DOCUMENT,)


def _members(field: str | None) -> list[str]:
    """Return the members of a list field without their parameters, in lower case."""
    return (
        [member.partition(";")[0].strip().lower() for member in field.split(",")] if field else []
    )


_JSON = ("application/json", "text/json")  # MIME Sniffing section-4.6


def _is_json(media_type: str) -> bool:
    return media_type in _JSON or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
