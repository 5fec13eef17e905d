"""The help that a format has for those who write in it: its words, what may be wrong besides its syntax, and how that is mended.

Nothing here takes part in a decision. What reading a file finds (`SiteReading.findings`) is said to crawlers too; a check of
`Authoring` is made only where somebody asks (`comity lint`, the language server), so it may look at everything twice."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.document.document import Content
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.lines import EOL, MAX_BYTES, MAX_FINDINGS, MAX_LINE, Lines, text_of
from comity.policies.syntax.printable import printable

_LINE_END = re.compile(EOL)


class Directive(NamedTuple):
    """A word that begins a line, or names an element, attribute, member or parameter of a format."""

    name: str  # as the specification spells it
    spec: str  # specification and section
    summary: str  # what it says, a sentence without its full stop
    value: str = ""
    """What its value is: "path", "agent", "action", ...: see `Authoring.values`. Several, parted by spaces, follow one another,
    and the last may be repeated or left out. "": anything, or nothing."""
    within: tuple[str, ...] = ()  # directives below which it stands; (): anywhere
    form: str = "line"  # what it is: "line", "element" or "attribute" of XML, "member" of JSON, "field", "meta", "word" of a list


class Edit(NamedTuple):
    """A piece of a file that is to be replaced."""

    start: int  # octets of the body before it
    end: int
    text: bytes


class Fix(NamedTuple):
    """A change that mends a finding, and changes no decision of comity about anything."""

    title: str  # "Write `Disallow`"
    edits: tuple[Edit, ...]


class Draft:
    """A file as its author has it. Lines are those of findings: 1-based, as `Lines` parts them."""

    def __init__(self, url: str, body: bytes) -> None:
        self.url = url
        self.body = body

    @cached_property
    def has_places(self) -> bool:
        """True where lines and columns of findings are those of the body: it is not in UTF-16."""
        return self.body.removeprefix(codecs.BOM_UTF8).startswith(text_of(self.body)[0])

    @cached_property
    def _starts(self) -> list[int]:
        """The octets of the body before each line, and all of them at last."""
        skipped = len(codecs.BOM_UTF8) if self.body.startswith(codecs.BOM_UTF8) else 0
        lines = Lines(self.body, skipped)
        starts = []
        while lines.read():
            starts.append(lines.line_start)
        return [*(starts or [skipped]), len(self.body)]

    @property
    def lines(self) -> int:
        return len(self._starts) - 1

    @cached_property
    def line_end(self) -> bytes:
        """The end of the first line; LF where there is but one."""
        match = _LINE_END.search(self.body)
        return match[0] if match else b"\n"

    def start(self, line: int) -> int:
        """The octets of the body before a line."""
        return self._starts[line - 1]

    def line(self, line: int) -> bytes:
        """A line without its end."""
        return self.body[self._starts[line - 1] : self._starts[line]].rstrip(b"\r\n")

    def replaced(self, line: int, column: int, length: int, text: bytes) -> Edit:
        """Return the edit that puts a text in the place of some octets of a line. `column`: 1-based."""
        start = self.start(line) + column - 1
        return Edit(start, start + length, text)

    def without_line(self, line: int) -> Edit:
        """Return the edit that takes a line out, with its end."""
        return Edit(self._starts[line - 1], self._starts[line], b"")

    def mendable_line(self, finding: Finding) -> bytes:
        """Return the line of a finding; b"" where a change might change how much is read: file or line is near its limit."""
        if len(self.body) > MAX_BYTES * 3 // 4 or not 0 < finding.line <= self.lines:
            return b""
        line = self.line(finding.line)
        return line if len(line) < MAX_LINE else b""

    def comment(self, finding: Finding) -> Fix | None:
        """Return the fix that writes `#` for the `//` of a finding, in a line that is not read."""
        line = self.mendable_line(finding)
        if (
            finding.column < 1
            or not line.startswith(b"//", finding.column - 1)
            or line[: finding.column - 1].strip(b" \t")
        ):
            return None
        return Fix("Write `#`", (self.replaced(finding.line, finding.column, 2, b"#"),))

    def line_out(self, number: int) -> Fix:
        """Return the fix that takes a line out. Its comment stays."""
        comment = self.line(number).find(b"#")
        if comment < 0:
            return Fix("Take the line out", (self.without_line(number),))
        return Fix(
            "Take out what stands before the comment", (self.replaced(number, 1, comment, b""),)
        )


def _meet(edit: Edit, other: Edit) -> bool:
    """Return whether two edits cannot be made together. Nothing is put before what is taken out."""
    overlap = edit.start < other.end and other.start < edit.end
    return overlap or (
        edit.start == other.start and (edit == other or not (edit.text and other.text))
    )


def _span(edit: Edit) -> tuple[int, int]:
    return edit.start, edit.end


def _beside(edit: Edit, edits: list[Edit]) -> list[Edit]:
    """Return the neighbours of an edit among others, sorted, of which one meets it if any does. As no two of the others meet,
    they are the last that begins before it, all that begin with it, and the first that begins behind that."""
    before, behind = (
        bisect_left(edits, (edit.start, -1), key=_span),
        bisect_left(edits, (edit.start + 1, -1), key=_span),
    )
    return edits[max(0, before - 1) : behind + 1]


def apply(body: bytes, fixes: Iterable[Fix]) -> tuple[bytes, tuple[Fix, ...]]:
    """Return the body with the fixes made, and those that were: of two that touch the same octets only the first is."""
    applied: list[Fix] = []
    edits: list[Edit] = []  # what is put before something comes before what takes its place
    for fix in fixes:
        if not any(_meet(edit, other) for edit in fix.edits for other in _beside(edit, edits)):
            applied.append(fix)
            for edit in fix.edits:
                insort(edits, edit, key=_span)
    pieces: list[bytes] = []
    end = 0
    for edit in edits:
        pieces += body[end : edit.start], edit.text
        end = edit.end
    return b"".join((*pieces, body[end:])), tuple(applied)


class FileKind(NamedTuple):
    """A kind of file that people write in a format and that has no place of its own on a site."""

    name: str  # "rsl.xml": what it is called where its name does not tell
    is_meant: Callable[
        [str, bytes], bool
    ]  # by the last part of its path, in lower case, and its body
    findings: Callable[[bytes, str], Iterable[Finding]]  # of the body; the URL


def literal(text: str) -> str:
    """A text as a part of a message of `Remarks.report`: what a file has between braces is quoted in it as it stands."""
    return text.replace("{", "{{").replace("}", "}}")


class Remarks:
    """The findings of a check of one file: the first MAX_FINDINGS by each rule, so that none crowds out another."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._findings: list[Finding] = []
        self._counts: Counter[str] = Counter()

    def report(
        self,
        rule: str,
        message: str,
        *quoted: bytes,
        line: int = 0,
        column: int = 0,
        length: int = 0,
    ) -> None:
        """Add a finding. `message`: with a `{}` for each text from the file that it quotes."""
        self._counts[rule] += 1
        if self._counts[rule] <= MAX_FINDINGS:
            text = message.format(*map(printable, quoted))
            self._findings.append(
                Finding(
                    rule=rule, message=text, url=self._url, line=line, column=column, length=length
                )
            )

    def __len__(self) -> int:
        """Return how many were reported, listed or not."""
        return self._counts.total()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings by line and column."""
        more = [
            Finding(
                rule="comity.more-findings",
                message=f"only the first {MAX_FINDINGS} by {rule} are listed",
                url=self._url,
            )
            for rule, count in self._counts.items()
            if count > MAX_FINDINGS
        ]
        return (*sorted(self._findings, key=lambda finding: (finding.line, finding.column)), *more)


class Authoring(NamedTuple):
    """The part of a format that is for authors."""

    directives: tuple[Directive, ...] = ()
    values: Mapping[str, Mapping[str, str]] = {}
    """Kind of value -> the words that may stand there, each with what it says."""
    check_site: Callable[[SiteFiles], Iterable[Finding]] | None = (
        None  # besides what reading the files finds
    )
    check_document: Callable[[Content, str], Iterable[Finding]] | None = None  # a page, and its URL
    kinds: tuple[FileKind, ...] = ()
    fixes: Mapping[str, Callable[[Draft, Finding], Fix | None]] = {}
    """Rule -> what mends a finding by it. None: nothing that is safe."""
