"""The wheel and the source distribution, and the wheel in a project of another author.

The wheel changes nothing there, until one line makes the project polite."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from configparser import ConfigParser
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.release.distributions import Distributions, build
from tests.release.environments import EXTRAS, Example, examples, extras, programs
from tests.release.run import faults_of_changes
from tests.sources import ROOT, path_of, source_files

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

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
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build(tmp_path_factory.mktemp("distributions"))


@pytest.fixture(scope="module")
def wheel(distributions: Distributions) -> Path:
    return distributions.wheel


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
def test_sources_hold_every_file_of_the_repository(distributions: Distributions) -> None:
    top = f"comity-{distributions.version}/"
    with tarfile.open(distributions.sources) as archive:
        names = {member.name.removeprefix(top) for member in archive if member.isfile()}
        setup = archive.extractfile(f"{top}setup.cfg")
        assert setup is not None
        assert setup.read() == (ROOT / "setup.cfg").read_bytes()  # with its comments
    made = {name for name in names if name.startswith(("PKG-INFO", "comity.egg-info/"))}
    assert names - made == {path.relative_to(ROOT).as_posix() for path in source_files()}


@pytest.mark.slow
def test_programs_that_check_distributions_find_no_fault(distributions: Distributions) -> None:
    assert distributions.faults() == []


@pytest.mark.slow
def test_links_of_the_index_page_are_absolute_and_lead_to_files(
    distributions: Distributions,
) -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    version = distributions.version
    files = f"{setup['metadata']['url']}/blob/v{version}/"
    with zipfile.ZipFile(distributions.wheel) as archive:
        metadata = message_from_bytes(archive.read(f"comity-{version}.dist-info/METADATA"))
    links = re.findall(r"\]\(([^)]*)\)", str(metadata.get_payload()))
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    own = [
        *(link for link in links if link.startswith(files)),
        *(line.partition(", ")[2] for line in metadata.get_all("Project-URL", [])),
    ]
    paths = [link.removeprefix(files).partition("#")[0] for link in own if "/blob/" in link]
    assert "docs/README.md" in paths
    assert [path for path in paths if not path_of(path).exists()] == []


def test_the_address_of_the_repository_is_in_one_place() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    address = setup["metadata"]["url"].encode()
    assert [path.name for path in source_files() if address in path.read_bytes()] == ["setup.cfg"]


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


def test_each_extra_has_an_example_for_the_release() -> None:
    assert {name for names in extras().values() for name in names} - EXTRAS.keys() <= {"all"}
    assert EXTRAS.keys() <= extras().keys()


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ("# Changes\n\n## 1.0.1\n\n- A line.\n\n## Changes since the last list\n", []),
        ("# Changes\n\n## 1.0.1\n\n- A line.\n", []),
        ("# Changes\n\n## 1.0.10\n", ["no section `## 1.0.1`"]),
        ("## 1.0.1\n\n## Changes since the last list\n\n- A line.\n", ["Move them into"]),
    ],
)
def test_a_release_needs_a_list_of_its_changes(changes: str, faults: list[str]) -> None:
    found = list(faults_of_changes(changes, "1.0.1"))
    assert len(found) == len(faults)
    assert all(words in fault for words, fault in zip(faults, found, strict=True))


def test_the_release_finds_the_commands_and_programs_of_the_page() -> None:
    page = (
        "```\n$ one --two\nfirst\nsecond\n$ three\n```\n"
        "```python\nA = 1\n```\ntext\n"
        "```python\nprint(2)\n```\n```\n2\n```\n"
    )
    assert list(examples(page)) == [Example("one --two", "first"), Example("three", "")]
    assert list(programs(page)) == [("print(2)\n", "2\n")]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(list(examples(readme))) > 2
    assert len(list(programs(readme))) > 0
