"""Registries of opt-outs in crawls and clients, by the requests that servers saw."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

from comity.client import Client, RefusedError
from comity.policies import PolicyError, Verdict

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

pytestmark = pytest.mark.requirement("AUDIT-4")

OPEN = "User-agent: *\nAllow: /\n"
USES = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow"}


class Pages(Spider):
    """Requests URLs, and makes an item of each page."""

    name = "pages"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Response) -> Any:
        yield {"asked": response.url, "url": response.url}

    def failed(self, failure: Any) -> Any:
        self.logger.info("failed: %s", failure.value)


class Files(Spider):
    """Makes an item with files."""

    name = "files"
    page: str
    files: list[str]

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.page)

    def parse(self, response: Response) -> Any:
        yield {"file_urls": self.files, "files": []}


def pages(server: Loopback) -> list[str]:
    """Return the requested paths without policy files."""
    return sorted(path for path in server.paths if not path.endswith(("robots.txt", ".json")))


def write(folder: Path, text: str, name: str = "list.txt") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_no_request_goes_to_an_entry(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    """Neither a start URL nor a redirect leads to a domain or a URL in a registry."""
    other = serve({"/robots.txt": OPEN, "/a": "<p>a"}, host="127.0.0.2")
    moved = serve.Answer(status=302, headers={"Location": other.url("/b")})  # type: ignore[attr-defined]
    paths = ("/open", "/photos", "/photos/a", "/photos-old")
    server = serve({"/robots.txt": OPEN, "/moved": moved, **dict.fromkeys(paths, "<p>page")})
    list_ = write(tmp_path, f"127.0.0.2\n{server.url('/photos')}\n")
    urls = [other.url("/a"), *map(server.url, ("/moved", *paths))]
    crawled = crawl(Pages, USES | {"COMITY_OPT_OUT": list_}, urls=urls)
    assert pages(server) == ["/moved", "/open", "/photos-old"]
    assert pages(other) == []
    assert crawled.stats["comity/access/deny/registry.opt-out"] == 4
    assert "registry.opt-out (comity) at list.txt:1: '127.0.0.2'" in crawled.log
    assert sorted(item["asked"] for item in crawled.items) == [
        server.url("/open"),
        server.url("/photos-old"),
    ]


def test_a_use_is_refused_and_named_in_the_tag(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    server = serve({"/robots.txt": OPEN, "/a": "<p>a", "/b": "<p>b"})
    list_ = write(
        tmp_path,
        f"url,uses,source,date\n{server.url('/b')},train,https://reg.example/,2026-01-05\n",
        "list.csv",
    )
    settings = USES | {"COMITY_OPT_OUT": [list_], "COMITY_DROP_UNUSABLE": False}
    crawled = crawl(Pages, settings, urls=[server.url("/a"), server.url("/b")])
    tags = {item["asked"]: item["permissions"] for item in crawled.items}
    assert tags[server.url("/a")]["uses"]["train"]["verdict"] == "allow"
    tag = tags[server.url("/b")]
    assert (tag["uses"]["train"]["verdict"], tag["uses"]["crawl"]["verdict"]) == ("deny", "allow")
    reason = tag["reasons"][tag["uses"]["train"]["because"][0]]
    assert reason["text"] == f"127.0.0.1:{server.port}/b (https://reg.example/, 2026-01-05)"
    assert (reason["rule"], reason["url"], reason["line"]) == ("registry.opt-out", "list.csv", 2)


def test_a_site_that_is_of_no_use_is_not_crawled(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    server = serve({"/robots.txt": OPEN, "/a": "<p>a"})
    list_ = write(tmp_path, '{"domain": "127.0.0.1", "uses": ["train"]}\n', "list.jsonl")
    crawled = crawl(Pages, USES | {"COMITY_OPT_OUT": list_}, urls=[server.url("/a")])
    assert pages(server) == []
    assert crawled.stats["comity/sites/unusable"] == 1


@pytest.mark.parametrize("uses", [USES, {}], ids=["train", "no-uses"])
def test_files_that_are_works_of_a_registry_are_not_kept(
    serve: Serve, crawl: Crawl, tmp_path: Path, uses: dict[str, str]
) -> None:
    work = b"\x89PNG work"
    server = serve({"/robots.txt": OPEN, "/": "<p>", "/1.png": work, "/2.png": b"\x89PNG other"})
    settings = uses | {
        "COMITY_OPT_OUT": write(tmp_path, hashlib.sha256(work).hexdigest() + "\n"),
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path / "files"),
    }
    files = [server.url("/1.png"), server.url("/2.png")]
    crawled = crawl(Files, settings, page=server.url("/"), files=files)
    kept = [path.read_bytes() for path in (tmp_path / "files").rglob("*.png")]
    assert kept == [b"\x89PNG other"]
    assert crawled.stats["comity/access/stopped/registry.opt-out"] == 1


def test_records_of_entries_that_are_new_are_found_by_verify(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    server = serve({"/robots.txt": OPEN, "/a": "<p>a", "/b": "<p>b"})
    feeds = {"FEEDS": {str(tmp_path / "items.jsonl"): {"format": "jsonlines"}}}
    crawl(Pages, USES | feeds, urls=[server.url("/a"), server.url("/b")])
    write(tmp_path, server.url("/b") + "\n")
    settings = {"COMITY_STORE": "policies.sqlite", "COMITY_MIN_DELAY": "0", **USES}
    words = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    verify = [sys.executable, "-m", "scrapy", "dataset", "verify", *words]
    for more, status in (([], 0), (["-s", "COMITY_OPT_OUT=list.txt"], 1)):
        done = subprocess.run(
            [*verify, *more, "items.jsonl"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == status, done.stderr
    assert f"registry.opt-out at list.txt:1: 127.0.0.1:{server.port}/b" in done.stdout
    assert "1 refused, 0 unknown" in done.stdout


@pytest.mark.requirement("IMG-1")
def test_files_that_prohibit_mining_are_not_kept(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """The metadata of a file refuses the file, and not the page or its other files."""
    folder = Path(__file__).parents[1] / "policies" / "formats" / "plus" / "files"
    names = ("training.jpg", "training.png", "training.mp4", "allowed.jpg")
    types = ("image/jpeg", "image/png", "video/mp4", "image/jpeg")
    served = {
        f"/{name}": serve.Answer((folder / name).read_bytes(), content_type=kind)  # type: ignore[attr-defined]
        for name, kind in zip(names, types, strict=True)
    }
    server = serve({"/robots.txt": OPEN, "/": "<p>", **served})
    settings = USES | {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path / "files"),
    }
    crawled = crawl(Files, settings, page=server.url("/"), files=[*map(server.url, served)])
    kept = [path.read_bytes() for path in (tmp_path / "files" / "full").iterdir()]
    assert kept == [(folder / "allowed.jpg").read_bytes()]
    assert crawled.stats["comity/access/stopped/plus.prohibited"] == 3
    assert len(crawled.items) == 1


def test_a_crawl_does_not_start_with_a_registry_that_cannot_be_read(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve({"/robots.txt": OPEN, "/a": "<p>a"})
    write(tmp_path, "example.com\nexample\n")
    spider = f"""
