"""Content Signals, in robots.txt and header fields.

The supported features and every reading of an open point are in docs/content-signals.md.
"""

from comity.policies.answers.decision import Finding
from comity.policies.formats.content_signals.authoring import AUTHORING
from comity.policies.formats.content_signals.rules import RULES
from comity.policies.formats.content_signals.signals import NAMES, Signals, field
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import Format, Headers, Resource, Response, Statements
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.line_site import LineReading, line_site_reader
from comity.policies.syntax.path_patterns import normal_target
from comity.policies.vocabulary.statement import Statement


class SignalLines(LineReading):
    """The signals of one robots.txt to an agent. The token "*" means any agent."""

    def __init__(self, site: SiteFiles, token: str) -> None:
        file = robots_of(site)
        assert file.robots
        self.signals = Signals(lines_of(site), file.robots, token, url=file.url)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.signals.findings

    def statements(self, resource: Resource) -> Statements:
        return Statements(self.signals.statements(normal_target(resource.target)))

    def everywhere(self) -> tuple[Statement, ...]:
        return self.signals.everywhere()


def read_headers(headers: Headers, response: Response) -> Statements:
    """Read the fields of one response. Content-Signal and Content-Signals are read separately."""
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
    title="Content Signals",
    specification="draft-romm-aipref-contentsignals",
    summary="lines of robots.txt and header fields",
    robots_lines=NAMES,
    header_fields=tuple(name.encode() for name in NAMES),
    read_site=line_site_reader(NAMES, SignalLines),
    read_headers=read_headers,
    authoring=AUTHORING,
)
