"""Make text safe to show: text from a site (SEC-4), and settings of the operator.

printable(text)            one line, in reasons, findings, tables and errors
unhidden(text)             text of any length and of several lines, in logs
without_passwords(text)    settings and commands, in messages and files"""

from __future__ import annotations

import re
import unicodedata

# Characters of one line that a reason or a finding shows.
MAX_SHOWN = 200

# Unicode categories of characters that are replaced.
HIDDEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
_PERHAPS_HIDDEN = re.compile(r"[^ -~]")


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if char == "\t" or category == "Zs":
        return " "
    return "\ufffd" if category in HIDDEN else char


def printable(text: bytes | str) -> str:
    """Return the text on one line, cut at MAX_SHOWN. Octets are read as UTF-8.

    U+FFFD replaces control, bidi and other format characters, and U+0020 replaces any space."""
    text = text[: 4 * MAX_SHOWN]
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    text = text.strip(" \t\r\n")  # other white space is shown, because readers may keep it
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_visible, text))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def unhidden(text: str, *, keep: str = "\n\t") -> str:
    """Return the text with the same replacements, except for the characters in `keep`, uncut."""
    if text.isprintable():
        return text
    return _PERHAPS_HIDDEN.sub(
        lambda match: match[0] if match[0] in keep else _visible(match[0]), text
    )


def without_passwords(text: str) -> str:
    """Replace the users and passwords in URLs. Passwords may contain `/` and `@`."""
    return re.sub(r"://\S*@", "://***@", text)
