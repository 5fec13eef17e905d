"""Counts of requests: how often each client asked, and how many of its requests are in flight.

A client that keeps to a limit is never refused; one that doesn't is refused what is too much, and a refused request counts
nowhere: who asks too often gets through as often as permitted. Times are seconds since the epoch."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import NamedTuple, Protocol

from comity.bounded import Bounded
from comity.guard.incoming import Incoming
from comity.policies.syntax.windows import Window

MAX_STAMPS = 256  # moments that are kept for a window: for more requests only every k-th, so that too few may be counted, never too many
SLACK = 1.0  # seconds; a clock that is behind by no more waits for what was counted last
SLOT_WAIT = (
    1  # seconds after which to ask again where too many are in flight; nobody knows when they end
)


class Limit(NamedTuple):
    """The limits of one file in one scope."""

    key: str
    path: str  # of the file
    windows: tuple[Window, ...]
    concurrent: int | None = None  # requests in flight
    tolerance: float = 0.0  # share of its requests by which a window may hold more

    def joined(self, other: Limit) -> Limit:
        """Return what holds where both do. `other`: of the same key."""
        return self._replace(windows=tuple(dict.fromkeys(self.windows + other.windows)))


class TooMany(NamedTuple):
    """The limit for which a request has to wait."""

    rule: str  # "comity.rate", "comity.concurrent" or "comity.uncounted"
    limit: Limit
    permitted: str  # in words
    seconds: int  # to wait, at least 1


class Counts(Protocol):
    """A counter of requests: of this process (`Clients`), or of several (`SharedClients`). Never asked by two threads at
    a time."""

    def claim(self, name: str, limits: Sequence[Limit], now: float) -> TooMany | None:
        """Count one more request of a client, if all the limits permit it: None. Then `release` ends it."""

    def release(self, name: str, limits: Sequence[Limit]) -> None:
        """End the request that was permitted."""


# RFC 7239 section-6: an address with the port, as some proxies forward it; each connection has another one.
_WITH_PORT = re.compile(r"\s*+(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]+)?\s*+")


def client_of(address: str) -> str:
    """Return the client that an address stands for: itself, or all of its /64 network (IPv6), which one subscriber has."""
    if match := _WITH_PORT.fullmatch(address):
        address = match[1] or match[2] or ""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))
    return address


def behind_proxies(number: int = 1) -> Callable[[Incoming], str]:
    """Return the argument `client` of a guard behind so many proxies, one behind the other.

    Each of the proxies adds the address of its peer to X-Forwarded-For. What stands before these
    addresses comes from the client, who can write anything."""

    def client(incoming: Incoming) -> str:
        addresses = [address.strip() for address in incoming.field("x-forwarded-for").split(",")]
        forwarded = addresses[-number] if len(addresses) >= number else ""
        return client_of(forwarded or incoming.peer)

    return client


class Stamps:
    """The moments of a client's requests under one key: of every one, or of every k-th, for windows of as many as that takes."""

    __slots__ = ("length", "moments", "requests", "stride")

    def __init__(
        self, stride: int, length: int = 0, requests: int = 0, moments: Iterable[float] = ()
    ) -> None:
        self.stride = stride  # k
        self.length = length  # moments that can matter
        self.requests = requests  # that counted
        self.moments = array("d", moments)  # of the requests number k, 2k, ..., ascending

    def reach(self, requests: int) -> None:
        """Keep as many as a window for so many requests needs."""
        self.length = max(self.length, requests // self.stride + 2)

    def oldest(self, requests: int) -> float | None:
        """A moment that is not after that of the request which leaves the window for one more to come in; None: none has to."""
        number = (self.requests + 1 - requests) // self.stride
        newer = self.requests // self.stride - number
        return self.moments[-1 - newer] if number > 0 and newer < len(self.moments) else None

    def add(self, now: float) -> None:
        self.requests += 1
        if self.requests % self.stride == 0:
            self.moments.append(now)
            if len(self.moments) > 2 * self.length:
                del self.moments[: -self.length]

    def set_back(self, now: float) -> None:
        """Take what lies in the future, as the clock was set back, for now."""
        for index in range(len(self.moments) - 1, -1, -1):
            if self.moments[index] <= now:
                break
            self.moments[index] = now


class Client:
    """The counts of one client."""

    __slots__ = ("in_flight", "stamps")

    def __init__(self) -> None:
        self.stamps: dict[tuple[str, int], Stamps] = {}  # by the key of the limit and k
        self.in_flight: Counter[str] = Counter()  # by the key of the limit

    def claim(self, limits: Sequence[Limit], now: float) -> TooMany | None:
        """Count one more request, if it is permitted: None."""
        now = self._not_before(now)
        refused = self._refused(limits, now)
        if refused is None:
            for limit in limits:
                for window in limit.windows:
                    requests, stride = _capacity(limit, window)
                    self.stamps.setdefault((limit.key, stride), Stamps(stride)).reach(requests)
            keys = {limit.key for limit in limits}
            for (key, _), stamps in self.stamps.items():
                if key in keys:
                    stamps.add(now)
            self.in_flight.update(_concurrent(limits))
        return refused

    def release(self, limits: Sequence[Limit]) -> None:
        self.in_flight -= Counter(_concurrent(limits))

    def _not_before(self, now: float) -> float:
        last = max(
            (stamps.moments[-1] for stamps in self.stamps.values() if stamps.moments), default=now
        )
        if now < last <= now + SLACK:
            return last
        for stamps in self.stamps.values():
            stamps.set_back(now)
        return now

    def _refused(self, limits: Sequence[Limit], now: float) -> TooMany | None:
        """The longest wait."""
        waits = [
            TooMany(
                "comity.concurrent",
                limit,
                f"requests in flight: at most {limit.concurrent}",
                SLOT_WAIT,
            )
            for limit in limits
            if limit.concurrent is not None
            and self.in_flight[limit.key] >= max(1, limit.concurrent)
        ]
        for limit in limits:
            for window in limit.windows:
                requests, stride = _capacity(limit, window)
                stamps = self.stamps.get((limit.key, stride))
                oldest = stamps.oldest(requests) if stamps else None
                if oldest is not None and window.holds(now) and oldest + window.seconds > now:
                    permitted = f"requests in {window.seconds:g} s: at most {window.requests}"
                    waits.append(
                        TooMany(
                            "comity.rate",
                            limit,
                            permitted,
                            max(1, ceil(oldest + window.seconds - now)),
                        )
                    )
        return max(waits, key=lambda wait: wait.seconds, default=None)


class Clients:
    """All clients of a site, counted in this process; of those that have nothing in flight, at most `max_clients`, the last that
    asked."""

    def __init__(self, max_clients: int) -> None:
        self._busy: dict[str, Client] = {}
        self._idle: Bounded[str, Client] = Bounded(max_clients)  # least recently seen first

    def __len__(self) -> int:
        return len(self._busy) + len(self._idle)

    def claim(self, name: str, limits: Sequence[Limit], now: float) -> TooMany | None:
        if not limits:
            return None
        client = self._busy.get(name) or self._idle.pop(name, None) or Client()
        refused = client.claim(limits, now)
        self._put(name, client)
        return refused

    def release(self, name: str, limits: Sequence[Limit]) -> None:
        client = self._busy.get(name)
        if client:
            client.release(limits)
            self._put(name, client)

    def _put(self, name: str, client: Client) -> None:
        if client.in_flight:
            self._busy[name] = client
            return
        self._busy.pop(name, None)
        self._idle[name] = client


def _capacity(limit: Limit, window: Window) -> tuple[int, int]:
    """Return how many requests the window may hold, and k: of every k-th of them the moment is kept.

    The k - 1 that may be too many are within the tolerance where there is one."""
    requests = max(1, window.requests)
    tolerated = requests + int(requests * limit.tolerance)
    stride = -(-tolerated // MAX_STAMPS)
    return max(requests, tolerated - stride + 1), stride


def _concurrent(limits: Sequence[Limit]) -> Iterator[str]:
    return (limit.key for limit in limits if limit.concurrent is not None)
