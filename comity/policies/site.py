"""The policies of one site: its policy files, and the questions about them.

site = Site.from_files("https://example.com", {"/robots.txt": b"..."})
site.access(agent, url)      may this request be made?
site.page(agent, url)        the permissions of the page that came back
site.requests(agent)         the actions that the site asks for"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self
from urllib.parse import urljoin

from comity.bounded import Bounded
from comity.policies.agent import Agent
from comity.policies.agent_view import (
    NO_CARRIER,
    AgentView,
    Carrier,
    Outcome,
    combine_carriers,
    of_images,
    refusal_of_request,
)
from comity.policies.answers.combining import strictest
from comity.policies.answers.decision import (
    OF_PAGE,
    ActionRequest,
    Condition,
    Decision,
    Finding,
    Reason,
    Source,
    Verdict,
    with_page_url,
)
from comity.policies.answers.fetched import Availability, Fetched
from comity.policies.answers.rates import Rates
from comity.policies.answers.request import PLAIN, Facts, Session, facts_of
from comity.policies.document.document import Content
from comity.policies.elements.rules import ElementRules
from comity.policies.formats import FIELDS, FORMATS, ROBOTS_LINES, WELL_KNOWN
from comity.policies.formats.distrusted import FormatError
from comity.policies.formats.file import ABSENT, SiteFiles
from comity.policies.formats.format import (
    NO_STATEMENTS,
    Capture,
    ElementRuleSet,
    FileReference,
    Format,
    Resource,
    Response,
    SiteReading,
    Statements,
    Unanswered,
    UseSource,
)
from comity.policies.page import OptOutSource, Page, RefusingSource, UnreachableSource, jointly
from comity.policies.registry import OptOut
from comity.policies.syntax.urls import origin_of, spellings
from comity.policies.syntax.windows import Limits
from comity.policies.vocabulary.statement import Location
from comity.policies.vocabulary.table import Vocabulary

# Agents whose rules are cached in compiled form.
MAX_AGENTS = 1000
# Part of a policy file, in the source of a reason.
BODY = "body"


class Site:
    """The policies of one origin (scheme, host, port).

        site = Site.from_files("https://example.com", {"/robots.txt": b"..."})
        decision = site.access(Agent("examplebot"), "https://example.com/page")
        decision.verdict is Verdict.ALLOW

    It is immutable. The first question compiles the rules. Compiled rules and decisions are cached.

    Attributes:
        origin: scheme, host and port, without a slash at the end.
        files: requested absolute URL -> the outcome of its fetch."""

    def __init__(
        self, origin: str, files: Mapping[str, Fetched], *, formats: Iterable[Format] | None = None
    ) -> None:
        """Take the files. `formats` are the formats to read them in. None: all formats."""
        self.origin = origin
        self.files = dict(files)
        self._formats = None if formats is None else tuple(formats)
        self._agent: Agent | None = None  # the last agent that asked, and its view
        self._view_of_agent: AgentView | None = None

    @cached_property
    def _readings(self) -> Readings:
        formats = FORMATS if self._formats is None else self._formats
        return Readings(self.origin, self.files, formats)

    @classmethod
    def from_files(cls, origin: str, files: Mapping[str, bytes | Fetched]) -> Self:
        """Return the site with these files.

        Well-known paths that are not given count as missing (404).

        Args:
            origin: an http or https URL. ValueError if it is not.
            files: path or absolute URL -> the body, or the outcome of the fetch."""
        origin = origin_of(origin)
        fetched = {
            urljoin(origin, path): file
            if isinstance(file, Fetched)
            else Fetched(status=200, body=file)
            for path, file in files.items()
        }
        return cls(origin, {origin + path: ABSENT for path in WELL_KNOWN} | fetched)

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
        """Return the decision about a request: may it be made?

        Args:
            agent: the agent that makes the request.
            url: absolute URL of the request.
            method: HTTP method.
            kind: "document", "api", "xhr", or several of them. None: the header fields decide.
                ValueError for other words.
            automations: mechanisms that make the request, e.g. "cdp" and "headless".
            purposes: purposes of the request. None: those of the agent.
            headers: header fields of the request.
            referer: absolute URL of the referring page. None: the Referer field decides.
            session: session to which the request belongs.
            now: an aware datetime. None: the clock."""
        view = self._view(agent)
        if not view.asks_facts:
            return view.access(spellings(url), PLAIN, now)
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
        return view.access(spellings(url), facts, now)

    def judge(self, agent: Agent, url: str, facts: Facts, now: datetime | None = None) -> Decision:
        """Return the decision about a request with these facts."""
        return self._view(agent).access(spellings(url), facts, now)

    def asks_facts(self, agent: Agent) -> bool:
        """Return True if a decision may depend on more than the URL of a request."""
        return self._view(agent).asks_facts

    def depends_on_time(self, agent: Agent) -> bool:
        """Return True if a decision may change with time, apart from the age of sessions."""
        return self._view(agent).depends_on_time

    def considered(self, agent: Agent, url: str, facts: Facts = PLAIN) -> tuple[Reason, ...]:
        """Return the reasons of all rules that match the URL, the deciding one first."""
        return self._view(agent).considered(spellings(url), facts)

    def page(
        self,
        agent: Agent,
        url: str,
        *,
        headers: Iterable[tuple[bytes, bytes]] = (),
        body: bytes | None = b"",
        sha256: str = "",
        is_read: bool = True,
        now: datetime | None = None,
        first_seen: Mapping[str, datetime] | None = None,
        resources: Mapping[str, Fetched] | None = None,
        access: Decision | None = None,
        facts: Facts = PLAIN,
    ) -> Page:
        """Return the permissions of the response to a request.

        Args:
            agent: the agent that asks.
            url: absolute URL of the page.
            headers: header fields of the response.
            body: None if nothing was fetched.
            sha256: SHA-256 of the body if `body` is None, in hexadecimal. "": it is unknown.
            is_read: False if the body is only the known part of the page. Then, and if `body` is
                None, `Page.elements` contains every element that a rule names, even if the page
                may not have it.
            now: an aware datetime. None: the clock.
            first_seen: use -> when the page was first used for it, see `Page.dated`.
            resources: absolute URL -> its fetch, see `Page.required_resources`.
            access: decision on the request for the page. None: it is made here.
            facts: facts about that request."""
        view, targets, fields = self._view(agent), spellings(url), tuple(headers)
        content, response = Content(fields, body or b""), Response(agent, url, now)

        # The response: its statements, and any rules that withdraw the permission to request it.
        of_response = (
            _of_headers(fields, response),
            _of_equivalents(content, response),
            _of_document(content, response),
        )
        access_rules = view.access_rules(of_response[-1])
        if access_rules or access is None:
            access = view.access(targets, facts, now, access_rules)
        opt_outs = _opt_outs(view, targets, body, sha256)
        if opt_outs.of_work:
            refusal = refusal_of_request(opt_outs.of_work, agent.vocabulary)
            access = access if refusal is None else strictest([refusal, access])
        access_refusals = _refusals_by_page(url, access) if access_rules else []

        # All statements about each target: in the files, the response, and documents they refer to.
        of_page: Sequence[Carrier] = ()
        licenses: tuple[str, ...] = ()
        if of_response == _SILENT and view.silent_outcome is not None:
            outcomes = (view.silent_outcome,) * len(targets)
            is_image = bool(view.silent_outcome[0]) and content.is_image
        else:
            requested = self._resources(view, targets, access, facts, is_fetched=body is not None)
            carriers, licenses = _all_carriers(view, requested, of_response, resources or {})
            of_page = carriers[0][1:]
            outcomes = tuple(combine_carriers(of_target, view.unanswered) for of_target in carriers)
            is_image = content.is_image
        sources = _shared_sources(view, outcomes, is_image=is_image)

        # The rules about elements of the page, and the hints for its author.
        elements, element_sources = _elements(
            view, targets[0], content, url, is_read=is_read and body is not None
        )
        of_carriers = [
            replace(finding, url=url) for carrier in of_page for finding in carrier.findings
        ]
        findings = (*self.findings, *of_carriers, *(elements.findings if elements else ()))

        # Most pages of a site have shared statements only. Others have sources of their own too.
        if view.is_same_for_pages and not (
            access_refusals
            or element_sources
            or licenses
            or agent.arrangements
            or content.is_unread
            or opt_outs is not _NO_OPT_OUTS
        ):
            return _shared_page(self, view, access, sources).of_url(url, body or b"", findings)
        capture = Capture(
            url, content, now or datetime.now(UTC), first_seen or {}, resources or {}, facts
        )
        page_sources = view.page_sources(targets, capture)
        refusals = access_refusals + _refusals_of_unread(url, content)
        further = [
            *map(jointly, page_sources),
            *element_sources,
            *opt_outs.sources(agent.vocabulary),
        ]
        return Page(
            agent,
            url,
            access=access,
            sources=sources.of_page(refusals, further),
            embedded=sources.of_embedded(refusals, further),
            page_sources=[source for of_format in page_sources for source in of_format],
            licenses=licenses,
            policies=self.policies,
            findings=findings,
            elements=elements,
            body=body or b"",
        )

    def statements_key(self, agent: Agent, url: str, now: datetime) -> Hashable | None:
        """Return a key of the files' statements about a page. None: only `page` can tell.

        `page` decides alike about two pages of this site with equal keys, apart from the
        statements in their responses."""
        view = self._view(agent)
        if not view.is_same_for_pages:
            return None
        targets = spellings(url)
        carriers = [view.statements(self._resource(target)) for target in targets]
        statements = frozenset([tuple(carrier.statements.items()) for carrier in carriers])
        return view.access(targets, PLAIN, now), statements, view.opt_outs(targets)

    def refused_by_headers(
        self,
        agent: Agent,
        url: str,
        headers: Iterable[tuple[bytes, bytes]],
        now: datetime | None = None,
    ) -> Decision | None:
        """Return the refusal of every declared use by the header fields of a response, or None.

        It does not depend on the body. Fields that the body can override do not count: TDMRep's
        `meta` elements override its fields."""
        fields = tuple(headers)
        by_fields = (
            _final(_of_headers(fields, Response(agent, url, now))) if agent.uses else Carrier()
        )
        if not any(parsed.statements or parsed.refused for parsed in by_fields.statements.values()):
            return None
        view = self._view(agent)
        of_targets = (_final(view.statements(self._resource(target))) for target in spellings(url))
        outcomes = tuple(combine_carriers([of_target, by_fields]) for of_target in of_targets)
        sources = _shared_sources(view, outcomes, is_image=Content(fields, b"").is_image)
        return view.refusal_of_all(sources.of_page(), url)

    def refused_by_response(
        self,
        agent: Agent,
        url: str,
        content: Content,
        facts: Facts,
        now: datetime | None = None,
        resources: Mapping[str, Fetched] | None = None,
    ) -> Decision | None:
        """Return the refusal of a request by the response to it, or None.

        A response refuses if it withdraws the permission for the request, if it may do so and
        cannot be read, or if its statements refuse every declared use. The statements of the site's
        files about uses do not count.

        `content` is the response, `facts` are those of the request. `resources` is absolute URL ->
        its fetch, for the documents to which the response refers."""
        view, response = self._view(agent), Response(agent, url, now)
        document = _of_document(content, response)
        if access_rules := view.access_rules(document):
            access = view.access(spellings(url), facts, now, access_rules)
            if access.verdict is Verdict.DENY:
                return access
        # Only a page that was searched for all statements that count can be found to be unread.
        of_equivalents = _of_equivalents(content, response) if agent.uses else NO_CARRIER
        if refused := (*view.unread_access_rules(document), *_reasons_of_unread(url, content)):
            return Decision(verdict=Verdict.DENY, reasons=with_page_url(refused, url))
        if not agent.uses:
            return None
        of_headers = _of_headers(content.headers, response)
        carriers = [NO_CARRIER, of_headers, of_equivalents, document]
        carriers.append(_of_documents(carriers, resources or {}, url))
        outcome = combine_carriers(carriers)
        sources = _shared_sources(view, (outcome,), is_image=content.is_image)
        return view.refusal_of_all(sources.of_page(), url)

    def unusable(self, agent: Agent, purposes: Iterable[str] | None = None) -> Decision | None:
        """Return the refusal of every declared use of all pages, or None.

        If there is one, no page is worth a request. `purposes` are those of the request. None:
        those of the agent."""
        return self._view(agent).unusable(purposes)

    def awaits_files(self, agent: Agent, purposes: Iterable[str] | None = None) -> bool:
        """Return True if every declared use is refused only until missing policy files answer.

        `purposes` are those of the request. None: those of the agent."""
        return self._view(agent).awaits_files(purposes)

    def licenses(self, agent: Agent) -> tuple[str, ...]:
        """Return the absolute URLs of the RSL documents for the agent in robots.txt.

        See RSL 1.0 section-4.4."""
        return self._view(agent).documents

    def _repr_html_(self) -> str:
        """Return the policy files of the site as a notebook shows them."""
        from comity import notebook

        return notebook.site(self)

    @property
    def policies(self) -> dict[str, dict[str, Any]]:
        """URL -> status, SHA-256 and fetch time of every policy file, in the form of a tag."""
        return self._readings.policies

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Hints for the authors of the policy files."""
        return self._readings.findings

    @property
    def referred_files(self) -> tuple[FileReference, ...]:
        """The files to which the site's files refer, for any agent."""
        return tuple(
            reference
            for reading in self._readings.by_format.values()
            for reference in reading.referred_files
        )

    @property
    def element_rules(self) -> tuple[ElementRuleSet, ...]:
        """The rules about elements of any page, for any agent."""
        return tuple(
            reading.element_rules
            for reading in self._readings.by_format.values()
            if reading.element_rules
        )

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps in robots.txt, as absolute URLs."""
        return tuple(
            url for reading in self._readings.by_format.values() for url in reading.sitemaps
        )

    def clean(self, url: str) -> str:
        """Return a URL of the site without the parameters that make no other page (CLEAN-1).

        URLs with equal results are one page. The other parameters keep their order and octets.
        Nothing is permitted by that: `access` decides about the URL that is requested."""
        cleaning = self._readings.cleaning
        end = len(url) if (fragment := url.find("#")) < 0 else fragment
        query = url.find("?", 0, end)
        if query < 0 or not cleaning:
            return url
        start = url.find("/", url.find("//") + 2, query)
        begin, target = (url[:query], "/") if start < 0 else (url[:start], url[start:query])
        target = cleaned = target + url[query:end]
        for reading in cleaning:
            cleaned = reading.clean(cleaned)
        return url if cleaned == target else begin + cleaned + url[end:]

    def references(self, agent: Agent) -> tuple[str, ...]:
        """Return the absolute URLs of further policy files for the agent.

        See ACAP 1.0 section-2.3.2."""
        return self._view(agent).references

    def requests(self, agent: Agent) -> tuple[ActionRequest, ...]:
        """Return the site's requests to the agent to do something (ACAP 1.0 section-2.6)."""
        return self._view(agent).requests()

    def conditions(self, agent: Agent) -> Iterator[Condition]:
        """Yield the conditions on requests, to show them to people. `access` decides."""
        return self._view(agent).conditions()

    def rates(self, agent: Agent) -> Rates | None:
        """Return the rates at which the site asks the agent to visit it; None: it has no rules."""
        return self._view(agent).rates

    def limits(self, agent: Agent, url: str) -> tuple[Limits, ...]:
        """Return the limits on requests to the URL, besides `rates`. All of them hold."""
        view = self._view(agent)
        return view.limits(spellings(url)) if view.has_limits else ()

    @property
    def crawler_names(self) -> frozenset[str]:
        """Names of crawlers in the policy files and in the files they refer to, in lower case.

        Most are product tokens. Names in ACAP may have several words, or `*` at the end for any
        continuation."""
        return self._readings.crawler_names

    def _view(self, agent: Agent) -> AgentView:
        view = self._view_of_agent
        if view is None or agent is not self._agent:
            view = self._readings.view(agent)
            self._agent, self._view_of_agent = agent, view
        return view

    def _resource(self, target: str) -> Resource:
        return Resource(self.origin + target, target)

    def _resources(
        self,
        view: AgentView,
        targets: Sequence[str],
        access: Decision,
        facts: Facts,
        *,
        is_fetched: bool,
    ) -> list[Resource]:
        """Return the resource of each target.

        If the request is refused, a resource says whether a Disallow line refuses it."""
        resources = [self._resource(target) for target in targets]
        if access.verdict is not Verdict.DENY:
            return resources
        return [
            resource._replace(
                is_disallowed=view.disallows(resource.target, facts), is_fetched=is_fetched
            )
            for resource in resources
        ]


