"""Usage preferences of the IETF: short strings, and the dictionaries of Content-Usage, in
robots.txt and header fields.

What is supported, and every reading of an open point, stands in docs/usage-preferences.md.
"""

from itertools import chain

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.aipref import content_usage, short_strings
from comity.policies.formats.aipref.authoring import AUTHORING
from comity.policies.formats.aipref.rules import RULES
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import Format, Headers, Resource, Response, Statements
from comity.policies.formats.robots.extension_lines import ExtensionLine, in_ended_lists
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.grammar import Robots
from comity.policies.formats.robots.line_site import LineReading, line_site_reader
from comity.policies.syntax.lines import Findings
from comity.policies.vocabulary.statement import Statement

Grouping = tuple[Robots, tuple[ExtensionLine, ...]]


def _groupings(site: SiteFiles) -> list[Grouping]:
    """Groups with their lines, as RFC-12 has them, and where that differs, as they are if a
    preference ends a list of agents.
    """
    robots = robots_of(site).robots
    assert robots
    lines = tuple(line for line in lines_of(site) if line.name in LINES)
    ended, lines_in_ended = in_ended_lists(robots, lines)
    return (
        [(robots, lines)]
        if len(ended.groups) == len(robots.groups)
        else [(robots, lines), (ended, lines_in_ended)]
    )


class PreferenceLines(LineReading):
    """The preferences that the lines of one robots.txt state to an agent; "*": to anybody.

    Where its groups can be read in two ways, what either reading refuses is refused, and what both
    permit is permitted.
    """

    def __init__(self, site: SiteFiles, token: str) -> None:
        self._url = robots_of(site).url
        self._groupings = site.once(PreferenceLines, lambda: _groupings(site))
        self._readings = [
            (
                short_strings.Lines(lines, robots, token, url=self._url),
                content_usage.Rules(lines, robots, token, url=self._url),
            )
            for robots, lines in self._groupings
        ]

    @property
    def findings(self) -> tuple[Finding, ...]:
        strings, dictionaries = self._readings[0]
        return (*strings.findings, *dictionaries.findings, *self._joined())

    def _joined(self) -> Findings:
        """Report the first preference of each list of agents that goes on after it, where reading
        robots.txt has not.
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
                "the agents named after this line may share it: write a rule before them, "
                "if only `Disallow:`"
            )
            for number in first.values():
                if number not in reported:
                    findings.report("robots.joined", message, line=number)
        return findings

    def statements(self, resource: Resource) -> Statements:
        """Content-Usage lines say nothing of what robots.txt disallows (draft-ietf-aipref-attach
        section robots), but their refusals hold where it is fetched all the same.
        """
        strings = _agreed([strings.statements(resource.target) for strings, _ in self._readings])
        dictionaries = _agreed(
            [dictionaries.statements(resource.target) for _, dictionaries in self._readings]
        )
        if resource.is_disallowed:
            refused = (statement for statement in dictionaries if statement.verdict is Verdict.DENY)
            dictionaries = tuple(refused) if resource.is_fetched else ()
        return Statements((*strings, *dictionaries))

    def everywhere(self) -> tuple[Statement, ...]:
        return _agreed(
            [
                (*strings.everywhere(), *dictionaries.everywhere())
                for strings, dictionaries in self._readings
            ]
        )


def _agreed(readings: list[tuple[Statement, ...]]) -> tuple[Statement, ...]:
    if len(readings) == 1:
        return readings[0]
    agreed = content_usage.agreed([_verdicts(reading) for reading in readings])
    statements = chain.from_iterable(readings)
    return tuple(
        dict.fromkeys(
            statement for statement in statements if statement.verdict is agreed.get(statement.term)
        )
    )


def _verdicts(statements: tuple[Statement, ...]) -> dict[str, Verdict]:
    """Return the verdict of each term: refused, where it is both refused and permitted."""
    verdicts: dict[str, Verdict] = {}
    for statement in statements:
        if statement.verdict and verdicts.get(statement.term) is not Verdict.DENY:
            verdicts[statement.term] = statement.verdict
    return verdicts


def read_headers(headers: Headers, response: Response) -> Statements:
    """The fields of one response."""
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
    robots_lines=LINES,
    header_fields=(b"content-usage", b"usage-pref"),
    read_site=line_site_reader(LINES, PreferenceLines),
    read_headers=read_headers,
    authoring=AUTHORING,
)
