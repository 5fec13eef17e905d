"""Turn a script's request, with its declarations and header fields, into one for the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from comity.gate.http import Headers, PlainRequest, Request, fields_of
from comity.gate.request.facts import KEY, check_host, declaration
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

# Header fields. Pairs may repeat a name.
Fields = Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]

# The kind of resources that a page embeds. The formats have no word for it, so the kinds of such a
# request are inferred from its header fields.
RESOURCE = "resource"

# Header fields that no policy asks for (see `facts_of`).
_SILENT = frozenset(
    (
        b"host",
        b"connection",
        b"accept-encoding",
        b"accept-language",
        b"user-agent",
    )
)


def declared_meta(
    kind: str | Iterable[str] | None, automations: Iterable[str], purposes: Iterable[str] | None
) -> dict[str, Any]:
    """Return the value of `meta["comity"]` for keywords of `Client.admit`: {"kind": ("xhr",)}."""
    declared = {
        "kind": None if kind is None or kind == RESOURCE else word_list(kind),
        "automations": word_list(automations) or None,
        "purposes": None if purposes is None else word_list(purposes),
    }
    return {name: value for name, value in declared.items() if value is not None}


def word_list(words: Iterable[str]) -> str | tuple[str, ...]:
    """Return words as a tuple, or a text with commas between words unchanged."""
    return words if isinstance(words, str) else tuple(words)


def plain_request(
    url: str, method: str, headers: Fields, referer: str | None, declared: dict[str, Any]
) -> Request:
    """Return a request with its declarations.

    `referer`: the new value of the Referer field. None leaves the field as it is.
    `declared`: the result of `declared_meta`.
    PolicyError: the URL, the Host field or a declaration is invalid."""
    fields = _group_by_name(headers)
    check_host(url, fields.get(b"host", ()))
    try:
        request = PlainRequest(
            url,
            method=method,
            headers=_informative_fields(fields),
            meta={KEY: declared} if declared else {},
        )
    except ValueError:  # the URL has no scheme
        raise PolicyError(
            f"`{printable(url.encode(errors='replace'))}` is not an absolute URL: begin it with"
            " https:// or http://"
        ) from None
    if referer is not None:
        request.headers.set("Referer", referer)
    declaration(request)
    return request


def _informative_fields(fields: Mapping[bytes, list[str | bytes]]) -> Headers:
    """Return only the header fields that imply facts of the request.

    Most requests of libraries have no such field. Their facts need not be inferred."""
    values = {name: of_name for name, of_name in fields.items() if name not in _SILENT}
    if values.get(b"accept") in (["*/*"], [b"*/*"]):
        del values[b"accept"]
    return Headers(values)


def _group_by_name(fields: Fields) -> dict[bytes, list[str | bytes]]:
    """Return the values of header fields by lower-case name."""
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
    """Return header fields as the Headers of a PlainRequest or PlainResponse."""
    return Headers(_group_by_name(fields))


def header_pairs(fields: Fields) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and value of each header field, as policies take them.

    It is a generator, so an unused result costs nothing."""
    yield from fields_of(plain_headers(fields))
