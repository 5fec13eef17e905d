"""A page counts as done only when its items are stored, in feeds and by pipelines. What is not stored is fetched again."""

from __future__ import annotations

import csv
import fcntl
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import BlockingFeedStorage
from scrapy.http import Request, Response, TextResponse

from comity.crawler.crawl import Crawl

if TYPE_CHECKING:  # the processes that run the spiders do not know the tests
    from tests.conftest import Crawled, Loopback, Serve

PAGES = 12
GZIP = ["scrapy.extensions.postprocessing.GzipPlugin"]

pytestmark = pytest.mark.requirement("STATE-2")


class Uploads(BlockingFeedStorage):
    """Storage that takes a file when it is complete, as an object store does. `up://broken/...` takes none."""

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        self._path = Path(uri.removeprefix("up:/"))

    def _store_in_thread(self, file: Any) -> None:
        if self._path.parts[1] == "broken":
            raise ConnectionError("the store is away")
        file.seek(0)
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_bytes(file.read())
        file.close()


class Buffers:
    """Pipeline that writes its items when it is asked to. While FAILS is set it cannot write."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Buffers:
        pipeline = cls()
        pipeline.path = Path(crawler.settings["BUFFERED"])
        pipeline.fails = crawler.settings.getbool("FAILS")
        pipeline.items = []
        Crawl.of(crawler).before_done(pipeline.flush)
        return pipeline

    path: Path
    fails: bool
    items: list[Any]

    def process_item(self, item: Any) -> Any:
        self.items.append(item)
        return item

    async def flush(self) -> None:
        if self.fails:
            raise ConnectionError("the database is away")
        with self.path.open("a") as file:
            file.writelines(json.dumps(item) + "\n" for item in self.items)
        self.items = []


class Pages(Spider):
    """Yields an item a page."""

    name = "pages"
    custom_settings: ClassVar = {"FEED_STORAGES": {"up": Uploads}, "COMITY_TAG": "off"}  # type: ignore[misc]

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.start_urls[0])

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


class Buffered(Pages):
    name = "buffered"
    custom_settings: ClassVar = {"COMITY_TAG": "off", "ITEM_PIPELINES": {Buffers: 500}}  # type: ignore[misc]


class Unwritable(Pages):
    """Yields items that no feed of JSON lines can hold."""

    name = "unwritable"

    def parse(self, response: Response) -> Iterator[Any]:
        for made in super().parse(response):
            yield {"value": object()} if isinstance(made, dict) else made


Run = Callable[..., "Crawled"]


@pytest.fixture
def server(serve: Serve) -> Loopback:
    links = "".join(f'<a href="/{number}">{number}</a>' for number in range(1, PAGES))
    return serve(
        {
            "/robots.txt": "User-agent: *\nDisallow:\n",
            "/0": links,
            **{f"/{n}": "page" for n in range(1, PAGES)},
        }
    )


@pytest.fixture
def run(crawl: Run, server: Loopback, tmp_path: Path) -> Run:
    """`run(feeds, settings, spider=Pages)` crawls the site with a JOBDIR."""

    def crawled(
        feeds: dict[str, dict[str, Any]],
        settings: dict[str, Any] | None = None,
        spider: type[Spider] = Pages,
    ) -> Crawled:
        fixed: dict[str, Any] = {"JOBDIR": str(tmp_path / "job"), "FEEDS": feeds}
        return crawl(spider, fixed | (settings or {}), start_urls=[server.url("/0")])

    return crawled


def asked(server: Loopback) -> Counter[str]:
    return Counter(path for path in server.paths if path != "/robots.txt")


def urls(server: Loopback) -> list[str]:
    return sorted(server.url(f"/{number}") for number in range(PAGES))


def lines(*paths: Path) -> list[str]:
    """The URLs in files of JSON lines."""
    return sorted(
        json.loads(line)["url"] for path in paths for line in path.read_text().splitlines()
    )


def once(*_: Any) -> dict[str, int]:
    return {f"/{number}": 1 for number in range(PAGES)}


def test_parts_of_a_feed_are_complete_files(run: Run, server: Loopback, tmp_path: Path) -> None:
    """Of every format that is not added to, and for stores that take complete files."""
    feeds = {
        f"{tmp_path}/parquet/%(batch_time)s.parquet": {},
        f"{tmp_path}/json/%(batch_time)s.json": {},
        f"{tmp_path}/xml/%(batch_time)s.xml": {},
        f"{tmp_path}/gz/%(batch_time)s.jsonl.gz": {"format": "jsonl", "postprocessing": GZIP},
        f"up:/{tmp_path}/up/%(batch_time)s.jsonl": {},
    }
    server.routes["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.1\n"
    run(feeds, {"COMITY_PART_SECONDS": 0.3})
    files = {
        kind: [*(tmp_path / kind).iterdir()] for kind in ("parquet", "json", "xml", "gz", "up")
    }
    assert all(len(parts) > 1 for parts in files.values())
    assert sorted(
        row["url"] for path in files["parquet"] for row in pq.read_table(path).to_pylist()
    ) == urls(server)
    assert sorted(
        item["url"] for path in files["json"] for item in json.loads(path.read_text())
    ) == urls(server)
    found = [
        item.findtext("url", "")
        for path in files["xml"]
        for item in ElementTree.fromstring(path.read_bytes())
    ]
    assert sorted(found) == urls(server)
    unpacked = b"".join(gzip.decompress(path.read_bytes()) for path in files["gz"])
    assert sorted(json.loads(line)["url"] for line in unpacked.splitlines()) == urls(server)
    assert lines(*files["up"]) == urls(server)


def test_batches_by_number_of_items_are_complete_files(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    feeds = {
        f"{tmp_path}/items-%(batch_id)d.jsonl": {"batch_item_count": 5},
        f"up:/{tmp_path}/up/%(batch_id)d-%(batch_time)s.jsonl": {"batch_item_count": 5},
    }
    run(feeds)
    for paths in ([*tmp_path.glob("items-*.jsonl")], [*(tmp_path / "up").iterdir()]):
        assert sorted(len(lines(path)) for path in paths) == [2, 5, 5]
        assert lines(*paths) == urls(server)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("items.jsonl", b'{"url": "whole"}\n{"url": "to'),
        ("items.csv", b'url\r\nwhole\r\n"to\r\nrn, '),
    ],
)
def test_what_a_killed_process_left_unfinished_is_taken_off(
    run: Run, server: Loopback, tmp_path: Path, name: str, left: bytes
) -> None:
    path, torn = tmp_path / name, tmp_path / f"{name}.torn"
    path.write_bytes(left)
    crawled = run({str(path): {}})
    if name.endswith("csv"):
        with path.open(newline="") as file:
            found = sorted(row["url"] for row in csv.DictReader(file))
        assert found == [*urls(server), "url", "whole"]  # each process writes the columns
    else:
        assert lines(path) == [*urls(server), "whole"]
    assert b"whole" not in torn.read_bytes()
    assert left.endswith(torn.read_bytes())
    assert (
        "of a record that a killed process has left unfinished: they are in " + torn.name
        in crawled.log
    )


def test_the_file_of_a_feed_that_could_not_be_opened_is_not_locked(
    run: Run, tmp_path: Path
) -> None:
    """The place for the unfinished record is a folder, so that each item tries to open the file."""
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"url": "to')
    (tmp_path / "items.jsonl.torn").mkdir()
    failed = run({str(path): {}})
    assert "items are lost" in failed.log
    assert "is written by another process" not in failed.log


def test_feed_that_overwrites_keeps_what_the_crawl_has_found_before(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{"url": "of another crawl"}\n')
    feeds = {str(path): {"overwrite": True}}
    first = run(feeds, {"CLOSESPIDER_ITEMCOUNT": 3, "CONCURRENT_REQUESTS": 1})
    assert "not overwritten" not in first.log
    assert 3 <= len(lines(path)) < PAGES
    second = run(feeds)
    assert "items.jsonl is added to, not overwritten: the crawl has begun before" in second.log
    assert lines(path) == urls(server)
    assert asked(server) == once()


def test_crawl_ends_when_a_feed_cannot_be_stored_and_goes_on_later(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    server.routes["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.1\n"
    failed = run({"up://broken/%(batch_time)s.jsonl": {}}, {"COMITY_PART_SECONDS": 0})
    assert failed.log.count("cannot be written (the store is away): items are lost.") == 1
    assert failed.finish_reason == "items_lost"
    before = asked(server)
    run({f"{tmp_path}/items.jsonl": {}})
    assert lines(tmp_path / "items.jsonl") == urls(server)
    assert {path: number - before[path] for path, number in asked(server).items()} == once()


def test_pages_of_a_feed_that_cannot_be_stored_at_the_end_are_fetched_again(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    failed = run({"up://broken/%(batch_time)s.jsonl": {}})
    assert failed.log.count("cannot be written (the store is away): items are lost.") == 1
    run({f"{tmp_path}/items.jsonl": {}})
    assert lines(tmp_path / "items.jsonl") == urls(server)


def test_pages_are_fetched_again_when_the_disk_was_full(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    failed = run({"/dev/full": {"format": "jsonl"}})
    assert "items are lost: [Errno 28] No space left on device" in failed.log
    run({f"{tmp_path}/items.jsonl": {}})
    assert lines(tmp_path / "items.jsonl") == urls(server)


def test_file_that_another_process_writes_is_left_alone(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    path = tmp_path / "items.jsonl"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        failed = run({str(path): {"overwrite": True}})
        file.write('{"url": "of another process"}\n')
    assert "items.jsonl is written by another process: name a file for each process" in failed.log
    assert lines(path) == ["of another process"]
    run({f"{tmp_path}/own.jsonl": {}})
    assert lines(tmp_path / "own.jsonl") == urls(server)


def test_pipeline_that_buffers_is_asked_to_write(
    run: Run, server: Loopback, tmp_path: Path
) -> None:
    """While it cannot, no page is done."""
    settings = {"BUFFERED": str(tmp_path / "buffered.jsonl")}
    failed = run({}, {**settings, "FAILS": True}, Buffered)
    assert "JOBDIR: the database is away; comity tries again" in failed.log
    assert f"JOBDIR: the items of {PAGES} pages are not stored" in failed.log
    run({}, settings, Buffered)
    assert lines(tmp_path / "buffered.jsonl") == urls(server)
    assert asked(server) == dict.fromkeys(once(), 2)
    run({}, settings, Buffered)
    assert asked(server) == dict.fromkeys(once(), 2)


def test_page_whose_item_fits_no_feed_is_done(run: Run, server: Loopback, tmp_path: Path) -> None:
    feeds: dict[str, Any] = {f"{tmp_path}/items.jsonl": {}}
    crawled = run(feeds, spider=Unwritable)
    assert "TypeError" in crawled.log
    assert crawled.finish_reason == "finished"
    run(feeds, spider=Unwritable)
    assert asked(server) == once()
