"""An ai.txt as XML, and back: what its author writes, and what a program reads (section-4 of the paper)."""

from __future__ import annotations

import re
import unicodedata

from comity.policies.answers.errors import PolicyError
from comity.policies.answers.fetched import Fetched
from comity.policies.formats.ai_txt import AiTxt, from_xml, parse, to_text, to_xml
from comity.policies.formats.ai_txt.file import AiFile
from comity.policies.syntax.lines import text_of
from comity.policies.syntax.printable import HIDDEN


def ai_txt_to_xml(text: bytes, *, cut: bool = False) -> bytes:
    """The rules of an ai.txt as an XML document, valid by ai_txt.xsd. PolicyError where the file is in another format.

    `cut`: the text ends where its reader stopped. Of a file beyond the limits the document has what is read in place of what is
    left out. Lines in Spawning's form are not in it."""
    text, cut = text_of(text, cut=cut)
    document = to_xml(_of_this_format(parse(text, cut=cut))).decode()
    return _NOT_ASCII_TEXT.sub(_referred, document).encode()


def ai_txt_from_xml(document: bytes) -> bytes:
    """The rules of such a document as text. PolicyError where it is none; what is not valid in it is left out."""
    return to_text(_of_this_format(from_xml(document))).encode()


def _of_this_format(ai_txt: AiTxt) -> AiTxt:
    for finding in ai_txt.findings:
        if finding.rule == "ait.format":
            raise PolicyError(finding.message)
    return ai_txt


def other_form(
    url: str, fetched: Fetched, *, is_xml: bool = False
) -> tuple[bytes, tuple[str, ...]]:
    """A file in its other form, XML for text and text for XML, and what its author should know. PolicyError where there is none.

    `url`: what the file is called there."""
    if is_xml:
        return ai_txt_from_xml(fetched.body), tuple(
            map(str, from_xml(fetched.body, url=url).findings)
        )
    file = AiFile(url, fetched)
    if not file.is_present:
        raise PolicyError(f"there is no ai.txt: {file.outcome}")
    form, notes = ai_txt_to_xml(fetched.body, cut=fetched.oversized), tuple(map(str, file.findings))
    if file.spawning and file.spawning.patterns:
        notes = (f"{url}: the lines in Spawning's form are left out", *notes)
    return form, notes


_NOT_ASCII_TEXT = re.compile(r"[^\t\n -~]")


def _referred(match: re.Match[str]) -> str:
    """Characters that would not be seen, or would change how others are seen, as references to them (SEC-4)."""
    char = match[0]
    return f"&#x{ord(char):X};" if unicodedata.category(char) in HIDDEN else char
