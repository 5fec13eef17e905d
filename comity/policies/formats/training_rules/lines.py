"""The training rules of a robots.txt that bind one agent (draft-canel-robots-ai-control-00)."""

from __future__ import annotations

from collections.abc import Iterable

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.robots.extension_lines import ExtensionLine
from comity.policies.formats.robots.grammar import Robots
from comity.policies.syntax.lines import MAX_LINE, Findings
from comity.policies.syntax.path_patterns import PatternIndex, normal_pattern
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location, Statement

# The name of a line in lower case -> the name as the specification spells it.
NAMES = {"disallowaitraining": "DisallowAITraining", "allowaitraining": "AllowAITraining"}
TERM = "training-rules:ai-training"
_PERMITTING = "allowaitraining"
_WHOLE_SITE = frozenset(("/", "/*", "*"))


class TrainingRules:
    """The training rules of one robots.txt that bind one agent.

    The longest matching path decides, and AllowAITraining on a tie, as for Allow and Disallow
    (RFC 9309 section-2.2.2). Lines outside of all groups can only refuse.
    """

    def __init__(
        self, lines: Iterable[ExtensionLine], robots: Robots, token: str, *, url: str = ""
    ) -> None:
        self._url = url
        self._findings = Findings(url)
        groups = frozenset(robots.groups_naming(token))
        grouped: list[tuple[str, ExtensionLine]] = []
        outside: list[tuple[str, ExtensionLine]] = []
        for line in lines:
            if self._has_effect(line):
                if line.group in groups:
                    grouped.append((normal_pattern(line.value), line))
                elif line.group < 0:
                    outside.append((normal_pattern(line.value), line))
        self._grouped, self._outside = _Rules(grouped), _Rules(outside)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings)

    def statement(self, target: str) -> Statement | None:
        """Return the statement about a resource, or None. `target` is in normal form."""
        line = self._outside.deciding_line(target) or self._grouped.deciding_line(target)
        return self._statement(line)

    def everywhere(self) -> Statement | None:
        """Return the refusal of all resources, or a permission of any of them, or None."""
        return self._statement(
            self._outside.for_whole_site
            or self._grouped.first_permission
            or self._grouped.for_whole_site
        )

    def _has_effect(self, line: ExtensionLine) -> bool:
        """Return True if the rule of a line has an effect. Report its problems."""
        permits = line.name == _PERMITTING
        if line.value and line.value[:1] not in (b"/", b"*"):
            self._findings.report(
                "training-rules.path",
                "`{}` matches nothing. Begin it with `/` or `*`.",
                line.value,
                line=line.line,
            )
        if line.overlong:
            self._findings.report(
                "training-rules.length",
                f"The path has more than {MAX_LINE} octets, so it permits nothing."
                if permits
                else f"Only the first {MAX_LINE} octets of the path are read.",
                line=line.line,
            )
        if line.group < 0:
            self._findings.report(
                "training-rules.outside",
                "This rule is in no group, so it permits nothing. Put `User-agent: *` above it."
                if permits
                else "This rule is in no group, so it is read as a rule for every agent. Put "
                "`User-agent: *` above it.",
                line=line.line,
            )
        # The beginning of an over-long path matches more than the whole path. A refusal may.
        return bool(line.value) and not (permits and (line.overlong or line.group < 0))

    def _statement(self, line: ExtensionLine | None) -> Statement | None:
        if line is None:
            return None
        text = f"{NAMES[line.name]}: {printable(line.value)}"
        location = Location(line=line.line, text=text, url=self._url)
        if line.name == _PERMITTING:
            return Statement(TERM, Verdict.ALLOW, "training-rules.allow", location)
        return Statement(TERM, Verdict.DENY, "training-rules.disallow", location)


class _Rules:
    """Rules with their paths in normal form.

    Attributes:
        first_permission: The first line that permits a path, or None.
        for_whole_site: The first line that refuses the whole site, or None.
    """

    def __init__(self, rules: list[tuple[str, ExtensionLine]]) -> None:
        self._lines = [line for _, line in rules]
        permitting = [i for i, line in enumerate(self._lines) if line.name == _PERMITTING]
        self._index = PatternIndex([pattern for pattern, _ in rules], permitting)
        self.first_permission = self._lines[permitting[0]] if permitting else None
        self.for_whole_site = next(
            (
                line
                for pattern, line in rules
                if pattern in _WHOLE_SITE and line.name != _PERMITTING
            ),
            None,
        )

    def deciding_line(self, target: str) -> ExtensionLine | None:
        """Return the line that decides about a target in normal form, or None."""
        number = self._index.best(target)
        return None if number < 0 else self._lines[number]
