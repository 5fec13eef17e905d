"""Content Signals: lines of robots.txt and response fields.

    Signals(lines, robots, token)    the statements of the lines of one robots.txt to an agent
    field(values)                    the statements of the fields of one response

The format is specified in draft-romm-aipref-contentsignals; `use=` is read as Cloudflare describes
it. No document says which agents a line addresses, and parsers disagree. So a refusal by any of
their readings counts, and a permission counts only by all of them (docs/content-signals.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from comity.bounded import Bounded
from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.robots.extension_lines import ExtensionLine, in_ended_lists
from comity.policies.formats.robots.grammar import BEFORE_ALL, Robots
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.marks import BRACKETS, COMMAS, HYPHENS, QUOTES, SPACES, UNSEEN
from comity.policies.syntax.path_patterns import PatternIndex, normal_pattern
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location, Statement

SPEC = "https://datatracker.ietf.org/doc/draft-romm-aipref-contentsignals/"
NAMES = ("content-signal", "content-signals")  # names of lines in robots.txt, and of fields
# The maximum number of unknown words of one line or field. Unknown words are those of no
# specification. Further ones are ignored.
MAX_WORDS = 100
MAX_UNKNOWN = 1000  # the maximum number of different unknown words of one file

# section usage-category-labels
LABELS = ("search", "ai-input", "ai-train")
# The levels of use, from the least to the most. At "immediate" nothing is kept, at "reference" the
# content is indexed, quoted and linked to, and at "full" it is summarised and reproduced. A value
# permits its own and all lower levels, and refuses the higher ones: `use=reference` refuses "full".
LEVELS = ("immediate", "reference", "full")
_WORDS = frozenset((*LABELS, *(f"use-{level}" for level in LEVELS)))

_VERDICTS = {"yes": Verdict.ALLOW, "no": Verdict.DENY}
# Values that probably mean "yes". They neither permit nor refuse.
_PERHAPS = frozenset(("y", "true", "1", "allow"))

_WHOLE_SITE = ("/", "/*", "*")  # patterns
_FOR_ALL = ("", *_WHOLE_SITE)
_PATH = re.compile(rb"(/[^ \t=,;|&]*+)[ \t]++(?![/*])")
MAX_PAGES = 64  # the maximum number of pages with different lines whose statements are kept

# LENIENT: `;` and white space separate signals too, and so do a bar, a slash and `&` before the
# next signal. Quotes and brackets around signals are ignored. A refusal may have a colon.
# `search=yes/no` is not a permission.
_MARKS = str.maketrans(
    {
        **dict.fromkeys(QUOTES + BRACKETS + UNSEEN, ""),
        **dict.fromkeys(SPACES, " "),
        **dict.fromkeys(COMMAS, ","),
        **dict.fromkeys(HYPHENS + "_", "-"),
    }
)
_COLON = re.compile(r"(?<! ) *+: *+(?=no(?![^,; ]))")
_SPACED = re.compile(r"(?<! ) *+= *+")
_MEMBERS = re.compile(r"(?:[^,; |/&]|[|/&](?![a-z-]++=))++")
_KEY = re.compile(r"[a-z][a-z0-9-]{0,63}")
_VALUE = re.compile(r"[a-z0-9-]++")
_BEFORE_WORD = re.compile(r"(?<![^,; ])[|/&*]")  # such a mark separates no signals


class _Signal(NamedTuple):
    """A signal in a line of robots.txt or in a field.

    Attributes:
        word: A key such as "ai-train". For `use=` it is "use-" and a level, such as "use-full".
        group: The number of the line's group.
        own_group: The number of the line's group if a signal line ends a list of agents.
        path: The paths that the line is for, a pattern in normal form. "": all paths.
    """

    word: str
    verdict: Verdict
    source: Location
    group: int = BEFORE_ALL
    own_group: int = BEFORE_ALL
    path: str = ""


class Signals:
    """The signals of one robots.txt to one agent.

    A line may begin with a path (contentsignals.org, "Advanced Usage"). All lines that match a page
    apply together, so that a line for all pages is not overridden by a longer path.
    """

    def __init__(
        self, lines: Iterable[ExtensionLine], robots: Robots, token: str, *, url: str = ""
    ) -> None:
        self._robots = robots
        self._token = token
        self._findings = Findings(url)
        self._signals: list[_Signal] = []
        lines = [line for line in lines if line.name in NAMES]
        self._ended, in_ended = in_ended_lists(robots, lines)
        words = set(_WORDS)  # the known words, and the unknown ones read so far
        for line, line_in_ended in zip(lines, in_ended, strict=True):
            path, value = split_path(line.value)
            for signal in _read(value, line.source(url), self._findings):
                if line.overlong and signal.verdict is Verdict.ALLOW:
                    continue  # the rest may refuse it
                if signal.word in words or len(words) < len(_WORDS) + MAX_UNKNOWN:
                    words.add(signal.word)
                    self._signals.append(
                        signal._replace(group=line.group, own_group=line_in_ended.group, path=path)
                    )
        self._paths = sorted({signal.path for signal in self._signals} - {""})

    def statements(self, target: str) -> tuple[Statement, ...]:
        """Return one statement for each word about a page. It names the first line that decides.

        `target`: path and query of the page, in normal form.
        """
        if not self._paths:
            return self._general
        paths = frozenset(self._paths[number] for number in self._index.all(target))
        statements = self._by_paths.get(paths)
        if statements is None:
            statements = self._by_paths[paths] = self._decide(
                [signal for signal in self._signals if not signal.path or signal.path in paths]
            )
        return statements

    @cached_property
    def _index(self) -> PatternIndex:
        return PatternIndex(self._paths)

    @cached_property
    def _by_paths(self) -> Bounded[frozenset[str], tuple[Statement, ...]]:
        """Paths that match a page -> the statements about it."""
        return Bounded(MAX_PAGES)

    def everywhere(self) -> tuple[Statement, ...]:
        """Return the refusals for all pages, and the permissions for any of them."""
        if not self._paths:
            return self._general
        return self._decide(
            [
                signal
                for signal in self._signals
                if signal.verdict is Verdict.ALLOW or signal.path in _FOR_ALL
            ]
        )

    @cached_property
    def _general(self) -> tuple[Statement, ...]:
        """The statements of the lines for all pages."""
        return self._decide([signal for signal in self._signals if signal.path in _FOR_ALL])

    def _decide(self, signals: list[_Signal]) -> tuple[Statement, ...]:
        """Return one statement for each word in these signals."""
        if not signals:
            return ()
        bound, has_own = self._bound(signals)
        everybodys = frozenset(self._robots.groups_naming("*"))
        own_groups = frozenset(self._ended.groups_naming(self._token))
        # Three readings, by the lines that count: 1. lines of the agent's groups only; 2. lines of
        # the groups for `*`, if the agent's own groups have no signal; 3. all lines. In reading 1 a
        # signal may end a list of agents or not.
        fallback = [signal for signal in signals if signal.group in everybodys and not has_own]
        readings = (
            ("content-signal.disallow", bound),
            ("content-signal.fallback", fallback),
            ("content-signal.whole-file", signals),
        )
        statements: dict[str, Statement] = {}
        for rule, read in readings:
            for word, verdict, source, *_ in read:
                if verdict is Verdict.DENY:
                    statements.setdefault(
                        word, Statement(f"content-signal:{word}", verdict, rule, source)
                    )
        # A permission in the agent's groups holds if no reading refuses the word. Refusals are in
        # `statements` already, so `setdefault` keeps them. A permission in an ACAP record does not
        # count, because the record may be for another agent.
        for word, verdict, source, _, own_group, _ in bound:
            if verdict is Verdict.ALLOW and (own_group == BEFORE_ALL or own_group in own_groups):
                statements.setdefault(
                    word,
                    Statement(f"content-signal:{word}", verdict, "content-signal.allow", source),
                )
        return tuple(statements.values())

    def _bound(self, signals: list[_Signal]) -> tuple[list[_Signal], bool]:
        """Return those that may be for the agent, and True if any of them is in its groups.

        These are the signals in the agent's groups, those before all groups, because no group
        restricts them, and those in ACAP records, because a record may be for the agent.
        """
        ours = frozenset(self._robots.groups_naming(self._token))
        bound = [signal for signal in signals if signal.group in ours or signal.group < 0]
        return bound, any(signal.group in ours for signal in bound)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings for the file's author, including contradictions."""
        if not self._signals:
            return tuple(self._findings)
        refused = {
            statement.term: statement
            for statement in self._general
            if statement.verdict is Verdict.DENY
        }
        for word, verdict, source, *_ in self._bound(self._signals)[0]:
            refusal = refused.get(f"content-signal:{word}")
            if refusal and verdict is Verdict.ALLOW:
                message = (
                    f"`{word}` is permitted here but refused in line "
                    f"{refusal.location.line}. The refusal counts."
                )
                self._findings.report("content-signal.contradiction", message, line=source.line)
        permits = [statement for statement in self._general if statement.verdict is Verdict.ALLOW]
        rule = self._robots.for_agent(self._token).decide("/") if permits else None
        if rule and rule.verdict is Verdict.DENY and rule.path_pattern in _WHOLE_SITE:
            message = (
                f"The site permits a use here, but line {rule.line} disallows fetching it. "
                "The site is not fetched."
            )
            self._findings.report(
                "content-signal.contradiction", message, line=permits[0].location.line
            )
        return tuple(self._findings)


