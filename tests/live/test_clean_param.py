"""Links that differ in parameters of Clean-param lines alone, by what the server was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request

from tests.selection import one_in

if TYPE_CHECKING:  # the processes that run the spiders do not know the tests
    from collections.abc import Callable

    from tests.conftest import Answer, Crawled, Serve

pytestmark = pytest.mark.requirement("CLEAN-1")

ROBOTS = """User-agent: *
Disallow: /*secret=
Clean-param: sid&secret
Clean-param: ref /books/
"""
LINKS = (
    *("/a?sid=1", "/a?sid=2", "/a", "/a?sid=3&page=2", "/a?page=2&sid=4"),
    *("/books/?ref=1&id=1", "/books/?ref=2&id=1", "/books/?ref=2&id=2", "/b?ref=1", "/b?ref=2"),
    *("/c?secret=1", "/c", "/d?sid=1#x", "/d?sid=2#y"),
)
ONCE = [
    *("/a?sid=1", "/a?sid=3&page=2", "/b?ref=1", "/b?ref=2", "/books/?ref=1&id=1"),
    *("/books/?ref=2&id=2", "/c", "/d?sid=1"),
]


def settings_of(storage: str, tmp_path: Path) -> dict[str, str]:
    return {
        "memory": {},
        "JOBDIR": {"JOBDIR": str(tmp_path / "job")},
        "COMITY_STATE": {"COMITY_STATE": f"sqlite:///{tmp_path / 'state.sqlite'}"},
    }[storage]


class Numbered(Request):
    """A request of a class that cannot be made from the attributes of a request."""

    def __init__(self, address: str, *, method: str = "GET", callback: Any = None) -> None:
        super().__init__(address, method=method, callback=callback)


class Links(Spider):
    """Follows the links of the first page."""

    name = "links"
    url = ""
    request: type[Request] = Request

    async def start(self) -> Any:
        yield Request(self.url)

    def parse(self, response: Any) -> Iterator[Request]:
        for href in response.css("a::attr(href)").getall():
            yield self.request(response.urljoin(href), callback=self.parse_page)
        for number in (1, 2):
            yield self.request(response.urljoin(f"/p?sid={number}"), method="POST")

    def parse_page(self, response: Any) -> Iterator[dict[str, str]]:
        yield {"url": response.url}


def pages(server: Any) -> list[str]:
    """Return the requested links of the first page."""
    links = {link.partition("#")[0] for link in LINKS}
    return sorted(path for path in server.paths if path in links)


@pytest.fixture
def site(serve: Serve) -> Any:
    anchors = "".join(f'<a href="{link}">a</a>' for link in LINKS)
    routes: dict[str, str | Answer] = dict.fromkeys(
        (link.partition("#")[0] for link in LINKS), "<p>page"
    )
    return serve({"/robots.txt": ROBOTS, "/": anchors, **routes})


@pytest.mark.parametrize("storage", one_in(3, ["memory", "JOBDIR", "COMITY_STATE"]))
def test_a_page_is_requested_once(
    crawl: Callable[..., Crawled], site: Any, storage: str, tmp_path: Path
) -> None:
    crawled = crawl(Links, settings_of(storage, tmp_path), url=site.url("/"))
    assert pages(site) == ONCE
    assert crawled.stats["comity/scheduler/cleaned"] == 4
    # The spider sees the links as they were found.
    assert {"/p?sid=1", "/p?sid=2"} <= set(site.paths)  # POST
    seen = sorted(item["url"].partition("#")[0] for item in crawled.items)
    assert seen == [site.url(path) for path in ONCE]


class NumberedLinks(Links):
    request = Numbered


def test_requests_of_any_class_are_compared(crawl: Callable[..., Crawled], site: Any) -> None:
    crawl(NumberedLinks, url=site.url("/"))
    assert pages(site) == ONCE


def test_each_link_is_requested_without_the_setting(
    crawl: Callable[..., Crawled], site: Any
) -> None:
    crawl(Links, {"COMITY_CLEAN_PARAM": False}, url=site.url("/"))
    links = {link.partition("#")[0] for link in LINKS} - {"/c?secret=1"}
    assert pages(site) == sorted(links)


class Copying(Links):
    """Copies the meta of each page to its links, as some spiders do."""

    def parse(self, response: Any) -> Iterator[Request]:
        for href in response.css("a::attr(href)").getall():
            yield Request(response.urljoin(href), callback=self.parse, meta=response.meta)


@pytest.mark.parametrize("spider", one_in(2, [Links, Copying]))
@pytest.mark.parametrize("storage", ["memory", "JOBDIR", "COMITY_STATE"])
def test_a_redirect_to_the_same_page_is_followed(
    crawl: Callable[..., Crawled], serve: Serve, storage: str, spider: type[Spider], tmp_path: Path
) -> None:
    from tests.conftest import Answer

    def to(location: str) -> Answer:
        return Answer(status=302, headers={"Location": location})

    def html(text: str) -> Answer:
        return Answer(text, content_type="text/html")

    first = ("/dropped?sid=1", "/added", "/changed?sid=1", "/refresh?sid=1", "/login?sid=1")
    moved = {
        "/dropped?sid=1": to("/dropped"),
        "/added": to("/added?sid=2"),
        "/changed?sid=1": to("/changed?sid=2"),
        "/refresh?sid=1": html('<meta http-equiv="refresh" content="0; url=/refresh">'),
        "/login?sid=1": to("/cookie"),
        "/cookie": to("/login?sid=2"),
        "/loop?sid=1": to("/loop?sid=2"),
        "/loop?sid=2": to("/loop?sid=1"),
    }
    last = ("/dropped", "/added?sid=2", "/changed?sid=2", "/refresh", "/login?sid=2")
    pages = {path: html('<a href="?sid=3">a</a><a href="?sid=4">a</a>') for path in last}
    anchors = "".join(f'<a href="{link}">a</a>' for link in (*first, "/loop?sid=1"))
    server = serve({"/robots.txt": ROBOTS, "/": html(anchors), **moved, **pages})
    crawl(spider, settings_of(storage, tmp_path), url=server.url("/"))
    asked = sorted(path for path in server.paths if path not in ("/", "/robots.txt"))
    posted = [] if spider is Copying else ["/p?sid=1", "/p?sid=2"]
    assert asked == sorted([*moved, *last, *posted])
