"""An admitted request, from its admission to the end of its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import ref

from comity.client.request import Fields, header_pairs, plain_headers
from comity.gate.fetching.reach import Reach, literal
from comity.gate.fetching.redirects import REDIRECTS
from comity.gate.http import PlainResponse, Request
from comity.gate.parts import Parts
from comity.gate.request.access import inner_address
from comity.gate.request.purchases import Purchase, Purchases
from comity.gate.request.referrals import referrer_stamp
from comity.policies import Agent, Decision, Offer, Page
from comity.policies.answers.request import Facts
from comity.policies.document.offer import PAYING, offer_in

T = TypeVar("T")


class Admitter(Protocol):
    """The part of a `Client` that its admissions need."""

    @property
    def agent(self) -> Agent: ...

    @property
    def parts(self) -> Parts: ...

    @property
    def purchases(self) -> Purchases: ...

    async def page(
        self, admission: Admission, status: int, headers: Fields, body: bytes
    ) -> Page: ...


class Admission:
    """A request that may go out. The code that sends the request reports the answer here.

        admission = await client.admit("https://example.com/")
        response = await admission.sent(lambda: send(admission.url, admission.fields))
        refusal = admission.answered(response.status, response.headers)

    Attributes:
        client: The client that admitted the request.
        request: The request, as the gate sees it.
        decision: The decision that allowed the request.
        leads_from: The reach of the site of the answer. It limits the addresses to which the answer
            may lead. Before `answered` is called, it is PUBLIC.
        offer: The offer of an answer that asks for payment or for a licence. None: it makes none.
    """

    def __init__(
        self,
        client: Admitter,
        parts: Parts,
        request: Request,
        decision: Decision,
        purchase: Purchase | None = None,
    ) -> None:
        self.client = client
        self.request = request
        self.decision = decision
        self.leads_from = Reach.PUBLIC
        self.offer: Offer | None = None
        self._parts = parts
        self._purchase = purchase
        self._declared: MutableMapping[str, str] = {}  # the header fields of the request
        self._may_be_sent = True

    @property
    def url(self) -> str:
        """The URL of the request."""
        return self.request.url

    @property
    def facts(self) -> Facts:
        """All facts of the request that policies were asked about, except its URL."""
        outgoing = self._parts.passages[ref(self.request)].outgoing
        return outgoing.facts if outgoing is not None else Facts(method=self.request.method)

    @property
    def fields(self) -> dict[str, str]:
        """The header fields that the request has to carry.

        These are its purposes, its signature, and what it buys. Once the request is answered or has
        ended, it buys nothing more. With a key, each access signs anew:
        use the fields for one request only, and do not send them to another host."""
        purposes, options = self.facts.purposes, self._parts.options
        return (
            options.purpose_fields(self.client.agent.purposes if purposes is None else purposes)
            | options.client.signed_fields(self.url)
            | (self._purchase.fields if self._purchase and not self._purchase.is_over else {})
        )

    def declare(self, headers: MutableMapping[str, str]) -> None:
        """Put `fields` into `headers`, the header fields of the request.

        If `headers` has the field for purposes already, it is replaced, or removed if the request
        has no purposes. Other fields that offer money are removed. The fields of a purchase stay
        until the request is answered or has ended, so that no redirect repeats them."""
        for name in (self._parts.options.purpose_header, *PAYING):
            if name in headers:
                del headers[name]
        headers.update(self.fields)
        self._declared = headers

    async def sent(self, send: Callable[[], Awaitable[T]]) -> T:
        """Call `send`, which sends the request, and return its result.

        StoodStillError: this process was stopped for so long that the request's turn is over.
        ClosedError: the client is closed, or was closed meanwhile. The request does not go out."""
        standstill = self.client.parts.standstill
        self._may_be_sent = False

        def begin() -> Awaitable[T]:
            self._may_be_sent = True
            return send()

        return await standstill.guard(self.request, begin)

    def answered(
        self,
        status: int,
        headers: Fields = (),
        *,
        address: str | None = None,
        body_follows: bool = False,
        body: bytes = b"",
    ) -> Decision | None:
        """Report that the status and the header fields of the answer came.

        The delay of the host counts from now. It is longer if the status says that the host gets
        too many requests. Return the refusal if the answer may not be used, else None. Do not read
        a refused answer: its request has ended.

        `address`: the IP address of the server. None means unknown. If a proxy is set, the address
        is ignored.
        `body_follows`: True if the request is to count as in flight until `ended` is called. False
        ends it now.
        `body`: the body of an answer with status 402, or its beginning. It may have the terms of
        the offer."""
        parts, request = self._parts, self.request
        parts.pace.settle_start(request)
        parts.back_off(request.url, status, header_pairs(headers))
        if self._purchase is not None:
            self.client.purchases.answered(self._purchase, status, plain_headers(headers))
            self._take_off(self._purchase)
        refusal = self._refusal(status, headers, address)
        if refusal is not None:
            parts.access.record_stopped(request, refusal)
        else:
            self.offer = offer_in(status, header_pairs(headers), body, url=self.url)
            if self.offer is not None:
                refusal = parts.access.refuse_for_offer(request, self.offer)
        if refusal is not None or not body_follows:
            self.ended()
        return refusal

    def _refusal(self, status: int, headers: Fields, address: str | None) -> Decision | None:
        response = PlainResponse(self.url, request=self.request, ip_address=self._address(address))
        reaches = self._parts.referrals.check_response(self.request, response)
        if reaches is not None:
            leading, reach = reaches
            return inner_address(self.url, leading, f"the answer came from a {reach.value} address")
        self.leads_from = referrer_stamp(self.request) or Reach.PUBLIC
        if not self._parts.access.skips_unusable or self.request.method == "HEAD":
            return None
        fields = plain_headers(headers)
        goes_on = status in REDIRECTS and fields.get("Location") is not None
        return None if goes_on else self._parts.access.refused_by_headers(self.request, fields)

    def _address(self, address: str | None) -> Any:
        parts, proxies = urlsplit(self.url), self._parts.options.client.proxies
        is_known = address and proxies.select(parts.scheme, parts.hostname or "") is None
        return literal(address) if address and is_known else None

    def ended(self) -> None:
        """Report that the request has ended, so it no longer counts as in flight.

        If it was not answered, the delay of its host counts from now, and the request counts as
        paid."""
        self.failed()

    def failed(self, *, is_sent: bool = True) -> None:
        """Report that the request has ended without an answer.

        `is_sent`: False if no connection was made, so that the request costs nothing. A request for
        which `sent` did not call `send` costs nothing either."""
        if self._purchase is not None:
            self.client.purchases.failed(self._purchase, is_sent=is_sent and self._may_be_sent)
            self._take_off(self._purchase)
        self._parts.pace.end_and_forget(self.request)

    def _take_off(self, purchase: Purchase) -> None:
        for name in purchase.fields:
            self._declared.pop(name, None)
