"""What a spider can ask about the elements of a response, and what it cannot change by what it does to the page."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.selector import Selector

from comity.crawler import elements
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback
    from tests.conftest import Serve as Servers

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

AI = """User-agent: *
  Path: / html
    Element: .quote
      Disallow: Train
      Guide: Cite
        Lang: en
        Guideline: Name the author.
    Element: aside
      Disallow: *
  Path: /data json
    Element: items.secret
      Disallow: Train
  Path: /feed xml
    Element: entry.secret
      Disallow: Train
"""
PAGE = (
    '<!doctype html><html><head><meta name="robots" content="nofollow"><title>Title</title></head><body>'
    '<p id=free>free text</p><p class=quote>covered <b>words</b><a href="/in">in</a></p><aside>aside text</aside></body></html>'
)
FILES: dict[str, Any] = {"/robots.txt": "", "/ai.txt": AI, "/": PAGE}
USES = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow,index:allow"}


def of_json(response: TextResponse) -> Selector:
    """Up to Scrapy 2.17 the selector of a response never reads JSON."""
    selector = response.selector
    return selector if selector.type == "json" else Selector(text=response.text, type="json")


class AskingSpider(Spider):
    """What each selection may be used for."""

    name = "asking"
    base = ""

    async def start(self) -> Any:
        for path in ("", "data", "feed"):
            yield Request(self.base + path)

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        assert isinstance(response, TextResponse)
        found = elements.of(response)
        asked: dict[str, Any]
        if response.url.endswith("/data"):
            asked = {
                "open": response.json()["items"][0]["open"],
                "secret": of_json(response).jmespath("items[].secret"),
            }
        elif response.url.endswith("/feed"):
            asked = {
                "open": response.xpath("//title"),
                "secret": response.xpath("//secret"),
                "entry": response.xpath("//entry"),
            }
        else:
            asked = {
                "free": response.css("#free"),
                "free text": response.css("#free::text").get(),
                "quote": response.css(".quote"),
                "within": response.css(".quote b"),
                "around": response.css("body"),
                "text": response.css(".quote b::text").getall(),
                "made up": "1997-07-16",
            }
        yield {
            "path": response.url.removeprefix(self.base),
            "selectors": [element.selector for element in found],
            "permitted": {name: found.permits("train", asked[name]) for name in asked},
            "index": {name: found.permits("index", asked[name]) for name in asked},
            "covering": {
                name: [element.selector for element in found.covering(asked[name])]
                for name in asked
            },
        }


@pytest.mark.requirement("AIT-5", "AIT-10", "MEET-5")
def test_a_spider_asks_about_what_it_selects(serve: Servers, crawl: Crawl) -> None:
    data = '{"items": [{"open": "one", "secret": "two"}, {"open": "three", "secret": "four"}]}'
    feed = "<feed><title>one</title><entry><secret>two</secret></entry></feed>"
    server = serve(
        FILES
        | {
            "/data": serve.Answer(data, content_type="application/json"),
            "/feed": serve.Answer(feed, content_type="text/xml"),
        }
    )
    crawled = crawl(AskingSpider, USES, base=server.url("/"))
    page, said, fed = sorted(
        crawled.items, key=lambda item: ["", "data", "feed"].index(item["path"])
    )
    assert page["selectors"] == [".quote", "aside"]
    assert page["permitted"] == {
        "free": True,
        "free text": True,
        "quote": False,
        "within": False,
        "around": False,
        "text": False,
        "made up": False,
    }
    assert page["index"] == page["permitted"] | {"quote": True, "within": True, "text": True}
    assert page["covering"] | {"around": []} == {
        "free": [],
        "free text": [],
        "quote": [".quote"],
        "within": [".quote"],
        "around": [],
        "text": [".quote"],
        "made up": [".quote", "aside"],
    }
    assert said["covering"] == {"open": [], "secret": ["items.secret"]}
    assert fed["covering"] == {"open": [], "secret": ["entry.secret"], "entry": ["entry.secret"]}


class CuttingSpider(Spider):
    """It changes the tree of the page before anybody looks at what it returns."""

    name = "cutting"
    url = ""

    async def start(self) -> Any:
        yield Request(self.url)

    def parse(self, response: Response) -> list[Any]:
        assert isinstance(response, HtmlResponse)
        before = response.css(".quote b::text").get()
        for element in response.css("head, .quote, aside"):
            element.root.getparent().remove(element.root)
        return [
            {"quote": before, "free": response.css("#free::text").get()},
            Request(response.urljoin("/in")),
        ]


@pytest.mark.requirement("MEET-2", "MEET-5")
def test_what_a_spider_does_to_the_tree_changes_no_decision(serve: Servers, crawl: Crawl) -> None:
    server = serve(FILES)
    crawled = crawl(CuttingSpider, USES | {"COMITY_ELEMENTS": "redact"}, url=server.url("/"))
    [item] = crawled.items
    assert (item["quote"], item["free"]) == ("", "free text")
    assert [seen.path for seen in server.seen if seen.path not in ("/robots.txt", "/ai.txt")] == [
        "/"
    ]
    assert crawled.stats["comity/links/not-followed"] == 1


@dataclass(frozen=True)
class Frozen:
    quote: str
    made: str = field(default="made up", metadata={elements.CSS: ""})


class TwiceSpider(CuttingSpider):
    name = "twice"

    def parse(self, response: Response) -> Any:
        assert isinstance(response, HtmlResponse)
        item = {"quotes": response.css(".quote b::text, #free::text").getall()}
        yield item
        yield item
        yield Frozen(response.css(".quote").get() or "")


@pytest.mark.requirement("MEET-5")
def test_items_that_are_frozen_or_come_twice_are_redacted(serve: Servers, crawl: Crawl) -> None:
    crawled = crawl(TwiceSpider, USES | {"COMITY_ELEMENTS": "redact"}, url=serve(FILES).url("/"))
    first, second, frozen = sorted(crawled.items, key=lambda item: "made" in item)
    assert first["quotes"] == second["quotes"] == ["free text"]
    assert (frozen["quote"], frozen["made"]) == ("", "made up")
    assert crawled.stats["comity/items/redacted"] == 2
    for item in crawled.items:
        assert all(
            not element["spans"]
            for element in item["permissions"]["elements"]
            if "train" in element["deny"]
        )


def test_a_response_that_came_in_another_way() -> None:
    response = HtmlResponse("https://example.com/", body=PAGE, encoding="utf-8")
    with pytest.raises(LookupError, match="did not come through comity"):
        elements.of(response)
    assert elements.text(response) == "free text\ncovered wordsin"


class PlainSpider(CuttingSpider):
    name = "plain"

    def parse(self, response: Response) -> Any:
        yield {"free": response.css("#free::text").get()}


@pytest.mark.requirement("MEET-5", "ACAP-33")
@pytest.mark.parametrize("mode", ["redact", "strip"])
@pytest.mark.parametrize("ai", one_in(2, [AI, ""]))
def test_what_is_cut_is_in_no_resource_of_the_tag(
    serve: Servers, crawl: Crawl, mode: str, ai: str
) -> None:
    """An arrangement has an element of the page go with the item: one that nobody may train with."""
    robots = "ACAP-crawler: *\nACAP-allow-index: / must-use-resource=the-acap:extract:class:quote"
    server = serve(FILES | {"/robots.txt": robots, "/ai.txt": ai})
    settings = USES | {
        "COMITY_ELEMENTS": mode,
        "COMITY_ARRANGEMENTS": "127.0.0.1:must-use-resource",
    }
    [item] = crawl(PlainSpider, settings, url=server.url("/")).items
    index, reasons = item["permissions"]["uses"]["index"], item["permissions"]["reasons"]
    if ai:
        assert (index["verdict"], reasons[index["because"][0]]["rule"]) == ("deny", "acap.resource")
        assert "covered" not in str(item)
    else:
        assert (index["verdict"], "covered" in index["must_use"][0]["content"]) == ("allow", True)


@dataclass
class Living:
    alive: int = field(metadata={elements.CSS: ""})


class LivingSpider(CuttingSpider):
    """How many of the responses before it are still there."""

    name = "living"
    seen: ClassVar[list[ref[Response]]] = []

    async def start(self) -> Any:
        for number in range(20):
            yield Request(f"{self.url}?{number}")

    def parse(self, response: Response) -> Any:
        gc.collect()
        yield Living(sum(one() is not None for one in self.seen))
        self.seen.append(ref(response))


@pytest.mark.parametrize(
    "mode", ["tag", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("redact", "strip"))]
)
def test_no_page_keeps_its_response(serve: Servers, crawl: Crawl, mode: str) -> None:
    robots = "ACAP-crawler: *\nACAP-allow-index: /\nACAP-allow-follow: /"
    settings = USES | {
        "COMITY_ELEMENTS": mode,
        "CONCURRENT_REQUESTS": 1,
        "COMITY_DEFAULTS": "train:allow",
    }
    crawled = crawl(LivingSpider, settings, url=serve(FILES | {"/robots.txt": robots}).url("/"))
    assert len(crawled.items) == 20
    assert max(item["alive"] for item in crawled.items) < 5
