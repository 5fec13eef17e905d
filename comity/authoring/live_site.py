"""Fetch the policies and one page of a site, as a crawl of this project would."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

from scrapy.crawler import AsyncCrawlerRunner
from scrapy.http import Request, Response
from scrapy.settings import Settings
from scrapy.utils.project import ENVVAR, get_project_settings

from comity.authoring.source import SiteSource, SourceFile, sort_robots_first
from comity.crawler.crawl import Crawl
from comity.crawler.sites.sources import PolicySpider
from comity.gate.fetching.reach import Reach
from comity.gate.fetching.redirects import REDIRECTS
from comity.gate.fetching.store import PolicyStore
from comity.gate.folder import missing_host
from comity.gate.options import Options
from comity.gate.request.referrals import KEY as REFERRAL
from comity.policies import Agent, Fetched, PolicyError, Verdict
from comity.policies.answers.decision import Source as ReasonSource
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of, typed_url

# The statuses of final answers: all but redirects.
ANSWERS = [status for status in range(200, 600) if status not in REDIRECTS]


def project_agent() -> Agent:
    """Return comity's agent by the settings of the project. PolicyError if they cannot be used."""
    return Options.from_settings(_settings()).agent


def _settings() -> Settings:
    module = os.environ.get(ENVVAR)
    try:
        settings = get_project_settings()
    except Exception as error:
        reason = printable(f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        name = os.environ.get(ENVVAR, "scrapy.cfg")
        raise PolicyError(
            f"the settings of this project ({name}) cannot be used: {reason}. "
            "Mend them, or call the command elsewhere."
        ) from None
    finally:
        # Scrapy has set the variable. Every program that this process starts would use the project.
        if module is None:
            os.environ.pop(ENVVAR, None)
    settings.setdict(
        {
            "COMITY_ELEMENTS": "tag",  # the page is needed as the server sent it
            "COMITY_GC": False,  # the process may belong to an editor
            "COMITY_SKIP_UNUSABLE": False,  # the page is explained, not used
            "DOWNLOAD_HANDLERS": {},
            # A reactor starts once only, and only in the main thread.
            "TWISTED_REACTOR_ENABLED": False,
        },
        priority="cmdline",
    )
    return settings


class PageSpider(PolicySpider):
    """Fetch the current policies of one site, and one page if they permit it."""

    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        **PolicySpider.custom_settings,
        "DOWNLOAD_HANDLERS": {},
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.page: SourceFile | None = None
        self.notes: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        crawl = Crawl.of(self.crawler)
        crawl.policies.renew_before = time.time()  # the publisher has just changed the files
        async for request in super().start():
            yield request
        if self.site is None:
            return
        decision = self.site.access(crawl.agent, self.url)
        if decision.verdict is Verdict.ALLOW:
            meta: dict[str, Any] = {"handle_httpstatus_list": ANSWERS, "dont_retry": True}
            if self.referrer_reach is not None:
                meta[REFERRAL] = self.referrer_reach.value
            yield Request(
                self.url,
                meta=meta,
                callback=self.parse,
                errback=self.note_failure,
                dont_filter=True,
            )
        else:
            when = f" until {decision.not_before:%Y-%m-%d %H:%M} UTC" if decision.not_before else ""
            citation = _citation(decision.reasons[0].source)
            self.notes.append(
                f"{self.url} was not fetched: it is refused to {crawl.agent.token}{when} "
                f"by {citation}"
            )

    def parse(self, response: Response, **kwargs: Any) -> None:
        fields = tuple(
            (name, value) for name, values in response.headers.items() for value in values
        )
        page = Fetched(
            status=response.status,
            headers=fields,
            body=response.body,
            url=response.url,
            fetched_at=datetime.now(UTC),
        )
        self.page = SourceFile(self.url, self.url, page)

    def note_failure(self, failure: Any) -> None:
        reason = (
            printable(str(failure.value).encode("utf-8", "replace")) or type(failure.value).__name__
        )
        self.notes.append(f"{self.url} could not be fetched: {reason}")


def _citation(source: ReasonSource) -> str:
    position = f"{source.url}:{source.line}" if source.line else source.url
    return f"{position}: {source.text}" if source.text else position


def fetch(url: str, referrer_reach: Reach | None) -> SiteSource:
    try:
        origin = origin_of(typed_url(url))
    except ValueError as error:
        raise PolicyError(str(error)) from None
    if not urlsplit(url).path:
        url += "/"
    settings = _settings()
    # Raise PolicyError before the crawl if its store cannot be used.
    PolicyStore(Options.from_settings(settings).store).close()
    logging.basicConfig(level=logging.ERROR)  # no effect if the program has a log of its own
    spider = asyncio.run(_crawl(url, referrer_reach, settings))
    if spider is None or spider.policies is None:
        raise PolicyError(f"the policies of {origin} cannot be fetched: the crawl did not start")
    policies = spider.policies
    if policies.barred_for is not None:
        raise PolicyError(f"{origin} may not be asked: {policies.error}")
    site = policies.site
    if problem := missing_host(site):
        raise PolicyError(problem)
    files = (
        SourceFile(of_url, of_url, fetched)
        for of_url, fetched in site.files.items()
        if fetched.status != 404
    )
    pages = (spider.page,) if spider.page else ()
    return SiteSource(
        origin,
        site,
        sort_robots_first(origin, files),
        pages,
        tuple(spider.notes),
        policies.server_reach,
    )


async def _crawl(url: str, referrer_reach: Reach | None, settings: Settings) -> PageSpider | None:
    crawler = AsyncCrawlerRunner(settings).create_crawler(PageSpider)
    await crawler.crawl_async(url=url, referrer_reach=referrer_reach)
    return crawler.spider if isinstance(crawler.spider, PageSpider) else None
