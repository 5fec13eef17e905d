"""Every item carries the decisions of its own page, whatever class it is and on whatever way it comes."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import pydantic
import pytest
from itemadapter import ItemAdapter
from jsonschema import Draft202012Validator
from scrapy import Field, Item, Spider
from scrapy.crawler import Crawler
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.request.referrals import current_page
from comity.policies.formats import WELL_KNOWN
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

VALIDATOR = Draft202012Validator(
    json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
)
PAGES = 12


class PlainItem(Item):
    url = Field()


class DeclaredItem(PlainItem):
    permissions = Field()


@dataclasses.dataclass
class Data:
    url: str


@dataclasses.dataclass
class DeclaredData:
    url: str
    permissions: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenData:
    url: str


@attrs.define
class Attrs:
    url: str


@attrs.frozen
class FrozenDeclaredAttrs:
    url: str
    permissions: Any = None


class Model(pydantic.BaseModel):
    url: str


class FrozenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")
    url: str


KINDS: tuple[Any, ...] = (
    dict,
    PlainItem,
    DeclaredItem,
    Data,
    DeclaredData,
    FrozenData,
    Attrs,
    FrozenDeclaredAttrs,
    Model,
    FrozenModel,
)


def pages() -> dict[str, Any]:
    """A site on which the deciding line names the page."""
    rules = "".join(f"Allow: /{number}$\n" for number in range(PAGES))
    return {"/robots.txt": f"User-agent: *\n{rules}Disallow: /private\n"} | {
        f"/{n}": "<p>page</p>" for n in range(PAGES)
    }


def deciding(item: dict[str, Any], use: str = "crawl") -> dict[str, Any]:
    tag = item["permissions"]
    reason: dict[str, Any] = tag["reasons"][tag["uses"][use]["because"][0]]
    return reason


def assert_tagged_with_its_own_page(items: list[dict[str, Any]]) -> None:
    for item in items:
        VALIDATOR.validate(item["permissions"])
        origin, _, path = item["url"].rpartition("/")
        reason = deciding(item)
        assert (reason["url"], reason["text"]) == (f"{origin}/robots.txt", f"Allow: /{path}$")


class KeepsClass:
    """A later pipeline that others wrote: it sees the class that the spider yielded, tag included."""

    def process_item(self, item: Any) -> Any:
        assert isinstance(item, KINDS)
        assert ItemAdapter(item)["permissions"]["schema"] == 1
        return item


class Kinds(Spider):
    """One item of every class for every page, in one of the ways that callbacks have."""

    name = "kinds"
    custom_settings: ClassVar = {"ITEM_PIPELINES": {KeepsClass: 300}}  # type: ignore[misc]
    urls: list[str]
    way: str = "sync"

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url, callback=getattr(self, self.way))

    def sync(self, response: Response) -> Any:
        yield None
        for kind in KINDS:
            yield kind(url=response.url)

    async def coroutine(self, response: Response) -> Any:
        await asyncio.sleep(0.001)
        return [kind(url=response.url) for kind in KINDS]

    async def generator(self, response: Response) -> Any:
        for kind in KINDS:
            await asyncio.sleep(0)
            yield kind(url=response.url)

    def closed(self, reason: str) -> None:
        assert self.crawler.stats
        self.crawler.stats.set_value("left", len(OwnCrawl.of(self.crawler).item_pages))


@pytest.mark.requirement("WHY-2")
@pytest.mark.parametrize(
    "way",
    ["sync", *(pytest.param(way, marks=pytest.mark.slow) for way in ("coroutine", "generator"))],
)
def test_every_class_of_item(serve: Serve, crawl: Crawl, way: str) -> None:
    servers = [serve(pages(), host=f"127.0.0.{n}") for n in (1, 2, 3)]
    urls = [server.url(f"/{n}") for n in range(PAGES) for server in servers]
    crawled = crawl(Kinds, {"CONCURRENT_REQUESTS": 16}, urls=urls, way=way)
    assert len(crawled.items) == len(urls) * len(KINDS) == crawled.stats["comity/items/tagged"]
    assert_tagged_with_its_own_page(crawled.items)
    assert crawled.stats["left"] == 0
    assert crawled.stats["comity/items/use/crawl/allow"] == len(crawled.items)
    assert crawled.stats["comity/items/use/index/deny/not-stated"] == len(crawled.items)
    assert "Traceback" not in crawled.log


class CopiesOutputs:
    """A spider middleware that replaces every item."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for output in result:
            yield output if isinstance(output, Request) else copy.copy(output)


