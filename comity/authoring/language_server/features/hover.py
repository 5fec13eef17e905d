"""Hover: the meaning of a line, its agents, the section of the specification, and its problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lsprotocol.types import Hover, MarkupContent, MarkupKind, Position, Range

from comity.authoring.honouring import honouring_of
from comity.authoring.language_server.features.diagnostics import place_of
from comity.authoring.language_server.outline import FileOutline, ValueWord
from comity.authoring.language_server.statements import FileStatement, Span
from comity.authoring.language_server.words import AGENT, Word
from comity.authoring.problems import Problem
from comity.authoring.rules import advice_of, href
from comity.policies.answers.rule import without_page
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.known_crawlers import known

MAX_AGENTS = 5  # the maximum number of agents that one text lists


def hover(
    outline: FileOutline, position: Position, problems: Iterable[Problem] = ()
) -> Hover | None:
    """Return the hover text for a position. None means that no word and no problem is there.

    `problems`: the problems of the file. The text says why those at the position matter, and how to
    mend them."""
    of_word = _of_position(outline, position)
    of_problems = _of_problems(outline, position, problems)
    shown = [*([of_word] if of_word else ()), *of_problems]
    if not shown:
        return None
    text = "\n\n".join(dict.fromkeys(each.text for each in shown))
    return Hover(MarkupContent(MarkupKind.Markdown, text), shown[0].range)


class _RangeText(NamedTuple):
    text: str
    range: Range


def _of_problems(
    outline: FileOutline, position: Position, problems: Iterable[Problem]
) -> Iterator[_RangeText]:
    """Yield why each problem at a position matters, and how to mend it."""
    line, column = outline.document.line_and_column(position)
    for problem in problems:
        if problem.span is None:
            continue
        number, start, end = place_of(outline.document, problem.span)
        if number == line and start <= column <= end and (advice := advice_of(problem.rule)):
            range_ = outline.document.range(number, start, end)
            yield _RangeText(f"`{problem.rule}`: {advice}", range_)


def _of_position(outline: FileOutline, position: Position) -> _RangeText | None:
    """Return the text about the word at a position. None means that it is no word of a format."""
    line, column = outline.document.line_and_column(position)
    outline = outline.with_agents(line)
    match = outline.statement_at(line, column)
    if match is None:
        return None
    statement, value = match
    word = outline.word(statement)
    if word is None:
        return None
    text = (
        _of_value(outline, statement, word, value) if value else of_name(outline, statement, word)
    )
    span: Span = value.span if value else statement.name_span
    return _RangeText(text, outline.document.range(*span)) if text else None


def of_name(outline: FileOutline, statement: FileStatement, word: Word) -> str:
    """Return the meaning of a line, in Markdown."""
    directive = word.directive
    lines = [
        f"**{directive.name}**" + (f" {quote_code(statement.value)}" if statement.value else ""),
        f"{directive.summary}.",
    ]
    if AGENT not in word.value_kinds and (agents := outline.agents_of(statement)):
        lines.append(f"For {addressees(agents, word)}.")
    return "\n\n".join([*lines, *_readers(outline, statement, word), section(directive.spec)])


def _readers(outline: FileOutline, statement: FileStatement, word: Word) -> Iterator[str]:
    """Yield sentences about the crawlers that would obey a line, in Markdown."""
    if AGENT not in word.value_kinds:
        agents = outline.agents_of(statement)
        carrier = "meta" if word.directive.form == "word" else ""
        honouring = honouring_of(word.format, word.directive, agents, carrier)
        yield from honouring.sentences(lambda one, name: f"[{name}](<{one.source}>)")


def _of_value(outline: FileOutline, statement: FileStatement, word: Word, value: ValueWord) -> str:
    # The value may be a name of the format itself, for example in a list.
    item = outline.words.get(value.text, statement.name)
    readers = _readers(outline, statement, item) if item and item.format is word.format else ()
    for kind in value.kinds:
        for name, summary in word.values_of(kind).items():
            if name.lower() == value.text.lower():
                return "\n\n".join(
                    [f"{quote_code(name)}: {summary}.", *readers, section(word.directive.spec)]
                )
    if item:
        return "\n\n".join(
            [
                f"**{item.directive.name}**",
                f"{item.directive.summary}.",
                *readers,
                section(item.directive.spec),
            ]
        )
    if AGENT in value.kinds and (description := known_agent(value.text)):
        return f"{quote_code(value.text)}: {description}"
    return of_name(outline, statement, word)


def known_agent(token: str) -> str:
    """Return a description of a crawler, in Markdown, or "" if it is not known."""
    crawler = known(token)
    if crawler is None:
        return ""
    retired = ""
    if crawler.retired:
        retired = (
            f" The name is no longer used: write {quote_code(crawler.replaced_by)}."
            if crawler.replaced_by
            else " The crawler no longer exists."
        )
    return f"{crawler.operator}, {crawler.purpose}.{retired}\n\n<{crawler.source}>"


def addressees(agents: list[str], word: Word) -> str:
    """Return a phrase for a list of agents: "`GPTBot`, `CCBot` and 2 more", or "every agent".

    `word`: a word of the format, which may have a phrase of its own for `*`."""
    if "*" in agents:
        return "every agent" if len(agents) > 1 else word.values_of(AGENT).get("*", "every agent")
    names = [quote_code(agent) for agent in agents[:MAX_AGENTS]]
    others = len(agents) - len(names)
    return ", ".join(names) + (f" and {others} more" if others else "")


def quote_code(text: str) -> str:
    """Return a text of the file as code in Markdown. Backticks in it are replaced."""
    visible = printable(text[:200].encode("utf-8", "replace")).replace("`", "'")
    return f"`{visible}`"


def section(spec: str) -> str:
    """Return a specification and section in Markdown, with a link if its URL is known."""
    address = href(spec)
    return f"[{spec}]({address})" if address else f"*{without_page(spec)}*"
