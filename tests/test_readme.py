"""The beginning of README.md: its commands are run, and have the output that it shows."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Serve

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def block(beginning: str) -> list[str]:
    """Return the lines of the block that begins with a text."""
    [text] = re.findall(rf"^```\n({re.escape(beginning)}.*?)^```", README, re.DOTALL | re.MULTILINE)
    return str(text).splitlines()


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    return subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_installation_comes_first() -> None:
    order = ["pip install comity\n", "ADDONS = ", "comity startproject", "Crawl finished"]
    places = [README.index(text) for text in order]
    assert places == sorted(places)
    assert places[0] == README.index("pip install")


def test_the_commands_for_a_new_project_run_as_they_are(serve: Serve, tmp_path: Path) -> None:
    site = serve({"/": "<title>Start</title>"})
    create, change, crawl = block("comity startproject")
    run(create, tmp_path)
    folder = tmp_path / change.removeprefix("cd ")
    run(crawl.replace("https://example.com", site.url()), folder)
    assert site.paths == ["/robots.txt", "/"]
    [item] = (folder / "items.jsonl").read_text("utf-8").splitlines()
    assert json.loads(item)["permissions"]["uses"]["crawl"]["verdict"] == "allow"


@pytest.mark.slow
def test_the_crawl_of_the_demonstration_site_ends_as_shown(tmp_path: Path) -> None:
    shown = "\n".join(block("1. A demonstration site"))
    done = run("comity demo --crawl", tmp_path)
    port = re.search(r"127\.0\.0\.1:(\d+)", done.stdout)
    assert port is not None
    # Lines of the log are broken in the README.
    shown = re.sub(r"\n {6}(?=\S)", " ", shown.replace(":33585", f":{port[1]}"))
    before, log = done.stdout.partition("3. ")[0], done.stderr
    output = f"{before}{log}{done.stdout.removeprefix(before)}".splitlines()
    lines = iter(output)
    assert [line for line in shown.splitlines() if line not in lines] == []
    assert len(output) <= 40
