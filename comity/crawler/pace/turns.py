"""The way of a request that no scheduler of ours handed out: it is judged, and waits until its host may be asked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from time import monotonic, time
from typing import TYPE_CHECKING

from scrapy.http import Request

from comity.crawler.fetching.reach import Reach
from comity.crawler.flights import ClosingError
from comity.crawler.pace.limiter import TICK
from comity.crawler.scrapy_internals import closing
from comity.policies import Decision, Site, Verdict

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.crawl import Runtime


class Turns:
    """The turns of requests of media pipelines, of a project's own scheduler, and for what permissions ask to be used."""

    def __init__(self, crawler: Crawler, runtime: Runtime) -> None:
        self._crawler = crawler
        self._runtime = runtime
        self._max_delay = runtime.options.max_delay

    async def wait(self, request: Request, led_from: Reach | None, *, in_downloader: bool = True) -> tuple[Decision, Site | None]:
        """Judges the request, and waits until it may go out. DEFER where the scheduler took it back. Raises ClosingError.

        `led_from`: the reach of the site that leads to it, None for what the operator asks for. `in_downloader`: the request goes
        out through Scrapy's downloader; else the caller says by `Pace.through` when it is done."""
        pace = self._runtime.pace
        while True:
            policies = await self._runtime.policies_of(request.url, led_from)
            if policies is not None and led_from is None:
                self._runtime.referrals.learn(policies)
            decision, site = self._runtime.decide(policies, request), policies.site if policies else None
            if decision.not_before is not None:
                wait = (decision.not_before - datetime.now(UTC)).total_seconds()
                if self._runtime.scheduler is not None and self._runtime.scheduler.hold(request, wait):
                    return decision, site
                if wait > self._max_delay:
                    return self._runtime.too_slow(request.url, wait), site
                await self._sleep_until(decision.not_before)
                continue
            if decision.verdict is Verdict.DENY or site is None:
                return decision, site
            units = pace.units(self._runtime.agent, request.url, site)
            if (delay := units[0].delay(time())) > self._max_delay:
                return self._runtime.too_slow(request.url, delay), site
            began = monotonic()
            too_long = await pace.turn(request, decision, site, units, at_most=self._max_delay, in_downloader=in_downloader)
            if too_long is not None:
                return self._runtime.too_slow(request.url, too_long), site
            if monotonic() - began < TICK:
                return decision, site
            # The wait was long: what the site says by now counts.
            policies = await self._runtime.policies_of(request.url, led_from)
            decision, site = self._runtime.decide(policies, request), policies.site if policies else None
            if decision.verdict is Verdict.ALLOW and site and pace.units(self._runtime.agent, request.url, site) == units:
                return decision, site
            pace.release(request)

    async def _sleep_until(self, not_before: datetime) -> None:
        while (wait := (not_before - datetime.now(UTC)).total_seconds()) > 0:
            if closing(self._crawler):
                raise ClosingError
            await asyncio.sleep(min(wait, TICK))
