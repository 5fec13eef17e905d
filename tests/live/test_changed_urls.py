"""Responses of another URL than was asked for, or without their header fields, as browsers and middlewares give them: what is
said of either URL, and with the answer as it came, holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urljoin, urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response, TextResponse

from comity.crawler.elements import of, text
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Serve

    Crawl = Callable[..., Crawled]

PAGE = "<!doctype html><title>t</title><p class=a>one first</p><p class=b>two second</p>"
DEFAULTS = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow", "COMITY_DROP_UNUSABLE": False}


class Browser:
    """Downloader middleware: a page leads elsewhere without telling."""

    def process_response(self, request: Request, response: Response) -> Response:
        to = request.meta.get("to")
        return response.replace(url=to) if to else response


class Pages(Spider):
    name = "pages"
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {Browser: 950}}  # type: ignore[misc]  # of the class
    asked: str
    to: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.asked, meta={"to": self.to} if self.to else {})

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        try:
            permits = [of(response).permits("train", one) for one in response.css("p")]
        except LookupError:
            permits = []
        texts = response.css("p::text").getall()
        yield {
            "url": response.url,
            "texts": texts,
            "text": text(response),
            "permits": " ".join("yn"[not one] for one in permits),
        }
        yield Request(urljoin(self.asked, "/next"), callback=self.parse)


def rules(path: str, element: str) -> str:
    return f"User-agent: *\n  Path: {path} html\n    Element: {element}\n      Disallow: Train\n"


def first_item(crawled: Crawled) -> dict[str, Any]:
    assert crawled.items, crawled.log
    return crawled.items[0]


def refused(item: dict[str, Any]) -> list[str]:
    """The URLs of the rules because of which training is refused."""
    tag = item["permissions"]
    use = tag["uses"]["train"]
    return (
        [urlsplit(tag["reasons"][place]["url"]).netloc for place in use["because"]]
        if use["verdict"] == "deny"
        else []
    )


@pytest.fixture(params=["same origin", "another origin"])
def sites(request: pytest.FixtureRequest, serve: Serve) -> Callable[..., tuple[Any, Any]]:
    """`sites(first, final)`: the servers of two URLs, each with the ai.txt; the same one where they are of one origin."""

    def make(first: str, final: str, **more: str) -> tuple[Any, Any]:
        pages = {"/first": PAGE, "/final": PAGE, "/next": PAGE}
        if request.param == "same origin":
            server = serve({"/ai.txt": first + final, **pages, **more})
            return server, server
        return serve({"/ai.txt": first, **pages, **more}), serve(
            {"/ai.txt": final, **pages, **more}, "127.0.0.2"
        )

    return make


@pytest.mark.requirement("AIT-10", "MEET-3")
@pytest.mark.parametrize("refusing", one_in(2, ["first", "final", "none"]))
def test_what_is_said_of_either_url_holds(
    sites: Callable[..., tuple[Any, Any]], crawl: Crawl, refusing: str
) -> None:
    first, final = sites(
        *(rules(f"/{name}", "*") if name == refusing else "" for name in ("first", "final"))
    )
    item = first_item(crawl(Pages, DEFAULTS, asked=first.url("/first"), to=final.url("/final")))
    assert item["url"] == final.url("/final")
    where = {"first": first, "final": final}.get(refusing)
    assert refused(item) == ([urlsplit(where.origin).netloc] if where else [])
    assert {f"{first.origin}/robots.txt", f"{final.origin}/robots.txt"} <= item["permissions"][
        "policies"
    ].keys()


@pytest.mark.requirement("AIT-10", "MEET-5")
@pytest.mark.parametrize(
    "mode_of_elements", one_in(2, ["tag", "strip", pytest.param("redact", marks=pytest.mark.slow)])
)
def test_elements_of_either_url_are_cut(
    sites: Callable[..., tuple[Any, Any]], crawl: Crawl, mode_of_elements: str
) -> None:
    first, final = sites(rules("/first", ".a"), rules("/final", ".b"))
    settings = DEFAULTS | {"COMITY_ELEMENTS": mode_of_elements}
    items = crawl(Pages, settings, asked=first.url("/first"), to=final.url("/final")).items
    elements = items[0]["permissions"]["elements"]
    spans = {
        one["selector"]: [span for span in one["spans"] if span[0] != "permits"] for one in elements
    }
    if mode_of_elements == "tag":
        assert items[0]["texts"] == ["one first", "two second"]
        assert spans == {
            ".a": [["texts", 0], ["text", 0, 9]],
            ".b": [["texts", 1], ["text", 10, 20]],
        }
        assert items[0]["permits"] == "n n"
    else:
        assert items[0]["texts"] == []
        assert items[0]["text"].strip() == ""
        assert spans in ({}, {".a": [], ".b": []})
    assert items[1]["texts"] == ["one first", "two second"]


@pytest.mark.requirement("MEET-3")
def test_the_robots_txt_of_the_final_url_is_asked(
    sites: Callable[..., tuple[Any, Any]], crawl: Crawl
) -> None:
    first, final = sites("", "", **{"/robots.txt": "User-agent: *\nDisallow: /final\n"})
    item = first_item(crawl(Pages, DEFAULTS, asked=first.url("/first"), to=final.url("/final")))
    assert item["permissions"]["uses"]["crawl"]["verdict"] == "deny"


@pytest.mark.requirement("AIT-10")
@pytest.mark.parametrize(
    ("asked", "to"),
    [
        ("/first#a", "/first#b"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("/first#a", ""), ("/first", "/first#b"))
        ),
    ],
)
def test_a_fragment_makes_no_other_page(serve: Serve, crawl: Crawl, asked: str, to: str) -> None:
    site = serve({"/ai.txt": rules("/first", ".a"), "/first": PAGE, "/next": PAGE})
    item = first_item(crawl(Pages, DEFAULTS, asked=site.url(asked), to=site.url(to) if to else ""))
    assert item["permits"] == "n y"
    assert [one["selector"] for one in item["permissions"]["elements"]] == [".a"]


@pytest.mark.requirement("MEET-3")
def test_a_url_without_policies_of_its_own_has_those_of_the_first(
    serve: Serve, crawl: Crawl
) -> None:
    site = serve({"/ai.txt": rules("/first", "*"), "/first": PAGE, "/next": PAGE})
    item = first_item(crawl(Pages, DEFAULTS, asked=site.url("/first"), to="about:blank"))
    assert refused(item) == [urlsplit(site.origin).netloc]


class PagesEarlier(Pages):
    """The URL is another one before comity sees the response."""

    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {Browser: 960}}  # type: ignore[misc]  # of the class

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url}


@pytest.mark.requirement("MEET-3", "SEC-1")
def test_what_is_no_url_is_bound_by_the_first(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/ai.txt": rules("/first", "*"), "/first": PAGE, "/next": PAGE})
    settings = DEFAULTS | {"METAREFRESH_ENABLED": False}  # which fails at such a URL by itself
    item = first_item(crawl(PagesEarlier, settings, asked=site.url("/first"), to="http://[first"))
    assert refused(item) == [urlsplit(site.origin).netloc]


class Rendering:
    """Downloader middleware: makes a page of what came, as those do that render it or mend its encoding. Nothing else is kept."""

    def process_response(self, request: Request, response: Response) -> Response:
        return HtmlResponse(response.url, body=response.body, encoding="utf-8", request=request)


class Mending(Rendering):
    """The same in place."""

    def process_response(self, request: Request, response: Response) -> Response:
        response.headers.pop("X-Robots-Tag", None)
        return response


class RenderedPages(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {Rendering: 120}}  # type: ignore[misc]


class MendedPages(Pages):
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": {Mending: 990}}  # type: ignore[misc]


@pytest.mark.requirement("META-1", "MEET-3")
@pytest.mark.parametrize("spider", [RenderedPages, MendedPages])
def test_header_fields_that_a_middleware_drops_hold(
    serve: Serve, crawl: Crawl, spider: type[Pages]
) -> None:
    said = serve.Answer(PAGE, content_type="text/html", headers={"X-Robots-Tag": "noai"})
    server = serve({"/first": said, "/next": PAGE})
    settings = {
        **DEFAULTS,
        "COMITY_USES": "train,index",
        "COMITY_DEFAULTS": "train:allow,index:allow",
    }
    crawled = crawl(spider, settings, asked=server.url("/first"), to="")
    verdicts = {urlsplit(item["url"]).path: item["permissions"]["uses"] for item in crawled.items}
    assert {
        (path, use): uses[use]["verdict"]
        for path, uses in verdicts.items()
        for use in ("train", "index")
    } == {
        ("/first", "train"): "deny",
        ("/first", "index"): "allow",
        ("/next", "train"): "allow",
        ("/next", "index"): "allow",
    }
    assert verdicts["/first"]["train"]["stated"]
