"""`comity startproject`: the project crawls a site at once, and nothing is ever overwritten."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from comity.cli import main
from comity.gate.options import DEFAULTS, Options
from comity.project.startproject import FILES

if TYPE_CHECKING:
    from tests.conftest import Serve


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )


def project(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("program", ["scrapy", "comity"])
def test_a_new_project_crawls_a_site(serve: Serve, tmp_path: Path, program: str) -> None:
    other = serve({}, host="127.0.0.2")
    links = f'<a href="/public"></a><a href="/private"></a><a href="{other.url()}"></a>'
    site = serve(
        {
            "/robots.txt": "User-agent: shop\nDisallow: /private\nContent-Usage: train-ai=n\n",
            "/": f"<title>Start</title>{links}",
            "/public": "<title>Public</title>",
            "/private": "",
        }
    )
    made = run(tmp_path, "comity", "startproject", "shop")
    assert (made.returncode, made.stderr) == (0, "")
    assert "cd shop\n    comity crawl pages -a url=" in made.stdout
    arguments = ("-a", f"url={site.url()}", "-O", "items.jsonl", "-s", "COMITY_MIN_DELAY=0")
    crawled = run(tmp_path / "shop", program, "crawl", "pages", *arguments)
    assert crawled.returncode == 0
    assert site.paths == ["/robots.txt", "/", "/public"]
    assert other.paths == []
    assert {seen.headers["user-agent"].partition("/")[0] for seen in site.seen} == {"shop"}
    lines = (tmp_path / "shop/items.jsonl").read_text("utf-8").splitlines()
    items = [json.loads(line) for line in lines]
    assert [item["title"] for item in items] == ["Start", "Public"]
    assert [item["permissions"]["uses"]["train-ai"]["verdict"] for item in items] == ["deny"] * 2
    warnings = [line for line in crawled.stderr.splitlines() if " WARNING: " in line]
    assert len(warnings) == 1
    assert "has no way to reach you" in warnings[0]


def test_the_spider_says_what_to_write_without_a_url(tmp_path: Path) -> None:
    main(["startproject", "shop", str(tmp_path / "shop")])
    crawled = run(tmp_path / "shop", "scrapy", "crawl", "pages")
    assert crawled.returncode == 1
    assert crawled.stderr.splitlines()[-1] == (
        "pages: url is missing: write -a url=https://example.com"
    )


def test_the_project_is_well_formed(tmp_path: Path) -> None:
    assert main(["startproject", "shop_2", str(tmp_path)]) == 0
    assert set(project(tmp_path)) == {path.replace("$name", "shop_2") for path in FILES}
    assert not any(b"$" in text for text in project(tmp_path).values())
    assert len((tmp_path / "README.md").read_text("utf-8").splitlines()) == 10
    for command in (["check"], ["format", "--check"]):
        done = run(tmp_path, "ruff", *command, "--isolated")
        assert done.returncode == 0, done.stdout


def test_each_setting_that_is_shown_can_be_set(tmp_path: Path) -> None:
    main(["startproject", "shop", str(tmp_path)])
    text = (tmp_path / "shop/settings.py").read_text("utf-8")
    shown = re.findall("^# ([A-Z_]+) = ", text, re.MULTILINE)
    assert len(shown) > 5
    settings: dict[str, Any] = {}
    exec(re.sub("^# (?=[A-Z_]+ = )", "", text, flags=re.MULTILINE), settings)
    assert set(shown) < set(settings)
    ours = {name for name in settings if name.startswith("COMITY_")}
    assert ours < DEFAULTS.keys()
    options = Options.from_settings(
        Settings({name: settings[name] for name in (*ours, "USER_AGENT")})
    )
    assert (options.agent.token, options.agent.user_agent) == (
        "shop",
        "shop/1.0 (+https://example.org/bot)",
    )
    assert options.min_delay == DEFAULTS["COMITY_MIN_DELAY"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("my-shop", "is not a name of a Python package: begin with a letter, and use letters,"),
        ("1shop", "letters, digits and `_` only, e.g. `shop`"),
        ("../shop", "letters, digits and `_` only, e.g. `shop`"),
        ("läden", "letters, digits and `_` only, e.g. `l_den`"),
        ("", "letters, digits and `_` only, e.g. `my_crawler`"),
        ("class", "is taken: Python has a module or a keyword of this name. Write another, e.g. "),
        ("json", "is taken: Python has a module or a keyword of this name. Write another, e.g. "),
        ("scrapy", "`scrapy_crawler`"),
    ],
)
def test_a_name_that_cannot_be_that_of_a_package(
    name: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["startproject", name]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"comity startproject: NAME `{name}` is ")
    assert problem in error
    assert error.count("\n") == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("path", FILES)
def test_no_file_is_overwritten(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / path.replace("$name", "shop")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(b"mine")
    before = project(tmp_path)
    assert main(["startproject", "shop", str(tmp_path)]) == 2
    assert project(tmp_path) == before
    assert capsys.readouterr().err == (
        f"comity startproject: {own} exists already: write another FOLDER behind the name\n"
    )


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["startproject", "shop", str(tmp_path / "file/shop")]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"comity startproject: .*README.md cannot be written: .+\n", error)
