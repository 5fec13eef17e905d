"""What one site says: its policy files, and the questions that can be put to them.

site = Site.from_files("https://example.com", {"/robots.txt": b"..."})
site.access(agent, url)      may this request be made?
site.page(agent, url)        what may be done with what came back?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self
from urllib.parse import urljoin

from comity.policies.availability import Availability, availability, is_html
from comity.policies.formats import robots
from comity.policies.page import Page
from comity.policies.text import printable
from comity.policies.urls import origin_of, target_of
from comity.policies.values import ActionRequest, Agent, Decision, Fetched, Finding, Reason, Source, Verdict

WELL_KNOWN: tuple[str, ...] = ("/robots.txt",)  # what is fetched of every origin; a format adds its path here


MAX_DECIDED = 1024  # decisions that a site keeps, one for each line that decided


class Site:
    """The policies of one origin (scheme, host, port). Immutable; what it compiles, it keeps."""

    def __init__(self, origin: str, files: Mapping[str, Fetched]) -> None:
        self.origin = origin
        self.files = dict(files)  # absolute URL that was asked for -> what came back
        self._robots = _Robots(f"{origin}/robots.txt", self.files[f"{origin}/robots.txt"])

    @classmethod
    def from_files(cls, origin: str, files: Mapping[str, bytes | Fetched]) -> Self:
        """`files`: path or absolute URL -> the body, or all that was fetched.

        A well-known path that is not given counts as not there (404). ValueError where `origin` is no http(s) URL."""
        origin = origin_of(origin)
        given = {
            urljoin(origin, path): file if isinstance(file, Fetched) else Fetched(status=200, body=file)
            for path, file in files.items()
        }
        return cls(origin, {origin + path: Fetched(status=404) for path in WELL_KNOWN} | given)

    def access(
        self,
        agent: Agent,
        url: str,
        *,
        method: str = "GET",
        kind: str = "document",
        automations: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        referer: str | None = None,
        session: object = None,
        now: datetime | None = None,
    ) -> Decision:
        """May this request be made? `now`: aware, None for the clock.

        RFC 9309 asks for the agent and the URL alone; the other facts of a request are there for formats that ask for them."""
        return self._robots.access(agent, target_of(url), now)

    def considered(self, agent: Agent, url: str) -> tuple[Reason, ...]:
        """Every rule that matches the URL, the deciding one first and the losing ones after it."""
        return self._robots.considered(agent, target_of(url))

    def page(
        self,
        agent: Agent,
        url: str,
        *,
        status: int = 200,
        headers: Iterable[tuple[bytes, bytes]] = (),
        body: bytes = b"",
        now: datetime | None = None,
        first_seen: Mapping[str, datetime] | None = None,
        resources: Mapping[str, Fetched] | None = None,
        access: Decision | None = None,
    ) -> Page:
        """What may be done with the content that came back for this URL.

        `first_seen`: use -> when the page was first taken for it, see `Page.dated`. `resources`: absolute URL -> what came back
        for it, see `Page.wanted`. `access`: the decision that the page was asked for by."""
        if access is None:
            access = self.access(agent, url, now=now)
        return Page(agent, url, access=access, policies=self.policies, findings=self.findings, body=body)

    @cached_property
    def policies(self) -> dict[str, dict[str, Any]]:
        """URL -> status, SHA-256 and fetch time of every policy file, as the tag of an item carries them."""
        return {
            url: {
                "status": file.status,
                "sha256": hashlib.sha256(file.body).hexdigest() if file.body else None,
                "fetched_at": file.fetched_at.isoformat() if file.fetched_at else None,
            }
            for url, file in self.files.items()
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the authors of the policy files should know."""
        return self._robots.findings

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that robots.txt names, as absolute URLs."""
        return self._robots.sitemaps

    def references(self, agent: Agent) -> tuple[str, ...]:
        """Absolute URLs of further files that state what holds for the agent (ACAP 1.0 section-2.3.2)."""
        return ()

    def requests(self, agent: Agent) -> tuple[ActionRequest, ...]:
        """What the site asks the agent to do (ACAP 1.0 section-2.6)."""
        return ()

    def rates(self, agent: Agent) -> robots.AgentRules | None:
        """The rules of the agent's group, with the rates that it asks for; None where there is no file."""
        return self._robots.rules(agent)


