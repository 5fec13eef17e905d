"""robots.txt, by RFC 9309 (Robots Exclusion Protocol).

    parse(body) -> Robots              the content of the file, and findings for its author
    Robots.for_agent(token)            the rules of the agent's groups
    AgentRules.decide(target)          the line that decides

1. Lines that cannot be read are ignored (section-2.3.1.1). A list of User-agent lines begins a
   group. The list continues until a rule comes, whatever lines are between (section-2.2.4). Rules
   before the first group apply to no agent.
2. All groups that name the agent, in upper or lower case, count as one group. If no group names the
   agent, all groups for `*` count as one group (section-2.2.1).
3. Rules and targets are compared in one normal form, octet by octet from the start of the path. `*`
   and a final `$` are special (section-2.2.2, section-2.2.3). A rule without a path has no effect.
4. Of the matching rules, the one with the longest pattern decides. If an Allow and a Disallow are
   equally long, the Allow decides. Of equal rules, the first line is the reason. If no rule
   matches, the request is allowed (section-2.2.2).
5. If a rule is too long, only its beginning is read. It can refuse, and allows nothing.

`reading` decides when ACAP overrides a rule. The supported records and every reading of an open
point are in docs/robots.md.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from protego import Protego

from comity.bounded import Bounded
from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.rates import Rates
from comity.policies.formats.robots.rates import crawl_delay, request_rates, visit_time
from comity.policies.syntax.lines import EOL, MAX_BYTES, MAX_LINE, Findings, Lines, text_of
from comity.policies.syntax.path_patterns import (
    NORMAL_IN_PATTERNS,
    PatternIndex,
    normal_pattern,
    normal_target,
)
from comity.policies.syntax.printable import printable
from comity.policies.syntax.records import (
    NAME,
    RATE_KINDS,
    RULE_KINDS,
    Record,
    RecordKind,
    read_record,
)
from comity.policies.vocabulary.known_crawlers import known

SPEC = "https://www.rfc-editor.org/rfc/rfc9309.html"
MAX_SITEMAPS = 1000  # maximum sitemaps that are read of one file
# Numbers for lines that are in no group: before all groups, or in an ACAP record.
BEFORE_ALL, IN_ACAP = -1, -2
# The maximum number of Crawl-delay, Request-rate and Visit-time lines that are read in the groups
# of one agent. A file with more lines in total is reported.
MAX_RATES = 1000
MAX_RULES = 16  # the maximum number of compiled sets of groups of a file


# section-2.2.1
#   product-token = identifier / "*"
#   identifier = 1*(%x2D / %x41-5A / %x5F / %x61-7A)
# LENIENT: a token may contain digits, and any text may follow it. `*` is the token for any agent
# unless a character of a name follows it.
TOKEN = re.compile(rb"[A-Za-z0-9_-]++|\*(?![A-Za-z0-9_*-])")

# Whole lines that `_FileReader` can skip. In an open list of agents, these are lines without a
# colon (_BLANKS). Elsewhere they are lines without a record (_UNKNOWNS). After the first rule of a
# group, further rules can be skipped too (_MORE_RULES).
_BLANK = rb"(?!%s)[^\r\n:#]*+(?:#[^\r\n]*+)?+%s" % (NAME, EOL)
_UNKNOWN = rb"(?!%s)[^\r\n]*+%s" % (NAME, EOL)
# Rules in the usual form: no comment, nothing after the pattern, and the pattern in normal form.
_USUAL_RULE = rb"(?:[Dd]is)?+[Aa]llow: ?+[/*][%s]{0,1000}+\$?+\r?+\n" % NORMAL_IN_PATTERNS
_RULE = rb"(?:[Dd]is|[Dd]IS)?+(?:[Aa]llow|ALLOW):[ \t]*+(?:[/*][^\r\n]{0,1000}+)?+%s" % EOL
_BLANKS = re.compile(rb"(?:%s)++" % _BLANK)
_UNKNOWNS = re.compile(rb"(?:%s)++" % _UNKNOWN)
_MORE_RULES = re.compile(rb"(?:%s|%s|%s)++" % (_USUAL_RULE, _RULE, _UNKNOWN))
# At least four rules, because fewer rules are read one by one as quickly.
_USUAL_RULES = re.compile(rb"(?:%s){4,}+" % _USUAL_RULE)
_NAME_OF_RULE = re.compile(r"^([A-Za-z]++:)", re.MULTILINE)
# A rule without a comment. The last line of many files has no line end.
_BARE_RULE = re.compile(rb"([Dd]is)?+[Aa]llow:[ \t]*+([/*][^#\r\n]{0,1000}+)(?:%s|\Z)" % EOL)


class RuleLine(NamedTuple):
    """One Allow or Disallow line (section-2.2.2).

    Attributes:
        path_pattern: The pattern as written, printable.
        line: The number of the line, from 1, in the bytes as received.
        text: The line as written, printable.
    """

    verdict: Verdict
    path_pattern: str
    line: int
    text: str


class Robots:
    """One robots.txt: its octets, the starts of its groups, and the agents that they name.

    Rules are compiled when an agent asks.
    """

    def __init__(
        self,
        text: bytes,
        groups: list[tuple[int, int]],
        agents: bytes,
        sitemaps: tuple[bytes, ...],
        acap: list[int],
        findings: tuple[Finding, ...],
        *,
        is_joined: bool,
        refuses_only: bool = False,
    ) -> None:
        """Store a file that `_FileReader` has read.

        `refuses_only` means that nothing in the file permits anything (RFC-10).
        """
        self.findings = findings
        self.refuses_only = refuses_only
        self.text = text  # the octets that were read, without a BOM and cut at the maximum length
        # Group -> its start in the text.
        self._starts = array("I", [start for start, _ in groups] + [len(text)])
        # Group -> the number of its first line.
        self._numbers = array("I", [number for _, number in groups])
        # For each agent line: "\n", the token in lower case, "\t", the number of the group.
        self._agents = agents
        self._sitemaps = sitemaps
        self._acap = array("I", acap)  # starts and ends of ACAP records, alternating
        # True if any list of agents continues after a record that is neither agent nor rule.
        self._is_joined = is_joined
        # Groups -> their rules, for agents to which ACAP makes no statement.
        self._rules: Bounded[tuple[int, ...], AgentRules] = Bounded(MAX_RULES)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The values of the Sitemap lines (section-2.2.4). They belong to no group."""
        values = (value.decode("utf-8", "replace") for value in self._sitemaps)
        content = "".join(f"Sitemap: {value}\n" for value in values if value.isprintable())
        return tuple(Protego.parse(content).sitemaps)

    def names(self, token: str) -> bool:
        """Return True if a group names the token."""
        return bool(self._groups_with(token.lower().encode()))

    @cached_property
    def product_tokens(self) -> frozenset[str]:
        """The product tokens that groups name, in lower case."""
        return frozenset(
            token.decode() for token in re.findall(rb"\n([^\t]++)\t", self._agents)
        ) - {"*"}

    def for_agent(self, token: str, *, contested: Container[str] = ()) -> AgentRules:
        """Return the rules of all groups that name the token, or else of all groups for `*`.

        See section-2.2.1. `contested` contains the patterns, in normal form, that ACAP makes a
        statement about. See `Replaced`.
        """
        groups = tuple(self.groups_naming(token))
        if contested:
            return AgentRules(list(map(self.cursor, groups)), contested)
        rules = self._rules.get(groups)
        if rules is None:
            rules = self._rules[groups] = AgentRules(list(map(self.cursor, groups)), ())
        return rules

    @cached_property
    def combinations(self) -> list[tuple[int, ...]]:
        """The sets of groups that bind an agent together, one for each agent that groups name.

        A set that binds several agents occurs once.
        """
        groups: dict[bytes, dict[int, None]] = {}
        for token, group in re.findall(rb"\n([^\t]++)\t([0-9]++)", self._agents):
            groups.setdefault(token, {})[int(group)] = None
        return list(dict.fromkeys(map(tuple, groups.values())))

    def rule_lines(self, group: int) -> RuleLines:
        """Return the rules and rate lines of one group."""
        return RuleLines([self.cursor(group)])

    @property
    def groups(self) -> range:
        """The numbers of all groups."""
        return range(len(self._numbers))

    def cursor(self, group: int) -> Lines:
        """Return the lines of a group."""
        return Lines(
            self.text, self._starts[group], self._starts[group + 1], self._numbers[group] - 1
        )

    def groups_naming(self, token: str) -> list[int]:
        """Return the numbers, from 0, of the groups that bind the agent.

        These groups name the agent. If no group does, they are the groups for `*`.
        """
        return self._groups_with(token.lower().encode()) or self._groups_with(b"*")

    def group_at(self, offset: int) -> int:
        """Return the number of the group that contains this octet of the text.

        BEFORE_ALL and IN_ACAP mean that the octet is in no group. In a file that can only refuse
        (`refuses_only`), the result is always IN_ACAP, so that lines of other formats permit
        nothing.
        """
        in_acap = bisect_right(self._acap, offset) % 2
        return IN_ACAP if in_acap or self.refuses_only else bisect_right(self._starts, offset) - 1

    def lines_of(self, group: int) -> range:
        """Return the numbers of the group's lines."""
        end = self._numbers[group + 1] if group + 1 < len(self._numbers) else len(self.text) + 1
        return range(self._numbers[group], end)

    def ended_at(self, offsets: Iterable[int]) -> Robots:
        """Return the file, read as if the lines at these offsets ended a list of agents.

        Rules end a list of agents too. If this makes no difference to any list, the result is this
        object itself.
        """
        if not self._is_joined:
            return self
        reader = _FileReader(self.text, Findings(""), frozenset(offsets))
        reader.refuses_only = self.refuses_only
        return reader.read()

    def _groups_with(self, token: bytes) -> list[int]:
        _, *entries = self._agents.split(b"\n%s\t" % token)
        return [
            int(group) for group in dict.fromkeys(entry.partition(b"\n")[0] for entry in entries)
        ]


