"""The gate for requests that our scheduler did not hand out.

Each request is decided on, and waits in place until its host may be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic, time

from comity.gate.fetching.fetcher import PolicyFetcher
from comity.gate.fetching.reach import Reach
from comity.gate.http import Request
from comity.gate.pace.pace import TICK, Pace
from comity.gate.request.access import Access, too_slow
from comity.gate.request.referrals import Referrals
from comity.gate.run.flights import ClosingError
from comity.gate.run.surroundings import Run
from comity.policies import Decision, Verdict


class Gate:
    """The gate for requests that do not come from our scheduler.

    These requests come from media pipelines or from a project's own scheduler, or fetch a resource
    that a permission names.
    """

    def __init__(
        self,
        run: Run,
        policies: PolicyFetcher,
        access: Access,
        referrals: Referrals,
        pace: Pace,
        *,
        max_delay: float,
        hold: Callable[[Request, float], bool],
    ) -> None:
        """Take the parts of the crawl that decide on requests.

        `max_delay`: the maximum seconds that a request may wait. `hold`: called with a request and
        a number of seconds, to give the request back to the scheduler for that time. It returns
        False if the request did not come from the scheduler.
        """
        self._run = run
        self._policies = policies
        self._access = access
        self._referrals = referrals
        self._pace = pace
        self._max_delay = max_delay
        self._hold = hold

    async def wait(
        self, request: Request, referrer_reach: Reach | None, *, in_downloader: bool = True
    ) -> Decision:
        """Decide on the request, and wait until it may go out.

        Return ALLOW when the request is started. Return DENY if it is refused, or would have to
        wait longer than `max_delay`. Return DEFER if the scheduler took it back.
        ClosingError: the crawl ends.

        `referrer_reach`: the reach of the site that leads to the request; None if the operator
        makes it. `in_downloader`: the request goes out through Scrapy's downloader. Otherwise the
        caller calls `Pace.end_and_forget` when it is done.
        """
        access, pace = self._access, self._pace
        while True:
            policies = await self._policies.for_url(request.url, referrer_reach)
            if policies is not None and referrer_reach is None:
                self._referrals.learn(policies)
            decision = access.decide(policies, request)
            if decision.not_before is not None:
                wait = (decision.not_before - datetime.now(UTC)).total_seconds()
                if self._hold(request, wait):
                    return decision
                if wait > self._max_delay:
                    not_before, reasons = decision.not_before, decision.reasons
                    return too_slow(
                        request.url, wait, self._max_delay, not_before=not_before, causes=reasons
                    )
                await self._sleep_until(decision.not_before)
                continue
            if decision.verdict is Verdict.DENY or policies is None:
                return decision
            limiters = pace.limiters(access.agent, request.url, policies.site)
            if (delay := limiters[0].delay(time())) > self._max_delay:
                return too_slow(request.url, delay, self._max_delay)
            began = monotonic()
            too_long = await pace.acquire(
                request, limiters, at_most=self._max_delay, in_downloader=in_downloader
            )
            if too_long is not None:
                not_before = datetime.now(UTC) + timedelta(seconds=too_long)
                return too_slow(request.url, too_long, self._max_delay, not_before=not_before)
            if monotonic() - began < TICK:
                return decision
            # The wait was long, so the site's policies may have changed.
            policies = await self._policies.for_url(request.url, referrer_reach)
            decision = access.decide(policies, request)
            if (
                decision.verdict is Verdict.ALLOW
                and policies
                and pace.limiters(access.agent, request.url, policies.site) == limiters
            ):
                return decision
            pace.free_limiters(request)

    async def _sleep_until(self, not_before: datetime) -> None:
        while (wait := (not_before - datetime.now(UTC)).total_seconds()) > 0:
            if self._run.is_closing:
                raise ClosingError
            await asyncio.sleep(min(wait, TICK))
