"""Read policy files as lines of octets, for robots.txt and the formats that robots.txt contains.

text_of(body)      the octets to read: UTF-8, without BOM, cut at the limit
Lines(text)        a cursor over the lines. Only CR, LF and CRLF end a line
line_ends(text)    the number of line ends
Findings(url)      hints about the file, limited in number"""

from __future__ import annotations

import codecs
import re
from typing import AnyStr

from comity.policies.answers.decision import Finding
from comity.policies.syntax.printable import printable

# Octets of a file, as received. RFC 9309 section-2.5 asks for 500 KiB at least.
MAX_BYTES = 512 * 1024
# Octets of a line without its comment: longer than any URL that servers accept.
MAX_LINE = 32 * 1024
# Findings of one file.
MAX_FINDINGS = 100

# RFC 9309 section-2.2, EOL without its comment. str.splitlines() knows eight more line ends.
EOL = rb"(?:\r\n?|\n)"
_LINE = re.compile(rb"[^\r\n]*+%s?" % EOL)


def text_of(body: bytes, *, cut: bool = False, limit: int = MAX_BYTES) -> tuple[bytes, bool]:
    """Return the octets to read, and whether some are missing at the end.

    `cut` is True if the reader of the body stopped before its end. The last line is then removed,
    so that no statement is read in part. Only a line longer than MAX_LINE stays. Its length tells
    its reader that its end is missing."""
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
    """Return the number of lines that end in a range. The range may not split a CRLF."""
    lf, cr, crlf = ("\n", "\r", "\r\n") if isinstance(text, str) else (b"\n", b"\r", b"\r\n")
    return text.count(lf, start, end) + text.count(cr, start, end) - text.count(crlf, start, end)


class Lines:
    """A cursor over the lines of a text, which can skip many lines at once. Linear in the octets.

    Attributes:
        text: the text.
        line_start: offset of the last line that was read.
        number: 1-based number of the last line that was read or skipped."""

    def __init__(
        self, text: bytes, start: int = 0, end: int | None = None, number: int = 0
    ) -> None:
        """Read the part of the text from `start` to `end`.

        `number` is the number of the line before `start`."""
        self.text = text
        self.line_start = self._next = start
        self.number = number
        self._end = len(text) if end is None else end

    def skip(self, run: re.Pattern[bytes]) -> bytes:
        """Skip the lines that match here, and return them. `run` matches whole lines with ends."""
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
        """Return the next line if it matches, else None. `line` matches one line with its end."""
        match = line.match(self.text, self._next, self._end)
        if match:
            self.line_start, self._next = match.span()
            self.number += 1
        return match

    def read(self) -> bytes:
        """Return the next line with its end; b"" at the end of the text."""
        match = self.match(_LINE) if self._next < self._end else None
        return match[0] if match else b""


class Findings(list[Finding]):
    """Hints for the author of a file: the first MAX_FINDINGS."""

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
        """Add a finding. `message` has a `{}` for each text in `quoted`, which is from the file."""
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
                    message=f"Only the first {MAX_FINDINGS} findings are listed.",
                    url=self._url,
                )
            )
