"""Checks of robots meta elements and X-Robots-Tag fields beyond their syntax.

    check_document(content, url)     the elements of a page, and its header fields

They find contradictions, repetitions and slips.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.document.document import Content
from comity.policies.formats.authoring import Remarks, literal
from comity.policies.formats.robots_meta.directives import (
    DIRECTIVE_NAMES,
    MAX_CHARS,
    MEMBER,
    directives_in,
    is_for_others,
    scope,
)
from comity.policies.formats.robots_meta.words import SPELLINGS
from comity.policies.syntax.printable import printable
from comity.policies.syntax.suspicions import nearest
from comity.policies.vocabulary.known_crawlers import nearest as nearest_crawler

# Directive -> the directives that it contradicts.
_OPPOSITES = {
    "index": ("noindex", "none"),
    "follow": ("nofollow", "none"),
    "archive": ("noarchive", "nocache"),
    "snippet": ("nosnippet",),
    "imageindex": ("noimageindex",),
    "all": ("noindex", "nofollow", "none"),
}
_FIELD = "x-robots-tag"
_INFORMAL = ("noai", "noimageai", "noml")
_PLAIN = re.compile(r"[A-Za-z_;\s-]*")  # directives without values
_NAME = re.compile(r"[a-z_-]+")
_EQUALS = re.compile(r"[A-Za-z_ -]+=")
_OBSOLETE = ("noodp", "noydir", "noyaca", "nositelinkssearchbox")


class _Directive(NamedTuple):
    """A directive in an element or field.

    Attributes:
        name: The normalized name. "" means that the text is not a known directive.
        text: The directive as written.
        line: 0 for a header field.
    """

    name: str
    value: str
    text: str
    line: int


def check_document(content: Content, url: str) -> tuple[Finding, ...]:
    """Return findings about the elements of a page and its header fields.

    The findings of reading them are not included.
    """
    remarks = Remarks(url)
    addressed: dict[str, list[_Directive]] = {}  # agent in lower case -> its directives
    equivalents = [
        (text, line) for name, text, line in _metas(content, "http-equiv") if name == _FIELD
    ]
    named, others = ([*_to_agents(content, attribute)] for attribute in ("name", "property"))
    fields = [
        (value.decode("utf-8", "replace"), 0)
        for name, value in content.headers
        if name.lower() == _FIELD.encode()
    ]
    for agent, directive in (
        *_in_fields([*fields, *equivalents]),
        *_in_elements([*named, *others]),
    ):
        addressed.setdefault(agent, []).append(directive)
    for agent, directives in addressed.items():
        _check_name(remarks, agent, directives)
        _check(remarks, directives)
    texts = [(text, line) for _, text, line in (*named, *others)]
    for text, line in (*fields, *equivalents, *texts):
        _check_separators(remarks, text[:MAX_CHARS], line)
    for name, line in content.metas_without_content() if content.is_markup else ():
        if name == "robots":
            message = "The element has no `content`, so it states nothing. Add the directives."
            remarks.report("robots-meta.attribute", message, line=line)
    for name, _, line in _metas(content, "http-equiv"):
        if name == "robots":
            message = 'No crawler reads `http-equiv` here. Write `name="robots"`.'
            remarks.report("robots-meta.attribute", message, line=line)
    for name, _, line in others:
        message = 'Few crawlers read `property`. Write `name="{}"`.'
        remarks.report("robots-meta.attribute", message, name.encode("utf-8", "replace"), line=line)
    for _, line in equivalents:
        message = (
            "Few crawlers read `http-equiv` here. Send the header field X-Robots-Tag, or "
            'write `name="robots"`.'
        )
        remarks.report("robots-meta.attribute", message, line=line)
    return remarks.findings


def _metas(content: Content, attribute: str) -> Iterator[tuple[str, str, int]]:
    return content.metas_by_line(attribute) if content.is_markup else iter(())


def _to_agents(content: Content, attribute: str) -> Iterator[tuple[str, str, int]]:
    """Yield the agent, the directives and the line of each element."""
    for name, text, line in _metas(content, attribute):
        if name == "robots" or is_for_others(name, text):
            yield name, text, line


def _in_fields(fields: list[tuple[str, int]]) -> Iterator[tuple[str, _Directive]]:
    """Yield each directive with its agent.

    Each of the `fields` is the value of a header field, and its line.
    """
    remaining = MAX_CHARS
    for value, line in fields:
        if (remaining := remaining - len(value)) >= 0:
            agent = "robots"
            for member in MEMBER.findall(value):
                agents, rest = scope(member, "")
                agent = agents[-1] if agents else agent
                for directive in directives_in(rest):
                    yield "robots" if agent == "*" else agent, _Directive(*directive, line)


def _in_elements(elements: list[tuple[str, str, int]]) -> Iterator[tuple[str, _Directive]]:
    remaining = MAX_CHARS
    for agent, text, line in elements:
        if (remaining := remaining - len(text)) >= 0:
            for member in MEMBER.findall(text):
                for directive in directives_in(member):
                    yield agent, _Directive(*directive, line)


def _check(remarks: Remarks, directives: list[_Directive]) -> None:
    first: dict[str, _Directive] = {}
    for directive in directives:
        _check_word(remarks, directive)
        if (
            directive.name in DIRECTIVE_NAMES
            and first.setdefault(directive.name, directive) is not directive
        ):
            if first[directive.name].value == directive.value:
                _report(
                    remarks,
                    "robots-meta.duplicate",
                    "`{}` is repeated. Delete it.",
                    directive,
                )
            else:
                message = "`{}` has two values. The smallest counts."
                _report(remarks, "robots-meta.contradiction", message, directive)
    for name, opposites in _OPPOSITES.items():
        if name in first and (
            opposite := next((other for other in opposites if other in first), "")
        ):
            message = (
                f"`{{}}` contradicts `{SPELLINGS[opposite]}`, and the refusal counts. "
                "Delete one of them."
            )
            _report(remarks, "robots-meta.contradiction", message, first[name])
    snippet = first.get("maxsnippet")
    if snippet and "nosnippet" in first and snippet.value != "0":
        _report(
            remarks,
            "robots-meta.contradiction",
            "`{}` has no effect together with `nosnippet`. Delete one of them.",
            snippet,
        )


def _check_separators(remarks: Remarks, text: str, line: int) -> None:
    """Report directives with other separators than commas between them."""
    for part in text.split(","):
        directives = [each for member in MEMBER.findall(part) for each in directives_in(member)]
        is_plain = _PLAIN.fullmatch(part) and all(each.name for each in directives)
        if len(directives) > 1 and is_plain:
            right = ", ".join(SPELLINGS[each.name] for each in directives)
            message = f"Other crawlers do not read `{{}}`. Write `{right}`."
            octets = part.strip()[:200].encode("utf-8", "replace")
            remarks.report("robots-meta.misspelled", message, octets, line=line)


def _check_name(remarks: Remarks, name: str, directives: list[_Directive]) -> None:
    """Report a misspelled name of an agent."""
    crawler = nearest_crawler(name) if name != "robots" else None
    if crawler or nearest(name, ("robots",)) != name:
        right = crawler.token if crawler else nearest(name, ("robots",))
        if right:
            message = f"No crawler is called `{{}}`. Write `{right}`."
            remarks.report(
                "robots-meta.misspelled",
                message,
                name.encode("utf-8", "replace"),
                line=directives[0].line,
            )


def _check_word(remarks: Remarks, directive: _Directive) -> None:
    if directive.name in _INFORMAL:
        message = "Few crawlers know `{}`. Add `Content-Signal: ai-train=no` to robots.txt."
        _report(remarks, "robots-meta.informal", message, directive)
    elif directive.name in _OBSOLETE:
        _report(
            remarks,
            "robots-meta.obsolete",
            "No search engine reads `{}` any more. Delete it.",
            directive,
        )
    elif _EQUALS.match(directive.text) and directive.value:
        right = f"{SPELLINGS.get(directive.name, directive.name)}:{directive.value}"
        message = f"Other crawlers do not read `{{}}`. Write `{literal(printable(right))}`."
        _report(remarks, "robots-meta.misspelled", message, directive)
    elif directive.name and _is_respelled(directive):
        right = SPELLINGS[directive.name] + (f":{directive.value}" if directive.value else "")
        message = f"Other crawlers do not read `{{}}`. Write `{literal(printable(right))}`."
        _report(remarks, "robots-meta.misspelled", message, directive)
    elif not directive.name:
        for word in directive.text.split():
            if near := nearest(word.partition(":")[0], SPELLINGS.values()):
                message = f"`{{}}` is not a directive. Write `{near}`."
                _report(remarks, "robots-meta.misspelled", message, directive._replace(text=word))


def _is_respelled(directive: _Directive) -> bool:
    """Return True if the name of a directive has other hyphens than its documentation."""
    name = directive.text.partition(":")[0].strip().lower()
    return bool(_NAME.fullmatch(name)) and name != SPELLINGS[directive.name]


def _report(remarks: Remarks, rule: str, message: str, directive: _Directive) -> None:
    remarks.report(
        rule, message, directive.text[:200].encode("utf-8", "replace"), line=directive.line
    )
