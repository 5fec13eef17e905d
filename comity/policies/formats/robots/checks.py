"""Checks of a robots.txt beyond its syntax: lines without effect, and lines that repeat others.

No crawler runs these checks. The time is linear in the octets of the file, except for sorting the
patterns.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import compress, islice, repeat

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.acap import checks as acap
from comity.policies.formats.authoring import Remarks, literal
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.grammar import BEFORE_ALL, TOKEN, AgentRules, Robots, RuleLines
from comity.policies.formats.robots.misplaced import READ_ELSEWHERE, advice, strip_joints
from comity.policies.formats.robots.rates import crawl_delay, request_rates, visit_time
from comity.policies.syntax.lines import EOL, Lines, line_ends
from comity.policies.syntax.records import (
    MISSPELLINGS,
    NAME,
    RATE_KINDS,
    RULE_KINDS,
    Record,
    RecordKind,
    read_record,
)
from comity.policies.syntax.suspicions import (
    INVISIBLE,
    broken_escapes,
    has_dot_segment,
    nearest,
    right_path,
    several_names,
    several_paths,
    suspicions,
    unquoted,
)
from comity.policies.syntax.urls import target_of

# Lines that need no check. Most lines of most files are of this kind.
_PLAIN = (
    rb"[ \t]*+(?:(?i:(?:dis)?+allow)[ \t]*+:[ "
    rb"\t]*+(?![^\r\n]*?(?:/\.|,/|%%(?![0-9A-Fa-f]{2})))"
    rb"(?:[/*][A-Za-z0-9\-._~/?@!&+,;:=%%*]*+\$?+)?+[ \t]*+"
    rb"(?:(?<=[ \t:])#[^\r\n]*+)?+"
    rb"|(?i:user-agent)[ \t]*+:[ \t]*+[A-Za-z0-9_*-]*+[ \t]*+"
    rb"|#[^\r\n]*+)?+(?:%s|\Z)" % EOL
)
_ODD = re.compile(rb"(?:%s)*+([^\r\n]*+(?:%s|\Z))" % (_PLAIN, EOL))
_BLANK_LINES = re.compile(rb"(?>%s)(?:[ \t]*+(?>%s))++" % (EOL, EOL))
# A line that is not a record only because of characters before the name or instead of the colon.
_HIDDEN = re.compile(
    rb"((?:[ \t]|%s)*+)(%s)((?:[ \t]|%s)*+)(:|=|;|-(?=[ \t]++[/*])|\xef\xbc\x9a)"
    % (INVISIBLE.pattern, NAME, INVISIBLE.pattern)
)
_UNKNOWN = re.compile(rb"[ \t]*+([A-Za-z][A-Za-z0-9_. -]{1,39}+):(?!//)")
_TAG = re.compile(rb"[ \t]*+(<(?:!--|[!/?]?[A-Za-z])[^\r\n]*+)")
_META = re.compile(rb"<meta\b[^>]*(?:bot\b|robots|tdm-)", re.IGNORECASE)
# A `//` or `/*` that is meant to begin a comment. A path begins with `/*` too.
_SLASHES = re.compile(
    rb"[ \t]*+(//|/\*(?=(?:\*++/?|[=-]{2,})?+(?:[A-Za-z']++[.,:*]*+/?)?+(?:\s|\Z)))"
)
_BARE_PATH = re.compile(rb"[ \t]*+(/\*[^\s#]++)[ \t]*+(?:#|[\r\n]|\Z)")
# The mark of a list, a quotation or a numbered line in Markdown, before a record.
_MARKED = re.compile(
    rb"[ \t]*+((?:[-*+>]|\xe2\x80\xa2|[0-9]{1,3}[.)])[ \t]++)(?=%s[ \t]*+:)" % NAME
)
_FENCE = re.compile(rb"[ \t]*+(```|~~~)")
_WHOLE_FILE_TYPE = re.compile(
    rb"/\.(?:aspx?|docx?|gif|jpe?g|mp[34]|pdf|php|png|pptx?|webp|xlsx?|zip)\$?"
)
SLOW = 1000  # a Crawl-delay of so many seconds is probably in milliseconds
_SITEMAP = re.compile(rb"(?:\A|(?<=[\r\n]))([ \t]*+(?i:site-?maps?)[^\r\n]*+)")
_ABSOLUTE = re.compile(rb"https?://", re.IGNORECASE)
_AGENT_LINE = re.compile(rb"[\r\n]((?:[ \t]|\xef\xbb\xbf)*+(?i:user[ -]?+agent)[^\r\n]*+)")
ANY = "*"  # the token of a group for all other agents
MAX_TAG = 100  # maximum octets of a tag that a message quotes
MAX_SUSPICIOUS = 1000  # maximum rules with a finding. Further rules are not checked
MAX_NAMES = 200  # maximum names, known and unknown, in the search for misspellings
# Checks of groups stop when they have read this number times the rules of the file. Without a
# limit, many agents in several groups would make the checks slow.
MOST_RULES = 4

_OF_SUSPICION = {
    "url": "robots.url",
    "quotes": "robots.quotes",
    "invisible": "robots.invisible",
    "second": "robots.second-path",
    "space": "robots.space",
    "dollar": "robots.dollar",
    "regex": "robots.regex",
}


def check(site: SiteFiles) -> Iterator[Finding]:
    """Yield findings about lines of the site's robots.txt that are probably mistakes."""
    file = robots_of(site)
    if file.robots and not file.is_marked_up:
        remarks = Remarks(file.url)
        _LineCheck(file.robots, remarks, site.robots_lines).check()
        _check_whole(file.robots, remarks)
        if not file.acap:
            _check_sitemaps(file.robots, remarks, site.origin)
        speaking = frozenset(line.group for line in lines_of(site))
        _GroupCheck(file.robots, remarks, speaking, has_acap=file.acap is not None).check()
        if file.acap:
            acap.check(file.acap, file.text, remarks)
            if not all(file.robots.rule_lines(group).only_allows for group in file.robots.groups):
                acap.check_ignoring(file.acap, remarks)
        yield from remarks.findings


