"""`scrapy report`, as it is called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from comity.report.value import read_report
from comity.report.writing import write
from tests.report.made_reports import crawled, tag
from tests.selection import one_in

# The command as it is found by its entry point, whether the package was installed with it or before it had one.
RUN = """
import sys
sys.modules |= dict.fromkeys(sys.argv.pop(1).split())
from scrapy import cmdline
from comity.crawler.commands.report import ReportCommand

found = cmdline._get_commands_dict
cmdline._get_commands_dict = lambda *arguments: {**found(*arguments), "report": ReportCommand()}
cmdline.execute()
"""


def report(*words: str, folder: Path, missing: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, missing, "report", *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "XDG_DATA_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def _reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    with pytest.MonkeyPatch.context() as patch:
        write(crawled(6, 30, patch=patch), folder / "old.json")
        write(crawled(6, 60, patch=patch), folder / "new.html")
    records = []
    for number in range(4):
        permissions = tag("https://a.example", number)
        for name in ("preserve", "present"):  # tags without all uses are unreadable
            permissions["uses"][name] = permissions["uses"]["crawl"]
        permissions["policies"] = {}
        records.append({"url": "https://a.example/", "permissions": permissions})
    (folder / "items.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


@pytest.fixture
def folder(tmp_path: Path, _reports: Path) -> Path:
    return shutil.copytree(_reports, tmp_path, dirs_exist_ok=True)


def test_items_become_a_page(folder: Path) -> None:
    done = report("items.jsonl", folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("report.html: ")
    page = (folder / "report.html").read_text("utf-8")
    assert read_report(page).counts["items"] == 4
    assert "<h1><bdi>Items of items.jsonl</bdi></h1>" in page


def test_a_page_becomes_data_and_data_a_page(folder: Path) -> None:
    printed = report("--json", "new.html", folder=folder)
    saved = report("new.html", "-o", "new.json", folder=folder, missing="pygal jinja2")
    assert saved.stdout.startswith("new.json: ")
    assert read_report(printed.stdout) == read_report((folder / "new.json").read_text("utf-8"))
    report("new.json", "-o", "again.html", folder=folder)
    assert (folder / "again.html").read_bytes() == (folder / "new.html").read_bytes()


def test_a_difference_is_printed_or_a_page(folder: Path) -> None:
    printed = report("--diff", "old.json", "new.html", folder=folder, missing="pygal jinja2")
    assert printed.stdout.startswith("Totals\n")
    assert "robots.disallow" in printed.stdout
    data = json.loads(report("--diff", "--json", "old.json", "new.html", folder=folder).stdout)
    assert data[0]["title"] == "Totals"
    report("--diff", "old.json", "new.html", "-o", "difference.html", folder=folder)
    assert "<h1>What has changed</h1>" in (folder / "difference.html").read_text("utf-8")
    assert report("--diff", "new.html", "new.html", folder=folder).stdout == "Nothing has changed\n"


def test_a_trend_is_printed_or_a_page(folder: Path) -> None:
    words = ("--trend", "old.json", "new.html")
    printed = report(*words, folder=folder, missing="pygal jinja2")
    assert printed.returncode == 0, printed.stderr
    heading, names, *rows = printed.stdout.splitlines()
    assert (heading, names.split()) == ("Trend", ["figure", "old.json", "new.html"])
    assert "refused" in [row.split()[0] for row in rows]
    data = json.loads(report(*words, "--json", folder=folder).stdout)
    assert [entry["file"] for entry in data["reports"]] == ["old.json", "new.html"]
    assert [value["number"] for value in data["figures"]["sent"]] == [86, 168]
    report(*words, "-o", "trend.html", folder=folder)
    page = (folder / "trend.html").read_text("utf-8")
    assert "<h1>Trend of 2 reports</h1>" in page
    assert page.count('role="img"') == len(data["figures"])


def test_the_columns_of_a_trend_have_different_names(folder: Path) -> None:
    names = []
    for day in ("monday", "tuesday"):
        (folder / day / "out").mkdir(parents=True)
        copy = folder / day / "out" / "report.json"
        copy.write_bytes((folder / "old.json").read_bytes())
        names.append(f"{day}/out/report.json")
    done = report("--trend", *names, folder=folder)
    assert done.stdout.splitlines()[1].split() == ["figure", *names]


def test_a_figure_beyond_a_threshold_fails_the_build(folder: Path) -> None:
    words = ("items.jsonl", "--fail-on", "items<10")
    done = report(*words, "--fail-on", "items>1", "--fail-on", "items>9", folder=folder)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "scrapy report: items<10: items is 4: 6 below the threshold",
        "scrapy report: items>1: items is 4: 3 above the threshold",
    ]
    assert (folder / "report.html").exists()
    assert report("items.jsonl", "--fail-on", "items<4", folder=folder).returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    one_in(
        3,
        [
            ([], "name a file"),
            (["--trend", "old.json"], "--trend takes two saved reports or more"),
            (["--trend", "old.json", "./old.json"], "--trend: ./old.json is there twice"),
            (["--trend", "--diff", "old.json", "new.html"], "--diff and --trend stand alone"),
            (["--diff", "old.json", "new.html", "--fail-on", "items<1"], "leave out the other one"),
            (["items.jsonl", "--fail-on", "few"], "`few` is not a threshold: write NAME>NUMBER"),
            (["items.jsonl", "--fail-on", "sent>1"], "this report has no `sent`. It has: items"),
            (["none.jsonl"], "none.jsonl: there is no such file"),
            (["--diff", "old.json"], "--diff takes two saved reports: OLD NEW"),
            (["--diff", "old.json", "items.jsonl"], "items.jsonl: it is not JSON"),
            (["items.jsonl", "-o", "report.pdf"], "write a name that ends in .html, or in .json"),
            (
                ["items.jsonl", "--workers", "0"],
                "--workers: `0` is not a number of processes: write 1 or more",
            ),
            (["items.jsonl", "--diffs"], "report has no option `--diffs`"),
            (["--diff", "old.json", "none.html"], "none.html: there is no such file"),
            (["--diff", "old.json", "."], ". cannot be read: Is a directory"),
            (["items.jsonl", "-o", "none/report.html"], "cannot be written"),
        ],
    ),
)
def test_wrong_words_say_what_to_write(folder: Path, words: list[str], message: str) -> None:
    done = report(*words, folder=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_pages_without_the_extra_say_how_to_have_it(folder: Path) -> None:
    done = report("items.jsonl", folder=folder, missing="pygal")
    assert 'comity report needs pygal: pip install "comity[report]"' in done.stderr
    assert done.returncode == 2


def test_help(folder: Path) -> None:
    done = report("--help", folder=folder)
    assert done.returncode == 0
    assert "--diff" in done.stdout
