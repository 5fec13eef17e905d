"""Commands start fast: each imports only the modules that it needs.

The tests count imported modules, because times depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from comity import __version__

PRINT_LOADED = "import sys; print(*sorted(set({names}).intersection(sys.modules)))"
SCRAPY = ["scrapy", "twisted"]
# Only pages and sites need these.
PAGES_AND_SITES = ["aiohttp", "asyncio", "jmespath", "parsel", "platformdirs", "turbohtml"]
# Run commands of Scrapy, and print the names of all imported modules after each of them.
RUN_SCRAPY = """
import sys
from scrapy.cmdline import execute
for words in (["version"], ["-h"], ["crawl", "idle"]):
    try:
        execute(["scrapy", *words])
    except SystemExit as ended:
        assert not ended.code, ended.code
    print("imported", *sorted(sys.modules))
"""
RUN_WITHOUT_SCRAPY = """
import sys
from importlib import import_module
from comity.cli import main

def check(what):
    assert not {"scrapy", "twisted"} & sys.modules.keys(), what

for words in (["lint", "."], ["explain", "."], ["rule", "robots.path"]):
    assert main(words) == 0
    check(words)
for module in (
    "comity.client",
    "comity.client.aiohttp",
    "comity.client.httpx",
    "comity.browser.proxy",
    "comity.authoring.language_server.server",
):
    import_module(module)
    check(module)
"""
WITHOUT_COMITY = """
import importlib.metadata
importlib.metadata.entry_points = lambda **selection: ()
"""
# The modules that hold the names and summaries of commands.
LISTS = {
    "comity",
    "comity.commands",
    "comity.crawler",
    "comity.crawler.commands",
    "comity.crawler.commands.base",
    "comity.crawler.commands.crawl",
    "comity.crawler.commands.listed",
}
SPIDER = """
import scrapy

class Idle(scrapy.Spider):
    name = "idle"

    async def start(self):
        return
        yield
"""


def loaded_by(program: str, folder: Path, names: list[str] = SCRAPY) -> str:
    """Run a program, and return the modules with these names that it imports."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{program}\n{PRINT_LOADED.format(names=names)}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def modules_of_scrapy(folder: Path, before: str = "") -> list[set[str]]:
    """Run the commands of Scrapy in a folder. Return the names of the imported modules after each."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", before + RUN_SCRAPY],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return [set(names) for first, *names in filter(None, lines) if first == "imported"]


def test_modules_and_commands_run_without_scrapy(tmp_path: Path) -> None:
    """All of them in one process: none of them imports Scrapy."""
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n", "utf-8")
    assert loaded_by(RUN_WITHOUT_SCRAPY, tmp_path) == ""


def test_lint_of_robots_txt_imports_no_parser_of_pages(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /private/\nDisalow: /", "utf-8")
    program = "from comity.cli import main\nassert main(['lint', 'robots.txt']) == 1"
    assert loaded_by(program, tmp_path, PAGES_AND_SITES) == ""


def test_help_imports_no_other_command(tmp_path: Path) -> None:
    program = """
from contextlib import suppress
from comity.cli import main
for words in (["--help"], ["nosuch"], ["rule", "--help"]):
    with suppress(SystemExit):
        main(words)
"""
    others = ["shtab", "comity.completion", "comity.doctor", "comity.crawler", "nicegui", "pygls"]
    assert loaded_by(program, tmp_path, [*SCRAPY, *others]) == ""


@pytest.mark.slow
def test_a_command_of_scrapy_imports_no_tool_of_other_commands(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").touch()
    program = "from comity.cli import main\nmain(['policy', '--offline', '.', 'https://a.test/'])"
    others = ["shtab", "comity.completion", "comity.doctor", "comity.authoring"]
    assert loaded_by(program, tmp_path, ["scrapy", *others]) == "scrapy"


@pytest.mark.slow
def test_scrapy_without_the_addon_imports_only_the_list_of_commands(tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = project\n", "utf-8")
    (tmp_path / "project.py").write_text("SPIDER_MODULES = ['idle']\n", "utf-8")
    (tmp_path / "idle.py").write_text(SPIDER, "utf-8")
    alone = modules_of_scrapy(tmp_path, WITHOUT_COMITY)
    assert [
        with_comity - without
        for with_comity, without in zip(modules_of_scrapy(tmp_path), alone, strict=True)
    ] == [LISTS] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("new_processes")
def test_the_version_is_told_without_an_import_of_the_packages(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "comity", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    versions = [line.split() for line in done.stdout.splitlines()]
    assert versions[0] == ["comity", __version__]
    assert {"Python", "Scrapy", "Twisted", "lxml"} < {name for name, *_ in versions}
    assert ["Scrapy", version("scrapy")] in versions
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "comity.cli" in imported
    assert not imported & {"scrapy", "twisted", "aiohttp"}
