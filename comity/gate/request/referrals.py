"""Track if the operator or a site led to a request, and if that site may lead there (SEC-7).

How it works. A site leads to every request that comes from one of its responses: requests of
callbacks, redirects, item pipelines and errbacks. The operator leads to all other requests, for
example those of `start()`. The meta of the request records the site's reach, so the record survives
redirects, copies and JOBDIR. The meta never records that the operator led to a request, so copied
meta can only take rights away.

Requests that are made from a response without its meta are recognised by their context: all work
of a task while it handles a request or its response is done for that request. So each request
passes these methods, in this order:

    make              the request was made: it inherits the limits of the request handled here
    referrer_reach    the reach of the site that leads there, used for the decision;
                      None: the operator leads there, and may ask anywhere
    handle            from now on this request is the one handled in this context
    check_response    its response came, so its server's address is known: from now on the site of
                      the response leads to the requests made from it

`Reach.may_lead_to` compares reaches: a site may lead to public addresses, or to addresses of its
own kind. `_origins` remembers every origin that the operator asked for, and the reach of its
server. Every site may lead to these origins, because the operator wants them anyway."""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlsplit
from weakref import ref

from comity.bounded import Bounded
from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.fetcher import OriginPolicies, PolicyFetcher
from comity.gate.fetching.reach import IPAddress, Reach, literal
from comity.gate.http import Request, Response
from comity.gate.request.passage import Handling, Passages
from comity.policies import Page
from comity.policies.syntax.urls import origin_or_empty

R = TypeVar("R", bound=Request)

# Key of request.meta. Its value is the value of a Reach: that of the site that led to the request.
KEY = "comity_led_from"

_REACHES = {reach.value: reach for reach in Reach}

# The maximum number of the operator's origins that are remembered. If a site leads to an inner
# origin that was forgotten, the request is refused.
MAX_ORIGINS = 100_000


# The handling of the request that the current context works for.
_handling: ContextVar[Handling | None] = ContextVar("comity_handling", default=None)

# The page of the item that is in the pipelines now. Requests for media belong to this page.
current_page: ContextVar[Page | None] = ContextVar("comity_page", default=None)


