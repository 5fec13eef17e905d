"""The site reading of a format that uses lines of robots.txt and has no file of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from comity.policies.agent import Agent
from comity.policies.answers.decision import Finding
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import AgentReading, SiteReading
from comity.policies.formats.robots.extension_lines import ExtensionLine, in_ended_lists
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.grammar import BEFORE_ALL, Robots


class LineReading(AgentReading):
    """One agent's reading of a format's lines in robots.txt.

    Attributes:
        is_silent: True if no line addresses the agent.
    """

    is_silent = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        return ()


Grouping = tuple[Robots, tuple[ExtensionLine, ...]]


def groupings(site: SiteFiles, names: Collection[str]) -> list[Grouping]:
    """Return the groups of robots.txt and the lines with these names, in one or two readings.

    In the first reading such a line between two User-agent lines does not end the list of agents
    (RFC-12). In the second reading it does. The second reading is left out if it has the same
    groups.
    """
    robots = robots_of(site).robots
    assert robots
    lines = tuple(line for line in lines_of(site) if line.name in names)
    ended, lines_in_ended = in_ended_lists(robots, lines)
    return (
        [(robots, lines)]
        if len(ended.groups) == len(robots.groups)
        else [(robots, lines), (ended, lines_in_ended)]
    )


# `lines_together` yields at most this number times the lines of the file. Without a limit, many
# agents in several groups would make the lists long.
MOST_TOGETHER = 4


def lines_together(lines: Sequence[ExtensionLine], robots: Robots) -> Iterator[list[ExtensionLine]]:
    """Yield lists of lines that address the same agent, for checks.

    There is one list for each set of groups that together bind an agent. Lines outside of all
    groups are in every list. See MOST_TOGETHER for the limit.
    """
    by_group: dict[int, list[ExtensionLine]] = {}
    for line in lines:
        by_group.setdefault(max(line.group, BEFORE_ALL), []).append(line)
    outside = by_group.pop(BEFORE_ALL, [])
    sets = dict.fromkeys(
        tuple(group for group in groups if group in by_group) for groups in robots.combinations
    )
    remaining = MOST_TOGETHER * len(lines)
    for groups in sets:
        together = [line for group in groups for line in by_group[group]]
        remaining -= len(together) + len(outside)
        if remaining < 0:
            return
        yield [*outside, *together]


def column_and_length(line: ExtensionLine, octets: bytes, robots: Robots) -> tuple[int, int]:
    """Return the column, from 1, and the length of octets in the value of a line.

    The octets are a word of the value if they can be: `ai` is not the begin of `ai-train`."""
    begin = robots.text.find(b":", line.offset) + 1
    start = robots.text.find(octets, begin)
    text = robots.text[begin : start + len(line.value) + len(octets)]
    if word := re.search(rb"(?<![\w-])" + re.escape(octets) + rb"(?![\w-])", text):
        start = begin + word.start()
    return start - line.offset + 1, len(octets)


# A function that reads the lines of a site for the agent with a token. "*" means any agent.
Reader = Callable[[SiteFiles, str], LineReading]


class LineSite(SiteReading):
    """The lines of one format in one robots.txt."""

    def __init__(self, site: SiteFiles, reader: Reader) -> None:
        self._site = site
        self._reader = reader

    def for_agent(self, agent: Agent) -> LineReading | None:
        reading = self._reader(self._site, agent.token)
        return None if reading.is_silent else reading

    @property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        return () if robots_of(self._site).is_marked_up else self._reader(self._site, "*").findings


def line_site_reader(
    names: Collection[str], reader: Reader
) -> Callable[[SiteFiles], LineSite | None]:
    """Return a `Format.read_site` for lines of these names.

    It returns None if robots.txt has no such line.
    """
    return lambda site: (
        LineSite(site, reader) if any(line.name in names for line in lines_of(site)) else None
    )