class CopiesItems:
    """A pipeline that replaces every item, after others had their turn."""

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.001)
        return copy.copy(item)


class Replaced(Kinds):
    """Others replace the items on both sides of ours, and have lower numbers than ours would have."""

    custom_settings: ClassVar = {  # type: ignore[misc]
        "SPIDER_MIDDLEWARES": {CopiesOutputs: 5},
        "ITEM_PIPELINES": {CopiesItems: -5, KeepsClass: 300},
    }


def test_items_that_others_replace(serve: Serve, crawl: Crawl) -> None:
    server = serve(pages())
    crawled = crawl(Replaced, urls=[server.url(f"/{n}") for n in range(PAGES)])
    assert len(crawled.items) == PAGES * len(KINDS)
    assert_tagged_with_its_own_page(crawled.items)
    assert crawled.stats["left"] == 0
    assert "lose their page" not in crawled.log


class LostBetween(Kinds):
    """The project insists on an order in which ours cannot follow the items."""

    custom_settings: ClassVar = {  # type: ignore[misc]
        "ITEM_PIPELINES": {CopiesItems: 1, "comity.crawler.items.pipeline.PermissionsPipeline": 2},
    }


def test_items_replaced_before_our_pipeline_have_no_page_and_it_is_said(
    serve: Serve, crawl: Crawl
) -> None:
    crawled = crawl(LostBetween, urls=[serve(pages()).url("/0")])
    assert {deciding(item)["rule"] for item in crawled.items} == {"comity.no-page"}
    assert "ITEM_PIPELINES has CopiesItems before PermissionsPipeline" in crawled.log
    assert crawled.stats["comity/items/no-page"] == len(KINDS)


class Twice(Spider):
    """One object for every page, as if it gathered them."""

    name = "twice"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        self.gathered: dict[str, Any] = {"urls": []}
        yield Request(self.urls[0], cb_kwargs={"others": self.urls[1:]})

    def parse(self, response: Response, others: list[str]) -> Any:
        self.gathered["urls"].append(response.url)
        yield self.gathered
        if others:
            yield Request(others[0], cb_kwargs={"others": others[1:]})


def test_item_that_is_yielded_for_two_pages_names_the_policies_of_both(
    serve: Serve, crawl: Crawl
) -> None:
    servers = [serve(pages(), host=f"127.0.0.{n}") for n in (1, 2)]
    crawled = crawl(Twice, urls=[server.url("/0") for server in servers])
    files = [{server.url(path) for path in WELL_KNOWN} for server in servers]
    assert [set(item["permissions"]["policies"]) for item in crawled.items] == [
        files[0],
        files[0] | files[1],
    ]
    for item in crawled.items:
        VALIDATOR.validate(item["permissions"])


class NoPage(Spider):
    """Items from start(), from an errback, and of a data: URL."""

    name = "no_page"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        yield {"from": "start"}
        yield Request(self.url, errback=self.failed)
        yield Request("data:,hello")

    def parse(self, response: Response) -> Any:
        yield {"from": "data"}

    def failed(self, failure: Any) -> Any:
        yield {"from": "errback"}


@pytest.mark.parametrize("uses", ["", "index,train"])
def test_items_without_a_page_may_be_used_for_nothing(
    serve: Serve, crawl: Crawl, uses: str
) -> None:
    url = serve(pages()).url("/private")
    settings = {
        "COMITY_USES": uses,
        "COMITY_DROP_UNUSABLE": False,
        "COMITY_DEFAULTS": "index:allow,train:allow",
    }
    crawled = crawl(NoPage, settings, url=url)
    assert sorted(item["from"] for item in crawled.items) == ["data", "errback", "start"]
    for item in crawled.items:
        VALIDATOR.validate(item["permissions"])
        decisions = item["permissions"]["uses"]
        assert set(decisions) >= set(filter(None, uses.split(",")))
        assert {(decision["verdict"], decision["stated"]) for decision in decisions.values()} == {
            ("deny", False)
        }
        assert deciding(item, "index")["rule"] == "comity.no-page"
    assert crawled.log.count("An item came from no page") == 1
    assert crawled.stats["comity/items/no-page"] == 3


