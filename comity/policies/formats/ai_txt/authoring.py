"""Help for authors of ai.txt files.

    completions(text, position)     the words that can be written at a position of the text form
    AUTHORING                       words, checks and fixes, for tools that know all formats

The paper describes such help in appendix A.2.1.
"""

from __future__ import annotations

import re

from comity.policies.answers.element_rule import ACTIONS, ALL
from comity.policies.document.document import FILE_TYPES
from comity.policies.formats.ai_txt.checks import check_site, check_xml
from comity.policies.formats.ai_txt.fixes import FIXES
from comity.policies.formats.ai_txt.forms import ROOT
from comity.policies.formats.ai_txt.grammar import Keyword
from comity.policies.formats.ai_txt.words import ACTION_SUMMARIES, FILE_TYPE_SUMMARIES, LANGUAGES
from comity.policies.formats.authoring import Authoring, Directive, FileKind
from comity.policies.syntax.xml_tree import root_name

_PAPER = "ai.txt paper section-3.2"
_TEXT = (
    Directive(
        "User-agent",
        _PAPER,
        "The agents that the block is for: names, or `*` for any agent",
        "agent",
    ),
    Directive(
        "Path",
        _PAPER,
        "The resources: a path and everything beneath it, of a file type",
        "path file-type",
        ("User-agent",),
    ),
    Directive(
        "Element",
        _PAPER,
        "The part of them: a CSS selector, a dotted name in JSON and XML, or `*` for all",
        "selector",
        ("Path",),
    ),
    Directive("Disallow", _PAPER, "AI must not do this with the element", "action", ("Element",)),
    Directive(
        "Guide",
        _PAPER,
        "AI may do this with the element, by the guidelines below",
        "action",
        ("Element",),
    ),
    Directive(
        "Lang",
        _PAPER,
        "The language of the guideline below, as a tag such as `en-US`",
        "language",
        ("Guide",),
    ),
    Directive(
        "Guideline",
        _PAPER,
        "Instructions for the permitted action, in one or more sentences",
        "text",
        ("Lang",),
    ),
)
_SPAWNING_SPEC = "Spawning's ai.txt (docs/ai-txt.md)"
_SPAWNING = (
    Directive(
        "Disallow",
        _SPAWNING_SPEC,
        "AI must not be trained on files of this type, or below this path",
        "path",
        ("User-agent",),
    ),
    Directive(
        "Allow",
        _SPAWNING_SPEC,
        "An exception to a shorter pattern of a Disallow",
        "path",
        ("User-agent",),
    ),
)
_FORM = "ai.txt paper section-4"
_XML = tuple(
    Directive(name, _FORM, summary, value, within, form)
    for name, summary, value, within, form in (
        ("ai-txt", "The root element", "", (), "element"),
        ("user-agent", "A block for some agents", "", ("ai-txt",), "element"),
        (
            "names",
            "The agents that the block is for: names, or `*` for any agent",
            "agent",
            ("user-agent",),
            "attribute",
        ),
        ("path", "A block about some resources", "", ("user-agent",), "element"),
        (
            "value",
            "The resources: a path and everything beneath it",
            "path",
            ("path",),
            "attribute",
        ),
        ("file-type", "Their file type", "file-type", ("path",), "attribute"),
        ("element", "A block about a part of them", "", ("path",), "element"),
        (
            "name",
            "The part: a CSS selector, a dotted name in JSON and XML, or `*` for all",
            "selector",
            ("element",),
            "attribute",
        ),
        ("disallow", "AI must not do this with the element", "", ("element",), "element"),
        (
            "guide",
            "AI may do this with the element, by the guidelines in it",
            "",
            ("element",),
            "element",
        ),
        (
            "actions",
            "The actions, or `*` for every action",
            "action",
            ("disallow", "guide"),
            "attribute",
        ),
        ("guideline", "Instructions for the permitted action", "text", ("guide",), "element"),
        (
            "lang",
            "The language of the guideline, as a tag such as `en-US`",
            "language",
            ("guideline",),
            "attribute",
        ),
    )
)

_BY_NAME = {keyword.value[0].decode(): keyword for keyword in Keyword}
_KEYWORD = re.compile(r"[ \t]*([A-Za-z-]+)[ \t]*:[ \t]*(.*)", re.DOTALL)


def completions(text: str, position: int) -> list[str]:
    """Return the words that can be written at a position: keywords, file types, actions and `*`.

    `position` is the number of characters before the cursor. If the cursor is at the end of an
    unfinished word, only words that begin with it are returned, in upper or lower case: after
    `Dis` that is `Disallow: `. Keywords come with their colons.
    """
    before, _, line = text[:position].replace("\r\n", "\n").replace("\r", "\n").rpartition("\n")
    match = _KEYWORD.match(line)
    if match is None:
        return [
            f"{name}: "
            for name in _next_keywords(before)
            if name.lower().startswith(line.strip().lower())
        ]
    words = match[2].split(" ")
    earlier, prefix = {word.lower() for word in words[:-1]}, words[-1].lower()
    candidates = _values(
        _BY_NAME.get(match[1].capitalize()), len([word for word in words[:-1] if word])
    )
    return [
        word
        for word in candidates
        if word.lower().startswith(prefix) and word.lower() not in earlier
    ]


def _values(keyword: Keyword | None, words: int) -> tuple[str, ...]:
    """Return the words that can be values of a keyword. None means an unknown keyword.

    `words` is the number of complete words between the keyword and the cursor.
    """
    if keyword in (Keyword.DISALLOW, Keyword.GUIDE):
        return (ALL, *ACTIONS)
    if keyword is Keyword.PATH:
        return FILE_TYPES if words == 1 else ()
    return (ALL,) if keyword in (Keyword.USER_AGENT, Keyword.ELEMENT) and not words else ()


def _next_keywords(before: str) -> list[str]:
    """Return the keywords that can begin the line after the text `before`.

    Keywords of the innermost open block come first.
    """
    last: dict[int, Keyword] = {}  # level -> the open block at this level
    for line in before.split("\n"):
        match = _KEYWORD.match(line)
        keyword = _BY_NAME.get(match[1].capitalize()) if match else None
        if keyword:
            last = {level: block for level, block in last.items() if level < keyword.level} | {
                keyword.level: keyword
            }
    open_blocks = [
        keyword.value[0].decode()
        for keyword in sorted(last.values(), key=lambda block: -block.level)
    ]
    within = [
        directive for block in open_blocks for directive in _TEXT if block in directive.within
    ]
    return list(dict.fromkeys(directive.name for directive in (*within, _TEXT[0])))


AUTHORING = Authoring(
    directives=(*_TEXT, *_SPAWNING, *_XML),
    values={
        "action": {action: ACTION_SUMMARIES[action] for action in (ALL, *ACTIONS)},
        "file-type": {name: FILE_TYPE_SUMMARIES[name] for name in FILE_TYPES},
        "language": LANGUAGES,
        "agent": {ALL: "any agent"},
        "selector": {ALL: "the whole document"},
    },
    check_site=check_site,
    fixes=FIXES,
    kinds=(FileKind("ai.xml", lambda name, body: root_name(body) == ROOT, check_xml),),
)
