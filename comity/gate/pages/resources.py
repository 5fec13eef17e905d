"""Fetch the resources that permissions require to be used or included with a page.

ACAP 1.0 section-2.5.3.2 and section-2.5.5.2.5 define these permissions. Each hop is judged by the
policies of its own site and goes out at that site's pace, like the requests of the crawl."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from comity.bounded import Bounded
from comity.gate.fetching.client import Hop, PolicyClient
from comity.gate.fetching.connection import TransferError
from comity.gate.fetching.freshness import Headers
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.reach import Reach
from comity.gate.fetching.redirects import FinalAnswer, Redirects
from comity.gate.http import PlainRequest
from comity.gate.options import Options
from comity.gate.pace.gate import Gate
from comity.gate.pace.pace import Pace
from comity.gate.request.access import Access
from comity.gate.request.facts import KEY
from comity.gate.run.flights import ClosingError, Flights
from comity.gate.run.observer import Observer
from comity.gate.run.surroundings import Run
from comity.policies import Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.urls import origin_of

MAX_OF_A_PAGE = 4  # resources; a permission that requires more resources cannot be used
MAX_KEPT = 64  # the maximum number of resources in memory
FAILURE_KEPT = 60.0  # seconds until a failed resource is fetched again


class Resources:
    """The most recently used resources. At most one request for a URL is under way."""

    def __init__(
        self,
        run: Run,
        client: PolicyClient,
        access: Access,
        gate: Gate,
        pace: Pace,
        *,
        options: Options,
        back_off: Callable[[str, int, Headers], object],
        observer: Observer,
    ) -> None:
        """Take the parts of the crawl.

        `back_off`: called with the URL, status and header fields of each answer. It pauses the host
        if they say that the host gets too many requests."""
        self._stats = run.stats
        self._client = client
        self._access = access
        self._gate = gate
        self._pace = pace
        self._back_off = back_off
        self._observer = observer
        self._redirects = Redirects(
            client,
            timeout=options.policy_timeout,
            clock=time.time,
            gate=self._hop,
            patience=options.max_delay,
            on_hop=self._on_hop,
        )
        self._fields = (
            {options.purpose_header: ", ".join(options.agent.purposes)}
            if options.purpose_header
            else {}
        )
        self._cache: Bounded[tuple[str, Reach | None], tuple[float, Fetched]] = Bounded(MAX_KEPT)
        self._flights: Flights[Fetched] = Flights(run)

    async def get(self, urls: Iterable[str], page_url: str, reach: Reach) -> dict[str, Fetched]:
        """Return the answers for the first MAX_OF_A_PAGE of the URLs.

        `reach`: the reach of the server of the page. Failures are answers too."""
        first = list(urls)[:MAX_OF_A_PAGE]
        origin = origin_of(page_url)
        resources = await asyncio.gather(
            *(self._get(url, None if origin_of(url) == origin else reach) for url in first)
        )
        return dict(zip(first, resources, strict=True))

    async def close(self) -> None:
        await self._flights.close()

    async def _get(self, url: str, referrer_reach: Reach | None) -> Fetched:
        key = url, referrer_reach
        until, fetched = self._cache.get(key, (0.0, None))
        if fetched is not None and time.time() < until:
            self._cache.move_to_end(key)
            return fetched
        try:
            return await self._flights.wait(
                self._flights.get(key) or self._flights.begin(key, self._fetch(url, referrer_reach))
            )
        except ClosingError:
            return Fetched(status=0, error="the crawl is ending")

    async def _fetch(self, url: str, referrer_reach: Reach | None) -> Fetched:
        async with self._client.server(origin_of(url), referrer_reach, self._count) as server:
            try:
                answer = await self._redirects.ask(url, None, server, self._count)
            except BarredError as error:
                answer = FinalAnswer(Fetched(status=0, url=url, error=str(error)))
        fetched = answer.fetched
        if fetched.oversized:
            fetched = Fetched(status=fetched.status, url=fetched.url, error="it is too large")
        self._cache[url, referrer_reach] = time.time() + (answer.seconds or FAILURE_KEPT), fetched
        return fetched

    @asynccontextmanager
    async def _hop(
        self, url: str, referrer_reach: Reach | None
    ) -> AsyncIterator[Mapping[str, str]]:
        """Wait until the hop may go out, and occupy its host until the hop is closed.

        TransferError: the policies of its site refuse the hop."""
        # Without the session: else a site could lead to pages that only the operator may see.
        request = PlainRequest(url, meta={KEY: {"session": False}})
        self._access.exempt(request)
        try:
            decision = await self._gate.wait(request, referrer_reach, in_downloader=False)
            self._access.record(request, decision)
            if decision.verdict is not Verdict.ALLOW:
                raise TransferError(str(decision))
            yield self._fields
        except ClosingError:
            raise asyncio.CancelledError from None
        finally:
            self._pace.end_and_forget(request)

    def _on_hop(self, url: str, hop: Hop) -> None:
        self._observer.received(url, hop.status)
        self._back_off(url, hop.status, hop.headers)

    def _count(self, name: str, number: int, origin: str) -> None:
        self._stats.inc_value(f"comity/resources/{name}", number)
