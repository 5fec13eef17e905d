"""Inlay hints and code lenses.

A hint shows how a mistyped line is read (`= Disallow`), or which other lines are about its agent
(`and line 7`). A lens shows the number of sample URLs that a group of lines decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from lsprotocol.types import CodeLens, Command, InlayHint, InlayHintKind

from comity.authoring.language_server.outline import FileOutline, ValueWord
from comity.authoring.language_server.statements import FileStatement
from comity.authoring.language_server.words import AGENT
from comity.authoring.problems import Problem
from comity.authoring.source import DEFAULT_ORIGIN
from comity.policies import Agent, PolicyError, Reason, Site

MAX_HINTS = 2000  # the maximum in one answer; hints about other lines are left out first
MAX_LENSES = 50
MAX_LENS_TEXT = 128 * 1024  # characters; larger files have no lenses
MAX_LINES_NAMED = 3  # the maximum number of lines that one hint names
ANYBODY = "any-agent"  # a product token that no file contains

_READ_AS = re.compile(r"is read as (`[^`]+`)")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


def hints(
    outline: FileOutline, problems: Iterable[Problem], first: int, last: int
) -> list[InlayHint]:
    """Return the hints for the lines from `first` to `last`, both included, counted from 0."""
    of_lines = islice(
        chain(_readings(outline, problems, first, last), _other_places(outline, first, last)),
        MAX_HINTS,
    )
    return sorted(of_lines, key=lambda hint: (hint.position.line, hint.position.character))


def _other_places(outline: FileOutline, first: int, last: int) -> Iterator[InlayHint]:
    """Yield a hint for each agent that is also named on other lines.

    The rules of all groups that name an agent apply to it."""
    # Agent -> its first lines, as many as a hint can need: MAX_LINES_NAMED, the line of the hint,
    # and one more, which shows that the hint is incomplete.
    lines: dict[str, dict[int, None]] = {}
    named: dict[tuple[str, int], ValueWord] = {}
    for statement in outline.statements_with(AGENT):
        word, line = outline.word(statement), statement.name_span.line
        for value in outline.value_words(statement) if word else ():
            assert word
            agent = f"{word.format.name} {value.text.lower()}"
            of_agent = lines.setdefault(agent, {})
            if len(of_agent) < MAX_LINES_NAMED + 2:
                of_agent[line] = None
            if first <= line <= last:
                named.setdefault((agent, line), value)
    for (agent, line), value in named.items():
        others = [other + 1 for other in lines[agent] if other != line]
        if others:
            numbers = ", ".join(map(str, others[:MAX_LINES_NAMED])) + (
                ", …" if len(others) > MAX_LINES_NAMED else ""
            )
            position = outline.document.position(value.span.line, value.span.end)
            yield InlayHint(position, f"and line {numbers}", padding_left=True)


def _readings(
    outline: FileOutline, problems: Iterable[Problem], first: int, last: int
) -> Iterator[InlayHint]:
    """Yield a hint for each problem with a message that contains "is read as `...`"."""
    for problem in problems:
        match = _READ_AS.search(problem.message)
        if match and problem.span and first < problem.span.line <= last + 1:
            line = problem.span.line - 1
            mark = 1 if line == 0 and outline.document.text.startswith("\ufeff") else 0
            position = outline.document.position(line, problem.span.end_column - 1 + mark)
            yield InlayHint(
                position, f"= {match[1].strip('`')}", kind=InlayHintKind.Type, padding_left=True
            )


def lenses(outline: FileOutline, targets: tuple[str, ...]) -> list[CodeLens]:
    """Return a lens for each of the first MAX_LENSES groups, such as "decides 3 of 8 sample URLs".

    A group is a statement that names agents, with the lines below it.
    `targets`: paths, with queries, of sample pages: "/a?b=1"."""
    kind = outline.document.kind
    if kind is None or not kind.path or not targets or len(outline.document.text) > MAX_LENS_TEXT:
        return []
    try:
        site = Site.from_files(DEFAULT_ORIGIN, {kind.path: outline.document.body})
    except (PolicyError, ValueError):
        return []
    code_lenses = []
    # Product token -> for each target, the lines that decide about it.
    decided: dict[str, list[set[int]]] = {}
    for statement in list(_groups(outline))[:MAX_LENSES]:
        token = _token(outline, statement)
        if token not in decided:
            decided[token] = [_lines(site, Agent(token), target) for target in targets]
        group = range(statement.name_span.line + 1, statement.last_line + 2)
        count = sum(not lines.isdisjoint(group) for lines in decided[token])
        title = f"decides {count} of {len(targets)} sample URL{'s' if len(targets) > 1 else ''}"
        code_lenses.append(
            CodeLens(outline.document.range(*statement.name_span), Command(title, ""))
        )
    return code_lenses


def _groups(outline: FileOutline) -> Iterator[FileStatement]:
    for statement in outline.statements:
        word = outline.word(statement)
        if word and AGENT in word.value_kinds and statement.last_line > statement.name_span.line:
            yield statement


def _token(outline: FileOutline, statement: FileStatement) -> str:
    names = (match[0] for agent in outline.agents_of(statement) if (match := _TOKEN.match(agent)))
    return next(names, ANYBODY)


def _lines(site: Site, agent: Agent, target: str) -> set[int]:
    """Return the numbers of the lines that decide about a page, from 1."""
    url = DEFAULT_ORIGIN + target
    page = site.page(agent, url, body=None)
    reasons: list[Reason] = [*site.access(agent, url).reasons]
    reasons += (reason for use in page.uses.values() for reason in use.reasons)
    reasons += (reason for element in page.elements for reason in element.reasons)
    return {reason.source.line for reason in reasons} - {0}
