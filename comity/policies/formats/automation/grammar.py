"""The text of automation-preferences.txt.

    rejection(fetched)      the reason why the content is not read
    parse(text)             the groups of the text

The specifications are draft-liao-aipref-autoctl-core-01 formal-syntax and extension section-4.
Every reading of an open point is in docs/automation.md.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from sys import maxsize
from typing import Any, NamedTuple

from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Fetched
from comity.policies.formats.automation.directives import (
    NOWHERE,
    Directives,
    DirectiveValue,
    Group,
    UrlPattern,
)
from comity.policies.formats.automation.value_syntax import (
    DIRECTIVES,
    SPACE,
    ParsedValue,
    host_pattern,
    items,
    scope_patterns,
    url_patterns,
)
from comity.policies.syntax.lines import EOL, MAX_LINE, Findings, Lines, text_of
from comity.policies.syntax.printable import printable
from comity.policies.syntax.suspicions import INVISIBLE, trimmed

MAX_GROUPS = 1000  # maximum groups of a file
MAX_SCOPES = 20_000  # maximum scopes of a file
MAX_HOSTS = 5000  # maximum hosts of a file, including hosts in absolute URLs
MAX_VALUES = 200  # maximum items of a list
MAX_ITEMS = 20_000  # maximum items in all lists of a file. Equal lists count once
MAX_REPEATED = 16  # maximum values of one directive in a group

# The names of lines with the URLs, hosts and agents that a group applies to. Several lines with the
# same name in a group count as one list.
SELECTORS = (b"scope", b"host", b"user-agent")


class Automation(NamedTuple):
    """The groups of one file.

    Attributes:
        groups: The groups, in the order of the file.
        complete: False means that a part of the file was not read.
        findings: Findings for the author.
    """

    groups: tuple[Group, ...]
    complete: bool
    findings: tuple[Finding, ...]

    def names(self, token: str) -> bool:
        """Return True if a group names the product token."""
        return any(token.lower() in (group.agents or ()) for group in self.groups)


def _strictest(name: bytes) -> tuple[Any, str]:
    """Return the most restrictive value of a malformed directive, and the advice to its author."""
    return DIRECTIVES[
        name
    ].strictest, f"write `{name.decode()}:` and its value, with nothing but a space between"


# Core, file-location-and-format.

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # HTAB is white space in the formal syntax
_END = re.compile(EOL)
_CHARSET = re.compile(
    rb"(?:.*;)?[ \t]*charset=\"?utf-8\"?[ \t]*(?:;.*)?", re.IGNORECASE | re.DOTALL
)


def rejection(fetched: Fetched) -> str:
    """Return the reason why the content is rejected, or "" if it is accepted.

    Content with a control byte, such as NUL, is rejected.
    """
    text, _ = text_of(fetched.body, cut=fetched.oversized)
    control = _CONTROL.search(text)
    if control:
        line = 1 + len(_END.findall(text, 0, control.start()))
        return f"line {line} has the control byte {control[0][0]:#04x}"
    return ""


def is_served_as_text(fetched: Fetched) -> bool:
    """Return True if the media type is a text type. A missing media type counts as text."""
    media_type = fetched.header(b"Content-Type").partition(b";")[0].strip().lower()
    return not media_type or media_type.startswith(b"text/")


def media_type_findings(fetched: Fetched, url: str = "") -> tuple[Finding, ...]:
    """Return a finding if the media type of a file is not text/plain with the charset utf-8.

    A response without a media type has no finding.
    """
    content_type = fetched.header(b"Content-Type")
    media_type, _, parameters = content_type.partition(b";")
    if not content_type or (
        media_type.strip().lower() == b"text/plain" and _CHARSET.fullmatch(parameters)
    ):
        return ()
    message = (
        f"The media type is {printable(content_type)}. Serve the file as text/plain; charset=utf-8."
    )
    return (Finding(rule="automation.media-type", message=message, url=url),)


# Core, formal-syntax.

_NAMES = b"|".join((*SELECTORS, *DIRECTIVES))
# LENIENT: invisible characters may be beside a name, such as a BOM between two joined files.
_WHITE = rb"(?:[ \t]|%s)" % INVISIBLE.pattern
_NAME = rb"%s*+(?i:%s)(?=%s|[:#\r\n]|\Z)" % (_WHITE, _NAMES, _WHITE)
# LENIENT: the colon may be missing. `_Reader` ignores prose that begins with a word of SELECTORS.
RECORD = re.compile(
    rb"%s*+((?i:%s))(?:%s*+(:)|(?![^ \t#\r\n]))[ \t]*+([^#\r\n]*+)" % (_WHITE, _NAMES, _WHITE)
)
_NO_COLON = ("automation.colon", "without its colon")
_UNSEEN_BESIDE = ("automation.invisible", "beside an invisible character")
_WORDS = re.compile(rb"[^ \t,]++(?:[ \t]*+,[ \t]*+[^ \t,]++)*+[ \t]*+")
_MARKUP = re.compile(rb"(?:\A|(?<=[\r\n]))[ \t]*+<!--")
_BLANK = rb"[ \t]*+%s" % EOL
# Lines that can be skipped between groups, and in a group. In a group, a blank line is not skipped,
# because it ends the group.
_OTHERS = re.compile(rb"(?:(?!%s)[^\r\n]*+%s)++" % (_NAME, EOL))
_OTHERS_IN_GROUP = re.compile(rb"(?:(?!%s)(?!%s)[^\r\n]*+%s)++" % (_NAME, _BLANK, EOL))


@dataclass(slots=True)
class _Open:
    """A block of lines while it is read. `to_group` makes the group of it.

    Attributes:
        values_by_name: Name of a directive -> its values.
    """

    line: int
    offset: int
    scopes: list[UrlPattern] = field(default_factory=list)
    hosts: list[str] | None = None
    agents: set[str] | None = None
    values_by_name: dict[bytes, list[DirectiveValue[Any]]] = field(default_factory=dict)

    @property
    def is_continuing(self) -> bool:
        """True if the block has no scope, host or user-agent, and so continues the last group."""
        return not self.scopes and self.hosts is None and self.agents is None

    def to_group(self) -> Group:
        directives = Directives(
            **{
                DIRECTIVES[name].field: tuple(values)
                for name, values in self.values_by_name.items()
            }
        )
        key = ""
        if directives.request_limit or directives.concurrent_limit:
            selectors = (
                sorted(set(self.scopes)),
                sorted(set(self.hosts or ())),
                sorted(self.agents or ()),
            )
            key = blake2b(
                repr([list(map(tuple, selectors[0])), *selectors[1:]]).encode(), digest_size=8
            ).hexdigest()
        return Group(
            line=self.line,
            offset=self.offset,
            scopes=tuple(self.scopes),
            hosts=None if self.hosts is None else tuple(self.hosts),
            agents=None if self.agents is None else frozenset(self.agents),
            directives=directives,
            key=key,
        )


def is_plain(record: re.Match[bytes]) -> bool:
    """Return True if a line has a colon, and no invisible characters beside its name."""
    before, between = (
        record.string[record.start() : record.start(1)],
        record.string[record.end(1) : record.end(2)],
    )
    return record[2] is not None and not (before + between).strip(b" \t:")


def parse(text: bytes, *, url: str = "", cut: bool = False) -> Automation:
    """Read the text of a file. Never raises. The time is linear in the octets.

    `text` and `cut` are the results of `text_of`. `cut` is True if the end of the file is missing.
    """
    return _Reader(text, url).read(cut=cut)


class _LimitError(Exception):
    """The file exceeds a limit."""


class _Reader:
    """The state of reading one file."""

    def __init__(self, text: bytes, url: str) -> None:
        self._lines = Lines(text)
        self._findings = Findings(url)
        self._groups: list[_Open] = []
        self._block: _Open | None = None  # the open block
        self._scopes_left = MAX_SCOPES
        self._hosts_left = MAX_HOSTS
        self._items_left = MAX_ITEMS
        self._line = b""  # the current line
        self._name_at = self._value_at = 0  # offsets of name and value in the current line
        # A cache: name and value -> the parsed value. Most groups repeat values of other groups.
        self._cache: dict[tuple[bytes, bytes], ParsedValue] = {}

    def read(self, *, cut: bool) -> Automation:
        complete = not cut
        if cut:
            self._findings.report(
                "automation.limit",
                f"Only the whole lines in the first {len(self._lines.text)} octets are "
                "read. Shorten the file.",
            )
        self._markup()
        try:
            while self._read():
                pass
            self._end_block()
        except _LimitError as full:
            complete = False
            self._findings.report(
                "automation.limit",
                f"{full}. Lines from here on are not read.",
                line=self._lines.number,
            )
            with suppress(_LimitError):
                self._end_block()  # the part that was read counts
        for group in self._groups:
            if not group.scopes:
                message = (
                    "The group has no scope, so it applies only to URLs that no other group "
                    "matches. Add `scope: /`."
                )
                self._findings.report("automation.scope", message, line=group.line)
        self._findings.sort(key=lambda finding: finding.line or maxsize)
        return Automation(
            tuple(group.to_group() for group in self._groups), complete, tuple(self._findings)
        )

    def _markup(self) -> None:
        text = self._lines.text
        first = _MARKUP.search(text)
        if first:
            message = (
                f"{len(_MARKUP.findall(text))} lines of markup are ignored. Begin comments "
                "with `#`."
            )
            self._findings.report(
                "automation.markup", message, line=1 + len(_END.findall(text, 0, first.start()))
            )

    def _read(self) -> bool:
        """Read the next line with a record. Return False at the end of the text."""
        self._lines.skip(_OTHERS_IN_GROUP if self._block else _OTHERS)
        self._line = line = self._lines.read()
        match = RECORD.match(line)
        if match is None:
            if not line.strip(b" \t\r\n"):
                self._end_block()
            return bool(line)
        name, colon, value = match.groups()
        self._name_at, self._value_at = match.start(1), match.start(3)
        name = name.lower()
        if not colon and name in SELECTORS and not _WORDS.fullmatch(value):
            return True
        if match.end() > MAX_LINE:
            raise _LimitError(f"The line has more than {MAX_LINE} octets")
        if b"<!--" in value:
            value = value.partition(b"<!--")[0]
            self._report(
                "automation.markup", "Markup after a value is ignored. Begin comments with `#`."
            )
        if not is_plain(match):
            rule, problem = _UNSEEN_BESIDE if colon else _NO_COLON
            ends = (
                "the line counts anyway"
                if name in SELECTORS
                else "it has its most restrictive value"
            )
            self._report(rule, f"`{{}}` is written {problem}: {ends}", name, of_name=True)
        self._record(name, value.rstrip(b" \t"), is_as_specified=is_plain(match))
        return True

    def _report(
        self, rule: str, message: str, quoted: bytes = b"", *, of_name: bool = False
    ) -> None:
        """Report a finding about the quoted text, which is the name or a part of the value."""
        start = self._name_at if of_name else self._line.find(quoted, self._value_at)
        column = start + 1 if quoted else 0
        self._findings.report(
            rule,
            message,
            *([quoted] if "{}" in message else ()),
            line=self._lines.number,
            column=column,
        )

    def _record(self, name: bytes, value: bytes, *, is_as_specified: bool) -> None:
        if self._block is None:
            self._block = _Open(self._lines.number, self._lines.line_start)
        if name == b"scope":
            self._scope(self._block, value)
        elif name == b"host":
            self._host(self._block, value)
        elif name == b"user-agent":
            self._agents(self._block, value)
        else:
            parsed, advice = self._directive(name, value) if is_as_specified else _strictest(name)
            self._state(
                self._block,
                name,
                DirectiveValue(parsed, self._lines.number, self._lines.line_start, advice),
            )

    def _scope(self, block: _Open, value: bytes) -> None:
        value = self._trim_name(value)
        patterns = url_patterns(value)
        if patterns != [value]:
            message = (
                "The line is a list of scopes. Write each scope on a line of its own."
                if patterns
                else "The scope is empty, so the line is ignored. Write a path, such as `/`."
            )
            self._report("automation.scope", message)
        for pattern_text in patterns:
            if self._scopes_left == 0:
                raise _LimitError(f"There are more than {MAX_SCOPES} scopes")
            self._scopes_left -= 1
            pattern, *of_host = scope_patterns(pattern_text)
            self._count_hosts(sum(bool(host) for host, _ in (pattern, *of_host)))
            block.scopes += pattern, *of_host
            if pattern.host == NOWHERE:
                self._report(
                    "automation.scope", "`{}` names no host, so it matches nothing.", pattern_text
                )
            elif not pattern.host and not pattern_text.startswith((b"/", b"*")):
                self._report("automation.scope", "`{}` is read with a leading `/`.", pattern_text)
            if SPACE.search(pattern_text):
                self._report(
                    "automation.scope",
                    "`{}` has white space, which is read as part of the URL. Write %20, "
                    "or delete it.",
                    pattern_text,
                )

    def _host(self, block: _Open, value: bytes) -> None:
        hosts = self._names(value)
        if len(hosts) != 1:
            message = (
                "The line has several hosts. The group is for all of them."
                if hosts
                else "The host is empty, so the line is ignored."
            )
            self._report("automation.host", message)
        self._count_hosts(len(hosts))
        for host_text in hosts:
            host = host_pattern(host_text.decode("utf-8", "replace"))
            block.hosts = block.hosts or []
            if host.startswith("."):  # LENIENT: the notation of cookies and proxies
                block.hosts += host[1:], f"*{host}"
                self._report(
                    "automation.host",
                    f"`{{}}` is read as {host[1:]} and the hosts below it",
                    host_text,
                )
            elif host:
                block.hosts.append(host)
            else:
                self._report(
                    "automation.host", "`{}` is not a host, so it matches nothing.", host_text
                )
            if b"/" in host_text and host:
                self._report("automation.host", f"`{{}}` is read as {host}", host_text)

    def _agents(self, block: _Open, value: bytes) -> None:
        names = self._names(value)
        if not names:
            self._report(
                "automation.agent",
                "The user-agent is empty, so it names no crawler. Write a name or `*`.",
            )
        block.agents = block.agents or set()
        for name in names:
            text = name.decode("utf-8", "replace")
            match = PRODUCT_TOKEN.match(text)
            token = match[0].lower() if match else "*" if text.split()[:1] == ["*"] else ""
            if token:
                block.agents.add(token)
            if not token:
                self._report(
                    "automation.agent",
                    "`{}` names no crawler. Write `*` for all crawlers, or one crawler's name.",
                    name,
                )
            elif len(token) < len(text):
                self._report("automation.agent", f"`{{}}` is read as {token}", name)

    def _names(self, value: bytes) -> list[bytes]:
        self._count_items(value)
        return [name for item in items(value) if (name := self._trim_name(item))]

    def _trim_name(self, value: bytes) -> bytes:
        name = trimmed(value)
        if name != value:
            self._report(
                "automation.invisible",
                "Invisible characters around `{}` are ignored. Delete them.",
                name,
            )
        return name

    def _count_items(self, value: bytes) -> None:
        number = value.count(b",") + 1
        self._items_left -= number
        if number > MAX_VALUES or self._items_left < 0:
            raise _LimitError(
                f"The list has more than {MAX_VALUES} values, or all lists more than {MAX_ITEMS}"
            )

    def _count_hosts(self, number: int) -> None:
        self._hosts_left -= number
        if self._hosts_left < 0:
            raise _LimitError(f"There are more than {MAX_HOSTS} hosts")

    def _directive(self, name: bytes, value: bytes) -> tuple[Any, str]:
        """Return the value of a directive, and the advice for a value that cannot be read."""
        if (name, value) not in self._cache:
            self._count_items(value)
            self._count_hosts(value.count(b"://"))
            self._cache[name, value] = DIRECTIVES[name].parse(value)
        parsed, odd = self._cache[name, value]
        if odd is None:
            return parsed, ""
        otherwise, advice = DIRECTIVES[name].otherwise, DIRECTIVES[name].advice(odd)
        message = f"{otherwise}. {advice[0].upper()}{advice[1:]}" if advice else otherwise
        self._report(
            "automation.value", f"`{{}}` {message}" if odd else f"An empty value {message}", odd
        )
        return parsed, advice

    def _state(self, block: _Open, name: bytes, value: DirectiveValue[Any]) -> None:
        values = block.values_by_name.setdefault(name, [])
        if len(values) == 1:
            message = f"`{name.decode()}` is repeated in its group. All values apply."
            self._findings.report("automation.repeated", message, line=value.line)
        if len(values) == MAX_REPEATED:
            message = (
                f"`{name.decode()}` is written more than {MAX_REPEATED} times in its group. "
                "Its most restrictive value applies."
            )
            self._findings.report("automation.limit", message, line=value.line)
            advice = f"write it at most {MAX_REPEATED} times in a group"
            values.append(value._replace(value=DIRECTIVES[name].strictest, advice=advice))
        elif len(values) < MAX_REPEATED:
            values.append(value)

    def _end_block(self) -> None:
        block, self._block = self._block, None
        if block is None or (block.is_continuing and not block.values_by_name):
            return
        if block.is_continuing and self._groups:
            message = (
                "The block names no scope, host or user-agent, so it continues the group before it."
            )
            self._findings.report("automation.continued", message, line=block.line)
            for name, values in block.values_by_name.items():
                for value in values:
                    self._state(self._groups[-1], name, value)
        elif len(self._groups) == MAX_GROUPS:
            raise _LimitError(f"There are more than {MAX_GROUPS} groups")
        else:
            self._groups.append(block)