class Readings:
    """The readings of a site's files in all formats, and all that is cached about them."""

    def __init__(
        self, origin: str, files: Mapping[str, Fetched], formats: Iterable[Format]
    ) -> None:
        self._files = SiteFiles(origin, files, robots_lines=ROBOTS_LINES)
        readings = (
            (format_.name, format_.read_site(self._files))
            for format_ in formats
            if format_.read_site
        )
        self.by_format = {name: reading for name, reading in readings if reading is not None}
        # The readings that know parts of URLs that make no other page.
        self.cleaning = tuple(
            reading
            for reading in self.by_format.values()
            if type(reading).clean is not SiteReading.clean
        )
        self._unanswered = _find_unanswered_files(self._files, formats)
        self.views: Bounded[Agent, AgentView] = Bounded(MAX_AGENTS)

    def view(self, agent: Agent) -> AgentView:
        """Return the files as an agent reads them."""
        view = self.views.get(agent)
        if view is None:
            view = AgentView(agent, self.by_format, self._files, self._unanswered)
            self.views[agent] = view
        return view

    @cached_property
    def policies(self) -> dict[str, dict[str, Any]]:
        return {
            url: {
                "status": file.status,
                "sha256": hashlib.sha256(file.body).hexdigest() if file.body else None,
                "fetched_at": file.fetched_at.isoformat() if file.fetched_at else None,
            }
            for url, file in self._files.fetched.items()
        }

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for reading in self.by_format.values() for finding in reading.findings)

    @cached_property
    def crawler_names(self) -> frozenset[str]:
        return frozenset[str]().union(
            *(reading.crawler_names for reading in self.by_format.values())
        )


