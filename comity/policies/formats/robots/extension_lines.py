"""The lines of robots.txt by which other formats speak in it: neither RFC 9309's nor ACAP's.

extension_lines(robots) -> the lines, and the group in which each stands"""

from __future__ import annotations

import re
from typing import NamedTuple

from comity.policies.formats.robots.grammar import Robots
from comity.policies.syntax.lines import MAX_LINE
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Place

NAMES = ("usage", "usage-pref", "content-usage", "content-signal", "content-signals", "license")

# All of them hold one of these.
_MENTIONED = (b"usage", b"content-signal", b"license")
_LINE = re.compile(
    rb"[\r\n][ \t]*+(%s)[ \t]*+:[ \t]*+([^#\r\n]*+)" % "|".join(sorted(NAMES, reverse=True)).encode(), re.IGNORECASE
)


class ExtensionLine(NamedTuple):
    name: str  # of NAMES
    value: bytes  # without its comment and the white space around it
    line: int  # 1-based, in the bytes as received
    at: int  # where it starts in `Robots.text`
    group: int  # in which it stands; -1: in none, but before all of them or in an ACAP record
    overlong: bool = False  # the value is cut at MAX_LINE

    def place(self, url: str) -> Place:
        """`url`: of the robots.txt."""
        return Place(line=self.line, text=printable(self.name.title().encode() + b": " + self.value), url=url)


def extension_lines(robots: Robots) -> tuple[ExtensionLine, ...]:
    """All of them, in the order of the file. Linear in the octets, which bound their number."""
    text = robots.text
    lowered = text.lower()
    if not any(word in lowered for word in _MENTIONED):
        return ()
    found = []
    number, counted = 1, 0  # the number of the line that starts there
    for match in _LINE.finditer(b"\n" + text):
        at = match.start()
        number += text.count(b"\n", counted, at) + text.count(b"\r", counted, at) - text.count(b"\r\n", counted, at)
        counted = at
        name, value = match.groups()
        overlong = len(value) > MAX_LINE
        found.append(
            ExtensionLine(
                name.decode().lower(), value[:MAX_LINE].rstrip(b" \t"), number, at, robots.group_at(at), overlong=overlong
            )
        )
    return tuple(found)
