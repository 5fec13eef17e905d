"""`Content-Usage` lines of robots.txt and fields (draft-ietf-aipref-attach).

    read(value)                        the preferences of one dictionary
    field(values)                      the statements of the fields of a response, by two readers
    UsageRules(lines, robots, token)   the statements of the lines of a robots.txt to an agent

The format is a draft of the IETF's AIPREF working group. The first reader is in this module, the
second in short_strings.py. Readings of open points are in docs/usage-preferences.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain

import http_sf

from comity.bounded import Bounded
from comity.policies.agent import CONTENT_USAGE
from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.aipref import short_strings as usage
from comity.policies.formats.aipref.short_strings import (
    MAX_LABELS,
    Preferences,
    common,
    join_values,
    limit_labels,
    merge,
    refusals,
    tokens,
)
from comity.policies.formats.content_signals import signals as content_signal
from comity.policies.formats.robots.extension_lines import ExtensionLine
from comity.policies.formats.robots.grammar import Robots
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.path_patterns import PatternIndex, normal_pattern, normal_target
from comity.policies.syntax.printable import printable
from comity.policies.syntax.remembered import MAX_REMEMBERED, Remembered
from comity.policies.vocabulary.statement import Location, Statement

SPEC = "https://datatracker.ietf.org/doc/draft-ietf-aipref-attach/"
NAME = "content-usage"  # the name of lines in robots.txt, and of the field
RULES = {Verdict.ALLOW: "content-usage.allow", Verdict.DENY: "content-usage.disallow"}

_LinePreferences = tuple[Preferences, ExtensionLine]
_Line = tuple[str, Preferences, ExtensionLine]  # the first value is the path in normal form

_FOR_ALL = frozenset(("", "/", "/*"))  # paths that match every resource
_OTHERS = frozenset(content_signal.LABELS) - {"search"}  # words of Content Signals only

# section robots
#   content-usage = *WS "content-usage" *WS ":" *WS [ path-pattern 1*WS ] usage-pref EOL
_VALUE = re.compile(rb"(/[^ \t]*+)?+[ \t]*+(.*+)", re.DOTALL)


def parts(value: bytes) -> tuple[bytes, bytes]:
    """Return the path of a line, or b"" without a path, and the preferences after it.

    For b"/a train=n" that is (b"/a", b"train=n").
    """
    match = _VALUE.fullmatch(value)
    assert match
    path, preferences = match.groups(b"")
    return path, preferences


def read(value: bytes | str, findings: Findings | None = None, line: int = 0) -> Preferences | None:
    """Return the preference for each label of a dictionary, known or unknown.

    None means that the value is not a dictionary. Problems are reported in `findings`, with the
    number `line`. See draft-ietf-aipref-vocab, section processing.
    """
    octets = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    try:
        dictionary = http_sf.parse(octets, tltype="dictionary")
    except http_sf.StructuredFieldError as error:
        if findings is not None:
            findings.report(
                "content-usage.syntax",
                "The value is not a dictionary, so it has no effect: {}",
                str(error).encode(),
                line=line,
            )
        return None
    preferences = tokens(dictionary, parameters=True)
    if findings is not None:
        assert isinstance(dictionary, dict)
        for label in dictionary:
            if label in _OTHERS:
                findings.report(
                    "content-usage.label",
                    "`{}` is a word of Content Signals and has no effect here.",
                    label.encode(),
                    line=line,
                )
            elif label not in preferences:
                findings.report(
                    "content-usage.value",
                    "The value of `{}` has no effect. Write y or n.",
                    label.encode(),
                    line=line,
                )
    return limit_labels(preferences)


def field(
    values: Sequence[bytes], *, readers: Collection[str] = CONTENT_USAGE, url: str = ""
) -> tuple[tuple[Statement, ...], tuple[Finding, ...]]:
    """Return the statements of one response's fields about its content, and the findings.

    `readers` are names in CONTENT_USAGE. `url` is the URL of the page. With both readers, a label
    is refused if either reader refuses it, and permitted if both permit it.
    """
    statements, findings = _field((tuple(values), tuple(readers)))
    return statements, tuple(replace(finding, url=url) for finding in findings)


def _read_field(
    field_lines: tuple[Sequence[bytes], Collection[str]],
) -> tuple[tuple[Statement, ...], tuple[Finding, ...]]:
    values, readers = field_lines
    value, overlong = join_values(values)
    if not value and not overlong:
        return (), ()
    findings = Findings("")
    if overlong:
        findings.report(
            "content-usage.length",
            f"The field has more than {usage.MAX_FIELD} octets, so it permits nothing.",
        )
    readings: dict[str, Preferences] = {}
    dictionary = read(value, findings)  # also without the reader "aipref", for the findings
    if "aipref" in readers:
        readings["aipref"] = _refusals_of_cut(dictionary, value) if overlong else dictionary or {}
    if "usage" in readers:
        readings["usage"] = usage.field(values)
    verdicts = combine(readings.values())
    source = Location(part="header Content-Usage", text=printable(value))
    rules = {"aipref": RULES, "usage": usage.RULES}
    statements = (
        Statement(f"{reader}:{label}", verdict, rules[reader][verdict], source)
        for reader in readings
        for label, verdict in verdicts.items()
    )
    return tuple(statements), tuple(findings)


def _refusals_of_cut(dictionary: Preferences | None, value: bytes) -> Preferences:
    """Return the refusals in a value that was cut.

    `dictionary` is the result of `read`. None means that the value is not a dictionary, because it
    ends within a string. The value is then read as a short string.
    """
    return refusals(
        usage.read(value.decode("utf-8", "replace")) if dictionary is None else dictionary
    )


_field = Remembered(_read_field, most=MAX_REMEMBERED)


def combine(readings: Collection[Preferences]) -> Preferences:
    """Return the refusals that any reading has, and the permissions that all readings have."""
    preferences: Preferences = {}
    for label in dict.fromkeys(chain.from_iterable(readings)):
        verdicts = [reading.get(label) for reading in readings]
        if Verdict.DENY in verdicts:
            preferences[label] = Verdict.DENY
        elif None not in verdicts:
            preferences[label] = Verdict.ALLOW
    return preferences


def _distinct(lines: list[_LinePreferences]) -> list[_LinePreferences]:
    """Return the lines, and of lines with equal preferences only the first.

    Each line is a preference statement of its own. If the lines have more than MAX_LABELS
    preferences in total, they are merged, and only refusals of the shortest labels are returned.
    """
    distinct: dict[frozenset[tuple[str, Verdict]], _LinePreferences] = {}
    for preferences, line in lines:
        distinct.setdefault(frozenset(preferences.items()), (preferences, line))
    if sum(map(len, distinct)) <= MAX_LABELS:
        return list(distinct.values())
    refusing = merge((refusals(preferences), line) for preferences, line in lines)
    return [({label: verdict}, line) for label, (verdict, line) in refusing.items()]


MAX_KNOWN = 100  # combinations of paths of a site whose statements are remembered


class _Paths:
    """Lines, indexed by their paths. The longest matching path decides."""

    def __init__(self, lines: Iterable[_Line]) -> None:
        by_path: dict[str, list[_LinePreferences]] = {}
        for path, preferences, line in lines:
            by_path.setdefault(path, []).append((preferences, line))
        self._paths = list(by_path)
        self._index = PatternIndex(self._paths)
        self.preferences = [
            lines if len(lines) == 1 else _distinct(lines) for lines in by_path.values()
        ]
        self._are_plain = not any("*" in path for path in by_path)
        self.are_for_all = not _FOR_ALL.isdisjoint(by_path)

    def deciding_paths(self, target: str) -> tuple[int, ...]:
        """Return the longest path that matches a target in normal form, by its number.

        With wildcards there may be several longest paths.
        """
        if self._are_plain:  # only one path of each length can match
            path = self._index.best(target)
            return (path,) if path >= 0 else ()
        matching = self._index.all(target)
        longest = len(self._paths[matching[0]]) if matching else 0
        return tuple(path for path in matching if len(self._paths[path]) == longest)

    def matching_paths(self, target: str) -> tuple[int, ...]:
        """Return every path that matches a target in normal form, by its number."""
        return tuple(self._index.all(target))

    def lines(self, paths: Iterable[int]) -> list[_LinePreferences]:
        """Return the lines of some paths."""
        return [line for path in paths for line in self.preferences[path]]


_NO_LINES = _Paths(())  # most sites have no lines of one kind


class UsageRules:
    """The lines of one robots.txt that bind one agent.

    These are the lines in the groups that bind the agent, and the refusals of lines outside of all
    groups.
    """

    def __init__(
        self, lines: Iterable[ExtensionLine], robots: Robots, token: str, *, url: str = ""
    ) -> None:
        self._url = url
        reader = _Reader(frozenset(robots.groups_naming(token)), url)
        for line in lines:
            if line.name == NAME:
                reader.read(line)
        self._speaking, self._refusing = (
            _Paths(lines) if lines else _NO_LINES for lines in (reader.speaking, reader.refusing)
        )
        # Numbers of the speaking and of the refusing paths -> their statements.
        self._known: Bounded[tuple[tuple[int, ...], ...], tuple[Statement, ...]] | None = None
        self.findings: tuple[Finding, ...] = tuple(reader.findings)

    def statements(self, target: str) -> tuple[Statement, ...]:
        """Return the statements about the resource, separately for each line.

        `target` is path and query. Only lines with the longest matching path count. A label in
        lines with shorter paths has no effect, even if no line with the longest path names it. In
        addition, every matching line that can only refuse counts.
        """
        if self._speaking is self._refusing:  # there are no lines
            return ()
        target = normal_target(target)
        deciding = self._speaking.deciding_paths(target)
        refusing = self._refusing.matching_paths(target)
        if not deciding and not refusing:
            return ()
        if self._known is None:
            self._known = Bounded(MAX_KNOWN)
        statements = self._known.get((deciding, refusing))
        if statements is None:
            lines = [*self._speaking.lines(deciding), *self._refusing.lines(refusing)]
            statements = self._known[deciding, refusing] = self._statements(lines)
        return statements

    def everywhere(self) -> tuple[Statement, ...]:
        """Return the refusals of all resources, and all permissions for any of them.

        A term with a refusal here is refused for every path.
        """
        statements = [
            statement
            for paths in (self._speaking, self._refusing)
            for statement in self._everywhere(paths)
        ]
        refused = {statement.term for statement in statements if statement.verdict is Verdict.DENY}
        return tuple(
            statement
            for statement in statements
            if statement.verdict is Verdict.DENY or statement.term not in refused
        )

    def _everywhere(self, paths: _Paths) -> tuple[Statement, ...]:
        distinct = {
            tuple(tuple(preferences.items()) for preferences, _ in lines): lines
            for lines in paths.preferences
        }
        outcomes = map(self._statements, distinct.values())
        return common(outcomes if paths.are_for_all else chain(outcomes, [()]))

    def _statements(self, lines: list[_LinePreferences]) -> tuple[Statement, ...]:
        sources = ((preferences, line.source(self._url)) for preferences, line in _distinct(lines))
        return tuple(
            Statement(f"aipref:{label}", verdict, RULES[verdict], source)
            for preferences, source in sources
            for label, verdict in preferences.items()
        )


class _Reader:
    """Reads the lines that bind an agent.

    Attributes:
        speaking: Lines in the agent's groups. The longest matching path decides.
        refusing: Lines that can only refuse: those outside of all groups, and those that were cut.
    """

    def __init__(self, groups: Collection[int], url: str) -> None:
        self._groups = groups
        # Value -> preferences: a cache, because lines for many paths have a few equal values.
        self._cache: dict[bytes, Preferences | None] = {}
        self.findings = Findings(url)
        self.speaking: list[_Line] = []
        self.refusing: list[_Line] = []

    def read(self, line: ExtensionLine) -> None:
        path, value = parts(line.value)
        if line.overlong:  # the last member may be cut in the middle
            value = value.rpartition(b",")[0]
            self.findings.report(
                "content-usage.length",
                "The line is too long, so it permits nothing.",
                line=line.line,
            )
        preferences = self._preferences(path, value, line.line)
        if line.overlong:
            preferences = _refusals_of_cut(preferences, value)
        if preferences is None:
            return
        pattern = normal_pattern(path)
        if line.group < 0:
            self.findings.report(
                "content-usage.outside",
                "The line is outside of all groups. It can refuse, and permits nothing. "
                "Put it below a User-agent line.",
                line=line.line,
            )
        if line.group < 0 or (line.overlong and line.group in self._groups):
            self.refusing.append((pattern, refusals(preferences), line))
        elif line.group in self._groups:
            self.speaking.append((pattern, preferences, line))

    def _preferences(self, path: bytes, value: bytes, line: int) -> Preferences | None:
        if path and not value:
            self.findings.report(
                "content-usage.path", "The path `{}` has no preference after it.", path, line=line
            )
        if value in self._cache:
            return self._cache[value]
        before = len(self.findings)
        preferences = read(value, self.findings, line)
        if preferences is None and value.startswith(b"*"):
            self.findings.report("content-usage.path", "Begin the path with `/`.", line=line)
        if len(self.findings) == before:
            self._cache[value] = preferences
        return preferences
