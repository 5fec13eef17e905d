"""The automation-preferences.txt of a site."""

from __future__ import annotations

from dataclasses import replace

from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.formats.automation.directives import PATH
from comity.policies.formats.automation.grammar import (
    Automation,
    is_served_as_text,
    media_type_findings,
    parse,
    rejection,
)
from comity.policies.formats.file import File, ParsedBodies, SiteFiles
from comity.policies.syntax.lines import text_of


class _Body:
    """The octets of an automation-preferences.txt, read without its URL."""

    def __init__(self, octets: bytes, *, oversized: bool) -> None:
        text, cut = text_of(octets, cut=oversized)
        self.automation = parse(text, cut=cut)


_bodies = ParsedBodies(_Body)


class AutomationFile(File):
    """An automation-preferences.txt. A file with rejected content counts as not fetched (AUTO-4).

    A file that is not served as text is read, but permits no more than one that is cut off
    (AUTO-1).
    """

    def __init__(self, url: str, fetched: Fetched) -> None:
        if availability(fetched) is Availability.PRESENT and (problem := rejection(fetched)):
            fetched = replace(fetched, error=problem)
        super().__init__(url, fetched)
        self.automation: Automation | None = None
        self._body: _Body | None = None
        if self.is_present:
            self._body = _bodies.get(fetched.body, oversized=fetched.oversized)
            automation = self._body.automation
            is_complete = automation.complete and is_served_as_text(fetched)
            self.automation = automation._replace(complete=is_complete)

    @property
    def crawler_names(self) -> frozenset[str]:
        """The agents that groups name, in lower case."""
        groups = self.automation.groups if self.automation else ()
        return frozenset(token for group in groups for token in group.agents or ()) - {"*"}

    @property
    def findings(self) -> tuple[Finding, ...]:
        if not self.automation:
            return ()
        of_lines = (replace(finding, url=self.url) for finding in self.automation.findings)
        return (*media_type_findings(self.fetched, self.url), *of_lines)


def preferences_of(site: SiteFiles) -> AutomationFile:
    """Return the site's automation-preferences.txt."""
    return site.once(AutomationFile, lambda: AutomationFile(site.origin + PATH, site.get(PATH)))
