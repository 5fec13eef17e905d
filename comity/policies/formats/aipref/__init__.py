"""Usage preferences of the IETF, in robots.txt and header fields.

There are two kinds: short strings, and the dictionaries of Content-Usage. The supported features
and every reading of an open point are in docs/usage-preferences.md.
"""

from itertools import chain

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.aipref import content_usage, short_strings
from comity.policies.formats.aipref.authoring import AUTHORING
from comity.policies.formats.aipref.rules import RULES
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import Format, Headers, Resource, Response, Statements
from comity.policies.formats.robots.file import robots_of
from comity.policies.formats.robots.line_site import LineReading, groupings, line_site_reader
from comity.policies.syntax.lines import Findings
from comity.policies.vocabulary.statement import Statement


class PreferenceLines(LineReading):
    """The preferences of one robots.txt for an agent. The token "*" means any agent.

    If the groups of the robots.txt can be read in two ways, a refusal by either reading counts, and
    a permission counts only if both readings have it.
    """

    def __init__(self, site: SiteFiles, token: str) -> None:
        self._url = robots_of(site).url
        self._groupings = site.once(PreferenceLines, lambda: groupings(site, LINES))
        self._readings = [
            (
                short_strings.UsageLines(lines, robots, token, url=self._url),
                content_usage.UsageRules(lines, robots, token, url=self._url),
            )
            for robots, lines in self._groupings
        ]

    @property
    def findings(self) -> tuple[Finding, ...]:
        strings, dictionaries = self._readings[0]
        return (*strings.findings, *dictionaries.findings, *self._check_joined_lists())

    def _check_joined_lists(self) -> Findings:
        """Report preferences between two User-agent lines, the first one of each list of agents.

        Lines with a `robots.joined` finding of the robots.txt itself are left out.
        """
        (robots, lines), *others = self._groupings
        findings = Findings(self._url)
        reported = {finding.line for finding in robots.findings if finding.rule == "robots.joined"}
        for ended, lines_in_ended in others:
            first: dict[int, int] = {}  # group -> the number of a line
            for line, line_in_ended in zip(lines, lines_in_ended, strict=True):
                group = line_in_ended.group
                if group >= 0 and ended.lines_of(group).stop < robots.lines_of(line.group).stop:
                    first.setdefault(group, line.line)
            message = (
                "Some readers apply this line to the agents below it too. Write a rule "
                "above these agents, such as `Disallow:`."
            )
            for number in first.values():
                if number not in reported:
                    findings.report("robots.joined", message, line=number)
        return findings

    def statements(self, resource: Resource) -> Statements:
        """Return the statements about the resource.

        Content-Usage lines make no statement about resources that robots.txt disallows
        (draft-ietf-aipref-attach section robots). But if a disallowed resource is fetched anyway,
        their refusals apply.
        """
        strings = _combine([strings.statements(resource.target) for strings, _ in self._readings])
        dictionaries = _combine(
            [dictionaries.statements(resource.target) for _, dictionaries in self._readings]
        )
        if resource.is_disallowed:
            refused = (statement for statement in dictionaries if statement.verdict is Verdict.DENY)
            dictionaries = tuple(refused) if resource.is_fetched else ()
        return Statements((*strings, *dictionaries))

    def everywhere(self) -> tuple[Statement, ...]:
        return _combine(
            [
                (*strings.everywhere(), *dictionaries.everywhere())
                for strings, dictionaries in self._readings
            ]
        )


def _combine(readings: list[tuple[Statement, ...]]) -> tuple[Statement, ...]:
    """Return the refusals of any reading, and the permissions that all readings have."""
    if len(readings) == 1:
        return readings[0]
    verdicts = content_usage.combine([_verdicts(reading) for reading in readings])
    statements = chain.from_iterable(readings)
    return tuple(
        dict.fromkeys(
            statement
            for statement in statements
            if statement.verdict is verdicts.get(statement.term)
        )
    )


def _verdicts(statements: tuple[Statement, ...]) -> dict[str, Verdict]:
    """Return the verdict of each term. A term that is both refused and permitted is refused."""
    verdicts: dict[str, Verdict] = {}
    for statement in statements:
        if statement.verdict and verdicts.get(statement.term) is not Verdict.DENY:
            verdicts[statement.term] = statement.verdict
    return verdicts


def read_headers(headers: Headers, response: Response) -> Statements:
    """Read the Content-Usage and Usage-Pref fields of one response."""
    statements: list[Statement] = []
    findings: list[Finding] = []
    outcomes = []
    if values := headers.get(b"content-usage"):
        outcomes.append(
            content_usage.field(values, readers=response.agent.content_usage, url=response.url)
        )
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
    title="usage preferences",
    specification="draft-thomson-aipref-sup, draft-ietf-aipref-vocab and -attach",
    summary="short strings and Content-Usage, in robots.txt and header fields",
    robots_lines=LINES,
    header_fields=(b"content-usage", b"usage-pref"),
    read_site=line_site_reader(LINES, PreferenceLines),
    read_headers=read_headers,
    authoring=AUTHORING,
)
