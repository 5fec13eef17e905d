"""How often a request is decided on, counted in questions to its site, over a whole crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

from comity.policies import Agent, Decision, Site

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

ROBOTS = "User-agent: *\nDisallow: /private\n"
PATHS = [f"/{number}" for number in range(10)]


class Counting(Spider):
    """Asks for the first page, and for all others when it has come: by then the policies are in memory."""

    name = "counting"
    url = ""

    async def start(self) -> AsyncIterator[Any]:
        self.judged: Counter[str] = Counter()
        self.judge = Site.judge

        def counted(site: Site, agent: Agent, url: str, *arguments: Any) -> Decision:
            self.judged[urlsplit(url).path] += 1
            return self.judge(site, agent, url, *arguments)

        Site.judge = counted  # type: ignore[method-assign,assignment]
        yield Request(self.url)

    def parse(self, response: Response) -> Any:
        for path in [*PATHS, "/private"]:
            yield response.follow(path, self.parse_page)

    def parse_page(self, response: Response) -> Any:
        yield {"url": response.url}

    def closed(self, reason: str) -> None:
        Site.judge = self.judge  # type: ignore[method-assign]
        assert self.crawler.stats
        self.crawler.stats.set_value("judged", dict(self.judged))


def pages(**files: str) -> dict[str, Any]:
    return {
        "/robots.txt": ROBOTS,
        "/": "<p>first</p>",
        **{f"/{path}": "<p>page</p>" for path in range(10)},
        **files,
    }


@pytest.mark.requirement("RFC-2")
@pytest.mark.parametrize("preferences", ["", "scope: /\nallowed-methods: GET\n"])
def test_an_unchanged_request_of_a_known_site_is_judged_once(
    serve: Serve, crawl: Crawl, preferences: str
) -> None:
    server = serve(pages(**{"/automation-preferences.txt": preferences} if preferences else {}))
    crawled = crawl(Counting, url=server.url("/"))
    assert len(crawled.items) == len(PATHS)
    assert crawled.stats["judged"] == {"/": 1, "/private": 1, **dict.fromkeys(PATHS, 1)}


@pytest.mark.requirement("RFC-2")
def test_a_request_that_was_read_from_disk_is_judged_as_a_new_one(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """Whatever was known of it when it was written."""
    server = serve(pages())
    crawled = crawl(Counting, {"JOBDIR": str(tmp_path / "job")}, url=server.url("/"))
    assert len(crawled.items) == len(PATHS)
    assert crawled.stats["judged"] == {"/": 1, "/private": 1, **dict.fromkeys(PATHS, 2)}


class ByScript:
    """Makes a script's request of one in its place, after the one was admitted."""

    def process_request(self, request: Request) -> None:
        request.headers["X-Requested-With"] = "XMLHttpRequest"


class Scripted(Counting):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {ByScript: 543}}  # type: ignore[misc]


@pytest.mark.requirement("AUTO-9")
def test_fields_that_make_another_kind_of_request_are_judged_as_they_go_out(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve(pages(**{"/automation-preferences.txt": "scope: /\nallowed-methods: GET\n"}))
    crawled = crawl(Scripted, url=server.url("/"))
    assert (crawled.items, crawled.stats["comity/access/deny/automation.xhr"]) == ([], 1)
    assert "/" not in server.paths
    opened = serve(
        pages(
            **{"/automation-preferences.txt": "scope: /\nallowed-methods: GET\nallow-xhr: open\n"}
        )
    )
    assert len(crawl(Scripted, url=opened.url("/")).items) == len(PATHS)
