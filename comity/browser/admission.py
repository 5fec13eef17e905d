"""Admit requests of a browser, for a crawl or for a client without Scrapy.

Each request is judged, waits until its host may be asked, and is counted when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import time
from typing import Any
from urllib.parse import urldefrag

from comity.browser.kinds import DOCUMENT, DOCUMENTS, SCRIPT, RequestKind
from comity.gate.fetching.freshness import TOO_MANY, retry_after
from comity.gate.fetching.reach import Reach
from comity.gate.http import Headers as RequestHeaders
from comity.gate.http import PlainRequest, Request
from comity.gate.parts import Parts
from comity.gate.request.facts import KEY
from comity.gate.request.referrals import set_referrer_reach
from comity.gate.run.flights import ClosingError
from comity.gate.run.surroundings import Stats
from comity.policies import Decision, Reason, Source, Verdict
from comity.policies.syntax.urls import origin_or_empty

# Seconds that a host gets no request after a status in TOO_MANY without Retry-After. The crawl sets
# its own pause later, when the page is complete.
PATIENCE = 60.0

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request that a browser wants to make.

    Attributes:
        url: The URL.
        method: The method.
        kind: The kind of request.
        fields: The header fields.
        leads_there: The URL of the document, worker or redirect that leads to the request. "" means
            that it is not known.
        after: The admission of the previous hop of a redirect. None means that this is no redirect.
        is_of_main_frame: True for the main frame of a page, which the operator may fill. The
            content of other frames is always chosen by a page.
        may_be_script: True if the kind is not known. Then the request is judged as a request of a
            script, too, and refused if either decision refuses it.
    """

    url: str
    method: str
    kind: RequestKind
    fields: Mapping[str, str]
    leads_there: str = ""
    after: BrowserAdmission | None = None
    is_of_main_frame: bool = False
    may_be_script: bool = False


class BrowserAdmission:
    """The permission for one request to go out. The sender reports the outcome by its methods."""

    def __init__(
        self, parts: Parts, request: Request, *, url: str, is_of_crawl: bool = False
    ) -> None:
        """`url`: the URL, as the browser writes it.

        `is_of_crawl`: True for a request that the crawl has handed out. The crawl forgets such a
        request, and counts its status, by itself."""
        self.request = request
        self.url = url
        self.is_of_crawl = is_of_crawl
        self._parts = parts

    @property
    def referrer_reach(self) -> Reach | None:
        """The reach of the site that leads to the request.

        None means that the operator leads to it."""
        return self._parts.referrals.referrer_reach(self.request)

    def note_answer(self, status: int, headers: Headers) -> None:
        """Note that the header fields of the answer came.

        The delay of the host counts from now. It is longer after a status that means "too many
        requests"."""
        self.note_end()
        if not self.is_of_crawl:
            self._parts.back_off(self.url, status, headers)
        # The crawl counts the status when the page is complete. Until then, other requests of the
        # page have to wait.
        elif status in TOO_MANY:
            seconds = retry_after(headers, time())
            self._parts.pace.rest(
                self._parts.pace.host(self.url).name, PATIENCE if seconds is None else seconds
            )

    def note_no_server(self) -> None:
        """Do nothing when no server was reached.

        The permission is not needed again: if the browser repeats the request, it is judged anew.
        """

    def note_end(self) -> None:
        """Free the limiters of the request, for example because it failed.

        If the request had no answer yet, the delay of its host counts from now."""
        if self.is_of_crawl:
            self._parts.pace.end_flight(self.request)
        else:
            self._parts.pace.end_and_forget(self.request)


