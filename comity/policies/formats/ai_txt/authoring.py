"""Help for those who write an ai.txt: what may stand at a place of it (appendix A.2.1 of the paper)."""

from __future__ import annotations

import re

from comity.policies.answers.element_rule import ACTIONS, ALL
from comity.policies.document.document import FILE_TYPES
from comity.policies.formats.ai_txt.grammar import Keyword

_BY_NAME = {keyword.value[0].decode(): keyword for keyword in Keyword}
_KEYWORD = re.compile(r"[ \t]*([A-Za-z-]+)[ \t]*:[ \t]*(.*)", re.DOTALL)

# What may follow a line, besides what may follow one of the blocks that it stands in.
_WITHIN = {
    None: ("User-agent",),
    Keyword.USER_AGENT: ("Path",),
    Keyword.PATH: ("Element",),
    Keyword.ELEMENT: ("Disallow", "Guide"),
    Keyword.GUIDE: ("Lang",),
    Keyword.LANG: ("Guideline",),
}


def completions(text: str, position: int) -> list[str]:
    """Return what may come next in a file: keywords with their colons, file types, actions, or what stands for any of them.

    `position`: characters before it. The part of a word that stands before it begins each of them, whatever its case."""
    before, _, line = text[:position].replace("\r\n", "\n").replace("\r", "\n").rpartition("\n")
    match = _KEYWORD.match(line)
    if match is None:
        return [f"{name}: " for name in _expected(before) if name.lower().startswith(line.strip().lower())]
    words = match[2].split(" ")
    earlier, prefix = {word.lower() for word in words[:-1]}, words[-1].lower()
    candidates = _values(_BY_NAME.get(match[1].capitalize()), len([word for word in words[:-1] if word]))
    return [word for word in candidates if word.lower().startswith(prefix) and word.lower() not in earlier]


def _values(keyword: Keyword | None, words: int) -> tuple[str, ...]:
    """`words`: that stand before it on the line."""
    if keyword in (Keyword.DISALLOW, Keyword.GUIDE):
        return (ALL, *ACTIONS)
    if keyword is Keyword.PATH:
        return FILE_TYPES if words == 1 else ()
    return (ALL,) if keyword in (Keyword.USER_AGENT, Keyword.ELEMENT) and not words else ()


def _expected(before: str) -> list[str]:
    """The keywords of the next line, the innermost block's first."""
    last: dict[int, Keyword] = {}  # level -> the open block there
    for line in before.split("\n"):
        match = _KEYWORD.match(line)
        keyword = _BY_NAME.get(match[1].capitalize()) if match else None
        if keyword:
            last = {level: block for level, block in last.items() if level < keyword.level} | {keyword.level: keyword}
    expected: dict[str, None] = {}
    for keyword in (*sorted(last.values(), key=lambda block: -block.level), None):
        expected |= dict.fromkeys(_WITHIN.get(keyword, ()))
    return list(expected)
