"""Tell markup from text, and take its tags off: the content tells what a policy file is (RFC-10).

begins_as_page(body)    is it a page?
is_marked_up(text)      does markup stand around the records of a robots.txt?
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
# Tags within a line. All others end it, as a browser shows it.
_INLINE = frozenset(
    b"a abbr b bdi bdo big cite code em font i ins kbd mark nobr q s samp small span strike strong sub sup tt u var wbr".split()
)
_LINE_END = re.compile(rb"\r\n?|\n")
_REFERENCE = re.compile(rb"&(?:#[0-9]{1,7}|#[Xx][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_SPACE = rb"(?:[ \t]|\xef\xbb\xbf|\xc2\xa0)*+"
_AGENT_LINE = re.compile(rb"(?:\A|[\r\n])%s(?i:user[- ]?+agent)%s:" % (_SPACE, _SPACE))
_BROKEN_LINE = re.compile(rb"(?:\A|[\r\n])[^#<\r\n]*+<br[ \t]*+/?+>", re.IGNORECASE)


def begins_as_page(body: bytes) -> bool:
    """Return True if a doctype or an HTML tag stands at the beginning, comments apart."""
    start = _START.match(body)
    return start is not None and (start[1] is not None or start[2].lower() in _NAMES)


def is_marked_up(text: bytes) -> bool:
    """Return True if the records of a robots.txt stand in markup: tags off, there is an agent line.

    Without markup at the beginning, a `<br>` behind a record is enough: no path has one."""
    is_markup = b"<" in text and bool(_START.match(text) or _BROKEN_LINE.search(text))
    return is_markup and _has_agent_line(text)


@lru_cache(maxsize=8)  # it is asked several times for each file
def _has_agent_line(text: bytes) -> bool:
    return b"agent" in text.lower() and _AGENT_LINE.search(without_tags(text)) is not None


def without_tags(text: bytes) -> bytes:
    """Return the lines of markup as a browser shows them: `<br>` and `<p>` end a line, `<b>` does not.

    Lines keep their numbers, but not behind a tag that ends a line in its middle. Linear in the
    octets."""
    lines: list[bytes] = []
    is_blank, ends = True, False  # nothing stands in the open line; a tag is to end it
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
    """Return the character of a reference. A reference to a control character stays as it is."""
    character = unescape(reference[0].decode("ascii"))
    return character.encode() if character == "\xa0" or character.isprintable() else reference[0]