class _Robots:
    """robots.txt of one origin: read once, compiled once per product token."""

    def __init__(self, url: str, fetched: Fetched) -> None:
        self.url = url
        self.availability = availability(fetched)
        self._fetched = fetched
        self._sha256 = hashlib.sha256(fetched.body).hexdigest() if fetched.body else ""
        present = self.availability is Availability.PRESENT
        self._parsed = robots.parse(fetched.body, url=url, oversized=fetched.oversized) if present else None
        self._rules: dict[str, robots.AgentRules] = {}
        self._decided: dict[int, Decision] = {}  # by the number of the deciding line; 0: none of a group, -1: no group

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self._parsed.findings if self._parsed else ()

    @property
    def sitemaps(self) -> tuple[str, ...]:
        found = []
        for sitemap in self._parsed.sitemaps if self._parsed else ():
            with suppress(ValueError):  # not a URL
                found.append(urljoin(self.url, sitemap))
        return tuple(found)

    def rules(self, agent: Agent) -> robots.AgentRules | None:
        if self._parsed is None:
            return None
        rules = self._rules.get(agent.token)
        if rules is None:
            rules = self._rules[agent.token] = self._parsed.for_agent(agent.token)
        return rules

    def access(self, agent: Agent, target: str, now: datetime | None) -> Decision:
        if target == "/robots.txt":
            return Decision(verdict=Verdict.ALLOW, reasons=(self._reason("robots.self"),))
        rules = self._rules.get(agent.token) or self.rules(agent)
        if rules is None:
            return self._without_file()
        line = rules.deciding_line(target) or (0 if rules.has_group else -1)
        decision = self._decided.get(line)
        if decision is None:
            if len(self._decided) >= MAX_DECIDED:
                self._decided.clear()
            decision = self._decided[line] = self._decide(rules, target)
        if rules.visit_time and decision.verdict is Verdict.ALLOW:
            opens = rules.visit_time.opens(now or datetime.now(UTC))
            if opens is not None:
                reason = self._reason("robots.visit-time", line=rules.visit_time.line, text=rules.visit_time.text)
                return Decision(verdict=Verdict.DEFER, reasons=(reason,), not_before=opens)
        return decision

    def _decide(self, rules: robots.AgentRules, target: str) -> Decision:
        line = rules.decide(target)
        if line:
            return Decision(verdict=line.verdict, reasons=(self._line_reason(line),))
        rule = "robots.no-match" if rules.has_group else "robots.no-group"
        return Decision(verdict=Verdict.ALLOW, reasons=(self._reason(rule),))

    def considered(self, agent: Agent, target: str) -> tuple[Reason, ...]:
        rules = self.rules(agent)
        return tuple(self._line_reason(line) for line in rules.matching(target)) if rules else ()

    def _without_file(self) -> Decision:
        fetched = self._fetched
        text = printable(fetched.error.encode(errors="replace"))
        if not text:
            text = "an HTML page" if fetched.status // 100 == 2 and is_html(fetched) else f"HTTP status {fetched.status}"
        if self.availability is Availability.ABSENT:
            return Decision(verdict=Verdict.ALLOW, reasons=(self._reason("robots.unavailable", part="status", text=text),))
        return Decision(verdict=Verdict.DENY, reasons=(self._reason("robots.unreachable", part="status", text=text),))

    def _line_reason(self, line: robots.RuleLine) -> Reason:
        rule = "robots.allow" if line.verdict is Verdict.ALLOW else "robots.disallow"
        return self._reason(rule, line=line.line, text=line.text)

    def _reason(self, rule: str, *, part: str = "body", line: int = 0, text: str = "") -> Reason:
        source = Source(url=self.url, part=part, line=line, text=text, sha256=self._sha256, fetched_at=self._fetched.fetched_at)
        return Reason(rule=rule, source=source)
