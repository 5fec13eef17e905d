"""`comity` has every command, in and outside of Scrapy projects; `scrapy` runs the same code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scrapy.utils.misc import load_object

from comity.authoring.scrapy_command import LintCommand
from comity.cli import main, usage
from comity.commands import COMMANDS
from comity.completion import full_parser, subparsers
from comity.crawler.commands.crawl import READY
from tests import generated
from tests.redis_server import free_port
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

ROOT = Path(__file__).parent.parent
COMITY = ["-c", "import sys; from comity.cli import main; sys.exit(main())"]
SCRAPY = ["-m", "scrapy"]
SPIDER = """
import scrapy

class Quotes(scrapy.Spider):
    name = "quotes"

    async def start(self):
        yield scrapy.Request(self.origin + "/page")
        yield scrapy.Request(self.origin + "/private")

    def parse(self, response):
        yield {"url": response.url}
"""
ROBOTS = "User-agent: *\nDisallow: /private\n"
TAG = {"uses": {}, "fetched_at": "2026-01-01T00:00:00Z"}
ITEM = json.dumps({"url": "https://example.com/", "permissions": TAG})


def run(
    program: list[str], *arguments: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with a store in this folder."""
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env=own_environment(folder) | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def own_environment(folder: Path) -> dict[str, str]:
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    environment.pop("SCRAPY_SETTINGS_MODULE", None)
    return environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder outside of projects, with a site, items and a spider."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "robots.txt").write_text(ROBOTS, "utf-8")
    (tmp_path / "items.jsonl").write_text(ITEM + "\n", "utf-8")
    (tmp_path / "quotes.py").write_text(SPIDER, "utf-8")
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = project\n", "utf-8")
    settings = 'SPIDER_MODULES = ["quotes"]\nADDONS = {"comity.crawler.addon.Addon": 100}\n'
    (folder / "project.py").write_text(f"{settings}COMITY_MIN_DELAY = 0\n", "utf-8")
    return folder


# The list of commands


