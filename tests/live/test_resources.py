"""What permissions want used or included (ACAP 1.0 section-2.5.3.2, section-2.5.5.2.5), in both modes of Scrapy."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from jsonschema import Draft202012Validator
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import Request, Response

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.fetching.network import Network
from comity.gate.fetching.reach import IPAddress, Reach
from comity.gate.fetching.store import PolicyStore
from comity.gate.pages.resources import MAX_OF_A_PAGE
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.lines import MAX_BYTES

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback
    from tests.conftest import Serve as Servers

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

VALIDATOR = Draft202012Validator(
    json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
)
ARRANGED = {"COMITY_ARRANGEMENTS": "127.0.0.1:must-use-resource,127.0.0.1:must-include-resource"}
PAGE = """<html><head><meta name="description" content="In short"></head>
<body><p id="summary">The <b>sum</b></p><i class="x by">A. Writer</i><i class="by">Another</i></body></html>"""


class Items(Spider):
    """Two items of every page."""

    name = "items"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}
        yield {"url": response.url}


def site(serve: Serve, *permissions: str, host: str = "127.0.0.1", **pages: Any) -> Loopback:
    """`permissions`: what follows "ACAP-allow-"."""
    robots = "ACAP-crawler: *\nACAP-allow-crawl: /\n" + "".join(
        f"ACAP-allow-{permission}\n" for permission in permissions
    )
    return serve({"/robots.txt": robots, "/a": PAGE} | pages, host=host)


def indexed(resource: str) -> str:
    return f"index: / must-use-resource={resource}"


def uses(crawled: Crawled, *wanted: str) -> Any:
    """What the items say of these uses: all the same."""
    assert crawled.items
    found = []
    for item in crawled.items:
        VALIDATOR.validate(item["permissions"])
        tag = item["permissions"]
        decisions = [tag["uses"][use] for use in wanted]
        found.append(
            [one | {"because": tag["reasons"][one["because"][0]]["rule"]} for one in decisions]
        )
    assert all(decisions == found[0] for decisions in found)
    return found[0]


def verdicts(crawled: Crawled, *wanted: str) -> list[tuple[str, str]]:
    return [(decision["verdict"], decision["because"]) for decision in uses(crawled, *wanted)]


def resource(
    role: str = "", extract: str = "", url: str = "", content: str = ""
) -> list[dict[str, str]]:
    return [{"role": role, "extract": extract, "url": url, "content": content}]


@pytest.mark.requirement("ACAP-33", "ACAP-36", "WHY-2")
def test_elements_of_the_page_are_in_the_tag(serve: Serve, crawl: Crawl) -> None:
    server = site(
        serve,
        indexed("the-acap:extract:id:summary"),
        "present-snippet: / must-use-resource=the-acap:extract:meta:Description",
        "present-link: / must-include-resource=the-acap:credit:class:by",
        "present-thumbnail: / must-include-resource=the-acap:credit:id:nowhere",
    )
    crawled = crawl(Items, ARRANGED, urls=[server.url("/a")])
    index, snippet, link, thumbnail = uses(
        crawled, "index", "present-snippet", "present-link", "present-thumbnail"
    )
    assert index["must_use"] == resource(
        extract="id:summary", content='<p id="summary">The <b>sum</b></p>'
    )
    assert snippet["must_use"] == resource(extract="meta:Description", content="In short")
    assert link["must_include"] == resource(
        "credit", extract="class:by", content='<i class="x by">A. Writer</i>'
    )
    assert (thumbnail["verdict"], thumbnail["because"]) == ("deny", "acap.resource")
    assert server.paths == ["/robots.txt", "/a"]


@pytest.mark.requirement("ACAP-33", "ACAP-36")
def test_a_resource_is_fetched_once_for_many_items(serve: Serve, crawl: Crawl) -> None:
    """Under its own policies: what else they say of it does not count."""
    rules = "ACAP-crawler: *\nACAP-allow-crawl: /credit.txt\nACAP-disallow-crawl: /\nACAP-disallow-present: /\n"
    other = serve({"/robots.txt": rules, "/credit.txt": "By all of us"}, host="127.0.0.2")
    pages = {f"/{number}": PAGE for number in range(5)}
    server = site(
        serve,
        indexed("/short.txt"),
        f"present: / must-include-resource=the-acap:credit:{other.url('/credit.txt')}",
        **pages,
        **{"/short.txt": "In short"},
    )
    crawled = crawl(Items, ARRANGED, urls=[server.url(path) for path in pages])
    assert len(crawled.items) == 10
    index, present = uses(crawled, "index", "present")
    assert index["must_use"] == resource(url=server.url("/short.txt"), content="In short")
    assert present["must_include"] == resource(
        "credit", url=other.url("/credit.txt"), content="By all of us"
    )
    assert sorted(server.paths) == sorted(["/robots.txt", "/short.txt", *pages])
    assert other.paths == ["/robots.txt", "/credit.txt"]


@pytest.mark.requirement("ACAP-33", "ACAP-36")
@pytest.mark.parametrize(
    "arrangements",
    [
        "",
        *(
            pytest.param(said, marks=pytest.mark.slow)
            for said in ("127.0.0.2:must-use-resource", "127.0.0.1:must-include-resource")
        ),
    ],
)
def test_without_the_arrangement_nothing_is_asked_for(
    serve: Serve, crawl: Crawl, arrangements: str
) -> None:
    other = serve({"/robots.txt": "", "/short.txt": "In short"}, host="127.0.0.2")
    server = site(
        serve,
        indexed(other.url("/short.txt")),
        "present: / must-use-resource=the-acap:extract:id:summary",
    )
    crawled = crawl(Items, {"COMITY_ARRANGEMENTS": arrangements}, urls=[server.url("/a")])
    assert verdicts(crawled, "index", "present") == [("deny", "acap.no-arrangement")] * 2
    assert (server.paths, other.paths) == (["/robots.txt", "/a"], [])


@pytest.mark.requirement("ACAP-33", "ACAP-36")
@pytest.mark.parametrize("host", ["127.0.0.2", pytest.param("127.0.0.1", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "rules",
    ["User-agent: *\nDisallow: /private/", "ACAP-crawler: *\nACAP-disallow-crawl: /private/"],
)
def test_a_resource_that_may_not_be_crawled_is_not_asked_for(
    serve: Serve, crawl: Crawl, host: str, rules: str
) -> None:
    """Whether it is named or a redirect leads to it."""
    other = serve({"/robots.txt": rules, "/open.txt": "In short"}, host=host)
    private = other.url("/private/short.txt")
    other.routes |= {
        "/private/short.txt": "In short",
        "/inward": moved(private),
        "/onward": moved("/open.txt"),
    }
    server = site(
        serve,
        indexed(private),
        f"present-snippet: / must-use-resource={other.url('/inward')}",
        f"present-link: / must-use-resource={other.url('/onward')}",
    )
    crawled = crawl(Items, ARRANGED, urls=[server.url("/a")])
    expected = [("deny", "acap.resource"), ("deny", "acap.resource"), ("allow", "acap.allow")]
    assert verdicts(crawled, "index", "present-snippet", "present-link") == expected
    (link,) = uses(crawled, "present-link")
    assert link["must_use"] == resource(url=other.url("/onward"), content="In short")
    assert sorted(other.paths) == ["/inward", "/onward", "/open.txt", "/robots.txt"]


def moved(location: str) -> Any:
    from tests.conftest import Answer

    return Answer(status=302, headers={"Location": location})


@pytest.mark.requirement("ACAP-33", "SEC-3")
def test_what_cannot_be_had_refuses_the_use(serve: Servers, crawl: Crawl) -> None:
    """Here it is not there, is too large, or fails; another one is as large as may be."""
    large, too_large = (serve.Answer(b"x" * size) for size in (MAX_BYTES, MAX_BYTES + 1))
    other = serve(
        {"/large.txt": large, "/too-large.txt": too_large, "/fails.txt": serve.Answer(status=500)},
        host="127.0.0.2",
    )
    named = {
        "present-link": "large",
        "index": "missing",
        "present-snippet": "too-large",
        "present-thumbnail": "fails",
    }
    server = site(
        serve,
        *(f"{use}: / must-use-resource={other.url(f'/{name}.txt')}" for use, name in named.items()),
    )
    crawled = crawl(Items, ARRANGED, urls=[server.url("/a")])
    assert verdicts(crawled, *named) == [("allow", "acap.allow"), *[("deny", "acap.resource")] * 3]
    (link,) = uses(crawled, "present-link")
    assert len(link["must_use"][0]["content"]) == MAX_BYTES
    assert sorted(other.paths) == [
        "/fails.txt",
        "/large.txt",
        "/missing.txt",
        "/robots.txt",
        "/too-large.txt",
    ]


@pytest.mark.slow
@pytest.mark.requirement("ACAP-33", "SEC-3")
@pytest.mark.parametrize("path", ["/robots.txt", "/short.txt"])
def test_a_server_that_never_answers_is_left_in_time(serve: Serve, crawl: Crawl, path: str) -> None:
    """And the page's items come."""
    release = threading.Event()
    gave_up = []

    def route(handler: Any) -> None:
        gave_up.append(release.wait(30))

    other = serve({"/robots.txt": "", "/short.txt": "", path: route}, host="127.0.0.2")
    server = site(serve, indexed(other.url("/short.txt")), "preserve: /")
    crawled = crawl(Items, {**ARRANGED, "COMITY_POLICY_TIMEOUT": 3}, urls=[server.url("/a")])
    assert gave_up == []
    release.set()
    assert len(crawled.items) == 2
    assert verdicts(crawled, "index", "preserve") == [
        ("deny", "acap.resource"),
        ("allow", "acap.allow"),
    ]
    assert other.paths[-1] == path
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("ACAP-33", "SEC-3")
def test_no_more_than_four_are_asked_for(serve: Serve, crawl: Crawl) -> None:
    assert MAX_OF_A_PAGE == 4
    wanting = ("index", "present-original", "present-snippet", "present-thumbnail", "present-link")
    resources = {f"/{use}.txt": "text" for use in wanting}
    server = site(
        serve, *(f"{use}: / must-use-resource=/{use}.txt" for use in wanting), **resources
    )
    crawled = crawl(Items, ARRANGED, urls=[server.url("/a")])
    assert verdicts(crawled, *wanting) == [("allow", "acap.allow")] * 4 + [
        ("deny", "acap.resource")
    ]
    assert sorted(server.paths) == sorted(["/a", "/robots.txt", *list(resources)[:4]])


