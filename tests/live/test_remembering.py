"""What is remembered of pages and of what sites ask for, in both modes of Scrapy."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from scrapy import Spider

from comity.crawler.crawl import Crawl

if TYPE_CHECKING:
    from tests.conftest import Crawled


class Remembers(Spider):
    """Takes a page on two days, for one use and then for two, and is asked both times to crawl it again."""

    name = "remembers"
    custom_settings: ClassVar[dict[str, Any]] = {"ADDONS": {}}  # type: ignore[misc]  # Scrapy reads it from the class only

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        policies = Crawl.of(self.crawler).policies
        for day in (1, 2):
            at = datetime(2027, 1, day, tzinfo=UTC)
            taken = await policies.first_taken("http://a.test/", ["index", "present"][:day], at)
            is_new = await policies.requests_action("http://a.test/", "re-crawl", "aa", at)
            yield {
                "taken": {use: f"{moment:%Y-%m-%d}" for use, moment in taken.items()},
                "is_new": is_new,
            }


class Forgets(Remembers):
    """Its store fails."""

    name = "forgets"

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        with closing(sqlite3.connect(Crawl.of(self.crawler).options.store)) as db:
            db.execute("DROP TABLE taken")
            db.execute("DROP TABLE action")
        async for item in super().start():
            yield item


@pytest.mark.requirement("ACAP-32", "ACAP-43")
def test_what_has_to_be_remembered_is_kept_in_the_store(crawl: Callable[..., Crawled]) -> None:
    items = [item for _ in range(2) for item in crawl(Remembers).items]
    assert [item["taken"] for item in items] == [
        {"index": "2027-01-01"},
        {"index": "2027-01-01", "present": "2027-01-02"},
        {"index": "2027-01-01"},
        {"index": "2027-01-01", "present": "2027-01-02"},
    ]
    assert [item["is_new"] for item in items] == [True, False, False, False]


@pytest.mark.requirement("ACAP-32", "ACAP-43", "SEC-6")
def test_a_store_that_fails_is_said_and_counted(crawl: Callable[..., Crawled]) -> None:
    crawled = crawl(Forgets)
    # Long ago, so that a permission for some days from then is over: nobody knows when it began.
    assert [item["taken"] for item in crawled.items] == [
        {"index": "1-01-01"},
        {"index": "1-01-01", "present": "1-01-01"},
    ]
    assert [item["is_new"] for item in crawled.items] == [True, True]
    assert crawled.stats["comity/policies/store_error"] == 4
    assert (
        crawled.log.count("WARNING comity.gate.fetching.files: ") == 1
    )  # the first one: on a full disk all fail
    assert crawled.log.count("INFO comity.gate.fetching.files: ") == 3
    assert (
        "permissions for some days from the first use of http://a.test/ count as over"
        in crawled.log
    )
    assert "nobody will know that re-crawl of http://a.test/ was asked for" in crawled.log
