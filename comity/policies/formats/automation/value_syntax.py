"""The values of the directives of automation-preferences.txt: their syntax and their comparison.

    host_pattern(value), scope_patterns(value), duration(text)
    DIRECTIVES      each directive, with the parser of its value; also for the JSON-LD of a page

The draft calls this part of the grammar "directive value syntax".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import chain
from typing import Any, NamedTuple

from comity.policies.formats.automation.directives import (
    ALLOW_XHR,
    API_AUTOMATION,
    METHODS,
    NOWHERE,
    SESSION_VALIDATION,
    UrlPattern,
)
from comity.policies.syntax.path_patterns import normal_pattern
from comity.policies.syntax.suspicions import trimmed
from comity.policies.syntax.windows import DAY, UNITS, Window, limit_text

MAX_NUMBER = 10**9  # numbers above this maximum count as the maximum

# Core, formal-syntax:
#   url-pattern     = 1*( VCHAR / UTF8-char-noctl )
#   host-pattern    = 1*( ALPHA / DIGIT / "-" / "." / UTF8-char-noctl )

ABSOLUTE = re.compile(rb"[A-Za-z*][A-Za-z0-9+.*-]*+://([^/?]*+)")
# LENIENT: a scope may begin with a host, as in `//example.com/` and `*.example.com/`.
_PERHAPS_HOST = re.compile(rb"//|\*[^/]++/")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._*-]+?)\.?(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = (0, 80, 443)  # 0 means that no port is written
# LENIENT: a line may have several patterns, separated by commas or spaces. A second pattern cannot
# begin with `*`, because it would match too much.
_BETWEEN_PATTERNS = re.compile(rb"(?<![ \t,])[ \t,]++(?=/|[A-Za-z][A-Za-z0-9+.-]{0,20}+://)")


def host_pattern(value: str) -> str:
    """Return a host in lower case and A-labels, with its wildcards and port.

    `value` is a host or a URL with a host: `https://Example.com:8080/a` becomes `example.com:8080`.
    A default port is left out. "" means that `value` is not a host.
    """
    host = re.split(r"[/?]", value.rpartition("://")[2], maxsplit=1)[0].lower()
    if len(host) > 300:  # the name of a host has at most 253 characters
        return ""
    if not host.isascii():
        wildcard, name = ("*.", host[2:]) if host.startswith("*.") else ("", host)
        name, colon, port = name.partition(":")
        try:
            host = wildcard + name.encode("idna").decode("ascii") + colon + port
        except UnicodeError:
            return ""
        if "*" in name:
            return ""
    match = _HOST.fullmatch(host)
    if match is None or not match[1].strip(".") or match[1].startswith(".."):
        return ""
    port = int(match[2] or "0")
    return match[1] if port in _DEFAULT_PORTS else f"{match[1]}:{port}"


def url_pattern(value: bytes) -> UrlPattern:
    """Return the pattern in a value: a path, or a URL with scheme and host.

    A value that begins with neither `/`, `*` nor a scheme is read with a leading `/`.
    """
    absolute = ABSOLUTE.match(value)
    if absolute is None:
        return UrlPattern(
            "", normal_pattern(value if value.startswith((b"/", b"*")) else b"/" + value)
        )
    rest = value[absolute.end() :]
    host = host_pattern(absolute[1].decode("utf-8", "replace")) or NOWHERE
    return UrlPattern(host, normal_pattern(rest if rest.startswith(b"/") else b"/" + rest))


def scope_patterns(scope: bytes) -> tuple[UrlPattern, ...]:
    """Return the readings of a scope: as a path, and also as host and path if that is possible.

    `//example.com/a` is read both as a path and as the path `/a` on example.com.
    """
    return (url_pattern(scope), *(_with_host(scope) if _PERHAPS_HOST.match(scope) else ()))


def page_patterns(page: bytes) -> tuple[UrlPattern, ...]:
    """Return the readings of a pattern of pages, which can be on any host.

    A pattern that begins with `//`, or does not begin with `/`, might begin with a host. It is read
    both as a path and as host and path.
    """
    return (
        url_pattern(page),
        *(_with_host(page) if page.startswith(b"//") or not page.startswith(b"/") else ()),
    )


def _with_host(value: bytes) -> Iterator[UrlPattern]:
    if (
        not ABSOLUTE.match(value)
        and (pattern := url_pattern(b"https://" + value.removeprefix(b"//"))).host != NOWHERE
    ):
        yield pattern


def url_patterns(value: bytes) -> list[bytes]:
    """Return the patterns in one value, usually one.

    A comma or space separates patterns only if `/` or a scheme follows it, so `/a,b` is one
    pattern.
    """
    return [part.rstrip(b" \t,") for part in _BETWEEN_PATTERNS.split(value) if part.strip(b" \t,")]


# Extension, section-3 and section-4:
#   rate-spec   = count "/" time-unit
#   count       = 1*DIGIT
#   time-unit   = "second" / "minute" / "hour" / "day"
#   duration    = 1*DIGIT time-unit-char

_COUNT = re.compile(r"[0-9]+")
_RATE = re.compile(r"([0-9]+)/(second|minute|hour|day)")
_DURATION = re.compile(r"([0-9]+)([smhd])")
# Unit -> its length in seconds, and the maximum number of this unit.
_DURATIONS = {"s": (1, 86400), "m": (60, 1440), "h": (3600, 168), "d": (DAY, 365)}
SPACE = re.compile(rb"[ \t]")
_TOKEN = re.compile(rb"[!-~]+")  # purpose-token, automation-token
_EVERY_PAGE = (UrlPattern("*", "/"),)

# The parsed value, and the first part of it that cannot be read. None if all parts can be read.
ParsedValue = tuple[Any, bytes | None]


def items(value: bytes) -> list[bytes]:
    """Return the items of a comma-separated list, which can be empty (extension section-3)."""
    return [item for part in value.split(b",") if (item := part.strip(b" \t"))]


def duration(text: str) -> timedelta | None:
    """Return a duration such as "30m" (extension section-3.4).

    None means that the text is not a duration, or that its number is 0 or too great for its unit.
    """
    match = _DURATION.fullmatch(text.lower())
    if match is None:
        return None
    seconds, most = _DURATIONS[match[2]]
    number = _number(match[1])
    return timedelta(seconds=number * seconds) if 1 <= number <= most else None


def _number(digits: str) -> int:
    digits = digits.lstrip("0")
    return MAX_NUMBER if len(digits) > 9 else int(digits or "0")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").lower()


def _tokens(value: bytes) -> ParsedValue:
    tokens = items(value)
    odd = next((item for item in tokens if not _TOKEN.fullmatch(item)), None)
    return frozenset(_text(item) for item in tokens if _TOKEN.fullmatch(item)), odd


def _methods(value: bytes) -> ParsedValue:
    # Upper case of ASCII only: in Unicode the upper case of `poſt` is POST.
    methods = {item: item.upper().decode("latin-1") for item in items(value)}
    return frozenset(methods.values()).intersection(METHODS), next(
        (item for item in methods if methods[item] not in METHODS), None
    )


def _pages(value: bytes) -> ParsedValue:
    pages = [page for item in items(value) if (page := trimmed(item))]
    odd = next(
        (page for page in pages if url_pattern(page).host == NOWHERE or SPACE.search(page)), None
    )
    return (
        (tuple(chain.from_iterable(map(page_patterns, pages))), None)
        if odd is None
        else (_EVERY_PAGE, odd)
    )


def _choice(values: Iterable[str], strictest: str) -> Callable[[bytes], ParsedValue]:
    allowed = {value.encode(): value for value in values}
    return lambda value: (
        (allowed[value.lower()], None) if value.lower() in allowed else (strictest, value)
    )


def _boolean(value: bytes) -> ParsedValue:
    return value.lower() != b"false", None if value.lower() in (b"true", b"false") else value


def _session_ttl(value: bytes) -> ParsedValue:
    ttl = duration(_text(value))
    return ttl, None if ttl else value


def _request_limit(value: bytes) -> ParsedValue:
    match = _RATE.fullmatch(_text(value))
    return (Window(_number(match[1]), UNITS[match[2]]), None) if match else (None, value)


_MEANT_RATE = re.compile(  # `1/5s`, `10 per minute`, `2 requests / 10 sec`
    r"([0-9]{1,9})\s*+(?:req[a-z]*+\s*+)?(?:/|per|in|each|every|a)\s*+([0-9]{0,6})\s*+(s|m|h|d)[a-z]*+\s*+"
)


def _request_limit_advice(value: bytes) -> str:
    match = _MEANT_RATE.fullmatch(_text(value).strip())
    meant = ""
    if match:
        length = next(length for unit, length in UNITS.items() if unit[0] == match[3])
        meant = limit_text(int(match[1]), int(match[2] or "1") * length)
    return "write N/second, N/minute, N/hour or N/day" + (f", here `{meant}`" if meant else "")


def _concurrent_limit_advice(value: bytes) -> str:
    digits = re.search(r"(?<![0-9.-])[1-9][0-9]{0,8}(?![0-9.])", _text(value))
    return f"write a whole number, such as `{digits[0] if digits else 1}`"


def _no_advice(value: bytes) -> str:
    return ""


def _concurrent_limit(value: bytes) -> ParsedValue:
    return (_number(_text(value)), None) if _COUNT.fullmatch(_text(value)) else (1, value)


class DirectiveSyntax(NamedTuple):
    """The syntax of one directive.

    Attributes:
        parse: Parses a value that has no white space around it.
        strictest: The most restrictive value, which replaces a value that cannot be read.
        otherwise: The words of a finding about a part that cannot be read.
        advice: Returns the advice for a value that cannot be read.
    """

    name: str
    parse: Callable[[bytes], ParsedValue]
    strictest: Any
    otherwise: str
    advice: Callable[[bytes], str] = _no_advice

    @property
    def field(self) -> str:
        """The name of the directive's field in `Directives`."""
        return self.name.replace("-", "_")


