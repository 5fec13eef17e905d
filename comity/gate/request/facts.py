"""The facts of a request that policies ask for, declared in `meta["comity"]` or else inferred.

docs/automation.md has the table of facts and of how they are inferred."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from comity.gate.http import PlainRequest, Request
from comity.gate.request.passage import Passage
from comity.gate.settings import Settings
from comity.policies import Agent, PolicyError
from comity.policies.answers.request import KINDS, XHR, Facts, Session, facts_of
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty

KEY = "comity"  # of request.meta

# Name of a browser in scrapy-playwright -> protocol (draft-liao-aipref-autoctl-ext section-3.2.1).
PROTOCOLS = {"chromium": "cdp", "firefox": "firefox-remote", "webkit": "webkit-remote"}

WORD = re.compile(r"[!-+\--~]+")  # visible ASCII without commas
# Verbatim URLs that go out unchanged. aiohttp drops other white space, and an empty query.
_AS_SENT = re.compile(r"[^\x00-\x20\x7f]+(?<!\?)")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section-5.6.2
# Names of header fields that most requests have. They need no check.
_USUAL = frozenset((b"Accept", b"Accept-Encoding", b"Accept-Language", b"Referer", b"User-Agent"))
_OF_TARGET = (b"Host", b"Content-Length")  # header fields that the URL and the body determine
_HOST = re.compile(r"[^\s/?#@\\]+")
# The dot at the end of a host name. Both spellings name one site (RFC 1034 section-3.1).
_HOST_END = re.compile(r"\.(?=(?::\d+)?\Z)")
_LINKED = frozenset((b"Referer",))  # header fields of followed links, which imply no facts
PURPOSE = re.compile(r"[A-Za-z0-9][!-+\--~]*")  # a word of COMITY_PURPOSES


class Declaration(NamedTuple):
    """The spider's declaration of a request.

    Attributes:
        kinds: Words of KINDS: ("xhr",). None means not declared.
        automations: Automation mechanisms in lower case: ("cdp", "headless"). None means not
            declared.
        purposes: The purposes of this request. None means not declared.
        session: False if the request has to go without the session of its host.
    """

    kinds: tuple[str, ...] | None = None
    automations: tuple[str, ...] | None = None
    purposes: tuple[str, ...] | None = None
    session: bool = True


NO_DECLARATION = Declaration()


def declaration(request: Request) -> Declaration:
    """Read the declaration of a request from its meta.

    PolicyError: the declaration is invalid. The message says how to correct it."""
    declared = request.meta.get(KEY)
    if declared is None:
        return NO_DECLARATION
    if not isinstance(declared, dict):
        raise _wrong(
            declared,
            "is not a mapping: write kind, automations, purposes or session with their values",
        )
    kinds = automations = purposes = None
    session = True
    for key, value in declared.items():
        match key:
            case "kind":
                kinds = _words(key, value)
                if not kinds or not set(kinds) <= set(KINDS):
                    raise _wrong(value, f"is no kind of request: write {', '.join(KINDS)}")
            case "automations":
                automations = tuple(word.lower() for word in _words(key, value))
            case "purposes":
                purposes = _words(key, value, PURPOSE)
            case "session":
                if not isinstance(value, bool):
                    raise _wrong(value, "is not an answer to `session`: write True or False")
                session = value
            case _:
                raise _wrong(
                    key, "cannot be declared: write kind, automations, purposes or session"
                )
    return Declaration(kinds, automations, purposes, session)


def _words(key: str, value: object, pattern: re.Pattern[str] = WORD) -> tuple[str, ...]:
    """Return the words of a list, or of a text that separates them by commas."""
    words = (
        [word for item in value.split(",") if (word := item.strip())]
        if isinstance(value, str)
        else value
    )
    if not isinstance(words, list | tuple) or not all(
        isinstance(word, str) and pattern.fullmatch(word) for word in words
    ):
        raise _wrong(value, f"is not a list for `{key}`: write words without spaces and commas")
    return tuple(words)


def _wrong(value: object, problem: str) -> PolicyError:
    return PolicyError(f"`{printable(str(value).encode('utf-8', 'replace'))}` {problem}")


def check_host(url: str, values: Iterable[str | bytes]) -> None:
    """Check that Host fields name the site of the URL (RFC 9110 section-7.2).

    PolicyError: a field names another site. That site's policies would not have been checked."""
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    for value in values:
        host = value.decode("latin-1") if isinstance(value, bytes) else value
        if host == netloc:
            continue
        origins = [
            _HOST_END.sub("", origin_or_empty(f"{parts.scheme}://{name}"))
            for name in (host, netloc)
        ]
        if origins[0] != origins[1] or not _HOST.fullmatch(host):
            raise _wrong(
                host,
                "as Host names another site than the URL: leave this field out, and write the"
                " URL of that site",
            )


