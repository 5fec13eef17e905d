"""Recognise markup in a policy file and remove its tags (RFC-10).

begins_as_page(body)    does the body begin like an HTML page?
is_marked_up(text)      are there robots.txt records inside markup?
without_tags(text)      the text of the markup, line by line"""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape

from lxml.html import defs  # type: ignore[import-untyped]  # it ships no types

_BEFORE = rb"(?:\xef\xbb\xbf)?+(?:\s++|<!--.*?-->|<\?xml\b[^>]*+>)*+"
_FIRST_TAG = rb"<(?:(!doctype)\b|/?+([a-z][^\s/>]*+))"
_START = re.compile(_BEFORE + _FIRST_TAG, re.IGNORECASE | re.DOTALL)
_NAMES = frozenset(name.encode() for name in (*defs.tags, "main", "template"))
_TAG = re.compile(rb"(<!--|-->|<[!/?]?+[A-Za-z][^<>]*+>)")
_NAME = re.compile(rb"[A-Za-z0-9]++")
# Tags within a line. All other tags end the line, as in a browser.
_INLINE = frozenset(
    b"a abbr b bdi bdo big cite code em font i ins kbd mark nobr q s samp small span strike strong"
    b" sub sup tt u var wbr".split()
)
_LINE_END = re.compile(rb"\r\n?|\n")
_REFERENCE = re.compile(rb"&(?:#[0-9]{1,7}|#[Xx][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_SPACE = rb"(?:[ \t]|\xef\xbb\xbf|\xc2\xa0)*+"
_AGENT_LINE = re.compile(rb"(?:\A|[\r\n])%s(?i:user[- ]?+agent)%s:" % (_SPACE, _SPACE))
_BROKEN_LINE = re.compile(rb"(?:\A|[\r\n])[^#<\r\n]*+<br[ \t]*+/?+>", re.IGNORECASE)


def begins_as_page(body: bytes) -> bool:
    """Return True if the body begins with a doctype or an HTML tag, comments skipped."""
    start = _START.match(body)
    return start is not None and (start[1] is not None or start[2].lower() in _NAMES)


def is_marked_up(text: bytes) -> bool:
    """Return True if the text is markup around robots.txt records, i.e. has a User-agent line.

    Text that does not begin with markup counts as markup if a `<br>` follows a record: no path
    contains one."""
    is_markup = b"<" in text and bool(_START.match(text) or _BROKEN_LINE.search(text))
    return is_markup and _has_agent_line(text)


@lru_cache(maxsize=8)  # each file is checked several times
def _has_agent_line(text: bytes) -> bool:
    return b"agent" in text.lower() and _AGENT_LINE.search(without_tags(text)) is not None


def without_tags(text: bytes) -> bytes:
    """Return the lines of markup as a browser shows them.

    `<br>` and `<p>` end a line, `<b>` does not. Line numbers stay the same unless a
    tag ends a line in its middle. Linear in the octets."""
    lines: list[bytes] = []
    # is_blank: the open line has no text yet. ends: a tag is about to end the open line.
    is_blank, ends = True, False
    for number, piece in enumerate(_TAG.split(text)):
        if number % 2:
            within = _LINE_END.findall(piece)
            name = _NAME.search(piece)
            if within:
                lines += within
                is_blank, ends = True, False
            elif not is_blank and (name is None or name[0].lower() not in _INLINE):
                ends = True
            continue
        shown = _REFERENCE.sub(_character, piece) if b"&" in piece else piece
        stripped = shown.lstrip(b" \t")
        if not stripped:
            lines.append(shown)
            continue
        if ends and stripped[:1] not in (b"\r", b"\n"):
            lines.append(b"\n")
        ends = False
        lines.append(shown)
        is_blank = not shown[max(shown.rfind(b"\n"), shown.rfind(b"\r")) + 1 :].strip(b" \t")
    return b"".join(lines)


def _character(reference: re.Match[bytes]) -> bytes:
    """Return the character for a reference. References to control characters stay as they are."""
    character = unescape(reference[0].decode("ascii"))
    return character.encode() if character == "\xa0" or character.isprintable() else reference[0]
