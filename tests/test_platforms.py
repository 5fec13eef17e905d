"""comity runs where the names of Unix do not exist (tests/windows_names.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from comity.crawler import demo

PROGRAM = Path(__file__).with_name("windows_names.py")


def run_on_windows(folder: Path, *commands: list[str]) -> str:
    """Run commands of Scrapy, and return their standard output."""
    done = subprocess.run(
        [sys.executable, "-P", "-X", "warn_default_encoding", PROGRAM, *map(json.dumps, commands)],
        cwd=folder,
        env={
            **os.environ,
            "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings",
            "XDG_DATA_HOME": str(folder / "data"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("new_processes")
def test_commands_need_no_name_of_unix(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "robots.txt").write_text("User-agent: *\nDisallow: /a\n", "utf-8")
    export = ["dataset", "export", "items.jsonl", "--for", "search", "-o"]
    with demo.running() as server:
        crawl = ["crawl", "site", "-a", f"url={server.url}", "-o", "items.jsonl"]
        printed = run_on_windows(
            tmp_path,
            [*crawl, "-s", "COMITY_MIN_DELAY=0", "-s", "JOBDIR=job", "-s", "COMITY_REPORT=r.json"],
            ["lint", "site"],
            ["dataset", "stats", "items.jsonl"],
            [*export, "out.jsonl"],
            [*export, "out/"],
            [*export, "out/"],  # it replaces a folder
            ["dataset", "expire", "items.jsonl"],
            ["policy", f"{server.url}news/1.html", "--json"],
        )
        passed = server.guard.passed.total()
    assert passed > 0
    items = (tmp_path / "items.jsonl").read_text("utf-8").splitlines()
    kept = (tmp_path / "out.jsonl").read_text("utf-8")
    assert len(items) > len(kept.splitlines()) > 0
    assert (tmp_path / "out" / "items.jsonl").read_text("utf-8") == kept
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert f"{len(items)} records of 1 origins, 0 that cannot be read" in printed
    policy = json.loads(printed[printed.rindex("\n{") :])
    assert policy["verdict"] == "allow"


@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize(
    "words",
    [
        ["comity.cli", "lint", "."],
        pytest.param(
            ["scrapy", "policy", "--offline", ".", "https://example.com/\u65e5"],
            marks=pytest.mark.slow,
        ),
        pytest.param(["scrapy", "lint", "."], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_characters_that_a_pipe_cannot_take_are_escaped(words: list[str], tmp_path: Path) -> None:
    text = "User-agent: *\nDisallow: /\u65e5\nDisalow: /\u65e5\n"
    (tmp_path / "robots.txt").write_text(text, "utf-8")
    run = "from comity.cli import main; raise SystemExit(main())"
    how = ["-c", run] if words[0].startswith("comity") else ["-m", "scrapy"]
    done = subprocess.run(
        [sys.executable, *how, *words[1:]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert b"\\u65e5" in done.stdout
