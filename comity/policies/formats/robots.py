"""robots.txt, by RFC 9309 (Robots Exclusion Protocol).

    parse(body) -> Robots              what the file says, and what its author should know
    Robots.for_agent(token)            the rules of the agent's group
    AgentRules.decide(target)          the line that decides
What is supported, and every reading of an open point, stands in docs/robots.md."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import Enum, auto
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from protego import Protego

from comity.policies.lines import MAX_BYTES, MAX_LINE, Findings, Record, lines, record, text_of
from comity.policies.patterns import PatternIndex, normal_pattern, normal_target
from comity.policies.text import printable
from comity.policies.values import Finding, Verdict

SPEC = "https://www.rfc-editor.org/rfc/rfc9309.html"
MAX_SITEMAPS = 1000  # of one file
MAX_SECONDS = 365 * 24 * 3600  # of a Crawl-delay; a longer one is cut to it
MAX_RATE = 100  # octets of the value of a Crawl-delay, Request-rate or Visit-time


class _Kind(Enum):
    AGENT = auto()
    ALLOW = auto()
    DISALLOW = auto()
    SITEMAP = auto()
    CRAWL_DELAY = auto()
    REQUEST_RATE = auto()
    VISIT_TIME = auto()


# section-2.2, section-2.2.4; the rates are extensions
_NAMES = {
    b"user-agent": _Kind.AGENT,
    b"allow": _Kind.ALLOW,
    b"disallow": _Kind.DISALLOW,
    b"sitemap": _Kind.SITEMAP,
    b"crawl-delay": _Kind.CRAWL_DELAY,
    b"request-rate": _Kind.REQUEST_RATE,
    b"visit-time": _Kind.VISIT_TIME,
}
# LENIENT: names without their hyphen, and misspellings that real files have. None for Allow: what is not understood is no
# permission.
_HYPHEN = b"- _\t"
_MISSPELLED = {name.replace(b"-", b""): kind for name, kind in _NAMES.items() if kind is not _Kind.ALLOW} | {
    b"useragents": _Kind.AGENT,
    b"dissallow": _Kind.DISALLOW,
    b"dissalow": _Kind.DISALLOW,
    b"disalow": _Kind.DISALLOW,
    b"diasllow": _Kind.DISALLOW,
    b"disallaw": _Kind.DISALLOW,
    b"sitemaps": _Kind.SITEMAP,
}

# section-2.2.1
#   product-token = identifier / "*"
# LENIENT: digits, and whatever follows the token.
_TOKEN = re.compile(rb"[A-Za-z0-9_-]+|\*(?![^ \t])")


class RuleLine(NamedTuple):
    """One Allow or Disallow line (section-2.2.2)."""

    verdict: Verdict
    path_pattern: str
    line: int  # 1-based, in the bytes as received
    text: str  # the line as written, printable


class RequestRate(NamedTuple):
    """At most `requests` in `seconds`; between the two times of day (UTC) only, where they are given."""

    requests: int
    seconds: int
    start: time | None
    end: time | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitTime:
    """The hours of the day (UTC) in which visits are welcome, from `start` until the next `end`."""

    start: time
    end: time
    line: int
    text: str

    def opens(self, now: datetime) -> datetime | None:
        """When it next opens (UTC), None while it is open. `now`: aware."""
        now = now.astimezone(UTC)
        clock = now.time()
        inside = self.start <= clock < self.end if self.start < self.end else not self.end <= clock < self.start
        if inside:
            return None
        today = datetime.combine(now.date(), self.start, UTC)
        return today if today > now else today + timedelta(days=1)


def _known(line: bytes) -> tuple[_Kind | None, Record, str]:
    """Which record a line is, None for unknown ones, blank lines and comments; and the finding that it earns, or ""."""
    found = record(line)
    kind = _NAMES.get(found.name) if found.colon else None
    if kind or not found.name:
        return kind, found, ""
    if found.colon:
        kind = _MISSPELLED.get(found.name.translate(None, _HYPHEN))
        if kind:
            return kind, found, "robots.misspelled"
    return _without_colon(line, found)


def _without_colon(line: bytes, found: Record) -> tuple[_Kind | None, Record, str]:
    """LENIENT: `Disallow /path`. Prose that begins with such a word is none: a rule needs a path, other records one word."""
    words = line[: MAX_LINE + 1].partition(b"#")[0].split(None, 2)
    for count in (1, 2):
        name = b" ".join(words[:count]).lower()
        kind = _NAMES.get(name) or _MISSPELLED.get(name.translate(None, _HYPHEN))
        if kind is None or len(words) <= count:
            continue
        value = b" ".join(words[count:]).strip()
        if value.startswith((b"/", b"*")) if kind in (_Kind.ALLOW, _Kind.DISALLOW) else b" " not in value:
            return kind, Record(name, value, False, found.overlong), "robots.missing-colon"
    return None, found, ""


class Robots:
    """One robots.txt: its octets, where its groups start and whom they name. Groups are compiled when an agent asks."""

    def __init__(
        self, text: bytes, groups: array[int], agents: bytes, sitemaps: tuple[bytes, ...], findings: tuple[Finding, ...]
    ) -> None:
        self.findings = findings
        self._text = text
        self._groups = groups  # line numbers at which the groups start, and the one after the last line
        self._agents = agents  # "\n" token "\t" number of a group, for each agent line
        self._sitemaps = sitemaps

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The values of the Sitemap lines (section-2.2.4), which belong to no group."""
        values = (value.decode("utf-8", "replace") for value in self._sitemaps)
        content = "".join(f"Sitemap: {value}\n" for value in values if value.isprintable())
        return tuple(Protego.parse(content).sitemaps) if content else ()

    def for_agent(self, token: str) -> AgentRules:
        """The rules of all groups that name the token, else of those for `*` (section-2.2.1)."""
        groups = self._naming(token.lower().encode()) or self._naming(b"*")
        return AgentRules(self._text, [(self._groups[group], self._groups[group + 1]) for group in groups])

    def _naming(self, token: bytes) -> list[int]:
        found = re.findall(rb"\n%s\t(\d+)" % re.escape(token), self._agents)
        return [int(number) for number in dict.fromkeys(found)]


