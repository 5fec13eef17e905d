"""ACAP in a crawl: what servers are asked for, which links are followed, and what the items say, in both modes of Scrapy."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from scrapy import Spider
from scrapy.http import Request, Response, TextResponse

from comity.crawler.crawl import Crawl as OwnCrawl
from comity.gate.fetching.store import PolicyStore
from comity.policies.formats import WELL_KNOWN

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

VALIDATOR = Draft202012Validator(
    json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
)

ROBOTS = """##ACAP version=1.0
User-agent: *
Disallow: /conventional/

ACAP-resource-set: articles /news/ /archive/
ACAP-qualified-usage: cache preserve time-limit=until-recrawled
ACAP-composite-usage: readable index (cache)

ACAP-crawler: *
ACAP-allow-crawl: /
ACAP-allow-follow: /
ACAP-disallow-crawl: /members/
ACAP-disallow-index: /
ACAP-disallow-other: /

ACAP-crawler: testbot
ACAP-allow-crawl: /members/open/
ACAP-disallow-crawl: /private/
ACAP-disallow-follow: /dead-end
ACAP-allow-(readable): the-acap:resource-set:articles
ACAP-allow-present-snippet: /news/ max-length=20-words time-limit=until-2100-12-31
ACAP-allow-present-currentcopy: /news/ prohibited-modification=style prohibited-modification=format
ACAP-allow-present-oldcopy: /news/ required-context=within-original-frame max-length=3-words
ACAP-request-take-down: /news/old
ACAP-usage-purpose: research
ACAP-allow-crawl: /members/data/
ACAP-disallow-preserve: /archive/

ACAP-crawler: testbot
ACAP-permissions-reference: {reference}
"""
REFERENCED = """ACAP-crawler: testbot
ACAP-disallow-crawl: /elsewhere/
ACAP-allow-(readable): /shared/
"""

LINKS = (
    *(
        "/news/1",
        "/archive/1",
        "/shared/1",
        "/members/open/1",
        "/dead-end",
        "/moved",
    ),  # to be asked for
    *("/members/1", "/members/data/1", "/private/1", "/conventional/1", "/elsewhere/1"),  # refused
)
REDIRECTED = "/private/2"
OF_DEAD_END = ("/news/2", "/news/3", "/private/3")


class Follows(Spider):
    """An item and the links of every page."""

    name = "follows"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Response) -> Any:
        assert isinstance(response, TextResponse)
        yield {"url": response.url}
        yield from response.follow_all(css="a")


def linking(*paths: str) -> str:
    return "".join(f'<a href="{path}">{path}</a>' for path in paths)


def site(serve: Serve) -> tuple[Loopback, Loopback]:
    from tests.conftest import Answer

    other = serve({"/rules.txt": REFERENCED}, host="127.0.0.2")
    pages = dict.fromkeys((*LINKS, *OF_DEAD_END, REDIRECTED), "<p>page</p>") | {
        "/": linking(*LINKS),
        "/dead-end": linking(*OF_DEAD_END),
    }
    moved = Answer(status=302, headers={"Location": REDIRECTED})
    robots = ROBOTS.format(reference=other.url("/rules.txt"))
    return serve({"/robots.txt": robots, **pages, "/moved": moved}), other


def stated(item: dict[str, Any], use: str) -> dict[str, Any]:
    """The decision on a use, with the line that decides in place of the reasons' numbers."""
    tag = item["permissions"]
    decision = dict(tag["uses"][use])
    first = tag["reasons"][decision.pop("because")[0]]
    assert decision.pop("stated") is True
    return decision | {"text": first["text"], "rule": first["rule"].removeprefix("acap.")}


def allowed(text: str, **qualifiers: Any) -> dict[str, Any]:
    return {"verdict": "allow", "rule": "allow", "text": text, **qualifiers}


def refused(text: str, rule: str = "disallow") -> dict[str, Any]:
    return {"verdict": "deny", "rule": rule, "text": text}