import scrapy

class Spider(scrapy.Spider):
    name = "pages"
    start_urls = ["{server.url("/a")}"]
"""
    write(tmp_path, spider, "pages.py")
    settings = ('ADDONS={"comity.crawler.addon.Addon": 100}', "COMITY_OPT_OUT=list.txt")
    words = [word for setting in settings for word in ("-s", setting)]
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "runspider", "pages.py", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    message = "comity: registry `list.txt`, line 2: `example` is not a domain: write a domain"
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert server.seen == []


def test_a_client_obeys_registries(serve: Serve, tmp_path: Path) -> None:
    server = serve({"/robots.txt": OPEN})
    list_ = write(tmp_path, f"{server.url('/no')}\n{hashlib.sha256(b'work').hexdigest()}\n")
    options: dict[str, Any] = {"store": None, "min_delay": 0, "opt_out": [list_]}

    async def run() -> None:
        async with Client("testbot", **options) as client:
            with pytest.raises(RefusedError) as refused:
                await client.admit(server.url("/no/a"))
            assert refused.value.decision.reasons[0].rule == "registry.opt-out"
            admission = await client.admit(server.url("/yes"))
            admission.ended()
            for body, verdict in ((b"work", Verdict.DENY), (b"other", Verdict.ALLOW)):
                page = await client.page(admission, 200, {}, body)
                assert page.uses["crawl"].verdict is verdict

    asyncio.run(run())
    with pytest.raises(PolicyError, match=r"registry `.*nosuch\.csv` cannot be read: No such file"):
        Client("testbot", opt_out=str(tmp_path / "nosuch.csv"))
