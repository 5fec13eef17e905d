"""Crawls through the scheduler, by what the servers saw."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

SETTINGS: dict[str, Any] = {
    "ADDONS": {},
    "SCHEDULER": "comity.crawler.scheduler.Scheduler",
    "DOWNLOADER_MIDDLEWARES": {
        "comity.crawler.downloadermw.AccessMiddleware": 100,
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    },
}

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]


class Urls(Spider):
    """Asks for URLs with priorities and says what came of each."""

    name = "urls"
    urls: list[str]
    priorities: list[int] | None = None

    async def start(self) -> AsyncIterator[Any]:
        for url, priority in zip(self.urls, self.priorities or [0] * len(self.urls), strict=True):
            yield Request(url, priority=priority, callback=self.parse, errback=self.failed)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url, "status": response.status}

    def failed(self, failure: Any) -> Any:
        yield {"url": failure.request.url, "error": str(failure.value)}


def pages(*paths: str, robots: Any = "User-agent: *\nDisallow:\n") -> dict[str, Any]:
    return {"/robots.txt": robots, **dict.fromkeys(paths, "<p>page</p>")}


def test_nothing_of_an_origin_is_asked_before_its_robots_txt(serve: Serve, crawl: Crawl) -> None:
    server = serve(pages("/a", "/b", robots="User-agent: *\nDisallow: /private"))
    crawled = crawl(Urls, SETTINGS, urls=[server.url(path) for path in ("/a", "/private/1", "/b", "/private/2")])
    assert server.paths[0] == "/robots.txt"
    assert sorted(server.paths[1:]) == ["/a", "/b"]
    assert crawled.finish_reason == "finished"
    print(crawled.log, crawled.stats, crawled.items)