def parse(body: bytes, *, url: str = "", oversized: bool = False) -> Robots:
    """What a robots.txt says. `oversized`: the body was cut by who fetched it. Never raises; linear in the octets."""
    text, cut = text_of(body, cut=oversized)
    findings = Findings(url)
    if cut:
        findings.add("robots.oversized", f"only the lines in the first {min(MAX_BYTES, len(body))} octets are read")
    groups = array("I")
    agents = bytearray()
    sitemaps: list[bytes] = []
    naming = False  # in a list of agent lines, before its first rule
    other = 0  # line of a record of another kind within the list
    joined = 0  # the same, and an agent line came after it
    number = 0
    for number, line in enumerate(lines(text), 1):
        kind, found, finding = _known(line)
        if kind and finding:
            name = printable(found.name)
            what = f"`{name}` is read as {kind.name}" if finding == "robots.misspelled" else f"no colon after `{name}`"
            findings.add(finding, what, line=number, column=1)
        if found.overlong:
            findings.add("robots.long-line", f"only the first {MAX_LINE} octets are read", line=number)
        if kind is None:
            if found.colon and naming:
                other = other or number
        elif kind is _Kind.AGENT:
            if not naming:
                naming, other, joined = True, 0, 0
                groups.append(number)
            joined = joined or other
            match = _TOKEN.match(found.value)
            token = match[0] if match else b""
            if token != found.value:
                findings.add("robots.agent", f"`{printable(found.value)}` is read as `{token.decode()}`", line=number)
            if match:
                agents += b"\n%s\t%d" % (token.lower(), len(groups) - 1)
        elif kind is _Kind.ALLOW or kind is _Kind.DISALLOW:
            if not groups:
                findings.add("robots.no-agent", "a rule before any User-agent line binds nobody", line=number)
            naming = False
            if joined and kind is _Kind.ALLOW and found.value:
                findings.add("robots.joined", "the agents named before this record share the rules after it", line=joined)
                joined = 0
            if found.value and found.value[:1] not in b"/*":
                findings.add(
                    "robots.path", f"`{printable(found.value)}` begins with neither / nor *: it matches nothing", line=number
                )
        elif kind is _Kind.SITEMAP:
            if len(sitemaps) < MAX_SITEMAPS:
                sitemaps.append(found.value)
        elif naming:
            other = other or number
    groups.append(number + 1)
    return Robots(text, groups, bytes(agents), tuple(sitemaps), tuple(findings))


