"""Counts of requests: the recent requests of each client, and its requests in flight.

A client within the limits is never refused. If a client exceeds the limits, only the excess
requests are refused, because refused requests do not count: as many requests pass as the limits
permit. Times are seconds since the epoch."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import NamedTuple, Protocol

from comity.bounded import Bounded
from comity.forks import call_in_forks
from comity.guard.incoming import Incoming
from comity.policies.syntax.windows import Window

# The maximum number of moments that are kept for a window. If the window permits more requests,
# only the moment of every k-th request is kept. So the guard may count too few requests in the
# window, but never too many.
MAX_STAMPS = 256
# Seconds. If the clock is at most this much before the last request, the time of the last request
# is used instead of the clock. If it is more, the clock was set back.
SLACK = 1.0
SLOT_WAIT = 1  # seconds to wait if too many requests are in flight; their ends are unknown


class ClientLimit(NamedTuple):
    """The limits of one file in one scope."""

    key: str
    """The name of the limit. Limits with equal keys are counted together."""
    path: str
    """The path of the file."""
    windows: tuple[Window, ...]
    """The numbers of requests that may come in a time."""
    concurrent: int | None = None
    """The greatest number of requests in flight. None: there is no such limit."""
    tolerance: float = 0.0
    """The share of its requests by which a window may be exceeded."""

    def join(self, other: ClientLimit) -> ClientLimit:
        """Return this limit with the windows of `other` added. `other` must have the same key."""
        return self._replace(windows=tuple(dict.fromkeys(self.windows + other.windows)))


class TooMany(NamedTuple):
    """A limit that a request exceeds."""

    rule: str
    """"comity.rate", "comity.concurrent" or "comity.uncounted"."""
    limit: ClientLimit
    """The limit that the request exceeds."""
    permitted: str
    """The limit in words."""
    seconds: int
    """The seconds to wait, at least 1."""


class RequestCounts(Protocol):
    """A counter of requests for this process (`Clients`) or for several (`SharedClients`).

    The guard calls it in one thread at a time."""

    def claim(self, name: str, limits: Sequence[ClientLimit], now: float) -> TooMany | None:
        """Count one more request of a client, if all limits permit the request.

        Return None if the request was counted. The caller must call `release` when the request
        ends. Return the exceeded limit if the request was not counted."""

    def release(self, name: str, limits: Sequence[ClientLimit]) -> None:
        """End a request that `claim` counted. `name` and `limits`: the arguments of `claim`."""


# RFC 7239 section-6: an address with a port, as some proxies forward it. The port differs between
# connections.
_WITH_PORT = re.compile(r"\s*+(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]+)?\s*+")


def client_of(address: str) -> str:
    """Return the client for an address: the address itself, or its /64 network for IPv6.

    One subscriber has a whole /64 network."""
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
    """Return the argument `client` of Guard for a guard behind a chain of `number` proxies.

    Each proxy appends the address of its peer to X-Forwarded-For, so the last `number` addresses
    are from the proxies, and the first of these is the client's. Addresses before it are ignored,
    because the client can write anything there."""

    def client(incoming: Incoming) -> str:
        addresses = [address.strip() for address in incoming.field("x-forwarded-for").split(",")]
        forwarded = addresses[-number] if len(addresses) >= number else ""
        return client_of(forwarded or incoming.peer)

    return client


class Stamps:
    """The moments of a client's requests under one key: of every request, or of every k-th.

    k depends on the number of requests in the window."""

    __slots__ = ("length", "moments", "requests", "stride")

    def __init__(
        self, stride: int, length: int = 0, requests: int = 0, moments: Iterable[float] = ()
    ) -> None:
        self.stride = stride  # k
        self.length = length  # moments that may still matter
        self.requests = requests  # requests that were counted
        self.moments = array("d", moments)  # moments of the requests k, 2k, ..., ascending

    def reach(self, requests: int) -> None:
        """Keep enough moments for a window of this many requests."""
        self.length = max(self.length, requests // self.stride + 2)

    def oldest(self, requests: int) -> float | None:
        """Return the moment that must be outside the window before the next request may pass.

        `requests`: the capacity of the window. The moment is that of the request so many requests
        before the next one, or if only every k-th moment is kept, of an earlier one. None if the
        window is not full."""
        number = (self.requests + 1 - requests) // self.stride
        newer = self.requests // self.stride - number
        return self.moments[-1 - newer] if number > 0 and newer < len(self.moments) else None

    def add(self, now: float) -> None:
        """Add a request."""
        self.requests += 1
        if self.requests % self.stride == 0:
            self.moments.append(now)
            if len(self.moments) > 2 * self.length:
                del self.moments[: -self.length]

    def set_back(self, now: float) -> None:
        """Set moments in the future to now, after the clock was set back."""
        for index in range(len(self.moments) - 1, -1, -1):
            if self.moments[index] <= now:
                break
            self.moments[index] = now


class CountedClient:
    """The counts of one client."""

    __slots__ = ("in_flight", "stamps")

    def __init__(self) -> None:
        self.stamps: dict[tuple[str, int], Stamps] = {}  # (key of the limit, k) -> moments
        self.in_flight: Counter[str] = Counter()  # key of the limit -> requests

    def claim(self, limits: Sequence[ClientLimit], now: float) -> TooMany | None:
        """Count one more request and return None, if the limits permit the request.

        Otherwise return the exceeded limit with the longest wait."""
        now = self._not_before(now)
        refused = self._exceeded_limit(limits, now)
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

    def release(self, limits: Sequence[ClientLimit]) -> None:
        """End a request that was counted."""
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

    def _exceeded_limit(self, limits: Sequence[ClientLimit], now: float) -> TooMany | None:
        """Return the exceeded limit with the longest wait. None if no limit is exceeded."""
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
    """All clients of a site, counted in this process.

    All clients with requests in flight are kept. Of the other clients, the `max_clients` with the
    most recent activity are kept."""

    def __init__(self, max_clients: int) -> None:
        call_in_forks(self._forget_in_flight)
        self._busy: dict[str, CountedClient] = {}
        self._idle: Bounded[str, CountedClient] = Bounded(
            max_clients
        )  # the least recent comes first

    def __len__(self) -> int:
        return len(self._busy) + len(self._idle)

    def claim(self, name: str, limits: Sequence[ClientLimit], now: float) -> TooMany | None:
        if not limits:
            return None
        client = self._busy.get(name) or self._idle.pop(name, None) or CountedClient()
        refused = client.claim(limits, now)
        self._put(name, client)
        return refused

    def release(self, name: str, limits: Sequence[ClientLimit]) -> None:
        client = self._busy.get(name)
        if client:
            client.release(limits)
            self._put(name, client)

    def _forget_in_flight(self) -> None:
        """Forget the requests in flight. They are those of the parent process."""
        for name, client in self._busy.items():
            client.in_flight.clear()
            self._idle[name] = client
        self._busy.clear()

    def _put(self, name: str, client: CountedClient) -> None:
        if client.in_flight:
            self._busy[name] = client
            return
        self._busy.pop(name, None)
        self._idle[name] = client


def _capacity(limit: ClientLimit, window: Window) -> tuple[int, int]:
    """Return the number of requests at which the window is full, and k.

    The moment of every k-th request is kept. So up to k - 1 requests more than this number may
    pass. The returned number is lower than the tolerated one by k - 1, but at least the limit: only
    with a tolerance below k - 1 requests may more pass than are tolerated."""
    requests = max(1, window.requests)
    tolerated = requests + int(requests * limit.tolerance)
    stride = -(-tolerated // MAX_STAMPS)
    return max(requests, tolerated - stride + 1), stride


def _concurrent(limits: Sequence[ClientLimit]) -> Iterator[str]:
    return (limit.key for limit in limits if limit.concurrent is not None)
