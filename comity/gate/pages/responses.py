"""Make the Page of each response, which says how the response may be used.

The policies by which the request was admitted apply to its response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar
from urllib.parse import urldefrag
from weakref import ref

from comity.bounded import ByObject
from comity.gate.fetching.fetcher import PolicyFetcher
from comity.gate.fetching.reach import Reach
from comity.gate.http import HeaderFields, Headers, Request, Response, fields_of, normal_name
from comity.gate.pages.resources import Resources
from comity.gate.request.passage import Outgoing, Passage, Passages
from comity.gate.request.referrals import Referrals
from comity.gate.run.surroundings import Stats
from comity.policies import Agent, Decision, Page, Site
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.request import PLAIN
from comity.policies.document.document import Content
from comity.policies.document.nofollow import rel_nofollow
from comity.policies.formats import FIELDS
from comity.policies.page import Browsed
from comity.policies.syntax.urls import origin_or_empty

R = TypeVar("R", bound=Response)

Fields = Iterable[tuple[bytes, bytes]]  # name and value of header fields

# Header fields in which formats state policies.
_STATING = frozenset(map(normal_name, FIELDS))


class _Reception(NamedTuple):
    """The fields of a Passage that describe one response, as they were when its page was made."""

    whole_body: bytes | None
    browsed: Browsed | None
    stating_fields: Headers | None


class ResponsePages:
    """The pages of one crawl, one for each response."""

    def __init__(
        self,
        passages: Passages,
        stats: Stats,
        agent: Agent,
        policies: PolicyFetcher,
        referrals: Referrals,
        resources: Resources,
        *,
        redacts: bool,
        obeys_rel_nofollow: bool,
    ) -> None:
        """`redacts`: COMITY_ELEMENTS is "redact".
        `obeys_rel_nofollow`: COMITY_REL_NOFOLLOW is on."""
        self._passages = passages
        self._stats = stats
        self._agent = agent
        self._policies = policies
        self._referrals = referrals
        self._resources = resources
        self._redacts = redacts
        self._obeys_rel_nofollow = obeys_rel_nofollow
        self._pages: ByObject[Response, Page | None] = ByObject()
        self._receptions: ByObject[Response, _Reception] = ByObject()

    def received(self, request: Request, headers: HeaderFields) -> None:
        """Note the header fields of an answer that state policies, when the answer arrives.

        A later middleware may replace the response by one without these fields."""
        self._passages[ref(request)].stating_fields = (
            None
            if _STATING.isdisjoint(headers.keys())
            else Headers({name: headers.getlist(name) for name in _STATING})
        )

    async def page(self, response: Response) -> Page | None:
        """Return the page of the response; None if its URL cannot have policies.

        ClosingError: the crawl is ending."""
        if ref(response) not in self._pages:
            page = self._make_page(response, await self._other_site(response))
            self._pages.put(response, page)
        return self._pages[ref(response)]

    def page_now(self, response: Response) -> Page | None:
        """Return the page of the response without waiting; None if its URL cannot have policies.

        LookupError: the policies would have to be fetched first."""
        if ref(response) not in self._pages:
            page = self._make_page(response, self._other_site_in_memory(response))
            self._pages.put(response, page)
        return self._pages[ref(response)]

    async def stripped(self, request: Request, response: R) -> R:
        """Return the response without the elements that are refused for one of the declared uses.

        ClosingError: the crawl is ending."""
        self._passages[ref(request)].whole_body = None  # the body of an earlier response
        page = await self.page(response)
        if page is None or page.element_rules is None:
            return response
        body = page.element_rules.redacted(page.refusable(self._agent.uses))
        if body == response.body:
            return response
        self._passages[ref(request)].whole_body = response.body
        self._stats.inc_value("comity/responses/stripped")
        stripped: R = response.replace(body=body)
        return stripped

    def rel_nofollow(self, response: Response) -> frozenset[str]:
        """Return the canonical URLs to which all links on the page have rel=nofollow.

        The set is empty if COMITY_REL_NOFOLLOW is off."""
        if not self._obeys_rel_nofollow:
            return frozenset()
        return rel_nofollow(Content(fields_of(response.headers), response.body), response.url)

    async def completed(self, response: Response, page: Page) -> Page:
        """Return the page with the moments and resources that its permissions depend on.

        Call this method when the page is used: it records the moment of the first use if
        permissions are limited in time, and fetches the resources that permissions require.
        ClosingError: the crawl is ending."""
        dated, resource_urls = page.dated, page.required_resources
        if not dated and not resource_urls:
            return page
        site = await self._other_site(response)
        first_seen = await self._policies.first_taken(page.url, dated, datetime.now(UTC))
        outgoing = self._outgoing(response)
        origin = site.origin if site else outgoing.site.origin if outgoing else ""
        reach = Reach.PUBLIC
        if resource_urls:
            policies = await self._policies.get(
                origin, self._referrals.response_referrer_reach(response)
            )
            reach = policies.reach
        resources = await self._resources.get(resource_urls, page.url, reach)
        return self._make_page(response, site, first_seen=first_seen, resources=resources) or page

    def _outgoing(self, response: Response) -> Outgoing | None:
        """Return the admitted request of the response; None if it was not admitted."""
        return self._passages[ref(response.request)].outgoing if response.request else None

    def _is_requested(self, response: Response) -> bool:
        """Return True if the response is the page of the admitted request.

        It is another page if its URL differs by more than a fragment."""
        outgoing = self._outgoing(response)
        return outgoing is not None and (
            outgoing.url == response.url or urldefrag(outgoing.url)[0] == urldefrag(response.url)[0]
        )

    async def _other_site(self, response: Response) -> Site | None:
        """Return the policies of the response's own URL if it is not the requested page.

        None if it is, or if its URL cannot have policies."""
        if self._is_requested(response):
            return None
        policies = await self._policies.for_url(
            response.url, self._referrals.response_referrer_reach(response)
        )
        return None if policies is None else policies.site

    def _other_site_in_memory(self, response: Response) -> Site | None:
        """Do as `_other_site`, without waiting for the policies.

        LookupError: they would have to be fetched first."""
        if self._is_requested(response):
            return None
        has_been_asked = self._outgoing(response) is not None
        origin = origin_or_empty(response.url)
        if not origin:
            if has_been_asked:
                return None
            raise LookupError(f"{response} has no policies")
        policies = self._policies.cached(origin, self._referrals.response_referrer_reach(response))
        if not has_been_asked or not policies:
            raise LookupError(
                f"the policies for {response} are not known yet: they have to be fetched first"
            )
        return policies.site

    def _make_page(
        self,
        response: Response,
        site: Site | None,
        *,
        first_seen: Mapping[str, datetime] | None = None,
        resources: Mapping[str, Fetched] | None = None,
    ) -> Page | None:
        """Return the page of the response; None if no policies apply to it.

        `site`: the policies of the response's own URL, if a browser or a redirect ended at another
        URL than the requested one. Then the policies of both URLs apply."""
        passage = self._passages[ref(response.request)] if response.request else Passage()
        outgoing = passage.outgoing
        # The same request may be made again before the page of this response is completed.
        if ref(response) not in self._receptions:
            reception = _Reception(passage.whole_body, passage.browsed, passage.stating_fields)
            self._receptions.put(response, reception)
        whole, browsed, stating_fields = self._receptions[ref(response)]

        def page_by(site: Site, url: str, decision: Decision | None, fields: Fields = ()) -> Page:
            return site.page(
                self._agent,
                url,
                headers=fields or fields_of(response.headers),
                body=response.body if whole is None else whole,
                first_seen=first_seen,
                resources=resources,
                access=decision,
                facts=outgoing.facts if outgoing else PLAIN,
            )

        first = page_by(outgoing.site, outgoing.url, outgoing.decision) if outgoing else None
        if outgoing and first is not None:
            documents: list[Fields] = [] if browsed is None else list(browsed.document_fields)
            if stating_fields is not None:
                documents.append(fields_of(stating_fields))
            for fields in _differing(documents, response) if documents else ():
                first = first.asked_as(
                    page_by(outgoing.site, outgoing.url, outgoing.decision, fields)
                )
        if site is None:
            page = first
        else:
            page = page_by(site, response.url, None)
            page = page.asked_as(first) if first is not None else page
        if page is not None:
            page.browsed = browsed
        if page is not None and page.element_rules is not None:
            uses = page.refusable(self._agent.uses)
            page.is_cut = whole is not None or (
                self._redacts and bool(page.element_rules.refused(uses))
            )
            if whole is not None:
                page.element_rules = page.element_rules.without(uses)
        return page


def _differing(
    documents: Sequence[Fields], response: Response
) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield the header fields of documents that state other policies than those of the response.

    In a browser, the header fields of the response are those of the first document. A click or a
    script may lead on to other documents, and Scrapy does not get their header fields."""
    fields = [(name.lower(), value) for name, value in fields_of(response.headers)]
    first = {field for field in fields if field[0] in FIELDS}
    others = [field for field in fields if field[0] not in FIELDS]
    for of_document in documents:
        if not first.issuperset(
            statements := [
                (name.lower(), value) for name, value in of_document if name.lower() in FIELDS
            ]
        ):
            yield [*others, *statements]
