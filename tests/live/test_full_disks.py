"""A full disk ends a crawl with one line and a remedy, at the start of the crawl and later.

Every write to /dev/full fails as on a full disk. `PRAGMA query_only` lets SQLite fail as on a disk that was made read-only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from comity.crawler.crawl import Crawl
from comity.crawler.frontier import writes
from comity.crawler.frontier.scheduler import Scheduler
from comity.gate.pace import ledger

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback, Serve

    RunCrawl = Callable[..., Crawled]

PAGES = 30
OPEN = "User-agent: *\nDisallow:\n"
FAILURE = "attempt to write a readonly database"


class Pages(Spider):
    """Asks for pages one after the other. `fails`: the file that cannot be written any more once the first page has come."""

    name = "pages"
    custom_settings: dict[str, Any] = {"CONCURRENT_REQUESTS": 1}  # noqa: RUF012  # of the class
    origin = ""
    fails = ""
    size = "100000"

    async def start(self) -> AsyncIterator[Request]:
        for number in range(PAGES):
            yield Request(f"{self.origin}/{number}")

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, Any]]:
        if self.fails:
            self.fail()
        yield {"url": response.url, "text": "x" * int(self.size)}

    def fail(self) -> None:
        crawl = Crawl.of(self.crawler)
        _set_patience(0.0)  # nobody waits a minute in a test
        assert isinstance(crawl.scheduler, Scheduler)
        files: dict[str, Any] = {
            "pace": crawl.pace._ledger,
            "JOBDIR": crawl.scheduler._book.storage,
        }
        files[self.fails]._db.execute("PRAGMA query_only = ON")
        self.fails = ""

    @classmethod
    def closed(cls, reason: str) -> None:
        _set_patience(60.0)


def _set_patience(seconds: float) -> None:
    for module in (ledger, writes):
        module.PATIENCE = seconds  # type: ignore[attr-defined]


def site(serve: Serve) -> Loopback:
    return serve({"/robots.txt": OPEN, **{f"/{number}": "page" for number in range(PAGES)}})


def critical(crawled: Crawled) -> list[str]:
    return [line for line in crawled.log.splitlines() if line.startswith("CRITICAL")]


@pytest.mark.requirement("SEC-6")
def test_a_feed_that_cannot_be_written_ends_the_crawl_at_once(
    crawl: RunCrawl, serve: Serve
) -> None:
    server = site(serve)
    crawled = crawl(Pages, {"FEEDS": {"/dev/full": {"format": "jsonlines"}}}, origin=server.origin)
    (line,) = critical(crawled)
    assert (
        "/dev/full cannot be written ([Errno 28] No space left on device): items are lost. Free space on its disk"
        in line
    )
    assert crawled.finish_reason == "items_lost"
    assert len(server.seen) < PAGES


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("form", ["jsonlines", "parquet"])
def test_a_feed_that_fails_at_its_end_is_told_too(crawl: RunCrawl, serve: Serve, form: str) -> None:
    crawled = crawl(
        Pages, {"FEEDS": {"/dev/full": {"format": form}}}, origin=site(serve).origin, size=1
    )
    (line,) = critical(crawled)
    assert "/dev/full cannot be written" in line
    assert "items are lost" in line


@pytest.mark.requirement("RATE-2")
def test_a_pace_file_that_cannot_be_written_any_more_ends_the_crawl(
    crawl: RunCrawl, serve: Serve
) -> None:
    server = site(serve)
    crawled = crawl(Pages, {"COMITY_MIN_DELAY": 0.01}, origin=server.origin, fails="pace")
    (line,) = critical(crawled)
    assert (
        f"pace.sqlite` cannot be written ({FAILURE}). Free space on its disk, or set COMITY_STORE"
        in line
    )
    assert crawled.finish_reason == "cannot_write"
    assert len(server.seen) < PAGES


@pytest.mark.requirement("SEC-6")
def test_a_jobdir_that_cannot_be_written_any_more_ends_the_crawl_which_can_go_on(
    crawl: RunCrawl, serve: Serve, tmp_path: Path
) -> None:
    server = site(serve)
    settings = {"JOBDIR": str(tmp_path / "job"), "COMITY_MIN_DELAY": 0.2}
    crawled = crawl(Pages, settings, origin=server.origin, fails="JOBDIR")
    (line,) = critical(crawled)
    assert (
        f"JOBDIR: {tmp_path}/job/comity.sqlite cannot be written: {FAILURE}. Free space on its disk"
        in line
    )
    assert crawled.finish_reason == "cannot_write"
    assert len(server.seen) < PAGES
    assert (
        crawl(Pages, settings | {"COMITY_MIN_DELAY": 0}, origin=server.origin).finish_reason
        == "finished"
    )
    assert {path for path in server.paths if path != "/robots.txt"} == {
        f"/{number}" for number in range(PAGES)
    }


def run(folder: Path, *words: str, octets: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run `scrapy crawl site`. `octets`: that a file may have."""
    limit = (
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({octets}, {octets}));"
        if octets is not None
        else ""
    )
    program = f"import resource, sys; {limit} from scrapy.cmdline import execute; execute(['scrapy', *sys.argv[1:]])"
    command = [sys.executable, "-c", program, "crawl", "site", "-s", "COMITY_AGENT=testbot", *words]
    environment = os.environ | {
        "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings",
        "XDG_DATA_HOME": str(folder),
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.requirement("SEC-6")
def test_a_disk_that_is_full_from_the_start_ends_the_crawl_before_it_begins(
    serve: Serve, tmp_path: Path
) -> None:
    server = site(serve)
    ended = run(tmp_path, "-a", f"url={server.url('/0')}", octets=0)
    assert ended.returncode == 1
    assert (
        f"COMITY_STORE `{tmp_path}/comity/policies.sqlite` cannot be used: disk I/O error"
        in ended.stderr
    )
    assert "Traceback" not in ended.stderr
    assert not server.seen


@pytest.mark.requirement("SEC-6")
def test_the_exit_status_says_that_items_are_lost(serve: Serve, tmp_path: Path) -> None:
    server = site(serve)
    assert run(tmp_path, "-a", f"url={server.url('/0')}", "-o", "items.jsonl").returncode == 0
    assert (
        run(tmp_path, "-a", f"url={server.url('/0')}", "-o", "/dev/full:jsonlines").returncode == 1
    )