def field(
    values: Iterable[bytes], name: str = "Content-Signal", *, url: str = ""
) -> tuple[tuple[Statement, ...], tuple[Finding, ...]]:
    """Return the statements of one response's fields about its content, and the findings.

    `name` is the name of the field, `url` the URL of the page. There is one statement for each
    word, and a refusal overrides a permission.
    """
    findings = Findings(url)
    statements: dict[str, Statement] = {}
    for value in values:
        for word, verdict, source, *_ in _read(
            value, Location(part=f"header {name}", text=printable(value)), findings
        ):
            rule = "content-signal.disallow" if verdict is Verdict.DENY else "content-signal.allow"
            statement = Statement(f"content-signal:{word}", verdict, rule, source)
            if verdict is Verdict.DENY and (
                word not in statements or statements[word].verdict is Verdict.ALLOW
            ):
                statements[word] = statement
            else:
                statements.setdefault(word, statement)
    return tuple(statements.values()), tuple(findings)


class Signal(NamedTuple):
    """A word and its verdict."""

    word: str
    verdict: Verdict


def line_signals(value: bytes) -> list[Signal]:
    """Return the signals of one line or field, without reporting findings."""
    return [
        Signal(signal.word, signal.verdict) for signal in _read(value, Location(), Findings(""))
    ]


