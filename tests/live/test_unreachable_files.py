"""Policy files that cannot be fetched while pages can: what items, clients, datasets and commands say then."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

from comity.client import Client
from comity.crawler.crawl import Crawl as OwnCrawl
from comity.crawler.scrapy_internals import ScrapyRun
from comity.gate.fetching import files, policy_copy
from comity.gate.fetching.client import PolicyClient as FileClient
from comity.gate.fetching.fetcher import PolicyFetcher
from comity.gate.fetching.files import PolicyFiles
from comity.gate.fetching.store import PolicyStore
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from http.server import BaseHTTPRequestHandler

    from tests.conftest import Crawled, Serve

TDMREP, AI_TXT = "/.well-known/tdmrep.json", "/ai.txt"
RULES = {TDMREP: "tdmrep.unreachable", AI_TXT: "ait.unreachable"}
PAGES: dict[str, Any] = {
    "/robots.txt": "User-agent: *\nAllow: /\n",
    "/1": "<p>page</p>",
    "/2": "<p>page</p>",
}
OPEN: dict[str, Any] = {
    "COMITY_USES": "train,index",
    "COMITY_DEFAULTS": "train:allow,index:allow",
    "COMITY_DROP_UNUSABLE": False,
    "COMITY_SKIP_UNUSABLE": False,
    "COMITY_POLICY_TIMEOUT": 3,
}


def status(code: int) -> Any:
    from tests.conftest import Answer

    return Answer("no", status=code)


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def cut_off(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\n["
    )
    handler.close_connection = True


def too_slow(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
    for _ in range(200):
        try:
            handler.wfile.write(b" ")
        except OSError:
            return
        time.sleep(0.05)  # a server that drips


FAILING: dict[str, Any] = {"503": 503, "429": 429, "connection": reset, "cut off": cut_off}


class Moving(Spider):
    """Takes an item of each page, and moves the clock of the policy files before each one.

    `pages`: JSON, [[seconds since the start, URL], ...]"""

    name = "moving"
    pages = "[]"

    async def start(self) -> AsyncIterator[Any]:
        crawl = OwnCrawl.of(self.crawler)
        self._start = self._now = time.time()
        await crawl.policies.close()
        store, timeout = PolicyStore(crawl.options.store), crawl.options.policy_timeout
        shared = PolicyFiles(
            store, FileClient(crawl.options.client), timeout=timeout, clock=lambda: self._now
        )
        crawl.policies = PolicyFetcher(ScrapyRun(self.crawler), shared, crawl.agent)
        for seconds, url in json.loads(self.pages):
            self._now = self._start + seconds
            await crawl.policies.get("/".join(url.split("/")[:3]))
            self._left = asyncio.Event()
            yield Request(url)
            await self._left.wait()

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}
        self._left.set()


def said(item: dict[str, Any], use: str) -> tuple[str, bool, str]:
    """Verdict, whether it is stated, and the rule that decides."""
    tag = item["permissions"]
    decision = tag["uses"][use]
    return decision["verdict"], decision["stated"], tag["reasons"][decision["because"][0]]["rule"]


Crawl = Callable[..., "Crawled"]


@pytest.mark.requirement("MEET-8")
@pytest.mark.parametrize(
    "failing", one_in(3, [*FAILING, pytest.param("time-out", marks=pytest.mark.slow)])
)
@pytest.mark.parametrize("path", RULES)
def test_uses_are_denied_until_the_file_is_asked_again(
    serve: Serve, crawl: Crawl, path: str, failing: str
) -> None:
    broken = too_slow if failing == "time-out" else FAILING[failing]

    def file(handler: BaseHTTPRequestHandler) -> Any:
        if "/1?a" in server.paths:
            return status(404)
        return status(broken) if isinstance(broken, int) else broken(handler)

    server = serve(PAGES | {path: file})
    pages = json.dumps([[0, server.url("/1")], [299, server.url("/1?a")], [300, server.url("/2")]])
    crawled = crawl(Moving, OPEN, pages=pages)
    first, still, last = crawled.items
    denied = ("deny", False, RULES[path])
    allowed = ("allow", False, "comity.default")
    assert [said(item, "train") for item in (first, still, last)] == [denied, denied, allowed]
    assert said(first, "index") == (allowed if path == TDMREP else denied)
    assert said(first, "crawl")[0] == said(first, "follow")[0] == "allow"
    assert first["permissions"]["policies"][server.url(path)]["sha256"] is None
    between = server.paths[server.paths.index("/1") : server.paths.index("/1?a")]
    assert path not in between  # it is asked for again after five minutes, and not sooner
    assert (
        "the uses that it could refuse are denied, unless COMITY_UNREACHABLE_USES says otherwise"
        in crawled.log
    )


@pytest.mark.requirement("MEET-8")
def test_the_operator_may_let_the_defaults_decide(serve: Serve, crawl: Crawl) -> None:
    server = serve(PAGES | {TDMREP: status(503), AI_TXT: status(500)})
    pages = json.dumps([[0, server.url("/1")]])
    crawled = crawl(Moving, OPEN | {"COMITY_UNREACHABLE_USES": "default"}, pages=pages)
    assert [said(item, "train") for item in crawled.items] == [("allow", False, "comity.default")]


@pytest.mark.requirement("TDM-3")
def test_a_comment_or_an_error_takes_no_reservation_along(serve: Serve, crawl: Crawl) -> None:
    for body in (
        '[\n// ours\n{"location": "/2", "tdm-reservation": 0},\n{"location": "/", "tdm-reservation": 1},\n]',
        '[{"location": "/2", "tdm-reservation": 0},\noops\n{"location": "/x", "tdm-reservation": 1}]',
    ):
        server = serve(PAGES | {TDMREP: body})
        pages = json.dumps([[0, server.url("/1")], [0, server.url("/2")]])
        crawled = crawl(Moving, OPEN, pages=pages)
        assert [said(item, "train")[::2] for item in crawled.items] == [
            ("deny", "tdmrep.reserved"),
            ("allow", "comity.default"),
        ]


# Sites all of whose uses hang on the file


class Soon(Spider):
    """Asks for pages; files that cannot be fetched are asked for again soon."""

    name = "soon"
    urls: ClassVar[list[str]] = []
    back_off = 0.3

    async def start(self) -> AsyncIterator[Any]:
        self._before = files.BACK_OFF, policy_copy.FIRST_BACK_OFF
        files.BACK_OFF = policy_copy.FIRST_BACK_OFF = self.back_off
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}

    def closed(self, reason: str) -> None:
        files.BACK_OFF, policy_copy.FIRST_BACK_OFF = self._before


TRAINING: dict[str, Any] = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow"}


@pytest.fixture
def failing_twice(serve: Serve) -> Any:
    """A server whose tdmrep.json cannot be fetched the first two times."""

    def file(handler: BaseHTTPRequestHandler) -> Any:
        return status(503 if server.paths.count(TDMREP) < 3 else 404)

    server = serve(PAGES | {TDMREP: file})
    return server


@pytest.mark.requirement("MEET-8")
def test_pages_that_could_not_be_used_wait_for_the_file(failing_twice: Any, crawl: Crawl) -> None:
    crawled = crawl(Soon, TRAINING, urls=[failing_twice.url("/1"), failing_twice.url("/2")])
    assert sorted(failing_twice.paths[-2:]) == ["/1", "/2"]
    assert failing_twice.paths.count(TDMREP) == 3
    assert [said(item, "train") for item in crawled.items] == [
        ("allow", False, "comity.default")
    ] * 2
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("MEET-8")
@pytest.mark.parametrize(
    "settings",
    [
        {
            "COMITY_USES": "train,index",
            "COMITY_DEFAULTS": "train:allow,index:allow",
        },  # another use is left
        {"COMITY_SKIP_UNUSABLE": False},
        {"COMITY_UNREACHABLE_USES": "default"},
        {"COMITY_MAX_DELAY": 0.1},  # the operator does not wait so long
    ],
)
def test_pages_go_out_at_once_where_nothing_is_to_be_waited_for(
    failing_twice: Any, crawl: Crawl, settings: dict[str, Any]
) -> None:
    crawled = crawl(Soon, TRAINING | settings, urls=[failing_twice.url("/1")], back_off=60)
    assert failing_twice.paths[-1] == "/1"
    assert failing_twice.paths.count(TDMREP) == 1
    assert crawled.finish_reason == "finished"


@pytest.mark.requirement("MEET-8")
def test_no_request_is_refused_in_the_end(serve: Serve, crawl: Crawl) -> None:
    server = serve(PAGES | {TDMREP: status(503)})
    crawled = crawl(Soon, TRAINING | {"RETRY_TIMES": 1}, urls=[server.url("/1"), server.url("/2")])
    assert sorted(path for path in server.paths if path in ("/1", "/2")) == ["/1", "/2"]
    assert server.paths.index(TDMREP) < server.paths.index("/1")
    assert server.paths[: server.paths.index("/1")].count(TDMREP) == 2
    assert crawled.items == []  # nothing may be done with them: COMITY_DROP_UNUSABLE
    assert crawled.stats["comity/access/allow"] >= 2
    assert "comity/access/deny" not in crawled.stats
    assert crawled.finish_reason == "finished"


# Other carriers


@pytest.mark.requirement("MEET-8", "WEB-3")
def test_a_client_is_told_so_and_its_requests_go_out(serve: Serve) -> None:
    server = serve(PAGES | {AI_TXT: status(503)})

    async def run(**settings: Any) -> tuple[str, bool, str]:
        options: dict[str, Any] = {
            "store": None,
            "min_delay": 0,
            "uses": "train",
            "defaults": "train:allow",
        }
        async with Client("testbot", **options, **settings) as client:
            admission = await client.admit(server.url("/1"))
            admission.answered(200)
            use = (await client.page(admission, 200, {}, b"<p>page")).uses["train"]
            return use.verdict.value, use.stated, use.reasons[0].rule

    assert asyncio.run(run()) == ("deny", False, "ait.unreachable")
    assert asyncio.run(run(unreachable_uses="default")) == ("allow", False, "comity.default")


def scrapy(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = [f"COMITY_STORE={folder / 'policies.sqlite'}", "COMITY_DEFAULTS=train:allow"]
    options = [word for setting in settings for word in ("-s", setting)]
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments, *options],
        cwd=folder,
        env={**os.environ, "COLUMNS": "140"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.requirement("MEET-8", "WHY-1")
def test_the_command_says_which_file(serve: Serve, tmp_path: Path) -> None:
    server = serve(PAGES | {TDMREP: status(503)})
    done = scrapy("policy", server.url("/1"), "--use", "train", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = [line.split() for line in done.stdout.splitlines() if " for train " in line]
    assert row == [
        "use",
        "it",
        "for",
        "train",
        "deny",
        TDMREP,
        "not",
        "stated:",
        "HTTP",
        "status",
        "503",
    ]
    told = json.loads(
        scrapy("policy", server.url("/1"), "--use", "train", "--json", folder=tmp_path).stdout
    )
    assert (told["verdict"], told["uses"]["train"]["stated"]) == ("allow", False)
    prompt = scrapy("policy", server.url("/1"), "--prompt", "Train", folder=tmp_path).stdout
    assert (
        "Not permitted for now: a policy file of the website cannot be fetched, and it could prohibit this."
        in prompt
    )
