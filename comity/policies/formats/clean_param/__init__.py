"""Clean-param, lines of robots.txt about parameters of URLs that make no other page.

The lines permit and refuse nothing. The readings of open points are in docs/clean-param.md.
"""

from comity.policies.agent import Agent
from comity.policies.formats.clean_param.authoring import AUTHORING
from comity.policies.formats.clean_param.lines import NAME, CleanParams
from comity.policies.formats.clean_param.rules import RULES, SPEC
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import AgentReading, Format, SiteReading
from comity.policies.formats.robots.file import lines_of, robots_of


class CleanParamSite(SiteReading):
    """The Clean-param lines of one robots.txt, which are for every agent."""

    def __init__(self, params: CleanParams) -> None:
        self._params = params
        self.findings = params.findings

    def for_agent(self, agent: Agent) -> AgentReading | None:
        return None

    def clean(self, target: str) -> str:
        return self._params.clean(target)


def read_site(site: SiteFiles) -> CleanParamSite | None:
    """Return the reading of a site's Clean-param lines, or None if it has none."""
    lines = [line for line in lines_of(site) if line.name == NAME]
    return CleanParamSite(CleanParams(lines, robots_of(site))) if lines else None


FORMAT = Format(
    name="clean-param",
    rules=RULES,
    title="Clean-param in robots.txt",
    specification=SPEC,
    summary="parameters without an effect on pages: links that differ in these alone are one page",
    robots_lines=(NAME,),
    read_site=read_site,
    authoring=AUTHORING,
)