def members(value: bytes) -> list[tuple[str, str]]:
    """Return the key and value of each member of a line or field, both in lower case.

    Underscores in them become hyphens, so `AI_Train=no` is ("ai-train", "no").
    """
    return [_parts(member) for member in _members(value)]


def split_path(value: bytes) -> tuple[str, bytes]:
    """Return the path at the begin of a line, in normal form, and the signals after it.

    "" means that the line has no path.
    """
    match = _PATH.match(value)
    return (normal_pattern(match[1]), value[match.end() :]) if match else ("", value)


def _members(value: bytes) -> list[str]:
    return _MEMBERS.findall(_plain(value))


def _plain(value: bytes) -> str:
    text = value.decode("utf-8", "replace").lower().translate(_MARKS)
    return _SPACED.sub("=", _COLON.sub("=", text))


def _is_clear(value: bytes) -> bool:
    """Return True if nothing in a line or field but signals can limit the pages or the uses."""
    text = _plain(value)
    return not _BEFORE_WORD.search(text) and all(map(_is_known, _MEMBERS.findall(text)))


def _is_known(member: str) -> bool:
    key, value = _parts(member)
    if key in LABELS or key == "use":
        return _VALUE.fullmatch(value) is not None
    return value in _VERDICTS and _KEY.fullmatch(key) is not None


def _parts(member: str) -> tuple[str, str]:
    key, _, value = member.partition("=")
    return key, value


def _read(value: bytes, source: Location, findings: Findings) -> Iterator[_Signal]:
    """Yield the signals of one line or field, and report odd members in `findings`.

    A signal is `key=value` in upper or lower case. Commas separate signals. With any other word, a
    path among them, the pages of a permission are not known, and only refusals are yielded.
    """
    is_clear = _is_clear(value)
    for signal in _all_signals(value, source, findings):
        if is_clear or signal.verdict is Verdict.DENY:
            yield signal


def _all_signals(value: bytes, source: Location, findings: Findings) -> Iterator[_Signal]:
    unknown = 0
    for member in _members(value):
        key, value_text = _parts(member)
        if not value_text or not _KEY.fullmatch(key):
            _report(findings, "`{}` is not a signal. Write key=yes or key=no.", member, source)
        elif key == "use":
            level = LEVELS.index(value_text) if value_text in LEVELS else -1
            if level < 0:
                _report(
                    findings,
                    "`{}` permits no use. Write immediate, reference or full.",
                    member,
                    source,
                )
            for number, name in enumerate(LEVELS):
                yield _Signal(
                    f"use-{name}", Verdict.ALLOW if number <= level else Verdict.DENY, source
                )
        elif key not in LABELS:
            unknown += 1
            _report(findings, "The signal `{}` is unknown.", member, source)
            if value_text in _VERDICTS and unknown <= MAX_WORDS and key not in _WORDS:
                yield _Signal(key, _VERDICTS[value_text], source)
        elif value_text in _VERDICTS:
            yield _Signal(key, _VERDICTS[value_text], source)
        elif value_text in _PERHAPS:
            _report(findings, "`{}` permits nothing. Write yes to permit the use.", member, source)
        else:
            _report(
                findings,
                "`{}` is neither yes nor no. Until you write one of them, it refuses.",
                member,
                source,
            )
            yield _Signal(key, Verdict.DENY, source)


def _report(findings: Findings, message: str, member: str, source: Location) -> None:
    findings.report(
        "content-signal.value", message, member.encode("utf-8", "replace"), line=source.line
    )
