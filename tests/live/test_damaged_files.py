"""Damaged files of ours, at every program that opens them: one line that says so and an exit status, nothing asked of a site."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

SITE: dict[str, Any] = {
    "/robots.txt": "User-agent: *\nDisallow: /private\n",
    "/": "<a href=/private>a</a>",
    "/private": "<p>no",
}

PROGRAM = """
import sys
from scrapy import Request, Spider
from scrapy import crawler

class Pages(Spider):
    name = "pages"

    async def start(self):
        for path in ("/", "/private"):
            yield Request(sys.argv[2] + path)

    def parse(self, response):
        pass

settings = {
    "ADDONS": {"comity.crawler.addon.Addon": 100}, "COMITY_AGENT": "testbot", "COMITY_MIN_DELAY": 0,
    "COMITY_STORE": "store/policies.sqlite", "JOBDIR": "job", "LOG_LEVEL": (sys.argv[4:] or ["WARNING"])[0],
    "RETRY_ENABLED": False,
}
if sys.argv[3] == "no-reactor":
    settings["TWISTED_REACTOR_ENABLED"] = False
process = getattr(crawler, sys.argv[1])(settings)
process.crawl(Pages)
process.start()
"""
OPENED = """
import atexit, json, sqlite3, sys
from pathlib import Path
connect, opened = sqlite3.connect, []
def counted(path, *arguments, **options):
    opened.append(Path(path).name)
    return connect(path, *arguments, **options)
