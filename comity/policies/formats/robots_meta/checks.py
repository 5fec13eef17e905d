"""Checks of robots meta elements and X-Robots-Tag fields besides their syntax: contradictions, repetitions, slips.

check_document(content, url)     the elements of a page, and the fields with which it came"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.document.document import Content
from comity.policies.formats.authoring import Remarks
from comity.policies.formats.robots_meta.directives import DIRECTIVE_NAMES, MAX_CHARS, MEMBER, directives_in, is_for_others, scope
from comity.policies.formats.robots_meta.words import SPELLINGS
from comity.policies.syntax.suspicions import nearest

# Each with those of which it says the opposite.
_OPPOSITES = {
    "index": ("noindex", "none"),
    "follow": ("nofollow", "none"),
    "archive": ("noarchive", "nocache"),
    "snippet": ("nosnippet",),
    "imageindex": ("noimageindex",),
    "all": ("noindex", "nofollow", "none"),
}
_INFORMAL = ("noai", "noimageai", "noml")
_OBSOLETE = ("noodp", "noydir", "noyaca", "nositelinkssearchbox")


class _Directive(NamedTuple):
    name: str  # as it is compared; "": none that is known
    value: str
    text: str  # as written
    line: int  # 0: of a field


def check_document(content: Content, url: str) -> tuple[Finding, ...]:
    """Check the elements of a page, and the fields with which it came, for what reading them does not find."""
    remarks = Remarks(url)
    addressed: dict[str, list[_Directive]] = {}  # agent, in lower case -> what is said to it
    for agent, directive in (*_in_fields(content), *_in_elements(content)):
        addressed.setdefault(agent, []).append(directive)
    for directives in addressed.values():
        _check(remarks, directives)
    return remarks.findings


def _in_fields(content: Content) -> Iterator[tuple[str, _Directive]]:
    remaining = MAX_CHARS
    for name, value in content.headers:
        if name.lower() == b"x-robots-tag" and (remaining := remaining - len(value)) >= 0:
            agent = "robots"
            for member in MEMBER.findall(value.decode("utf-8", "replace")):
                agents, rest = scope(member, "")
                agent = agents[-1] if agents else agent
                for directive in directives_in(rest):
                    yield "robots" if agent == "*" else agent, _Directive(*directive, 0)


def _in_elements(content: Content) -> Iterator[tuple[str, _Directive]]:
    if not content.is_markup:
        return
    remaining = MAX_CHARS
    for name, text, line in content.metas_by_line():
        if (name == "robots" or is_for_others(name, text)) and (remaining := remaining - len(text)) >= 0:
            for member in MEMBER.findall(text):
                for directive in directives_in(member):
                    yield name, _Directive(*directive, line)


def _check(remarks: Remarks, directives: list[_Directive]) -> None:
    first: dict[str, _Directive] = {}
    for directive in directives:
        _check_word(remarks, directive)
        if directive.name in DIRECTIVE_NAMES and first.setdefault(directive.name, directive) is not directive:
            if first[directive.name].value == directive.value:
                _report(remarks, "robots-meta.duplicate", "`{}` stands there already: leave it out", directive)
            else:
                message = "`{}` has another value before: the smallest counts"
                _report(remarks, "robots-meta.contradiction", message, directive)
    for name, opposites in _OPPOSITES.items():
        if name in first and (opposite := next((other for other in opposites if other in first), "")):
            message = f"`{{}}` is the opposite of `{SPELLINGS[opposite]}`: what refuses counts. Leave one of them out"
            _report(remarks, "robots-meta.contradiction", message, first[name])
    snippet = first.get("maxsnippet")
    if snippet and "nosnippet" in first and snippet.value != "0":
        _report(remarks, "robots-meta.contradiction", "`{}` says nothing beside `nosnippet`: leave one of them out", snippet)


def _check_word(remarks: Remarks, directive: _Directive) -> None:
    if directive.name in _INFORMAL:
        message = "few crawlers read `{}`: say it in robots.txt or tdmrep.json too"
        _report(remarks, "robots-meta.informal", message, directive)
    elif directive.name in _OBSOLETE:
        _report(remarks, "robots-meta.obsolete", "nobody reads `{}` any more: leave it out", directive)
    elif not directive.name:
        for word in directive.text.split():
            if near := nearest(word.partition(":")[0], SPELLINGS.values()):
                message = f"`{{}}` is no directive: write `{near}`"
                _report(remarks, "robots-meta.misspelled", message, directive._replace(text=word))


def _report(remarks: Remarks, rule: str, message: str, directive: _Directive) -> None:
    remarks.report(rule, message, directive.text[:200].encode("utf-8", "replace"), line=directive.line)