def _check_whole(robots: Robots, remarks: Remarks) -> None:
    """Report a file with text that has no record of any kind."""
    lines = Lines(robots.text)
    has_text = False
    while line := lines.read():
        text = line.partition(b"#")[0].strip()
        if read_record(line) or _UNKNOWN.match(line) or _HIDDEN.match(line):
            return
        has_text = has_text or bool(text)
    if has_text:
        message = (
            "No line of this file is a record, so it refuses nothing. Write lines such as "
            "`User-agent: *` and `Disallow: /private/`."
        )
        remarks.report("robots.no-records", message)


def _check_sitemaps(robots: Robots, remarks: Remarks, origin: str) -> None:
    """Report sitemaps that a file refuses to all crawlers that it does not name.

    Nothing is reported if these crawlers may not fetch the start page: the sitemaps are for others.
    Sitemaps at another origin are refused by the file of that origin.
    """
    if not _SITEMAP.search(robots.text) or _is_refused(rules := robots.for_agent(ANY), "/"):
        return
    number, before = 1, 0
    for match in _SITEMAP.finditer(robots.text):
        number += line_ends(robots.text, before, match.start(1))
        before = match.start(1)
        record = read_record(match[1])
        address = record.value.decode("utf-8", "replace") if record else ""
        if address.startswith(f"{origin}/") and _is_refused(rules, target_of(address)):
            message = (
                "Crawlers that this file does not name may not fetch this sitemap. Permit its "
                "path by an Allow line."
            )
            remarks.report("robots.sitemap-refused", message, line=number)


def _is_refused(rules: AgentRules, target: str) -> bool:
    rule = rules.decide(target)
    return rule is not None and rule.verdict is Verdict.DENY


