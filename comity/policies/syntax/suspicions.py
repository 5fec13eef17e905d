"""Signs of mistakes in a path or name: its author probably meant another one.

They are the same in all formats. Parsers look only for invisible characters; `comity lint` looks
for all signs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from comity.policies.syntax.printable import printable

# No-break, narrow, wide and zero-width spaces, soft hyphens, marks of direction, byte order marks,
# and the no-break space of Latin-1.
INVISIBLE = re.compile(
    rb"\xc2[\xa0\xad]|\xe2\x80[\x80-\x8f\xa8-\xaf]|\xe2\x81[\x9f-\xa4]|\xe3\x80\x80|\xef\xbb\xbf"
    rb"|(?<![\x80-\xff])\xa0(?![\x80-\xbf])"
)
MAX_WORD = 40  # characters of a word that is compared with others
MAX_LOOKED = 1000  # octets of a path in which signs of regular expressions are searched
_QUOTE = rb"(?:[\"'`]|\xe2\x80[\x98-\x9f]|\xc2[\xab\xbb]|\xe2\x80[\xb9\xba])"
_QUOTED = re.compile(rb"(%s)(.*?)(%s?)\Z" % (_QUOTE, _QUOTE), re.DOTALL)
_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*+://[^/?#\s]*+")
# `.*`, `?` and single brackets are not signs, because real paths contain them.
_REGEX = re.compile(
    rb"\\[.?/dw+*]|\([^()|]*+\|[^()]*+\)"
    rb"|\[(?:\^[^\]]++|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9])[^\]]*+\]|\.\+|\^/|\A/\^"
)
# A `$` after a file type, as in `.pdf$?x`, unless it is the last character, or is followed by a
# letter, digit, `_`, `{` or `(`. Real paths contain `$` at all other places.
_DOLLAR = re.compile(
    rb"(?:(?<=\.[A-Za-z0-9]{2})|(?<=\.[A-Za-z0-9]{3})|(?<=\.[A-Za-z0-9]{4}))"
    rb"\$(?![A-Za-z0-9_{(]|\Z)"
)
_DOLLAR_MESSAGE = "`$` means the end only as the last character. Here it is an ordinary character."
_RECORD = re.compile(rb"(?i:user-agent|(?:dis)?allow|sitemap)[ \t]*+:")
# A `//` that begins a comment: a space follows, or a word and then a space or the end. A path with
# an empty segment goes on behind the word, as in `//a/b`.
_SLASHES = re.compile(rb"//(?:[ \t]|[A-Za-z][A-Za-z']*+(?:[ \t]|\Z))")
_SPACE = re.compile(rb"[ \t]++")
_BETWEEN = re.compile("[ _-]++")


def trimmed(value: bytes) -> bytes:
    """Return a pattern or name without spaces and invisible characters at its start and end.

    A pattern with invisible characters would match nothing."""
    plain = INVISIBLE.sub(lambda unseen: b" " * len(unseen[0]), value)
    return value[len(plain) - len(plain.lstrip(b" \t")) : len(plain.rstrip(b" \t"))]


class Suspicion(NamedTuple):
    """A sign that the author of a value made a mistake.

    Attributes:
        kind: "url", "quotes", "invisible", "second", "space", "dollar" or "regex".
        message: a text with a `{}` for each of `quoted`.
        quoted: texts from the value.
        start: offset in the value, in octets.
        length: octets."""

    kind: str
    message: str
    quoted: tuple[bytes, ...]
    start: int
    length: int


def suspicions(path: bytes) -> list[Suspicion]:
    """Return the signs of mistakes in a path or pattern.

    A URL, a quoted value or an invisible character is always the only sign that is returned."""
    if match := _URL.match(path):
        message = "A URL is not a path. Write `{}`, in the file of that host."
        return [Suspicion("url", message, (path[match.end() :] or b"/",), 0, len(path))]
    if match := _QUOTED.match(path):
        message = "The quotes count as part of the path. Write `{}`."
        return [Suspicion("quotes", message, (match[2],), 0, len(path))]
    if match := INVISIBLE.search(path):
        message = "An invisible character counts as part of the path. Write `{}`."
        return [
            Suspicion(
                "invisible", message, (INVISIBLE.sub(b"", path),), match.start(), len(match[0])
            )
        ]
    suspected = []
    if space := _SPACE.search(path):
        first, rest = path[: space.start()], path[space.end() :]
        if _SLASHES.match(rest):
            message = (
                "`//` does not begin a comment, so `{}` counts as part of the path. Write `#`."
            )
            suspected.append(Suspicion("second", message, (rest,), space.end(), len(rest)))
        elif rest[:1] in (b"/", b"*") or _RECORD.match(rest):
            message = "The text after `{}` counts as part of that path. Write it on its own line."
            suspected.append(Suspicion("second", message, (first,), space.end(), len(rest)))
        else:
            message = (
                "`{}` counts as part of the path for some readers only. Write a space as `%20`, and"
                " `#` before a comment."
            )
            suspected.append(Suspicion("space", message, (rest,), space.end(), len(rest)))
    if dollar := _DOLLAR.search(path, 0, MAX_LOOKED):
        suspected.append(Suspicion("dollar", _DOLLAR_MESSAGE, (), dollar.start(), 1))
    if regex := _REGEX.search(path, 0, MAX_LOOKED):
        message = "`{}` has no meaning in a pattern. Only `*`, and `$` at the end, have one."
        suspected.append(Suspicion("regex", message, (regex[0],), regex.start(), len(regex[0])))
    return suspected


_SEVERAL = re.compile(rb"[,;]?[ \t]++(?=[/*])")
_SEVERAL_WITH_COMMAS = re.compile(rb"/[^ \t,?*]*+(?:,/[^ \t,?*]*+)++")
_HOST = re.compile(
    rb"(?:www\.(?:[A-Za-z0-9-]++\.)++[a-z]++|(?:[A-Za-z0-9-]+\.)+(?:com|org|net))(?=/|\Z)"
)
_DOT_SEGMENT = re.compile(rb"/\.\.?/")
_FILE_TYPE = re.compile(rb"\.[A-Za-z0-9]{2,5}\$?")
_EVERYTHING = (b"all", b"any", b"everything")


def several_paths(value: bytes) -> list[bytes]:
    """Return the paths of a value that lists several: [b"/a", b"/b"] for b"/a, /b"."""
    if _SEVERAL_WITH_COMMAS.fullmatch(value):
        return value.split(b",")
    return [path for path in _SEVERAL.split(value.rstrip(b",;")) if path]


# A `%` at the end, or before a wildcard, may be the beginning of any escape.
_BROKEN_INNER_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})(?![0-9A-Fa-f]?(?:[*$]|\Z))")


def broken_escapes(path: bytes) -> bytes:
    """Return the path with `%25` for each `%` that begins no escape. b"": it has none."""
    escaped = _BROKEN_INNER_ESCAPE.sub(b"%25", path)
    return escaped if escaped != path else b""


def has_dot_segment(path: bytes) -> bool:
    """Return True if a path has `/./` or `/../` before its query.

    Browsers and crawlers resolve these in paths, but not in queries.
    """
    return _DOT_SEGMENT.search(path.partition(b"?")[0]) is not None and b"*" not in path


def right_path(value: bytes) -> bytes:
    """Return the path that the author of a wrong one probably meant.

    Backslashes become slashes, `.` and `..` are resolved, and a host is left out. A file type gets
    a `*`, and any other path its first slash. A query stays as it is.
    """
    if value.lower() in _EVERYTHING:
        return b"/"
    path, mark, query = value.partition(b"?")
    path = path.replace(b"\\", b"/")
    if _FILE_TYPE.fullmatch(value):
        return b"*" + path
    if path[:1] not in (b"/", b"*"):
        host = _HOST.match(path)
        path = b"/" + (path[host.end() :].lstrip(b"/") if host else path)
    segments: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            del segments[max(1, len(segments) - 1) :]
        elif segment != b".":
            segments.append(segment)
    return b"/".join(segments) + mark + query


# Only for formats whose paths are written for this format alone. Real paths in robots.txt contain
# all of these.
_PLACEHOLDER = re.compile(rb"<[^<>/]*>|\{[^{}/]*\}")
_INNER_QUOTE = re.compile(rb"\"|\xe2\x80[\x98-\x9f]")
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def oddity(path: bytes) -> str:
    """Return a message about a path, pattern or URL that probably matches other paths than meant.

    "": there is no sign of a mistake."""
    url = _URL.match(path)
    path = path[url.end() :] if url else path
    if suspected := suspicions(path):
        return suspected[0].message.format(*map(printable, suspected[0].quoted))
    if _INNER_QUOTE.search(path):
        return "Quotes count as part of the path. Leave them out."
    if _PLACEHOLDER.search(path):
        return "Brackets have no special meaning. Write `*` for any characters."
    if b"$" in path[:-1]:
        return _DOLLAR_MESSAGE
    if b"#" in path:
        return "A `#` and the text after it are never sent to a server. Leave them out."
    if _BROKEN_ESCAPE.search(path):
        return "Two hexadecimal digits have to follow `%`. Write `%25` for the character itself."
    return ""


# Names in the form of crawlers' names. A text with brackets is a whole User-Agent header.
_NAMES = re.compile(
    rb"[A-Za-z0-9_*][A-Za-z0-9_.*/ -]*+[,;][ \t]*+([A-Za-z0-9_*][A-Za-z0-9_.*/ -]*+)"
    rb"(?:[,;][A-Za-z0-9_.*/ ,;-]*+)?"
)


def several_names(value: bytes) -> tuple[int, bytes] | None:
    """Return the second of several names with its offset, e.g. (4, b"b") for "a,  b".

    None: the value is not a list of names."""
    match = _NAMES.fullmatch(value)
    return (match.start(1), match[1].rstrip()) if match else None


def unquoted(value: bytes) -> bytes:
    """Return a value without the quotes around it, if there are any."""
    match = _QUOTED.match(value)
    return match[2] if match else value


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the first of `words` that is nearly the misspelt `word`; "": none is.

    Upper and lower case do not count. See `is_nearly`."""
    if len(word) > MAX_WORD:
        return ""
    name = _join(word.lower())
    return next((other for other in words if _is_nearly(name, _join_cached(other.lower()))), "")


def is_nearly(name: str, other: str) -> bool:
    """Return True if two names are equal but for one missing, added, changed or swapped letter.

    "Swapped" means that two neighbours changed places. The first letters have to be equal.
    Spaces, `-` and `_` do not count."""
    return _is_nearly(_join(name), _join(other))


def _join(name: str) -> str:
    return _BETWEEN.sub("", name)


# The cache is for the known words, because each word of a file is compared with all of them.
_join_cached = lru_cache(maxsize=1024)(_join)


def _is_nearly(name: str, other: str) -> bool:
    if name == other:
        return True
    if abs(len(name) - len(other)) > 1 or name[:1] != other[:1]:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(name, other, strict=False)) if a != b),
        min(len(name), len(other)),
    )
    name, other = name[start:], other[start:]
    return (
        name[1:] == other[1:]
        or name[1:] == other
        or name == other[1:]
        or (name[:2] == other[:2][::-1] and name[2:] == other[2:])
    )
