"""A request of a script, as the parts of a crawl take it: what it says of itself, and its header fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from comity.gate.http import Headers, PlainRequest, Request, fields_of
from comity.gate.request.facts import KEY, RequestFacts, check_host, declaration
from comity.gate.settings import Settings
from comity.policies import Agent, PolicyError
from comity.policies.answers.request import Facts, Session
from comity.policies.syntax.printable import printable

Fields = (
    Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]
)  # header fields, of one name several times too

RESOURCE = "resource"  # as a kind: what a page embeds. The formats have no word for it, it counts as what its fields say

# Header fields that no policy asks for (see `facts_of`), and those with which libraries frame the body.
_SILENT = frozenset(
    (
        b"host",
        b"connection",
        b"accept-encoding",
        b"accept-language",
        b"user-agent",
        b"content-length",
        b"transfer-encoding",
    )
)


class SessionFacts(RequestFacts):
    """The facts of requests that bring sessions of their own."""

    def __init__(self, settings: Settings, agent: Agent) -> None:
        super().__init__(settings, agent)
        self.sessions: WeakKeyDictionary[Request, Session] = WeakKeyDictionary()

    def for_request(self, request: Request, session: Session | None = None) -> Facts:
        return super().for_request(request, session or self.sessions.get(request))


def declared_meta(
    kind: str | Iterable[str] | None, automations: Iterable[str], purposes: Iterable[str] | None
) -> dict[str, Any]:
    """The value of `meta["comity"]` for keywords of `Client.admit`."""
    declared = {
        "kind": None if kind is None or kind == RESOURCE else word_list(kind),
        "automations": word_list(automations) or None,
        "purposes": None if purposes is None else word_list(purposes),
    }
    return {name: value for name, value in declared.items() if value is not None}


def word_list(words: Iterable[str]) -> str | tuple[str, ...]:
    """The words; of a text, they stand in it with commas between."""
    return words if isinstance(words, str) else tuple(words)


def plain_request(
    url: str, method: str, headers: Fields, referer: str | None, declared: dict[str, Any]
) -> Request:
    """The request, with what is declared of it. PolicyError where it makes no sense."""
    fields = _by_name(headers)
    check_host(url, fields.get(b"host", ()))
    try:
        request = PlainRequest(
            url, method=method, headers=_telling(fields), meta={KEY: declared} if declared else {}
        )
    except ValueError:  # it has no scheme
        raise PolicyError(
            f"`{printable(url.encode(errors='replace'))}` is no absolute URL"
        ) from None
    if referer is not None:
        request.headers.set("Referer", referer)
    declaration(request)
    return request


def _telling(fields: Mapping[bytes, list[str | bytes]]) -> Headers:
    """The header fields of a request without those that tell nothing of what it is, as most requests of libraries have no other:
    what has none is known at once."""
    values = {name: of_name for name, of_name in fields.items() if name not in _SILENT}
    if values.get(b"accept") in (["*/*"], [b"*/*"]):
        del values[b"accept"]
    return Headers(values)


def _by_name(fields: Fields) -> dict[bytes, list[str | bytes]]:
    """The values by lower-case name."""
    values: dict[bytes, list[str | bytes]] = {}
    pairs: Iterable[tuple[str | bytes, str | bytes]] = (
        fields.items() if isinstance(fields, Mapping) else fields
    )
    for name, value in pairs:
        values.setdefault(
            (name.encode("latin-1", "replace") if isinstance(name, str) else name).lower(), []
        ).append(value)
    return values


def plain_headers(fields: Fields) -> Headers:
    return Headers(_by_name(fields))


def header_pairs(fields: Fields) -> Iterator[tuple[bytes, bytes]]:
    """Name and value of each header field, as policies take them; nothing is done before the first is asked for."""
    yield from fields_of(plain_headers(fields))
