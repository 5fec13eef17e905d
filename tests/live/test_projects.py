"""Projects of others, as `scrapy startproject` makes them: what comity says early, and where it keeps what it knows."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from comity.gate.fetching.store import PolicyStore
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Loopback

Serve = Callable[..., "Loopback"]

SPIDER = """
from scrapy import Request, Spider

class Shop(Spider):
    name = "shop"

    async def start(self):
        yield Request(self.url)

    def parse(self, response):
        yield {"name": "a thing", "tags": {"nested": ["a"]}}
"""
ADDON = 'ADDONS = {"comity.crawler.addon.Addon": 100}\n'
AGENT = 'COMITY_AGENT = "examplebot"\nUSER_AGENT = "examplebot/1.0 (+https://example.org/bot)"\nCOMITY_MIN_DELAY = 0\n'


class Project:
    def __init__(self, folder: Path, settings: str = ADDON + AGENT) -> None:
        self.folder = folder
        self.data = folder.parent / "data"
        self.environment = {**os.environ, "XDG_DATA_HOME": str(self.data), "COLUMNS": "80"}
        self.environment.pop("SCRAPY_SETTINGS_MODULE", None)
        folder.mkdir()
        if settings:
            (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
            (folder / "shop" / "spiders").mkdir(parents=True)
            (folder / "shop" / "settings.py").write_text(
                f'BOT_NAME = "shop"\nSPIDER_MODULES = ["shop.spiders"]\n{settings}'
            )
            (folder / "shop" / "spiders" / "shop.py").write_text(SPIDER)

    def scrapy(
        self, *words: str, status: int = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "scrapy", *words],
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done

    def crawl(
        self, server: Loopback, *words: str, **others: Any
    ) -> subprocess.CompletedProcess[str]:
        return self.scrapy("crawl", "shop", "-a", f"url={server.url('/')}", *words, **others)


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve({"/robots.txt": "User-agent: *\nDisallow:\n", "/": "<p>a page"})


def test_the_command_line_knows_the_formats(tmp_path: Path, server: Loopback) -> None:
    project = Project(tmp_path / "shop")
    project.crawl(server, "-O", "a.parquet", "-O", "a.warc.gz", "-O", "a.csv")
    assert pq.read_table(project.folder / "a.parquet").column("name").to_pylist() == ["a thing"]
    assert (project.folder / "a.warc.gz").stat().st_size
    assert '"{""nested"": [""a""]}"' in (project.folder / "a.csv").read_text()


def test_projects_without_comity_are_as_they_were(tmp_path: Path, server: Loopback) -> None:
    project = Project(tmp_path / "shop", AGENT)
    done = project.crawl(server, "-O", "a.parquet", status=2)
    assert "Unrecognized output format 'parquet'" in done.stderr
    done = project.crawl(server, "-O", "a.csv")
    assert "{'nested': ['a']}" in (project.folder / "a.csv").read_text()
    assert "comity" not in re.sub("COMITY|test_projects", "", done.stderr).replace(
        str(tmp_path), ""
    )
    assert not project.data.exists()


def test_a_spider_in_a_file(tmp_path: Path, server: Loopback) -> None:
    project = Project(tmp_path / "nowhere", "")
    (project.folder / "shop.py").write_text(SPIDER)
    words = ("runspider", "shop.py", "-a", f"url={server.url('/')}", "-O", "a.parquet")
    project.scrapy(*words, "-s", f"ADDONS={json.dumps({'comity.crawler.addon.Addon': 100})}")
    assert pq.read_table(project.folder / "a.parquet").num_rows == 1
    assert "Unrecognized output format" in project.scrapy(*words, status=2).stderr


def test_a_spider_in_a_file_that_ended_early_has_a_status_that_says_so(
    tmp_path: Path, server: Loopback
) -> None:
    project = Project(tmp_path / "nowhere", "")
    (project.folder / "shop.py").write_text(SPIDER + "    comity_is_complete = False\n")
    project.scrapy("runspider", "shop.py", "-a", f"url={server.url('/')}", status=1)
    assert "/" in server.paths


def test_the_ready_spiders_need_no_project(tmp_path: Path, server: Loopback) -> None:
    project = Project(tmp_path / "nowhere", "")
    done = project.scrapy(
        "crawl", "site", "-a", f"url={server.url('/')}", "-O", "a.jsonl", "-s", "COMITY_MIN_DELAY=0"
    )
    assert json.loads((project.folder / "a.jsonl").read_text())["url"] == server.url("/")
    assert "Crawl finished" in done.stderr
    done = project.scrapy("crawl", "shop", status=2)
    assert (
        "`shop` needs a project, and there is none here; comity's ready spiders need none: site, urls, policies"
        in done.stderr
    )


def test_the_ready_spiders_are_not_those_of_other_projects(
    tmp_path: Path, server: Loopback
) -> None:
    project = Project(tmp_path / "shop")
    done = project.scrapy("crawl", "site", "-a", f"url={server.url('/')}", status=2)
    assert (
        "this project has no spider `site`. To run comity's own, use its settings: SCRAPY_SETTINGS_MODULE="
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    done = project.scrapy("crawl", "other", status=1)
    assert "Spider not found: other" in done.stderr  # as Scrapy has it
    project = Project(tmp_path / "own", ADDON + AGENT + 'SPIDER_MODULES += ["comity.spiders"]\n')
    project.scrapy("crawl", "site", "-a", f"url={server.url('/')}")
    assert "/" in server.paths


# What is said


def test_the_log_ends_with_a_summary(tmp_path: Path, server: Loopback) -> None:
    project = Project(tmp_path / "shop")
    log = project.crawl(server).stderr
    summary = log.rpartition("INFO: Crawl finished\n")[2].splitlines()
    assert summary[0].split() == ["1", "items"]
    assert "  index  deny 1 (not stated)" in [
        line[-len("  index  deny 1 (not stated)") :] for line in summary
    ]
    assert "\x1b" not in log
    for quiet in (("-s", "COMITY_PROGRESS=off"), ("-s", "LOG_LEVEL=WARNING")):
        assert "Crawl finished" not in project.crawl(server, *quiet).stderr
    project.crawl(server, "--logfile", "log")
    assert "INFO: Crawl finished\n" in (project.folder / "log").read_text()
    assert (
        "COMITY_PROGRESS `loud` is unknown: write line, summary or off"
        in project.crawl(server, "-s", "COMITY_PROGRESS=loud", status=1).stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize(("progress", "has_line"), [("line", True), ("summary", False)])
def test_a_line_on_a_terminal(tmp_path: Path, serve: Serve, progress: str, has_line: bool) -> None:
    server = serve(
        {
            "/robots.txt": "User-agent: *\nCrawl-delay: 1\n",
            "/": '<a href="/1">',
            "/1": '<a href="/2">',
            "/2": "",
        }
    )
    project = Project(tmp_path / "nowhere", "")
    ours, its = pty.openpty()
    words = ["crawl", "site", "-a", f"url={server.url('/')}", "-s", f"COMITY_PROGRESS={progress}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", *words],
        cwd=project.folder,
        env=project.environment,
        stderr=its,
        stdin=subprocess.DEVNULL,
    )
    os.close(its)
    shown = b""
    while True:
        try:
            octets = os.read(ours, 4096)
        except OSError:  # it has ended
            break
        shown += octets
    os.close(ours)
    assert process.wait(300) == 0
    assert (b"waiting" in shown) is has_line
    assert b"Crawl finished" in shown


@pytest.mark.parametrize(
    ("settings", "warned"),
    one_in(
        3,
        [
            ("", ""),
            ('COMITY_USES = "index"', "index:allow"),
            ('COMITY_USES = "index,train"\nCOMITY_DEFAULTS = "train:deny"', "index:allow"),
            ('COMITY_USES = "index,train"', "index:allow,train:allow"),
            ('COMITY_USES = "index"\nCOMITY_DEFAULTS = "index:deny"', ""),
            ('COMITY_USES = "follow,crawl"', ""),
        ],
    ),
)
def test_uses_without_a_default(
    tmp_path: Path, server: Loopback, settings: str, warned: str
) -> None:
    log = Project(tmp_path / "shop", ADDON + AGENT + settings).crawl(server).stderr
    assert log.count("WARNING: COMITY_DEFAULTS has no value for ") == bool(warned)
    assert (
        not warned
        or f'To permit them: COMITY_DEFAULTS = "{warned}". To refuse them without this warning'
        in log
    )


# The store


@pytest.mark.requirement("RATE-2")
def test_projects_of_one_machine_share_a_store(tmp_path: Path, server: Loopback) -> None:
    for name in ("one", "two"):
        log = Project(tmp_path / name).crawl(server).stderr
        assert "store of its own" not in log
    assert server.paths == ["/robots.txt", "/", "/"]
    assert {path.name for path in (tmp_path / "data" / "comity").iterdir()} >= {
        "policies.sqlite",
        "pace.sqlite",
    }


def test_a_project_with_a_store_of_its_own_keeps_it(tmp_path: Path, server: Loopback) -> None:
    project = Project(tmp_path / "shop")
    PolicyStore(project.folder / ".scrapy" / "comity" / "policies.sqlite").close()
    log = project.crawl(server).stderr
    assert log.count("this project has a store of its own, ") == 1
    assert "set COMITY_STORE to the store that you want" in log
    assert not project.data.exists()
    assert (project.folder / ".scrapy" / "comity" / "pace.sqlite").exists()
    log = project.crawl(server, "-s", "COMITY_STORE=.scrapy/comity/policies.sqlite").stderr
    assert "store of its own" not in log


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"XDG_DATA_HOME": "/dev/null"},
            "COMITY_STORE `/dev/null/comity/policies.sqlite` cannot be opened: ",
        ),
        pytest.param(
            {"XDG_DATA_HOME": "", "HOME": "/dev/null"},
            "COMITY_STORE `/dev/null/.local/share/comity/policies.sqlite` cannot be opened: ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_home_that_cannot_be_written(
    tmp_path: Path, server: Loopback, environment: dict[str, str], said: str
) -> None:
    """As in a container."""
    project = Project(tmp_path / "shop")
    done = project.crawl(server, status=1, **environment)
    assert said in done.stderr
    assert "set COMITY_STORE to a path that can be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert server.paths == []
    project.crawl(server, "-s", "COMITY_STORE=here/policies.sqlite", **environment)
    assert "/" in server.paths


# Names

ROTATING = """
class Rotating:
    def process_request(self, request):
        request.headers["User-Agent"] = "Mozilla/5.0 (X11)"
