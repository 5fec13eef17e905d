"""What sites ask to be done (ACAP 1.0 section-2.6), in both modes of Scrapy."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.fetching.store import PolicyStore

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

PAGES = dict.fromkeys(("/a", "/b", "/c", "/private/a"), "page")
ARRANGED = {"COMITY_ARRANGEMENTS": "127.0.0.1:take-down,127.0.0.1:re-crawl"}


def asking(*requests: str, private: str = "/private/") -> str:
    """A robots.txt with action requests, written "take-down: /path"."""
    lines = "".join(f"ACAP-request-{request}\n" for request in requests)
    return f"ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-disallow-crawl: {private}\n{lines}"


class Urls(Spider):
    """Asks for URLs."""

    name = "urls"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


class Ends(Urls):
    """Stops the crawl as soon as the policies are known."""

    name = "ends"

    async def start(self) -> AsyncIterator[Any]:
        assert self.crawler.engine
        await OwnCrawl.of(self.crawler).policies.get(self.urls[0])
        ending = asyncio.create_task(self.crawler.engine.close_spider_async(reason="enough"))
        yield Request(self.urls[0] + "/a")
        await ending


def take_downs(tmp_path: Path) -> dict[str, datetime]:
    store = PolicyStore(tmp_path / "policies.sqlite")
    try:
        return dict(store.take_downs())
    finally:
        store.close()


@pytest.mark.requirement("ACAP-43", "WHY-2")
@pytest.mark.parametrize(
    "arrangements", ["", "127.0.0.2:take-down,127.0.0.2:re-crawl", "127.0.0.1:80:take-down"]
)
def test_what_is_not_arranged_is_reported_and_not_done(
    serve: Serve, crawl: Crawl, tmp_path: Path, arrangements: str
) -> None:
    server = serve(
        {"/robots.txt": asking("take-down: /b", "take-down: /c", "re-crawl: /a"), **PAGES}
    )
    crawled = crawl(
        Urls, {"COMITY_ARRANGEMENTS": arrangements}, urls=[server.url("/a"), server.url("/b")]
    )
    assert sorted(server.paths) == ["/a", "/b", "/robots.txt"]
    assert take_downs(tmp_path) == {}
    actions = {
        name: number for name, number in crawled.stats.items() if name.startswith("comity/actions/")
    }
    assert actions == {
        "comity/actions/take-down/not-arranged": 2,
        "comity/actions/re-crawl/not-arranged": 1,
    }
    assert crawled.log.count(f"{server.origin} asks for take-down (2), acap.request") == 1
    assert crawled.log.count(f"{server.origin} asks for re-crawl (1), acap.request") == 1
    assert f"{server.url('/robots.txt')}:4: 'ACAP-request-take-down: /b'" in crawled.log


@pytest.mark.requirement("ACAP-43")
def test_an_arranged_take_down_is_kept_for_the_datasets(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """What is asked for is not fetched for it, and may well be refused."""
    server = serve({"/robots.txt": asking("take-down: /b", "take-down: /private/a"), **PAGES})
    began = datetime.now(UTC)
    runs = [crawl(Urls, ARRANGED, urls=[server.url("/a")]) for _ in range(2)]
    asked = take_downs(tmp_path)
    assert list(asked) == [server.url("/b"), server.url("/private/a")]
    assert all(
        began - timedelta(seconds=1) <= moment <= datetime.now(UTC) for moment in asked.values()
    )
    assert [run.stats.get("comity/actions/take-down") for run in runs] == [2, None]
    assert runs[0].log.count(f"take-down of {server.url('/b')}, as acap.request") == 1
    assert "comity/actions/take-down/not-arranged" not in runs[0].stats
    assert server.paths == ["/robots.txt", "/a", "/a"]


@pytest.mark.requirement("ACAP-43")
def test_an_arranged_re_crawl_comes_past_the_duplicate_filter(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """Once for every copy of the file that asks."""
    robots = asking("re-crawl: /a", "re-crawl: /c")
    server = serve({"/robots.txt": robots, **PAGES})
    urls = [server.url("/a"), server.url("/b")]
    first, second = (crawl(Urls, ARRANGED, urls=urls) for _ in range(2))
    server.routes["/robots.txt"] = robots + "# changed\n"
    with closing(sqlite3.connect(tmp_path / "policies.sqlite", isolation_level=None)) as db:
        db.execute("UPDATE file SET due = 0")
    third = crawl(Urls, ARRANGED, urls=urls)
    asked = [
        sorted(item["url"].removeprefix(server.origin) for item in run.items)
        for run in (first, second, third)
    ]
    assert asked == [["/a", "/a", "/b", "/c"], ["/a", "/b"], ["/a", "/a", "/b", "/c"]]
    assert [path for path in server.paths if path != "/robots.txt"].count("/a") == 5
    assert [run.stats.get("comity/actions/re-crawl") for run in (first, second, third)] == [
        2,
        None,
        2,
    ]


@pytest.mark.requirement("ACAP-43")
def test_what_is_refused_is_not_crawled_again(serve: Serve, crawl: Crawl) -> None:
    server = serve({"/robots.txt": asking("re-crawl: /private/a"), **PAGES})
    crawled = crawl(Urls, ARRANGED, urls=[server.url("/a")])
    assert server.paths == ["/robots.txt", "/a"]
    assert f"Refused <GET {server.url('/private/a')}>" in crawled.log


@pytest.mark.requirement("ACAP-43")
def test_the_crawl_does_not_end_before_what_is_asked_for_is_done(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """Though it has nothing else to do: what it was asked for is refused."""
    taken_down = [f"/{number}" for number in range(300)]
    requests = [f"take-down: {path}" for path in taken_down]
    server = serve({"/robots.txt": asking(*requests, "re-crawl: /a", "re-crawl: /b"), **PAGES})
    crawled = crawl(Urls, ARRANGED, urls=[server.url("/private/a")])
    assert sorted(server.paths) == ["/a", "/b", "/robots.txt"]
    assert len(crawled.items) == 2
    assert set(take_downs(tmp_path)) == {server.url(path) for path in taken_down}
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("ACAP-43", "SEC-6")
def test_what_a_stopped_crawl_leaves_the_next_one_does(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    taken_down = [f"/{number}" for number in range(300)]
    server = serve(
        {
            "/robots.txt": asking(*(f"take-down: {path}" for path in taken_down), "re-crawl: /c"),
            **PAGES,
        }
    )
    stopped = crawl(Ends, ARRANGED, urls=[server.origin])
    assert (stopped.finish_reason, server.paths) == ("enough", ["/robots.txt"])
    assert set(take_downs(tmp_path)) == {server.url(path) for path in taken_down}
    crawl(Urls, ARRANGED, urls=[server.url("/a")])
    assert sorted(server.paths) == ["/a", "/c", "/robots.txt"]


def explained(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "COMITY_ARRANGEMENTS": ARRANGED["COMITY_ARRANGEMENTS"],
        "COMITY_STORE": str(folder / "policies.sqlite"),
    }
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "policy", url, *options]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.requirement("ACAP-43")
def test_to_explain_a_policy_does_nothing_of_it(serve: Serve, tmp_path: Path) -> None:
    server = serve({"/robots.txt": asking("re-crawl: /a", "take-down: /b"), **PAGES})
    done = explained(server.url("/a"), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert server.paths == ["/robots.txt"]
    assert take_downs(tmp_path) == {}