def test_the_help_lists_each_command_in_its_group(folder: Path) -> None:
    done = run(COMITY, "--help", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == usage() + "\n"
    groups = dict.fromkeys(command.group for command in COMMANDS.values())
    assert re.findall(r"(?m)^(\S.*):$", done.stdout) == [*groups]
    for name, command in COMMANDS.items():
        assert re.search(rf"(?m)^  {name} +{re.escape(command.summary)}$", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr() == (usage() + "\n", "")


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("polcy", "there is no command `polcy`: did you mean `policy`?"),
        ("crwal", "there is no command `crwal`: did you mean `crawl`?"),
        ("xyz", "there is no command `xyz`: `comity --help` lists the commands"),
        ("--versoin", "there is no option `--versoin`: `comity --help` lists the commands"),
        ("\x1b[31m", "there is no command"),
    ],
)
def test_an_unknown_command_is_one_line(
    word: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == 2
    out, complaint = capsys.readouterr()
    assert out == ""
    assert complaint.startswith(f"comity: {remedy}")
    assert complaint.count("\n") == 1
    assert "\x1b" not in complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    one_in(
        2,
        [
            (["crawl"], "comity crawl: write the name of one spider"),
            (["crawl", "site", "urls"], "comity crawl: write the name of one spider"),
            (["crawl", "site", "--depht"], "comity crawl: there is no option `--depht`"),
            (["crawl", "quotes"], "comity crawl: `quotes` needs a project, and there is none here"),
            (["crawl", "site", "-a", "x"], "comity crawl: Invalid -a value, use -a NAME=VALUE"),
            (["runspider"], "comity runspider: write the name of one Python file"),
            (["policy"], "comity policy: write one URL: `comity policy https://example.com/`"),
            (["policy", "--kind", "x"], "comity policy: argument --kind: invalid choice: 'x'"),
            (["dataset"], "comity dataset: the following arguments are required: tag|export"),
            (["dataset", "exprt"], "comity dataset: argument tag|export"),
            (["dataset", "export", "x"], "comity dataset export: the following arguments are"),
            (["report"], "comity report: report takes a saved report"),
            (["frontier"], "comity frontier: frontier takes the name of one crawl"),
            (
                ["frontier", "x", "--keep-seen"],
                "comity frontier: --keep-seen and --since need --again",
            ),
            (["frontier", "x", "--since", "7d"], "comity frontier: --keep-seen and --since need"),
            (
                ["frontier", "x", "--again", "--since", "monday"],
                "comity frontier: argument --since: `monday` is not a moment: write 2026-11-20, ",
            ),
            (
                ["frontier", "x", "--again", "--keep-seen", "--since", "7d"],
                "comity frontier: argument --since: not allowed with argument --keep-seen",
            ),
            (["demo", "x"], "comity demo: demo takes no argument: remove `x`"),
            (["lint", "--fixx"], "comity lint: unrecognized arguments: --fixx"),
            (
                ["new", "zebra"],
                "comity new: no wish is known by the words `zebra`: `comity new` lists",
            ),
            (["check", "nosuch.toml"], "comity check: nosuch.toml cannot be read"),
            (["explain"], "comity explain: the following arguments are required"),
            (["rule", "nosuch"], "comity rule: `nosuch` is not a rule"),
            (["languageserver", "--tcp", "x"], "comity languageserver: argument --tcp"),
            (["workbench", "--port", "x"], "comity workbench: argument --port"),
            (["startproject"], "comity startproject: the following arguments are required: NAME"),
            (["profile", "serch"], "comity profile: PROFILE `serch` is not a profile"),
            (["key"], "comity key: the following arguments are required: new|directory"),
            (["completion"], "comity completion: the following arguments are required: shell"),
            (["doctor", "-s", "x"], "comity doctor: Invalid -s value, use -s NAME=VALUE"),
        ],
    ),
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments_are_one_line(arguments: list[str], complaint: str, folder: Path) -> None:
    done = run(COMITY, *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(complaint)
    assert done.stderr.count("\n") == 1


def test_wrong_arguments_are_tried_for_every_command() -> None:
    [marker] = [
        mark
        for mark in test_wrong_arguments_are_one_line.pytestmark  # type: ignore[attr-defined]
        if mark.name == "parametrize"
    ]
    assert {case.values[0][0] for case in marker.args[1]} == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize("name", COMMANDS)
def test_python_m_comity_runs_commands(name: str, folder: Path) -> None:
    done = run(["-m", "comity"], name, "--help", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"comity {name}" in done.stdout


# The same code as the commands of scrapy


def scrapys() -> list[str]:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    lines = setup["options.entry_points"]["scrapy.commands"].strip().split("\n")
    return [line.partition(" ")[0] for line in lines]


def test_scrapy_has_each_command_that_scrapy_runs() -> None:
    by_scrapy = {name for name, command in COMMANDS.items() if command.by_scrapy}
    assert set(scrapys()) == {*by_scrapy, "lint"}


def test_each_command_that_scrapy_lists_becomes_that_of_the_table() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    for line in setup["options.entry_points"]["scrapy.commands"].strip().split("\n"):
        name, _, path = line.partition(" = ")
        command = load_object(path.replace(":", "."))()
        if name not in generated.OF_SCRAPY:
            assert command.short_desc() == COMMANDS[name].summary
            command.syntax()  # Scrapy's first call
        target = COMMANDS[name].target.replace(":", ".")
        assert type(command) is (LintCommand if name == "lint" else load_object(target))


@pytest.mark.parametrize("name", one_in(3, scrapys()))
def test_the_help_is_the_same(name: str, folder: Path) -> None:
    ours, theirs = (
        run(program, name, "--help", folder=folder, COLUMNS="100") for program in (COMITY, SCRAPY)
    )
    assert (ours.returncode, theirs.returncode) == (0, 0)
    options = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", ours.stdout))
    assert options == set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", theirs.stdout))
    assert "--help" in options
    assert f"comity {name}" in ours.stdout
    assert f"comity {name}" not in theirs.stdout
    if name != "lint":  # Scrapy lays its help out
        assert ours.stdout == theirs.stdout.replace(f"scrapy {name}", f"comity {name}")


MOMENT = r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
PORT = "{port}"  # a port at which nothing listens
SAME = [
    (["policy", "--offline", "site", "https://example.com/"], 0),
    (["policy", "--offline", "site", "https://example.com/private"], 1),
    (["policy", "--offline", "site", "--json", "https://example.com/private"], 1),
    (["policy", "--offline", "nowhere", "https://example.com/"], 2),
    (["policy"], 2),
    (["dataset", "stats", "items.jsonl"], 0),
    (["dataset", "stats", "--json", "items.jsonl"], 0),
    (["dataset", "stats", "nowhere.jsonl"], 2),
    (["dataset"], 2),
    (["report", "--json", "items.jsonl"], 0),
    (["report", "-o", "items.html", "items.jsonl"], 0),
    (["report", "nowhere.jsonl"], 2),
    (["frontier", "quotes"], 2),
    (["frontier", "quotes", "-s", f"COMITY_STATE=redis://127.0.0.1:{PORT}"], 1),
    (["lint", "site"], 0),
    (["lint", "nowhere"], 2),
    (["doctor"], 0),
]
FIRST = {arguments[0]: arguments for arguments, _ in reversed(SAME)}  # of each command


@pytest.mark.parametrize(
    ("arguments", "status"),
    one_in(2, SAME),
    ids=[" ".join(arguments) for arguments, _ in SAME],
)
@pytest.mark.parametrize("place", one_in(2, ["folder", "project"]))
def test_output_and_status_are_the_same(
    place: str, arguments: list[str], status: int, request: pytest.FixtureRequest
) -> None:
    if arguments is FIRST[arguments[0]]:
        request.getfixturevalue("new_processes_in_full")
    folder: Path = request.getfixturevalue(place)
    port = str(free_port())
    words = [word.replace(PORT, port) for word in arguments]
    ours, theirs = (run(program, *words, folder=folder) for program in (COMITY, SCRAPY))
    assert ours.returncode == theirs.returncode == status, ours.stderr
    outputs = [re.sub(MOMENT, "", each.stdout) for each in (ours, theirs)]
    assert outputs[0] == outputs[1]
    name = arguments[0]
    assert ours.stderr == theirs.stderr.replace(f"scrapy {name}", f"comity {name}")


# Crawls


@pytest.fixture
def site(serve: Serve) -> Loopback:
    pages = {f"/{name}": f"<title>{name}</title>" for name in ("page", "private")}
    home = "".join(f'<a href="{path}">{path}</a>' for path in pages)
    return serve({"/robots.txt": ROBOTS, "/": home, **pages})


def crawled(folder: Path, *arguments: str) -> list[str]:
    """Run a crawl by `comity`, and return the paths of its items."""
    done = run(COMITY, *arguments, "-s", "COMITY_MIN_DELAY=0", "-O", "out.jsonl", folder=folder)
    assert done.returncode == 0, done.stderr
    lines = (folder / "out.jsonl").read_text("utf-8").splitlines()
    return ["/" + json.loads(line)["url"].split("/", 3)[3] for line in lines]


@pytest.mark.usefixtures("new_processes_in_full")
def test_a_ready_spider_runs_outside_of_a_project_and_obeys(folder: Path, site: Loopback) -> None:
    url = f"url={site.url()}"
    assert sorted(crawled(folder, "crawl", "site", "-a", url)) == ["/", "/page"]
    assert "/private" not in site.paths


def test_a_spider_in_a_file_runs_outside_of_a_project_and_obeys(
    folder: Path, site: Loopback
) -> None:
    origin = f"origin={site.origin}"
    assert crawled(folder, "runspider", "quotes.py", "-a", origin) == ["/page"]
    assert site.paths == ["/robots.txt", "/page"]


def test_scrapy_runspider_is_as_without_comity(folder: Path, site: Loopback) -> None:
    done = run(SCRAPY, "runspider", "quotes.py", "-a", f"origin={site.origin}", folder=folder)
    assert done.returncode == 0
    assert sorted(site.paths) == ["/page", "/private"]


@pytest.mark.usefixtures("new_processes_in_full")
@pytest.mark.parametrize("words", [["crawl", "quotes"], ["runspider", "quotes.py"]], ids=" ".join)
@pytest.mark.parametrize("program", one_in(2, [COMITY, SCRAPY]), ids=["comity", "scrapy"])
def test_a_spider_of_a_project_runs_with_its_settings(
    program: list[str], words: list[str], project: Path, site: Loopback
) -> None:
    done = run(program, *words, "-a", f"origin={site.origin}", "-O", "out.jsonl", folder=project)
    assert done.returncode == 0, done.stderr
    [line] = (project / "out.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["url"] == site.url("/page")
    assert site.paths == ["/robots.txt", "/page"]
    assert "(bot: scrapybot)" in done.stderr  # not that of the ready crawler


def test_a_misspelled_spider_of_a_project_is_one_line(project: Path) -> None:
    done = run(COMITY, "crawl", "qoutes", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    complaint = "comity crawl: this project has no spider `qoutes`: did you mean `quotes`?"
    assert done.stderr.splitlines()[-1] == complaint
    done = run(COMITY, "crawl", "nosuch", folder=project)
    assert done.stderr.endswith("this project has no spider `nosuch`: write one of quotes\n")


def test_a_file_that_does_not_exist_is_one_line(folder: Path) -> None:
    done = run(COMITY, "runspider", "nosuch.py", "--nolog", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "comity runspider: File not found: nosuch.py\n"


@pytest.mark.parametrize("name", ["crawl", "doctor"])
def test_settings_that_do_not_exist_are_one_line(name: str, folder: Path) -> None:
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = nosuch.settings\n", "utf-8")
    done = run(COMITY, name, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    complaint = "comity: there is no module `nosuch.settings` with settings: write its name into"
    assert done.stderr.splitlines()[-1].startswith(complaint)
    assert "Traceback" not in done.stderr


def test_a_module_that_the_settings_lack_is_shown_with_its_place(project: Path) -> None:
    (project / "project.py").write_text("import nosuch\n", "utf-8")
    done = run(COMITY, "crawl", "quotes", folder=project)
    assert done.returncode == 1
    assert "project.py" in done.stderr
    assert "No module named 'nosuch'" in done.stderr


def test_a_ready_spider_in_a_project_is_explained(project: Path) -> None:
    done = run(COMITY, "crawl", READY[0], folder=project)
    assert done.returncode == 2
    assert "SCRAPY_SETTINGS_MODULE=comity.crawler.settings comity crawl site" in done.stderr


def test_the_project_counts_for_other_commands(project: Path) -> None:
    with (project / "project.py").open("a", encoding="utf-8") as file:
        file.write('COMITY_AGENT = "examplebot"\n')
    (project / "site" / "robots.txt").write_text("User-agent: examplebot\nDisallow: /\n", "utf-8")
    url = "https://example.com/"
    assert run(COMITY, "policy", "--offline", "site", url, folder=project).returncode == 1
    (project / "scrapy.cfg").unlink()
    assert run(COMITY, "policy", "--offline", "site", url, folder=project).returncode == 0


# The page


def test_the_page_has_the_options_of_commands_that_scrapy_runs() -> None:
    """Scrapy writes their help, so the page does not copy it."""
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    section = page.partition("## Options of commands that Scrapy runs")[2].partition("\n<!--")[0]
    told = set(re.findall(r"`(--?[A-Za-z][\w-]*)", section))
    parsers = subparsers(full_parser())
    assert told == {
        option
        for name in generated.OF_SCRAPY
        for option in parsers[name]._option_string_actions
        if option not in ("-h", "--help")
    }


def test_the_page_names_the_commands_with_settings() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    paragraph = page.partition("## Options of commands that Scrapy runs")[2].split("\n\n")[1]
    named = set(re.findall("`([a-z]+)`", paragraph))
    assert named == {name for name, command in COMMANDS.items() if command.by_scrapy}
