"""The parts that do without Scrapy import neither Scrapy nor Twisted: their commands start fast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PRINT_LOADED = "import sys; print(*sorted({'scrapy', 'twisted'}.intersection(sys.modules)))"


def loaded_by(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{program}\n{PRINT_LOADED}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "module",
    [
        "comity.client",
        "comity.client.aiohttp",
        "comity.client.httpx",
        "comity.browser.proxy",
        "comity.authoring.language_server.server",
    ],
)
def test_a_module_is_imported_without_scrapy(module: str, tmp_path: Path) -> None:
    assert loaded_by(f"import {module}", tmp_path) == ""


@pytest.mark.parametrize("command", ["lint", "explain"])
def test_a_command_on_a_folder_runs_without_scrapy(command: str, tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n", "utf-8")
    program = f"from comity.authoring.cli import main\nassert main(['{command}', '.']) == 0"
    assert loaded_by(program, tmp_path) == ""


def test_a_rule_is_explained_without_scrapy(tmp_path: Path) -> None:
    program = "from comity.authoring.cli import main\nassert main(['rule', 'robots.path']) == 0"
    assert loaded_by(program, tmp_path) == ""