def parse(
    body: bytes,
    *,
    url: str = "",
    oversized: bool = False,
    refuses_only: bool = False,
) -> Robots:
    """Read a robots.txt.

    `oversized` is True if the fetcher has cut the body. `refuses_only` is True if the body is a
    result of `refusals`. Never raises. The time is linear in the octets.
    """
    text, cut = text_of(body, cut=oversized)
    findings = Findings(url)
    if cut:
        findings.report(
            "robots.oversized",
            f"Only the whole lines in the first {min(len(body), MAX_BYTES)} octets are "
            "read. Shorten the file.",
        )
    reader = _FileReader(text, findings)
    reader.refuses_only = refuses_only
    return reader.read()


def refusals(text: bytes) -> bytes:
    """Return the text without Sitemap lines, and with an empty Disallow in place of each Allow.

    The empty Disallow ends a list of agents as the Allow does.
    """
    lines, kept = Lines(text), []
    while line := lines.read():
        record = read_record(line)
        if record is not None and record.kind in _PERMITTING:
            end = line[len(line.rstrip(b"\r\n")) :]
            line = (b"Disallow:" if record.kind is RecordKind.ALLOW else b"") + end
        kept.append(line)
    return b"".join(kept)


_PERMITTING = (RecordKind.ALLOW, RecordKind.SITEMAP)