def by_path(crawled: Crawled, server: Loopback) -> dict[str, dict[str, Any]]:
    for item in crawled.items:
        VALIDATOR.validate(item["permissions"])
    return {item["url"].removeprefix(server.origin): item for item in crawled.items}


ARTICLES = "ACAP-allow-(readable): the-acap:resource-set:articles"
SNIPPETS = "ACAP-allow-present-snippet: /news/ max-length=20-words time-limit=until-2100-12-31"
COPIES = "ACAP-allow-present-currentcopy: /news/ prohibited-modification=style prohibited-modification=format"
OLD_COPIES = (
    "ACAP-allow-present-oldcopy: /news/ required-context=within-original-frame max-length=3-words"
)
REST = "ACAP-disallow-other: /"
USES: dict[str, dict[str, dict[str, Any]]] = {
    "/": {
        "crawl": allowed("ACAP-allow-crawl: /"),
        "follow": allowed("ACAP-allow-follow: /"),
        "index": refused("ACAP-disallow-index: /"),
        "preserve": refused(REST),
        "present": refused(REST),
        "other": refused(REST),
    },
    "/news/1": {
        "crawl": allowed("ACAP-allow-crawl: /"),
        "index": allowed(ARTICLES),
        "preserve": allowed(ARTICLES, until_recrawled=True),
        "present": refused(REST),
        "present-snippet": allowed(SNIPPETS, max_words=20, until="2100-12-31T23:59:59Z"),
        "present-currentcopy": allowed(COPIES, prohibited_modifications=["format", "style"]),
        "present-oldcopy": refused(OLD_COPIES, "unusable"),
    },
    "/archive/1": {
        "index": allowed(ARTICLES),
        "preserve": allowed(ARTICLES, until_recrawled=True),
        "present": refused(REST),
    },
    "/shared/1": {
        "index": allowed("ACAP-allow-(readable): /shared/"),
        "preserve": allowed("ACAP-allow-(readable): /shared/", until_recrawled=True),
    },
    "/members/open/1": {
        "crawl": allowed("ACAP-allow-crawl: /members/open/"),
        "index": refused("ACAP-disallow-index: /"),
    },
    "/dead-end": {
        "crawl": allowed("ACAP-allow-crawl: /"),
        "follow": refused("ACAP-disallow-follow: /dead-end"),
    },
}


@pytest.mark.requirement(
    "ACAP-11",
    "ACAP-12",
    "ACAP-13",
    "ACAP-22",
    "ACAP-27",
    "ACAP-28",
    "ACAP-30",
    "ACAP-40",
    "ACAP-41",
    "WHY-2",
)
def test_what_the_file_says_is_seen_at_the_servers_and_in_the_items(
    serve: Serve, crawl: Crawl
) -> None:
    server, other = site(serve)
    crawled = crawl(Follows, url=server.url())
    assert server.paths[:2] == ["/robots.txt", "/"]
    assert sorted(server.paths[2:]) == sorted(LINKS[:6])
    assert other.paths == ["/rules.txt"]

    items = by_path(crawled, server)
    assert set(items) == {"/", *LINKS[:5]}
    assert {
        path: {use: stated(items[path], use) for use in uses} for path, uses in USES.items()
    } == USES
    robots, rules = server.url("/robots.txt"), other.url("/rules.txt")
    for path, item in items.items():
        tag = item["permissions"]
        assert set(tag["policies"]) == {rules, *map(server.url, WELL_KNOWN)}
        places = {
            (reason["url"], reason["line"], reason["text"])
            for reason in tag["reasons"]
            if reason["line"]
        }
        lines = {robots: server.routes["/robots.txt"].splitlines(), rules: REFERENCED.splitlines()}  # type: ignore[union-attr]
        assert {(url, line, lines[url][line - 1]) for url, line, _ in places} == places, path

    assert crawled.stats["comity/links/not-followed"] == len(OF_DEAD_END)
    assert (
        crawled.stats["comity/access/deny/acap.disallow"] == 5
    )  # and the one that the redirect leads to
    assert crawled.stats["comity/access/deny/robots.disallow"] == 1
    assert f"Refused <GET {server.url(REDIRECTED)}>" in crawled.log
    assert crawled.stats["comity/actions/take-down/not-arranged"] == 1
    assert "Traceback" not in crawled.log


