"""A request that may go out, from its admission to the end of its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from comity.client.request import Fields, header_pairs, plain_headers
from comity.gate.fetching.reach import Reach, literal
from comity.gate.fetching.redirects import REDIRECTS
from comity.gate.http import PlainResponse, Request
from comity.gate.parts import Parts
from comity.gate.request.access import inner_address
from comity.gate.request.referrals import referrer_stamp
from comity.policies import Decision
from comity.policies.answers.request import Facts

if TYPE_CHECKING:
    from comity.client.client import Client

T = TypeVar("T")


class Admission:
    """A request that may go out. Whoever makes it says here how it went."""

    def __init__(self, client: Client, parts: Parts, request: Request, decision: Decision) -> None:
        self.client = client
        self.request = request
        self.decision = decision
        self.leads_from = (
            Reach.PUBLIC
        )  # where its site is, as far as it is known: by that is judged what its answer leads to
        self._parts = parts

    @property
    def url(self) -> str:
        return self.request.url

    @property
    def facts(self) -> Facts:
        """All that policies were asked about the request, but for its URL."""
        outgoing = self._parts.access.admitted(self.request)
        return outgoing.facts if outgoing is not None else Facts(method=self.request.method)

    @property
    def fields(self) -> dict[str, str]:
        """The header fields that the request is to carry: what it is made for."""
        purposes = self.facts.purposes
        return self._parts.options.purpose_fields(
            self.client.agent.purposes if purposes is None else purposes
        )

    def declare(self, headers: MutableMapping[str, str]) -> None:
        """Put the same into the header fields. Nobody else's word goes out under that name."""
        if (name := self._parts.options.purpose_header) in headers:
            del headers[name]
        headers.update(self.fields)

    async def sent(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send the request. StoodStillError if this process was stopped for so long that its turn is over.

        ClosedError if the client is closed, before or meanwhile. Nothing goes out then."""
        return await self.client.parts.standstill.guard(self.request, send)

    def answered(
        self,
        status: int,
        headers: Fields = (),
        *,
        address: str | None = None,
        body_follows: bool = False,
    ) -> Decision | None:
        """The header fields came: the delay of the host counts from now, and longer where the status says that it is asked too
        often. Return the refusal of an answer that may not be used: it is not to be read, and its request has ended.

        `address`: of the server, where it is known; of no account where a proxy is set. `body_follows`: the request takes its
        place until `ended` is called."""
        parts, request = self._parts, self.request
        parts.pace.settle_start(request)
        parts.back_off(request.url, status, header_pairs(headers))
        refused = self._refused(status, headers, address)
        if refused is not None:
            parts.access.record_stopped(request, refused)
        if refused is not None or not body_follows:
            self.ended()
        return refused

    def _refused(self, status: int, headers: Fields, address: str | None) -> Decision | None:
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
        """The request takes no place any more. What was not answered counts from now."""
        self._parts.pace.end_and_forget(self.request)

    failed = ended  # it came to nothing, though the server may have seen it