class _FileReader:
    """Reads a file once: its groups, and findings for its author. Most lines are skipped."""

    refuses_only = False  # see `Robots`

    def __init__(self, text: bytes, findings: Findings, ends: frozenset[int] = frozenset()) -> None:
        """Store the text. `ends` are offsets of lines that end a list of agents, as rules do."""
        self._ends = ends
        self._lines = Lines(text)
        self._findings = findings
        self._groups: list[tuple[int, int]] = []
        self._agents = bytearray()
        self._sitemaps: list[bytes] = []
        self._acap: list[int] = []
        self._rates = 0
        self._is_naming = False  # True in a list of agent lines, until its first rule
        # The number of the first line in this list that is neither an agent nor a rule. 0 if there
        # is no such line.
        self._interrupted_at = 0
        # The same number, but 0 until an agent line follows that line.
        self._joined_at = 0
        self._is_joined = False  # True if an agent line has followed such a line in any list
        # True in an ACAP record: conventional rules have no effect here (ACAP 1.0 section-2.9.2).
        self._in_acap = False

    def read(self) -> Robots:
        while line := self._next_line():
            record = read_record(line)
            if record is None:
                if self._lines.line_start in self._ends:
                    self._is_naming = False
                elif self._is_naming and b":" in line.partition(b"#")[0]:
                    self._interrupt_list()
            elif self._in_acap and (record.kind in RULE_KINDS or record.kind in RATE_KINDS):
                message = "`{}` has no effect in an ACAP record. Put a User-agent line above it."
                column = line.lower().find(record.name) + 1
                self._report(
                    "acap.conventional",
                    message,
                    record.name,
                    column=column,
                    length=len(record.name),
                )
            else:
                if record.name != record.kind.value or not record.colon or record.overlong:
                    self._report_spelling(record, line)
                self._read_record(record, line)
        sitemaps = tuple(self._sitemaps[:MAX_SITEMAPS])
        findings = tuple(self._findings)
        agents = bytes(self._agents)
        return Robots(
            self._lines.text,
            self._groups,
            agents,
            sitemaps,
            self._acap,
            findings,
            is_joined=self._is_joined,
            refuses_only=self.refuses_only,
        )

    def _next_line(self) -> bytes:
        """Return the next line that may matter, or b"" at the end."""
        if self._is_naming and (self._ends or not self._interrupted_at):
            self._lines.skip(_BLANKS)
        elif self._is_naming or self._joined_at or self._in_acap or not self._groups:
            self._lines.skip(_UNKNOWNS)
        else:
            self._lines.skip(_MORE_RULES)
        return self._lines.read()

    def _report(
        self, rule: str, message: str, *quoted: bytes, column: int = 0, length: int = 0
    ) -> None:
        self._findings.report(
            rule, message, *quoted, line=self._lines.number, column=column, length=length
        )

    def _report_spelling(self, record: Record, line: bytes) -> None:
        column = line.lower().find(record.name) + 1
        if record.name != record.kind.value:
            length = len(record.name)
            self._report(
                "robots.misspelled",
                "`{}` is read as `{}`",
                record.name,
                record.kind.value,
                column=column,
                length=length,
            )
        if not record.colon:
            self._report(
                "robots.missing-colon",
                "`{}` has no colon. Write one after it.",
                record.name,
                column=column + len(record.name),
            )
        if record.overlong:
            self._report("robots.long-line", f"Only the first {MAX_LINE} octets are read.")

    def _read_record(self, record: Record, line: bytes) -> None:
        kind = record.kind
        if kind is RecordKind.AGENT:
            self._switch_acap(begins=False)
            self._read_agent(record, line)
        elif kind in RULE_KINDS:
            self._read_rule(record, line)
        elif kind is RecordKind.SITEMAP:
            self._read_sitemap(record.value)
        elif kind is RecordKind.ACAP_CRAWLER:
            self._switch_acap(begins=True)
            self._interrupt_list()
        else:
            self._interrupt_list()
            self._count_rate()

    def _switch_acap(self, *, begins: bool) -> None:
        if self._in_acap is not begins:
            self._in_acap = begins
            self._acap.append(self._lines.line_start)

    def _interrupt_list(self) -> None:
        if self._is_naming and not self._interrupted_at:
            self._interrupted_at = self._lines.number

    def _read_agent(self, record: Record, line: bytes) -> None:
        value = record.value
        if not self._is_naming:
            self._is_naming, self._interrupted_at = True, 0
            self._groups.append((self._lines.line_start, self._lines.number))
        self._joined_at = self._interrupted_at
        self._is_joined |= self._joined_at > 0
        match = TOKEN.match(value)
        token = match[0] if match else b""
        # Some crawlers have names with other signs, and their operators write them as they are.
        if (token != value or not token) and not known(value.decode("utf-8", "replace")):
            message, column = (
                "`{}` is read as `{}`"
                if token
                else "`{}` names no crawler. Write `*` for all crawlers, or one crawler's name.",
                record.column(line),
            )
            self._report("robots.agent", message, value, token, column=column, length=len(value))
        if token:
            self._agents += b"\n%s\t%d" % (token.lower(), len(self._groups) - 1)

    def _read_rule(self, record: Record, line: bytes) -> None:
        self._is_naming = False
        if not self._groups:
            self._report(
                "robots.no-agent", "This rule applies to no crawler. Put `User-agent: *` above it."
            )
        if self._joined_at and record.kind is RecordKind.ALLOW and record.value:
            message = "The agents that are named above this record share the rules below it."
            self._findings.report("robots.joined", message, line=self._joined_at)
            self._joined_at = 0
        if record.value and record.value[:1] not in (b"/", b"*"):
            message, column = (
                "`{}` matches nothing. Begin it with `/` or `*`.",
                record.column(line),
            )
            self._report(
                "robots.path", message, record.value, column=column, length=len(record.value)
            )

    def _read_sitemap(self, value: bytes) -> None:
        if len(self._sitemaps) == MAX_SITEMAPS:
            self._report("robots.sitemaps", f"Only the first {MAX_SITEMAPS} sitemaps are read.")
        if len(self._sitemaps) <= MAX_SITEMAPS:
            self._sitemaps.append(value)

    def _count_rate(self) -> None:
        self._rates += 1
        if self._rates == MAX_RATES + 1:
            self._report("robots.rates", f"Only the first {MAX_RATES} lines of an agent are read.")


