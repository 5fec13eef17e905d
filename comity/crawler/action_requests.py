"""The actions that sites request: take-down and re-crawl (ACAP 1.0 section-2.6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Request

from comity.crawler.scrapy_internals import closing, wake
from comity.gate.fetching.fetcher import OriginPolicies, PolicyFetcher
from comity.gate.fetching.reach import Reach
from comity.gate.request.referrals import set_referrer_reach
from comity.gate.run.observer import Observer
from comity.policies import ActionRequest, Agent

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

AT_ONCE = 1000  # priority of the request for a page that is to be crawled again


class Actions:
    """Carries out arranged actions, and reports the others.

    Each action is carried out once for every copy of the file that requests it.

    Attributes:
        enabled: False if this crawl neither carries out nor reports actions.
    """

    def __init__(
        self,
        crawler: Crawler,
        agent: Agent,
        observer: Observer = Observer(),  # noqa: B008  # it has no state
    ) -> None:
        self.enabled = True
        self._crawler = crawler
        self._agent = agent
        self._observer = observer
        self._reported: set[tuple[str, str]] = set()  # origin and action
        self._tasks: set[asyncio.Task[None]] = set()
        crawler.signals.connect(self._spider_idle, signals.spider_idle)

    def looked_up(self, policies: OriginPolicies, fetcher: PolicyFetcher) -> None:
        """Take note that the policies of a site were looked up, and act on its requests."""
        site = policies.site
        requests = site.requests(self._agent) if self.enabled else ()
        if requests:
            self._report(site.origin, [request for request in requests if not request.arranged])
            arranged = [request for request in requests if request.arranged]
            task = asyncio.create_task(self._act(arranged, policies.reach, fetcher))
            self._tasks.add(task)
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        wake(self._crawler)  # the engine may have been idle, waiting for this task

    def _spider_idle(self) -> None:
        if self._tasks:
            raise DontCloseSpider

    async def close(self) -> None:
        await asyncio.gather(*self._tasks)

    def _report(self, origin: str, requests: Iterable[ActionRequest]) -> None:
        for action in dict.fromkeys(request.action for request in requests):
            if (origin, action) not in self._reported:
                self._reported.add((origin, action))
                of_action = [request for request in requests if request.action == action]
                self._count(f"{action}/not-arranged", len(of_action))
                for request in of_action:
                    self._observer.asked_to_act(request)
                logger.info(
                    "%(origin)s asks for %(action)s (%(number)d), %(reason)s. Nothing is done:"
                    " COMITY_ARRANGEMENTS does not name it",
                    {
                        "origin": origin,
                        "action": action,
                        "number": len(of_action),
                        "reason": of_action[0].reason,
                    },
                )

    async def _act(
        self, requests: Iterable[ActionRequest], reach: Reach, fetcher: PolicyFetcher
    ) -> None:
        """Carry out arranged requests. `reach`: the reach of the server that asks."""
        now = datetime.now(UTC)
        for request in requests:
            if request.action == "re-crawl" and closing(self._crawler):
                continue  # the next crawl will be asked for it
            is_new = await fetcher.requests_action(
                request.url, request.action, request.reason.source.sha256, now
            )
            if not is_new:
                continue
            self._count(request.action, 1)
            self._observer.asked_to_act(request)
            logger.info(
                "%(action)s of %(url)s, as %(reason)s",
                {"action": request.action, "url": request.url, "reason": request.reason},
            )
            if request.action == "re-crawl" and not closing(self._crawler):
                assert self._crawler.engine
                self._crawler.engine.crawl(
                    set_referrer_reach(
                        Request(request.url, dont_filter=True, priority=AT_ONCE), reach
                    )
                )

    def _count(self, name: str, number: int) -> None:
        assert self._crawler.stats
        self._crawler.stats.inc_value(f"comity/actions/{name}", number)
