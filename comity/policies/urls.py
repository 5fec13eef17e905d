"""The two parts of a URL that policies ask for: its origin, and its path with query."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from w3lib.url import safe_url_string

DEFAULT_PORTS = {"http": 80, "https": 443}


@lru_cache(maxsize=4096)
def _origin(scheme: str, netloc: str) -> str:
    parts = urlsplit(f"{scheme}://{netloc}")
    host, port = parts.hostname or "", parts.port  # ValueError where the port is no number
    if not host:
        raise ValueError(f"`{scheme}://{netloc}` names no host")
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    if ":" in host:
        host = f"[{host}]"
    return f"{scheme}://{host}" if port in (None, DEFAULT_PORTS[scheme]) else f"{scheme}://{host}:{port}"


def origin_of(url: str) -> str:
    """Scheme, host and port, e.g. "https://example.com" (lower case, A-labels, no default port).

    ValueError for what is not an http or https URL with a host."""
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"`{url}` is not an http or https URL")
    return _origin(parts.scheme, parts.netloc)


def target_of(url: str) -> str:
    """Path and query as they go into the request line, without the fragment; at least "/".

    An empty query keeps its "?", which patterns ask for. A URL without scheme and host is taken for a target."""
    url = url.partition("#")[0]
    colon = url.find("://")
    if colon >= 0 and url[:colon].isalpha():
        host = colon + 3
        path, query = url.find("/", host), url.find("?", host)
        if path < 0 or 0 <= query < path:
            return "/" + url[query:] if query >= 0 else "/"
        return url[path:]
    return url if url.startswith("/") else "/" + url


def resolved(base: str, reference: str | bytes) -> str:
    """The http or https URL that a reference means, without credentials and fragment, e.g. "https://example.com/a?b".

    ValueError where it means none."""
    parts = urlsplit(safe_url_string(reference))
    if parts.scheme and not parts.netloc:
        raise ValueError(f"`{parts.geturl()}` names no host")
    url = urljoin(base, parts.geturl())
    return origin_of(url) + target_of(url)
