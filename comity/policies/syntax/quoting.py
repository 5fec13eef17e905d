"""Quote text from a site so that it cannot leave its quotation marks in a prompt (SEC-4).

quote(text)    a JSON string on one line, whose only escapes are \\uXXXX"""

from __future__ import annotations

import re
import unicodedata

from comity.policies.syntax.printable import HIDDEN

# Characters between the quotation marks. An escape counts as six.
MAX_QUOTED = 2000
# Follows the closing quotation mark if the text was cut.
CUT = " (cut)"

# Quotation marks and similar characters, backticks and fences, the beginnings of tags and of the
# control tokens of models, and the escape character.
_DELIMITERS = frozenset('"\\`<“”„‟″‴⁗‶ʺ˝ˮ״〝〞〟❝❞＂｀ˋ＜﹤')
# Characters without a glyph that are not in HIDDEN: fillers, joiners, variation selectors, tags.
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def quote(text: str, limit: int = MAX_QUOTED) -> str:
    """Return the text as a JSON string, cut at `limit` characters (at least 12)."""
    pieces: list[str] = []
    length = 0
    for char in text:
        # A combining mark at the start would be drawn on the quotation mark.
        piece = (
            _escape(char)
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


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[offset : offset + 4]}" for offset in range(0, len(units), 4))
