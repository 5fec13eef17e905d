"""The queue beyond this process, as the scheduler sees it.

It is in JOBDIR, or in a state that several workers share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Request


class Aside(NamedTuple):
    """The reason why the crawl does not wait for the requests of a host.

    Attributes:
        seconds: The time until the host is to be looked at again.
        reason: The reason, for messages.
    """

    seconds: float
    reason: str


class Taker(Protocol):
    """The part of the scheduler that receives stored requests, which wait there."""

    @property
    def has_room(self) -> bool:
        """True if more hosts would make the crawl faster."""

    def receive(self, key: int, origin: str, priority: int) -> None:
        """Let a request wait here from now on. `origin`: "" if it has none."""

    def forget(self, host: str) -> list[int]:
        """Forget the stored requests of a host that wait here, and return their keys.

        Requests that are out stay out, and requests that are stored nowhere wait on."""

    def waiting(self, host: str) -> int:
        """Return how many stored requests of a host wait here. All others of the host are out."""

    def aside(self, host: str) -> Aside | None:
        """Return why the crawl waits for no request of a host; None if it waits for one."""


class Queue(Protocol):
    """The requests that are not done. Keys are numbers of this process, meaningless to others.

    `flush` is called regularly. It records the requests that were put, and those that are done.
    Requests found in a response are recorded before the request of this response is, or in one
    transaction with it. If a process is killed, no request is lost, but some may go out twice.

    Attributes:
        setting: The setting by which the operator has named the place, for messages.
        is_shared: True if requests that are put arrive when their host is leased, here or in
            another process. False if they wait here at once.
        has_begun: True if earlier processes may have stored items of the crawl.
        run: The number of the run: 1 at first, one more each time the crawl begins again.
    """

    setting: str
    is_shared: bool
    has_begun: bool

    @property
    def run(self) -> int: ...

    def open(self, spider: Spider) -> Awaitable[None] | None:
        """Begin. If an awaitable is returned, the queue has begun when it was awaited.

        Callbacks and errbacks are stored as names of the spider's methods. PolicyError: the queue
        cannot be used."""

    def begin(self, taker: Taker) -> None:
        """Let the requests that wait here arrive, now and later. PolicyError: it is damaged."""

    def put(self, origin: str, request: Request, fingerprint: bytes | None) -> int | None:
        """Store a request and return its key.

        None: it cannot be stored, and the caller has to keep it. `fingerprint`: None for a request
        that no filter asks for."""

    def is_seen(self, fingerprint: bytes) -> bool:
        """Return True if this process knows of a request with this fingerprint.

        `put` checks fingerprints that this process does not know."""

    def get(self, key: int) -> Request:
        """Return the request, as a new object each time. LookupError: it cannot be read."""

    def mark_through(self, key: int) -> None:
        """Note that the request has left the engine: its callback and the pipelines have ended.

        Its items are not on the disk yet."""

    def mark_done(self, key: int) -> None:
        """Note that the items of a request that is through are on the disk."""

    def mark_seen(self, fingerprint: bytes) -> None:
        """Note that a request that could not be stored is done."""

    def set_aside(self, host: str) -> None:
        """Note that some requests of the host that wait here were set aside.

        `Taker.aside` returns the reason."""

    async def tries(self, origin: str, since: float, due: float, *, here: int) -> int:
        """Return how often in a row the crawl could not fetch the policies of an origin.

        `since`: the time since when the origin fails. `due`: the time of the next try. `here`: how
        often this process failed. Times are seconds since the epoch."""

    def flush(self) -> None:
        """Write the requests that were put and done. OSError: it failed as a whole."""

    @property
    def is_finished(self) -> bool:
        """True if no request waits in other processes, or is out there."""

    def close(self) -> Awaitable[None] | None:
        """Flush a last time, and forget the requests that wait here. OSError: as for `flush`.

        If an awaitable is returned, the queue is closed when it was awaited."""
