"""What an author is unlikely to have meant in a path or a name, whatever the format. No parser asks this: `comity lint` does."""

from __future__ import annotations

import re
from typing import NamedTuple

# No-break, narrow, wide and zero-width spaces, soft hyphens, marks of direction, byte order marks; a no-break space of Latin-1.
INVISIBLE = re.compile(
    rb"\xc2[\xa0\xad]|\xe2\x80[\x80-\x8f\xa8-\xaf]|\xe2\x81[\x9f-\xa4]|\xe3\x80\x80|\xef\xbb\xbf|(?<![\x80-\xff])\xa0(?![\x80-\xbf])"
)
_QUOTE = rb"(?:[\"'`]|\xe2\x80[\x98-\x9f]|\xc2[\xab\xbb]|\xe2\x80[\xb9\xba])"
_QUOTED = re.compile(rb"(%s)(.*?)(%s?)\Z" % (_QUOTE, _QUOTE), re.DOTALL)
_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*+://[^/?#\s]*+")
# Not `.*`, `?` and single brackets: these stand in paths that are meant so.
_REGEX = re.compile(rb"\\[.?/dw+*]|\([^()|]*+\|[^()]*+\)|\[(?:\^[^\]]++|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9])[^\]]*+\]|\.\+|\^/")
_SPACE = re.compile(rb"[ \t]++")


class Suspicion(NamedTuple):
    """Something in a value."""

    kind: str  # "url", "quotes", "invisible", "second", "space", "dollar", "regex"
    message: str  # with a `{}` for what it quotes
    quoted: tuple[bytes, ...]
    start: int  # octets of the value before it
    length: int


def suspicions(path: bytes) -> list[Suspicion]:
    """Return what a path or pattern holds that is unlikely to be meant; of what makes it no path at all, the first."""
    if match := _URL.match(path):
        message = "a URL is no path: write `{}`, in the file of that host"
        return [Suspicion("url", message, (path[match.end() :] or b"/",), 0, len(path))]
    if match := _QUOTED.match(path):
        message = "the quotes are taken for a part of the path: write `{}`"
        return [Suspicion("quotes", message, (match[2],), 0, len(path))]
    if match := INVISIBLE.search(path):
        message = "a character that cannot be seen is taken for a part of the path: write `{}`"
        return [Suspicion("invisible", message, (INVISIBLE.sub(b"", path),), match.start(), len(match[0]))]
    found = []
    if space := _SPACE.search(path):
        first, rest = path[: space.start()], path[space.end() :]
        if rest[:1] in (b"/", b"*"):
            message = "what follows `{}` is taken for a part of that path: write a line for each path"
            found.append(Suspicion("second", message, (first,), space.end(), len(rest)))
        else:
            message = "`{}` is taken for a part of the path: begin a comment with #, and write a space as %20"
            found.append(Suspicion("space", message, (rest,), space.end(), len(rest)))
    dollar = path.find(b"$")
    if 0 <= dollar < len(path) - 1:
        message = "`$` means the end where it is the last character: here it is an ordinary one"
        found.append(Suspicion("dollar", message, (), dollar, 1))
    if regex := _REGEX.search(path):
        message = "`{}` has no meaning in a pattern: only `*`, and `$` at the end, are more than themselves"
        found.append(Suspicion("regex", message, (regex[0],), regex.start(), len(regex[0])))
    return found


_SEPARATOR = re.compile(rb"[ \t]*+[,;|][ \t]*+")


def several_names(value: bytes) -> tuple[int, bytes] | None:
    """Return where the second of several names begins, and that name; None: there is no second one."""
    match = _SEPARATOR.search(value)
    if not match or not match.start() or match.end() == len(value):
        return None
    return match.end(), _SEPARATOR.split(value[match.end() :], maxsplit=1)[0]


def unquoted(value: bytes) -> bytes:
    """Return a value without the quotes around it; the same value where there are none."""
    match = _QUOTED.match(value)
    return match[2] if match else value