sqlite3.connect = counted
atexit.register(lambda: print(json.dumps(opened)))
"""
CRAWLS = {
    "CrawlerProcess": ("CrawlerProcess", "reactor"),
    "AsyncCrawlerProcess": ("AsyncCrawlerProcess", "reactor"),
    "without a reactor": ("AsyncCrawlerProcess", "no-reactor"),
}
COMMANDS = {
    "crawl": ["crawl", "site", "-a", "url={}", "-s", "JOBDIR=job"],
    "policy": ["policy", "{}"],
    "verify": ["dataset", "verify", "items.jsonl", "--store", "store/policies.sqlite"],
    "refresh": ["dataset", "verify", "items.jsonl", "--refresh"],
    "expire": ["dataset", "expire", "items.jsonl", "--store", "store/policies.sqlite"],
}


class Program:
    """In a folder of its own."""

    def __init__(self, name: str, folder: Path, site: Loopback) -> None:
        self.words = (
            ["-c", PROGRAM, CRAWLS[name][0], site.origin, CRAWLS[name][1]]
            if name in CRAWLS
            else [
                "-m",
                "scrapy",
                *(word.format(site.url()) for word in COMMANDS[name]),
                "-s",
                "COMITY_STORE=store/policies.sqlite",
            ]
        )
        if name == "crawl":
            self.words += ["-s", "COMITY_MIN_DELAY=0", "-s", "LOG_LEVEL=ERROR"]
        self._folder = folder

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *self.words, *more],
            cwd=self._folder,
            env={**os.environ, "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"},
            umask=0,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 50)


def other_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'host', 'hots')")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'origin', 'orange')")


def pages_swapped(path: Path) -> None:
    octets = path.read_bytes()
    path.write_bytes(octets[:4096] + octets[8192:12288] + octets[4096:8192] + octets[12288:])


FILES = {
    "store/policies.sqlite": "COMITY_STORE",
    "store/pace.sqlite": "pace file",
    "job/comity.sqlite": "JOBDIR",
}
ENTRIES = [
    *((name, file) for name in (*CRAWLS, "crawl") for file in FILES),
    *((name, "store/policies.sqlite") for name in ("policy", "verify", "refresh", "expire")),
]
DAMAGES = (noise, other_tables, pages_swapped)  # they take turns


@pytest.fixture
def site(serve: Serve) -> Loopback:
    return serve(SITE)


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(
    ("name", "file", "damage"),
    one_in(
        6,
        [
            (*entry, damage)
            for entry, damage in zip(ENTRIES, itertools.cycle(DAMAGES), strict=False)
        ],
    ),
)
def test_a_damaged_file_ends_a_program_with_one_line(
    site: Loopback,
    tmp_path: Path,
    whole: Path,
    name: str,
    file: str,
    damage: Callable[[Path], None],
) -> None:
    for one in whole.rglob("*"):
        if one.is_file():
            (tmp_path / one.relative_to(whole)).parent.mkdir(exist_ok=True)
            (tmp_path / one.relative_to(whole)).write_bytes(one.read_bytes())
    damage(tmp_path / file)
    done = Program(name, tmp_path, site).run()
    assert "Traceback" not in done.stderr
    assert [
        line for line in done.stderr.splitlines() if FILES[file] in line and "is damaged" in line
    ], done.stderr
    assert done.returncode == (1 if name in (*CRAWLS, "crawl") else 2)
    assert site.paths == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of a crawl that has ended."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "items.jsonl").write_text(json.dumps({"url": "http://127.0.0.1:1/"}) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "AsyncCrawlerProcess", "http://127.0.0.1:1", "reactor"],
        cwd=folder,
        umask=0,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", one_in(3, CRAWLS))
@pytest.mark.parametrize("damage", ["copy = replace(copy, '200', '404')", "due = 'x'"])
def test_a_row_that_is_damaged_permits_nothing(
    site: Loopback, tmp_path: Path, name: str, damage: str
) -> None:
    """The site is asked instead, and the row is written anew."""
    program = Program(name, tmp_path, site)
    for number in (1, 2):
        done = program.run()
        assert done.returncode == 0, done.stderr
        assert "/private" not in site.paths
        assert site.paths.count("/robots.txt") == number
        assert ("cannot be read: a row is not as it was written" in done.stderr) is (number == 2)
        with closing(sqlite3.connect(tmp_path / "store" / "policies.sqlite")) as db, db:
            assert db.execute(f"UPDATE file SET {damage} WHERE path = '/robots.txt'").rowcount == 1
        (tmp_path / "job" / "comity.sqlite").unlink()


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", one_in(4, ["crawl", *CRAWLS]))
def test_what_a_crawl_leaves_is_for_its_user_alone(
    site: Loopback, tmp_path: Path, name: str
) -> None:
    done = Program(name, tmp_path, site).run()
    assert done.returncode == 0, done.stderr
    modes = {
        str(one.relative_to(tmp_path)): stat.S_IMODE(one.stat().st_mode)
        for one in tmp_path.rglob("*")
    }
    assert {name: modes[name] for name in ("store", "job")} == {"store": 0o700, "job": 0o700}
    assert {name: modes[name] for name in FILES} == dict.fromkeys(FILES, 0o600)


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", one_in(2, CRAWLS))
def test_files_are_opened_and_checked_once(site: Loopback, tmp_path: Path, name: str) -> None:
    program = Program(name, tmp_path, site)
    program.words[1] = OPENED + program.words[1]
    done = program.run()
    assert done.returncode == 0, done.stderr
    opened = json.loads(done.stdout.splitlines()[-1])
    assert sorted(each for each in opened if each != ":memory:") == sorted(
        Path(file).name for file in FILES
    )


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", one_in(3, CRAWLS))
def test_files_that_others_can_read_are_told_of(site: Loopback, tmp_path: Path, name: str) -> None:
    program = Program(name, tmp_path, site)
    assert program.run().returncode == 0
    for file in FILES:
        (tmp_path / file).chmod(0o644)
    done = program.run("INFO")
    assert done.returncode == 0, done.stderr
    lines = [
        line
        for line in done.stderr.splitlines()
        if "is open to other users of this machine" in line
    ]
    assert [sum(Path(file).name in line for line in lines) for file in FILES] == [1] * len(FILES), (
        lines
    )
