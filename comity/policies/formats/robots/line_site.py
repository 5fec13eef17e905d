"""The site of a format that speaks in lines of robots.txt, and in no file of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from comity.policies.agent import Agent
from comity.policies.answers.decision import Finding
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import AgentReading, SiteReading
from comity.policies.formats.robots.extension_lines import ExtensionLine
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.grammar import BEFORE_ALL, Robots


class LineReading(AgentReading):
    """The reading of the lines by one agent."""

    is_silent = False  # no line speaks to it

    @property
    def findings(self) -> tuple[Finding, ...]:
        return ()


MOST_TOGETHER = 4  # times as many lines as the file has are looked at, for agents that are bound by several groups


def spoken_together(
    lines: Sequence[ExtensionLine], robots: Robots
) -> Iterator[list[ExtensionLine]]:
    """Yield the lines that speak to the same agents, for checks: of each set of groups that binds any, and of no group."""
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
    """Return column and length, as a finding has them, of octets in the value of a line."""
    return robots.text.find(octets, robots.text.find(b":", line.offset) + 1) - line.offset + 1, len(
        octets
    )


Reader = Callable[
    [SiteFiles, str], LineReading
]  # of a site for the agent of this token; "*": for anybody


class LineSite(SiteReading):
    """The lines of one robots.txt."""

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
    """Return a `Format.read_site` for lines of these names. It gives None where robots.txt has no such line."""
    return lambda site: (
        LineSite(site, reader) if any(line.name in names for line in lines_of(site)) else None
    )
