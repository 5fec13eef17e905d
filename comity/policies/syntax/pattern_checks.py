"""Path patterns as those see them who write them: what is odd in one, and which ones another leaves nothing to.

oddity(octets)         why a pattern probably matches nothing that is meant
sample(pattern)        a target that is covered by those patterns alone that cover all that the pattern does"""

from __future__ import annotations

import re

_ANYTHING = "\0"  # in no pattern in normal form

_MAX_LOOKED_AT = 2000  # octets
_QUOTES = re.compile('^["\'`\u2018-\u201f]|["\u2018-\u201f]')
_SPACES = re.compile("[\u00a0\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff]")
_EXPRESSION = re.compile(
    r"\^|\\[dwsDWS.*+?/]|\([^()/]*\|[^()/]*\)|\[[^\[\]/]*[a-zA-Z0-9]-[a-zA-Z0-9][^\[\]/]*\]|\.\+|\{\d+,?\d*\}"
)
_PLACEHOLDER = re.compile(r"<[^<>/]*>|\{[^{}/]*\}")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def oddity(octets: bytes) -> str:
    """Return why the pattern probably matches nothing that is meant, as half a sentence; "" where nothing is odd."""
    text = octets[:_MAX_LOOKED_AT].decode("utf-8", "replace")
    if _QUOTES.search(text):
        return "quotation marks are a part of it: leave them out"
    if _SPACES.search(text):
        return "it has a no-break or invisible space, which no address has: leave it out"
    if " " in text or "\t" in text:
        return "white space is a part of it: write `%20` for a space, and several patterns one by one"
    if _EXPRESSION.search(text):
        return "it is no regular expression: only `*`, and `$` at the end, mean something"
    if _PLACEHOLDER.search(text):
        return "what stands in brackets is meant as it stands: write `*` for any characters"
    if "$" in text[:-1]:
        return "`$` means the end of the address at the end of the pattern alone: write `%24` for the character"
    if "#" in text:
        return "what follows a `#` is never sent to a server: leave it out"
    if _BROKEN_ESCAPE.search(text):
        return "`%` begins no escape of two hexadecimal digits: write `%25` for the character"
    return ""


def sample(pattern: str) -> str:
    """Return a target that is covered by those patterns alone that cover all that the pattern does. `pattern`: normal form."""
    exact = pattern.endswith("$")
    return pattern.removesuffix("$").replace("*", _ANYTHING) + ("" if exact else _ANYTHING)
