"""The help that a format offers to authors: its words, checks beyond its syntax, and fixes.

Nothing here takes part in a decision. Findings of reading a file (`SiteReading.findings`) are
available to crawlers too. The checks of `Authoring` run only on request (`comity lint`, the
language server), so they may look at everything twice.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.document.document import Content
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.lines import EOL, MAX_BYTES, MAX_FINDINGS, MAX_LINE, Lines, text_of
from comity.policies.syntax.printable import printable

_LINE_END = re.compile(EOL)
_LONE_CR = re.compile(rb"\r(?!\n)")
_LONE_LF = re.compile(rb"(?<!\r)\n")
_WORD = re.compile(rb"[^ \t]+")
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+<")
_QUOTED = re.compile(r"`([^`]+)`")  # the first quotation in a message names its subject


class Directive(NamedTuple):
    """A word that begins a line, or names an element, attribute, member or parameter of a format.

    Attributes:
        name: As the specification spells it.
        spec: Specification and section.
        summary: The meaning of the directive: a sentence without its full stop.
        value: The kind of the value, such as "path" or "agent": a key of `Authoring.values`.
            "path file-type" means a path and then a file type. The last kind may be repeated or
            left out. "" means any value or none.
        within: The names of the directives that it can be written below. () means anywhere.
        form: "line"; "element" or "attribute" in XML; "member" in JSON; "field"; "meta"; or "word"
            in a list.
    """

    name: str
    spec: str
    summary: str
    value: str = ""
    within: tuple[str, ...] = ()
    form: str = "line"


class Edit(NamedTuple):
    """The replacement of a piece of a file by a text.

    Attributes:
        start: The offset of the piece in the body.
        end: The offset after the piece. An insertion has `end` equal to `start`.
        text: The new octets. b"" deletes the piece.
    """

    start: int
    end: int
    text: bytes


class Fix(NamedTuple):
    """A change that mends a finding.

    Attributes:
        title: An instruction, such as "Write `Disallow`".
        edits: The changes of the text.
        changes_decisions: True if the file may permit or refuse something else after the fix. Such
            a fix is applied only if its user chooses it. False if every decision stays the same.
    """

    title: str
    edits: tuple[Edit, ...]
    changes_decisions: bool = False


class Draft:
    """A file as its author has written it, with octets unchanged.

    Lines are numbered from 1, as in findings, and `Lines` decides where they end.
    """

    def __init__(self, url: str, body: bytes) -> None:
        self.url = url
        self.body = body

    @cached_property
    def has_places(self) -> bool:
        """True if lines and columns of findings are valid in the body.

        False for a body in UTF-16, because findings are about its text in UTF-8.
        """
        return self.body.removeprefix(codecs.BOM_UTF8).startswith(text_of(self.body)[0])

    @cached_property
    def mixes_line_ends(self) -> bool:
        """True if some lines end with CR alone and others with LF alone.

        A fix that removes the text between a CR and an LF would join them into one line end.
        """
        return _LONE_CR.search(self.body) is not None and _LONE_LF.search(self.body) is not None

    @cached_property
    def is_markup(self) -> bool:
        """True if the body begins as XML or HTML does."""
        return _MARKUP.match(self.body) is not None

    @cached_property
    def _starts(self) -> list[int]:
        """The offset of each line in the body, and then the length of the body."""
        skipped = len(codecs.BOM_UTF8) if self.body.startswith(codecs.BOM_UTF8) else 0
        lines = Lines(self.body, skipped)
        starts = []
        while lines.read():
            starts.append(lines.line_start)
        return [*(starts or [skipped]), len(self.body)]

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self._starts) - 1

    @cached_property
    def line_end(self) -> bytes:
        """The end of the first line, or LF if the file has no line end."""
        match = _LINE_END.search(self.body)
        return match[0] if match else b"\n"

    def start(self, line: int) -> int:
        """Return the offset of a line in the body."""
        return self._starts[line - 1]

    def line(self, line: int) -> bytes:
        """Return a line without its end."""
        return self.body[self._starts[line - 1] : self._starts[line]].rstrip(b"\r\n")

    def replace_octets(self, line: int, column: int, length: int, text: bytes) -> Edit:
        """Return the edit that replaces `length` octets of a line by a text.

        `column` counts from 1.
        """
        start = self.start(line) + column - 1
        return Edit(start, start + length, text)

    def without_line(self, line: int) -> Edit:
        """Return the edit that removes a line and its end."""
        return Edit(self._starts[line - 1], self._starts[line], b"")

    def mendable_line(self, finding: Finding) -> bytes:
        """Return the line of a finding, or b"" if it is not safe to change or does not exist.

        A change is not safe if the body has more than 3/4 of MAX_BYTES, or the line has MAX_LINE
        octets: the changed file might be read to another end.
        """
        if len(self.body) > MAX_BYTES * 3 // 4 or not 0 < finding.line <= self.lines:
            return b""
        line = self.line(finding.line)
        return line if len(line) < MAX_LINE else b""

    def place(self, finding: Finding) -> tuple[int, int]:
        """Return the start and end of a finding in its line, in octets from 0.

        Findings in XML and HTML have a line and no column. There, the first quotation of the
        message is the place if the line contains it exactly once.
        """
        line = self.line(finding.line)
        if not 0 < finding.column <= len(line):
            quotation = self.quotation(finding) if self.is_markup else None
            stripped = line.lstrip(b" \t")
            return quotation or (
                len(line) - len(stripped),
                len(line.rstrip(b" \t")) or len(line),
            )
        start = finding.column - 1
        if finding.length:
            return start, min(start + finding.length, len(line))
        word = _WORD.match(line, start)
        return start, word.end() if word else start + 1

    def quotation(self, finding: Finding) -> tuple[int, int] | None:
        """Return the start and end of the message's first quotation in the line of a finding.

        None means that the line does not contain it exactly once.
        """
        quoted = _QUOTED.search(finding.message)
        if not quoted:
            return None
        text = re.escape(quoted[1].encode("utf-8", "replace"))
        word = re.compile(rb"(?<![\w-])" + text + rb"(?![\w-])")
        quotations = [*islice(word.finditer(self.line(finding.line)), 2)]
        return quotations[0].span() if len(quotations) == 1 else None

    def mendable_quotation(self, finding: Finding) -> tuple[int, int] | None:
        """Return the same as `quotation`, or None if the line is not safe to change."""
        return self.quotation(finding) if self.mendable_line(finding) else None

    def comment(self, finding: Finding) -> Fix | None:
        """Return the fix that writes `#` for the `//` or `/*` at the column of a finding.

        None means that the line does not begin with these signs there, or is not safe to change.
        The caller must know that the line has no effect.
        """
        line = self.mendable_line(finding)
        if (
            finding.column < 1
            or not line.startswith((b"//", b"/*"), finding.column - 1)
            or line[: finding.column - 1].strip(b" \t")
        ):
            return None
        return Fix("Write `#`", (self.replace_octets(finding.line, finding.column, 2, b"#"),))

    def line_out(self, number: int) -> Fix:
        """Return the fix that removes a line but keeps its comment."""
        comment = self.line(number).find(b"#")
        if comment < 0:
            return Fix("Delete the line", (self.without_line(number),))
        return Fix(
            "Delete the text before the comment",
            (self.replace_octets(number, 1, comment, b""),),
        )


def _meet(edit: Edit, other: Edit) -> bool:
    """Return True if two edits cannot be made together.

    They cannot if they overlap or are equal, or if they begin at the same octet and one is a
    deletion. An insertion and a replacement by text at the same octet can be made together.
    """
    overlap = edit.start < other.end and other.start < edit.end
    return overlap or (
        edit.start == other.start and (edit == other or not (edit.text and other.text))
    )


def _span(edit: Edit) -> tuple[int, int]:
    return edit.start, edit.end


def _neighbours(edit: Edit, edits: list[Edit]) -> list[Edit]:
    """Return the edits in `edits` that could meet an edit (`_meet`).

    `edits` are sorted, and no two of them meet. So the last edit that begins before this one, all
    edits that begin at the same octet, and the first edit that begins after it are enough.
    """
    before, behind = (
        bisect_left(edits, (edit.start, -1), key=_span),
        bisect_left(edits, (edit.start + 1, -1), key=_span),
    )
    return edits[max(0, before - 1) : behind + 1]


def apply(body: bytes, fixes: Iterable[Fix]) -> tuple[bytes, tuple[Fix, ...]]:
    """Return the changed body, and the fixes that changed it.

    A fix is left out if one of its edits meets an edit of an earlier fix (`_meet`).
    """
    applied: list[Fix] = []
    edits: list[Edit] = []  # sorted; an insertion comes before a replacement at the same octet
    for fix in fixes:
        if not any(_meet(edit, other) for edit in fix.edits for other in _neighbours(edit, edits)):
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
    """A kind of file of a format that has no fixed path on a site.

    Attributes:
        name: A usual name for a file of this kind, such as "rsl.xml".
        is_meant: Returns True for a file of this kind. The arguments are the last part of its path,
            in lower case, and its body.
        findings: Returns the findings of a file. The arguments are its body and its URL.
    """

    name: str
    is_meant: Callable[[str, bytes], bool]
    findings: Callable[[bytes, str], Iterable[Finding]]


def literal(text: str) -> str:
    """Escape a text for a message of `Remarks.report`, so that its braces appear as they are."""
    return text.replace("{", "{{").replace("}", "}}")


class Remarks:
    """The findings of a check of one file.

    For each rule, only the first MAX_FINDINGS findings are kept.
    """

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
        """Add a finding. `message` has a `{}` for each text in `quoted`."""
        self._counts[rule] += 1
        if self._counts[rule] <= MAX_FINDINGS:
            text = message.format(*map(printable, quoted))
            self._findings.append(
                Finding(
                    rule=rule, message=text, url=self._url, line=line, column=column, length=length
                )
            )

    def __len__(self) -> int:
        """Return the number of reported findings, including those that are not listed."""
        return self._counts.total()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, sorted by line and column, and a note for each rule with too many."""
        more = [
            Finding(
                rule="comity.more-findings",
                message=f"Only the first {MAX_FINDINGS} findings of {rule} are listed.",
                url=self._url,
            )
            for rule, count in self._counts.items()
            if count > MAX_FINDINGS
        ]
        return (*sorted(self._findings, key=lambda finding: (finding.line, finding.column)), *more)


class Authoring(NamedTuple):
    """The part of a format that helps authors.

    Attributes:
        directives: The directives of the format.
        values: Kind of value -> the words that are allowed there, each with its meaning.
        check_site: Returns findings about a site, in addition to the findings of reading its files.
        check_document: Returns findings about a page, given its content and its URL.
        kinds: The kinds of files that have no fixed path.
        fixes: Rule -> the function that returns a fix for one of its findings, or None if no fix is
            safe.
        separator: The sign between the name and the value of a line: ":" or "=".
    """

    directives: tuple[Directive, ...] = ()
    values: Mapping[str, Mapping[str, str]] = {}
    check_site: Callable[[SiteFiles], Iterable[Finding]] | None = None
    check_document: Callable[[Content, str], Iterable[Finding]] | None = None
    kinds: tuple[FileKind, ...] = ()
    fixes: Mapping[str, Callable[[Draft, Finding], Fix | None]] = {}
    separator: str = ":"