_NO_RATES = Rates()

# A function that returns the verdict of ACAP on a contested pattern, or None if ACAP has none. A
# rule with this pattern and the other verdict has no effect (ACAP 1.0 section-2.9.2).
Replaced = Callable[[str], Verdict | None]


class RuleLines:
    """The rules and the rate lines of some groups, in the order of the file."""

    def __init__(self, groups: Iterable[Lines]) -> None:
        self.patterns: list[str] = []  # the patterns of the rules, in normal form
        self.allows: list[int] = []  # indexes of the rules that are Allow lines
        self.numbers = array("I")  # index of a rule -> number of its line
        # True if no Disallow line has a path, and every path of an Allow line can be read.
        self.only_allows = True
        # Lines of RATE_KINDS: the kind, the line number, the line as text, the value.
        self.rate_lines: list[tuple[RecordKind, int, str, bytes]] = []
        for lines in groups:
            self._compile(lines)

    def _compile(self, lines: Lines) -> None:
        """Add the lines of a group."""
        patterns, allows = self.patterns, self.allows
        in_acap = False
        while True:
            first = lines.number + 1
            usual = b"" if in_acap else lines.skip(_USUAL_RULES)
            if usual:
                numbers = range(first, lines.number + 1)
                self.numbers.extend(numbers)
                allowing = _add_usual_rules(usual.decode("ascii"), len(numbers), patterns)
                allows += allowing
                self.only_allows &= len(allowing) == len(numbers)
                continue
            bare = None if in_acap else lines.match(_BARE_RULE)
            if bare:
                if bare[1]:
                    self.only_allows = False
                else:
                    allows.append(len(patterns))
                patterns.append(normal_pattern(bare[2].rstrip(b" \t")))
                self.numbers.append(lines.number)
                continue
            lines.skip(_UNKNOWNS)
            line = lines.read()
            if not line:
                break
            record = read_record(line)
            if record is None:
                continue
            if record.kind in (RecordKind.ACAP_CRAWLER, RecordKind.AGENT):
                in_acap = record.kind is RecordKind.ACAP_CRAWLER
            elif in_acap:
                continue
            elif record.kind in RULE_KINDS:
                pattern, allow = normal_pattern(record.value), record.kind is RecordKind.ALLOW
                if record.value and not (allow and pattern[0] in "/*" and not record.overlong):
                    self.only_allows = False
                # The end of an over-long pattern is unknown. As a Disallow, its beginning refuses
                # at least as much as the whole pattern. As an Allow, it might allow too much.
                if record.value and not (allow and record.overlong):
                    if allow:
                        allows.append(len(patterns))
                    patterns.append(pattern)
                    self.numbers.append(lines.number)
            elif record.kind in RATE_KINDS and len(self.rate_lines) < MAX_RATES:
                self.rate_lines.append((record.kind, lines.number, printable(line), record.value))


