"""The wheel in a project of somebody else: it takes nothing over, and one line makes the project polite."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

ROOT = Path(__file__).parent.parent

SPIDER = """
import scrapy

class SiteSpider(scrapy.Spider):
    name = "site"

    async def start(self):
        for path in self.paths.split(","):
            yield scrapy.Request(self.origin + path)

    def parse(self, response):
        print(self.__module__, self.settings["BOT_NAME"], self.settings["ROBOTSTXT_OBEY"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in tracked.split("\0")[:-1]:
        copy = folder / "tree" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, copy, follow_symlinks=False)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(folder / "tree")], check=True)
    (built,) = folder.glob("comity-*.whl")
    return built


@dataclass(frozen=True)
class Project:
    """The project `crawler` as `scrapy startproject` makes it, with a spider `site` of its own."""

    folder: Path
    scripts: Path

    @property
    def settings(self) -> Path:
        return self.folder / "crawler" / "settings.py"

    def scrapy(self, *arguments: str) -> str:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "SCRAPY_SETTINGS_MODULE")
        }
        command = [str(self.scripts / "python"), "-m", "scrapy", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def crawl(self, server: Loopback, *paths: str) -> str:
        arguments = ["-a", f"origin={server.origin}", "-a", f"paths={','.join(paths)}"]
        return self.scrapy(
            "crawl", "site", *arguments, "-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0"
        )

    def add_the_line(self) -> None:
        with self.settings.open("a") as settings:
            settings.write('\nADDONS = {"comity.crawler.addon.Addon": 100}\n')


@pytest.fixture
def project(wheel: Path, tmp_path: Path) -> Project:
    """In an environment that has the wheel, and everything else from the one that runs the tests."""
    environment = tmp_path / "venv"
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(environment / "bin" / "python"),
        "install",
        "--quiet",
    ]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    # The path alone: .pth files there are not read, so the editable comity is not found.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    made = Project(tmp_path / "project", environment / "bin")
    made.folder.mkdir()
    made.scrapy("startproject", "crawler", ".")
    (made.folder / "crawler" / "spiders" / "site.py").write_text(SPIDER)
    return made


@pytest.mark.slow
def test_wheel_holds_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    version = wheel.name.split("-")[1]
    assert {name.partition("/")[0] for name in names} == {"comity", f"comity-{version}.dist-info"}
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "comity").rglob("*.py")} | {
        "comity/py.typed"
    }
    assert package <= set(names)


@pytest.mark.slow
def test_project_keeps_what_is_its_own(project: Project, serve: Serve) -> None:
    project.add_the_line()
    code = "import comity, crawler.settings as settings; print(comity.__file__, settings.__file__, sep='\\n')"
    python = [str(project.scripts / "python"), "-c", code]
    found = subprocess.run(
        python, cwd=project.folder, capture_output=True, text=True, check=True
    ).stdout
    comity_file, settings_file = found.splitlines()
    assert Path(comity_file).is_relative_to(project.scripts.parent)
    assert Path(settings_file) == project.settings
    assert project.scrapy("list") == "site"
    assert (
        project.crawl(serve({"/a": "<title>a page</title>"}), "/a")
        == "crawler.spiders.site crawler True"
    )


@pytest.mark.requirement("RFC-7")
@pytest.mark.slow
def test_one_line_makes_the_project_polite(project: Project, serve: Serve) -> None:
    page = "<title>a page</title>"
    obliging = serve(
        {"/robots.txt": "User-agent: *\nDisallow: /private\n", "/a": page, "/private": page}
    )
    failing = serve({"/robots.txt": serve.Answer(status=503), "/a": page})
    project.crawl(failing, "/a")
    assert "/a" in failing.paths  # what it is about: Scrapy takes an error for permission
    failing.seen.clear()
    project.add_the_line()
    project.crawl(obliging, "/private", "/a")
    assert obliging.paths == ["/robots.txt", "/a"]
    project.crawl(failing, "/a")
    assert set(failing.paths) == {"/robots.txt"}
