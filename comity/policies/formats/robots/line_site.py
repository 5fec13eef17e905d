"""The site of a format that speaks in lines of robots.txt, and in no file of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection

from comity.policies.agent import Agent
from comity.policies.answers.decision import Finding
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import AgentReading, SiteReading
from comity.policies.formats.robots.file import lines_of


class LineReading(AgentReading):
    """The reading of the lines by one agent."""

    is_silent = False  # no line speaks to it

    @property
    def findings(self) -> tuple[Finding, ...]:
        return ()


Reader = Callable[[SiteFiles, str], LineReading]  # of a site for the agent of this token; "*": for anybody


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
        return self._reader(self._site, "*").findings


def line_site_reader(names: Collection[str], reader: Reader) -> Callable[[SiteFiles], LineSite | None]:
    """Return a `Format.read_site` for lines of these names. It gives None where robots.txt has no such line."""
    return lambda site: LineSite(site, reader) if any(line.name in names for line in lines_of(site)) else None
