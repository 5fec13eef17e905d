"""Requests and responses as the gate sees them.

Scrapy's own classes have these attributes, so a crawl hands them in unchanged:

    parts.gate.wait(scrapy.Request("https://example.com/"), None, in_downloader=False)

A client or a browser without Scrapy uses PlainRequest and PlainResponse instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, KeysView, Mapping
from typing import Any, Protocol, Self

from w3lib.url import safe_url_string

# URLs that clients send as they are.
_SENDABLE = re.compile(
    r"(?i:https?)://[^\x00-\x20\x7f-\U0010ffff/?#\\]+(?:[/?#][^\x00-\x20\x7f\ud800-\udfff]*)?"
)
_SCHEME = re.compile(r"[^/]*://|about:|data:")
_FRAMING = (b"Content-Length", b"Transfer-Encoding")  # header fields about the body


class HeaderFields(Protocol):
    """Header fields. Names are octets in the usual capitals, such as `b"Content-Type"`."""

    def keys(self) -> KeysView[bytes]: ...

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the last value of a field, as octets."""

    def getlist(self, name: Any, /) -> list[bytes]:
        """Return all values of a field, as octets."""


class Request(Protocol):
    """A request. The gate compares requests by identity and keeps notes on them while they live."""

    @property
    def url(self) -> str: ...

    @property
    def method(self) -> str: ...

    @property
    def headers(self) -> Any:
        """HeaderFields."""

    @property
    def body(self) -> bytes: ...

    @property
    def meta(self) -> dict[str, Any]: ...


class Response(Protocol):
    """A response."""

    @property
    def url(self) -> str: ...

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Any:
        """HeaderFields."""

    @property
    def body(self) -> bytes: ...

    @property
    def request(self) -> Any:
        """The Request; None if it is not known."""

    @property
    def ip_address(self) -> Any:
        """The IP address of the server; None if it is not known."""

    def replace(self, *, body: bytes) -> Any:
        """Return a copy with another body."""


class Headers(dict[bytes, list[bytes]]):
    """Header fields of a PlainRequest or PlainResponse: name -> values."""

    def __init__(
        self,
        fields: Mapping[Any, str | bytes | Iterable[str | bytes]] = {},  # never changed
    ) -> None:
        """`fields`: name -> value, or values."""
        super().__init__()
        for name, values in fields.items():
            several = (values,) if isinstance(values, str | bytes) else values
            super().__setitem__(normal_name(name), [*map(_octets, several)])

    def set(self, name: str, value: str) -> None:
        """Replace all values of a field by one."""
        super().__setitem__(normal_name(name), [_octets(value)])

    def get(self, name: str | bytes, default: Any = None, /) -> Any:
        values = super().get(normal_name(name))
        return values[-1] if values else default

    def getlist(self, name: str | bytes, /) -> list[bytes]:
        return list(super().get(normal_name(name), ()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str | bytes) and super().__contains__(normal_name(name))


def normal_name(name: str | bytes) -> bytes:
    """Return the name of a header field in the usual capitals: `content-type` -> `Content-Type`."""
    return _octets(name.title())


def _octets(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


def fields_of(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return name and value of each header field. `headers`: Headers, or those of Scrapy."""
    # The `items` method of Scrapy's class would normalise each name again.
    return [(name, value) for name, values in dict.items(headers) for value in values]


class PlainRequest:
    """A request that does not come from Scrapy.

    Its sender has the body. Here the body is empty, and the header fields that frame it are left
    out.

    Attributes:
        url: The URL that goes out. Characters that no client sends are percent-encoded.
        meta: Declarations, such as `meta["comity"]` (docs/automation.md)."""

    def __init__(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Headers | None = None,
        meta: Mapping[str, Any] = {},  # copied, never changed
    ) -> None:
        """ValueError if the URL has no scheme."""
        if not _SCHEME.match(url):
            raise ValueError(f"Missing scheme in request url: {url}")
        self.url = url if _SENDABLE.fullmatch(url) else safe_url_string(url)
        self.method = method.upper()
        self.headers = Headers() if headers is None else headers
        for name in _FRAMING:
            self.headers.pop(name, None)
        self.body = b""
        self.meta = dict(meta)

    def __repr__(self) -> str:
        return f"<{self.method} {self.url}>"


class PlainResponse:
    """A response that does not come from Scrapy."""

    def __init__(
        self,
        url: str,
        *,
        request: Request,
        status: int = 200,
        headers: Headers | None = None,
        body: bytes = b"",
        ip_address: Any = None,
    ) -> None:
        self.url = url
        self.request = request
        self.status = status
        self.headers = Headers() if headers is None else headers
        self.body = body
        self.ip_address = ip_address

    def __repr__(self) -> str:
        return f"<{self.status} {self.url}>"

    def replace(self, *, body: bytes) -> Self:
        """Return a copy with another body."""
        return type(self)(
            self.url,
            request=self.request,
            status=self.status,
            headers=self.headers,
            body=body,
            ip_address=self.ip_address,
        )
