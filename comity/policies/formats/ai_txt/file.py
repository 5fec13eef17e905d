"""The ai.txt of a site."""

from __future__ import annotations

from comity.policies.answers.decision import Finding, Reason, Verdict
from comity.policies.answers.element_rule import ElementRule
from comity.policies.answers.fetched import Fetched
from comity.policies.formats.ai_txt.grammar import parse
from comity.policies.formats.ai_txt.spawning import Spawning, spawning
from comity.policies.formats.ai_txt.values import AiTxt
from comity.policies.formats.file import File, SiteFiles
from comity.policies.syntax.lines import text_of

PATH = "/ai.txt"


class AiFile(File):
    """An ai.txt, in either of the two formats that are served under that name."""

    def __init__(self, url: str, fetched: Fetched) -> None:
        super().__init__(url, fetched)
        self.elements: AiTxt | None = None
        self.spawning: Spawning | None = None
        if self.is_present:
            text, cut = text_of(fetched.body, cut=fetched.oversized)
            self.elements = parse(text, url=url, cut=cut)
            self.spawning = spawning(text, url=url, cut=cut)

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
        return (*of_elements, *self.spawning.findings)

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
