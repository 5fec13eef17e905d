"""Parts of a URL that policies need: its origin, its host, and its path with query.

origin_of(url)            scheme, host and port
origin_or_empty(url)      scheme, host and port; "" if the URL has none
typed_url(text)           a URL as people type it, with its scheme
url_remedy(text)          the right form of a mistyped URL
host_name(url)            the host; "" if there is none
host_names(host)          a host, with its name by IDNA 2003
target_of(url)            path and query, as they are sent
without_scheme(pattern)   host and path of a URL pattern
spellings(url)            path and query, in every way that servers may read them"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from w3lib.html import get_base_url
from w3lib.url import safe_url_string

from comity.policies.syntax.path_patterns import normal_target

DEFAULT_PORTS = {"http": 80, "https": 443}


# URL Standard, forbidden domain code points.
_NO_HOST = re.compile(r"[\x00-\x20#%/<>?@\[\\\]^|\x7f]")


@lru_cache(maxsize=4096)
def _origin(scheme: str, netloc: str) -> str:
    parts = urlsplit(f"{scheme}://{netloc}")
    try:
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError as error:
        raise ValueError(f"`{scheme}://{netloc}` is not an origin: {error}") from None
    if not host:
        raise ValueError(f"`{scheme}://{netloc}` has no host")
    if ":" in host:
        host = f"[{host}]"
    # Browsers read `https://host\path`, `https://host\@b` and `https://h%6Fst` as other hosts.
    elif _NO_HOST.search(host) or "\\" in netloc:
        raise ValueError(f"`{scheme}://{netloc}` has no host")
    return (
        f"{scheme}://{host}"
        if port in (None, DEFAULT_PORTS[scheme])
        else f"{scheme}://{host}:{port}"
    )


# Already in normal form. Ports of 1000 to 59999 are valid, and the default of no scheme.
_PLAIN_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(?::(?:[1-5][0-9]|[1-9])[0-9]{3})?(?=[/?#]|\Z)")


def origin_of(url: str) -> str:
    """Return scheme, host and port, e.g. "https://example.com".

    They are in lower case, with A-labels and without a default port. ValueError: the text is not an
    http or https URL with a host."""
    if plain := _PLAIN_ORIGIN.match(url):
        return plain[0]
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(f"`{url}` is not an http or https URL: {error}") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"`{url}` is not an http or https URL")
    return _origin(parts.scheme, parts.netloc)


@lru_cache(maxsize=1024)  # several parts ask for one request and its response
def origin_or_empty(url: str) -> str:
    """Return the origin; "" if the text is not an http or https URL with a host."""
    try:
        return origin_of(url)
    except ValueError:
        return ""


# `http//host`, `https:/host`, `http:host`, but not `http:8080`, which is a host with its port.
_SLIP = re.compile(r"(https?)(?::/?|//?)(?!/|\d+(?:[/?#]|\Z))(?=.)", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d{1,5}(?:[/?#]|\Z))", re.IGNORECASE)
_MAIL = re.compile(r"(?:(?:https?://)?mailto:)?([^/?#@]*)@(?=[^/?#@]*(?:[/?#]|\Z))", re.IGNORECASE)


def typed_url(text: str) -> str:
    """Return the URL that a person typed, perhaps without `https://`.

    ValueError: it is not such a URL; the text says what to write instead."""
    if remedy := url_remedy(text):
        raise ValueError(f"`{text}` is not an http or https URL: {remedy}")
    url = text if "://" in text else f"https://{text}"
    origin_of(url)
    return url


def url_remedy(text: str) -> str:
    """Return what to write instead of a mistyped or unsupported URL; "": the text is neither."""
    has_scheme = "://" in text
    if not has_scheme and (slip := _SLIP.match(text)):
        return f"write `{slip[1].lower()}://{text[slip.end() :]}`"
    is_mail = not has_scheme or text.lower().partition("://")[2].startswith("mailto:")
    if is_mail and (mail := _MAIL.match(text)):
        return f"write `https://{text[mail.end() :]}`"
    return "write https:// and a host" if not has_scheme and _OTHER_SCHEME.match(text) else ""


@lru_cache(maxsize=1024)  # several parts ask for one origin or request
def host_name(url: str) -> str:
    """Return the host in lower case; "": there is none.

    A dot at the end of the name is removed: it does not change its meaning (RFC 1034 section-3.1).
    """
    return (urlsplit(url).hostname or "").removesuffix(".")


_MAX_HOST = 300  # characters; names have at most 253


@lru_cache(maxsize=64)  # all patterns of a site ask for the same host
def host_names(host: str) -> tuple[str, ...]:
    """Return a host in A-labels, and its name by IDNA 2003 if that differs.

    Patterns are read by IDNA 2003, which turned `straße.de` into `strasse.de`. Today it is
    `xn--strae-oqa.de` (RFC 5894 section-7.2). `host` is in lower case, with its port if it has one.
    """
    name, colon, port = host.partition(":")
    if "xn--" not in name or len(name) > _MAX_HOST:
        return (host,)
    try:
        letters = ".".join(map(_letters, name.split("."))).encode("idna").decode("ascii")
    except UnicodeError:
        return (host,)
    return (host,) if letters == name else (host, letters + colon + port)


def _letters(label: str) -> str:
    return (
        label.removeprefix("xn--").encode().decode("punycode")
        if label.startswith("xn--")
        else label
    )


# Characters that URL parsers remove at the ends, and anywhere (URL Standard, basic URL parser).
# `urlsplit` removes them for `origin_of`.
_ENDS = "".join(map(chr, range(0x21)))
_LINE_ENDS = re.compile(r"[\t\n\r]+")
# An absolute URL that goes out as it is, and its target.
_PLAIN_URL = re.compile(r"https?://[!\"$-.0->@-~]+(/[!\"$-~]*)")


def target_of(url: str) -> str:
    """Return path and query as they are sent, without the fragment; at least "/".

    An empty query keeps its "?", because patterns can match it. A URL without scheme and host is
    read as path and query."""
    if plain := _PLAIN_URL.fullmatch(url):
        return plain[1]
    if url[:1] != "/" and (url[:1] == " " or url[-1:] == " " or not url.isprintable()):
        url = _LINE_ENDS.sub("", url.strip(_ENDS))
    if "#" in url:
        url = url.partition("#")[0]
    colon = url.find("://")
    if colon >= 0 and url[:colon].isalpha():
        host = colon + 3
        path = url.find("/", host)
        if path < 0 or "?" in url[host:path]:
            query = url.find("?", host)
            return "/" + url[query:] if query >= 0 else "/"
        return url[path:]
    return url if url.startswith("/") else "/" + url


# RFC 3986 section-3.1, and wildcards.
_SCHEME = re.compile(r"([A-Za-z*][A-Za-z0-9+.*-]*)://|(?=//)")


def without_scheme(pattern: str) -> tuple[str, str] | None:
    """Return the scheme of a URL pattern, and the text behind `//`.

    The scheme is "" if the pattern begins with `//` (RFC 3986 section-4.2). None: the pattern is a
    path, or begins with `*`, even if it contains a URL."""
    match = _SCHEME.match(pattern)
    return (match[1] or "", pattern[match.end() :].removeprefix("//")) if match else None


# Parts of a path that servers read differently: double slashes, dot segments, parameters,
# backslashes, and escapes of characters that normal_target leaves escaped.
_AMBIGUOUS = re.compile(r"//|/\.\.?(?:[/?]|\Z)|[;\\]|%(?:2[1-9A-Fa-f]|3[ABDabd]|40|5[B-Db-d])")
_DOT = re.compile(r"%2[Ee]")
_DOT_OR_SLASH = re.compile(rb"%(?:2[EFef]|5[Cc])")
_SLASHES = re.compile(r"//+")
_PARAMETERS = re.compile(r";[^/\\]*+")
_LAST_PARAMETERS = re.compile(r";[^/]*+\Z")
_SEGMENTS = "/\\!$&'()*+,:;=@[]"  # characters that need no escape in a path


def spellings(url: str) -> tuple[str, ...]:
    """Return the targets that a server may read from a URL, the one that is sent first.

    Most URLs have only one. docs/robots.md says which servers read which way. Linear in the octets.
    """
    target = target_of(url)
    if not ("%" in target or ";" in target or "//" in target or "/." in target or "\\" in target):
        return (target,)
    return _spellings(target)


@lru_cache(maxsize=64)  # a URL is looked up several times in a row
def _spellings(target: str) -> tuple[str, ...]:
    ambiguous = _AMBIGUOUS.search(target)
    path, mark, query = target.partition("?") if ambiguous else (target, "", "")
    if not ambiguous or ambiguous.start() >= len(path):
        return (target,)
    targets = {normal_target(path): target}
    for reading in _readings(path):
        targets.setdefault(normal_target(reading), reading + mark + query)
    return tuple(targets.values())


def _readings(path: str) -> Iterable[str]:
    """Return the ways in which servers may read a path.

    Every combination of these steps is one: decode the path, remove parameters, turn backslashes
    into slashes, merge slashes, and resolve dot segments."""
    decoded = _decode(path)
    without = (
        _without_parameters(reading) for reading in (*decoded, *_decode(_without_parameters(path)))
    )
    readings = dict.fromkeys((*decoded, *without, _LAST_PARAMETERS.sub("", path)))
    for step in (_with_slashes, _merge_slashes, _without_dots, _with_slashes, _merge_slashes):
        readings |= dict.fromkeys([step(reading) for reading in readings])
    return readings


def _decode(path: str) -> tuple[str, ...]:
    """Return a path decoded in three ways.

    Only its dots (RFC 3986 section-6.2.2.2), all of it, and all of it with dots and slashes twice.
    """
    octets = path.encode("utf-8", "surrogatepass")
    once = unquote_to_bytes(octets)
    twice = _DOT_OR_SLASH.sub(lambda escape: unquote_to_bytes(escape[0]), once)
    return _DOT.sub(".", path), quote(once, safe=_SEGMENTS), quote(twice, safe=_SEGMENTS)


def _without_parameters(path: str) -> str:
    return _PARAMETERS.sub("", path)


def _with_slashes(path: str) -> str:
    return path.replace("\\", "/")


def _merge_slashes(path: str) -> str:
    return _SLASHES.sub("/", path)


def _without_dots(path: str) -> str:
    """Return a path without dot segments (RFC 3986 section-5.2.4)."""
    first, *segments = path.split("/")
    assert not first
    output: list[str] = []
    for segment in segments:
        if segment == "..":
            del output[-1:]
        elif segment != ".":
            output.append(segment)
    if segments[-1] in (".", ".."):
        output.append("")
    return "/" + "/".join(output)


def merges_slashes_only(target: str, spelling: str) -> bool:
    """Return True if the spelling is the target with merged slashes, and not changed otherwise.

    `spelling` is one of the target's `spellings`."""
    path, mark, query = target.partition("?")
    return normal_target(spelling) == normal_target(_SLASHES.sub("/", path) + mark + query)


# An absolute path with nothing to resolve or to escape.
_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*+)++/?")


def base_url(text: str, url: str, encoding: str = "utf-8") -> str:
    """Return the URL that a page's relative URLs are resolved against.

    It is that of its `base`. If that is missing or not a URL, it is `url`, the page's own."""
    try:
        return str(get_base_url(text, url, encoding))
    except ValueError:  # e.g. for "http://[x/"
        return url


def resolved(base: str, reference: str | bytes) -> str:
    """Return the http or https URL of a reference, e.g. "https://example.com/a?b".

    It has no credentials and no fragment. ValueError: the reference is not such a URL."""
    if isinstance(reference, str) and _PATH.fullmatch(reference):
        return origin_of(base) + reference
    parts = urlsplit(safe_url_string(reference))
    if parts.scheme and not parts.netloc:
        raise ValueError(f"`{parts.geturl()}` has no host")
    url = urljoin(base, parts.geturl())
    return origin_of(url) + target_of(url)
