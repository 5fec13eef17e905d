"""docs/deployment.md: its scripts, scrapyd, and its files for Docker, cron and systemd."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from comity.cli import main
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

PAGE = (Path(__file__).parent.parent / "docs" / "deployment.md").read_text("utf-8")
SCRIPTS = ("crawl.py", "crawl_process.py", "crawl_runner.py", "crawl_reactor.py")
ADDRESS = "https://example.com"


def block(language: str, name: str = "") -> str:
    """Return the block in a language. `name`: the path in its first line, a comment."""
    head = f"# {name}\n" if name else ""
    [text] = re.findall(
        rf"^```{language}\n({re.escape(head)}.*?)^```", PAGE, re.DOTALL | re.MULTILINE
    )
    return str(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert main(["startproject", "shop", str(tmp_path / "shop")]) == 0
    return tmp_path / "shop"


@pytest.fixture
def site(serve: Serve) -> Loopback:
    return serve(
        {
            "/robots.txt": "User-agent: shop\nDisallow: /private\n",
            "/": '<title>Start</title><a href="/private"></a>',
            "/private": "",
        }
    )


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", one_in(2, SCRIPTS))
def test_a_script_crawls(project: Path, site: Loopback, name: str) -> None:
    (project / name).write_text(block("python", name).replace(ADDRESS, site.url()), "utf-8")
    done = run(project, name)
    assert done.returncode == 0, done.stderr
    assert site.paths == ["/robots.txt", "/"]
    assert "Crawl finished" in done.stdout + done.stderr


def test_every_script_of_the_page_is_run() -> None:
    assert re.findall(r"^```python\n# (\w+\.py)$", PAGE, re.MULTILINE) == [*SCRIPTS]


@pytest.mark.parametrize("name", SCRIPTS[:2])
def test_a_script_ends_with_status_1_if_a_setting_of_the_spider_is_invalid(
    project: Path, site: Loopback, name: str
) -> None:
    spider = project / "shop/spiders/pages.py"
    text = spider.read_text("utf-8")
    wrong = '    name = "pages"\n    custom_settings = {"COMITY_PROFILE": "x"}\n'
    spider.write_text(text.replace('    name = "pages"\n', wrong), "utf-8")
    (project / name).write_text(block("python", name).replace(ADDRESS, site.url()), "utf-8")
    done = run(project, name)
    assert done.returncode == 1
    assert "comity: COMITY_PROFILE `x` is not a profile" in done.stderr
    assert site.seen == []


@contextmanager
def scrapyd(folder: Path) -> Iterator[tuple[str, Iterator[str]]]:
    """Run scrapyd in a folder. Yield its address, and the lines of its log to come."""
    with socket.socket() as held:  # so no other program gets the port before scrapyd
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        settings = f"[scrapyd]\nhttp_port = {port}\npoll_interval = 0.1\nitems_dir = items\n"
        (folder / "scrapyd.conf").write_text(settings, "utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapyd"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout
            assert any(f"Site starting on {port}" in line for line in process.stdout)
            yield f"http://127.0.0.1:{port}", iter(process.stdout)
        finally:
            process.terminate()
            process.communicate()


def answer_of(address: str, **fields: str) -> dict[str, Any]:
    with urlopen(address, urlencode(fields).encode() if fields else None) as answer:
        return dict(json.load(answer))


@pytest.mark.slow
def test_scrapyd_runs_the_spider(project: Path, site: Loopback) -> None:
    (project / "scrapy.cfg").write_text(block("ini", "scrapy.cfg"), "utf-8")
    with scrapyd(project) as (address, log):
        listed = answer_of(f"{address}/listspiders.json?project=shop")
        assert listed["spiders"] == ["pages"]
        job = answer_of(f"{address}/schedule.json", project="shop", spider="pages", url=site.url())
        assert job["status"] == "ok"
        ends = ("Process finished", "Process died")
        assert ends[0] in next(line for line in log if any(end in line for end in ends))
    assert site.paths == ["/robots.txt", "/"]
    [items] = (project / "items/shop/pages").iterdir()
    [item] = items.read_text("utf-8").splitlines()
    assert json.loads(item)["permissions"]["agent"] == "shop"


@pytest.mark.slow
def test_hadolint_has_no_complaint_about_the_dockerfile() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint, "hadolint is in the dependency group test-all"
    done = subprocess.run(
        [hadolint, "--no-color", "-"],
        input=block("dockerfile"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_dockerfile_runs_the_crawl_as_a_user(project: Path, site: Loopback) -> None:
    lines = block("dockerfile").splitlines()
    assert len(lines) <= 16
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["1000"]
    commands = {
        name: json.loads(text)
        for name, _, text in (line.partition(" ") for line in lines)
        if name in ("ENTRYPOINT", "CMD")
    }
    command = [*commands["ENTRYPOINT"], *commands["CMD"]]
    done = run(project, "-m", *_local(command, project, site))
    assert done.returncode == 0, done.stderr
    assert site.paths == ["/robots.txt", "/"]
    assert (project / "items.jsonl").exists()


def _local(command: list[str], project: Path, site: Loopback) -> list[str]:
    """Return the command for the site of a test, with its output in the folder of the project."""
    places = {"/data": str(project), "/var/lib/shop": str(project), ADDRESS: site.url()}
    for place, own in places.items():
        command = [argument.replace(place, own) for argument in command]
    return command


def test_the_command_of_cron_runs(project: Path, site: Loopback) -> None:
    minute, hour, _, _, weekday, line = block("cron").strip().split(maxsplit=5)
    assert (int(minute) < 60, int(hour) < 24, int(weekday) < 7) == (True, True, True)
    assert "%" not in line
    change, crawl = line.split(" && ")
    assert change == "cd /srv/shop"
    locked = shlex.split(crawl.partition(" 2>>")[0])
    assert locked[:4] == ["flock", "-n", "crawl.lock", ".venv/bin/comity"]
    done = run(project, "-m", "comity", *_local(locked[4:], project, site))
    assert done.returncode == 0, done.stderr
    assert site.paths == ["/robots.txt", "/"]


def test_the_service_runs_the_crawl(project: Path, site: Loopback, tmp_path: Path) -> None:
    names = ("shop.service", "shop.timer")
    texts = {name: block("ini", f"/etc/systemd/system/{name}") for name in names}
    service = ConfigParser(interpolation=None)
    service.optionxform = str  # type: ignore[method-assign,assignment]
    service.read_string(texts["shop.service"])
    program, *arguments = shlex.split(service["Service"]["ExecStart"])
    assert program == "/srv/shop/.venv/bin/comity"
    done = run(project, "-m", "comity", *_local(arguments, project, site))
    assert done.returncode == 0, done.stderr
    assert site.paths == ["/robots.txt", "/"]
    if verifier := shutil.which("systemd-analyze"):
        for name, text in texts.items():
            own = text.replace(program, str(Path(sys.executable).parent / "comity"))
            (tmp_path / name).write_text(own, "utf-8")
        verified = subprocess.run(
            [verifier, "verify", *(str(tmp_path / name) for name in names)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (verified.returncode, verified.stderr) == (0, "")