def check_target(request: Request, passage: Passage) -> None:
    """Check that the request would go out exactly as it is judged.

    `passage`: the record of the request, which keeps the header fields that passed the last check.
    PolicyError: the Host field names another host, a download handler would change the URL, or the
    octets could contain a second request, by line ends in the method or in header fields or by a
    wrong length of the body."""
    if request.method not in ("GET", "POST", "HEAD") and not _TOKEN.fullmatch(
        request.method.encode()
    ):
        raise _wrong(request.method, "is not an HTTP method: write a word without spaces")
    if passage.checked_fields != request.headers:
        passage.checked_fields = None
        passage.checked_fields = _check_fields(request)
    meta = request.meta
    if (
        "verbatim_url" in meta
        and meta["verbatim_url"]
        and not _AS_SENT.fullmatch(request.url.partition("#")[0])
    ):
        raise _wrong(
            request.url,
            "would not go out verbatim: leave out white space, and a `?` without a query",
        )


def _check_fields(request: Request) -> dict[bytes, list[bytes]] | None:
    """Return a copy of the header fields. None if their check depends on the URL or the body."""
    checked: dict[bytes, list[bytes]] | None = {}
    # The `items` method of Scrapy's class would normalise each name again.
    for name, values in dict.items(request.headers):
        if name == b"Host":
            check_host(request.url, values)
        elif name == b"Transfer-Encoding":
            raise _wrong(
                "Transfer-Encoding", "frames the body as another request: leave this field out"
            )
        elif name == b"Content-Length" and any(
            value != b"%d" % len(request.body) for value in values
        ):
            raise _wrong("Content-Length", "is not the length of the body: leave this field out")
        if name not in _USUAL and not _TOKEN.fullmatch(name):
            raise _wrong(
                name.decode("latin-1"),
                "is not a name of a header field: write letters, digits and `-`",
            )
        for value in values:
            if b"\n" in value or b"\r" in value or b"\0" in value:
                raise _wrong(
                    name.decode("latin-1"),
                    "has a line end in its value: write each header field by itself",
                )
        if name in _OF_TARGET:
            checked = None
        elif checked is not None:
            checked[name] = [*values]
    return checked


class RequestFacts:
    """The declared or inferred facts of the requests of one crawl."""

    def __init__(self, settings: Settings, agent: Agent) -> None:
        self._key_header = agent.key_header
        defaults = settings.getdict("DEFAULT_REQUEST_HEADERS").items()
        self._defaults = {
            str(name).lower(): str(value) for name, value in defaults if value is not None
        }
        self._browser = _browser(settings)
        # Method -> the facts of requests without declarations and header fields of their own.
        self._plain: dict[str, Facts] = {}

    def for_request(self, request: Request, session: Session | None = None) -> Facts:
        """Return the facts of a request.

        `session`: the session that goes out with the request. None means no session.
        PolicyError: the declaration of the request is invalid."""
        meta = request.meta
        if (
            session is not None
            or request.body
            or not (request.headers.keys() <= _LINKED)
            or KEY in meta
            or "playwright" in meta
        ):
            return self._facts(request, session)
        # Most requests follow a link. Their facts depend on the project's header fields alone.
        if request.method in self._plain:
            plain = self._plain[request.method]
        else:
            plain = self._facts(PlainRequest("data:,", method=request.method), None)
            if XHR in plain.kinds:  # the facts of XHR requests include the referring page
                return self._facts(request, session)
            self._plain[request.method] = plain
        return plain

    def _facts(self, request: Request, session: Session | None) -> Facts:
        declared = declaration(request)
        fields = self._fields(request)
        automations = declared.automations
        if automations is None:
            automations = self._browser if request.meta.get("playwright") else ()
        facts = facts_of(
            method=request.method,
            kind=declared.kinds,
            automations=automations,
            purposes=declared.purposes,
            fields=fields,
            key_header=self._key_header,
            referer=None,
            session=session,
        )
        if facts.referer is None:
            return facts
        # Policies ask for the referring page of XHR requests only.
        is_asked = XHR in facts.kinds and facts.referer.lower().startswith(("http://", "https://"))
        return facts if is_asked else facts._replace(referer=None)

    def _fields(self, request: Request) -> dict[str, str]:
        """Return the header fields by lower-case name, with the project's default fields."""
        fields = self._defaults.copy()
        for name, values in request.headers.items():
            if values:
                fields[name.decode("latin-1").lower()] = b", ".join(values).decode("latin-1")
            else:  # the spider removes the project's field by the value None
                fields.pop(name.decode("latin-1").lower(), None)
        if (
            request.body
            and "content-type" not in fields
            and request.body.lstrip()[:1] in (b"{", b"[")
        ):
            fields["content-type"] = "application/json"
        return fields


def _browser(settings: Settings) -> tuple[str, ...]:
    """Return the automation mechanisms of requests through scrapy-playwright.

    These are protocol and runtime (draft-liao-aipref-autoctl-ext section-3.2.1, section-3.2.2)."""
    if settings.get("PLAYWRIGHT_CDP_URL"):
        return ("cdp", "headless")
    browser = str(settings.get("PLAYWRIGHT_BROWSER_TYPE") or "chromium").lower()
    try:
        is_headed = settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS").get("headless") is False
    except (TypeError, ValueError):  # scrapy-playwright reports the invalid setting itself
        is_headed = False
    return (PROTOCOLS.get(browser, browser), "headed" if is_headed else "headless")