class _LineCheck:
    """Checks each line by itself."""

    def __init__(self, robots: Robots, remarks: Remarks, others: Iterable[str]) -> None:
        """Store the file. `others` are the names of lines that belong to other formats."""
        self._robots = robots
        self._remarks = remarks
        self._spellings = {
            kind.value.decode(): kind.value.decode().capitalize()
            for kind in RecordKind
            if kind is not RecordKind.ACAP_CRAWLER
        }
        self._others = frozenset(others)
        self._spellings |= {name: name.title() for name in sorted(others)}
        self._suspicious = 0  # rules with a finding
        # True if the file has HTML elements. Lines of styles and scripts are then not reported as
        # unknown records.
        self._has_markup = False
        # Name -> the spelling of the known name that was probably meant, or "".
        self._meanings = dict.fromkeys(self._spellings, "")

    def check(self) -> None:
        text = self._robots.text
        number, before = 1, 0
        for match in _ODD.finditer(text):
            offset = match.start(1)
            number += line_ends(text, before, offset)
            before = offset
            if match[1]:
                self._check(match[1], number, offset)

    def _check(self, line: bytes, number: int, offset: int) -> None:
        record = read_record(line)
        if record is None:
            self._check_unread(line, number)
            return
        if record.unseen:
            message = (
                "An invisible character is beside `{}`, and other readers do not read this "
                "line. Delete the character."
            )
            column = line.lower().find(record.name) + 1
            self._remarks.report(
                "robots.invisible",
                message,
                record.name,
                line=number,
                column=column,
                length=len(record.name),
            )
        if record.kind is RecordKind.SITEMAP:
            self._check_sitemap(record, line, number)
        elif record.kind in RATE_KINDS and self._robots.group_at(offset) == BEFORE_ALL:
            message = "This limit applies to no crawler. Put `User-agent: *` above it."
            self._remarks.report("robots.no-agent", message, line=number)
        elif record.kind is RecordKind.AGENT:
            self._check_agent(record, line, number)
        elif (
            record.kind in RULE_KINDS
            and record.value
            and not record.overlong
            and self._robots.group_at(offset) >= 0
        ):
            self._check_rule(record, line, number)

    def _check_sitemap(self, record: Record, line: bytes, number: int) -> None:
        addresses = record.value.split()
        if not addresses:
            message = "This line has no address. Delete it, or write the URL of a sitemap."
            self._remarks.report("robots.sitemap-url", message, line=number)
        elif len(addresses) > 1 and all(map(_ABSOLUTE.match, addresses)):
            message = "`{}` is a second address. Write a Sitemap line for each."
            self._remarks.report("robots.sitemap-url", message, addresses[1], line=number)
        elif not _ABSOLUTE.match(record.value):
            message = (
                "`{}` is not an absolute URL, and few crawlers read others. Write it "
                "with https:// and the host."
            )
            self._report("robots.sitemap-url", message, record.value, record, line, number)

    def _report(
        self, rule: str, message: str, quoted: bytes, record: Record, line: bytes, number: int
    ) -> None:
        self._remarks.report(
            rule, message, quoted, line=number, column=record.column(line), length=len(record.value)
        )

    def _check_unread(self, line: bytes, number: int) -> None:
        if match := _HIDDEN.match(line):
            before, name, after, colon = match.groups()
            name = name.strip(b" \t")
            column = match.start(2) + 1
            if INVISIBLE.search(before) or INVISIBLE.search(after):
                message = (
                    "This line is not read, because an invisible character is beside `{}`. "
                    "Delete the character."
                )
                self._remarks.report(
                    "robots.invisible", message, name, line=number, column=column, length=len(name)
                )
            elif colon != b":":
                message = "This line is not read. Write `{}:`."
                self._remarks.report(
                    "robots.colon", message, name, line=number, column=column, length=len(name)
                )
        elif match := _UNKNOWN.match(line):
            self._check_unknown(match[1].rstrip(b" \t"), number, match.start(1) + 1)
        elif match := _TAG.match(line):
            self._check_markup(match[1].rstrip(b" \t"), number, match.start(1) + 1)
        elif match := _SLASHES.match(line):
            message, column = "`{}` does not begin a comment. Write `#`.", match.start(1) + 1
            self._remarks.report(
                "robots.misplaced", message, match[1], line=number, column=column, length=2
            )
        elif match := _BARE_PATH.match(line):
            message = (
                "A record is missing before this path, so the line is not read. "
                "Write `Disallow: {}`."
            )
            path, column = match[1], match.start(1) + 1
            self._remarks.report(
                "robots.misplaced", message, path, line=number, column=column, length=len(path)
            )
        elif match := _FENCE.match(line):
            message, column = (
                "This sign of Markdown is not a record. Delete it.",
                match.start(1) + 1,
            )
            self._remarks.report("robots.unread", message, line=number, column=column, length=3)
        elif match := _MARKED.match(line):
            message = "`{}` before the record hides it, so this line is not read. Delete it."
            mark, column = match[1], match.start(1) + 1
            self._remarks.report(
                "robots.list-mark", message, mark, line=number, column=column, length=len(mark)
            )

    def _check_unknown(self, octets: bytes, number: int, column: int) -> None:
        """Check a record with an unknown name."""
        name = octets.decode().lower()
        if name in self._others or strip_joints(name) in READ_ELSEWHERE or name.startswith("acap-"):
            return
        rule, message, quoted = (
            "robots.unread",
            "No known crawler reads `{}`. Delete the line, or put `#` before it.",
            b"",
        )
        if remedy := advice(name):
            rule, message = (
                "robots.misplaced",
                f"No crawler reads `{{}}` in robots.txt. {literal(remedy)}",
            )
        elif spelling := self._spelling(name):
            rule, message, quoted = (
                "robots.unknown",
                "The record `{}` is unknown. Write `{}`.",
                spelling.encode(),
            )
        elif self._has_markup:
            return
        self._remarks.report(
            rule, message, octets, quoted, line=number, column=column, length=len(octets)
        )

    def _check_markup(self, tag: bytes, number: int, column: int) -> None:
        """Report a line of HTML.

        Every `meta` element for robots is reported, but only the first one of all other lines.
        """
        is_meta = _META.match(tag) is not None
        if is_meta or not self._has_markup:
            advice_ = "Write `{}` into the pages" if is_meta else "Delete `{}` and the other tags"
            message = f"No crawler reads HTML in robots.txt. {advice_}."
            self._remarks.report(
                "robots.misplaced",
                message,
                tag[:MAX_TAG],
                line=number,
                column=column,
                length=len(tag),
            )
        self._has_markup = self._has_markup or not is_meta

    def _spelling(self, name: str) -> str:
        """Return the known name that `name` misspells, in its usual spelling, or ""."""
        if name not in self._meanings and len(self._meanings) < MAX_NAMES:
            near = nearest(name, self._spellings) or _MISSPELT.get(nearest(name, _MISSPELT), "")
            self._meanings[name] = self._spellings.get(near, "")
        return self._meanings.get(name, "")

    def _check_agent(self, record: Record, line: bytes, number: int) -> None:
        value = record.value
        if several := several_names(value):
            start, name = several
            message, column = (
                "`{}` is ignored. Write a User-agent line for each name.",
                record.column(line) + start,
            )
            self._remarks.report(
                "robots.several-agents", message, name, line=number, column=column, length=len(name)
            )
        elif unquoted(value) != value:
            self._report(
                "robots.quotes",
                "Quotes are not part of a name. Write `{}`.",
                unquoted(value),
                record,
                line,
                number,
            )
        elif INVISIBLE.match(value):
            message = (
                "An invisible character is before the name, so the line names no crawler. "
                "Write `{}`."
            )
            self._report(
                "robots.invisible", message, INVISIBLE.sub(b"", value), record, line, number
            )

    def _check_rule(self, record: Record, line: bytes, number: int) -> None:
        if self._suspicious >= MAX_SUSPICIOUS:
            return
        column, before = record.column(line), len(self._remarks)
        for kind, message, quoted, start, length in suspicions(record.value):
            self._remarks.report(
                _OF_SUSPICION[kind],
                message,
                *quoted,
                line=number,
                column=column + start,
                length=length,
            )
        for rule, message, quotation in _of_path(record.value):
            self._report(rule, message, quotation, record, line, number)
        end = column - 1 + len(record.value)
        if line[end : end + 1] == b"#" and line[end + 1 : end + 2].strip():
            message = (
                "The text after `{}` is a comment. Fragments are never sent to a server. "
                "For a `#` in the path write %23."
            )
            fragment = line[end:].rstrip()
            self._remarks.report(
                "robots.fragment",
                message,
                record.value,
                line=number,
                column=end + 1,
                length=len(fragment),
            )
        self._suspicious += len(self._remarks) > before


