"""The queue beyond this process, as far as the scheduler knows it: in JOBDIR, or in a state that several workers share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Request


class Aside(NamedTuple):
    """Why the crawl does not wait for the requests of a host."""

    seconds: float  # until the host is to be looked at again
    reason: str


class Taker(Protocol):
    """The scheduler, to which requests arrive: it hands them out."""

    @property
    def has_room(self) -> bool:
        """True where hosts would be asked sooner if there were more of them."""

    def arrived(self, key: int, origin: str, priority: int) -> None:
        """A request waits here from now on. `origin`: "" where it has none."""

    def lost(self, host: str) -> list[int]:
        """Forget the stored requests of a host that wait here, and return their keys. Requests that are out stay out, and
        requests that are stored nowhere wait on."""

    def waiting(self, host: str) -> int:
        """Return how many stored requests of a host wait here. All others of the host are out."""

    def aside(self, host: str) -> Aside | None:
        """All requests of a host that wait here; None where somebody waits for some of them."""


class Queue(Protocol):
    """The requests that are not done. Keys are numbers of this process, and tell nothing to others.

    What is put and done is written by `flush`, again and again. What a request led to is written before, or together with, the
    word that it is done: whatever process is killed, no request is lost, and some may go out twice."""

    setting: str  # by which the operator has named the place, for messages
    is_shared: bool  # what is put arrives when its host is leased, here or in another process; else it waits here at once
    has_begun: bool  # earlier processes may have stored items of the crawl

    def open(self, spider: Spider) -> Awaitable[None] | None:
        """Begin, at once or once the outcome was awaited. Callbacks and errbacks are stored as names of the spider's methods.
        PolicyError where it cannot be used."""

    def begin(self, taker: Taker) -> None:
        """Let what waits here arrive, now and from now on. PolicyError where it is damaged."""

    def put(self, origin: str, request: Request, fingerprint: bytes | None) -> int | None:
        """The key of the request from now on; None where it cannot be stored: then the caller has to keep it. `fingerprint`:
        None for a request that no filter asks for."""

    def is_seen(self, fingerprint: bytes) -> bool:
        """Return whether there was such a request, as far as this process knows. What it does not know `put` finds out."""

    def get(self, key: int) -> Request:
        """The request, as a new object each time. LookupError where it cannot be read."""

    def through(self, key: int) -> None:
        """The request has left the engine: its callback and the pipelines are through. Its items are not on the disk yet."""

    def done(self, key: int) -> None:
        """The items of a request that is through are on the disk."""

    def saw(self, fingerprint: bytes) -> None:
        """A request that could not be stored is done."""

    def set_aside(self, host: str) -> None:
        """Some of the requests of the host that wait here were set aside: `Taker.aside` knows more."""

    async def tries(self, origin: str, since: float, due: float, *, here: int) -> int:
        """Return how often in a row the crawl could not have the policies of an origin. `since`: since when the origin fails.
        `due`: when it is asked again. `here`: how often this process could not."""

    def flush(self) -> None:
        """Write what was put and done. OSError where that fails for now: all of it goes with the next time."""

    @property
    def is_finished(self) -> bool:
        """True where nothing waits in other processes, or is out there."""

    def close(self) -> Awaitable[None] | None:
        """Write a last time, with its OSError, and let go of what waits here: at once, or once the outcome was awaited."""
