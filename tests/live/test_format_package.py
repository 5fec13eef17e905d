"""A format of another package, installed beside comity: fetched, obeyed, tagged, explained, enforced, exported and verified."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

PACKAGE = Path(__file__).parent.parent.parent / "examples" / "format_package"
ROOT = PACKAGE.parent.parent

COURTESY = """\
# what we ask
visit: no /drafts/
quote: yes
learn: no /news/
"""
PAGES = {
    "/": '<a href="/news/1">1</a> <a href="/news/2">2</a> <a href="/drafts/1">3</a> <a href="/about">4</a>',
    "/news/1": "<p>news</p>",
    "/news/2": "<p>news</p>",
    "/drafts/1": "<p>draft</p>",
    "/about": '<meta name="courtesy" content="learn=no"><p>about</p>',
}

# A forked process has imported comity, and with it the formats, before the test has installed one: it does so again.
AGAIN = """
import sys
for name in [name for name in sys.modules if name.partition(".")[0] == "comity"]:
    del sys.modules[name]
"""
SCRAPY = f"""{AGAIN}
from runpy import run_module
run_module("scrapy", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the package is installed as pip does it."""
    folder = tmp_path_factory.mktemp("packages")
    source = shutil.copytree(PACKAGE, folder / "source")
    options = [
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(folder / "installed"),
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(source)], check=True, timeout=300
    )
    return folder / "installed"


class Tool:
    """Processes that find the package."""

    def __init__(self, packages: Path, folder: Path) -> None:
        self.folder = folder
        path = os.pathsep.join(
            [str(packages), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        self.environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "130"}

    def scrapy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        settings = [
            f"COMITY_STORE={self.folder / 'policies.sqlite'}",
            "COMITY_AGENT=testbot",
            "COMITY_MIN_DELAY=0",
        ]
        options = [word for setting in settings for word in ("-s", setting)]
        return subprocess.run(
            [sys.executable, "-c", SCRAPY, *arguments, *options],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture
def tool(packages: Path, tmp_path: Path) -> Tool:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own_settings\n")
    (tmp_path / "own_settings.py").write_text(
        'ADDONS = {"comity.crawler.addon.Addon": 100}\nSPIDER_MODULES = ["comity.spiders"]\n'
        'COMITY_USES = "train,present-snippet"\nCOMITY_DEFAULTS = "train:allow"\nUSER_AGENT = "testbot"\n'
    )
    return Tool(packages, tmp_path)


@pytest.fixture
def site(serve: Serve) -> Loopback:
    return serve({"/robots.txt": "User-agent: *\nAllow: /\n", "/courtesy.txt": COURTESY, **PAGES})


@pytest.fixture
def crawled(tool: Tool, site: Loopback) -> dict[str, dict[str, Any]]:
    """Path -> the tag of its item; they stand in items.jsonl."""
    done = tool.scrapy(
        "crawl", "site", "-a", f"url={site.url()}", "-O", "items.jsonl", "-s", "COMITY_PROGRESS=off"
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert "courtesy.visit" in done.stderr
    items = [json.loads(line) for line in (tool.folder / "items.jsonl").read_text().splitlines()]
    return {item["url"].removeprefix(site.origin): item["permissions"] for item in items}


def deciding(tag: dict[str, Any], use: str) -> tuple[str, str, str, str, int]:
    """Verdict, and of the first reason rule, URL's end, part and line."""
    decision = tag["uses"][use]
    reason = tag["reasons"][decision["because"][0]]
    return (
        decision["verdict"],
        reason["rule"],
        reason["url"].rpartition("/")[2],
        reason.get("part", "body"),
        reason["line"],
    )


@pytest.mark.requirement("EXT-1", "MEET-1", "MEET-3")
def test_it_is_fetched_obeyed_and_tagged(
    site: Loopback, crawled: dict[str, dict[str, Any]]
) -> None:
    assert site.paths.index("/courtesy.txt") < site.paths.index("/")
    assert set(site.paths) == {"/robots.txt", "/courtesy.txt", "/", "/news/1", "/news/2", "/about"}
    assert crawled.keys() == {"/", "/news/1", "/news/2", "/about"}
    assert site.url("/courtesy.txt") in crawled["/"]["policies"]
    assert deciding(crawled["/news/1"], "train") == (
        "deny",
        "courtesy.no",
        "courtesy.txt",
        "body",
        4,
    )
    assert deciding(crawled["/about"], "train") == (
        "deny",
        "courtesy.no",
        "about",
        "meta courtesy",
        1,
    )
    assert deciding(crawled["/about"], "present-snippet") == (
        "allow",
        "courtesy.yes",
        "courtesy.txt",
        "body",
        3,
    )
    assert deciding(crawled["/"], "train")[:2] == ("allow", "comity.default")


@pytest.mark.slow
@pytest.mark.requirement("WHY-1")
def test_header_fields_and_lines_of_robots_txt_count(tool: Tool, serve: Serve) -> None:
    field = serve.Answer("<p>kept</p>", content_type="text/html", headers={"Courtesy": "learn=no"})
    site = serve(
        {
            "/robots.txt": "User-agent: *\nAllow: /\nCourtesy: quote=perhaps\n",
            "/": "<a href='/field'>1</a>",
            "/field": field,
        }
    )
    uses = ("-s", "COMITY_USES=train,index", "-s", "COMITY_DEFAULTS=train:allow,index:allow")
    done = tool.scrapy("crawl", "site", "-a", f"url={site.url()}", "-O", "items.jsonl", *uses)
    assert "Traceback" not in done.stderr, done.stderr
    items = {
        item["url"]: item["permissions"]
        for item in map(json.loads, (tool.folder / "items.jsonl").read_text().splitlines())
    }
    assert deciding(items[site.url("/field")], "train") == (
        "deny",
        "courtesy.no",
        "field",
        "header Courtesy",
        0,
    )
    explained = json.loads(
        tool.scrapy("policy", site.url(), "--use", "present-snippet", "--json").stdout
    )
    [reason] = explained["uses"]["present-snippet"]["reasons"]
    assert (reason["rule"], reason["url"], reason["line"]) == (
        "courtesy.no",
        site.url("/robots.txt"),
        3,
    )


@pytest.mark.requirement("EXT-1", "WHY-1", "WHY-2")
def test_it_is_explained_on_line_and_off_line(tool: Tool, site: Loopback) -> None:
    done = tool.scrapy("policy", site.url("/drafts/1"))
    assert done.returncode == 1, done.stderr
    assert "courtesy.visit (Courtesy 1.0)" in done.stdout
    assert f"{site.url('/courtesy.txt')}:2: visit: no /drafts/" in done.stdout
    folder = tool.folder / "files"
    folder.mkdir()
    (folder / "courtesy.txt").write_text(COURTESY + "lern: no\n")
    done = tool.scrapy(
        "policy", "https://example.com/news/1", "--use", "train", "--offline", str(folder), "--json"
    )
    assert done.returncode == 0, done.stderr
    explained = json.loads(done.stdout)
    assert explained["uses"]["train"]["verdict"] == "deny"
    assert [reason["line"] for reason in explained["uses"]["train"]["reasons"]] == [4]
    assert [(finding["rule"], finding["line"]) for finding in explained["findings"]] == [
        ("courtesy.value", 5)
    ]


@pytest.mark.slow
def test_a_file_that_cannot_be_had_refuses(tool: Tool, site: Loopback, serve: Serve) -> None:
    site.routes["/courtesy.txt"] = serve.Answer("later", status=503)
    done = tool.scrapy("policy", site.url())
    assert done.returncode == 2, done.stdout
    assert "courtesy.unreachable (Courtesy 1.0)" in done.stdout


@pytest.mark.slow
@pytest.mark.requirement("EXT-1", "MEET-3")
def test_uses_are_exported_with_its_reasons(tool: Tool, crawled: dict[str, dict[str, Any]]) -> None:
    assert crawled
    for use, count in (("train", 1), ("present-snippet", 4)):
        done = tool.scrapy("dataset", "export", "items.jsonl", "--for", use, "-o", f"{use}.jsonl")
        assert "Traceback" not in done.stderr, done.stderr
        assert len((tool.folder / f"{use}.jsonl").read_text().splitlines()) == count
    assert "deny:courtesy.no" in (tool.folder / "train.jsonl.croissant.json").read_text()


@pytest.mark.slow
@pytest.mark.requirement("EXT-1")
def test_records_are_verified(
    tool: Tool, site: Loopback, crawled: dict[str, dict[str, Any]]
) -> None:
    """What the file says is asked again, and what a page said of itself is said again."""
    assert crawled
    verify = ("dataset", "verify", "items.jsonl", "--json", "--list", "listed.jsonl")
    assert tool.scrapy(*verify).returncode == 0
    site.routes["/courtesy.txt"] = COURTESY.replace("learn: no /news/", "quote: no /news/2")
    done = tool.scrapy(*verify, "--refresh")
    assert (done.returncode, done.stderr) == (1, "")
    told = json.loads(done.stdout)["hosts"][site.origin]
    assert told["rights"] == {
        "train": {"gained": 2},
        "present-snippet": {"lost": 1},
    }  # and not that of /about
    [loss] = told["losses"]
    assert (loss["rule"], loss["url"], loss["line"]) == (
        "courtesy.no",
        site.url("/courtesy.txt"),
        4,
    )
    [listed] = map(json.loads, (tool.folder / "listed.jsonl").read_text().splitlines())
    assert listed["url"] == site.url("/news/2")


GUARD = f"""{AGAIN}
from wsgiref.simple_server import make_server
from comity.guard import Guard, WSGIMiddleware

def site(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"a page"]

listening = make_server("127.0.0.1", 0, site)
guard = Guard(f"http://127.0.0.1:{{listening.server_port}}", {{"/courtesy.txt": {COURTESY.encode()!r}}})
listening.set_app(WSGIMiddleware(site, guard))
print(listening.server_port, flush=True)
listening.serve_forever()
"""


@pytest.fixture
def guarded(tool: Tool) -> Iterator[Callable[[str], tuple[int, str, str]]]:
    """Path -> status, media type and body."""
    command = [sys.executable, "-W", "ignore", "-c", GUARD]
    with subprocess.Popen(
        command, env=tool.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        port = int(process.stdout.readline())

        def get(path: str) -> tuple[int, str, str]:
            connection = HTTPConnection("127.0.0.1", port, timeout=300)
            connection.request("GET", path, headers={"User-Agent": "testbot/1.0"})
            answer = connection.getresponse()
            body = answer.read().decode()
            connection.close()
            return answer.status, answer.headers["Content-Type"], body

        yield get
        process.kill()


@pytest.mark.requirement("EXT-1")
def test_the_guard_serves_and_enforces_it(guarded: Callable[[str], tuple[int, str, str]]) -> None:
    assert guarded("/courtesy.txt") == (200, "text/plain; charset=utf-8", COURTESY)
    assert guarded("/news/1")[::2] == (200, "a page")
    status, _, body = guarded("/drafts/1")
    assert status == 403
    assert "courtesy.visit" in body
