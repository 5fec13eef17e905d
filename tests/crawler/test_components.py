"""Components in the unit tests of projects: made by `from_crawler(get_crawler(...))`, with no crawl, no loop and no reactor."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Request, Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.test import get_crawler

from comity.crawler.addon import COMPONENTS
from comity.crawler.crawl import Crawl
from comity.crawler.feeds import EXPORTERS
from comity.crawler.frontier.scheduler import Scheduler
from comity.crawler.items.pipeline import PermissionsPipeline
from comity.crawler.middlewares.access import AccessMiddleware
from comity.crawler.middlewares.credentials import FieldsMiddleware, SessionFieldsMiddleware
from comity.crawler.middlewares.overload import RateMiddleware
from comity.crawler.middlewares.page import PageMiddleware
from comity.crawler.progress import Progress
from comity.dataset.tags.sources import read
from comity.policies import Agent, Site

URL = "http://a.example/"
build: Any = build_from_crawler  # its types know no further arguments
ALL = [
    *(component for components in COMPONENTS.values() for component in components),
    Scheduler,
    Progress,
]


@pytest.fixture
def crawler(tmp_path: Path) -> Crawler:
    made = get_crawler(
        Spider,
        {
            "COMITY_STORE": str(tmp_path / "store" / "policies.sqlite"),
            "FEEDS": {"a.warc": {"format": "warc"}},
        },
    )
    made.spider = Spider.from_crawler(made, "s")
    return made


@pytest.mark.parametrize("component", ALL)
def test_it_can_be_made(crawler: Crawler, component: Any, tmp_path: Path) -> None:
    assert isinstance(build(component, crawler), component)
    assert not (tmp_path / "store").exists()  # nothing was asked of it


def test_the_pipeline_says_that_there_is_no_page(crawler: Crawler) -> None:
    pipeline = PermissionsPipeline.from_crawler(crawler)
    item = pipeline.process_item({"url": URL})
    assert item["url"] == URL
    assert item["permissions"]["uses"]["index"]["verdict"] == "deny"
    assert crawler.stats
    assert crawler.stats.get_value("comity/items/no-page") == 1


ALTERED = [{}, {"schema": 2}, {"later": 1}, {"uses": {"train": "deny"}}, {"reasons": []}, None]


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("altered", ALTERED, ids=str)
def test_an_earlier_tag_permits_nothing_where_nobody_knows_what_it_refused(
    crawler: Crawler, altered: dict[str, Any] | None
) -> None:
    """It was written by a later version, say. None: the item comes from no page this time."""
    crawler = get_crawler(
        Spider, {"COMITY_STORE": crawler.settings["COMITY_STORE"], "COMITY_DEFAULTS": "train:allow"}
    )
    page = Site.from_files(URL, {"/robots.txt": b"Content-Signal: ai-train=yes\n"}).page(
        Agent("a", uses=("train",)), URL
    )
    pipeline = PermissionsPipeline.from_crawler(crawler)
    item = {"url": URL, "permissions": page.permissions | (altered or {})}
    if altered is not None:
        Crawl.of(crawler).item_pages.put(item, page)
    tag = read(pipeline.process_item(item))
    assert tag.uses["train"].is_allowed == (altered == {})
    reason = tag.reasons_of(tag.uses["train"])[0]["text"]
    assert altered == {} or reason.startswith(
        "it had a tag before: invalid-tag" if altered else "the item came from no page"
    )


class Prices:
    """A project's own."""

    def process_item(self, item: Any) -> Any:
        item["price"] = float(item["price"])
        return item


def test_the_pipelines_of_a_project(crawler: Crawler, caplog: pytest.LogCaptureFixture) -> None:
    settings = {
        "ITEM_PIPELINES": {PermissionsPipeline: 0, Prices: 300},
        "COMITY_STORE": crawler.settings["COMITY_STORE"],
    }
    tested = get_crawler(Spider, settings)
    tested.spider = Spider.from_crawler(tested, "s")

    async def process() -> Any:
        manager = ItemPipelineManager.from_crawler(tested)
        await manager.open_spider_async()
        return await manager.process_item_async({"price": "1.5"})

    item = asyncio.run(process())
    assert item["price"] == 1.5
    assert item["permissions"]["uses"]["index"]["verdict"] == "deny"
    assert "does not tell" not in caplog.text


class Unopened:
    """A project's own, whose database is not there."""

    def open_spider(self) -> None:
        raise ConnectionError("no database")


def test_a_pipeline_that_cannot_be_opened(crawler: Crawler) -> None:
    """Scrapy drops what pipelines before it have begun: of ours, with a warning that a coroutine was never awaited."""
    settings = {
        "ITEM_PIPELINES": {PermissionsPipeline: 0, Unopened: 300},
        "COMITY_STORE": crawler.settings["COMITY_STORE"],
    }
    with pytest.raises(ConnectionError):
        asyncio.run(
            ItemPipelineManager.from_crawler(get_crawler(Spider, settings)).open_spider_async()
        )
    gc.collect()  # pytest fails where it was warned


