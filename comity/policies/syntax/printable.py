"""Text from a site, made fit to show (SEC-4).

printable(text)     one line, in reasons, findings, tables and errors
unhidden(text)      text of any length and of several lines, in logs"""

from __future__ import annotations

import re
import unicodedata

MAX_SHOWN = 200  # characters of one line that a reason or a finding shows

HIDDEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")  # Unicode categories
_PERHAPS_HIDDEN = re.compile(r"[^ -~]")


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if char == "\t" or category == "Zs":
        return " "
    return "\ufffd" if category in HIDDEN else char


def printable(text: bytes | str) -> str:
    """The text, octets as UTF-8, with control, bidi and other format characters replaced by U+FFFD, any space by U+0020, cut
    at MAX_SHOWN."""
    text = text[: 4 * MAX_SHOWN]
    text = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip()
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_visible, text))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def unhidden(text: str, *, keep: str = "\n\t") -> str:
    """The same characters replaced, but for those to `keep`, and nothing cut."""
    if text.isprintable():
        return text
    return _PERHAPS_HIDDEN.sub(
        lambda match: match[0] if match[0] in keep else _visible(match[0]), text
    )
