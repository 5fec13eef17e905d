"""What the components of one crawl share. The first component that asks makes it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Request, Response

from comity.crawler.fetcher import PolicyFetcher
from comity.crawler.items import ItemPages
from comity.crawler.options import Options
from comity.crawler.store import PolicyStore
from comity.policies import Decision, Page, PolicyError, Reason, Site, Source, Verdict
from comity.policies.urls import origin_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class Runtime:
    """Options, policies and bookkeeping of one crawl."""

    _of: WeakKeyDictionary[Crawler, Self] = WeakKeyDictionary()

    def __init__(self, crawler: Crawler) -> None:
        try:
            self.options = Options.from_settings(crawler.settings)
        except PolicyError as error:
            raise NotConfigured(str(error)) from None
        self.agent = self.options.agent
        self.policies = PolicyFetcher(crawler, PolicyStore(self.options.store), timeout=self.options.policy_timeout)
        self.pages = ItemPages()
        self._admitted: WeakKeyDictionary[Request, Site] = WeakKeyDictionary()
        self._crawler = crawler
        crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        runtime = cls._of.get(crawler)
        if runtime is None:
            runtime = cls._of[crawler] = cls(crawler)
        return runtime

    async def _close(self) -> None:
        await self.policies.close()

    def known(self, url: str) -> Decision | None:
        """The decision, where the policies of the origin are at hand and fresh; None where they must be fetched first."""
        try:
            origin = origin_of(url)
        except ValueError as error:
            return _refusal("comity.scheme", url, str(error))
        policies = self.policies.known(origin)
        return policies.site.access(self.agent, url) if policies else None

    async def decide(self, url: str) -> Decision:
        """The decision, after the policies of the origin were fetched where needed."""
        decision = self.known(url)
        if decision is None:
            policies = await self.policies.get(origin_of(url))
            decision = policies.site.access(self.agent, url)
        return decision

    def record(self, request: Request, decision: Decision) -> None:
        """Counts the decision, and logs it where it refuses."""
        stats = self._crawler.stats
        assert stats is not None
        rule = decision.reasons[0].rule
        stats.inc_value(f"comity/access/{decision.verdict.value}")
        stats.inc_value(f"comity/access/{decision.verdict.value}/{rule}")
        if decision.verdict is Verdict.DENY:
            logger.info("Refused %(request)s: %(decision)s", {"request": request, "decision": decision})

    def admit(self, request: Request) -> None:
        """Remembers by which policies the request goes out: they govern what comes back, whatever changes meanwhile."""
        policies = self.policies.known(origin_of(request.url))
        if policies is not None:
            self._admitted[request] = policies.site

    async def page(self, response: Response) -> Page | None:
        """What may be done with the response; None where its URL can have no policies."""
        site = self._admitted.get(response.request) if response.request else None
        if site is None or site.origin != _origin_or_none(response.url):
            try:
                site = (await self.policies.get(origin_of(response.url))).site
            except ValueError:
                return None
        headers = [(name, value) for name, values in response.headers.items() for value in values]
        return site.page(self.agent, response.url, status=response.status, headers=headers, body=response.body)


def _origin_or_none(url: str) -> str | None:
    try:
        return origin_of(url)
    except ValueError:
        return None


def _refusal(rule: str, url: str, text: str) -> Decision:
    return Decision(verdict=Verdict.DENY, reasons=(Reason(rule=rule, source=Source(url=url, part="request", text=text)),))
