"""The readings of one ai.txt, in either of its two formats."""

from __future__ import annotations

from comity.policies.agent import Agent
from comity.policies.document.document import Content
from comity.policies.formats.ai_txt.file import AiFile, ai_txt_of
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    AgentReading,
    ElementRuleSet,
    Resource,
    SiteReading,
    Statements,
)
from comity.policies.vocabulary.statement import Statement


class AiReading(AgentReading):
    """One agent's reading of an ai.txt: rules for elements, and patterns in Spawning's form.

    `is_silent` is True if no rule and no pattern applies to the agent.
    """

    def __init__(self, file: AiFile, token: str) -> None:
        self._file = file
        self._token = token
        self._elements = file.elements_for(token)
        self._has_patterns = file.spawning is not None and bool(file.spawning.patterns)

    @property
    def is_silent(self) -> bool:
        return self._elements is None and not self._has_patterns

    @property
    def is_same_for_pages(self) -> bool:
        return self._elements is None

    def statements(self, resource: Resource) -> Statements:
        return Statements(self._file.statements(resource.target, self._token))

    def everywhere(self) -> tuple[Statement, ...]:
        return self._file.statements_everywhere(self._token)

    def element_rules(self, target: str, content: Content) -> ElementRuleSet | None:
        rules = (
            self._elements.rules_for(target, content.served_as, content.kind)
            if self._elements
            else ()
        )
        return ElementRuleSet(rules, self._file.rule_reason) if rules else None

    def element_rules_everywhere(self) -> ElementRuleSet | None:
        return (
            ElementRuleSet(self._elements.everywhere(), self._file.rule_reason)
            if self._elements
            else None
        )


class AiSite(SiteReading):
    """The reading of one ai.txt, for any agent."""

    def __init__(self, site: SiteFiles) -> None:
        self._file = ai_txt_of(site)
        self.crawler_names = self._file.crawler_names
        self.findings = self._file.findings

    def for_agent(self, agent: Agent) -> AiReading | None:
        reading = AiReading(self._file, agent.token)
        return None if reading.is_silent else reading

    @property
    def element_rules(self) -> ElementRuleSet | None:  # type: ignore[override]
        rules = self._file.elements.rules if self._file.elements else ()
        return ElementRuleSet(rules, self._file.rule_reason) if rules else None