def _find_unanswered_files(
    files: SiteFiles, formats: Iterable[Format]
) -> dict[str, tuple[Unanswered, ...]]:
    """Return name of a format -> its unreachable files that may refuse uses."""
    unanswered: dict[str, tuple[Unanswered, ...]] = {}
    for format_ in formats:
        for well_known in format_.files:
            if not well_known.refuses:
                continue
            file = files.response(files.origin + well_known.path)
            if file is None or not file.fetched.was_asked:
                continue
            if file.availability is Availability.UNREACHABLE:
                reason = file.outcome_reason(well_known.unreachable_rule)
                missing = Unanswered(well_known.refuses, reason)
                unanswered[format_.name] = (*unanswered.get(format_.name, ()), missing)
    return unanswered


def _of_headers(fields: Sequence[tuple[bytes, bytes]], response: Response) -> Carrier:
    """Return the statements of a response's header fields about its content."""
    values: dict[str, dict[bytes, list[bytes]]] = {}
    for name, value in fields:
        lower = name.lower()
        if lower in FIELDS:
            values.setdefault(FIELDS[lower], {}).setdefault(lower, []).append(value)
    if not values:
        return NO_CARRIER
    return Carrier(
        {name: reader(values[name], response) for name, reader in _READ_HEADERS if name in values}
    )


