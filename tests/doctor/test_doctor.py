"""`comity doctor`: the extras, the origins of settings, the checks, and their remedies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from comity.doctor import extras
from comity.doctor.extras import installed_extras
from comity.doctor.origins import OF_SCRAPY, origins
from comity.gate.options import DEFAULTS
from tests.redis_server import Server, free_port
from tests.selection import one_in

COMITY = [sys.executable, "-c", "import sys; from comity.cli import main; sys.exit(main())"]
ADDONS = 'ADDONS = {"comity.crawler.addon.Addon": 100}\n'
SECRET = "se/cr@et"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with a store in this folder."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "PYTHONPATH": str(folder)}
    environment.pop("SCRAPY_SETTINGS_MODULE", None)
    return subprocess.run(
        [*COMITY, "doctor", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def found(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return what `comity doctor --json` prints. Check its exit status."""
    done = run(folder, "--json", *arguments)
    assert done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if answer["ok"] else 1)
    assert answer["ok"] == all(check["ok"] for check in answer["checks"])
    return answer


def checks(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in answer["checks"]}


def origin(answer: dict[str, Any], name: str) -> tuple[str, str]:
    [setting] = [each for each in answer["settings"] if each["name"] == name]
    return setting["value"], setting["origin"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = quotes\n", "utf-8")
    (tmp_path / "quotes.py").write_text(ADDONS, "utf-8")
    return tmp_path


def test_without_a_project_the_ready_crawler_is_checked(tmp_path: Path) -> None:
    answer = found(tmp_path)
    assert answer["ok"]
    assert answer["project"] == ""
    assert origin(answer, "ADDONS")[1] == "comity.crawler.settings"
    assert [*checks(answer)] == ["packages", "add-on", "settings", "store"]
    assert "the first crawl makes it" in checks(answer)["store"]["text"]
    assert not (tmp_path / "data").exists()
    assert answer["obeys"]["agent"] == "comitybot"
    assert "robots.txt" in answer["obeys"]["formats"]
    assert any("COMITY_AGENT is the default" in warning for warning in answer["warnings"])
    assert answer["versions"]["comity"] == metadata.version("comity")


def test_the_output_for_people_has_the_same_facts(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        f"comity {metadata.version('comity')}",
        "no project, so comity.crawler.settings",
        "COMITY_PROGRESS",
        "more have their defaults: --all lists them",
        "warning: COMITY_AGENT is the default",
        "crawls obey the policies of sites",
    ):
        assert text in done.stdout
    assert "COMITY_METRICS" not in done.stdout
    assert "COMITY_METRICS" in run(tmp_path, "--all").stdout


def test_the_origin_of_each_setting_is_shown(project: Path) -> None:
    with (project / "quotes.py").open("a", encoding="utf-8") as file:
        file.write('COMITY_AGENT = "examplebot"\nCOMITY_USES = ["train"]\nJOBDIR = "jobs"\n')
    answer = found(project, "-s", "COMITY_MIN_DELAY=3", "-s", "COMITY_DEFAULTS=train:deny")
    assert answer["project"] == "quotes"
    assert origin(answer, "COMITY_AGENT") == ("examplebot", "quotes")
    assert origin(answer, "JOBDIR") == ("jobs", "quotes")
    assert origin(answer, "COMITY_MIN_DELAY") == ("3", "command line")
    assert origin(answer, "COMITY_MAX_DELAY") == ("300", "default")
    assert origin(answer, "SCHEDULER") == (
        "comity.crawler.frontier.scheduler.Scheduler",
        "add-on",
    )
    assert {each["name"] for each in answer["settings"]} == {*DEFAULTS, *OF_SCRAPY}
    assert (
        answer["obeys"]
        | {
            "agent": "examplebot",
            "uses": ["train"],
            "defaults": {"train": "deny"},
            "least delay": 3.0,
        }
        == answer["obeys"]
    )
    assert not (project / "jobs").exists()


def test_a_setting_of_a_profile_has_its_name(tmp_path: Path) -> None:
    answer = found(tmp_path, "-s", "COMITY_PROFILE=search", "-s", "COMITY_PURPOSES=research")
    assert origin(answer, "COMITY_USES")[1] == "COMITY_PROFILE"
    assert origin(answer, "COMITY_PURPOSES") == ("research", "command line")
    assert origin(answer, "COMITY_MIN_DELAY")[1] == "default"
    assert answer["obeys"]["purposes"] == ["research"]
    assert answer["obeys"]["uses"]


def test_every_setting_of_scrapy_that_the_docs_name_is_known() -> None:
    known = {each.name for each in origins(Settings())}
    assert {"USER_AGENT", "DOWNLOAD_SLOTS", "ROBOTSTXT_OBEY", "CONCURRENT_ITEMS"} <= known


def test_a_project_without_the_addon_is_wrong(project: Path) -> None:
    (project / "quotes.py").write_text("", "utf-8")
    answer = found(project)
    assert not answer["ok"]
    assert checks(answer)["add-on"]["remedy"] == (
        'write into quotes: ADDONS = {"comity.crawler.addon.Addon": 100}'
    )


@pytest.mark.parametrize(
    ("assignment", "text"),
    one_in(
        2,
        [
            ("COMITY_MIN_DELAY=x", "COMITY_MIN_DELAY `x` is not a number of seconds"),
            ("COMITY_PROFILE=serch", "COMITY_PROFILE `serch` is not a profile"),
            (
                "COMITY_REPORT=nowhere/report.html",
                "COMITY_REPORT `nowhere/report.html`: there is no",
            ),
            ('ADDONS={"no.such.Addon": 1, "comity.crawler.addon.Addon": 2}', "ADDONS: Module"),
        ],
    ),
)
def test_a_setting_with_which_no_crawl_starts_is_wrong(
    assignment: str, text: str, tmp_path: Path
) -> None:
    answer = found(tmp_path, "-s", assignment)
    assert not answer["ok"]
    assert checks(answer)["settings"]["text"].startswith(text)


def test_an_unusable_store_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("text", "utf-8")
    answer = found(tmp_path, "-s", "COMITY_STORE=store")
    assert "COMITY_STORE" in checks(answer)["store"]["text"]
    assert not answer["ok"]
    answer = found(tmp_path, "-s", "COMITY_STORE=store/below")
    assert not checks(answer)["store"]["ok"]


def test_a_store_that_exists_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "comity"
    folder.mkdir(parents=True)
    (folder / "policies.sqlite").touch()
    assert "can be read and written" in checks(found(tmp_path))["store"]["text"]


def test_a_state_that_does_not_answer_is_wrong_and_no_password_is_shown(tmp_path: Path) -> None:
    url = f"redis://me:{'se%2Fcr%40et'}@127.0.0.1:{free_port()}/0"
    answer = found(tmp_path, "-s", f"COMITY_STATE={url}")
    assert "Connection refused" in checks(answer)["state"]["text"]
    assert "store" not in checks(answer)
    assert "se%2F" not in json.dumps(answer)


def test_a_state_that_answers_is_not_changed(tmp_path: Path) -> None:
    server = Server(tmp_path / "redis")
    server.start()
    try:
        answer = found(tmp_path, "-s", f"COMITY_STATE={server.url}")
        assert checks(answer)["state"]["ok"]
        assert server.client().keys() == []
    finally:
        server.stop()


@pytest.mark.parametrize(
    "assignment",
    one_in(
        2,
        [
            f"COMITY_STATE=redis://me:{SECRET}@127.0.0.1:1/0",
            f"COMITY_PROXY=http://me:{SECRET}@127.0.0.1:1",
            'FEEDS={"s3://key:' + SECRET + '@bucket/a.csv": {"format": "csv"}}',
            'COMITY_SESSIONS={"example.com": {"token": "' + SECRET + '"}}',
        ],
    ),
    ids=lambda assignment: assignment.partition("=")[0],
)
def test_no_secret_is_shown(assignment: str, tmp_path: Path) -> None:
    for arguments in (["--json"], ["--all"]):
        done = run(tmp_path, *arguments, "-s", assignment)
        assert SECRET not in done.stdout + done.stderr
        assert assignment.partition("=")[0] in done.stdout


@pytest.mark.slow
def test_a_browser_that_does_not_start_is_wrong_and_one_that_starts_is_named(
    project: Path,
) -> None:
    chromium = shutil.which("chromium")
    assert chromium, "Chromium is missing: apt-get install chromium"
    text = (
        f"{ADDONS}DOWNLOAD_HANDLERS = {{'https':"
        " 'scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler'}\n"
        "PLAYWRIGHT_LAUNCH_OPTIONS = {'executable_path': %r, 'args': ['--no-sandbox']}\n"
    )
    (project / "quotes.py").write_text(text % "/nowhere", "utf-8")
    answer = found(project)
    assert "Chromium does not start" in checks(answer)["browser"]["text"]
    assert not answer["ok"]
    (project / "quotes.py").write_text(text % chromium, "utf-8")
    answer = found(project)
    assert checks(answer)["browser"]["text"].endswith("starts")
    assert answer["ok"]


def test_an_argument_is_wrong_usage(tmp_path: Path) -> None:
    done = run(tmp_path, "store")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "comity doctor: unrecognized arguments: store\n"


# The extras


METADATA = """\
Metadata-Version: 2.4
Name: comity
Version: 9
Requires-Dist: scrapy>=2
Requires-Dist: nosuch-always
Requires-Dist: nosuch-old; python_version < "3"
Requires-Dist: pytest>=99999; extra == "tooold"
Requires-Dist: nosuch-one>=1; extra == "missing"
Requires-Dist: scrapy>=2; extra == "there"
Requires-Dist: comity-of-test[there]; extra == "all"
Provides-Extra: tooold
Provides-Extra: missing
Provides-Extra: there
Provides-Extra: all
"""


def test_extras_are_there_or_their_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "comity_of_test-9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA.replace("Name: comity", "Name: comity-of-test"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extras, "PACKAGE", "comity-of-test")
    rows = {extra.name: (extra.missing, extra.remedy) for extra in installed_extras()}
    version = metadata.version("pytest")
    assert rows == {
        "": (("nosuch-always",), "pip install comity"),
        "missing": (("nosuch-one",), 'pip install "comity[missing]"'),
        "there": ((), 'pip install "comity[there]"'),
        "tooold": (
            (f"pytest>=99999 (version {version} is installed)",),
            'pip install "comity[tooold]"',
        ),
    }


def test_the_extras_for_users_are_those_of_the_package() -> None:
    names = {extra.name for extra in installed_extras()} - {""}
    assert {"aiohttp", "parquet", "playwright", "redis", "report", "warc"} <= names
    assert "all" not in names
