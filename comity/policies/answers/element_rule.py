"""Rules for parts of a page: which element may not be used for what, or how, in the terms of the ai.txt paper.

Any format may have such rules. ElementRule is one of them; `of_action(rules, action)` are those that decide of an action."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from comity.policies.answers.decision import Verdict

# Section 3.3 of the paper, as they are shown. In values they are in lower case.
ACTIONS = (
    "Analyze",
    "Cite",
    "Clip",
    "Describe",
    "Evaluate",
    "Extract",
    "Index",
    "Manipulate",
    "Rephrase",
    "Return",
    "Summarize",
    "Train",
    "Transcribe",
    "Translate",
)
ALL = "*"  # any agent, the whole document, every action
EVERY_TYPE = ""

ACTION_SPELLINGS = {"all": ALL, "analyse": "analyze", "summarise": "summarize"}  # LENIENT

_ORDER = {action.lower(): number for number, action in enumerate(ACTIONS)}


def display_names(actions: Iterable[str]) -> tuple[str, ...]:
    """Actions as they are shown: `*`, those of section-3.3 in its order, then others."""
    ordered = sorted(
        actions, key=lambda action: (action != ALL, _ORDER.get(action, len(ACTIONS)), action)
    )
    return tuple(action.capitalize() if action.isascii() else action for action in ordered)


@dataclass(frozen=True, slots=True)
class Guideline:
    """The advice on the actions that a Guide permits, in one language (section-3.2, guide block)."""

    lang: str  # language tag, as written; "und": none is given
    text: str
    line: int = field(default=0, compare=False)  # 1-based, of its Guideline line


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementRule:
    """One Disallow or Guide line, about one element of one path. Equal where they say the same, wherever they stand."""

    agents: tuple[str, ...]  # as written; ("*",): any
    path: str  # normal form; begins with / or with *
    file_type: str  # one of FILE_TYPES; "": every type
    element: str  # CSS selector or dotted name, as written; "*": the whole document
    verdict: (
        Verdict | None
    )  # DENY for Disallow; None for Guide, which permits nothing that others refuse
    actions: frozenset[str]  # lower case; "*": every action
    guidelines: tuple[Guideline, ...] = ()
    line: int = field(default=0, compare=False)  # 1-based
    offset: int = field(default=0, compare=False)  # octet of the text where that line starts
    finding: str = field(
        default="", compare=False
    )  # rule of the finding that it covers more than it says; "": nobody is told

    def speaks_of(self, action: str) -> bool:
        return ALL in self.actions or action.lower() in self.actions


def of_action(rules: Iterable[ElementRule], action: str) -> tuple[ElementRule, ...]:
    """Return the rules about one element that decide of the action: Disallows, else Guides (AIT-9)."""
    speaking = [rule for rule in rules if rule.speaks_of(action)]
    return tuple(rule for rule in speaking if rule.verdict is Verdict.DENY) or tuple(speaking)


# Forms of other languages: JSON Pointer (RFC 6901), XPath and JSONPath (RFC 9535), CSS, names in quotation marks, and lists.
_OF_OTHERS = re.compile(r"^[/$@'\"]|[\[\]*,/>|]|::|\.@|\s\.|\.\s")


def is_dotted_name(name: str) -> bool:
    """True for the form of a name of JSON or XML. What has another may be a name all the same."""
    return all(name.split(".")) and not _OF_OTHERS.search(name)
