"""Checks of an automation-preferences.txt beyond its syntax: groups and lines without effect.

    check_site(files)     the file of a site
    records(text)         its records, and lines that look like records

The time is linear in the octets, except for the few limits of a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Remarks, literal
from comity.policies.formats.automation.directives import Directives, Group
from comity.policies.formats.automation.file import preferences_of
from comity.policies.formats.automation.grammar import RECORD, SELECTORS
from comity.policies.formats.automation.resolution import exactness_of
from comity.policies.formats.automation.value_syntax import DIRECTIVES, host_pattern, url_patterns
from comity.policies.formats.automation.words import MECHANISMS
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.lines import Lines
from comity.policies.syntax.suspicions import nearest, oddity
from comity.policies.syntax.windows import Window

NAMES = tuple(name.decode() for name in (*SELECTORS, *DIRECTIVES))
_LIKE_RECORD = re.compile(rb"[ \t]*+([A-Za-z][A-Za-z_-]*+)[ \t]*+:[ \t]*+([^#\r\n]*+)")


class DirectiveLine(NamedTuple):
    """A line of the form `name: value`.

    Attributes:
        name: The name in lower case.
        line: The number of the line, from 1.
        column: The column of the value, from 1, in octets.
        name_column: The column of the name, from 1, in octets.
        is_known: True if the name is one of a selector or directive.
    """

    name: str
    value: bytes
    line: int
    column: int
    name_column: int
    is_known: bool


def records(text: bytes) -> Iterator[DirectiveLine]:
    """Yield the records, and lines that look like records."""
    lines = Lines(text)
    while line := lines.read():
        record = RECORD.match(line)
        match = record or _LIKE_RECORD.match(line)
        if match:
            value = match[match.lastindex or 0].rstrip(b" \t")
            start = match.start(match.lastindex or 0)
            yield DirectiveLine(
                match[1].decode("ascii").lower(),
                value,
                lines.number,
                start + 1,
                match.start(1) + 1,
                record is not None,
            )


def check_site(files: SiteFiles) -> tuple[Finding, ...]:
    """Return findings about the file of a site, in addition to the findings of reading it."""
    file = preferences_of(files)
    if not file.automation:
        return ()
    remarks = Remarks(file.url)
    for record in records(file.text):
        _check_record(remarks, record)
    lines = Lines(file.text)
    while line := lines.read():
        if match := SLASHES.match(line):
            message = "`//` does not begin a comment. Write `#`."
            remarks.report(
                "automation.unknown", message, line=lines.number, column=match.end() - 1, length=2
            )
    groups = file.automation.groups
    _check_shadowed(remarks, groups)
    _check_hosts(remarks, groups, files.origin)
    for group in groups:
        _check_group(remarks, group)
    return remarks.findings


def _check_record(remarks: Remarks, record: DirectiveLine) -> None:
    if not record.is_known:
        name = record.name.encode()
        near = nearest(record.name, NAMES)
        message = (
            f"`{{}}` is not a directive. Write `{near}`."
            if near
            else "`{}` is not a directive, so the line has no effect."
        )
        remarks.report(
            "automation.unknown",
            message,
            name,
            line=record.line,
            column=record.name_column,
            length=len(name),
        )
    elif record.name == "scope":
        for pattern in url_patterns(record.value):
            if odd := oddity(pattern):
                column = record.column + record.value.find(pattern)
                message = f"`{{}}` probably matches nothing. {literal(odd)}"
                remarks.report(
                    "automation.pattern",
                    message,
                    pattern,
                    line=record.line,
                    column=column,
                    length=len(pattern),
                )
    elif record.name == "allowed-automations":
        for match in re.finditer(rb"[^ \t,]++", record.value):
            word = match[0].decode("utf-8", "replace").lower()
            if word not in MECHANISMS and (near := nearest(word, MECHANISMS)):
                column = record.column + match.start()
                message = f"The mechanism `{{}}` does not exist. Write `{near}`."
                remarks.report(
                    "automation.word",
                    message,
                    match[0],
                    line=record.line,
                    column=column,
                    length=len(match[0]),
                )


SLASHES = re.compile(rb"[ \t]*+//")  # they do not begin a comment in these files


_ANYBODY = frozenset(("*",))
_EVERYWHERE = (("", "/"), ("", "*"), ("", "/*"))


def _check_shadowed(remarks: Remarks, groups: tuple[Group, ...]) -> None:
    """Report groups that never apply because later groups of equal rank replace them."""
    last: dict[tuple[Any, ...], Group] = {}
    # Equal sets are one object, so that comparing them is fast. A group can have many scopes.
    interned: dict[frozenset[str], frozenset[str]] = {}
    of_groups = [_selectors(group, interned) for group in groups]
    for group, selectors in zip(groups, of_groups, strict=True):
        last.update(dict.fromkeys(selectors, group))
    for group, selectors in zip(groups, of_groups, strict=True):
        others = [last[selector] for selector in selectors]
        if all(other is not group for other in others):
            line = min(other.line for other in others)
            message = (
                f"The group never applies: the group in line {line} has the same selectors, "
                "and the later group counts. Delete one."
            )
            remarks.report("automation.shadowed", message, line=group.line)
        elif not group.scopes:
            hosts = selectors[0][0]
            whole = (last.get((hosts, _agents(group), *scope)) for scope in _EVERYWHERE)
            if other := next((other for other in whole if other), None):
                message = (
                    "The group never applies: it has no scope, and the group in line "
                    f"{other.line} is for every URL. Add a scope."
                )
                remarks.report("automation.shadowed", message, line=group.line)


def _agents(group: Group) -> frozenset[str]:
    return _ANYBODY if group.agents is None or "*" in group.agents else group.agents


def _selectors(
    group: Group, interned: dict[frozenset[str], frozenset[str]]
) -> list[tuple[Any, ...]]:
    """Return hosts, agents and scope for each scope of a group.

    `interned` maps each set to the one object that is used for all equal sets.
    """
    agents = _agents(group) if group.agents is None else group.agents
    agents = interned.setdefault(agents, agents)
    hosts: frozenset[str] | tuple[str, ...] | None = group.hosts
    if hosts:
        hosts = frozenset(hosts)
        hosts = interned.setdefault(hosts, hosts)
    return [(hosts, agents, *(scope or (None,))) for scope in group.scopes or (None,)]


def _check_hosts(remarks: Remarks, groups: tuple[Group, ...], origin: str) -> None:
    """Report groups for other hosts, if any group names this host.

    If no group names this host, nothing is reported: the file may not be on its site yet.
    """
    host = host_pattern(origin.partition("://")[2])
    matching = [
        group.hosts is not None and exactness_of(group.hosts, host) is not None for group in groups
    ]
    for group, is_here in zip(groups, matching, strict=True):
        if any(matching) and group.hosts and not is_here:
            message = (
                f"The group is for another host than {host}, so it has no effect here. Put "
                "it into that host's own file."
            )
            remarks.report("automation.other-host", message, line=group.line)


def _check_group(remarks: Remarks, group: Group) -> None:
    directives = group.directives
    if not directives.allowed_methods:
        message = (
            "The group has no allowed-methods, so every request is refused. Write "
            "`allowed-methods: GET, HEAD`."
        )
        remarks.report("automation.no-methods", message, line=group.line)
    for line, message in _without_effect(directives):
        remarks.report("automation.no-effect", message, line=line)
    _check_limits(remarks, directives)


def _without_effect(directives: Directives) -> Iterator[tuple[int, str]]:
    """Yield the numbers of lines without effect, each with a message."""
    methods = directives.allowed_methods
    if methods and not frozenset.intersection(*(directive.value for directive in methods)):
        for name in directives._fields:
            if name != "allowed_methods" and (values := getattr(directives, name)):
                yield (
                    values[0].line,
                    f"This line has no effect: line {methods[0].line} permits no method, "
                    "so every request is refused.",
                )
        return
    if directives.disallow_fetch_from and all(
        value.value == "none" for value in directives.allow_xhr
    ):
        cause = (
            f"line {directives.allow_xhr[0].line} refuses"
            if directives.allow_xhr
            else "without allow-xhr the group refuses"
        )
        yield (
            directives.disallow_fetch_from[0].line,
            f"This line has no effect: {cause} all requests of scripts, from any page.",
        )


def _check_limits(remarks: Remarks, directives: Directives) -> None:
    limits = [limit for limit in directives.request_limit if limit.value and limit.value.requests]
    for limit in limits:
        others = (
            other
            for other in limits
            if limit.value and other.value and _is_beyond(limit.value, other.value)
        )
        if other := next(others, None):
            message = f"This limit has no effect: the limit in line {other.line} is stricter."
            remarks.report("automation.slack-limit", message, line=limit.line)
    lines = [
        limit.line for limit in directives.request_limit if limit.value and not limit.value.requests
    ]
    lines += [limit.line for limit in directives.concurrent_limit if not limit.value]
    for line in lines:
        message = (
            "A limit of zero refuses every request. Delete it, or write `allowed-methods:` "
            "without a method to refuse them."
        )
        remarks.report("automation.zero", message, line=line)


def _is_beyond(limit: Window, other: Window) -> bool:
    """Return True if `limit` has no effect, because crawlers that obey `other` obey it too."""
    if limit == other:
        return False
    if other.seconds >= limit.seconds:
        return limit.requests >= other.requests
    return (
        limit.requests * other.seconds >= other.requests * limit.seconds
        and limit.seconds % other.seconds == 0
    )
