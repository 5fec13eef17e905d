"""A crawl puts the tags of its items where COMITY_TAG says, and everything that reads them finds them there."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from itemadapter import ItemAdapter
from scrapy import Field, Item, Spider
from scrapy.exceptions import DropItem
from scrapy.http import Request, Response
from scrapy.pipelines.files import FilesPipeline

from comity.crawler.item_pages import current_tag
from comity.dataset.export.export import export
from comity.dataset.permissions.terms import Terms
from comity.dataset.sidecar import Sidecar
from comity.dataset.stats import stats
from comity.dataset.tags.sources import GUESSED, InField, TagSource
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

PAGES = 12
SETTINGS = ["permissions", "rights", "json", "json:rights", "sidecar", "off"]


class Product(Item):
    name = Field()
    price = Field()


@dataclasses.dataclass
class Offer:
    name: str
    price: float
    permissions: str = "seller"  # data of its own


class Replaces:
    """A later pipeline that hands on other objects, after others had their turn."""

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.001)
        return copy.copy(item)


class Columns:
    """A later pipeline that stores items in columns of its own, and knows of no others."""

    def process_item(self, item: Any) -> Any:
        unknown = ItemAdapter(item).keys() - {"name", "price", "permissions", "image"}
        assert not unknown, unknown
        return item


class Shop(Spider):
    """Pages that permit nothing in particular, and some that refuse: dicts, items and dataclasses."""

    name = "shop"
    urls: ClassVar[list[str]] = []
    custom_settings: ClassVar = {"ITEM_PIPELINES": {Replaces: 300}}  # type: ignore[misc]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        number = response.url.rpartition("/")[2]
        yield {"name": f"dict {number}", "price": 1.0}
        yield Product(name=f"item {number}", price=1)


class Strict(Shop):
    """The same in a project that stores items in columns."""

    custom_settings: ClassVar = {"ITEM_PIPELINES": {Replaces: 300, Columns: 400}}  # type: ignore[misc]


class Offers(Shop):
    def parse(self, response: Response) -> Any:
        yield Offer(name=response.url, price=1.0)


def site() -> dict[str, Any]:
    """Odd pages may not be indexed."""
    pages: dict[str, Any] = {f"/{n}": f"<p>page {n}" for n in range(PAGES)}
    refused = "".join(f"ACAP-disallow-index: /{n}$\n" for n in range(1, PAGES, 2))
    return {
        "/robots.txt": f"User-agent: *\nDisallow:\nACAP-crawler: *\nACAP-allow-index: /\n{refused}",
        **pages,
    }


def place(setting: str, tmp_path: Path) -> tuple[str, TagSource | None]:
    """COMITY_TAG, and what reads it once the crawl is over."""
    path = tmp_path / "tags.jsonl"
    if setting == "sidecar":
        return f"sidecar:{path}", None
    return setting, None if setting == "off" else InField(
        {"json": "permissions"}.get(setting, setting.rpartition(":")[2])
    )


FORMATS = {"jsonl": "jsonlines", "gz": "warc.gz"}


def feeds(tmp_path: Path, *names: str, **options: Any) -> dict[str, Any]:
    endings = {name: name.rpartition(".")[2] for name in names}
    return {
        str(tmp_path / name): {"format": FORMATS.get(ending, ending), **options}
        for name, ending in endings.items()
    }


@pytest.mark.slow
@pytest.mark.requirement("WHY-2", "MEET-3")
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_feed_can_be_judged(serve: Serve, crawl: Crawl, tmp_path: Path, setting: str) -> None:
    server = serve(site())
    value, source = place(setting, tmp_path)
    files = ("items.jsonl", "items.parquet", "pages.warc.gz")
    settings = {"COMITY_TAG": value, "FEEDS": feeds(tmp_path, *files), "COMITY_MIN_DELAY": 0}
    crawled = crawl(Shop, settings, urls=[server.url(f"/{n}") for n in range(PAGES)])
    assert crawled.stats["item_scraped_count"] == 2 * PAGES == crawled.stats["comity/items/tagged"]
    assert "Traceback" not in crawled.log
    for name in files:
        its = source or (Sidecar(tmp_path / "tags.jsonl") if setting == "sidecar" else GUESSED)
        found = export([tmp_path / name], tmp_path / "out.jsonl", Terms.of(["index"], tags=its))
        if (
            setting == "off" and name != "pages.warc.gz"
        ):  # an archive has always what may be done with it
            assert found.counts.causes == {"no-tag": 2 * PAGES}
            continue
        assert found.counts.causes == {"deny:acap.disallow": PAGES}, name
        kept = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert sorted(int(item["name"].split()[1]) % 2 for item in kept) == [0] * PAGES


@pytest.mark.parametrize("setting", ["sidecar", "off"])
def test_items_stay_as_their_project_knows_them(
    serve: Serve, crawl: Crawl, tmp_path: Path, setting: str
) -> None:
    server = serve(site())
    value, _ = place(setting, tmp_path)
    names = feeds(tmp_path, "items.csv", "items.parquet", "items.jsonl")
    urls = [server.url(f"/{n}") for n in range(PAGES)]
    crawled = crawl(Strict, {"COMITY_TAG": value, "FEEDS": names}, urls=urls)
    assert crawled.stats["item_scraped_count"] == 2 * PAGES
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert {tuple(line) for line in lines} == {("name", "price")}
    assert (tmp_path / "items.csv").read_text().splitlines()[0] == "name,price"
    import pyarrow.parquet as pq

    assert pq.read_schema(tmp_path / "items.parquet").names == ["name", "price", "extra_json"]


@pytest.mark.parametrize("setting", one_in(3, ["permissions", "json", "sidecar"]))
def test_data_of_the_items_own_are_not_lost(
    serve: Serve, crawl: Crawl, tmp_path: Path, setting: str
) -> None:
    server = serve(site())
    value, _ = place(setting, tmp_path)
    crawled = crawl(
        Offers,
        {"COMITY_TAG": value, "FEEDS": feeds(tmp_path, "items.jsonl")},
        urls=[server.url(f"/{n}") for n in range(PAGES)],
    )
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert {item["permissions"] for item in items} == {"seller"}
    assert crawled.log.count("have data of their own in `permissions`") == (
        0 if setting == "sidecar" else 1
    )
    source = Sidecar(tmp_path / "tags.jsonl") if setting == "sidecar" else GUESSED
    counts = stats([tmp_path / "items.jsonl"], datetime.now(UTC), tags=source)
    index = counts.groups["index"]["index"]
    assert (index.allowed, index.refused) == (PAGES / 2, PAGES / 2)


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("setting", one_in(2, SETTINGS))
def test_feeds_take_what_is_permitted(
    serve: Serve, crawl: Crawl, tmp_path: Path, setting: str
) -> None:
    """Whether the tag is in the item or not, and whoever has replaced the item since."""
    server = serve(site())
    value, _ = place(setting, tmp_path)
    options = {"item_filter": "comity.crawler.feeds.PermittedFor", "comity_uses": "index"}
    crawl(
        Shop,
        {"COMITY_TAG": value, "FEEDS": feeds(tmp_path, "items.jsonl", **options)},
        urls=[server.url(f"/{n}") for n in range(PAGES)],
    )
    names = [
        json.loads(line)["name"] for line in (tmp_path / "items.jsonl").read_text().splitlines()
    ]
    assert sorted(names) == sorted(
        f"{kind} {n}" for kind in ("dict", "item") for n in range(0, PAGES, 2)
    )


@pytest.mark.parametrize("setting", one_in(2, SETTINGS))
def test_items_that_nobody_may_use_are_dropped(
    serve: Serve, crawl: Crawl, tmp_path: Path, setting: str
) -> None:
    server = serve(site())
    value, _ = place(setting, tmp_path)
    crawled = crawl(
        Shop,
        {"COMITY_TAG": value, "COMITY_USES": "index"},
        urls=[server.url(f"/{n}") for n in range(PAGES)],
    )
    assert sorted(int(item["name"].split()[1]) % 2 for item in crawled.items) == [0] * PAGES
    assert crawled.stats["comity/items/dropped"] == PAGES


class Quotes(Shop):
    def parse(self, response: Response) -> Any:
        yield {"text": response.css("p::text").getall(), "url": response.url}


@pytest.mark.requirement("AIT-7")
@pytest.mark.parametrize("setting", one_in(2, SETTINGS))
def test_elements_are_cut_out_and_said(
    serve: Serve, crawl: Crawl, tmp_path: Path, setting: str
) -> None:
    server = serve(
        {
            "/robots.txt": "",
            "/ai.txt": "User-agent: *\n  Path: /0 html\n    Element: p.quote\n      Disallow: Train\n",
            "/0": "<html><body><p>free</p><p class=quote>not for training</p></body></html>",
        }
    )
    value, source = place(setting, tmp_path)
    settings = {
        "COMITY_TAG": value,
        "COMITY_USES": "train",
        "COMITY_DEFAULTS": "train:allow",
        "COMITY_ELEMENTS": "redact",
    }
    crawled = crawl(Quotes, settings, urls=[server.url("/0")])
    [item] = crawled.items
    assert item["text"] == ["free"]
    if setting == "sidecar":
        source = Sidecar(tmp_path / "tags.jsonl")
    if source:
        [element] = source.find(item).raw["elements"]
        assert (element["selector"], element["spans"]) == ("p.quote", [])


class Twice(Shop):
    """One item of two pages, yielded for each."""

    kept: ClassVar[dict[str, Any]] = {}

    def parse(self, response: Response) -> Any:
        item = self.kept.setdefault(str(id(self)), {"name": "both"})
        item["pages"] = item.get("pages", 0) + 1
        yield item


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("setting", ["permissions", "json", "sidecar"])
def test_an_item_of_two_pages_is_bound_by_both(
    serve: Serve, crawl: Crawl, tmp_path: Path, setting: str
) -> None:
    server = serve(site())
    value, _ = place(setting, tmp_path)
    settings = {
        "COMITY_TAG": value,
        "CONCURRENT_REQUESTS": 1,
        "FEEDS": feeds(tmp_path, "items.jsonl"),
    }
    crawl(Twice, settings, urls=[server.url("/1"), server.url("/2")])  # the first refuses
    source = Sidecar(tmp_path / "tags.jsonl") if setting == "sidecar" else GUESSED
    out = tmp_path / "out.jsonl"
    assert (
        export([tmp_path / "items.jsonl"], out, Terms.of(["index"], tags=source)).counts.kept == 0
    )


class Images(FilesPipeline):
    """Fetches the file that an item names."""

    def get_media_requests(self, item: Any, info: Any) -> Any:
        return [Request(item["image"])]

    def item_completed(self, results: Any, item: Any, info: Any) -> Any:
        assert current_tag.get() is not None
        return item


class Pictures(Shop):
    custom_settings: ClassVar = {"ITEM_PIPELINES": {Images: 300}}  # type: ignore[misc]

    def parse(self, response: Response) -> Any:
        yield {
            "name": response.url,
            "image": response.urljoin(f"/image{response.url.rpartition('/')[2]}"),
        }


@pytest.mark.requirement("META-3")
@pytest.mark.parametrize("setting", ["sidecar", "off"])
def test_files_are_bound_by_their_page(
    serve: Serve, crawl: Crawl, tmp_path: Path, setting: str
) -> None:
    answer = serve.Answer  # type: ignore[attr-defined]
    no_images = answer("<p>page", content_type="text/html", headers={"X-Robots-Tag": "noimageai"})
    server = serve(
        {"/robots.txt": "", "/0": "<p>page", "/1": no_images, "/image0": b"GIF", "/image1": b"GIF"}
    )
    value, _ = place(setting, tmp_path)
    settings = {
        "COMITY_TAG": value,
        "COMITY_USES": "train",
        "COMITY_DEFAULTS": "train:allow",
        "FILES_STORE": str(tmp_path / "files"),
    }
    crawled = crawl(Pictures, settings, urls=[server.url("/0"), server.url("/1")])
    assert len(crawled.items) == 2
    assert "/image0" in server.paths
    assert "/image1" not in server.paths


@pytest.mark.parametrize("fields", [["name"], {"name": "title"}])
def test_fields_of_all_feeds_are_those_of_the_ids(
    serve: Serve, crawl: Crawl, tmp_path: Path, fields: Any
) -> None:
    server = serve(site())
    settings = {"COMITY_TAG": f"sidecar:{tmp_path / 'tags.jsonl'}", "FEED_EXPORT_FIELDS": fields}
    crawled = crawl(Shop, settings, urls=[server.url(f"/{n}") for n in range(PAGES)])
    assert len(crawled.items) == 2 * PAGES
    source = Sidecar(tmp_path / "tags.jsonl")
    assert len(source) == 2 * PAGES
    assert {tuple(item) for item in crawled.items} == {
        tuple(fields.values() if isinstance(fields, dict) else fields)
    }
    for item in crawled.items:
        assert source.find(item)


KILLED = """
import os, signal
from scrapy import Request, Spider, signals