# HTML has its own element for the Link field: `link`.
_EQUIVALENTS = {name.decode("latin-1"): name for name in FIELDS if name != b"link"}
_EQUIVALENT = re.compile(
    rb"http-equiv\s*+=[\"'\s]*+(?:%s)" % b"|".join(map(re.escape, _EQUIVALENTS.values()))
)


def _of_equivalents(content: Content, response: Response) -> Carrier:
    """Return the refusals and limits in a page's `http-equiv` elements.

    They are read as header fields with the same names, but permit nothing (META-5). The page is
    parsed only if its octets show such an element."""
    if not content.mentions(b"http-equiv") or not (
        content.has_written_letters or _EQUIVALENT.search(content.octets)
    ):
        return NO_CARRIER
    elements: dict[str, list[tuple[str, int]]] = {}  # name -> content and line of each
    for name, value, line in content.metas_by_line("http-equiv"):
        if name in _EQUIVALENTS:
            elements.setdefault(name, []).append((value, line))
    if not elements:
        return NO_CARRIER
    fields = [
        (_EQUIVALENTS[name], value.encode("utf-8", "replace"))
        for name, of_name in elements.items()
        for value, _ in of_name
    ]
    of_fields = _of_headers(fields, response)
    by_vocabulary, refused, _ = combine_carriers([of_fields])
    restricting = (
        statement._replace(location=_location_in(elements, statement.location))
        for _, statements in by_vocabulary
        for statement in statements
        if statement.verdict is not Verdict.ALLOW
    )
    return Carrier(
        {"http-equiv": Statements(tuple(restricting), of_fields.findings, refused=refused)}
    )


