"""`scrapy dataset verify`: a site is crawled, changes its policies, and is asked for nothing but these."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from comity.policies.formats import WELL_KNOWN
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback, Serve

Crawl = Callable[..., "Crawled"]

SETTINGS = """
COMITY_AGENT = "testbot"
COMITY_USES = "train"
COMITY_DEFAULTS = "train:allow"
COMITY_STORE = {store!r}
"""

PAGES = {
    f"/{folder}/{number}": "<p>page</p>" for folder in ("news", "drafts") for number in range(3)
}
FREE = "User-agent: *\nAllow: /\n"
NO_TRAINING = '[{"location": "/drafts/*", "tdm-reservation": 1}]'
NO_FETCHING = "User-agent: *\nScope: /\nAllowed-Methods: POST\n"


class Keeps(Spider):
    """An item for every page."""

    name = "keeps"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url, "text": "page"}


class Verified:
    """What the command said."""

    def __init__(self, done: subprocess.CompletedProcess[str], listed: Path) -> None:
        self.status = done.returncode
        self.stdout, self.stderr = done.stdout, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        self.listed = (
            [json.loads(line) for line in listed.read_text(encoding="utf-8").splitlines()]
            if listed.exists()
            else []
        )

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @property
    def refused(self) -> list[str]:
        return sorted(one["url"] for one in self.listed)


class Dataset:
    """The items of a crawl, and the store that it used."""

    def __init__(self, folder: Path, items: list[dict[str, Any]]) -> None:
        self.folder = folder
        self.path = folder / "items.jsonl"
        self.path.write_text("".join(json.dumps(item) + "\n" for item in items))
        (folder / "verify_settings.py").write_text(
            SETTINGS.format(store=str(folder / "policies.sqlite"))
        )

    def verify(self, *arguments: str, json_: bool = True) -> Verified:
        listed = self.folder / "listed.jsonl"
        path = os.pathsep.join([str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "dataset",
            "verify",
            str(self.path),
            "--list",
            str(listed),
            *arguments,
        ]
        done = subprocess.run(
            [*command, "--json"] if json_ else command,
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "SCRAPY_SETTINGS_MODULE": "verify_settings",
                "COLUMNS": "130",
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Verified(done, listed)


@pytest.fixture(params=["reactor"])
def mode(request: pytest.FixtureRequest) -> str:
    """How the pages were fetched makes no difference here."""
    return str(request.param)


def crawled(servers: list[Loopback], crawl: Crawl, folder: Path, **more: str) -> Dataset:
    urls = [server.url(path) for server in servers for path in PAGES]
    settings = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow", **more}
    items = crawl(Keeps, settings, urls=urls).items
    assert len(items) == len(urls)
    for server in servers:
        server.seen.clear()
    return Dataset(folder, items)


@pytest.mark.requirement("MEET-3", "WHY-1", "RFC-12")
@pytest.mark.usefixtures("new_processes_in_full")
def test_refresh_asks_for_policy_files_only_and_says_what_was_lost(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    silent, changing = (
        serve({"/robots.txt": FREE, **PAGES}),
        serve({"/robots.txt": FREE, **PAGES}, host="127.0.0.2"),
    )
    dataset = crawled([silent, changing], crawl, tmp_path)
    verified = dataset.verify()
    assert (verified.status, verified.listed, silent.seen, changing.seen) == (0, [], [], [])

    changing.routes["/robots.txt"] = f"{FREE}Disallow: /news/1\n"
    changing.routes["/.well-known/tdmrep.json"] = serve.Answer(
        NO_TRAINING, content_type="application/json"
    )
    assert dataset.verify().status == 0  # nobody has asked the site
    verified = dataset.verify("--refresh")
    assert (verified.status, verified.stderr) == (1, "")
    assert silent.paths == ["/robots.txt"]
    assert sorted(changing.paths) == ["/.well-known/tdmrep.json", "/robots.txt"]
    assert {*silent.paths, *changing.paths} <= set(WELL_KNOWN)
    assert verified.refused == sorted(
        map(changing.url, ("/drafts/0", "/drafts/1", "/drafts/2", "/news/1"))
    )
    told = verified.told
    assert (told["records"], told["compliant"], told["refused"], told["unknown"]) == (12, 8, 4, 0)
    assert told["hosts"][silent.origin]["rights"] == {}
    host = told["hosts"][changing.origin]
    assert host["rights"] == {"crawl": {"lost": 1}, "train": {"lost": 3}}
    losses = {
        (one["use"], one["rule"], one["url"], one["line"], one["records"]) for one in host["losses"]
    }
    assert losses == {
        ("crawl", "robots.disallow", changing.url("/robots.txt"), 3, 1),
        ("train", "tdmrep.reserved", changing.url("/.well-known/tdmrep.json"), 1, 3),
    }

    changing.routes["/robots.txt"] = FREE
    del changing.routes["/.well-known/tdmrep.json"]
    assert dataset.verify("--refresh", "--for", "train").status == 0


@pytest.mark.requirement("MEET-1")
def test_automation_preferences_are_asked_again(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    site = serve({"/robots.txt": FREE, **PAGES})
    dataset = crawled([site], crawl, tmp_path)
    site.routes["/automation-preferences.txt"] = NO_FETCHING
    verified = dataset.verify("--refresh", json_=False)
    assert verified.status == 1
    assert len(verified.listed) == 6
    for words in (
        "lost",
        "crawl",
        "automation.method",
        "/automation-preferences.txt:",
        "6 refused",
    ):
        assert words in verified.stdout
    assert set(site.paths) <= set(WELL_KNOWN)


AI = "User-agent: *\n  Path: /news/ html\n    Element: {}\n      Disallow: Train\n"


@pytest.mark.requirement("MEET-5", "AIT-7")
@pytest.mark.parametrize(
    "elements", ["redact", *(pytest.param(how, marks=pytest.mark.slow) for how in ("tag", "strip"))]
)
def test_rules_for_elements_are_asked_again(
    serve: Serve, crawl: Crawl, tmp_path: Path, elements: str
) -> None:
    quoting = {
        path: "<p>page</p><p class=quote>quote</p>" if path.startswith("/news/") else page
        for path, page in PAGES.items()
    }
    site = serve({"/robots.txt": FREE, "/ai.txt": AI.format(".quote"), **quoting})
    dataset = crawled([site], crawl, tmp_path, COMITY_ELEMENTS=elements)
    verified = dataset.verify("--refresh", "--for", "train,")
    assert (verified.status, verified.listed) == (0, [])
    assert set(site.paths) <= set(WELL_KNOWN)

    site.routes["/ai.txt"] = AI.format(".quote, .advert")
    assert dataset.verify().status == 0  # nobody has asked the site
    verified = dataset.verify("--refresh")
    assert verified.status == 1
    assert verified.refused == sorted(
        map(site.url, (path for path in PAGES if path.startswith("/news/")))
    )
    [loss] = verified.told["hosts"][site.origin]["losses"]
    assert (loss["use"], loss["rule"], loss["url"], loss["line"]) == (
        "train",
        "ait.disallow",
        site.url("/ai.txt"),
        4,
    )
    assert loss["text"] == "Disallow: Train (.quote, .advert)"

    del site.routes["/ai.txt"]
    verified = dataset.verify("--refresh")
    assert (verified.status, verified.told["hosts"][site.origin]["gained_elements"]) == (
        0,
        0 if elements == "strip" else 3,
    )
    assert set(site.paths) <= set(WELL_KNOWN)


@pytest.mark.requirement("MEET-5")
def test_a_store_from_before_ai_txt_was_asked_for_has_to_be_refreshed(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    site = serve({"/robots.txt": FREE, "/ai.txt": AI.format(".quote"), **PAGES})
    dataset = crawled([site], crawl, tmp_path)
    with closing(sqlite3.connect(tmp_path / "policies.sqlite")) as store, store:
        assert store.execute("DELETE FROM file WHERE path = '/ai.txt'").rowcount
    verified = dataset.verify()
    assert (verified.status, verified.told["unknown"]) == (1, 6)
    assert {one["why"][0].partition(" ")[0] for one in verified.listed} == {"no-policies"}
    assert dataset.verify("--refresh").status == 0
    assert "/ai.txt" in site.paths


@pytest.mark.requirement("RFC-7")
def test_a_site_that_cannot_be_asked_keeps_its_last_good_copy(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    site = serve({"/robots.txt": FREE, **PAGES})
    dataset = crawled([site], crawl, tmp_path)
    site.routes["/robots.txt"] = serve.Answer("busy", status=503)
    assert dataset.verify("--refresh").status == 0
    assert site.paths == ["/robots.txt"]


@pytest.mark.requirement("RFC-7")
def test_a_site_of_which_no_copy_is_kept_is_unreachable(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    """The other files are not asked for then."""
    site = serve({"/robots.txt": FREE, **PAGES})
    dataset = crawled([site], crawl, tmp_path)
    site.routes["/robots.txt"] = serve.Answer("busy", status=503)
    for refresh in (("--refresh",), ()):
        verified = dataset.verify("--store", str(tmp_path / "other.sqlite"), *refresh)
        assert (verified.status, verified.told["unknown"]) == (1, 6)
        assert {one["why"][0] for one in verified.listed} == {
            f"unreachable at {site.url('/robots.txt')}: HTTP status 503"
        }
    assert site.paths == ["/robots.txt"]


@pytest.mark.requirement("SEC-6")
def test_what_the_store_does_not_know_is_not_compliant(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    site = serve({"/robots.txt": FREE, **PAGES})
    dataset = crawled([site], crawl, tmp_path)
    other = tmp_path / "other.sqlite"
    verified = dataset.verify("--store", str(other))
    assert (verified.status, verified.told["unknown"]) == (1, 6)
    assert not other.exists()
    assert {one["why"][0].partition(" ")[0] for one in verified.listed} == {"no-policies"}
    with dataset.path.open("a") as file:
        file.write('{"url": \n')
    verified = dataset.verify()
    assert (verified.status, verified.told["unreadable"], verified.told["unknown"]) == (1, 1, 1)
    assert verified.listed[0]["place"] == "line 7"
    assert site.seen == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    one_in(
        2,
        [
            (["--for", "train,,index"], "--for `` is not a use"),
            (["--workers", "0"], "--workers"),
            (["--store", "{folder}"], "cannot be opened"),
            (["--store", "x" * 5000], "File name too long"),
            (["--nonsense"], "--nonsense"),
            (["-s", "COMITY_DEFAULTS=train"], "COMITY_DEFAULTS"),
        ],
    ),
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], message: str) -> None:
    dataset = Dataset(tmp_path, [{"url": "http://127.0.0.1:1/"}])
    verified = dataset.verify(*(one.format(folder=tmp_path) for one in arguments))
    assert verified.status == 2
    assert message in verified.stderr


@pytest.mark.parametrize("name", ["nowhere.jsonl", "items.txt"])
def test_a_dataset_that_is_none(tmp_path: Path, name: str) -> None:
    dataset = Dataset(tmp_path, [])
    dataset.path = tmp_path / name
    for refresh in ((), ("--refresh",)):
        verified = dataset.verify(*refresh)
        assert verified.status == 2
        assert name in verified.stderr