"""


@pytest.mark.requirement("RFC-1")
@pytest.mark.parametrize(
    ("settings", "warned"),
    [("", 0), ('DOWNLOADER_MIDDLEWARES = {"shop.rotating.Rotating": 550}', 1)],
    ids=["its own", "rotating"],
)
def test_requests_under_another_name(
    tmp_path: Path, serve: Serve, settings: str, warned: int
) -> None:
    """What a site says to the agent holds for it under any name, and its policy files are asked for under its own."""
    server = serve(
        {
            "/robots.txt": "User-agent: examplebot\nDisallow: /private\nAllow: /\nUser-agent: *\nDisallow: /\n",
            "/": "",
        }
    )
    project = Project(tmp_path / "shop", ADDON + AGENT + settings)
    (project.folder / "shop" / "rotating.py").write_text(ROTATING)
    log = project.crawl(server).stderr
    assert (
        log.count("goes out as `Mozilla/5.0 (X11)`, which does not name COMITY_AGENT `examplebot`")
        == warned
    )
    own = "examplebot/1.0 (+https://example.org/bot)"
    assert [(seen.path, seen.headers["user-agent"]) for seen in server.seen] == [
        ("/robots.txt", own),
        ("/", "Mozilla/5.0 (X11)" if warned else own),
    ]
    assert ("comity/user-agent/other" in log) is bool(warned)