def _location_in(elements: Mapping[str, Sequence[tuple[str, int]]], location: Location) -> Location:
    """Return the location of the element with a field's text, else of the first with its name."""
    name = location.part.removeprefix("header ")
    of_name = elements.get(name.lower(), [("", 0)])
    line = next((line for value, line in of_name if location.text in value), of_name[0][1])
    return location._replace(part=f"meta {name}", line=line)


def _of_document(content: Content, response: Response) -> Carrier:
    """Return the statements of a page, or of another document, about itself."""
    by_format = {}
    for name, reader in _READ_DOCUMENT:
        statements = reader(content, response)
        if statements != NO_STATEMENTS:
            by_format[name] = statements
    return Carrier(by_format) if by_format else NO_CARRIER


def _of_documents(
    carriers: Sequence[Carrier], resources: Mapping[str, Fetched], url: str
) -> Carrier:
    """Return the statements about a page in the documents to which the carriers refer.

    Each document is read in the format that refers to it. `resources` is absolute URL -> its
    fetch."""
    statements = {}
    for name, hook in _READ_DOCUMENTS:
        referring = (carrier.statements.get(name, NO_STATEMENTS) for carrier in carriers)
        if urls := tuple(
            dict.fromkeys(document for reference in referring for document in reference.documents)
        ):
            statements[name] = hook(urls, resources, url)
    return Carrier(statements)


