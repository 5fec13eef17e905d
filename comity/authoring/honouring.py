"""The crawlers that would obey a line, as their operators say.

    honouring_of(format_, directive, agents).sentences()    sentences about one line
    lines_of(explanation)                                   each line that decides about a site

The statements are in comity/policies/vocabulary/honoured_signals.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from comity.authoring.explaining import Citation, Explanation
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Directive
from comity.policies.formats.format import Format
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.honoured_signals import (
    ANSWERS,
    HONOURS,
    IGNORES,
    HonourStatement,
    search_day,
    statements_on,
)

EVERYBODY = "*"
MAX_NAMES = 5  # the maximum number of readers that a sentence names
_CARRIERS = {"header": "field", "meta": "meta"}  # kinds of parts -> forms of directives
_WITHIN_LINES = ("word", "member", "element", "attribute")  # forms of directives
_PLURALS = {HONOURS: "honour", IGNORES: "ignore"}
_FORMATS_OF_RULES = {
    rule.partition(".")[0]: format_ for format_ in FORMATS for rule in format_.rules
}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class Honouring(NamedTuple):
    """The statements about the readers of a directive.

    Attributes:
        format: The name of the format.
        name: The directive. "" means the format as a whole.
        agents: The crawlers to which the line applies. () means everybody.
        statements: The statements of operators about the directive, for these crawlers only.
    """

    format: str
    name: str
    agents: tuple[str, ...]
    statements: tuple[HonourStatement, ...]

    @property
    def silent(self) -> tuple[str, ...]:
        """The agents about which nothing was found."""
        known = {token.lower() for one in self.statements for token in one.crawlers}
        return tuple(agent for agent in self.agents if agent.lower() not in known)

    def sentences(
        self, link: Callable[[HonourStatement, str], str] = lambda _, name: name
    ) -> Iterator[str]:
        """Yield sentences, one for each answer.

        `link`: returns the name of a reader with a link to the source of a statement."""
        shown = f"`{self.name}`" if self.name else "the format"
        for answer in ANSWERS:
            readers = {
                reader: link(statement, reader)
                for statement in self.statements
                if statement.answer == answer
                for reader in (
                    statement.crawlers
                    if statement.crawlers and (self.agents or answer != HONOURS)
                    else (statement.who,)
                )
            }
            if readers:
                names = [*readers.values()]
                yield f"{_join(names)} {_verb(answer, names)} {shown}, as documented."
        if self.silent:
            silent = _join([f"`{printable(name)}`" for name in self.silent])
            yield f"No statement was found about {shown} for {silent}."
        elif not self.statements:
            day = search_day(self.format)
            when = f" The last search was on {day}." if day else " There was no search yet."
            yield f"No reader is known that says that it honours {shown}.{when}"


def honouring_of(
    format_: Format, directive: Directive | None, agents: Iterable[str] = (), carrier: str = ""
) -> Honouring:
    """Return the statements about the readers of a directive.

    `directive`: None means the format as a whole.
    `agents`: the crawlers to which the line applies. Without any, and with "*", all are meant.
    `carrier`: "field" if a header field has the directive, and "meta" if an element has it.
    Statements about the other carrier only are left out. "" means any."""
    name, spec = (directive.name, directive.spec) if directive else ("", "")
    forms = {one.name: one.form for one in format_.authoring.directives}
    found = tuple(
        statement
        for statement in statements_on(format_.name, name, spec)
        if not carrier
        or _is_read_in(carrier, {forms.get(directive, "") for directive in statement.directives})
    )
    names = tuple(dict.fromkeys(agents))
    if not names or EVERYBODY in names:
        return Honouring(format_.name, name, (), found)
    wanted = {name.lower() for name in names}
    of_agents = (
        one._replace(crawlers=tuple(token for token in one.crawlers if token.lower() in wanted))
        for one in found
    )
    return Honouring(format_.name, name, names, tuple(one for one in of_agents if one.crawlers))


def _is_read_in(carrier: str, forms: Collection[str]) -> bool:
    """Return True if a statement about directives of these forms is about a carrier."""
    return carrier in forms or not {"field", "meta"} & {*forms}


def claim(statement: HonourStatement, name: str, *, is_about_crawlers: bool = False) -> str:
    """Return a statement about a directive as a sentence without its full stop.

    `name`: the directive. `is_about_crawlers`: name the crawlers instead of the operator."""
    names = statement.crawlers if is_about_crawlers and statement.crawlers else (statement.who,)
    detail = f": {statement.detail}" if statement.detail else ""
    return f"{_join(names)} {_verb(statement.answer, names)} `{name}`{detail}"


class DecidingLine(NamedTuple):
    """A line that decides about a site.

    Attributes:
        citation: The line.
        agents: The crawlers to which it applies. () means everybody.
        honouring: The statements about its readers, one entry for each directive in it.
    """

    citation: Citation
    agents: tuple[str, ...]
    honouring: tuple[Honouring, ...]

    def sentences(self) -> Iterator[str]:
        """Yield the sentences about all directives of the line."""
        for honouring in self.honouring:
            yield from honouring.sentences()


def lines_of(explanation: Explanation) -> Iterator[DecidingLine]:
    """Yield each line that decides, once for each group of crawlers, in the order of the groups."""
    for group in explanation.groups:
        citations = dict.fromkeys(
            citation
            for answer in group.answers
            for citation in chain(
                answer.citations, *(exception.citations for exception in answer.exceptions)
            )
        )
        for citation in citations:
            format_ = _format_of(citation)
            if format_ and citation.text and citation.part != "status":
                directives = directives_in(format_, citation.text, citation.spec) or (None,)
                carrier = _CARRIERS.get(citation.part.partition(" ")[0], "")
                yield DecidingLine(
                    citation,
                    group.agents,
                    tuple(
                        honouring_of(format_, directive, group.agents, carrier)
                        for directive in directives
                    ),
                )


def _format_of(citation: Citation) -> Format | None:
    """Return the format of a line. None: it belongs to no format.

    Lines about rates are cited without a rule. Their format is the first that has the line."""
    of_rule = _FORMATS_OF_RULES.get(citation.rule.partition(".")[0])
    return of_rule or next(
        (format_ for format_ in FORMATS if _line_directive(format_, citation.text)), None
    )


def _line_directive(format_: Format, text: str, spec: str = "") -> Directive | None:
    """Return the directive that a line names. None: the text is no line of the format.

    Formats with another separator read a line with a colon too."""
    name, *values = re.split(f"[:{format_.authoring.separator}]", text, maxsplit=1)
    named = [
        directive
        for directive in format_.authoring.directives
        if values and directive.form == "line" and directive.name.lower() == name.strip().lower()
    ]
    same = (directive for directive in named if directive.spec == spec)
    return next(same, next(iter(named), None))


def directives_in(format_: Format, text: str, spec: str = "") -> Sequence[Directive]:
    """Return the directives of a format in the text of a line, field or element.

    For a line, this is the name before its separator.
    `spec`: the specification of the line, which decides between directives with one name."""
    if line := _line_directive(format_, text, spec):
        return (line,)
    words = {word.lower() for word in _WORD.findall(text)}
    named = {
        directive.name.lower(): directive
        for directive in reversed(format_.authoring.directives)
        if directive.form in _WITHIN_LINES and directive.name.lower() in words
    }
    return [*reversed(named.values())]


def _verb(answer: str, names: Sequence[str]) -> str:
    return _PLURALS.get(answer, answer) if len(names) > 1 else answer


def _join(names: Sequence[str]) -> str:
    if len(names) > MAX_NAMES:
        return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
