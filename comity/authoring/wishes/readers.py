"""The crawlers that obey a form of a wish, as their operators say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from comity.authoring.honouring import Honouring, claim, directives_in, honouring_of
from comity.authoring.wishes.wish import (
    ACAP,
    AI_TXT,
    AIPREF,
    AUTOMATION,
    ELEMENT,
    FIELD,
    META,
    RFC,
    RSL,
    SIGNALS,
    SPAWNING,
    TDMREP,
    TRAINING_RULES,
    TRUST,
    USAGE,
    Artefact,
    Form,
)
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Directive
from comity.policies.formats.format import Format
from comity.policies.vocabulary.known_crawlers import KnownCrawler, known

# A list of readers that is longer than this is shortened to sentences.
MAX_STATEMENTS = 12
# The sources of the statements in a list that is shortened.
SOURCES = "`comity explain --readers --format json` has the sources"
AGENT = "User-agent"
_FORMATS = {format_.name: format_ for format_ in FORMATS}
# The formats of wishes, and the names in the registry. Two have several forms in one format.
FORMATS_OF_WISHES = {
    RFC: "robots",
    ACAP: "acap",
    AUTOMATION: "automation",
    USAGE: "aipref",
    AIPREF: "aipref",
    SIGNALS: "content-signals",
    TRAINING_RULES: "training-rules",
    TRUST: "trust-txt",
    AI_TXT: "ai-txt",
    SPAWNING: "ai-txt",
    META: "robots-meta",
    TDMREP: "tdmrep",
    RSL: "rsl",
}
_SPAWNING_SPEC = "Spawning's ai.txt (docs/ai-txt.md)"


class Reader(NamedTuple):
    """A statement about the crawlers that obey a form.

    Attributes:
        statement: The statement, in one sentence without its full stop.
        source: The URL of the document that supports it. "" if there is none to cite.
    """

    statement: str
    source: str = ""


_OF_RFC = Reader(
    "RFC 9309 requests all crawlers to obey the file", "https://www.rfc-editor.org/rfc/rfc9309"
)


def readers_of(form: Form) -> tuple[Reader, ...]:
    """Return the statements about the crawlers that obey a form."""
    honourings = [*_honourings_of(form)]
    is_rule = any((one.format, one.name) == ("robots", "Disallow") for one in honourings)
    readers = [_OF_RFC] if is_rule else []
    for honouring in honourings:
        readers += _of_honouring(honouring)
    if readers:
        return tuple(dict.fromkeys(readers))
    return (Reader("comity obeys the format. No operator of another crawler is known to do so"),)


def _of_honouring(honouring: Honouring) -> Iterator[Reader]:
    if len(honouring.statements) > MAX_STATEMENTS and not honouring.agents:
        for sentence in honouring.sentences():
            yield Reader(f"{sentence.rstrip('.')}: {SOURCES}")
        return
    for statement in honouring.statements:
        text = claim(statement, honouring.name, is_about_crawlers=bool(honouring.agents))
        yield Reader(text, statement.source)
    if honouring.silent:
        *_, silence = honouring.sentences()
        yield Reader(silence.rstrip("."))


def _honourings_of(form: Form) -> Iterator[Honouring]:
    """Yield the statements about the readers of each directive that a form uses."""
    format_ = _FORMATS[FORMATS_OF_WISHES[form.format]]
    spec = _SPAWNING_SPEC if form.format == SPAWNING else ""
    for artefact in form.artefacts:
        carrier = {ELEMENT: "meta", FIELD: "field"}.get(artefact.location, "")
        agents = [crawler.token for crawler in named_crawlers(artefact)]
        for directive in _directives(format_, artefact, spec):
            yield honouring_of(format_, directive, agents, carrier)


def _directives(format_: Format, artefact: Artefact, spec: str) -> list[Directive]:
    """Return the directives in a text that have a value, and do not name a crawler."""
    lines = (line.strip() for line in artefact.template.splitlines())
    found = (
        directive
        for line in lines
        if line.rpartition(":")[2].strip()
        for directive in directives_in(format_, line, spec)
        if directive.name != AGENT
    )
    return [*dict.fromkeys(found)]


def named_crawlers(artefact: Artefact) -> list[KnownCrawler]:
    """Return the known crawlers that a robots.txt names, with their purposes and sources."""
    lines = artefact.template.splitlines()
    tokens = (line.partition(": ")[2] for line in lines if line.startswith("User-agent: "))
    return [crawler for token in tokens if (crawler := known(token))]
