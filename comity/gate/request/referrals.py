"""The way that led to a request, from the operator or from a site, and whether it may lead there (SEC-7).

How it works. The operator leads to what `start()` yields, and to whatever nobody else is known to lead to. A site leads to all
that is made of a response of its own: what a callback yields, what redirects, item pipelines and errbacks ask for. That stands in
the meta of the request, so that it survives redirects, copies and JOBDIR. Nothing there says that the operator leads somewhere,
so whatever is copied can only take rights away.

What is made of a response without its meta is known by its context: all that a task does while a request or its response is
handled is done for that request. So each request passes these, in this order:

    make              it was made, in the context of whatever is handled there: what that one may not, this one may not
    referrer_reach    that of the site that leads there, by which it is decided on; None: the operator, who may ask anywhere
    handle            from now on it is the one that is handled in this context
    check_response    its response came, from an address that is known by now: its site leads to what is made of it

Reaches are compared by `Reach.may_lead_to`: a site leads to the public, or to its own kind. An origin that the operator asks for
is remembered (`_origins`), with where its server is: whoever leads there leads to what the operator wants anyway."""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from comity.bounded import Bounded
from comity.gate.fetching.client import Client
from comity.gate.fetching.fetcher import Policies, PolicyFetcher
from comity.gate.fetching.reach import IPAddress, Reach, literal
from comity.gate.http import Request, Response
from comity.policies import Page
from comity.policies.syntax.urls import origin_or_empty

R = TypeVar("R", bound=Request)

KEY = "comity_led_from"  # of request.meta: the value of a Reach, that of the site that leads there

_REACHES = {reach.value: reach for reach in Reach}

MAX_ORIGINS = 100_000  # of the operator's requests that are remembered; sites that lead to an inner one before these are refused


class _Handled:
    """A request that is handled."""

    __slots__ = ("crawl", "reach")

    def __init__(self, crawl: object, reach: Reach | None) -> None:
        self.crawl = crawl
        self.reach = (
            reach  # of the site that leads to what is made of the request; None: the operator does
        )


_handled: ContextVar[_Handled | None] = ContextVar("comity_handled", default=None)

# The page of the item that is in the pipelines now. Requests for media belong to this page.
current_page: ContextVar[Page | None] = ContextVar("comity_page", default=None)


