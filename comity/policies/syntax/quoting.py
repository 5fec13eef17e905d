"""Text from a site, quoted so that it stays within its quotation marks in a prompt (SEC-4).

quoted(text)    one JSON string on one line, with no escapes but \\uXXXX"""

from __future__ import annotations

import re
import unicodedata

from comity.policies.syntax.printable import HIDDEN

MAX_QUOTED = 2000  # characters between the quotation marks, escapes counted as they are written
CUT = " (cut)"  # after the quotation marks

# Quotation marks and what looks like them, backticks and fences, what begins tags and the control tokens of models, escapes.
_DELIMITERS = frozenset('"\\`<“”„‟″‴⁗‶ʺ˝ˮ״〝〞〟❝❞＂｀ˋ＜﹤')
# Characters that are drawn as nothing and are not among HIDDEN: fillers, joiners, variation selectors, tags.
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def quoted(text: str, limit: int = MAX_QUOTED) -> str:
    """Return the text as a JSON string, which reads the same again but for what is cut. `limit`: characters, at least 12."""
    pieces: list[str] = []
    length = 0
    for char in text:
        # A mark at the start would be drawn on the quotation mark.
        piece = (
            _escaped(char)
            if _is_unsafe(char) or (not pieces and unicodedata.combining(char))
            else char
        )
        length += len(piece)
        if length > limit:
            return f'"{"".join(pieces)}"{CUT}'
        pieces.append(piece)
    return f'"{"".join(pieces)}"'


def _is_unsafe(char: str) -> bool:
    return (
        char in _DELIMITERS
        or unicodedata.category(char) in HIDDEN
        or _IGNORABLE.match(char) is not None
    )


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[offset : offset + 4]}" for offset in range(0, len(units), 4))