class Outside(Network):
    """Takes 127.0.0.2 for a public address."""

    def reach(self, address: IPAddress) -> Reach:
        return Reach.PUBLIC if str(address) == "127.0.0.2" else super().reach(address)


class LooksOutside:
    """An extension that puts it in place."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LooksOutside:
        crawl = OwnCrawl.of(crawler)
        crawl.client.network = Outside(crawl.options.client)
        return cls()


class ItemsFromOutside(Items):
    name = "items-from-outside"
    custom_settings: ClassVar = {  # type: ignore[misc]
        "EXTENSIONS": {LooksOutside: 0},
        "COMITY_ARRANGEMENTS": "127.0.0.2:must-use-resource",
    }


@pytest.mark.requirement("ACAP-33", "SEC-2")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        *(
            pytest.param(host, marks=pytest.mark.slow)
            for host in ("2130706433", "[::ffff:127.0.0.1]")
        ),
    ],
)
def test_a_public_site_leads_to_no_inner_address(serve: Serve, crawl: Crawl, host: str) -> None:
    """Neither by name nor by a redirect, and not to the robots.txt there."""
    inside = serve({"/robots.txt": "", "/short.txt": "secret"})
    inner = f"http://{host}:{inside.port}/short.txt"
    pages = {"/moved": moved(inner), "/short.txt": "In short"}
    wanting = {"index": inner, "present": "/moved", "present-link": "/short.txt"}
    permissions = (f"{use}: / must-use-resource={uri}" for use, uri in wanting.items())
    server = site(serve, *permissions, host="127.0.0.2", **pages)
    crawled = crawl(ItemsFromOutside, urls=[server.url("/a")])
    assert verdicts(crawled, *wanting) == [("deny", "acap.resource")] * 2 + [
        ("allow", "acap.allow")
    ]
    assert sorted(server.paths) == ["/a", "/moved", "/robots.txt", "/short.txt"]
    assert inside.seen == []


@pytest.mark.requirement("SEC-2")
def test_what_a_public_site_is_refused_the_operator_is_not(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """The inner host counts as unreachable for nobody else."""
    inside = serve({"/robots.txt": "", "/a": PAGE})
    own = f"http://localhost:{inside.port}"
    server = site(serve, indexed(f"{own}/a"), host="127.0.0.2")
    crawled = crawl(ItemsFromOutside, urls=[server.url("/a")])
    assert (verdicts(crawled, "index"), inside.seen) == ([("deny", "acap.resource")], [])
    store = PolicyStore(tmp_path / "policies.sqlite")
    assert (set(store.load(server.origin)), store.load(own)) == (set(WELL_KNOWN), {})
    store.close()
    crawl(ItemsFromOutside, urls=[f"{own}/a"])
    assert inside.paths == ["/robots.txt", "/a"]


@pytest.mark.requirement("ACAP-33", "RATE-1")
@pytest.mark.parametrize("host", ["", "127.0.0.1", "127.0.0.2"])
def test_resources_keep_the_pace_of_their_host(serve: Serve, crawl: Crawl, host: str) -> None:
    """Beside its pages, and on every hop. The host is that of the page, with its port or another one, or its own."""
    wanting = {"index": "/1.txt", "present-snippet": "/2.txt", "present-link": "/3.txt"}
    pages = {
        "/b": PAGE,
        "/c": PAGE,
        "/1.txt": "1",
        "/2.txt": "2",
        "/3.txt": moved("/4.txt"),
        "/4.txt": "4",
    }
    slow = "User-agent: *\nCrawl-delay: 0.2"
    other = serve({"/robots.txt": slow, **pages}, host=host) if host else None
    server = site(
        serve,
        *(
            f"{use}: / must-use-resource={other.url(path) if other else path}"
            for use, path in wanting.items()
        ),
        **pages,
    )
    asked = other or server
    server.routes["/robots.txt"] += "" if other else f"\n{slow}"  # type: ignore[operator]
    crawled = crawl(Items, ARRANGED, urls=[server.url("/a"), asked.url("/b"), asked.url("/c")])
    of_page = [
        item["permissions"]["uses"] for item in crawled.items if item["url"] == server.url("/a")
    ]
    assert [uses[use]["verdict"] for uses in of_page for use in wanting] == ["allow"] * 6
    hits = [seen.at for seen in asked.seen if seen.path not in ("/robots.txt", "/a")]
    assert len(hits) == 6
    assert min(after - before for before, after in pairwise(hits)) >= 0.19
