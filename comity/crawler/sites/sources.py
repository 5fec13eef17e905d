"""The policies of one site for the commands: fetched as in a crawl, or read from a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from comity.crawler.crawl import Crawl
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.fetching.reach import Reach
from comity.gate.run.flights import ClosingError
from comity.policies import Site


class CommandSpider(Spider):
    """A spider that a command runs.

    Its settings switch off everything that handles pages and items, even if it was switched on in
    the arguments of the command."""

    # Scrapy reads it from the class only.
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "ADDONS": {"comity.crawler.addon.Addon": 100},
        "COMITY_ITEMS": "",
        "COMITY_METRICS": "",
        "COMITY_PROGRESS": "off",
        "COMITY_REPORT": "",  # the report of the last crawl stays
        "COMITY_STATE": "",  # the command is not a worker of a crawl
        "EXTENSIONS": {},
        "FEEDS": {},
        "ITEM_PIPELINES": {},
        "JOBDIR": None,
        "SPIDER_MIDDLEWARES": {},
    }

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        # Above the command line, because Scrapy puts the settings of the process over those of a
        # crawler once more.
        settings.setdict(cls.custom_settings, priority=SETTINGS_PRIORITIES["cmdline"] + 1)


class PolicySpider(CommandSpider):
    """Fetches the policies of one site, and no page.

    Attributes:
        url: A URL of the site.
        referrer_reach: The reach of the site whose link the request is to be treated as; None: the
            operator's own request, which may go anywhere.
        policies: The policies, once they are fetched; else None.
    """

    name = "policy"
    url: str
    referrer_reach: Reach | None = None
    policies: OriginPolicies | None = None

    @property
    def site(self) -> Site | None:
        return self.policies.site if self.policies else None

    async def start(self) -> AsyncIterator[Any]:
        crawl = Crawl.of(self.crawler)
        crawl.actions.enabled = False
        try:
            self.policies = await crawl.policies.for_url(self.url, self.referrer_reach)
        except ClosingError:  # Ctrl-C
            return
        if False:  # makes this function a generator
            yield
