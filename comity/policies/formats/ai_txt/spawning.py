"""Spawning's /ai.txt: refusals of AI training by file type and path, in the grammar of robots.txt.

    spawning(text) -> Spawning              the rules of the file
    Spawning.for_agent(token)               the rules of the agent's groups
    AgentPatterns.statements(target)        whether training is refused

Only examples specify this format. Every reading is in docs/ai-txt.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.ai_txt.kinds import kind_of
from comity.policies.formats.ai_txt.reading import strip_spaces
from comity.policies.syntax.lines import Findings, Lines
from comity.policies.syntax.path_patterns import PatternIndex, normal_pattern, normal_target
from comity.policies.syntax.printable import printable
from comity.policies.syntax.records import Record, RecordKind, read_record
from comity.policies.vocabulary.statement import Location, Statement

SPEC = "https://site.spawning.ai/spawning-ai-txt"
TERM = "spawning:train"
RULE = "spawning.disallow"
MAX_PATTERNS = 20_000  # maximum patterns of a file. A file with more patterns refuses everything

_WHOLE_SITE = ("/", "*", "/*")
_TYPE = re.compile(rb"\*?(\.[A-Za-z0-9_.+-]+)\$?")  # `*.jpg`. LENIENT: `.jpg`, `*.jpg$`
_PATTERN = re.compile(rb"(?:[^ \t,;|]|[;|](?=[^ \t*./]))++")  # LENIENT: several in a line
_AGENT = re.compile(rb"[A-Za-z0-9_.-]+|\*")
_STANDS_ALONE = re.compile(rb"\w+[ \t]*+:[ \t]*+[/*.]")  # among lines of the other language
_PATH_LINE = re.compile(rb"[ \t]*+(?i:path)[ \t]*+:")


class Pattern(NamedTuple):
    """One pattern of a line.

    Attributes:
        text: A path pattern in normal form, or a file type such as ".jpg". "" means every resource.
        group: The number of the group. -1 means no group: the pattern applies to any agent.
    """

    verdict: Verdict
    text: str
    group: int
    source: Location

    @property
    def is_type(self) -> bool:
        """True if the pattern is a file type."""
        return self.text.startswith(".")


class Spawning(NamedTuple):
    """The lines of one file in Spawning's form.

    Attributes:
        agents: The name of an agent in lower case, and the number of a group that names it.
    """

    patterns: tuple[Pattern, ...]
    agents: tuple[tuple[str, int], ...]
    findings: tuple[Finding, ...]

    def for_agent(self, token: str) -> AgentPatterns:
        """Return the patterns of the groups that name the agent, or else of the groups for `*`.

        Patterns in no group are included. See RFC 9309 section-2.2.1.
        """
        naming = {group for name, group in self.agents if name == token.lower()}
        groups = naming or {group for name, group in self.agents if name == "*"}
        return AgentPatterns(
            pattern for pattern in self.patterns if pattern.group in groups or pattern.group < 0
        )


class AgentPatterns:
    """The patterns that bind one agent."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        # The deciding pattern of each file type: Disallow before Allow, then the first.
        self._types: dict[str, Pattern] = {}
        self._paths: list[Pattern] = []
        self._refusing_all: Pattern | None = None
        for pattern in patterns:
            if not pattern.text:
                self._refusing_all = self._refusing_all or pattern
            elif not pattern.is_type:
                self._paths.append(pattern)
            elif pattern.text not in self._types or _denies(pattern) > _denies(
                self._types[pattern.text]
            ):
                self._types[pattern.text] = pattern
        self._index = PatternIndex(
            [pattern.text for pattern in self._paths],
            [number for number, pattern in enumerate(self._paths) if _denies(pattern)],
        )

    def statements(self, target: str) -> tuple[Statement, ...]:
        """Return the refusal of training for a target, or () if training is not refused.

        `target` is path and query. The longest pattern decides, and Disallow on a tie.
        """
        target = normal_target(target)
        number = self._index.best(target)
        matching = [self._paths[number]] if number >= 0 else []
        name = target.partition("?")[0].rpartition("/")[2].lower()
        suffixes = (name[start:] for start in range(len(name)) if name[start] == ".")
        matching += (self._types[suffix] for suffix in suffixes if suffix in self._types)
        decides = max(
            matching,
            key=lambda pattern: (len(pattern.text) + pattern.is_type, _denies(pattern)),
            default=None,
        )
        decides = self._refusing_all or decides
        if decides is None or decides.verdict is Verdict.ALLOW:
            return ()
        return (Statement(TERM, Verdict.DENY, RULE, decides.source),)

    def everywhere(self) -> tuple[Statement, ...]:
        """Return the refusal of training for all resources, or () if there is none."""
        permits = any(not _denies(pattern) for pattern in (*self._paths, *self._types.values()))
        is_all = not permits and any(pattern.text in _WHOLE_SITE for pattern in self._paths)
        return self.statements("/") if self._refusing_all or is_all else ()


