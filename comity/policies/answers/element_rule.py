"""Rules about elements of a page: how each may be used, in the terms of the ai.txt paper.

Any format may have element rules. `of_action(rules, action)` selects those that decide about an
action."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from comity.policies.answers.decision import Verdict

# Section 3.3 of the paper, in display case. Values are in lower case.
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
    """Return actions for display: `*`, then those of section-3.3 in its order, then others."""
    ordered = sorted(
        actions, key=lambda action: (action != ALL, _ORDER.get(action, len(ACTIONS)), action)
    )
    return tuple(action.capitalize() if action.isascii() else action for action in ordered)


@dataclass(frozen=True, slots=True)
class Guideline:
    """Advice on the actions that a Guide permits, in one language (section-3.2, guide block).

    Attributes:
        lang: language tag, as written. "und": none is given.
        text: the advice.
        line: 1-based line number of the Guideline."""

    lang: str
    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementRule:
    """One Disallow or Guide line about one element of one path. Its position is not compared.

    Attributes:
        agents: names of agents, as written. ("*",): any agent.
        path: path pattern in normal form. It begins with / or *.
        file_type: one of FILE_TYPES. "": every type.
        element: CSS selector or dotted name, as written. "*": the whole document.
        verdict: DENY for Disallow, None for Guide. A Guide permits nothing that others refuse.
        actions: names of actions in lower case. "*": every action.
        guidelines: the advice of a Guide, one for each language.
        line: 1-based line number.
        offset: octets of the text before that line.
        finding: id of the rule to report if the element covers more than it says.
            "": nothing is reported."""

    agents: tuple[str, ...]
    path: str
    file_type: str
    element: str
    verdict: Verdict | None
    actions: frozenset[str]
    guidelines: tuple[Guideline, ...] = ()
    line: int = field(default=0, compare=False)
    offset: int = field(default=0, compare=False)
    finding: str = field(default="", compare=False)

    def speaks_of(self, action: str) -> bool:
        """Return True if this rule is about the action, in any case."""
        return ALL in self.actions or action.lower() in self.actions


def of_action(rules: Iterable[ElementRule], action: str) -> tuple[ElementRule, ...]:
    """Return the rules that decide about the action: Disallows, else Guides (AIT-9)."""
    speaking = [rule for rule in rules if rule.speaks_of(action)]
    return tuple(rule for rule in speaking if rule.verdict is Verdict.DENY) or tuple(speaking)


# Forms of other languages: JSON Pointer (RFC 6901), XPath, JSONPath (RFC 9535), CSS, names in
# quotation marks, and lists.
_OF_OTHERS = re.compile(r"^[/$@'\"]|[\[\]*,/>|]|::|\.@|\s\.|\.\s")


def is_dotted_name(name: str) -> bool:
    """Return True for the usual form of a JSON or XML name. Other forms may still be names."""
    return all(name.split(".")) and not _OF_OTHERS.search(name)