class Killed(Spider):
    name = "killed"

    async def start(self):
        yield Request(self.url)

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.scraped, signals.item_scraped)
        spider.items = 0
        return spider

    def scraped(self):
        self.items += 1
        if self.items == int(self.at):
            os.kill(os.getpid(), signal.SIGKILL)

    def parse(self, response):
        for number in range(400):
            yield {"number": number, "text": "word " * 40}
"""


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("at", [58, *(pytest.param(at, marks=pytest.mark.slow) for at in (2, 400))])
def test_what_a_killed_crawl_leaves_has_its_tags(serve: Serve, tmp_path: Path, at: int) -> None:
    server = serve(site())
    (tmp_path / "killed.py").write_text(KILLED)
    settings = {
        "ADDONS": '{"comity.crawler.addon.Addon": 100}',
        "COMITY_TAG": "sidecar:tags.jsonl",
        "COMITY_STORE": "p.sqlite",
    }
    words = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    command = [
        sys.executable,
        "-m",
        "scrapy",
        "runspider",
        "killed.py",
        "-o",
        "items.jsonl",
        *words,
    ]
    for _ in range(2):  # the second one appends to what the first one has left
        done = subprocess.run(
            [*command, "-a", f"url={server.url('/0')}", "-a", f"at={at}"],
            cwd=tmp_path,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
    tags = Sidecar(tmp_path / "tags.jsonl")
    assert len(tags) == 2 * (at - 1)
    whole = [
        line for line in (tmp_path / "items.jsonl").read_text().split("\n") if line.endswith("}")
    ]
    assert all(tags.find(json.loads(line)).raw["uses"] for line in whole)


class DropsAll:
    def process_item(self, item: Any) -> Any:
        raise DropItem("the schema knows no such field")


class Fails:
    def process_item(self, item: Any) -> Any:
        return item["no such field"]


class Dropped(Shop):
    custom_settings: ClassVar = {"ITEM_PIPELINES": {DropsAll: 300}}  # type: ignore[misc]


class Failed(Shop):
    custom_settings: ClassVar = {"ITEM_PIPELINES": {Fails: 300}}  # type: ignore[misc]


@pytest.mark.parametrize("setting", ["permissions", "off"])
@pytest.mark.parametrize(
    ("spider", "said"),
    [
        (Dropped, "All items were dropped"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((Failed, "An item failed"), (Shop, ""))
        ),
    ],
)
def test_pipelines_that_may_not_know_the_field(
    serve: Serve, crawl: Crawl, spider: type[Spider], said: str, setting: str
) -> None:
    server = serve(site())
    log = crawl(spider, {"COMITY_TAG": setting}, urls=[server.url("/0"), server.url("/1")]).log
    assert log.count("put the tag elsewhere") == (1 if said and setting == "permissions" else 0)
    assert said in log or setting == "off"