class Referrals:
    """The referrals of one crawl."""

    def __init__(
        self,
        passages: Passages,
        policies: PolicyFetcher,
        client: PolicyClient,
        *,
        is_inner_allowed: bool,
    ) -> None:
        self._passages = passages
        self._policies = policies
        self._client = client
        self._is_inner_allowed = is_inner_allowed
        # Origin of an operator's request -> the reach of its server.
        self._origins: Bounded[str, Reach] = Bounded(MAX_ORIGINS)
        self._crawl = object()  # tells this crawl from others: contexts may outlive their crawl

    def handle(self, request: Request | None) -> None:
        """Assign all further work in this context to the request. None assigns it to no request."""
        if request is None:
            _handling.set(None)
            return
        handling = Handling(self._crawl, referrer_stamp(request))
        self._passages[ref(request)].handling = handling
        _handling.set(handling)

    def make(self, request: Request, *, is_awaited: bool = False) -> None:
        """Note that a request was made in this context, and is about to wait or to go out.

        `is_awaited`: the code that made the request gets its response."""
        handling = self._handling_here()
        if handling is not None:
            passage = self._passages.get(ref(request))
            if passage is not None and handling is passage.handling:
                handling = None  # the handled request itself is made again
            # Item pipelines make no requests from a file, so files of items are left out.
            elif is_awaited and current_page.get() is None:
                self._passages[ref(request)].awaited_by = handling
        if handling is not None and handling.reach is not None:
            set_referrer_reach(request, handling.reach)
        elif KEY not in request.meta and (origin := origin_or_empty(request.url)):
            self._origins.setdefault(origin, Reach.PUBLIC)
            self._origins.move_to_end(origin)

    def _handling_here(self) -> Handling | None:
        handling = _handling.get()
        return handling if handling is not None and handling.crawl is self._crawl else None

    def referrer_reach(self, request: Request | None) -> Reach | None:
        """Return the reach of the site that leads to the request, or None if it does not matter.

        It does not matter if the operator leads there, has asked for the origin, or allows inner
        addresses for all requests."""
        if request is None or not self._matters(request.url):
            return None
        return referrer_stamp(request)

    def response_referrer_reach(self, response: Response) -> Reach | None:
        """Return the reach of the site that leads to the response, or None if it does not matter.

        The URL of the response may differ from the URL of its request."""
        if response.request is None or not self._matters(response.url):
            return None
        return self._leader(response.request, response)

    def _matters(self, url: str) -> bool:
        """Return True if it matters which site leads to the URL."""
        return not self._is_inner_allowed and origin_or_empty(url) not in self._origins

    def _leader(self, request: Request, response: Response) -> Reach | None:
        """Return the reach of the site that has led to the response; None for the operator.

        If a browser or a middleware ended at another origin than the requested one, the requested
        site has led there."""
        stamp, origin = referrer_stamp(request), origin_or_empty(request.url)
        if not origin or origin == origin_or_empty(response.url):
            return stamp
        reach = self._origins.get(origin) or self._reach_of_site(request.url)
        return reach if stamp is None or reach is None else stamp.joined(reach)

    def learn(self, policies: OriginPolicies) -> None:
        """Remember the reach of the origin's server if the operator has asked for the origin."""
        origin, reach = policies.site.origin, policies.server_reach
        if origin in self._origins and self._origins[origin] is not reach:
            self._origins[origin] = reach

    def check_response(self, request: Request, response: Response) -> tuple[Reach, Reach] | None:
        """Record that the site of the response leads to all requests made from the response.

        Return None if the response may be used. Otherwise the site that led to the request may not
        lead to this server: return the reach of that site, and the reach of the server."""
        leading, reach = self._leader(request, response), self._server_reach(request, response)
        site_reach = reach or self._reach_of_site(response.url)
        if site_reach is not None:
            request.meta[KEY] = site_reach.value
            passage = self._passages[ref(request)]
            if passage.handling is not None:
                passage.handling.reach = site_reach
            maker, passage.awaited_by = passage.awaited_by, None
            if maker is not None:
                maker.reach = site_reach if maker.reach is None else maker.reach.joined(site_reach)
        if self._is_inner_allowed or leading is None or reach is None or leading.may_lead_to(reach):
            return None
        if self._origins.get(origin_or_empty(response.url), Reach.PUBLIC) is not Reach.PUBLIC:
            return None  # an inner server that the operator has asked for
        return leading, reach

    def _server_reach(self, request: Request | None, response: Response) -> Reach | None:
        """Return the reach of the server that answered; None if its address is unknown."""
        address = _address(response.url)
        # Behind a proxy, the address of the response is that of the proxy.
        if address is None and not (request and request.meta.get("proxy")):
            address = response.ip_address
        return None if address is None else self._client.network.reach(address)

    def _reach_of_site(self, url: str) -> Reach | None:
        """Return the reach of the site at a URL.

        None means that the URL has no site (`data:`, for example). Then the recorded reach of the
        request stays as it is."""
        origin = origin_or_empty(url)
        policies = self._policies.cached(origin) if origin else None
        return policies.server_reach if policies else (Reach.PUBLIC if origin else None)


def set_referrer_reach(request: R, reach: Reach) -> R:
    """Record in the meta of the request the reach of the site that leads to it.

    A reach that is already recorded is joined with the new one. Return the request itself."""
    before = referrer_stamp(request)
    request.meta[KEY] = (reach if before is None else before.joined(reach)).value
    return request


def referrer_stamp(request: Request) -> Reach | None:
    """Return the reach in the meta of a request; None if no site is known to lead to it."""
    meta = request.meta
    if KEY not in meta or (value := meta[KEY]) is None:
        return None
    try:
        return _REACHES[value]
    except (KeyError, TypeError):
        return Reach.PUBLIC  # an unknown value leaves only the right to public addresses


def _address(url: str) -> IPAddress | None:
    """Return the IP address in a URL; None if the host is a name, or the text is not a URL."""
    try:
        return _address_of(origin_or_empty(url) or url)
    except ValueError:
        return None


@lru_cache(maxsize=4096)  # effective because most of the texts are origins
def _address_of(url: str) -> IPAddress | None:
    return literal(urlsplit(url).hostname or "")