def _all_carriers(
    view: AgentView,
    requested: Sequence[Resource],
    of_response: Sequence[Carrier],
    resources: Mapping[str, Fetched],
) -> tuple[list[list[Carrier]], tuple[str, ...]]:
    """Return the carriers for each resource, and the URLs of all documents they refer to."""
    carriers = [[view.statements(resource), *of_response] for resource in requested]
    urls = tuple(
        dict.fromkeys(
            url
            for of_resource in carriers
            for carrier in of_resource
            if carrier.statements
            for url in carrier.documents
        )
    )
    if urls:
        for resource, of_resource in zip(requested, carriers, strict=True):
            of_resource.append(_of_documents(of_resource, resources, resource.url))
    return carriers, urls


_READ_HEADERS = tuple(
    (format_.name, format_.read_headers) for format_ in FORMATS if format_.read_headers
)
_READ_DOCUMENT = tuple(
    (format_.name, format_.read_document) for format_ in FORMATS if format_.read_document
)
_READ_DOCUMENTS = tuple(
    (format_.name, format_.read_documents) for format_ in FORMATS if format_.read_documents
)
_SILENT = (NO_CARRIER,) * 3  # a response whose header fields and document state nothing
_FINAL = frozenset(format_.name for format_ in FORMATS if not format_.document_overrides)


def _final(carrier: Carrier) -> Carrier:
    """Return the statements that no document can override."""
    return Carrier(
        {name: statements for name, statements in carrier.statements.items() if name in _FINAL}
    )


def _refusals_by_page(url: str, access: Decision) -> list[UseSource]:
    """Return the refusal of every use if the page itself is a reason of the decision on access."""
    reasons = tuple(
        reason
        for reason in access.reasons
        if reason.source.url == url and reason.source.part != BODY
    )
    return [RefusingSource(reasons)] if reasons else []


