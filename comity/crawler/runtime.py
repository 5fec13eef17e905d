"""What the components of one crawl share. The first component that asks makes it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.http import Request, Response
from scrapy.utils.asyncio import is_asyncio_available

from comity.crawler.actions import Actions
from comity.crawler.addresses import Reach
from comity.crawler.budget import Budget
from comity.crawler.fetcher import PolicyFetcher
from comity.crawler.items import ItemPages
from comity.crawler.options import ASYNCIO_REACTOR, Options, stop
from comity.crawler.pace import Pace
from comity.crawler.resources import Resources
from comity.crawler.store import PolicyStore
from comity.policies import Decision, Page, PolicyError, Reason, Site, Source, Verdict
from comity.policies.urls import origin_of
from comity.policies.values import Fetched

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.scheduler import Scheduler

logger = logging.getLogger(__name__)


def open_store(options: Options) -> PolicyStore:
    """SettingsError where it cannot be used."""
    try:
        return PolicyStore(options.store)
    except PolicyError as error:
        stop(str(error))


def _budget(options: Options) -> Budget:
    """Of all crawls that share the store. SettingsError where it cannot be used."""
    try:
        return Budget(options.store.with_name("pace.sqlite"))
    except PolicyError as error:
        stop(str(error))


class Runtime:
    """Options, policies and bookkeeping of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        if not is_asyncio_available():
            stop(f"there is no asyncio loop: set TWISTED_REACTOR to {ASYNCIO_REACTOR}")
        self.options = Options.checked(crawler.settings)
        store = open_store(self.options)
        self.agent = self.options.agent
        self.actions = Actions(crawler, self.agent)
        self.policies = PolicyFetcher(
            crawler,
            store,
            self.agent,
            timeout=self.options.policy_timeout,
            found=lambda site: self.actions.found(site, self.policies),
        )
        self._resources = Resources(crawler, timeout=self.options.policy_timeout, patience=self.options.max_delay)
        self.pace = Pace(crawler, _budget(self.options), min_delay=self.options.min_delay)
        self.scheduler: Scheduler | None = None  # ours, where it is in use
        self.pages = ItemPages()
        self._admitted: WeakKeyDictionary[Request, tuple[str, Site, Decision]] = WeakKeyDictionary()
        self._crawler = crawler
        crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def of(cls, crawler: Crawler) -> Runtime:
        """It lives and dies with the crawler: a table of them would keep every crawler of a long process."""
        runtime: Runtime | None = vars(crawler).get("_comity")
        if runtime is None:
            runtime = vars(crawler)["_comity"] = cls(crawler)
        return runtime

    async def _close(self) -> None:
        await self.actions.close()
        await self.policies.close()
        self.pace.close()

    async def site(self, url: str, led_from: Reach | None = None) -> Site | None:
        """The policies of the URL's origin, fetched where needed; None where it has no origin. Raises ClosingError.

        `led_from`: the reach of the site that leads there, None for what the operator asks for."""
        try:
            origin = origin_of(url)
        except ValueError:
            return None
        policies = self.policies.known(origin) or await self.policies.get(origin, led_from)
        return policies.site

    def judge(self, site: Site | None, url: str) -> Decision:
        """The decision by these policies."""
        return _without_origin(url) if site is None else site.access(self.agent, url)

    def too_slow(self, url: str, wait: float) -> Decision:
        """The refusal of a request that cannot wait in the queue, where its host lets it out in `wait` seconds only."""
        text = f"{wait:.0f} s to wait, at most {self.options.max_delay:g}"
        return Decision(verdict=Verdict.DENY, reasons=(Reason(rule="comity.max-delay", source=Source(url=url, text=text)),))

    def record(self, request: Request, decision: Decision) -> None:
        """Counts the decision, and logs it where it refuses."""
        stats = self._crawler.stats
        assert stats is not None
        rule = decision.reasons[0].rule
        stats.inc_value(f"comity/access/{decision.verdict.value}")
        stats.inc_value(f"comity/access/{decision.verdict.value}/{rule}")
        if decision.verdict is Verdict.DENY:
            logger.info("Refused %(request)s: %(decision)s", {"request": request, "decision": decision})

    def admit(self, request: Request, site: Site, decision: Decision) -> None:
        """Remembers by which policies the request goes out: they govern what comes back, whatever changes meanwhile."""
        self._admitted[request] = (request.url, site, decision)

    async def page(self, response: Response) -> Page | None:
        """What may be done with the response; None where its URL can have no policies. Raises ClosingError."""
        site, decision = await self._governing(response)
        return None if site is None else self._judged(response, site, decision)

    async def taken(self, response: Response, page: Page) -> Page:
        """The page, once something is made of it: when is remembered, and what goes with it is fetched. Raises ClosingError."""
        dated, wanted = page.dated, page.wanted
        if not dated and not wanted:
            return page
        site, decision = await self._governing(response)
        assert site
        first_seen = await self.policies.first_taken(page.url, dated, datetime.now(UTC))
        reach = (await self.policies.get(site.origin)).reach if wanted else Reach.PUBLIC
        resources = await self._resources.get(wanted, page.url, reach)
        return self._judged(response, site, decision, first_seen=first_seen, resources=resources)

    async def _governing(self, response: Response) -> tuple[Site | None, Decision | None]:
        """The policies by which the response is judged, and the decision by which it was asked for."""
        url, site, decision = self._admitted.get(response.request, _NOT_ADMITTED) if response.request else _NOT_ADMITTED
        if url != response.url:  # something else answered than what was asked
            return await self.site(response.url), None
        return site, decision

    def _judged(
        self,
        response: Response,
        site: Site,
        decision: Decision | None,
        *,
        first_seen: Mapping[str, datetime] | None = None,
        resources: Mapping[str, Fetched] | None = None,
    ) -> Page:
        return site.page(
            self.agent,
            response.url,
            status=response.status,
            headers=((name, value) for name, values in response.headers.items() for value in values),
            body=response.body,
            first_seen=first_seen,
            resources=resources,
            access=decision,
        )


_NOT_ADMITTED = ("", None, None)


# Names of data that the operator has, not of sites: there is nobody to ask.
OWN_SCHEMES = ("data", "file", "s3")


def _without_origin(url: str) -> Decision:
    own = urlsplit(url).scheme in OWN_SCHEMES
    reason = Reason(rule="comity.no-site" if own else "comity.scheme", source=Source(url=url, part="request"))
    return Decision(verdict=Verdict.ALLOW if own else Verdict.DENY, reasons=(reason,))
