"""The choice between the two formats that sites serve as /ai.txt (SPAWN-1)."""

from __future__ import annotations

import re
from typing import Literal

from comity.policies.answers.markup import begins_as_page
from comity.policies.syntax.lines import text_of

Kind = Literal["elements", "spawning", ""]

# LENIENT: NO-BREAK SPACE and a stray BOM, which some editors insert.
INDENTATION = rb"(?:[ \t\v\f]|\xc2\xa0|\xef\xbb\xbf)*+"

_START = rb"(?:\A|(?<=[\r\n]))%s" % INDENTATION
_ELEMENTS = re.compile(rb"%s(?i:path[ \t]*+:[ \t]*+(?:[/*]|https?://)|element[ \t]*+:)" % _START)
_PATTERN = re.compile(rb"%s(?i:disallow)[ \t]*+:[ \t]*+[/*.]" % _START)
_AGENT = re.compile(rb"%s(?i:user[- ]?agent)[ \t]*+:" % _START)
_RULE = re.compile(rb"%s(?i:(?:dis)?allow)[ \t]*+:" % _START)


def kind_of(body: bytes) -> Kind:
    """Return the format of a file by its lines.

    "elements" is the element-level language, "spawning" is Spawning's opt-out by file type, and ""
    means neither format. A file with lines of both formats is "elements". Its lines in Spawning's
    form are read too.
    """
    text, _ = text_of(body)
    if begins_as_page(text):
        return ""
    if _ELEMENTS.search(text):
        return "elements"
    return (
        "spawning" if _PATTERN.search(text) or (_AGENT.search(text) and _RULE.search(text)) else ""
    )