@pytest.mark.requirement("ACAP-15", "ACAP-16", "ACAP-46")
@pytest.mark.parametrize("purposes", ["research", "news,RESEARCH"])
def test_a_purpose_opens_and_closes_what_its_sub_record_says(
    serve: Serve, crawl: Crawl, purposes: str
) -> None:
    server, _ = site(serve)
    crawled = crawl(Follows, {"COMITY_PURPOSES": purposes}, url=server.url())
    assert sorted(server.paths[2:]) == sorted((*LINKS[:6], "/members/data/1"))
    items = by_path(crawled, server)
    assert stated(items["/members/data/1"], "crawl") == allowed("ACAP-allow-crawl: /members/data/")
    assert stated(items["/archive/1"], "preserve") == refused("ACAP-disallow-preserve: /archive/")
    assert stated(items["/news/1"], "preserve") == USES["/news/1"]["preserve"]


@pytest.mark.requirement("ACAP-10", "ACAP-11", "ACAP-12")
def test_another_crawler_has_the_record_for_any(serve: Serve, crawl: Crawl) -> None:
    """And asks for no file that it does not name."""
    server, other = site(serve)
    settings = {
        "COMITY_AGENT": "otherbot",
        "COMITY_PURPOSES": "research",
        "USER_AGENT": "otherbot/1.0",
    }
    items = by_path(crawl(Follows, settings, url=server.url()), server)
    open_to_any = {
        "/news/1",
        "/archive/1",
        "/shared/1",
        "/private/1",
        "/private/2",
        "/private/3",
        "/elsewhere/1",
        "/dead-end",
    }
    assert set(items) == {"/", "/news/2", "/news/3"} | open_to_any
    assert set(server.paths) == {"/robots.txt", "/moved"} | set(items)
    assert other.seen == []
    assert {stated(item, "index")["text"] for item in items.values()} == {"ACAP-disallow-index: /"}


DAYS = "ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-allow-index: / time-limit=5-days\nACAP-allow-present: / time-limit=9-days\n"


def taken_before(store: Path, url: str, **days: int) -> None:
    """The store of a crawl that took the page so many days ago for these uses."""
    earlier = PolicyStore(store)
    for use, ago in days.items():
        earlier.first_taken(url, [use], datetime.now(UTC) - timedelta(days=ago))
    earlier.close()


def until(item: dict[str, Any], use: str) -> datetime:
    return datetime.fromisoformat(stated(item, use)["until"])


