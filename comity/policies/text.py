"""Text from a site, made fit to show (SEC-4)."""

from __future__ import annotations

import unicodedata

MAX_SHOWN = 200  # characters of one line that a reason or a finding shows

HIDDEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")  # Unicode categories


def _shown(char: str) -> str:
    if char == "\t":
        return " "
    return "\ufffd" if unicodedata.category(char) in HIDDEN else char


def printable(octets: bytes) -> str:
    """The octets as UTF-8, with control, bidi and other format characters replaced by U+FFFD, cut at MAX_SHOWN."""
    text = octets[: 4 * MAX_SHOWN].decode("utf-8", "replace").strip()
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_shown, text))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