class AgentRules:
    """The rules that bind one agent: all lines of its groups, compiled."""

    def __init__(self, groups: list[Lines], contested: Container[str]) -> None:
        compiled = RuleLines(groups)
        patterns, allows = compiled.patterns, compiled.allows
        self.has_group = bool(groups)
        self.only_allows = compiled.only_allows
        self._text = groups[0].text if groups else b""
        self._number = compiled.numbers
        self._rate_lines = compiled.rate_lines
        self._index = PatternIndex(patterns, allows)
        # rule -> pattern and verdict
        self._contested: dict[int, tuple[str, Verdict]] = {}
        if contested:
            allowing = frozenset(allows)
            self._contested = {
                rule: (pattern, Verdict.ALLOW if rule in allowing else Verdict.DENY)
                for rule, pattern in enumerate(patterns)
                if pattern in contested
            }

    def decide(self, target: str, replaced: Replaced | None = None) -> RuleLine | None:
        """Return the rule that decides on a target, or None if no rule matches.

        `target` is path and query. The longest matching pattern decides, and Allow on a tie
        (section-2.2.2).
        """
        rule = self._deciding_rule(target, replaced)
        return None if rule < 0 else self._rule_line(rule)

    def deciding_line(self, target: str, replaced: Replaced | None = None) -> int:
        """Return the line number of the rule that `decide` returns, or 0 if no rule matches.

        The number is enough for a cache of decisions: `rule_in` returns the rule.
        """
        rule = self._deciding_rule(target, replaced)
        return 0 if rule < 0 else self._number[rule]

    def rule_in(self, line: int) -> RuleLine:
        """Return the rule in a line. `line` is a number that `deciding_line` has returned."""
        return self._rule_line(bisect_left(self._number, line))

    def _deciding_rule(self, target: str, replaced: Replaced | None) -> int:
        """Return the number of the deciding rule, or -1 if no rule matches."""
        if replaced is None or not self._contested:
            return self._index.best(normal_target(target))
        return next(
            (
                rule
                for rule in self._index.all(normal_target(target))
                if self._has_effect(rule, replaced)
            ),
            -1,
        )

    def _has_effect(self, rule: int, replaced: Replaced) -> bool:
        if rule not in self._contested:
            return True
        pattern, verdict = self._contested[rule]
        return replaced(pattern) in (None, verdict)

    def first_of(self, lines: range) -> int:
        """Return the number of the first rule with a path in a range of line numbers, or 0."""
        rule = bisect_left(self._number, lines.start)
        return self._number[rule] if rule < len(self._number) and self._number[rule] in lines else 0

    def matching(self, target: str) -> tuple[RuleLine, ...]:
        """Return all matching rules, the deciding one first."""
        return tuple(self._rule_line(rule) for rule in self._index.all(normal_target(target)))

    @cached_property
    def _offsets(self) -> array[int]:
        """The offset of each rule's line in the text. Needed only to quote a rule."""
        starts = array("I", accumulate(map(len, self._text.splitlines(keepends=True)), initial=0))
        return array("I", [starts[number - 1] for number in self._number])

    def _rule_line(self, rule: int) -> RuleLine:
        line = Lines(self._text, self._offsets[rule]).read()
        record = read_record(line)
        assert record
        verdict = Verdict.ALLOW if record.kind is RecordKind.ALLOW else Verdict.DENY
        return RuleLine(verdict, printable(record.value), self._number[rule], printable(line))

    def _values(self, kind: RecordKind) -> list[bytes]:
        return [value for line_kind, _, _, value in self._rate_lines if line_kind is kind]

    @cached_property
    def rates(self) -> Rates:
        """The rates that the lines ask for."""
        if not self._rate_lines:
            return _NO_RATES
        return Rates(
            crawl_delay(self._values(RecordKind.CRAWL_DELAY)),
            request_rates(self._values(RecordKind.REQUEST_RATE)),
            visit_time(
                (number, line, value)
                for line_kind, number, line, value in self._rate_lines
                if line_kind is RecordKind.VISIT_TIME
            ),
        )


def _add_usual_rules(usual: str, number: int, patterns: list[str]) -> list[int]:
    """Add the patterns of rules in the usual form, and return the indexes of the Allow lines.

    `number` is the number of rules."""
    words = usual.split()  # name, pattern, name, pattern
    if len(words) < 2 * number:  # rules without a space after the colon
        words = _NAME_OF_RULE.sub(r"\1 ", usual).split()
    allows = [
        index for index, name in enumerate(words[::2], len(patterns)) if len(name) == len("Allow:")
    ]
    patterns += words[1::2]
    return allows
