"""Line-oriented policy files as octets: what robots.txt and the formats inside it have in common.

text_of(body)      the octets that are read: no BOM, UTF-8, cut at the limit
lines(text)        the lines, at CR, LF and CRLF and at nothing else
record(line)       name and value of `name: value # comment`
Findings           what is said about the file, bounded in number"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import NamedTuple

from comity.policies.values import Finding

MAX_BYTES = 512 * 1024  # octets of a file, as received; RFC 9309 section-2.5 asks for 500 KiB at least
MAX_LINE = 32 * 1024  # octets of a line without its comment; longer than any URL that servers answer
MAX_FINDINGS = 100  # findings of one file

WS = b" \t"  # RFC 9309 section-2.2, WS


def text_of(body: bytes, *, cut: bool = False, limit: int = MAX_BYTES) -> tuple[bytes, bool]:
    """The octets to read, and whether some were left out. `cut`: the body ends where somebody stopped reading it.

    What the limit cuts is left out from the start of its line, so that no statement is read by half. A last line longer
    than MAX_LINE stays: its readers know that they have not seen the end of it."""
    cut = cut or len(body) > limit
    body = body[:limit]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in body:  # without a NUL there is no ASCII in it
        body = body.decode("utf-16", "replace").encode("utf-8", "surrogatepass")
    body = body.removeprefix(codecs.BOM_UTF8)
    if cut:
        end = max(body.rfind(b"\n"), body.rfind(b"\r")) + 1
        if len(body) - end <= MAX_LINE:
            body = body[:end]
    return body, cut


def lines(text: bytes) -> list[bytes]:
    """The lines with their ends. `bytes.splitlines` knows CR, LF and CRLF only; `str.splitlines` knows eight more."""
    return text.splitlines(keepends=True)


class Record(NamedTuple):
    """One line, read as `name: value # comment`."""

    name: bytes  # lower case; the whole line where there is no colon
    value: bytes
    colon: bool
    overlong: bool  # more than MAX_LINE octets stood in the line: the value is cut there


def record(line: bytes) -> Record:
    """A line as a record; name and value without white space at their ends."""
    line = line.partition(b"#")[0].strip(b" \t\r\n")
    name, colon, value = line.partition(b":")
    overlong = len(line) > MAX_LINE
    if overlong:
        name, value = name[:MAX_LINE], value.lstrip(WS)[:MAX_LINE]
    return Record(name.rstrip(WS).lower(), value.strip(WS), bool(colon), overlong)


class Findings:
    """What the author of one file should know: the first MAX_FINDINGS of it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._found: list[Finding] = []

    def add(self, rule: str, message: str, *, line: int = 0, column: int = 0) -> None:
        if len(self._found) < MAX_FINDINGS:
            self._found.append(Finding(rule=rule, message=message, url=self._url, line=line, column=column))
        elif len(self._found) == MAX_FINDINGS:
            self._found.append(
                Finding(rule="comity.more-findings", message=f"only the first {MAX_FINDINGS} are listed", url=self._url)
            )

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)
