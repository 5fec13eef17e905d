"""Usage preferences of the IETF: short strings, and the dictionaries of Content-Usage, in robots.txt and header fields.

What is supported, and every reading of an open point, stands in docs/usage-preferences.md."""

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.aipref import content_usage, short_strings
from comity.policies.formats.aipref.authoring import AUTHORING
from comity.policies.formats.aipref.rules import RULES
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import Format, Headers, Resource, Response, Statements
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.line_site import LineReading, line_site_reader
from comity.policies.vocabulary.statement import Statement


class PreferenceLines(LineReading):
    """The preferences that the lines of one robots.txt state to an agent; "*": to anybody."""

    def __init__(self, site: SiteFiles, token: str) -> None:
        file = robots_of(site)
        assert file.robots
        self.strings = short_strings.Lines(lines_of(site), file.robots, token, url=file.url)
        self.dictionaries = content_usage.Rules(lines_of(site), file.robots, token, url=file.url)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*self.strings.findings, *self.dictionaries.findings)

    def statements(self, resource: Resource) -> Statements:
        """Content-Usage lines say nothing of what robots.txt disallows (draft-ietf-aipref-attach section robots), but their
        refusals hold where it is fetched all the same."""
        dictionaries = self.dictionaries.statements(resource.target)
        if resource.is_disallowed:
            refused = (statement for statement in dictionaries if statement.verdict is Verdict.DENY)
            dictionaries = tuple(refused) if resource.is_fetched else ()
        return Statements((*self.strings.statements(resource.target), *dictionaries))

    def everywhere(self) -> tuple[Statement, ...]:
        return (*self.strings.everywhere(), *self.dictionaries.everywhere())


def read_headers(headers: Headers, response: Response) -> Statements:
    """The fields of one response."""
    statements: list[Statement] = []
    findings: list[Finding] = []
    outcomes = []
    if values := headers.get(b"content-usage"):
        outcomes.append(content_usage.field(values, readers=response.agent.content_usage, url=response.url))
    if values := headers.get(b"usage-pref"):
        outcomes.append(short_strings.string_field(values, url=response.url))
    for more, reported in outcomes:
        statements += more
        findings += reported
    return Statements(tuple(statements), tuple(findings))


LINES = (*short_strings.NAMES, content_usage.NAME)

FORMAT = Format(
    name="aipref",
    rules=RULES,
    robots_lines=LINES,
    header_fields=(b"content-usage", b"usage-pref"),
    read_site=line_site_reader(LINES, PreferenceLines),
    read_headers=read_headers,
    authoring=AUTHORING,
)
