"""What one site says: its policy files, and the questions that can be put to them.

site = Site.from_files("https://example.com", {"/robots.txt": b"..."})
site.access(agent, url)      may this request be made?
site.page(agent, url)        what may be done with what came back?
site.requests(agent)         what does the site ask to be done?"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self
from urllib.parse import urljoin

from comity.policies.agent import Agent
from comity.policies.agent_view import Binding
from comity.policies.answers.decision import ActionRequest, Decision, Finding, Reason, Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.rates import Rates
from comity.policies.answers.request import PLAIN, Facts, Session, facts_of
from comity.policies.carriers import ByVocabulary, Carried, SiteCarriers, by_vocabulary, licensed, of_fields, of_images, of_markup
from comity.policies.document.document import Content
from comity.policies.formats.acap import PageUses, Taken
from comity.policies.formats.automation import annotation
from comity.policies.formats.automation.access import JSON_LD, Annotated
from comity.policies.formats.automation.directives import Limits
from comity.policies.formats.file import AI_PATH, AUTOMATION_PATH, AiFile, AutomationFile, RobotsFile
from comity.policies.formats.tdmrep import reservation as tdmrep
from comity.policies.page import AcapUses, Page, Refusal, UseSource, jointly
from comity.policies.syntax.urls import origin_of, spellings

# What is fetched of every origin; a format adds its path here.
WELL_KNOWN = ("/robots.txt", AUTOMATION_PATH, AI_PATH, tdmrep.WELL_KNOWN)
MAX_AGENTS = 1000  # whose rules are kept compiled


class Site:
    """The policies of one origin (scheme, host, port). Immutable; what it compiles, it keeps."""

    def __init__(self, origin: str, files: Mapping[str, Fetched]) -> None:
        self.origin = origin
        self.files = dict(files)  # absolute URL that was asked for -> what came back
        self._robots = RobotsFile(f"{origin}/robots.txt", self.files[f"{origin}/robots.txt"])
        absent = Fetched(status=404)
        self._automation = AutomationFile(origin + AUTOMATION_PATH, self.files.get(origin + AUTOMATION_PATH, absent))
        self._ai = AiFile(origin + AI_PATH, self.files.get(origin + AI_PATH, absent))
        self._bindings: dict[Agent, Binding] = {}
        self._agent: Agent | None = None  # who asked last
        self._bound: Binding  # what binds it

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
        kind: str | Iterable[str] | None = None,
        automations: Iterable[str] = (),
        purposes: Iterable[str] | None = None,
        headers: Mapping[str, str] | None = None,
        referer: str | None = None,
        session: Session | None = None,
        now: datetime | None = None,
    ) -> Decision:
        """May this request be made?

        `kind`: "document", "api", "xhr", or several of them, ValueError for others; None: as the header fields say.
        `automations`: mechanisms by which it is made, e.g. "cdp", "headless". `purposes`: None for those of the agent. `now`:
        aware, None for the clock."""
        if not self.asks_facts(agent):
            return self.judge(agent, url, PLAIN, now)
        facts = facts_of(
            method=method,
            kind=kind,
            automations=automations,
            purposes=purposes,
            fields={name.lower(): value for name, value in (headers or {}).items()},
            key_header=agent.key_header,
            referer=referer,
            session=session,
        )
        return self.judge(agent, url, facts, now)

    def judge(self, agent: Agent, url: str, facts: Facts, now: datetime | None = None) -> Decision:
        """May a request of this kind be made?"""
        return self._binding(agent).access(spellings(url), facts, now)

    def asks_facts(self, agent: Agent) -> bool:
        """Whether anything but its URL matters of a request."""
        return self._binding(agent).asks_facts

    def considered(self, agent: Agent, url: str, facts: Facts = PLAIN) -> tuple[Reason, ...]:
        """Every rule that matches the URL, the deciding one first and the losing ones after it."""
        return self._binding(agent).considered(spellings(url), facts)

    def page(
        self,
        agent: Agent,
        url: str,
        *,
        status: int = 200,
        headers: Iterable[tuple[bytes, bytes]] = (),
        body: bytes | None = b"",
        is_read: bool = True,
        now: datetime | None = None,
        first_seen: Mapping[str, datetime] | None = None,
        resources: Mapping[str, Fetched] | None = None,
        access: Decision | None = None,
        facts: Facts = PLAIN,
    ) -> Page:
        """What may be done with the content that came back for this URL.

        `body`: None where nothing was fetched. `is_read`: False where the body is only what is known of that of the page. In both
        cases `elements` are all that rules name, whether the page has them or not.
        `first_seen`: use -> when the page was first taken for it, see `Page.dated`. `resources`: absolute URL -> what came back
        for it, see `Page.wanted`. `access`: the decision that the page was asked for by. `facts`: of the request for it."""
        fields, targets = tuple(headers), spellings(url)
        binding, content = self._binding(agent), Content(fields, body or b"")
        found, findings = annotation.annotations_in(content, agent.token)
        first: list[UseSource] = []
        if found:
            access = binding.annotated(targets, facts, now, Annotated(url, found))
            annotated = tuple(reason for reason in access.reasons if reason.source.part == JSON_LD)
            first += [Refusal(annotated)] if annotated else []
        elif access is None:
            access = binding.access(targets, facts, now)
        of_response = of_fields(fields, agent, url, now).and_then(of_markup(content, agent.token, url, now))
        of_files = self._of_site(binding, targets)
        if access.verdict is Verdict.DENY and binding.carriers:
            of_files = [
                binding.carriers.of(
                    self.origin + target, target, is_disallowed=binding.disallows(target, facts), is_fetched=body is not None
                )
                for target in targets
            ]
        carried = [of_site.and_then(of_response) for of_site in of_files]
        licenses = carried[0].licenses
        if licenses:
            of_licenses = (licensed(licenses, resources or {}, self.origin + target) for target in targets)
            carried = [one.and_then(of_license) for one, of_license in zip(carried, of_licenses, strict=True)]
        said = [by_vocabulary(one) for one in carried]
        preferences = binding.sources([_about(one, content) for one in said], url)
        last: list[UseSource] = []
        acap: list[PageUses] = []
        if binding.speaks_acap:
            now = now or datetime.now(UTC)
            taken = Taken(url, content, now=now, first_seen=first_seen or {}, resources=resources or {})
            acap = binding.page_uses(targets, taken, facts.purposes)
            last.append(jointly([AcapUses(uses, agent.vocabulary) for uses in acap]))
        elements = binding.element_rules(targets[0], content, url, is_read=is_read and body is not None)
        if elements:
            last.append(elements.source)
        images = [of_images(one) for one in said]
        return Page(
            agent,
            url,
            access=access,
            sources=[*first, *preferences, *last],
            embedded=[*first, *last, *binding.sources(images, url)] if images != said else None,
            acap=acap,
            licenses=licenses,
            policies=self.policies,
            findings=(
                *self.findings,
                *(replace(finding, url=url) for finding in (*findings, *carried[0].findings)),
                *(elements.findings if elements else ()),
            ),
            elements=elements,
            body=body or b"",
        )

    def said_of(self, agent: Agent, url: str, now: datetime) -> Hashable | None:
        """What the files say of a page: where it is equal for two of this site, `page` says the same of both, apart from what
        came back for them. None: only `page` tells."""
        binding = self._binding(agent)
        if binding.speaks_acap or binding.speaks_of_elements:
            return None
        targets = spellings(url)
        return binding.access(targets, PLAIN, now), frozenset(self._of_site(binding, targets))

    def refused_by_headers(
        self, agent: Agent, url: str, headers: Iterable[tuple[bytes, bytes]], now: datetime | None = None
    ) -> Decision | None:
        """The refusal of every declared use, where the header fields of a response say so, whatever its body will say.

        What the body can take back does not count: TDMRep's `meta` comes after its fields."""
        fields = tuple(headers)
        stated = of_fields(fields, agent, url, now) if agent.uses else Carried()
        if not stated.statements:
            return None
        binding = self._binding(agent)
        content = Content(fields, b"")
        carried = (of_site.and_then(stated)._replace(reservation=None) for of_site in self._of_site(binding, spellings(url)))
        return binding.refusal_of_all(binding.sources([_about(by_vocabulary(one), content) for one in carried], url), url)

    def unusable(self, agent: Agent, purposes: Iterable[str] | None = None) -> Decision | None:
        """The refusal, where the site refuses every declared use of all its pages: none is worth a request.

        `purposes`: of the request; None for those of the agent."""
        return self._binding(agent).unusable(purposes)

    def licenses(self, agent: Agent) -> tuple[str, ...]:
        """Absolute URLs of the RSL documents that robots.txt refers to for the agent (RSL 1.0 section-4.4)."""
        carriers = self._binding(agent).carriers
        return carriers.licenses if carriers else ()

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

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the authors of the policy files should know."""
        found = [*self._robots.findings, *self._automation.findings, *self._ai.findings]
        found += (finding for file in self._referred for finding in file.findings)
        return (*found, *SiteCarriers("*", self._robots, self._ai, self.files, self.origin).findings)

    @cached_property
    def _referred(self) -> tuple[RobotsFile, ...]:
        """The files that robots.txt refers to, each as what it says to any crawler."""
        if not (acap := self._robots.acap):
            return ()
        urls = dict.fromkeys(self._robots.referred(reference) for record in acap.records for reference in record.references)
        return tuple(
            RobotsFile(url, self.files[url], definitions=acap.definitions, crawlers=("*",))
            for url in urls
            if url in self.files and url != self._robots.url
        )

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that robots.txt names, as absolute URLs."""
        found = []
        for sitemap in self._robots.robots.sitemaps if self._robots.robots else ():
            with suppress(ValueError):  # not a URL
                found.append(urljoin(self._robots.url, sitemap))
        return tuple(found)

    def references(self, agent: Agent) -> tuple[str, ...]:
        """Absolute URLs of further files that state what holds for the agent (ACAP 1.0 section-2.3.2)."""
        return self._binding(agent).references

    def requests(self, agent: Agent) -> tuple[ActionRequest, ...]:
        """What the site asks the agent to do (ACAP 1.0 section-2.6)."""
        return self._binding(agent).requests(self.origin)

    def rates(self, agent: Agent) -> Rates | None:
        """How often the site asks the agent to visit it; None where it has no rules."""
        return self._binding(agent).rates

    def limits(self, agent: Agent, url: str) -> tuple[Limits, ...]:
        """How often, and how many at a time, requests like this may be made, besides `rates`: all of these hold."""
        return self._binding(agent).limits(spellings(url))

    @cached_property
    def crawler_names(self) -> frozenset[str]:
        """Whom the policy files name, those that robots.txt refers to included, in lower case: product tokens, and names in ACAP,
        which may be several words or go on in any way (`*` at the end)."""
        referred = (file.crawler_names for file in self._referred)
        return self._robots.crawler_names.union(self._automation.crawler_names, self._ai.crawler_names, *referred)

    def _binding(self, agent: Agent) -> Binding:
        if agent is not self._agent:
            if agent not in self._bindings:
                if len(self._bindings) >= MAX_AGENTS:
                    self._bindings.clear()
                self._bindings[agent] = Binding(agent, self._robots, self._automation, self._ai, self.files, self.origin)
            self._agent, self._bound = agent, self._bindings[agent]
        return self._bound

    def _of_site(self, binding: Binding, targets: Iterable[str]) -> list[Carried]:
        """What the site's files say of the uses of each of the targets."""
        carriers = binding.carriers
        return [carriers.of(self.origin + target, target) if carriers else Carried() for target in targets]


def _about(said: ByVocabulary, content: Content) -> ByVocabulary:
    """What is said of this content."""
    return of_images(said) if content.media_type.startswith("image/") else said
