"""One policy file of a site: what came back for it, and the reasons that it gives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from comity.policies.answers.decision import Finding, Reason, Source
from comity.policies.answers.fetched import Availability, Fetched, availability, is_html
from comity.policies.formats import acap, ai_txt
from comity.policies.formats.automation.grammar import Automation, media_type_findings, parse, rejection
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.lines import Lines, text_of
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import resolved

AUTOMATION_PATH = "/automation-preferences.txt"
AI_PATH = "/ai.txt"


class File:
    """Any policy file."""

    def __init__(self, url: str, fetched: Fetched) -> None:
        """`url`: where it was asked for."""
        self.url = url
        self.fetched = fetched
        self.availability = availability(fetched)
        self.is_present = self.availability is Availability.PRESENT
        self.sha256 = hashlib.sha256(fetched.body).hexdigest() if fetched.body else ""

    @cached_property
    def text(self) -> bytes:
        """The octets that are read."""
        return text_of(self.fetched.body, cut=self.fetched.oversized)[0]

    def reason(self, rule: str, *, part: str = "body", line: int = 0, text: str = "", citation: str = "") -> Reason:
        fetched_at = self.fetched.fetched_at
        source = Source(url=self.url, part=part, line=line, text=text, sha256=self.sha256, fetched_at=fetched_at)
        return Reason(rule=rule, source=source, citation=citation)

    def line_reason(self, rule: str, line: int, at: int, citation: str = "") -> Reason:
        """`at`: where the line starts in the text."""
        return self.reason(rule, line=line, text=printable(Lines(self.text, at).read()), citation=citation)

    def outcome_reason(self, rule: str) -> Reason:
        """A reason that there is no file."""
        return self.reason(rule, part="status", text=self.outcome)

    @property
    def outcome(self) -> str:
        """What came back instead of a file, in words."""
        if self.fetched.error:
            return printable(self.fetched.error.encode(errors="replace"))
        return (
            "an HTML page" if self.fetched.status // 100 == 2 and is_html(self.fetched) else f"HTTP status {self.fetched.status}"
        )


class RobotsFile(File):
    """A robots.txt, or a file that one refers to: its conventional records, and what it says in ACAP."""

    def __init__(
        self, url: str, fetched: Fetched, *, definitions: acap.Definitions | None = None, crawlers: Iterable[str] = ()
    ) -> None:
        """Of a referenced file `definitions` and `crawlers` are those of what refers to it."""
        super().__init__(url, fetched)
        self._referred: dict[str, str] = {}  # locator -> URL; a file may refer to another for each of many crawlers
        self.robots: robots.Robots | None = None
        self.acap: acap.Acap | None = None
        if self.is_present:
            self.robots = robots.parse(fetched.body, url=url, oversized=fetched.oversized)
            if b"acap" in self.text.lower():
                self.acap = acap.parse(self.text, url=url, definitions=definitions, crawlers=crawlers)

    def referred(self, reference: acap.Reference) -> str:
        """The absolute URL of the file that is referred to; "" for what is nowhere that can be asked."""
        locator = reference.locator
        if locator not in self._referred:
            try:
                self._referred[locator] = resolved(self.url, locator) if locator else ""
            except ValueError:
                self._referred[locator] = ""
        return self._referred[locator]

    @property
    def crawler_names(self) -> frozenset[str]:
        """Whom a record names, in lower case: product tokens, and names in ACAP, which may have any form."""
        tokens = self.robots.product_tokens if self.robots else frozenset()
        records = self.acap.records if self.acap else ()
        return tokens | {crawler.lower() for record in records for crawler in record.crawlers} - {"*"}

    @property
    def findings(self) -> tuple[Finding, ...]:
        conventional = self.robots.findings if self.robots else ()
        return (*conventional, *self.acap.findings, *self._odd_references(self.acap)) if self.acap else conventional

    def _odd_references(self, read: acap.Acap) -> Iterator[Finding]:
        for reference in (reference for record in read.records for reference in record.references):
            messages = {"": "this is no http or https URL: everything is refused", self.url: "the file refers to itself"}
            if message := messages.get(self.referred(reference)):
                yield Finding(rule="acap.reference", message=message, url=self.url, line=reference.line)


class AutomationFile(File):
    """An automation-preferences.txt. One whose content is rejected counts as one that cannot be had (AUTO-4)."""

    def __init__(self, url: str, fetched: Fetched) -> None:
        if why := accepted(url, fetched).error:
            fetched = replace(fetched, error=why)
        super().__init__(url, fetched)
        self.automation: Automation | None = None
        if self.is_present:
            text, cut = text_of(fetched.body, cut=fetched.oversized)
            self.automation = parse(text, url=url, cut=cut)

    @property
    def crawler_names(self) -> frozenset[str]:
        """Whom a group names, in lower case."""
        groups = self.automation.groups if self.automation else ()
        return frozenset(token for group in groups for token in group.agents or ()) - {"*"}

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*media_type_findings(self.fetched, self.url), *self.automation.findings) if self.automation else ()


class AiFile(File):
    """An ai.txt, in either of the formats that are served under that name."""

    def __init__(self, url: str, fetched: Fetched) -> None:
        super().__init__(url, fetched)
        self.elements: ai_txt.AiTxt | None = None
        self.spawning: ai_txt.Spawning | None = None
        if self.is_present:
            text, cut = text_of(fetched.body, cut=fetched.oversized)
            self.elements = ai_txt.parse(text, url=url, cut=cut)
            self.spawning = ai_txt.spawning(text, url=url, cut=cut)

    @property
    def crawler_names(self) -> frozenset[str]:
        """Whom a block or group names, in lower case."""
        named = {name.lower() for rule in self.elements.rules for name in rule.agents} if self.elements else set()
        return frozenset(named | {name.lower() for name, _ in self.spawning.agents} if self.spawning else named) - {"*"}

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*(self.elements.findings if self.elements else ()), *(self.spawning.findings if self.spawning else ()))


def accepted(url: str, fetched: Fetched) -> Fetched:
    """What came back for a policy file, with an error where the content is such that its format rejects the file."""
    if url.endswith(AUTOMATION_PATH) and availability(fetched) is Availability.PRESENT and (why := rejection(fetched)):
        return replace(fetched, error=why)
    return fetched