class Referrals:
    """The referrals of one crawl."""

    def __init__(self, policies: PolicyFetcher, client: Client, *, is_inner_allowed: bool) -> None:
        self._policies = policies
        self._client = client
        self._is_inner_allowed = is_inner_allowed
        self._origins: Bounded[str, Reach] = Bounded(
            MAX_ORIGINS
        )  # of the operator's requests; where their servers are
        self._crawl = object()  # for contexts, which may outlive it
        self._by_request: WeakKeyDictionary[Request, _Handled] = WeakKeyDictionary()
        self._awaited: WeakKeyDictionary[Request, _Handled] = WeakKeyDictionary()  # by whom

    def handle(self, request: Request | None) -> None:
        """Take what is done from now on in this context as done for the request; None: for nobody."""
        if request is None:
            _handled.set(None)
            return
        handled = self._by_request[request] = _Handled(self._crawl, referrer_stamp(request))
        _handled.set(handled)

    def make(self, request: Request, *, is_awaited: bool = False) -> None:
        """Note that a request was made in this context, and is about to wait or to go out. `is_awaited`: who made it gets the
        response."""
        handled = self._handled_here()
        if handled is not None and handled is self._by_request.get(request):
            handled = None  # it is made again as it is
        if (
            is_awaited and handled is not None and current_page.get() is None
        ):  # pipelines make nothing of a file
            self._awaited[request] = handled
        if handled is not None and handled.reach is not None:
            set_referrer_reach(request, handled.reach)
        elif KEY not in request.meta and (origin := origin_or_empty(request.url)):
            self._origins.setdefault(origin, Reach.PUBLIC)
            self._origins.move_to_end(origin)

    def _handled_here(self) -> _Handled | None:
        handled = _handled.get()
        return handled if handled is not None and handled.crawl is self._crawl else None

    def referrer_reach(self, request: Request | None) -> Reach | None:
        """The reach of the site that leads to the request, which it has to be judged by; None where that does not matter: the
        operator leads there, has asked for the origin, or allows everything."""
        return None if request is None else self._leading(referrer_stamp(request), request.url)

    def response_referrer_reach(self, response: Response) -> Reach | None:
        """The same of a response, which may have another URL than was asked for."""
        return (
            None
            if response.request is None
            else self._leading(self._leader(response.request, response), response.url)
        )

    def _leading(self, leader: Reach | None, url: str) -> Reach | None:
        return None if self._is_inner_allowed or origin_or_empty(url) in self._origins else leader

    def _leader(self, request: Request, response: Response) -> Reach | None:
        """The reach of the site that has led to the response; None: the operator did. Where a browser or a middleware ended at
        another origin than was asked for, the site that was asked has led there."""
        stamp, origin = referrer_stamp(request), origin_or_empty(request.url)
        if not origin or origin == origin_or_empty(response.url):
            return stamp
        reach = self._origins.get(origin) or self._reach_of_site(request.url)
        return reach if stamp is None or reach is None else stamp.joined(reach)

    def learn(self, policies: Policies) -> None:
        """Remember where the server of an origin is that the operator has asked for."""
        if policies.site.origin in self._origins:
            self._origins[policies.site.origin] = policies.server_reach

    def check_response(self, request: Request, response: Response) -> tuple[Reach, Reach] | None:
        """Let the site of the response lead to what is made of the request from now on. None: the response may be used; else the
        reach of the site that has led to the request, and that of the server, to which it may not lead."""
        leading, reach = self._leader(request, response), self._came_from(request, response)
        site_reach = reach or self._reach_of_site(response.url)
        if site_reach is not None:
            request.meta[KEY] = site_reach.value
            if request in self._by_request:
                self._by_request[request].reach = site_reach
            if (maker := self._awaited.pop(request, None)) is not None:
                maker.reach = site_reach if maker.reach is None else maker.reach.joined(site_reach)
        if self._is_inner_allowed or leading is None or reach is None or leading.may_lead_to(reach):
            return None
        if self._origins.get(origin_or_empty(response.url), Reach.PUBLIC) is not Reach.PUBLIC:
            return None  # an inner server that the operator has asked for
        return leading, reach

    def _came_from(self, request: Request | None, response: Response) -> Reach | None:
        """The reach of the server that answered; None: nobody knows."""
        address = _address(response.url)
        if address is None and not (
            request and request.meta.get("proxy")
        ):  # or it would be that of the proxy
            address = response.ip_address
        return None if address is None else self._client.network.reach(address)

    def _reach_of_site(self, url: str) -> Reach | None:
        """The reach of the site at a URL; None where there is no site: whoever has led to the data leads on."""
        origin = origin_or_empty(url)
        policies = self._policies.cached(origin) if origin else None
        return policies.server_reach if policies else (Reach.PUBLIC if origin else None)


def set_referrer_reach(request: R, reach: Reach) -> R:
    """Note in the meta of the request that a site at an address of this reach leads there; return the request."""
    before = referrer_stamp(request)
    request.meta[KEY] = (reach if before is None else before.joined(reach)).value
    return request


def referrer_stamp(request: Request) -> Reach | None:
    """The reach in the meta of a request; None: no site is known to lead there."""
    value = request.meta.get(KEY)
    if value is None:
        return None
    # Somebody else's takes all rights but to the public.
    return _REACHES.get(value, Reach.PUBLIC) if isinstance(value, str) else Reach.PUBLIC


def _address(url: str) -> IPAddress | None:
    """The address that a URL spells out; None: it has none, or is no URL."""
    try:
        return _address_of(origin_or_empty(url) or url)
    except ValueError:
        return None


@lru_cache(maxsize=4096)  # most are origins
def _address_of(url: str) -> IPAddress | None:
    return literal(urlsplit(url).hostname or "")