@pytest.mark.requirement("ACAP-32")
def test_days_count_from_the_first_taking(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    server = serve({"/robots.txt": DAYS, "/a": "page"})
    before = datetime.now(UTC).replace(microsecond=0)
    taken_before(tmp_path / "policies.sqlite", server.url("/a"), index=3)
    runs = [by_path(crawl(Follows, url=server.url("/a")), server)["/a"] for _ in range(2)]
    after = datetime.now(UTC)
    for item in runs:
        assert before <= until(item, "index") - timedelta(days=2) <= after
        assert before <= until(item, "present") - timedelta(days=9) <= after
    assert runs[0]["permissions"]["uses"] == runs[1]["permissions"]["uses"]


@pytest.mark.requirement("ACAP-32")
def test_when_the_days_are_over_the_use_is_refused(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """Of this page alone."""
    server = serve({"/robots.txt": DAYS, "/a": linking("/b"), "/b": "page"})
    taken_before(tmp_path / "policies.sqlite", server.url("/a"), index=6, present=6)
    items = by_path(crawl(Follows, url=server.url("/a")), server)
    assert stated(items["/a"], "index") == refused(
        "ACAP-allow-index: / time-limit=5-days", "expired"
    )
    assert (
        stated(items["/a"], "present")["verdict"]
        == stated(items["/b"], "index")["verdict"]
        == "allow"
    )


class Forgets(Follows):
    """Its store fails."""

    name = "forgets"

    async def start(self) -> AsyncIterator[Any]:
        with closing(sqlite3.connect(OwnCrawl.of(self.crawler).options.store)) as db:
            db.execute("DROP TABLE taken")
        async for request in super().start():
            yield request


@pytest.mark.requirement("ACAP-32", "SEC-6")
def test_where_nobody_knows_the_first_taking_the_days_are_over(serve: Serve, crawl: Crawl) -> None:
    server = serve({"/robots.txt": DAYS + "ACAP-allow-preserve: /\n", "/a": "page"})
    crawled = crawl(Forgets, url=server.url("/a"))
    item = by_path(crawled, server)["/a"]
    assert [stated(item, use)["rule"] for use in ("index", "present", "preserve")] == [
        "expired",
        "expired",
        "allow",
    ]
    assert crawled.log.count("WARNING comity.gate.fetching.files: ") == 1


class ForPurposes(Spider):
    """Asks for URLs, each for some purposes, and makes an item of what comes."""

    name = "for-purposes"
    asked: list[tuple[str, list[str] | None]]

    async def start(self) -> AsyncIterator[Any]:
        for url, purposes in self.asked:
            yield Request(
                url,
                meta={} if purposes is None else {"comity": {"purposes": purposes}},
                dont_filter=True,
            )

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


PURPOSES = """User-agent: *
Disallow: /data/
ACAP-crawler: *
ACAP-disallow-crawl: /data/
ACAP-disallow-index: /
ACAP-usage-purpose: research
ACAP-allow-crawl: /data/
ACAP-allow-index: / time-limit=3-days
"""


@pytest.mark.requirement("ACAP-15", "ACAP-16", "ACAP-27", "AUTO-15")
@pytest.mark.parametrize("settings", [{}, {"COMITY_PURPOSES": "research"}], ids=["", "research"])
@pytest.mark.parametrize("skips", [{}, {"COMITY_USES": "index"}], ids=["", "skips"])
def test_purposes_of_a_request_reach_acap(
    serve: Serve, crawl: Crawl, settings: dict[str, Any], skips: dict[str, Any]
) -> None:
    """In access, in what the page may be used for, and where a site that permits nothing is skipped."""
    server = serve({"/robots.txt": PURPOSES})
    for path in ("/1", "/2", "/3", "/data/1", "/data/2", "/data/3"):
        server.routes[path] = "<p>page</p>"
    asked = [
        (server.url(f"{folder}/{number}"), purposes)
        for folder in ("", "/data")
        for number, purposes in ((1, None), (2, ["research"]), (3, ["ads"]))
    ]
    crawled = crawl(ForPurposes, settings | skips, asked=asked)
    of_research = {"/1", "/2"} if settings else {"/2"}
    pages = of_research if skips else {"/1", "/2", "/3"}
    seen = {path for path in server.paths if not path.endswith(WELL_KNOWN)}
    assert seen == pages | {f"/data{path}" for path in of_research}
    for item in crawled.items:
        use = item["permissions"]["uses"]["index"]
        is_research = item["url"].rpartition("/")[2] in {path[1:] for path in of_research}
        assert (use["verdict"], "until" in use) == (
            ("allow", True) if is_research else ("deny", False)
        )
    sent = {
        seen.path: seen.headers.get("automation-purpose")
        for seen in server.seen
        if not seen.path.endswith(".txt")
    }
    assert sent["/2"] == "research"
