"""The rules of an ai.txt, as values, and the choice of those about a resource.

AiTxt.for_agent(token) -> AgentRules               the rules that bind an agent
AgentRules.rules_for(target, media_type, kind)     those about one resource
of_action(rules, action)                           which of them speak of an action, and are not overruled"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.document.document import file_types
from comity.policies.syntax.path_patterns import PatternIndex, normal_target
from comity.policies.syntax.urls import spellings

# section-3.3, as they are shown. In values they are in lower case.
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

_ORDER = {action.lower(): number for number, action in enumerate(ACTIONS)}


def display_names(actions: Iterable[str]) -> tuple[str, ...]:
    """Actions as they are shown: `*`, those of section-3.3 in its order, then others."""
    ordered = sorted(actions, key=lambda action: (action != ALL, _ORDER.get(action, len(ACTIONS)), action))
    return tuple(action.capitalize() if action.isascii() else action for action in ordered)


@dataclass(frozen=True, slots=True)
class Guideline:
    """The advice on the actions that a Guide permits, in one language (section-3.2, guide block)."""

    lang: str  # language tag, as written; "und": none is given
    text: str
    line: int = field(default=0, compare=False)  # 1-based, of its Guideline line


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One Disallow or Guide line, about one element of one path. Equal where they say the same, wherever they stand."""

    agents: tuple[str, ...]  # as written; ("*",): any
    path: str  # normal form; begins with / or with *
    file_type: str  # one of FILE_TYPES; "": every type
    element: str  # CSS selector or dotted name, as written; "*": the whole document
    verdict: Verdict | None  # DENY for Disallow; None for Guide, which permits nothing that others refuse
    actions: frozenset[str]  # lower case; "*": every action
    guidelines: tuple[Guideline, ...] = ()
    line: int = field(default=0, compare=False)  # 1-based
    offset: int = field(default=0, compare=False)  # octet of the text where that line starts

    @property
    def id(self) -> str:
        """A key of RULES."""
        return "ait.disallow" if self.verdict is Verdict.DENY else "ait.guide"

    def speaks_of(self, action: str) -> bool:
        return ALL in self.actions or action.lower() in self.actions


def of_action(rules: Iterable[Rule], action: str) -> tuple[Rule, ...]:
    """Return the rules about one element that decide of the action: Disallows, else Guides (AIT-9)."""
    speaking = [rule for rule in rules if rule.speaks_of(action)]
    return tuple(rule for rule in speaking if rule.verdict is Verdict.DENY) or tuple(speaking)


@dataclass(frozen=True, slots=True, kw_only=True)
class AiTxt:
    """One file."""

    rules: tuple[Rule, ...]  # in its order
    findings: tuple[Finding, ...] = ()

    def for_agent(self, token: str) -> AgentRules:
        """The rules that bind the product token: those for `*` and those that name it, together (AIT-9)."""
        return AgentRules(self.rules, token)

    def rules_for(self, target: str, token: str, media_type: str, kind: str = "") -> tuple[Rule, ...]:
        """The rules for one agent about one resource. For several resources, keep the result of `for_agent`."""
        return self.for_agent(token).rules_for(target, media_type, kind)


class AgentRules:
    """The rules that bind one agent, filed by their paths."""

    def __init__(self, rules: Iterable[Rule], token: str) -> None:
        bound: list[Rule] = []
        agents: tuple[str, ...] = ()
        binds = False
        for rule in rules:
            if rule.agents is not agents:  # the rules of a block share them
                agents = rule.agents
                binds = ALL in agents or any(name.lower() == token.lower() for name in agents)
            if binds:
                bound.append(rule)
        self.rules = tuple(bound)
        self._numbers: dict[str, list[int]] = {}  # path -> its rules
        for number, rule in enumerate(bound):
            self._numbers.setdefault(rule.path, []).append(number)
        patterns = [(pattern, path) for path in self._numbers for pattern in _patterns(path)]
        self._paths = [path for _, path in patterns]
        self._index = PatternIndex([pattern for pattern, _ in patterns])

    def rules_for(self, target: str, media_type: str, kind: str = "") -> tuple[Rule, ...]:
        """The rules about the resource, in the order of the file. `target`: path and query. `kind`: the file type that its octets
        have, whatever it is served as."""
        paths = (normal_target(spelling.partition("?")[0]) for spelling in spellings(target))
        matching_paths = {self._paths[number] for path in paths for number in self._index.all(path)}
        types = {EVERY_TYPE, kind, *file_types(media_type)}
        numbers = sorted(number for path in matching_paths for number in self._numbers[path])
        return tuple(rule for rule in (self.rules[number] for number in numbers) if rule.file_type in types)

    def everywhere(self) -> tuple[Rule, ...]:
        """The rules about all of every resource."""
        return tuple(
            rule for rule in self.rules if rule.element == ALL and rule.file_type == EVERY_TYPE and rule.path in ("/", "*")
        )


def _patterns(path: str) -> tuple[str, ...]:
    """The patterns that cover a path and everything beneath it (AIT-4)."""
    return (path,) if "*" in path or path.endswith(("$", "/")) else (f"{path}$", f"{path}/")