@pytest.mark.parametrize(
    ("settings", "kept"),
    one_in(
        2,
        [
            ({}, True),
            ({"COMITY_USES": "train"}, False),
            ({"COMITY_USES": "index,train"}, False),
            ({"COMITY_USES": "train", "COMITY_DROP_UNUSABLE": False}, True),
            ({"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow"}, True),
            ({"COMITY_USES": "index,train", "COMITY_DEFAULTS": "index:allow"}, True),
            ({"COMITY_USES": "train", "COMITY_DEFAULTS": "train:deny"}, False),
            ({"COMITY_USES": "crawl"}, True),
        ],
    ),
)
def test_item_is_dropped_when_no_declared_use_is_left(
    serve: Serve, crawl: Crawl, settings: dict[str, Any], kept: bool
) -> None:
    crawled = crawl(Kinds, settings, urls=[serve(pages()).url("/0")])
    assert len(crawled.items) == (len(KINDS) if kept else 0)
    assert crawled.stats.get("comity/items/dropped", 0) == (0 if kept else len(KINDS))
    assert ("COMITY_DROP_UNUSABLE=False keeps them" in crawled.log) is not kept
    assert crawled.stats["left"] == 0


class OwnField(Spider):
    """Items with a `permissions` of the project's own."""

    name = "own_field"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        for own in ("read", {"read": True}, ["read"], {}, None):
            yield {"url": response.url, "permissions": own}


def test_permissions_of_the_projects_own_are_kept_and_it_is_said_once(
    serve: Serve, crawl: Crawl
) -> None:
    server = serve(pages())
    crawled = crawl(OwnField, urls=[server.url("/0"), server.url("/1")])
    assert len(crawled.items) == 10
    own = [item.pop("permissions") for item in crawled.items if "comity_permissions" in item]
    assert own == ["read", {"read": True}, ["read"]] * 2
    for item in crawled.items:
        item.setdefault("permissions", item.get("comity_permissions"))
    assert_tagged_with_its_own_page(crawled.items)
    assert crawled.log.count("have data of their own in `permissions`") == 1


class Sealed:
    """No item class that Scrapy knows."""


@dataclasses.dataclass
class NoSubclass:
    url: str

    def __init_subclass__(cls) -> None:
        raise TypeError("no subclasses")


class Untaggable(Spider):
    name = "untaggable"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield Sealed()
        yield "text"
        yield NoSubclass(url=response.url)
        yield {"url": response.url}


def test_what_can_carry_no_tag_is_dropped_with_the_reason(serve: Serve, crawl: Crawl) -> None:
    crawled = crawl(Untaggable, urls=[serve(pages()).url("/0")])
    assert len(crawled.items) == 1
    assert crawled.stats["comity/items/untaggable"] == 3
    assert (
        "no `permissions` can be written into NoSubclass: declare such a field in it, or set COMITY_TAG"
        in crawled.log
    )
    assert "Traceback" not in crawled.log


