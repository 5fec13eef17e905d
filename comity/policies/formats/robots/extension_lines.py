"""The lines of robots.txt that belong to other formats than RFC 9309 and ACAP.

extension_lines(robots, names) -> the lines, each with its group
in_ended_lists(robots, lines)  -> file and lines, read as if each line ended a list of agents
"""

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
def _shortest_names(names: frozenset[str]) -> tuple[bytes, ...]:
    """Return the shortest names such that every name contains one of them."""
    return tuple(
        name.encode() for name in names if not any(other in name for other in names - {name})
    )


class ExtensionLine(NamedTuple):
    """A line of robots.txt that belongs to another format.

    Attributes:
        name: The name in lower case.
        value: The value, without a comment and without white space around it.
        line: The number of the line, from 1, in the bytes as received.
        offset: The offset of the line in `Robots.text`.
        group: The number of its group. BEFORE_ALL and IN_ACAP mean that it is in no group.
        overlong: True if the value is cut at MAX_LINE.
    """

    name: str
    value: bytes
    line: int
    offset: int
    group: int
    overlong: bool = False

    def source(self, url: str) -> Location:
        """Return the location of the line. `url` is the URL of the robots.txt."""
        return Location(
            line=self.line, text=printable(self.name.title().encode() + b": " + self.value), url=url
        )


def extension_lines(robots: Robots, names: frozenset[str]) -> tuple[ExtensionLine, ...]:
    """Return the lines with these names, in the order of the file.

    `names` are in lower case. The time is linear in the octets of the file.
    """
    text = robots.text
    lowered = text.lower()
    if not any(name in lowered for name in _shortest_names(names)):
        return ()
    lines = []
    number, before = 1, 0  # the line of this number starts at the octet `before`
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
    """Return the file and the lines, read as if each of the lines ended a list of agents.

    Rules end a list of agents too. The returned lines have the numbers of their groups in the
    returned file.
    """
    lines = tuple(lines)
    ended = robots.ended_at(line.offset for line in lines if line.group >= 0)
    return ended, lines if ended is robots else tuple(
        line._replace(group=ended.group_at(line.offset)) for line in lines
    )
