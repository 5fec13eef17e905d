"""The statements of Courtesy: in a courtesy.txt, robots.txt, header fields and markup.

    parse_file(text, url)       the file's wishes and findings
    parse_members(text, location)  those of `learn=no, quote=yes`

    file    = *( [ wish ] [ "#" comment ] EOL )
    wish    = word ":" ( "yes" / "no" ) [ path-pattern ]
    members = word "=" ( "yes" / "no" ) *( "," word "=" ( "yes" / "no" ) )
    word    = "visit" / "learn" / "quote"

In a file alone "visit" has a meaning: whoever reads a page has visited it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.syntax.lines import Findings, Lines
from comity.policies.syntax.path_patterns import covers, normal_pattern, normal_target
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location

VISIT = "visit"
USES = ("learn", "quote")  # words of the vocabulary


class Wish(NamedTuple):
    """One word, and where it holds."""

    word: str
    is_granted: bool
    pattern: str  # of paths, in normal form
    location: Location

    def covers(self, target: str) -> bool:
        """Whether it holds for a path and query."""
        return covers(self.pattern, normal_target(target))


class Wishes(NamedTuple):
    """All that one carrier says."""

    wishes: tuple[Wish, ...]
    findings: tuple[Finding, ...]

    def deciding(self, word: str, target: str) -> Wish | None:
        """The first refusal, else the first permission; None: neither."""
        covering = [wish for wish in self.wishes if wish.word == word and wish.covers(target)]
        return next(
            (wish for wish in covering if not wish.is_granted), covering[0] if covering else None
        )


def parse_file(text: bytes, url: str) -> Wishes:
    """Return the wishes of a courtesy.txt. Unknown lines are ignored, and unknown values refuse."""
    lines, findings, wishes = Lines(text), Findings(url), []
    while line := lines.read():
        word, colon, rest = line.partition(b"#")[0].decode("utf-8", "replace").partition(":")
        location = Location(line=lines.number, text=printable(line), url=url)
        if not colon and not word.strip():
            continue
        value, _, pattern = rest.strip().partition(" ")
        if wish := _wish(word, value, pattern.strip(), location, findings):
            wishes.append(wish)
    return Wishes(tuple(wishes), tuple(findings))


def parse_members(text: str, location: Location) -> Wishes:
    """The wishes of a field, an element, or a line of robots.txt: about uses alone."""
    findings = Findings(location.url)
    return Wishes(tuple(_members(text, location, findings)), tuple(findings))


def _members(text: str, location: Location, findings: Findings) -> Iterator[Wish]:
    for member in text.split(","):
        word, _, value = member.partition("=")
        wish = _wish(word, value.strip(), "", location, findings)
        if wish and wish.word != VISIT:
            yield wish


def _wish(
    word: str, value: str, pattern: str, location: Location, findings: Findings
) -> Wish | None:
    word, value = word.strip().lower(), value.lower()
    if word not in (VISIT, *USES):
        findings.report(
            "courtesy.value", "`{}` is no word of Courtesy", word.encode(), line=location.line
        )
        return None
    if value not in ("yes", "no"):
        findings.report(
            "courtesy.value",
            "`{}` is neither yes nor no: it refuses",
            value.encode(),
            line=location.line,
        )
        pattern = ""  # what else of the line is meant, nobody knows
    return Wish(word, value == "yes", normal_pattern((pattern or "/").encode()), location)