class AgentRules:
    """The rules that bind one agent: all lines of its groups, compiled."""

    def __init__(self, text: bytes, groups: list[tuple[int, int]]) -> None:
        """`groups`: line number of the first line, and of the one after the last."""
        self.has_group = bool(groups)
        self._text = text
        self._line = array("I")  # rule -> line number
        self._start = array("I")  # rule -> where its line starts in the text
        self._allow = bytearray()  # rule -> 1 for Allow
        self._rates: list[tuple[_Kind, int, bytes, bytes]] = []
        self._rule_lines: dict[int, RuleLine] = {}
        self._index = PatternIndex(self._read(groups))

    def _read(self, groups: list[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
        all_lines = lines(self._text) if groups else []
        starts = list(accumulate(map(len, all_lines), initial=0))
        for first, end in groups:
            for number in range(first, end):
                line = all_lines[number - 1]
                kind, found, _ = _known(line)
                if kind is _Kind.ALLOW or kind is _Kind.DISALLOW:
                    allow = kind is _Kind.ALLOW
                    if not found.value or (allow and found.overlong):
                        continue
                    self._line.append(number)
                    self._start.append(starts[number - 1])
                    self._allow.append(allow)
                    yield normal_pattern(found.value), allow
                elif kind in (_Kind.CRAWL_DELAY, _Kind.REQUEST_RATE, _Kind.VISIT_TIME):
                    self._rates.append((kind, number, found.value, line))

    def decide(self, target: str) -> RuleLine | None:
        """The most specific rule that matches path and query: the longest, Allow on a tie (section-2.2.2)."""
        number = self._index.best(normal_target(target))
        return None if number < 0 else self._rule_line(number)

    def matching(self, target: str) -> tuple[RuleLine, ...]:
        """All rules that match, the deciding one first."""
        return tuple(self._rule_line(number) for number in self._index.all(normal_target(target)))

    def _rule_line(self, number: int) -> RuleLine:
        rule_line = self._rule_lines.get(number)
        if rule_line is None:
            line = self._text[self._start[number] :][: MAX_LINE * 2].splitlines()[0]
            _, found, _ = _known(line)
            verdict = Verdict.ALLOW if self._allow[number] else Verdict.DENY
            rule_line = RuleLine(verdict, printable(found.value), self._line[number], printable(line))
            self._rule_lines[number] = rule_line
        return rule_line

    def _values(self, kind: _Kind, name: str) -> Iterator[tuple[Protego, int, bytes]]:
        for which, number, value, line in self._rates:
            if which is kind and len(value) <= MAX_RATE and value.isascii():
                text = value.decode("ascii")
                if text.isprintable():
                    yield Protego.parse(f"User-agent: *\n{name}: {text}\n"), number, line

    @cached_property
    def crawl_delay(self) -> float | None:
        """Seconds between requests: the longest Crawl-delay; None where there is none."""
        delays = [protego.crawl_delay("*") for protego, _, _ in self._values(_Kind.CRAWL_DELAY, "Crawl-delay")]
        return (
            min(max((delay for delay in delays if delay is not None), default=None) or 0.0, MAX_SECONDS)
            if any(d is not None for d in delays)
            else None
        )

    @cached_property
    def request_rate(self) -> RequestRate | None:
        """The slowest Request-rate; of several with different hours, at all hours."""
        rates = [
            rate for protego, _, _ in self._values(_Kind.REQUEST_RATE, "Request-rate") if (rate := protego.request_rate("*"))
        ]
        if not rates:
            return None
        requests, seconds, start, end = max(rates, key=lambda rate: rate.seconds / rate.requests)
        if len({rate[2:] for rate in rates}) > 1:
            start = end = None
        return RequestRate(requests, seconds, start, end)

    @cached_property
    def visit_time(self) -> VisitTime | None:
        """The shortest Visit-time."""
        times = [
            VisitTime(start=visit.start_time, end=visit.end_time, line=number, text=printable(line))
            for protego, number, line in self._values(_Kind.VISIT_TIME, "Visit-time")
            if (visit := protego.visit_time("*"))
        ]
        return min(times, key=_minutes, default=None)


def _minutes(visit: VisitTime) -> int:
    start, end = (clock.hour * 60 + clock.minute for clock in (visit.start, visit.end))
    return (end - start) % (24 * 60) or 24 * 60
