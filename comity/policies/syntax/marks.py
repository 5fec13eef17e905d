"""Characters that editors leave around and between words, in formats whose words have no quotes."""

from __future__ import annotations

QUOTES = "\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a"
BRACKETS = "[](){}"
UNSEEN = "\0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
SPACES = "".join(char for char in map(chr, range(0x3001)) if char.isspace())
"""All white space of Unicode, no-break spaces included."""
COMMAS = "\u3001\uff0c\uff1b"
"""Commas and semicolons of other scripts."""
HYPHENS = "\u2010\u2011"
"""Characters that look like `-`."""
