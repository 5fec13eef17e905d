"""Content Signals, in robots.txt and header fields.

What is supported, and every reading of an open point, stands in docs/content-signals.md."""

from comity.policies.agent import Agent
from comity.policies.answers.decision import Finding
from comity.policies.formats.content_signals.rules import RULES
from comity.policies.formats.content_signals.signals import NAMES, Signals, field
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import AgentReading, Format, Headers, Resource, Response, SiteReading, Statements
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.vocabulary.statement import Statement


class SignalLines(AgentReading):
    """The signals of one robots.txt to an agent; "*": to anybody."""

    def __init__(self, site: SiteFiles, token: str) -> None:
        file = robots_of(site)
        assert file.robots
        self.signals = Signals(lines_of(site), file.robots, token, url=file.url)

    def statements(self, resource: Resource) -> Statements:
        return Statements(self.signals.statements())

    def everywhere(self) -> tuple[Statement, ...]:
        return self.signals.everywhere()


class SignalSite(SiteReading):
    """The lines of one robots.txt."""

    def __init__(self, site: SiteFiles) -> None:
        self._site = site

    def for_agent(self, agent: Agent) -> SignalLines:
        return SignalLines(self._site, agent.token)

    @property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        return SignalLines(self._site, "*").signals.findings


def read_site(site: SiteFiles) -> SignalSite | None:
    """The signals of a site; None where robots.txt has no such line."""
    return SignalSite(site) if any(line.name in NAMES for line in lines_of(site)) else None


def read_headers(headers: Headers, response: Response) -> Statements:
    """The fields of one response, each name by itself."""
    statements: list[Statement] = []
    findings: list[Finding] = []
    for name, values in headers.items():
        more, reported = field(values, name.decode().title(), url=response.url)
        statements += more
        findings += reported
    return Statements(tuple(statements), tuple(findings))


FORMAT = Format(
    name="content-signals",
    rules=RULES,
    robots_lines=NAMES,
    header_fields=tuple(name.encode() for name in NAMES),
    read_site=read_site,
    read_headers=read_headers,
)
