"""The parts of a URL that policies ask for: its origin and host, and its path with query.

origin_of(url)      scheme, host and port
origin_or_empty(url) the same, "" where there is none
typed_url(text)     a URL as people type it, with its scheme
url_remedy(text)    the right form of a slip
host_name(url)      the host, "" where there is none
host_names(host)    a host, and its name by IDNA 2003
target_of(url)      path and query, as they are sent
without_scheme(pattern) host and path of a pattern of URLs
spellings(url)      path and query, as servers may take them"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from w3lib.html import get_base_url
from w3lib.url import safe_url_string

from comity.policies.syntax.path_patterns import normal_target

DEFAULT_PORTS = {"http": 80, "https": 443}


_NO_HOST = re.compile(
    r"[\x00-\x20#%/<>?@\[\\\]^|\x7f]"
)  # URL Standard, forbidden domain code points


@lru_cache(maxsize=4096)
def _origin(scheme: str, netloc: str) -> str:
    parts = urlsplit(f"{scheme}://{netloc}")
    try:
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError as error:
        raise ValueError(f"`{scheme}://{netloc}` is no origin: {error}") from None
    if not host:
        raise ValueError(f"`{scheme}://{netloc}` names no host")
    if ":" in host:
        host = f"[{host}]"
    elif (
        _NO_HOST.search(host) or "\\" in netloc
    ):  # to browsers `https://host\path`, `https://host\@b` and `https://h%6Fst` are another's
        raise ValueError(f"`{scheme}://{netloc}` names no host")
    return (
        f"{scheme}://{host}"
        if port in (None, DEFAULT_PORTS[scheme])
        else f"{scheme}://{host}:{port}"
    )


_PLAIN_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(?=[/?#]|\Z)")  # with nothing to normalize


def origin_of(url: str) -> str:
    """Return scheme, host and port, e.g. "https://example.com" (lower case, A-labels, no default port).

    ValueError for what is not an http or https URL with a host."""
    if plain := _PLAIN_ORIGIN.match(url):
        return plain[0]
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(f"`{url}` is not an http or https URL: {error}") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"`{url}` is not an http or https URL")
    return _origin(parts.scheme, parts.netloc)


@lru_cache(maxsize=1024)  # of one request and its response several parts ask
def origin_or_empty(url: str) -> str:
    """The origin; "" for what is not an http or https URL with a host."""
    try:
        return origin_of(url)
    except ValueError:
        return ""


# `http//host`, `https:/host`, `http:host`: but not `http:8080`, a host with its port.
_SLIP = re.compile(r"(https?)(?::/?|//?)(?!/|\d+(?:[/?#]|\Z))(?=.)", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d{1,5}(?:[/?#]|\Z))", re.IGNORECASE)
_MAIL = re.compile(r"(?:(?:https?://)?mailto:)?([^/?#@]*)@(?=[^/?#@]*(?:[/?#]|\Z))", re.IGNORECASE)


def typed_url(text: str) -> str:
    """Return the URL that somebody types, who may leave out `https://`. ValueError, with the right form, for what is none."""
    if remedy := url_remedy(text):
        raise ValueError(f"`{text}` is not an http or https URL: {remedy}")
    url = text if "://" in text else f"https://{text}"
    origin_of(url)
    return url


def url_remedy(text: str) -> str:
    """Return what to write instead of a slip or of another kind of URL; "" where a text is neither."""
    has_scheme = "://" in text
    if not has_scheme and (slip := _SLIP.match(text)):
        return f"write `{slip[1].lower()}://{text[slip.end() :]}`"
    is_mail = not has_scheme or text.lower().partition("://")[2].startswith("mailto:")
    if is_mail and (mail := _MAIL.match(text)):
        return f"write `https://{text[mail.end() :]}`"
    return "write https:// and a host" if not has_scheme and _OTHER_SCHEME.match(text) else ""


def host_name(url: str) -> str:
    """Return the host in lower case, "" where there is none. A name with a dot behind it is the same (RFC 1034 section-3.1)."""
    return (urlsplit(url).hostname or "").removesuffix(".")


_MAX_HOST = 300  # characters; no name has more than 253


@lru_cache(maxsize=64)  # of one site all patterns ask
def host_names(host: str) -> tuple[str, ...]:
    """Return a host in A-labels, and what it is in those of IDNA 2003, by which patterns are read: where these write `straße.de`,
    which has become `xn--strae-oqa.de`, that made `strasse.de` of it (RFC 5894 section-7.2).

    `host`: in lower case, with a port where there is one."""
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


# What parsers of URLs leave out: at the ends, and anywhere (URL Standard, basic URL parser). `urlsplit` does so for `origin_of`.
_ENDS = "".join(map(chr, range(0x21)))
_LINE_ENDS = re.compile(r"[\t\n\r]+")


def target_of(url: str) -> str:
    """Return path and query as they go into the request line, without the fragment; at least "/".

    An empty query keeps its "?", which patterns ask for. A URL without scheme and host is taken for a target."""
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


_SCHEME = re.compile(
    r"([A-Za-z*][A-Za-z0-9+.*-]*)://|(?=//)"
)  # RFC 3986 section-3.1, and wildcards


def without_scheme(pattern: str) -> tuple[str, str] | None:
    """Return the scheme of a pattern of URLs, "" where it begins with `//` (RFC 3986 section-4.2), and what stands behind `//`.

    None: it is a path, or begins with `*`, whatever URLs stand in it."""
    match = _SCHEME.match(pattern)
    return (match[1] or "", pattern[match.end() :].removeprefix("//")) if match else None


# Parts of a path that some servers take for others: doubled slashes, dot segments, parameters, backslashes, and escapes of
# characters that normal_target leaves escaped.
_AMBIGUOUS = re.compile(r"//|/\.\.?(?:[/?]|\Z)|[;\\]|%(?:2[1-9A-Fa-f]|3[ABDabd]|40|5[B-Db-d])")
_DOT = re.compile(r"%2[Ee]")
_DOT_OR_SLASH = re.compile(rb"%(?:2[EFef]|5[Cc])")
_SLASHES = re.compile(r"//+")
_PARAMETERS = re.compile(r";[^/\\]*+")
_LAST_PARAMETERS = re.compile(r";[^/]*+\Z")
_SEGMENTS = "/\\!$&'()*+,:;=@[]"  # what stands unescaped in segments of a path, and between them


def spellings(url: str) -> tuple[str, ...]:
    """The targets that a server may take a URL for, the one that is sent first. Linear in the octets.

    Which servers read a path in which of these ways stands in docs/robots.md. Of most URLs there is but one."""
    target = target_of(url)
    if not ("%" in target or ";" in target or "//" in target or "/." in target or "\\" in target):
        return (target,)
    return _spellings(target)


@lru_cache(maxsize=64)  # a URL is asked for several times in a row
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
    """Return what servers may make of a path, by steps each of which may be left out: the path is decoded, parameters are
    dropped, backslashes are slashes, slashes are merged, and dot segments resolved."""
    decoded = _decoded(path)
    without = (
        _without_parameters(reading) for reading in (*decoded, *_decoded(_without_parameters(path)))
    )
    readings = dict.fromkeys((*decoded, *without, _LAST_PARAMETERS.sub("", path)))
    for step in (_with_slashes, _merged, _without_dots, _with_slashes, _merged):
        readings |= dict.fromkeys([step(reading) for reading in readings])
    return readings


def _decoded(path: str) -> tuple[str, ...]:
    """Return a path decoded: its dots alone (RFC 3986 section-6.2.2.2); all of it; and all, but dots and slashes twice."""
    octets = path.encode("utf-8", "surrogatepass")
    once = unquote_to_bytes(octets)
    twice = _DOT_OR_SLASH.sub(lambda escape: unquote_to_bytes(escape[0]), once)
    return _DOT.sub(".", path), quote(once, safe=_SEGMENTS), quote(twice, safe=_SEGMENTS)


def _without_parameters(path: str) -> str:
    return _PARAMETERS.sub("", path)


def _with_slashes(path: str) -> str:
    return path.replace("\\", "/")


def _merged(path: str) -> str:
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
    """Return whether one of a target's `spellings` has one slash where the target has several, and is equal to it otherwise."""
    path, mark, query = target.partition("?")
    return normal_target(spelling) == normal_target(_SLASHES.sub("/", path) + mark + query)


_PATH = re.compile(
    r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*+)++/?"
)  # absolute, with nothing to resolve or to escape


def base_url(text: str, url: str, encoding: str = "utf-8") -> str:
    """The URL by which a page's relative ones are resolved: that of its `base`; `url`, its own, where it has none that is one."""
    try:
        return str(get_base_url(text, url, encoding))
    except ValueError:  # of "http://[x/" for example
        return url


def resolved(base: str, reference: str | bytes) -> str:
    """The http or https URL that a reference means, without credentials and fragment, e.g. "https://example.com/a?b".

    ValueError where it means none."""
    if isinstance(reference, str) and _PATH.fullmatch(reference):
        return origin_of(base) + reference
    parts = urlsplit(safe_url_string(reference))
    if parts.scheme and not parts.netloc:
        raise ValueError(f"`{parts.geturl()}` names no host")
    url = urljoin(base, parts.geturl())
    return origin_of(url) + target_of(url)
