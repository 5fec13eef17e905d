"""Conversion of an ai.txt to XML and back.

Authors write the text, and programs read the XML (section-4 of the paper).
"""

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
    """Return the rules of an ai.txt as an XML document that is valid by ai_txt.xsd.

    `cut` is True if the text is only the beginning of the file. If the file exceeds the limits, the
    document has the rules that replace the omitted part. Lines in Spawning's form are left out.
    PolicyError: the file is in another format.
    """
    text, cut = text_of(text, cut=cut)
    document = to_xml(_check_format(parse(text, cut=cut))).decode()
    return _NOT_ASCII_TEXT.sub(_escape_hidden, document).encode()


def ai_txt_from_xml(document: bytes) -> bytes:
    """Return the rules of an XML document as text. Invalid parts of the document are left out.

    PolicyError: the document is not an ai.txt in XML.
    """
    return to_text(_check_format(from_xml(document))).encode()


def _check_format(ai_txt: AiTxt) -> AiTxt:
    """Return the rules unchanged. PolicyError: the file is in another format."""
    for finding in ai_txt.findings:
        if finding.rule == "ait.format":
            raise PolicyError(finding.message)
    return ai_txt


def other_form(
    url: str, fetched: Fetched, *, is_xml: bool = False
) -> tuple[bytes, tuple[str, ...]]:
    """Return a file in its other form (XML for text, text for XML) and the findings for its author.

    `is_xml` is True if the file is XML. `url` names the file in the findings. PolicyError: the file
    does not exist, or is in another format.
    """
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


def _escape_hidden(match: re.Match[str]) -> str:
    """Return a character, or an XML character reference if the character is hidden (SEC-4).

    A character is hidden if it is invisible or changes how other characters look.
    """
    char = match[0]
    return f"&#x{ord(char):X};" if unicodedata.category(char) in HIDDEN else char