class SeesPage:
    """A downloader middleware that asks for which page a file is fetched."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SeesPage:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        if "/file" in request.url:
            page = current_page.get()
            assert self._crawler.stats
            self._crawler.stats.set_value(f"page of {request.url}", page.url if page else None)


class WithFiles(Spider):
    name = "with_files"
    urls: list[str]
    custom_settings: ClassVar = {  # type: ignore[misc]
        "DOWNLOADER_MIDDLEWARES": {SeesPage: 50},
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
    }

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        page = response.url.rpartition("/")[2]
        for number in range(3):
            yield {"file_urls": [response.urljoin(f"/file{page}-{number}")], "files": []}


def test_request_for_a_file_knows_the_page_of_its_item(
    serve: Serve, crawl: Crawl, tmp_path: Any
) -> None:
    servers = [
        serve(
            pages() | {f"/file{n}-{m}": "file" for n in (0, 1) for m in range(3)},
            host=f"127.0.0.{h}",
        )
        for h in (1, 2)
    ]
    urls = [server.url(f"/{n}") for server in servers for n in (0, 1)]
    crawled = crawl(WithFiles, {"FILES_STORE": str(tmp_path)}, urls=urls)
    found = {
        name.removeprefix("page of "): page
        for name, page in crawled.stats.items()
        if name.startswith("page of ")
    }
    assert found == {
        server.url(f"/file{n}-{m}"): server.url(f"/{n}")
        for server in servers
        for n in (0, 1)
        for m in range(3)
    }


BY_HAND: dict[str, Any] = {
    "DOWNLOADER_MIDDLEWARES": {
        "comity.crawler.middlewares.access.AccessMiddleware": 100,
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    },
    "SPIDER_MIDDLEWARES": {"comity.crawler.middlewares.page.PageMiddleware": 10},
    "ITEM_PIPELINES": {"comity.crawler.items.pipeline.PermissionsPipeline": 0},
}


class ByHand(Kinds):
    custom_settings: ClassVar = {}  # type: ignore[misc]


@pytest.mark.parametrize(
    "without", one_in(2, [None, "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES"])
)
def test_components_listed_by_hand(serve: Serve, crawl: Crawl, without: str | None) -> None:
    server = serve(pages())
    settings = {name: components for name, components in BY_HAND.items() if name != without}
    crawled = crawl(ByHand, {"ADDONS": {}, **settings}, urls=[server.url("/0"), server.url("/1")])
    assert server.paths[0] == "/robots.txt" or without == "DOWNLOADER_MIDDLEWARES"
    assert len(crawled.items) == 2 * len(KINDS)
    assert crawled.stats["left"] == 0
    if without == "ITEM_PIPELINES":
        assert not any(item.get("permissions") for item in crawled.items)
    elif without == "SPIDER_MIDDLEWARES":
        assert {deciding(item)["rule"] for item in crawled.items} == {"comity.no-page"}
    else:
        assert_tagged_with_its_own_page(crawled.items)


class Links(Spider):
    """Follows links that the site refuses, with and without somebody who wants to be told."""

    name = "links"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Response) -> Any:
        for path in ("private/1", "private/2", "1"):
            yield response.follow(f"/{path}", callback=self.linked)
        yield response.follow("/private/3", errback=self.failed)
        yield Request("data:,hello", callback=self.linked)

    def linked(self, response: Response) -> Any:
        yield {"url": response.url}
        if not response.url.startswith("data:"):
            yield response.follow("/private/1", callback=self.linked)

    def failed(self, failure: Any) -> Any:
        yield {"error": str(failure.value)}


@pytest.mark.requirement("WHY-2")
def test_links_that_are_known_to_be_refused_are_refused_once(serve: Serve, crawl: Crawl) -> None:
    server = serve(pages())
    crawled = crawl(Links, url=server.url("/0"))
    assert server.paths == ["/robots.txt", "/0", "/1"]
    assert {item["url"] for item in crawled.items if "url" in item} == {
        server.url("/1"),
        "data:,hello",
    }
    assert ["robots.disallow" in item["error"] for item in crawled.items if "error" in item] == [
        True
    ]
    assert (
        crawled.stats["comity/access/deny/robots.disallow"] == 3
    )  # each URL once, however many pages link to it
    assert crawled.log.count(f"Refused <GET {server.url('/private/1')}>") == 1


@pytest.mark.requirement("MEET-2")
def test_links_of_a_page_that_may_not_be_followed_are_dropped(serve: Serve, crawl: Crawl) -> None:
    server = serve(pages())
    crawled = crawl(Links, {"COMITY_DEFAULTS": "follow:deny"}, url=server.url("/0"))
    assert server.paths == ["/robots.txt", "/0"]
    assert crawled.items == []
    assert crawled.stats["comity/links/not-followed"] == 5
