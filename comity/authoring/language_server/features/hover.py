"""Hover: what a line means, for whom, and by which section."""

from __future__ import annotations

from lsprotocol.types import Hover, MarkupContent, MarkupKind, Position

from comity.authoring.language_server.outline import Outline, ValueWord
from comity.authoring.language_server.statements import Span, Statement
from comity.authoring.language_server.words import AGENT, Word, href
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.known_crawlers import known

MAX_AGENTS = 5  # that are named


def hover(outline: Outline, position: Position) -> Hover | None:
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
    return (
        Hover(MarkupContent(MarkupKind.Markdown, text), outline.document.range(*span))
        if text
        else None
    )


def of_name(outline: Outline, statement: Statement, word: Word) -> str:
    """Return what a line means, in Markdown."""
    directive = word.directive
    lines = [
        f"**{directive.name}**" + (f" {quoted(statement.value)}" if statement.value else ""),
        f"{directive.summary}.",
    ]
    if AGENT not in word.value_kinds and (agents := outline.agents_of(statement)):
        lines.append(f"For {addressees(agents, word)}.")
    return "\n\n".join([*lines, section(directive.spec)])


def _of_value(outline: Outline, statement: Statement, word: Word, value: ValueWord) -> str:
    for kind in value.kinds:
        for name, summary in word.values_of(kind).items():
            if name.lower() == value.text.lower():
                return "\n\n".join([f"{quoted(name)}: {summary}.", section(word.directive.spec)])
    item = outline.words.get(
        value.text, statement.name
    )  # a word that is one of the format's names, as those in a list
    if item:
        return "\n\n".join(
            [
                f"**{item.directive.name}**",
                f"{item.directive.summary}.",
                section(item.directive.spec),
            ]
        )
    if AGENT in value.kinds and (description := known_agent(value.text)):
        return f"{quoted(value.text)}: {description}"
    return of_name(outline, statement, word)


def known_agent(token: str) -> str:
    """Return what is known of a crawler; "": nothing."""
    crawler = known(token)
    if crawler is None:
        return ""
    retired = ""
    if crawler.retired:
        retired = (
            f" The name is no longer used: write {quoted(crawler.replaced_by)}."
            if crawler.replaced_by
            else " It has ended."
        )
    return f"{crawler.operator}, {crawler.purpose}.{retired}\n\n<{crawler.source}>"


def addressees(agents: list[str], word: Word) -> str:
    if "*" in agents:
        return "every agent" if len(agents) > 1 else word.values_of(AGENT).get("*", "every agent")
    names = [quoted(agent) for agent in agents[:MAX_AGENTS]]
    others = len(agents) - len(names)
    return ", ".join(names) + (f" and {others} more" if others else "")


def quoted(text: str) -> str:
    """A text of the file as code: it cannot end that."""
    visible = printable(text[:200].encode("utf-8", "replace")).replace("`", "'")
    return f"`{visible}`"


def section(spec: str) -> str:
    address = href(spec)
    return f"[{spec}]({address})" if address else f"*{spec}*"
