"""The rules of an ai.txt, and the choice of those about a resource.

AiTxt.for_agent(token) -> AgentElementRules               the rules that bind an agent
AgentElementRules.rules_for(target, media_type, kind)     those about one resource
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from comity.policies.answers.decision import Finding
from comity.policies.answers.element_rule import ALL, EVERY_TYPE, ElementRule
from comity.policies.document.document import file_types
from comity.policies.syntax.path_patterns import PatternIndex, normal_target
from comity.policies.syntax.urls import spellings


@dataclass(frozen=True, slots=True, kw_only=True)
class AiTxt:
    """One ai.txt.

    Attributes:
        rules: In the order of the file.
        findings: Findings for the author.
    """

    rules: tuple[ElementRule, ...]
    findings: tuple[Finding, ...] = ()

    def for_agent(self, token: str) -> AgentElementRules:
        """Return the rules that bind a product token: rules that name the token, and rules for `*`.

        See AIT-9.
        """
        return AgentElementRules(self.rules, token)

    def rules_for(
        self, target: str, token: str, media_type: str, kind: str = ""
    ) -> tuple[ElementRule, ...]:
        """Return the rules for one agent about one resource.

        If you ask about several resources, call `for_agent` once and keep its result instead.
        """
        return self.for_agent(token).rules_for(target, media_type, kind)


class AgentElementRules:
    """The rules that bind one agent, indexed by their paths."""

    def __init__(self, rules: Iterable[ElementRule], token: str) -> None:
        bound: list[ElementRule] = []
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
        patterns = [(pattern, path) for path in self._numbers for pattern in patterns_of(path)]
        self._paths = [path for _, path in patterns]
        self._index = PatternIndex([pattern for pattern, _ in patterns])

    def rules_for(self, target: str, media_type: str, kind: str = "") -> tuple[ElementRule, ...]:
        """Return the rules about the resource, in the order of the file.

        `target` is path and query. `kind` is the file type that the content itself shows, such as
        "html", or "". Rules for this type and rules for the types of `media_type` both count.
        """
        paths = (normal_target(spelling.partition("?")[0]) for spelling in spellings(target))
        matching_paths = {self._paths[number] for path in paths for number in self._index.all(path)}
        types = {EVERY_TYPE, kind, *file_types(media_type)}
        numbers = sorted(number for path in matching_paths for number in self._numbers[path])
        return tuple(
            rule for rule in (self.rules[number] for number in numbers) if rule.file_type in types
        )

    def everywhere(self) -> tuple[ElementRule, ...]:
        """Return the rules about the whole content of every resource."""
        return tuple(
            rule
            for rule in self.rules
            if rule.element == ALL and rule.file_type == EVERY_TYPE and rule.path in ("/", "*")
        )


def patterns_of(path: str) -> tuple[str, ...]:
    """Return the patterns that cover a path and everything beneath it (AIT-4)."""
    return (path,) if "*" in path or path.endswith(("$", "/")) else (f"{path}$", f"{path}/")
