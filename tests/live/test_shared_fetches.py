"""Crawls of one process ask each server once, and none of them waits for, or takes anything from, another one."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.http import Request

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.run.flights import ClosingError
from comity.policies.formats import WELL_KNOWN

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Serve

Crawl = Callable[..., "Crawled"]

RULES = "User-agent: *\nDisallow: /private\n"


class Asks(Spider):
    """Asks for the policies of a site, and goes on or ends when it is told to."""

    name = "asks"
    url = ""
    verdict = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.has_begun = asyncio.Event()

    async def start(self) -> AsyncIterator[Request]:
        crawl = OwnCrawl.of(self.crawler)
        asking = asyncio.create_task(crawl.policies.get("/".join(self.url.split("/")[:3])))
        while not crawl.policies._files._look_ups:  # noqa: ASYNC110  # nobody tells when it is under way
            await asyncio.sleep(0)
        self.has_begun.set()
        try:
            policies = await asking
        except ClosingError:
            self.verdict = "the crawl ends"
            return
        self.verdict = policies.site.access(crawl.agent, self.url).verdict.value
        if False:
            yield  # what makes it a generator


class Together(Spider):
    """Runs two crawls of the one above."""

    name = "together"
    url = ""
    release = ""  # URL that lets the server answer
    ends_first = -1  # number of the crawl that ends before the server answers
    other_store = ""  # of the second one

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        names = (
            "ADDONS",
            "COMITY_AGENT",
            "COMITY_STORE",
            "COMITY_POLICY_TIMEOUT",
            "TWISTED_REACTOR_ENABLED",
        )
        settings = {name: self.settings[name] for name in names}
        crawlers: list[Crawler] = []
        crawls = []
        for store in (settings["COMITY_STORE"], self.other_store or settings["COMITY_STORE"]):
            runner = AsyncCrawlerRunner(settings | {"COMITY_STORE": store})
            crawlers.append(runner.create_crawler(Asks))
            crawls.append(asyncio.ensure_future(runner.crawl(crawlers[-1], url=self.url)))
            while not isinstance(crawlers[-1].spider, Asks):  # noqa: ASYNC110  # nobody tells when there is one
                await asyncio.sleep(0)
            await crawlers[-1].spider.has_begun.wait()
        if self.ends_first >= 0:
            engine = crawlers[self.ends_first].engine
            assert engine
            await engine.close_spider_async(reason="enough")
            await asyncio.wait([crawls[self.ends_first]])
        await asyncio.to_thread(urllib.request.urlopen, self.release)
        await asyncio.gather(*crawls)
        for crawler in crawlers:
            assert isinstance(crawler.spider, Asks)
            assert crawler.stats
            stats = crawler.stats.get_stats()
            yield {
                "verdict": crawler.spider.verdict,
                "counts": {
                    name: stats.get(f"comity/policies/{name}", 0)
                    for name in ("fetched", "requests", "shared")
                },
            }


def slow_site(serve: Serve) -> Any:
    """It answers when /release was asked for."""
    release = threading.Event()

    def robots(handler: Any) -> Any:
        release.wait(30)
        return serve.Answer(RULES)

    def let_go(handler: Any) -> Any:
        release.set()
        return serve.Answer("")

    return serve({"/robots.txt": robots, "/release": let_go})


@pytest.mark.requirement("RFC-5")
def test_two_crawls_ask_a_server_once(serve: Serve, crawl: Crawl) -> None:
    """Its statistics are those of the first one."""
    site = slow_site(serve)
    crawled = crawl(
        Together, {"ADDONS": {}}, url=site.url("/private"), release=site.url("/release")
    )
    assert [item["verdict"] for item in crawled.items] == ["deny", "deny"], crawled.log
    assert [item["counts"] for item in crawled.items] == [
        {"fetched": len(WELL_KNOWN), "requests": len(WELL_KNOWN), "shared": 0},
        {"fetched": 0, "requests": 0, "shared": 1},
    ]
    assert sorted(site.paths) == ["/release", "/robots.txt"]


@pytest.mark.requirement("RFC-5", "SEC-6")
@pytest.mark.parametrize("number", [0, 1])
def test_a_crawl_that_ends_takes_nothing_from_the_other(
    serve: Serve, crawl: Crawl, number: int
) -> None:
    """And it ends before the server has answered."""
    site = slow_site(serve)
    settings = {"ADDONS": {}, "COMITY_POLICY_TIMEOUT": 60}
    crawled = crawl(
        Together,
        settings,
        url=site.url("/private"),
        release=site.url("/release"),
        ends_first=number,
    )
    verdicts = [item["verdict"] for item in crawled.items]
    assert (verdicts[number], verdicts[1 - number]) == ("the crawl ends", "deny"), crawled.log
    assert sorted(site.paths) == ["/release", "/robots.txt"]
    assert "Traceback" not in crawled.log


@pytest.mark.requirement("RFC-5")
def test_crawls_with_stores_of_their_own_share_nothing(
    serve: Serve, crawl: Crawl, tmp_path: Any
) -> None:
    site = slow_site(serve)
    other = str(tmp_path / "other.sqlite")
    crawled = crawl(
        Together,
        {"ADDONS": {}},
        url=site.url("/private"),
        release=site.url("/release"),
        other_store=other,
    )
    assert [item["verdict"] for item in crawled.items] == ["deny", "deny"]
    assert sorted(site.paths) == ["/release", "/robots.txt", "/robots.txt"]