# Known misspelling -> the name that is meant, for misspellings of a misspelling.
_MISSPELT = {name.decode(): kind.value.decode() for name, kind in MISSPELLINGS.items()}


def _of_path(path: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield a rule, a message and its quotation for each mistake in a path.

    `suspicions` finds the mistakes that all formats have in common.
    """
    if has_dot_segment(path):
        message = "Crawlers resolve `.` and `..` in URLs, so this matches nothing. Write `{}`."
        yield "robots.dot-segment", message, right_path(path)
    elif b"\\" in path.partition(b"?")[0] and path[:1] == b"/" and not suspicions(path):
        message = (
            "Browsers write `/` for a backslash in a URL, so this matches nothing. Write `{}`."
        )
        yield "robots.backslash", message, right_path(path)
    elif _WHOLE_FILE_TYPE.fullmatch(path):
        message = (
            f"This rule matches only paths that begin with `{path.decode()}`, and not all files of "
            "this type. Write `{}`."
        )
        yield "robots.file-type", message, b"/*" + path[1:]
    elif len(several_paths(path)) > 1 and b" " not in path and b"\t" not in path:
        message = "The text after `{}` counts as part of that path. Write it on its own line."
        yield "robots.second-path", message, several_paths(path)[0]
    elif escaped := broken_escapes(path):
        message = "Two hexadecimal digits have to follow `%`. Write `{}`."
        yield "robots.escape", message, escaped


class _Rules:
    """The rules of several groups, numbered in their order."""

    def __init__(self, groups: Iterable[tuple[int, RuleLines]]) -> None:
        self.patterns: list[str] = []
        self.lines: list[int] = []
        self.groups: list[int] = []
        allows: list[int] = []
        for group, rules in groups:
            allows += (len(self.patterns) + rule for rule in rules.allows)
            self.patterns += rules.patterns
            self.lines += rules.numbers
            self.groups += repeat(group, len(rules.patterns))
        self.allows = frozenset(allows)
        # Pattern -> the first rule with it.
        self.first = dict(
            zip(reversed(self.patterns), range(len(self.patterns) - 1, -1, -1), strict=True)
        )
        self.allowed = frozenset(map(self.patterns.__getitem__, allows))

    @cached_property
    def refused(self) -> frozenset[str]:
        """The patterns of rules that are not Allow lines."""
        return frozenset(
            pattern for rule, pattern in enumerate(self.patterns) if rule not in self.allows
        )


class _GroupCheck:
    """Checks the rules of each group, and of all groups that bind the same agents."""

    def __init__(
        self, robots: Robots, remarks: Remarks, speaking: frozenset[int], *, has_acap: bool
    ) -> None:
        """Store the file. `speaking` are the groups that contain lines of other formats."""
        self._robots = robots
        self._remarks = remarks
        self._speaking = speaking
        # True if the file has ACAP records. Their fields can make rules ineffective.
        self._has_acap = has_acap
        # Token -> group that names the token -> number of the line that names it.
        self._groups: dict[str, dict[int, int]] = {}
        # Group -> the sets of groups that include it and bind an agent together.
        self._bindings: dict[int, set[tuple[int, ...]]] = {}
        self._reported: set[int] = set()  # numbers of the lines with a finding

    def check(self) -> None:
        self._check_agents()
        compiled = {group: self._robots.rule_lines(group) for group in self._robots.groups}
        self._check_empty(compiled)
        self._check_pathless(compiled)
        combinations = self._robots.combinations
        for combination in combinations:
            for group in combination:
                self._bindings.setdefault(group, set()).add(combination)
        rules_left = MOST_RULES * sum(len(rules.patterns) for rules in compiled.values())
        for combination in combinations:
            rules_left -= sum(len(compiled[group].patterns) for group in combination)
            if rules_left < 0:
                break
            patterns = [
                pattern for group in combination for pattern in compiled[group].patterns[:2]
            ]
            if len(patterns) > 1 or (patterns and patterns[0].endswith("*")):
                self._check_rules(combination, compiled)
            rates = [line for group in combination for line in compiled[group].rate_lines]
            if rates:
                # The lines of groups that bind other agents with other groups may matter there.
                shared = {
                    line
                    for group in combination
                    if len(self._bindings[group]) > 1
                    for _, line, _, _ in compiled[group].rate_lines
                }
                self._check_rates(rates, shared)

    def _check_agents(self) -> None:
        text = b"\n" + self._robots.text
        number, before = 0, 0
        # The previous agent line: its group, its end, and True if it is for any agent.
        previous = -1, 0, False
        for match in _AGENT_LINE.finditer(text):
            record = read_record(match[1])
            if record is None or record.kind is not RecordKind.AGENT:
                continue
            start = match.start(1)
            number += line_ends(text, before, start)
            before = start
            group, is_for_any = self._robots.group_at(start - 1), record.value[:1] == b"*"
            if (group, is_for_any) == (previous[0], not previous[2]) and _BLANK_LINES.fullmatch(
                text, previous[1], start
            ):
                message = (
                    "A blank line does not end a list of agents: the agents above it share "
                    "the rules below."
                )
                self._remarks.report("robots.blank", message, line=number)
            previous = group, match.end(), is_for_any
            if token := TOKEN.match(record.value):
                groups = self._groups.setdefault(token[0].decode().lower(), {})
                if groups and group not in groups:
                    message = (
                        f"Line {next(iter(groups.values()))} names `{{}}` too. The rules of "
                        "both groups apply."
                    )
                    column = record.column(match[1])
                    self._remarks.report(
                        "robots.same-agent",
                        message,
                        token[0],
                        line=number,
                        column=column,
                        length=len(token[0]),
                    )
                groups.setdefault(group, number)

    def _check_empty(self, compiled: dict[int, RuleLines]) -> None:
        """Report agent lines at the end of the file if no rule follows them.

        Only the last group can be without rules. A group without rules before another group would
        be one group with it.
        """
        if not compiled or max(compiled) in self._speaking:
            return
        group = max(compiled)
        agent_lines = [
            groups[group]
            for token, groups in self._groups.items()
            if group in groups and token != ANY
        ]
        if agent_lines and not (
            compiled[group].patterns or compiled[group].rate_lines or self._has_rule(group)
        ):
            message = (
                "No rule follows, so these agents may fetch everything: the rules for `*` "
                "do not apply to them."
            )
            self._remarks.report("robots.no-rules", message, line=agent_lines[0])

    def _check_pathless(self, compiled: dict[int, RuleLines]) -> None:
        """Report rules without a path that change nothing. ACAP may give them an effect.

        In a group with other rules, such a rule has no effect. A group that has only such a rule
        permits everything, so it has no effect if the groups for `*` permit everything too.
        """
        if self._has_acap:
            return
        everybodys = self._robots.groups_naming(ANY)
        are_free = all(compiled[group].only_allows for group in everybodys)
        for group, rules in compiled.items():
            lines = self._robots.cursor(group)
            while line := lines.read():
                record = read_record(line)
                if not record or record.kind not in RULE_KINDS or record.value or not record.colon:
                    continue
                if rules.patterns:
                    message = "A rule without a path has no effect beside other rules. Delete it."
                elif are_free and group not in everybodys and record.kind is RecordKind.DISALLOW:
                    message = (
                        "This group permits everything, as the file does without it. If you mean "
                        "to refuse everything, write `Disallow: /`."
                    )
                else:
                    continue
                self._remarks.report("robots.empty-rule", message, line=lines.number)

    def _has_rule(self, group: int) -> bool:
        """Return True if the group has a rule, even without a path, or an unknown record."""
        lines = self._robots.cursor(group)
        while line := lines.read():
            record = read_record(line)
            if record.kind in RULE_KINDS if record else b":" in line.partition(b"#")[0]:
                return True
        return False

    def _check_rules(self, combination: tuple[int, ...], compiled: dict[int, RuleLines]) -> None:
        """Check the rules of groups that bind an agent together."""
        rules = _Rules([(group, compiled[group]) for group in combination])
        # Groups in no other combination. A rule that has no effect here has no effect at all.
        exclusive = frozenset(group for group in combination if len(self._bindings[group]) == 1)
        if len(rules.first) < len(rules.patterns):
            self._check_equals(rules, exclusive)
        if exclusive and not self._has_acap and len(rules.first) > 1:
            self._check_covered(rules, exclusive)
        if exclusive and not self._has_acap:
            self._check_stars(rules, exclusive)

    def _report(self, rule: str, message: str, *quoted: bytes, line: int) -> None:
        """Report a line, unless it has a finding already."""
        if line not in self._reported:
            self._reported.add(line)
            self._remarks.report(rule, message, *quoted, line=line)

    def _check_equals(self, rules: _Rules, exclusive: frozenset[int]) -> None:
        """Report rules that repeat a rule, or that an Allow with an equal pattern overrides."""
        allowing: dict[str, int] = {}
        for rule in rules.allows:
            allowing.setdefault(rules.patterns[rule], rule)
        firsts: dict[tuple[str, bool], int] = {}
        in_group: dict[tuple[str, bool, int], int] = {}
        for rule, (pattern, group) in enumerate(zip(rules.patterns, rules.groups, strict=True)):
            allows = rule in rules.allows
            first, before = (
                firsts.setdefault((pattern, allows), rule),
                in_group.setdefault((pattern, allows, group), rule),
            )
            allowed = allowing.get(pattern)
            if before != rule:
                self._report(
                    "robots.duplicate",
                    f"This rule repeats line {rules.lines[before]}. Delete it.",
                    line=rules.lines[rule],
                )
            elif first != rule and group in exclusive:
                # The first rule of a group ends its list of agents.
                advice = (
                    "Delete it."
                    if rules.groups[rule - 1] == group
                    else "Its group needs a rule: delete this one only if another is left."
                )
                self._report(
                    "robots.repeated",
                    f"This rule repeats line {rules.lines[first]}. {advice}",
                    line=rules.lines[rule],
                )
            elif (
                not allows
                and allowed is not None
                and (rules.groups[allowed] == group or group in exclusive)
            ):
                message = (
                    f"This rule has no effect: line {rules.lines[allowed]} allows the same "
                    "path, and Allow wins."
                )
                self._report("robots.overruled", message, line=rules.lines[rule])

    def _check_covered(self, rules: _Rules, exclusive: frozenset[int]) -> None:
        """Report rules that can be deleted without changing any decision.

        A rule is covered if a shorter rule with the same verdict would decide in its place.
        """
        patterns = sorted(rules.first)
        # After sorting, the patterns that begin with a pattern come directly after this pattern.
        # `inner` are the patterns with which the next pattern begins.
        inner = list(compress(patterns, map(str.startswith, islice(patterns, 1, None), patterns)))
        if not any(map(_is_covering, inner)):
            return
        lengths = {True: _Lengths(rules, allows=True), False: _Lengths(rules, allows=False)}
        # The patterns without wildcards with which the current pattern begins, shortest first.
        prefixes: list[str] = []
        covering = frozenset(filter(_is_covering, inner))
        for pattern in patterns:
            while prefixes and not pattern.startswith(prefixes[-1]):
                prefixes.pop()
            if prefixes:
                shorter, allows = prefixes[-1], pattern in rules.allowed
                most, only_wildcards = len(pattern), _is_literal(pattern)
                if (shorter in rules.allowed) is allows and not lengths[not allows].have_between(
                    len(shorter), most, only_wildcards=only_wildcards
                ):
                    rule = rules.first[pattern]
                    if rules.groups[rule] in exclusive and (rule in rules.allows) is allows:
                        line = rules.lines[rules.first[shorter]]
                        message = (
                            f"This rule has no effect: line {line} decides the same for all "
                            f"paths that begin with `{{}}`."
                        )
                        self._report(
                            "robots.covered", message, shorter.encode(), line=rules.lines[rule]
                        )
            if pattern in covering:
                prefixes.append(pattern)

    def _check_stars(self, rules: _Rules, exclusive: frozenset[int]) -> None:
        """Report wildcards at the end of patterns if every decision is the same without them.

        A wildcard makes the pattern longer, so it matters if its length decides against another
        rule.
        """
        starred = [
            pattern for pattern in rules.first if pattern.endswith("*") and pattern[0] == "/"
        ]
        if not starred:
            return
        bare = Counter(pattern.rstrip("*") for pattern in starred)
        lengths = {True: set(map(len, rules.allowed)), False: set(map(len, rules.refused))}
        # Add the lengths that each pattern has with and without its wildcards.
        for pattern in starred:
            for allows in (True, False):
                if pattern in (rules.allowed if allows else rules.refused):
                    lengths[allows].update(range(len(pattern.rstrip("*")), len(pattern)))
        once = Counter(rules.patterns)
        for pattern in starred:
            shorter, rule = pattern.rstrip("*"), rules.first[pattern]
            others = lengths[rule not in rules.allows]
            if (
                once[pattern] == 1
                and bare[shorter] == 1
                and shorter not in rules.first
                and rules.groups[rule] in exclusive
                and others.isdisjoint(range(len(shorter), len(pattern) + 1))
            ):
                message = (
                    "The `*` at the end changes nothing: `{}` matches all paths that begin "
                    "with it. Delete the `*`."
                )
                self._report("robots.star", message, shorter.encode(), line=rules.lines[rule])

    def _check_rates(
        self, lines: Iterable[tuple[RecordKind, int, str, bytes]], shared: set[int]
    ) -> None:
        """Check the limits that bind an agent together.

        A Crawl-delay in one of the `shared` lines is never reported to have no effect.
        """
        delays: dict[int, float] = {}  # line -> seconds
        # Line -> seconds for each request, of Request-rates that apply at any time.
        rates: dict[int, float] = {}
        for kind, line, text, value in lines:
            if kind is RecordKind.CRAWL_DELAY:
                delay = crawl_delay([value])
                is_read = delay is not None
                if delay is not None:
                    delays[line] = delay
                    self._check_slow(delay, line)
            elif kind is RecordKind.REQUEST_RATE:
                is_read = bool(parsed_rates := request_rates([value]))
                for rate in parsed_rates:
                    if rate.start is None and rate.requests:
                        rates[line] = rate.seconds / rate.requests
            else:
                is_read = visit_time([(line, text, value)]) is not None
            if not is_read:
                form = _FORMS[kind]
                self._report(
                    "robots.rate-value",
                    f"`{{}}` cannot be read, so the line has no effect. Write {form}.",
                    value,
                    line=line,
                )
        if not delays:
            return
        longest = max(delays, key=delays.__getitem__)
        slower = max(rates, key=rates.__getitem__, default=0)
        for line, delay in delays.items():
            if line in shared:
                continue
            if slower and rates[slower] > delay:
                self._report(
                    "robots.delay",
                    f"This Crawl-delay has no effect: line {slower} asks for fewer requests.",
                    line=line,
                )
            elif delay < delays[longest]:
                self._report(
                    "robots.delay",
                    f"This Crawl-delay has no effect: line {longest} asks for a longer delay.",
                    line=line,
                )

    def _check_slow(self, delay: float, line: int) -> None:
        if delay >= SLOW:
            message = (
                "The unit is seconds: at most {} pages a day may be fetched. "
                "If you mean milliseconds, write `{}`."
            )
            pages, right = b"%d" % (86_400 // delay), b"%.12g" % (delay / 1000)
            self._remarks.report("robots.slow", message, pages, right, line=line)


_FORMS = {
    RecordKind.CRAWL_DELAY: "a number of seconds, such as 10",
    RecordKind.REQUEST_RATE: "a number of requests and a period, such as 1/10s",
    RecordKind.VISIT_TIME: "two times of the day, such as 0100-0500",
}


def _is_literal(pattern: str) -> bool:
    return "*" not in pattern and not pattern.endswith("$")


def _is_covering(pattern: str) -> bool:
    return pattern[0] == "/" and _is_literal(pattern)


class _Lengths:
    """The lengths of the patterns that have one verdict."""

    def __init__(self, rules: _Rules, *, allows: bool) -> None:
        patterns = rules.allowed if allows else rules.refused
        self._all = sorted(map(len, patterns))
        self._wildcards = sorted(len(pattern) for pattern in patterns if not _is_literal(pattern))

    def have_between(self, least: int, most: int, *, only_wildcards: bool) -> bool:
        """Return True if a pattern has a length from `least` to `most`, both included.

        If `only_wildcards` is True, only patterns with wildcards or a final `$` count.
        """
        lengths = self._wildcards if only_wildcards else self._all
        first = bisect_left(lengths, least)
        return first < len(lengths) and lengths[first] <= most