def _refusals_of_unread(url: str, content: Content) -> list[UseSource]:
    """Return the refusal of every use if the page has statements that were not read."""
    reasons = _reasons_of_unread(url, content)
    return [RefusingSource(reasons)] if reasons else []


def _reasons_of_unread(url: str, content: Content) -> tuple[Reason, ...]:
    if not content.is_unread:
        return ()
    source = Source(url=url, part=BODY, text="the page is too long or too deeply nested")
    return (Reason(rule="comity.unread", source=source),)


def _elements(
    view: AgentView, target: str, content: Content, url: str, *, is_read: bool
) -> tuple[ElementRules | None, list[UseSource]]:
    """Return the rules about elements of a page, and their sources of decisions about uses.

    If the rules of a format cannot be read, every use is refused."""
    try:
        elements = view.element_rules(target, content, url, is_read=is_read)
    except FormatError as error:
        return None, [RefusingSource((error.reason,))]
    return elements, [elements.source] if elements else []


class _OptOuts(NamedTuple):
    """The entries of registries about a page."""

    of_url: tuple[OptOut, ...] = ()
    of_work: tuple[OptOut, ...] = ()

    def sources(self, vocabulary: Vocabulary) -> Iterator[UseSource]:
        if self.of_url:
            yield OptOutSource(self.of_url, vocabulary)
        if self.of_work:
            yield OptOutSource(self.of_work, vocabulary, is_of_work=True)


_NO_OPT_OUTS = _OptOuts()


def _opt_outs(view: AgentView, targets: Sequence[str], body: bytes | None, sha256: str) -> _OptOuts:
    """Return the entries about a page. `sha256`: hash of the body if `body` is None."""
    registries = view.agent.opt_outs
    if not registries.registries:
        return _NO_OPT_OUTS
    if body and registries.has_works:
        sha256 = hashlib.sha256(body).hexdigest()
    entries = _OptOuts(view.opt_outs(targets), registries.of_work(sha256))
    return entries if any(entries) else _NO_OPT_OUTS


class _Sources:
    """The sources of decisions about a page, from all carriers together."""

    def __init__(self, view: AgentView, outcomes: Sequence[Outcome], *, is_image: bool) -> None:
        """`outcomes` has one outcome for each target of the page."""
        refused = dict.fromkeys(reasons for _, reasons, _ in outcomes)
        self._refusals = [RefusingSource(reasons) for reasons in refused if reasons]
        unanswered = dict.fromkeys(file for _, _, files in outcomes for file in files)
        self._unreachable = [UnreachableSource(file, view.agent.vocabulary) for file in unanswered]
        statements = [dict(by_vocabulary) for by_vocabulary, _, _ in outcomes]
        of_embedded = list(map(of_images, statements))
        self._statements = view.sources(of_embedded if is_image else statements)
        # None: as for the page.
        self._embedded = None if of_embedded == statements else view.sources(of_embedded)

    def of_page(
        self, first: Sequence[UseSource] = (), last: Sequence[UseSource] = ()
    ) -> list[UseSource]:
        """Return the sources for the page, between `first` and `last`."""
        return [*first, *self._refusals, *self._statements, *last, *self._unreachable]

    def of_embedded(
        self, first: Sequence[UseSource] = (), last: Sequence[UseSource] = ()
    ) -> list[UseSource] | None:
        """Return the sources for files embedded in the page. None: the sources for the page."""
        if self._embedded is None:
            return None
        return [*first, *self._refusals, *last, *self._embedded, *self._unreachable]


@lru_cache(maxsize=1024)
def _shared_sources(view: AgentView, outcomes: tuple[Outcome, ...], *, is_image: bool) -> _Sources:
    """Return the sources shared by all pages with the same statements.

    Most pages of a site send the same header fields and elements."""
    return _Sources(view, outcomes, is_image=is_image)


@lru_cache(maxsize=1024)
def _shared_page(site: Site, view: AgentView, access: Decision, sources: _Sources) -> Page:
    """Return the cached Page shared by all URLs with the same statements."""
    return Page(
        view.agent,
        OF_PAGE,
        access=access,
        sources=sources.of_page(),
        embedded=sources.of_embedded(),
        policies=site.policies,
    )
