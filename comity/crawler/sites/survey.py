"""The policies of many origins, and no pages: many origins at once, but one per host at a time.

If the robots.txt of an origin cannot be fetched, the survey tries again. It gives up when no tries
are left, or when the origin asks for a long wait. Memory is bounded for any number of origins:
those to try again are in a temporary file. Files that any process has fetched before are in the
policy store, and are not requested again while they are fresh."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from comity.bounded import Bounded
from comity.crawler.crawl import Crawl
from comity.crawler.scrapy_internals import closing
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.files import ORIGINS_AT_ONCE
from comity.gate.run.flights import ClosingError
from comity.policies.syntax.urls import host_name

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

MAX_SEEN = 100_000  # origins that are remembered; the store knows the answers of the others
READ_AHEAD = 100  # origins that are read at a time, as reading may block
# Seconds until an origin may be asked again. An origin that wants to be left alone for longer is
# given up.
MAX_WAIT = 60.0
LOOK = 0.5  # seconds between two looks whether the crawl is ending


@dataclass(slots=True, eq=False)
class _Host:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    askers: int = 0


class Survey:
    """One run over a list of origins.

    Attributes:
        done: The number of origins whose policies were fetched, or that were given up.
        unreachable: The number of origins among them that were given up.
    """

    def __init__(
        self,
        crawler: Crawler,
        *,
        tries: int = 1,
        renew_before: float = 0.0,
        on_outcome: Callable[[str, OriginPolicies], object] = lambda origin, policies: None,
    ) -> None:
        """`tries`: how often an origin is asked at most.

        `renew_before`: seconds since the epoch; copies that were confirmed earlier are requested
        again, even if they are fresh. `on_outcome`: is called with each origin and its policies."""
        self.done = 0
        self.unreachable = 0
        self._crawler = crawler
        self._tries = tries
        self._on_outcome = on_outcome
        crawl = Crawl.of(crawler)
        crawl.actions.enabled = False
        self._policies = crawl.policies
        self._policies.renew_before = renew_before
        self._hosts: dict[str, _Host] = {}  # hosts that are being asked

    async def run(self, origins: Iterator[str]) -> None:
        """Fetch the policies of `origins`, which may repeat.

        ClosingError: the crawl ends early. Errors of `origins` are raised too."""
        waiting = await self._round(_new(origins), is_last=self._tries == 1)
        for number in range(2, self._tries + 1):
            with waiting:
                if not waiting.tell():
                    return
                waiting.seek(0)
                logger.info("Origins whose policies could not be fetched are asked again")
                waiting = await self._round(_due(waiting), is_last=number == self._tries)
        waiting.close()

    async def _round(self, origins: Iterator[tuple[str, float]], *, is_last: bool) -> IO[str]:
        """Ask each origin at its time. Return a file of the origins to ask again, and when."""
        slots = asyncio.Semaphore(ORIGINS_AT_ONCE)
        again = TemporaryFile("w+", encoding="ascii")  # noqa: SIM115  # `run` closes it

        async def ask(origin: str, due: float) -> None:
            try:
                await self._sleep(due)
                policies = await self._get(origin)
                if (
                    policies.unreachable
                    and not is_last
                    and policies.fresh_until - time.time() <= MAX_WAIT
                ):
                    print(origin, policies.fresh_until, file=again)
                else:
                    self._tell(origin, policies)
            finally:
                slots.release()

        try:
            async with asyncio.TaskGroup() as tasks:
                while some := await asyncio.to_thread(lambda: list(islice(origins, READ_AHEAD))):
                    for origin, due in some:
                        await slots.acquire()
                        tasks.create_task(ask(origin, due))
        except BaseException as error:
            again.close()
            if isinstance(error, ExceptionGroup):
                raise next(
                    (cause for cause in error.exceptions if not isinstance(cause, ClosingError)),
                    ClosingError(),
                ) from None
            raise
        return again

    async def _get(self, origin: str) -> OriginPolicies:
        """Return the policies of an origin. Only one origin of a host is asked at a time."""
        name = host_name(origin)
        host = self._hosts.setdefault(name, _Host())
        host.askers += 1
        try:
            async with host.lock:
                return await self._policies.get(origin)
        finally:
            host.askers -= 1
            if not host.askers:
                del self._hosts[name]

    async def _sleep(self, until: float) -> None:
        """Wait until a time in seconds since the epoch. ClosingError: the crawl ends meanwhile."""
        while (seconds := until - time.time()) > 0:
            if closing(self._crawler):
                raise ClosingError
            await asyncio.sleep(min(seconds, LOOK))

    def _tell(self, origin: str, policies: OriginPolicies) -> None:
        self.done += 1
        self.unreachable += policies.unreachable
        self._on_outcome(origin, policies)


def _new(origins: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Yield each origin once, as far as it is remembered, with 0.0: it may be asked at once."""
    seen: Bounded[str, None] = Bounded(MAX_SEEN)
    for origin in origins:
        if origin not in seen:
            seen[origin] = None
            yield origin, 0.0


def _due(waiting: IO[str]) -> Iterator[tuple[str, float]]:
    for line in waiting:
        origin, due = line.split()
        yield origin, float(due)