class Admissions:
    """The admissions to one crawl, or to one client."""

    def __init__(
        self,
        parts: Parts,
        stats: Stats,
        *,
        automations: Iterable[str] | None = None,
        judged: str,
        is_led_by_operator: bool = False,
    ) -> None:
        """Make the admissions to one crawl or client.

        `automations`: the automations of the browser. None means those in the settings of
        scrapy-playwright.
        `judged`: the value of COMITY_BROWSER.
        `is_led_by_operator`: True if the operator leads to a document in the main frame of a page,
        unless a site is known to lead there. False if a site leads to all requests."""
        self._parts = parts
        self._stats = stats
        # No session is declared: credentials are visible in the header fields of each request.
        self._declared: dict[str, Any] = {"session": False}
        if automations is not None:
            self._declared["automations"] = tuple(automations)
        self._are_parts_judged = judged != DOCUMENTS
        self._is_led_by_operator = is_led_by_operator
        # Origin -> the requests of the crawl that the browser is about to make.
        self._handed_out: dict[str, list[Request]] = {}

    @property
    def key_header(self) -> str:
        """The header field with the agent's key."""
        return self._parts.agent.key_header

    @property
    def purpose_fields(self) -> dict[str, str]:
        """The header fields that tell sites the purposes of the agent."""
        return self._parts.options.purpose_fields(self._parts.agent.purposes)

    def signed_fields(self, url: str) -> dict[str, str]:
        """Return the header fields that sign one request to the URL; {} without a key."""
        return self._parts.options.client.signed_fields(url)

    @contextmanager
    def hand_out(self, request: Request) -> Iterator[None]:
        """Let the browser make this request of the crawl, while the context is open.

        The crawl has judged the request, and waited for its turn."""
        origin = origin_or_empty(request.url)
        requests = self._handed_out.setdefault(origin, [])
        requests.append(request)
        try:
            yield
        finally:
            if request in requests:  # the browser did not make it
                requests.remove(request)
            if not requests:
                self._handed_out.pop(origin, None)

    async def admit(self, page_request: PageRequest) -> BrowserAdmission | Decision:
        """Wait until the request may go out, and return its admission.

        A Decision is the refusal of the request."""
        original = self._handed_out_for(page_request)
        target = urldefrag(page_request.url)[0], page_request.method
        if original is not None and (urldefrag(original.url)[0], original.method) == target:
            return self._in_turn_of(original, page_request)
        request = self._request(page_request)
        try:
            decision = None
            if page_request.may_be_script:
                decision = await self._judge(self._request(replace(page_request, kind=SCRIPT)))
            elif original is not None:
                decision = await self._judge(request)
            is_allowed = decision is not None and decision.verdict is Verdict.ALLOW
            takes_turn = original is not None and is_allowed and self._waits(original)
            if decision is None or (decision.verdict is not Verdict.DENY and not takes_turn):
                decision = await self._wait(request, page_request.kind)
        except ClosingError:
            return refusal_of(page_request.url, "the crawl is ending")
        self._parts.access.record(request, decision)
        self._stats.inc_value(f"comity/browser/{page_request.kind.name}/{decision.verdict.value}")
        if decision.verdict is not Verdict.ALLOW:
            self._parts.pace.cancel(request)  # its turn may have come before the refusal
            return decision
        if original is not None and takes_turn:
            return self._in_turn_of(original, page_request)
        return BrowserAdmission(self._parts, request, url=page_request.url)

    def _handed_out_for(self, page_request: PageRequest) -> Request | None:
        """Return the handed-out request of the crawl that the browser is making here.

        It has the same URL, or at least the same origin, because browsers spell URLs in their own
        way. None means that the request is not from the crawl."""
        if page_request.kind is not DOCUMENT or page_request.after is not None:
            return None
        requests = self._handed_out.get(origin_or_empty(page_request.url), ())
        same = (request for request in requests if urldefrag(request.url)[0] == page_request.url)
        return next(same, requests[0] if requests else None)

    def _waits(self, original: Request) -> bool:
        """Return True if the browser has not made this request of the crawl yet."""
        return original in self._handed_out.get(origin_or_empty(original.url), ())

    def _in_turn_of(self, original: Request, page_request: PageRequest) -> BrowserAdmission:
        self._handed_out[origin_or_empty(original.url)].remove(original)
        return BrowserAdmission(self._parts, original, url=page_request.url, is_of_crawl=True)

    def _request(self, page_request: PageRequest) -> Request:
        headers = dict(page_request.fields)
        if page_request.kind.destination:
            headers["Sec-Fetch-Dest"] = page_request.kind.destination
        request = PlainRequest(
            page_request.url,
            method=page_request.method,
            headers=RequestHeaders(headers),
            meta={KEY: self._declared, "playwright": True},
        )
        if page_request.kind.is_part:
            self._parts.access.exempt(request)  # its answer only affects the look of the page
        is_opened = (
            page_request.kind is DOCUMENT
            and page_request.is_of_main_frame
            and not page_request.leads_there
        )
        if not (is_opened and self._is_led_by_operator):
            leads_from = self._parts.policies.cached(origin_or_empty(page_request.leads_there))
            set_referrer_reach(request, leads_from.server_reach if leads_from else Reach.PUBLIC)
        self._parts.referrals.make(request)
        return request

    async def _judge(self, request: Request) -> Decision:
        """Return the decision about a request, without a wait for its turn."""
        policies = await self._parts.policies.for_url(
            request.url, self._parts.referrals.referrer_reach(request)
        )
        return self._parts.access.decide(policies, request)

    async def _wait(self, request: Request, kind: RequestKind) -> Decision:
        parts = self._parts
        reach = parts.referrals.referrer_reach(request)
        try:
            decision = await parts.gate.wait(request, reach, in_downloader=False)
            is_by_file = decision.verdict is Verdict.DENY and not decision.reasons[
                0
            ].rule.startswith("comity.")
            if is_by_file and kind.is_part and not self._are_parts_judged:
                return await self._wait_unjudged(request, reach, decision)
        except BaseException:
            parts.pace.cancel(request)
            raise
        return decision

    async def _wait_unjudged(
        self, request: Request, reach: Reach | None, refusal: Decision
    ) -> Decision:
        """Wait for the turn of a part of a page, and allow it as the page itself was allowed.

        Return `refusal`, the decision about the part itself, if it would have to wait too long or
        the policies are unknown."""
        parts = self._parts
        policies = await parts.policies.for_url(request.url, reach)
        if policies is None:
            return refusal
        limiters = parts.pace.limiters(parts.agent, request.url, policies.site)
        too_long = await parts.pace.acquire(
            request, limiters, at_most=parts.options.max_delay, in_downloader=False
        )
        if too_long is not None:
            return refusal
        source = Source(url="COMITY_BROWSER", part="setting", text=DOCUMENTS)
        return Decision(verdict=Verdict.ALLOW, reasons=(Reason(rule="comity.part", source=source),))


def refusal_of(url: str, cause: str) -> Decision:
    """Return the refusal of a request that cannot be judged. `cause`: the reason why."""
    source = Source(url=url, part="request", text=cause)
    return Decision(verdict=Verdict.DENY, reasons=(Reason(rule="comity.browser", source=source),))
