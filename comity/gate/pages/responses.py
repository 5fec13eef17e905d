"""The pages of responses, by the policies that their requests went out by: what may be done with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import urldefrag
from weakref import WeakKeyDictionary

from comity.gate.fetching.fetcher import PolicyFetcher
from comity.gate.fetching.reach import Reach
from comity.gate.http import HeaderFields, Headers, Request, Response, fields_of, normal_name
from comity.gate.pages.resources import Resources
from comity.gate.request.access import Access, Outgoing
from comity.gate.request.referrals import Referrals
from comity.gate.run.surroundings import Stats
from comity.policies import Decision, Page, Site
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.request import PLAIN
from comity.policies.document.document import Content
from comity.policies.document.nofollow import rel_nofollow
from comity.policies.formats import FIELDS
from comity.policies.page import Browsed
from comity.policies.syntax.urls import origin_or_empty

R = TypeVar("R", bound=Response)

Fields = Iterable[tuple[bytes, bytes]]  # name and value of header fields

_STATING = frozenset(map(normal_name, FIELDS))


class ResponsePages:
    """The pages of one crawl, one for each response."""

    def __init__(
        self,
        stats: Stats,
        access: Access,
        policies: PolicyFetcher,
        referrals: Referrals,
        resources: Resources,
        *,
        redacts: bool,
        obeys_rel_nofollow: bool,
    ) -> None:
        """`redacts`: COMITY_ELEMENTS is "redact". `obeys_rel_nofollow`: COMITY_REL_NOFOLLOW."""
        self._stats = stats
        self._agent = access.agent
        self._access = access
        self._policies = policies
        self._referrals = referrals
        self._resources = resources
        self._redacts = redacts
        self._obeys_rel_nofollow = obeys_rel_nofollow
        self._pages: WeakKeyDictionary[Response, Page | None] = WeakKeyDictionary()
        self.browsed: WeakKeyDictionary[Request, Browsed] = (
            WeakKeyDictionary()
        )  # how a browser got the response
        self._received: WeakKeyDictionary[Request, Headers] = (
            WeakKeyDictionary()
        )  # of those of the server what states something
        self._whole: WeakKeyDictionary[Request, bytes] = (
            WeakKeyDictionary()
        )  # of responses that were stripped

    def received(self, request: Request, headers: HeaderFields) -> None:
        """Note what the header fields of an answer state as it comes: a middleware may make a response of it without them."""
        self._received.pop(request, None)  # of an answer after which it was asked again
        if not _STATING.isdisjoint(headers.keys()):
            self._received[request] = Headers({name: headers.getlist(name) for name in _STATING})

    async def page(self, response: Response) -> Page | None:
        """The page of the response; None where its URL can have no policies. Raises ClosingError."""
        if response not in self._pages:
            self._pages[response] = self._make_page(response, await self._site_of(response))
        return self._pages[response]

    def page_now(self, response: Response) -> Page | None:
        """The same, at once. LookupError where the policies would have to be fetched."""
        if response not in self._pages:
            self._pages[response] = self._make_page(response, self._site_in_memory(response))
        return self._pages[response]

    async def stripped(self, request: Request, response: R) -> R:
        """The response without the elements that are refused for one of the declared uses. Raises ClosingError."""
        page = await self.page(response)
        if page is None or page.element_rules is None:
            return response
        body = page.element_rules.redacted(page.refusable(self._agent.uses))
        if body == response.body:
            return response
        self._whole[request] = response.body
        self._stats.inc_value("comity/responses/stripped")
        stripped: R = response.replace(body=body)
        return stripped

    def rel_nofollow(self, response: Response) -> frozenset[str]:
        """The URLs that the page links with rel=nofollow only, canonical; none where that is not asked for."""
        if not self._obeys_rel_nofollow:
            return frozenset()
        return rel_nofollow(Content(fields_of(response.headers), response.body), response.url)

    async def completed(self, response: Response, page: Page) -> Page:
        """The page, once something is made of it: when is remembered, and what goes with it is fetched. Raises ClosingError."""
        dated, resource_urls = page.dated, page.required_resources
        if not dated and not resource_urls:
            return page
        site = await self._site_of(response)
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
        """The request for the response; None where it was not admitted."""
        return self._access.admitted(response.request) if response.request else None

    def _outgoing_for_page(self, response: Response) -> Outgoing | None:
        """The same, where the response is of the page that was asked for."""
        outgoing = self._outgoing(response)
        if (
            outgoing is None
            or outgoing.url == response.url
            or urldefrag(outgoing.url)[0] == urldefrag(response.url)[0]
        ):
            return outgoing
        return None

    async def _site_of(self, response: Response) -> Site | None:
        """The policies of the response's own URL."""
        if outgoing := self._outgoing_for_page(response):
            return outgoing.site
        policies = await self._policies.for_url(
            response.url, self._referrals.response_referrer_reach(response)
        )
        return None if policies is None else policies.site

    def _site_in_memory(self, response: Response) -> Site | None:
        """The same. LookupError where they would have to be fetched."""
        if outgoing := self._outgoing_for_page(response):
            return outgoing.site
        has_been_asked = self._outgoing(response) is not None
        origin = origin_or_empty(response.url)
        if not origin:
            if has_been_asked:
                return None
            raise LookupError(f"{response} has no policies")
        policies = self._policies.cached(origin, self._referrals.response_referrer_reach(response))
        if not has_been_asked or not policies:
            raise LookupError(
                f"{response} is not what was asked for: nobody knows yet what may be done with it"
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
        """`site`: the policies of its own URL. Where that is not the one that was asked for, as where a browser was led
        elsewhere, the policies of both bind."""
        outgoing = self._outgoing(response)
        whole = self._whole.get(response.request) if response.request else None

        def page_by(site: Site, url: str, decision: Decision | None, fields: Fields = ()) -> Page:
            return site.page(
                self._agent,
                url,
                status=response.status,
                headers=fields or fields_of(response.headers),
                body=response.body if whole is None else whole,
                first_seen=first_seen,
                resources=resources,
                access=decision,
                facts=outgoing.facts if outgoing else PLAIN,
            )

        first = page_by(outgoing.site, outgoing.url, outgoing.decision) if outgoing else None
        browsed = self.browsed.get(response.request) if response.request is not None else None
        if outgoing and first is not None:
            documents: list[Fields] = [] if browsed is None else list(browsed.document_fields)
            if (
                response.request is not None
                and (received := self._received.get(response.request)) is not None
            ):
                documents.append(list(fields_of(received)))
            for fields in _differing(documents, response):
                first = first.asked_as(
                    page_by(outgoing.site, outgoing.url, outgoing.decision, fields)
                )
        if site is None or self._outgoing_for_page(response):
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
    documents: Iterable[Fields], response: Response
) -> Iterator[list[tuple[bytes, bytes]]]:
    """The header fields of documents that state something else than those of the response. These are of the first document in a
    browser, where a click or a script may have led on to others, and Scrapy does not learn what came with them."""
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