def _denies(pattern: Pattern) -> bool:
    return pattern.verdict is Verdict.DENY


def spawning(text: bytes, *, url: str = "", cut: bool = False) -> Spawning:
    """Read the patterns in Spawning's form. Never raises. The time is linear in the octets.

    `text` and `cut` are the results of `text_of`. In a file in the element-level language, patterns
    are read only between a User-agent line and the first Path line after it.
    """
    kind = kind_of(text)
    findings = Findings(url)
    if not kind:
        return Spawning((), (), ())
    patterns: list[Pattern] = []
    agents: dict[tuple[str, int], None] = {}
    group, naming, in_path = -1, False, False
    lines = Lines(text)
    while line := lines.read():
        in_path = in_path or _PATH_LINE.match(line) is not None
        record = read_record(line)
        if record is None:
            continue
        if record.kind is RecordKind.AGENT:
            group += not naming
            naming, in_path = True, False
            agents.update(((name, group), None) for name in _names(record.value))
        elif record.kind in (RecordKind.ALLOW, RecordKind.DISALLOW):
            naming = False
            if kind == "elements" and (in_path or not _STANDS_ALONE.match(line)):
                continue
            source = Location(line=lines.number, text=printable(line), url=url)
            patterns += _patterns(record, group, source, findings)
            if len(patterns) > MAX_PATTERNS:
                message = f"There are more than {MAX_PATTERNS} patterns, so everything is refused."
                findings.report("spawning.pattern", message, line=lines.number)
                break
    if cut or len(patterns) > MAX_PATTERNS:
        patterns[MAX_PATTERNS:] = [
            Pattern(
                Verdict.DENY,
                "",
                -1,
                Location(line=lines.number, text="the rest of the file", url=url),
            )
        ]
    return Spawning(tuple(patterns), tuple(agents), tuple(findings))


def _names(value: bytes) -> Iterator[str]:
    """Yield the agents of a line.

    LENIENT: the line may have several names, and any text may follow the token in each name.
    """
    for word in _PATTERN.findall(value):
        if match := _AGENT.match(word):
            yield match[0].decode("ascii").lower()


def _patterns(
    record: Record, group: int, source: Location, findings: Findings
) -> Iterator[Pattern]:
    """Yield the patterns of a line.

    A Disallow that cannot be read refuses everything. An Allow that cannot be read, or has several
    patterns, permits nothing.
    """
    verdict = Verdict.ALLOW if record.kind is RecordKind.ALLOW else Verdict.DENY
    spelled = words = _PATTERN.findall(record.value)
    if verdict is Verdict.DENY:
        words = [word for word in map(strip_spaces, spelled) if word]
    odd = record.overlong or any(
        word[:1] not in (b"/", b"*") and not _TYPE.fullmatch(word) for word in words
    )
    if odd or len(words) > 1 or words != spelled:
        means = (
            "it permits nothing"
            if verdict is Verdict.ALLOW
            else "it refuses everything"
            if odd
            else "each part is read"
        )
        findings.report(
            "spawning.pattern",
            f"`{{}}` is not a single path or file type, so {means}.",
            record.value,
            line=source.line,
        )
    if odd or (len(words) > 1 and verdict is Verdict.ALLOW):
        words = [b""] if verdict is Verdict.DENY else []
    for word in words:
        file_type = _TYPE.fullmatch(word)
        text = file_type[1].decode("ascii").lower() if file_type else normal_pattern(word)
        yield Pattern(verdict, text, group, source)