DIRECTIVES = {
    directive.name.encode(): directive
    for directive in (
        DirectiveSyntax(
            "allowed-methods", _methods, frozenset(), "is not a method, so it permits none"
        ),
        DirectiveSyntax(
            "allowed-purposes", _tokens, frozenset(), "is not a purpose, so it permits none"
        ),
        DirectiveSyntax(
            "allowed-automations", _tokens, frozenset(), "is not a mechanism, so it permits none"
        ),
        DirectiveSyntax(
            "api-automation",
            _choice(API_AUTOMATION, "none"),
            "none",
            f"is none of {', '.join(API_AUTOMATION)}",
        ),
        DirectiveSyntax(
            "allow-xhr", _choice(ALLOW_XHR, "none"), "none", f"is none of {', '.join(ALLOW_XHR)}"
        ),
        DirectiveSyntax(
            "disallow-fetch-from",
            _pages,
            _EVERY_PAGE,
            "is not a URL pattern, so it means every page",
        ),
        DirectiveSyntax(
            "require-human-initiated-session",
            _boolean,
            strictest=True,
            otherwise="is neither true nor false. It counts as true",
        ),
        DirectiveSyntax(
            "session-validation",
            _choice(SESSION_VALIDATION, ""),
            "",
            f"is none of {', '.join(SESSION_VALIDATION)}",
        ),
        DirectiveSyntax(
            "session-ttl",
            _session_ttl,
            None,
            "is not a duration up to 86400s, 1440m, 168h or 365d. No session is permitted",
        ),
        DirectiveSyntax(
            "request-limit",
            _request_limit,
            None,
            "is not a limit. The slowest pace applies",
            _request_limit_advice,
        ),
        DirectiveSyntax(
            "concurrent-limit",
            _concurrent_limit,
            1,
            "is not a number. It counts as 1",
            _concurrent_limit_advice,
        ),
    )
}
