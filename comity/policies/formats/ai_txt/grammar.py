"""The element-level language as text: the grammar of figure 11 of the paper.

    parse(text) -> AiTxt     rules in the order of the file, and findings for its author

Every reading of an open point is in docs/ai-txt.md.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum

from comity.policies.answers.element_rule import ALL, ElementRule, Guideline
from comity.policies.formats.ai_txt.kinds import INDENTATION, kind_of
from comity.policies.formats.ai_txt.reading import (
    KNOWN_ACTIONS,
    NAME,
    UNDETERMINED,
    Path,
    Position,
    RuleList,
    Values,
    are_known_actions,
    everywhere,
    replace_odd_spaces,
)
from comity.policies.formats.ai_txt.values import AiTxt
from comity.policies.syntax.lines import EOL, Findings, Lines

SPEC = (
    "ai.txt: A Domain-Specific Language for Guiding AI Interactions with the Internet (Li et "
    "al., 2025)"
)


class Keyword(Enum):
    """The keyword of a line, with its level of indentation (figure 11)."""

    USER_AGENT = b"User-agent", 0
    PATH = b"Path", 1
    ELEMENT = b"Element", 2
    DISALLOW = b"Disallow", 3
    GUIDE = b"Guide", 3
    LANG = b"Lang", 4
    GUIDELINE = b"Guideline", 4

    @property
    def level(self) -> int:
        """The level of indentation, from 0."""
        return self.value[1]


SPELLINGS = {keyword.value[0].lower(): keyword for keyword in Keyword} | {
    # LENIENT: misspellings that are common in robots.txt files.
    b"useragent": Keyword.USER_AGENT,
    b"user agent": Keyword.USER_AGENT,
    b"dissallow": Keyword.DISALLOW,
    b"dissalow": Keyword.DISALLOW,
    b"disalow": Keyword.DISALLOW,
    b"diasllow": Keyword.DISALLOW,
    b"disallaw": Keyword.DISALLOW,
}
# LENIENT: white space may be before the colon, or instead of it.
LINE = re.compile(
    rb"(%s)((?i:%s))(?:[ \t]*+(:)|(?![^ \t\r\n]))[ \t]*+([^\r\n]*+)"
    % (INDENTATION, b"|".join(sorted(SPELLINGS, reverse=True)))
)
_EMPTY_LINE = re.compile(rb"%s(?:#|[\r\n]|\Z)" % INDENTATION)  # a comment, or a blank line
NOTHINGS = re.compile(rb"(?:%s(?:#[^\r\n]*+)?+%s)++" % (INDENTATION, EOL))


def parse(text: bytes, *, url: str = "", cut: bool = False) -> AiTxt:
    """Read a file. Never raises. The time is linear in the octets.

    `text` and `cut` are the results of `text_of`. A file in another format has no rules here.
    """
    findings = Findings(url)
    kind = kind_of(text)
    if kind != "elements":
        if kind or not _is_blank(text):
            description = (
                "in Spawning's format, the opt-out by file type"
                if kind
                else "in neither of the formats of ai.txt"
            )
            findings.report("ait.format", f"This file is {description}.")
        return AiTxt(rules=(), findings=tuple(findings))
    reader = _Reader(findings)
    lines = Lines(text)
    while True:
        lines.skip(NOTHINGS)
        line = lines.read()
        if not line:
            break
        match = LINE.match(line)
        if match and (match[3] or is_line_of(SPELLINGS[match[2].lower()], match[4])):
            reader.read(match, lines.number, lines.line_start)
        elif not _EMPTY_LINE.match(line) and not reader.read_below(
            line, lines.number, lines.line_start
        ):
            name, column = (
                line.lstrip(b" \t").partition(b":")[0],
                len(line) - len(line.lstrip(b" \t")) + 1,
            )
            message = (
                "`{}` is not a keyword. Begin a comment with `#`."
                if name.startswith(b"//")
                else "`{}` is not a keyword."
            )
            findings.report(
                "ait.keyword", message, name[:100].rstrip(), line=lines.number, column=column
            )
    reader.close()
    if cut:
        reader.rules.cut(lines.number, lines.line_start)
    return AiTxt(rules=reader.rules.close(), findings=tuple(findings))


def _is_blank(text: bytes) -> bool:
    lines = Lines(text)
    lines.skip(NOTHINGS)
    return _EMPTY_LINE.match(lines.read()) is not None


def is_line_of(keyword: Keyword, value: bytes) -> bool:
    """Return True if a line without a colon after its keyword is a line of this keyword.

    `value` is the rest of the line. `Path /a html` is a Path line. `Path names are short` is prose,
    so the result is False.
    """
    if keyword is Keyword.PATH:
        return value[:1] in (b"/", b"*")
    if keyword in (Keyword.DISALLOW, Keyword.GUIDE):
        if keyword is Keyword.DISALLOW and not value.strip():
            return True  # the actions may be on the next lines
        names = [name.decode("latin-1").lower() for name in NAME.findall(replace_odd_spaces(value))]
        return bool(names) and all(name == ALL or name in KNOWN_ACTIONS for name in names)
    return keyword is not Keyword.GUIDELINE and len(value.split()) == 1


class _Reader:
    """Reads a file line by line. Its state is the blocks that are open at the line.

    If a block is still empty when the next block of its kind begins, both share the content of the
    next block: two User-agent lines without a Path between them begin one block for both agents.
    """

    def __init__(self, findings: Findings) -> None:
        self.rules = RuleList(findings)
        self._findings = findings
        self._values = Values(findings)
        self._unit = b""  # the indentation for one level. b"" until a line shows it
        self._agents: tuple[str, ...] = ()
        self._names: set[str] = set()  # the names in `_agents`
        self._paths: list[Path] = []
        self._file_types: set[str] = set()  # the file types of `_paths`
        self._elements: list[str] = []
        # Level and number of the last line, if this line began a block. Else None.
        self._opened: tuple[int, int] | None = None
        self._is_below_disallow = False  # the last line with a keyword is a Disallow
        self._guide: ElementRule | None = None  # the Guide that is still open
        self._guidelines: list[Guideline] = []
        self._lang = UNDETERMINED

    def read(self, match: re.Match[bytes], line: int, offset: int) -> None:
        """Read a line with a keyword."""
        keyword = SPELLINGS[match[2].lower()]
        self._is_below_disallow = keyword is Keyword.DISALLOW
        self._check(match, keyword, line)
        value, position = match[4], Position(line, match.start(4) + 1)
        # In an element `#` begins a CSS id, and in a guideline it is an ordinary character.
        # LENIENT: in all other values it begins a comment.
        if keyword not in (Keyword.ELEMENT, Keyword.GUIDELINE) and b"#" in value:
            column = position.column + value.find(b"#")
            self._findings.report(
                "ait.comment", "Put the comment on a line of its own.", line=line, column=column
            )
            value = value.partition(b"#")[0]
        value = value.rstrip(b" \t")
        if keyword.level < 4:
            self._close_guide()
        match keyword:
            case Keyword.USER_AGENT:
                self._read_agents(value, position)
            case Keyword.PATH:
                self._read_path(value, position)
            case Keyword.ELEMENT:
                self._read_element(value, position)
            case Keyword.DISALLOW | Keyword.GUIDE:
                self._read_actions(keyword, value, position, offset)
            case _:
                self._read_guideline(keyword, value, position)

    def read_below(self, line: bytes, number: int, offset: int) -> bool:
        """Read a line without a keyword below a Disallow, if it lists known actions (AIT-14).

        The actions are added to those of the Disallow. Return True if the line was read so, and
        False if it is no such line.
        """
        value = line.partition(b"#")[0].strip()
        if not self._is_below_disallow or not are_known_actions(value):
            return False
        position = Position(number, line.find(value) + 1)
        message = "`{}` is read as part of the Disallow above. Write the actions after its colon."
        self._findings.report(
            "ait.keyword", message, value, line=number, column=position.column, length=len(value)
        )
        self._read_actions(Keyword.DISALLOW, value, position, offset)
        return True

    def close(self) -> None:
        """End the open blocks at the end of the file."""
        self._close_guide()
        self._begin(-1, 0)

    def _check(self, match: re.Match[bytes], keyword: Keyword, line: int) -> None:
        """Report an odd keyword, colon or indentation. None of them changes the rules (AIT-14)."""
        indentation, name, colon, _ = match.groups()
        column = len(indentation) + 1
        if name != keyword.value[0]:
            self._findings.report(
                "ait.keyword",
                "`{}` is read as `{}`",
                name,
                keyword.value[0],
                line=line,
                column=column,
            )
        if not colon:
            self._findings.report(
                "ait.keyword",
                "`{}` has no colon. Write one after it.",
                name,
                line=line,
                column=column + len(name),
            )
        if (
            not self._unit
            and keyword.level
            and indentation in (unit * keyword.level for unit in (b"  ", b"    ", b"\t"))
        ):
            self._unit = indentation[: len(indentation) // keyword.level]
        if indentation != self._unit * keyword.level or (keyword.level and not indentation):
            message = (
                f"`{{}}` belongs to level {keyword.level}. Indent it by 2 spaces, 4 spaces "
                "or a tab for each level."
            )
            self._findings.report("ait.indentation", message, name, line=line, column=column)

    def _begin(self, level: int, line: int) -> bool:
        """Begin a block in a line, and report the block before it if that block is empty.

        Return True if the new block shares its content with an empty block of the same level just
        before it.
        """
        opened, self._opened = self._opened, (level, line)
        if opened and opened[0] == level:
            self._findings.report(
                "ait.empty",
                "The block is empty, so it shares the content of the next one.",
                line=opened[1],
            )
            return True
        if opened and opened[0] > level:
            self._findings.report(
                "ait.empty", "The block is empty, so it has no effect.", line=opened[1]
            )
        return False

    def _read_agents(self, value: bytes, position: Position) -> None:
        if not self._begin(0, position.line):
            self._agents, self._names = (), set()
        agents = [name for name in self._values.agents(value, position) if name not in self._names]
        if agents:
            self._agents = (
                self._values.join_names((*self._agents, *agents), position)
                if self._agents
                else tuple(agents)
            )
            self._names = set(self._agents)
        self._paths, self._file_types, self._elements = [], set(), []

    def _read_path(self, value: bytes, position: Position) -> None:
        if not self._begin(1, position.line):
            self._paths, self._file_types = [], set()
        self._elements = []
        path = self._values.path_and_type(value, position)
        if not self._agents:
            self._findings.report(
                "ait.orphan",
                "The path has no agent above it, so it has no effect. Add `User-agent: "
                "*` above it.",
                line=position.line,
            )
        elif path:
            self._paths.append(path)
            self._file_types.add(path.file_type)

    def _read_element(self, value: bytes, position: Position) -> None:
        if not self._begin(2, position.line):
            self._elements = []
        self._elements.append(self._values.element(value, position, self._file_types))
        if not self._paths:
            self._findings.report(
                "ait.orphan",
                "The element has no path above it, so it has no effect. Add a Path above it.",
                line=position.line,
            )

    def _read_actions(
        self, keyword: Keyword, value: bytes, position: Position, offset: int
    ) -> None:
        self._opened = None
        actions = self._values.actions(value, position, are_prohibited=keyword is Keyword.DISALLOW)
        if not self._paths:
            self._findings.report(
                "ait.orphan",
                "The line has no path above it, so it has no effect. Add a Path and an "
                "Element above it.",
                line=position.line,
            )
        elif not self._elements:
            self._findings.report(
                "ait.orphan",
                "The line has no element above it, so the whole document is meant. Add "
                "an Element above it.",
                line=position.line,
            )
        rule = everywhere(actions, position.line, offset)
        if keyword is Keyword.GUIDE:
            self._guide = replace(rule, verdict=None)
        elif actions:
            self._add(rule)

    def _read_guideline(self, keyword: Keyword, value: bytes, position: Position) -> None:
        if self._guide is None:
            self._findings.report(
                "ait.orphan",
                "The line has no Guide above it, so it has no effect. Add a Guide above it.",
                line=position.line,
            )
        elif keyword is Keyword.LANG:
            self._lang = self._values.lang(value, position)
        elif text := self._values.guideline(value, position):
            if self._lang == UNDETERMINED:
                self._findings.report(
                    "ait.language",
                    "The guideline has no language. Add a Lang above it.",
                    line=position.line,
                )
            self._guidelines.append(Guideline(self._lang, text, position.line))

    def _close_guide(self) -> None:
        guide, self._guide = self._guide, None
        guidelines, self._guidelines, self._lang = tuple(self._guidelines), [], UNDETERMINED
        if guide and guide.actions:
            if not guidelines:
                self._findings.report(
                    "ait.empty",
                    "The Guide has no guideline. Add a Guideline below it.",
                    line=guide.line,
                )
            self._add(replace(guide, guidelines=guidelines))

    def _add(self, rule: ElementRule) -> None:
        self.rules.add(
            replace(
                rule,
                agents=self._agents,
                path=path.pattern,
                file_type=path.file_type,
                element=element,
            )
            for path in self._paths
            for element in self._elements or [ALL]
        )
