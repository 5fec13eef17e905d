"""Characters that editors and configurations leave around words and between them, in formats whose words are not quoted."""

from __future__ import annotations

QUOTES = "\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a"
BRACKETS = "[](){}"
UNSEEN = "\0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
SPACES = "".join(
    char for char in map(chr, range(0x3001)) if char.isspace()
)  # no-break spaces among them; all that Unicode has
COMMAS = "\u3001\uff0c\uff1b"  # and semicolons
HYPHENS = "\u2010\u2011"  # which look as `-` does
