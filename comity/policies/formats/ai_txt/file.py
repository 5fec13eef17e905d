"""The ai.txt of a site."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from comity.bounded import Bounded
from comity.policies.answers.decision import Finding, Reason, Verdict
from comity.policies.answers.element_rule import ElementRule
from comity.policies.answers.fetched import Fetched
from comity.policies.formats.ai_txt.grammar import parse
from comity.policies.formats.ai_txt.spawning import AgentPatterns, Spawning, spawning
from comity.policies.formats.ai_txt.values import AgentElementRules, AiTxt
from comity.policies.formats.file import File, ParsedBodies, SiteFiles
from comity.policies.syntax.lines import text_of
from comity.policies.vocabulary.statement import Statement

PATH = "/ai.txt"


MAX_TOKENS = 16  # the maximum number of agents for which the rules of a body are compiled


class _Body:
    """The octets of an ai.txt, read without its URL in both formats.

    Attributes:
        elements: The rules for elements.
        spawning: The patterns in Spawning's form.
    """

    def __init__(self, octets: bytes, *, oversized: bool) -> None:
        text, cut = text_of(octets, cut=oversized)
        self.elements = parse(text, cut=cut)
        self.spawning = spawning(text, cut=cut)
        self._bound: Bounded[str, tuple[AgentElementRules, AgentPatterns]] = Bounded(MAX_TOKENS)

    def for_agent(self, token: str) -> tuple[AgentElementRules, AgentPatterns]:
        """Return the rules for elements and the patterns that bind the agent."""
        bound = self._bound.get(token)
        if bound is None:
            bound = self.elements.for_agent(token), self.spawning.for_agent(token)
            self._bound[token] = bound
        return bound


_bodies = ParsedBodies(_Body)


class AiFile(File):
    """An ai.txt, in either of the two formats that are served under that name."""

    def __init__(self, url: str, fetched: Fetched) -> None:
        super().__init__(url, fetched)
        self.elements: AiTxt | None = None
        self.spawning: Spawning | None = None
        self._body: _Body | None = None
        if self.is_present:
            self._body = _bodies.get(fetched.body, oversized=fetched.oversized)
            self.elements, self.spawning = self._body.elements, self._body.spawning

    def elements_for(self, token: str) -> AgentElementRules | None:
        """Return the rules for elements that bind the agent, or None if there are none."""
        elements = self._body.for_agent(token)[0] if self._body else None
        return elements if elements and elements.rules else None

    def statements(self, target: str, token: str) -> tuple[Statement, ...]:
        """Return the statements in Spawning's form about a target, to the agent."""
        return self._at_url(self._body.for_agent(token)[1].statements(target)) if self._body else ()

    def statements_everywhere(self, token: str) -> tuple[Statement, ...]:
        """Return the statements in Spawning's form about all resources, to the agent."""
        return self._at_url(self._body.for_agent(token)[1].everywhere()) if self._body else ()

    def _at_url(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """Return statements of the body with the URL of this file."""
        return tuple(
            statement._replace(location=statement.location._replace(url=self.url))
            for statement in statements
        )

    @property
    def crawler_names(self) -> frozenset[str]:
        """The agents that blocks or groups name, in lower case."""
        names = (
            {name.lower() for rule in self.elements.rules for name in rule.agents}
            if self.elements
            else set()
        )
        return frozenset(
            names | {name.lower() for name, _ in self.spawning.agents} if self.spawning else names
        ) - {"*"}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of both readings.

        A line that is read in Spawning's form has only the findings of that form.
        """
        if self.elements is None or self.spawning is None:
            return ()
        lines = {pattern.source.line for pattern in self.spawning.patterns if pattern.text}
        of_elements = (each for each in self.elements.findings if each.line not in lines)
        found = (*of_elements, *self.spawning.findings)
        return tuple(replace(finding, url=self.url) for finding in found)

    def rule_reason(self, rule: ElementRule, page_url: str) -> Reason:
        """Return the reason for a rule about an element. It quotes the rule's line in the file.

        The reason is the same for all pages, so `page_url` is not used.
        """
        return self.line_reason(
            "ait.disallow" if rule.verdict is Verdict.DENY else "ait.guide", rule.line, rule.offset
        )


def ai_txt_of(site: SiteFiles) -> AiFile:
    """Return the site's ai.txt."""
    return site.once(AiFile, lambda: AiFile(site.origin + PATH, site.get(PATH)))
