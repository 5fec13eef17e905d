"""How often each client asked, and how many of its requests are in flight.

A client that keeps to a limit is never refused; one that doesn't is refused what is too much, and a refused request counts
nowhere: who asks too often gets through as often as permitted. Times are seconds since the epoch."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import NamedTuple

from comity.policies.limits import Window

MAX_STAMPS = (
    256  # moments that are kept for a window: for more requests only every k-th, so that too few may be counted, never too many
)
MAX_TOLERANCE = 10  # seconds
SLOT_WAIT = 1  # seconds after which to ask again where too many are in flight; nobody knows when they end


class Limit(NamedTuple):
    """What one file permits in one scope."""

    key: str
    path: str  # of the file
    windows: tuple[Window, ...]
    concurrent: int | None = None  # requests in flight


class TooMany(NamedTuple):
    """Why a request has to wait."""

    rule: str  # "comity.rate" or "comity.concurrent"
    limit: Limit
    stated: str  # what is permitted, in words
    seconds: int  # to wait, at least 1


def client_of(address: str) -> str:
    """Whom an address stands for: itself, or all of its /64 network (IPv6), which one subscriber has."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))
    return address


class _Stamps:
    """When a client made the requests that count for one window."""

    __slots__ = ("_every", "_most", "_requests", "_stamps")

    def __init__(self, window: Window) -> None:
        self._every = -(-window.requests // MAX_STAMPS)
        self._most = window.requests // self._every + 2  # stamps that can matter
        self._requests = 0  # that counted
        self._stamps = array("d")  # of the requests number k, 2k, ..., ascending

    def oldest(self, requests: int, now: float) -> float | None:
        """A moment that is not after that of the request which leaves the window for one more to come in; None: none has to."""
        if self._stamps and self._stamps[-1] > now:  # the clock was set back: nobody knows anything
            self._requests = 0
            del self._stamps[:]
        number = (self._requests + 1 - requests) // self._every
        newer = self._requests // self._every - number
        return self._stamps[-1 - newer] if number > 0 and newer < len(self._stamps) else None

    def add(self, now: float) -> None:
        self._requests += 1
        if self._requests % self._every == 0:
            self._stamps.append(now)
            if len(self._stamps) > 2 * self._most:
                del self._stamps[: -self._most]


class _Client:
    __slots__ = ("in_flight", "stamps")

    def __init__(self) -> None:
        self.stamps: dict[tuple[str, Window], _Stamps] = {}
        self.in_flight: Counter[str] = Counter()


class Clients:
    """All clients of a site; of those that have nothing in flight, at most `max_clients`, the last that asked."""

    def __init__(self, max_clients: int, tolerance: float) -> None:
        """`tolerance`: share of a window's seconds by which its end may be early, as a network moves arrivals."""
        self._max_clients = max_clients
        self._tolerance = tolerance
        self._busy: dict[str, _Client] = {}
        self._idle: OrderedDict[str, _Client] = OrderedDict()  # least recently seen first

    def __len__(self) -> int:
        return len(self._busy) + len(self._idle)

    def claim(self, name: str, limits: Sequence[Limit], now: float) -> TooMany | None:
        """One more request, which counts if it is permitted: None. Then `release` ends it."""
        if not limits:
            return None
        client = self._busy.get(name) or self._idle.pop(name, None) or _Client()
        refused = self._refused(client, limits, now)
        if refused is None:
            for key, window in _windows(limits):
                stamps = client.stamps.get((key, window))
                if stamps is None:
                    stamps = client.stamps[key, window] = _Stamps(window)
                stamps.add(now)
            client.in_flight.update(limit.key for limit in limits if limit.concurrent is not None)
        self._put(name, client)
        return refused

    def release(self, name: str, limits: Sequence[Limit]) -> None:
        """The request that was permitted is over."""
        client = self._busy.get(name)
        if client:
            client.in_flight -= Counter(limit.key for limit in limits if limit.concurrent is not None)
            self._put(name, client)

    def _put(self, name: str, client: _Client) -> None:
        if client.in_flight:
            self._busy[name] = client
            return
        self._busy.pop(name, None)
        self._idle[name] = client
        if len(self._idle) > self._max_clients:
            self._idle.popitem(last=False)

    def _refused(self, client: _Client, limits: Sequence[Limit], now: float) -> TooMany | None:
        """The longest wait."""
        found = [
            TooMany("comity.concurrent", limit, f"requests in flight: at most {limit.concurrent}", SLOT_WAIT)
            for limit in limits
            if limit.concurrent is not None and client.in_flight[limit.key] >= max(1, limit.concurrent)
        ]
        for limit in limits:
            for window in limit.windows:
                stamps = client.stamps.get((limit.key, window))
                oldest = stamps.oldest(window.requests, now) if stamps else None
                early = min(self._tolerance * window.seconds, MAX_TOLERANCE)
                if oldest is not None and window.holds(now) and oldest + window.seconds - early > now:
                    stated = f"requests in {window.seconds:g} s: at most {window.requests}"
                    found.append(TooMany("comity.rate", limit, stated, max(1, ceil(oldest + window.seconds - now))))
        return max(found, key=lambda refused: refused.seconds, default=None)


def _windows(limits: Iterable[Limit]) -> Iterable[tuple[str, Window]]:
    """Each once. A window for no request at all is none: such a request was refused before."""
    return dict.fromkeys((limit.key, window) for limit in limits for window in limit.windows if window.requests > 0)
