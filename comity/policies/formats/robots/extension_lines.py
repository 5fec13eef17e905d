"""The lines of robots.txt by which other formats speak in it: neither RFC 9309's nor ACAP's.

extension_lines(robots, names) -> the lines, and the group in which each stands
in_ended_lists(robots, lines)  -> the same, where these lines end a list of agents"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from comity.policies.formats.robots.grammar import Robots
from comity.policies.syntax.lines import MAX_LINE, line_ends
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location


@cache
def _line(names: frozenset[str]) -> re.Pattern[bytes]:
    alternatives = b"|".join(re.escape(name.encode()) for name in sorted(names, reverse=True))
    return re.compile(
        rb"[\r\n][ \t]*+(%s)[ \t]*+:[ \t]*+([^#\r\n]*+)" % alternatives, re.IGNORECASE
    )


@cache
def _telling(names: frozenset[str]) -> tuple[bytes, ...]:
    """Some of the names, one of which stands in any of them."""
    return tuple(
        name.encode() for name in names if not any(other in name for other in names - {name})
    )


class ExtensionLine(NamedTuple):
    name: str  # lower case
    value: bytes  # without its comment and the white space around it
    line: int  # 1-based, in the bytes as received
    offset: int  # where it starts in `Robots.text`
    group: int  # in which it stands; BEFORE_ALL, IN_ACAP: in none
    overlong: bool = False  # the value is cut at MAX_LINE

    def source(self, url: str) -> Location:
        """`url`: of the robots.txt."""
        return Location(
            line=self.line, text=printable(self.name.title().encode() + b": " + self.value), url=url
        )


def extension_lines(robots: Robots, names: frozenset[str]) -> tuple[ExtensionLine, ...]:
    """The lines of these names (lower case), in the order of the file. Linear in the octets, which bound their number."""
    text = robots.text
    lowered = text.lower()
    if not any(name in lowered for name in _telling(names)):
        return ()
    lines = []
    number, before = 1, 0  # the number of the line that starts there
    for match in _line(names).finditer(b"\n" + text):
        offset = match.start()
        number += line_ends(text, before, offset)
        before = offset
        name, value = match.groups()
        overlong = len(value) > MAX_LINE
        lines.append(
            ExtensionLine(
                name.decode().lower(),
                value[:MAX_LINE].rstrip(b" \t"),
                number,
                offset,
                robots.group_at(offset),
                overlong=overlong,
            )
        )
    return tuple(lines)


def in_ended_lists(
    robots: Robots, lines: Iterable[ExtensionLine]
) -> tuple[Robots, tuple[ExtensionLine, ...]]:
    """The file as it is where each of these lines ends a list of agents, as a rule does, and the lines in its groups."""
    lines = tuple(lines)
    ended = robots.ended_at(line.offset for line in lines if line.group >= 0)
    return ended, lines if ended is robots else tuple(
        line._replace(group=ended.group_at(line.offset)) for line in lines
    )