def test_nobody_answers_for_policies(crawler: Crawler) -> None:
    async def ask() -> None:
        await AccessMiddleware.from_crawler(crawler).process_request(Request(URL))

    with pytest.raises(IgnoreRequest, match="no crawl is running to ask for policies"):
        asyncio.run(ask())


def test_requests_to_nobodys_site_pass(crawler: Crawler) -> None:
    middleware = AccessMiddleware.from_crawler(crawler)
    assert asyncio.run(middleware.process_request(Request("data:,x"))) is None
    response = Response("data:,x")
    assert asyncio.run(middleware.process_response(Request("data:,x"), response)) is response


def test_other_middlewares(crawler: Crawler) -> None:
    request, response = Request(URL), Response(URL, status=503)
    rate = RateMiddleware.from_crawler(crawler)
    assert asyncio.run(rate.process_response(request, page := Response(URL))) is page
    assert asyncio.run(rate.process_response(request, response)) is response
    fields = SessionFieldsMiddleware(crawler)
    asyncio.run(fields.process_request(request))
    assert asyncio.run(fields.process_response(request, response)) is response


def test_sessions_go_out_only_if_there_are_any(
    crawler: Crawler, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert type(FieldsMiddleware.from_crawler(crawler)) is FieldsMiddleware
    monkeypatch.setenv("SECRET", "a")
    sessions = {"COMITY_SESSIONS": {"example.com": {"bearer": "env:SECRET"}}}
    settings = {"COMITY_STORE": crawler.settings["COMITY_STORE"], **sessions}
    middleware = FieldsMiddleware.from_crawler(get_crawler(Spider, settings))
    assert type(middleware) is SessionFieldsMiddleware


def test_the_spider_middleware_hands_items_on(crawler: Crawler) -> None:
    middleware = PageMiddleware.from_crawler(crawler)
    response = HtmlResponse("data:,x", body=b"<p>page", request=Request("data:,x"))

    async def outputs() -> AsyncIterator[Any]:
        yield {"a": 1}
        yield Request("data:,y")

    async def through() -> list[Any]:
        middleware.process_spider_input(response)
        return [output async for output in middleware.process_spider_output(response, outputs())]

    item, request = asyncio.run(through())
    assert (item, request.url) == ({"a": 1}, "data:,y")


def test_the_queue(crawler: Crawler) -> None:
    async def use() -> None:
        scheduler = Scheduler.from_crawler(crawler)
        assert crawler.spider
        scheduler.open(crawler.spider)
        assert scheduler.enqueue_request(Request("data:,x"))
        assert not scheduler.enqueue_request(Request("data:,x"))
        assert scheduler.has_pending_requests()
        request = scheduler.next_request()
        assert request
        assert request.url == "data:,x"
        assert scheduler.next_request() is None
        scheduler.enqueue_request(Request(URL))  # its policies cannot be had
        assert scheduler.next_request() is None
        assert not scheduler.hold(Request(URL), 1)

    asyncio.run(use())


@pytest.mark.parametrize("path", sorted(set(EXPORTERS.values())))
def test_exporters(crawler: Crawler, path: str, tmp_path: Path) -> None:
    exporters = load_object(path)
    with (tmp_path / "out").open("wb") as file:
        if "warc" in path:
            with pytest.raises(Exception, match="WARC feeds need EXTENSIONS"):
                build(exporters, crawler, file)
            return
        exporter = build(exporters, crawler, file)
        exporter.start_exporting()
        exporter.export_item(PermissionsPipeline.from_crawler(crawler).process_item({"url": URL}))
        exporter.finish_exporting()
    assert (tmp_path / "out").stat().st_size


def test_nothing_is_left_open(crawler: Crawler, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for component in ALL:
        build(component, crawler)
    gc.collect()  # what warns of an open file or thread is an error in these tests
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


ADDON = """
import sys
for name in [name for name in sys.modules if name.partition(".")[0] == "comity"]:
    del sys.modules[name]  # a forked process has imported it already
from scrapy import Spider
from scrapy.utils.test import get_crawler
crawler = get_crawler(Spider, {"ADDONS": {"comity.crawler.addon.Addon": 100}, "COMITY_AGENT": "a", "COMITY_STORE": sys.argv[1]})
from comity.crawler.items.pipeline import PermissionsPipeline
print(PermissionsPipeline.from_crawler(crawler).process_item({})["permissions"]["agent"])
"""


def test_a_crawler_of_a_test_with_the_addon(tmp_path: Path) -> None:
    """Nor does an import warn."""
    words = [sys.executable, "-W", "error", "-c", ADDON, str(tmp_path / "policies.sqlite")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "a\n"), done.stderr


def test_modules_are_imported_alone() -> None:
    """In whatever order a project does."""
    for name in (
        "items.pipeline",
        "middlewares.access",
        "middlewares.page",
        "frontier.scheduler",
        "item_tags",
        "elements",
    ):
        assert importlib.import_module(f"comity.crawler.{name}")
