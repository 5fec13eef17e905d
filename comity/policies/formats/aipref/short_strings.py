"""Short usage preference strings (draft-thomson-aipref-sup): label=y or label=n.

    read(expression)                   the preferences of one string
    field(values)                      the preferences of Content-Usage fields, by section-6.2
    string_field(values)               the statements of Usage-Pref fields
    UsageLines(lines, robots, token)   the statements of `usage` lines of a robots.txt to an agent

Commas separate the members of a string. A label is refused if any member refuses it, so the order
does not matter. vocabulary.toml defines the meaning of labels, and which label narrows another.
Readings of open points are in docs/usage-preferences.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import http_sf

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.robots.extension_lines import ExtensionLine
from comity.policies.formats.robots.grammar import AgentRules, Robots
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location, Statement

SPEC = "https://datatracker.ietf.org/doc/draft-thomson-aipref-sup/"
# Names of lines in robots.txt: section-6.1, and section-2 of the draft's first revision.
NAMES = ("usage", "usage-pref")
FIELD = "Usage-Pref"  # section-2 of the first revision
# The length of an expression, in characters, after which readers may stop (section-5.3). comity
# reads the rest too, and reports longer lines.
MAX_CHARS = 1000
MAX_FIELD = 8 * 1024  # maximum octets of a field
MAX_LABELS = 100  # maximum labels with a value, in one expression and on one page

T = TypeVar("T")
Preferences = dict[str, Verdict]  # label -> ALLOW or DENY

VERDICTS = {"y": Verdict.ALLOW, "n": Verdict.DENY}
RULES = {Verdict.ALLOW: "usage.allow", Verdict.DENY: "usage.disallow"}

# A member of an RFC 9651 dictionary. Commas in quoted strings do not end it.
_MEMBER = re.compile(rb'(?:%"[^"]*+"|"(?:\\.|[^"\\])*+"|[^,])++')


def read(expression: str, findings: Findings | None = None, line: int = 0) -> Preferences:
    """Return the preference for each label of a string, known or unknown (section-5.1).

    For `train=y, search=n` that is ALLOW for train and DENY for search. Ignored members and too
    many labels are reported in `findings`, with the number `line`. None means that nothing is
    reported. With a path in the string, the pages of a permission are not known, and only refusals
    are returned: these strings have no place for a path.
    """
    preferences: Preferences = {}
    for member in expression.split(","):
        label, equals, value = (part.strip(" \t") for part in member.partition("="))
        if label and value in VERDICTS:
            _note(preferences, label, VERDICTS[value])
        elif findings is not None and (label or equals):
            message = "`{}` is not a preference. Write label=y or label=n."
            findings.report("usage.ignored", message, member.encode("utf-8", "replace"), line=line)
    if findings is not None and len(preferences) > MAX_LABELS:
        findings.report(
            "usage.length",
            f"There are more than {MAX_LABELS} labels, so it permits nothing.",
            line=line,
        )
    has_path = "/" in expression or "*" in expression
    return limit_labels(refusals(preferences) if has_path else preferences)


def field(values: Iterable[bytes]) -> Preferences:
    """Return the preferences of one response's Content-Usage fields.

    Only members such as `train=n`, which have a token as value and no parameters, are preferences.
    The values are joined by RFC 9651 section-4.2. But if a key is repeated, all its values count,
    not only the last one. If the joined value is not a dictionary, it is read as a short string,
    and only the refusals in it count.
    """
    value, overlong = join_values(values)
    try:
        http_sf.parse(value, tltype="dictionary")
        members = [
            http_sf.parse(member.strip(b" \t"), tltype="dictionary")
            for member in _MEMBER.findall(value)
        ]
    except http_sf.StructuredFieldError:
        return refusals(read(value.decode("utf-8", "replace")))
    preferences: Preferences = {}
    for member in members:
        for label, verdict in tokens(member, parameters=False).items():
            _note(preferences, label, verdict)
    return limit_labels(refusals(preferences) if overlong else preferences)


def string_field(
    values: Iterable[bytes], *, url: str = ""
) -> tuple[tuple[Statement, ...], tuple[Finding, ...]]:
    """Return the statements and findings of one response's Usage-Pref fields.

    The statements are about the response's content. `url` is the URL of the page.
    """
    findings = Findings(url)
    expressions = []
    for field_line in values:
        value, overlong = join_values([field_line])
        preferences = read(value.decode("utf-8", "replace"), findings)
        if overlong:
            findings.report(
                "usage.length",
                f"The field has more than {MAX_FIELD} octets, so it permits nothing.",
            )
        expressions.append((refusals(preferences) if overlong else preferences, value))
    statements = [
        Statement(
            f"usage:{label}",
            verdict,
            RULES[verdict],
            Location(part=f"header {FIELD}", text=printable(value)),
        )
        for label, (verdict, value) in merge(expressions).items()
    ]
    return tuple(statements), tuple(findings)


def join_values(values: Iterable[bytes]) -> tuple[bytes, bool]:
    """Return the joined value of field lines, and True if members past MAX_FIELD are left out.

    LENIENT: empty lines state nothing.
    """
    value = b", ".join(value for value in (value.strip(b" \t") for value in values) if value)
    overlong = len(value) > MAX_FIELD
    return value[:MAX_FIELD].rpartition(b",")[0] if overlong else value, overlong


def tokens(dictionary: http_sf.StructuredType, *, parameters: bool) -> Preferences:
    """Return the preferences of a dictionary: its members with the token y or n as value.

    `parameters` is False to leave out members with parameters, such as `train=y;a=1`.
    """
    preferences: Preferences = {}
    assert isinstance(dictionary, dict)
    for label, member in dictionary.items():
        assert isinstance(member, tuple)
        value, member_parameters = member
        if (
            isinstance(value, http_sf.Token)
            and str(value) in VERDICTS
            and (parameters or not member_parameters)
        ):
            preferences[label] = VERDICTS[str(value)]
    return preferences


def refusals(preferences: Mapping[str, Verdict]) -> Preferences:
    """Return the refusals among preferences."""
    return {label: verdict for label, verdict in preferences.items() if verdict is Verdict.DENY}


def limit_labels(preferences: Preferences) -> Preferences:
    """Return the preferences unchanged if there are at most MAX_LABELS.

    Otherwise return only refusals: those of the MAX_LABELS shortest refused labels.
    """
    if len(preferences) <= MAX_LABELS:
        return preferences
    refused = sorted(refusals(preferences), key=lambda label: (len(label), label))
    return dict.fromkeys(refused[:MAX_LABELS], Verdict.DENY)


def merge(sources: Iterable[tuple[Preferences, T]]) -> dict[str, tuple[Verdict, T]]:
    """Merge all expressions about one page (section-5.4).

    `sources` are the expressions, each with its source, such as a line. A label is refused if any
    expression refuses it. The result maps each label to its verdict, and to the source of the first
    expression with this verdict.
    """
    merged: Preferences = {}
    deciders: dict[str, T] = {}
    for preferences, source in sources:
        for label, verdict in preferences.items():
            if _note(merged, label, verdict):
                deciders[label] = source
    return {label: (verdict, deciders[label]) for label, verdict in limit_labels(merged).items()}


def _note(preferences: Preferences, label: str, verdict: Verdict) -> bool:
    """Add a preference to `preferences`. Return True if it changes the verdict of the label."""
    if preferences.get(label) in (verdict, Verdict.DENY):
        return False
    preferences[label] = verdict
    return True


class UsageLines:
    """The `usage` lines of one robots.txt that bind one agent.

    These are the lines in the groups that bind the agent, and the refusals of lines outside of all
    groups.
    """

    def __init__(
        self, lines: Iterable[ExtensionLine], robots: Robots, token: str, *, url: str = ""
    ) -> None:
        self._url = url
        self._findings = Findings(url)
        groups = frozenset(robots.groups_naming(token))
        bound = []
        for line in lines:
            if line.name in NAMES:
                preferences = self._read(line)
                if preferences and (line.group in groups or line.group < 0):
                    bound.append((preferences, line))
        self._of_all = self._of_allowed = self._statements(bound)
        # The agent's rules, if some lines cover only the paths that these rules match. Else None.
        self._allowed: AgentRules | None = None
        if bound:
            self._narrow(bound, robots, robots.for_agent(token))
        self.findings: tuple[Finding, ...] = tuple(self._findings)

    def statements(self, target: str) -> tuple[Statement, ...]:
        """Return the statements about the resource, one for each label.

        `target` is path and query.
        """
        return (
            self._of_allowed
            if self._allowed and self._allowed.deciding_line(target)
            else self._of_all
        )

    def everywhere(self) -> tuple[Statement, ...]:
        """Return the refusals of all resources, and all permissions for any of them.

        A term with a refusal here is refused for every path.
        """
        return common((self._of_all, self._of_allowed))

    def _read(self, line: ExtensionLine) -> Preferences:
        expression = line.value.decode("utf-8", "replace")
        if len(expression) > MAX_CHARS:
            message = (
                f"Other readers may stop after {MAX_CHARS} characters (section-5.3). "
                "Write a shorter string."
            )
            self._findings.report("usage.length", message, line=line.line)
        if line.overlong:  # the last member may be cut in the middle
            expression = expression.rpartition(",")[0]
        preferences = read(expression, self._findings, line.line)
        if line.group < 0:
            message = (
                "The line is outside of all groups. It can refuse, and permits nothing. Put "
                "it below a User-agent line."
            )
            self._findings.report("usage.outside", message, line=line.line)
        return refusals(preferences) if line.overlong or line.group < 0 else preferences

    def _narrow(
        self, bound: list[tuple[Preferences, ExtensionLine]], robots: Robots, rules: AgentRules
    ) -> None:
        """Limit lines to the paths that the Allow lines of their group match.

        This applies if all rules of the agent are Allow lines and none of these covers the whole
        site, as in the example of section-2. `bound` are the preferences and lines that bind the
        agent.
        """
        only_some = rules.only_allows and not any(
            rule.path_pattern.rstrip("*") in ("", "/") for rule in rules.matching("/")
        )
        of_all = []
        for preferences, line in bound:
            first = rules.first_of(robots.lines_of(line.group)) if line.group >= 0 else 0
            if 0 < first < line.line:
                self._findings.report(
                    "usage.late",
                    "This line counts, but put it above the rules of its group.",
                    line=line.line,
                )
            if not (only_some and first):
                of_all.append((preferences, line))
        if len(of_all) < len(bound):
            self._allowed = rules
            self._of_all = self._statements(of_all)

    def _statements(
        self, lines: Iterable[tuple[Preferences, ExtensionLine]]
    ) -> tuple[Statement, ...]:
        return tuple(
            Statement(f"usage:{label}", verdict, RULES[verdict], line.source(self._url))
            for label, (verdict, line) in merge(lines).items()
        )


def common(outcomes: Iterable[tuple[Statement, ...]]) -> tuple[Statement, ...]:
    """Return the refusals that all outcomes have, and the permissions that any outcome has.

    Each outcome has the statements about one resource.
    """
    permitted: dict[str, Statement] = {}
    refused: dict[str, Statement] | None = None
    for outcome in outcomes:
        denied = {
            statement.term: statement for statement in outcome if statement.verdict is Verdict.DENY
        }
        for statement in outcome:
            if statement.verdict is Verdict.ALLOW and statement.term not in denied:
                permitted.setdefault(statement.term, statement)
        refused = (
            denied
            if refused is None
            else {term: statement for term, statement in refused.items() if term in denied}
        )
    return (*(refused or {}).values(), *permitted.values())
