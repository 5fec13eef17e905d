"""Line-oriented policy files as octets: what robots.txt and the formats that stand in it have in common.

text_of(body)      the octets that are read: UTF-8, no BOM, cut at the limit
Lines(text)        a cursor over the lines, which end at CR, LF and CRLF and at nothing else
line_ends(text)    how many of these there are
Findings(url)      what is said about the file, bounded in number"""

from __future__ import annotations

import codecs
import re
from typing import AnyStr

from comity.policies.answers.decision import Finding
from comity.policies.syntax.printable import printable

MAX_BYTES = (
    512 * 1024
)  # octets of a file, as received; RFC 9309 section-2.5 asks for 500 KiB at least
MAX_LINE = (
    32 * 1024
)  # octets of a line without its comment; longer than any URL that servers answer
MAX_FINDINGS = 100  # of one file

# RFC 9309 section-2.2, EOL without its comment. Not str.splitlines(), which knows eight more line ends.
EOL = rb"(?:\r\n?|\n)"
_LINE = re.compile(rb"[^\r\n]*+%s?" % EOL)


def text_of(body: bytes, *, cut: bool = False, limit: int = MAX_BYTES) -> tuple[bytes, bool]:
    """The octets to read, and whether some were left out. `cut`: the body ends where its reader stopped.

    What is cut is left out from the start of its line, so that no statement is read by half. Only a last line longer than
    MAX_LINE stays: who reads it knows by its length not to trust its end."""
    cut = cut or len(body) > limit
    body = body[:limit]
    # ASCII in UTF-16 is half NULs: without one, the two octets are no BOM.
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in body:
        body = body.decode("utf-16", "replace").encode("utf-8", "surrogatepass")
    body = body.removeprefix(codecs.BOM_UTF8)
    if cut:
        end = max(body.rfind(b"\n"), body.rfind(b"\r")) + 1
        if len(body) - end <= MAX_LINE:
            body = body[:end]
    return body, cut


def line_ends(text: AnyStr, start: int = 0, end: int | None = None) -> int:
    """Return how many lines end between two places. CRLF is one end: neither place stands within it."""
    lf, cr, crlf = ("\n", "\r", "\r\n") if isinstance(text, str) else (b"\n", b"\r", b"\r\n")
    return text.count(lf, start, end) + text.count(cr, start, end) - text.count(crlf, start, end)


class Lines:
    """A cursor over the lines of a text, which can step over many at once. Linear in the octets."""

    def __init__(
        self, text: bytes, start: int = 0, end: int | None = None, number: int = 0
    ) -> None:
        """`start`, `end`: the part of the text to read; `number`: of the line before it."""
        self.text = text
        self.line_start = self._next = (
            start  # where the last line read starts, and the one after it
        )
        self.number = number  # of the last line read or skipped, 1-based
        self._end = len(text) if end is None else end

    def skip(self, run: re.Pattern[bytes]) -> bytes:
        """Step over what matches here, and return it; the pattern matches whole lines with their ends."""
        match = run.match(self.text, self._next, self._end)
        if not match:
            return b""
        self._next = match.end()
        skipped = match[0]
        self.number += skipped.count(b"\n")
        if b"\r" in skipped:
            self.number += skipped.count(b"\r") - skipped.count(b"\r\n")
        return skipped

    def match(self, line: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """The next line, if it matches; the pattern matches one line with its end."""
        match = line.match(self.text, self._next, self._end)
        if match:
            self.line_start, self._next = match.span()
            self.number += 1
        return match

    def read(self) -> bytes:
        """The next line with its end; b"" at the end of the text."""
        match = self.match(_LINE) if self._next < self._end else None
        return match[0] if match else b""


class Findings(list[Finding]):
    """The findings for the author of a file: the first MAX_FINDINGS."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

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
        if len(self) < MAX_FINDINGS:
            text = message.format(*(printable(octets) for octets in quoted))
            self.append(
                Finding(
                    rule=rule, message=text, url=self._url, line=line, column=column, length=length
                )
            )
        elif len(self) == MAX_FINDINGS:
            self.append(
                Finding(
                    rule="comity.more-findings",
                    message=f"only the first {MAX_FINDINGS} are listed",
                    url=self._url,
                )
            )
