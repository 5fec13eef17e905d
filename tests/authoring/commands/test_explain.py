"""`comity explain`, called as the program calls it."""

from __future__ import annotations

import json
import socket
from argparse import ArgumentParser
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from comity.authoring.commands import explain
from comity.authoring.explaining import explain as explain_source
from comity.authoring.honouring import lines_of
from comity.authoring.sites import load
from comity.policies import Agent
from comity.policies.vocabulary.known_crawlers import training_crawlers

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = (
    "User-agent: *\nDisallow: /private\n\nUser-agent: GPTBot\nDisallow: /\n\n"
    "User-agent: bingbot\nDisallow: /private\n"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "robots.txt").write_text(ROBOTS, "utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


def run(*arguments: str) -> int:
    parser = ArgumentParser(prog="comity explain")
    explain.add_options(parser)
    return explain.run(parser.parse_args(arguments))


@pytest.mark.usefixtures("site")
def test_people_read_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("site") == 0
    shown = capsys.readouterr()
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert (
        "access allow Everybody else may fetch everything with one exception:"
        " `Disallow: /private` (site/robots.txt:2)." in lines
    )
    group = lines.index("GPTBot")
    assert lines[group + 1 : group + 3] == [
        "about answer sentence",
        "access deny GPTBot may fetch nothing (site/robots.txt:5).",
    ]
    assert "site/robots.txt read" in lines
    assert shown.err == ""


def test_a_terminal_shows_all_within_its_width(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file or pipe has no width, so each sentence is one line there."""
    names = [crawler.token for crawler in training_crawlers()]
    agents = "".join(f"User-agent: {name}\n" for name in names)
    (site / "robots.txt").write_text(f"{agents}Disallow: /\n\nUser-agent: *\nDisallow: /x\n")
    assert run("site", "--readers") == 0
    lines = capsys.readouterr().out.splitlines()
    assert ", ".join(names) in lines
    rows = [" ".join(line.split()) for line in lines]
    assert "access deny These crawlers may fetch nothing (site/robots.txt:24)." in rows
    assert any(line.endswith("; mine pages for text and data.") for line in lines)

    shown = StringIO()
    explanation = explain_source(load("site"), Agent("x"))
    explain.show(explanation, Console(file=shown, width=80), lines_of(explanation))
    narrow = shown.getvalue()
    assert max(map(len, narrow.splitlines())) <= 80
    assert all(name in " ".join(narrow.split()) for name in names)


@pytest.mark.usefixtures("site")
def test_markdown_has_a_section_for_each_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("site", "--format", "markdown") == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("#")] == [
        "# The meaning of the files of https://example.com",
        "## Everybody else",
        "## bingbot",
        "## GPTBot",
        "## Files",
    ]
    assert "- GPTBot may fetch nothing (site/robots.txt:5)." in shown.splitlines()


def test_markdown_has_no_markup_of_the_files(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "robots.txt").write_text("User-agent: *\nDisallow: /`<b>[a](b)\x1b[0m\u202e\n", "utf-8")
    assert run("site", "--format", "markdown") == 0
    shown = capsys.readouterr().out
    assert r"\<b\>\[a\]" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.usefixtures("site")
def test_json_has_the_lines_that_decide(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            "site",
            "--format",
            "json",
            "--origin",
            "https://site.example",
            "--agent",
            "GPTBot",
            "--url",
            "/private",
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["origin"] == "https://site.example"
    assert told["files"] == [{"file": "site/robots.txt", "outcome": "read"}]
    assert told["samples"] == ["https://site.example/private"]
    everybody, gptbot = told["groups"]
    assert (everybody["agents"], gptbot["agents"]) == ([], ["GPTBot"])
    access = everybody["answers"][0]
    assert (access["about"], access["verdict"]) == ("access", "allow")
    [exception] = access["exceptions"]
    assert exception["verdict"] == "deny"
    assert exception["urls"] == ["https://site.example/private"]
    assert exception["decided_by"] == [
        {
            "file": "site/robots.txt",
            "line": 2,
            "part": "body",
            "text": "Disallow: /private",
            "rule": "robots.disallow",
            "spec": "RFC 9309 section-2.2.2",
        }
    ]
    assert gptbot["answers"][0]["decided_by"][0]["line"] == 5


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nowhere"],
            "comity explain: `nowhere` is not a folder or a URL: write https:// before a host",
        ),
        (
            ["site", "--url", "https://other.example/"],
            "comity explain: `https://other.example/` does not belong to https://example.com",
        ),
        (
            ["https://example.com/", "--origin", "https://example.org"],
            "comity explain: a URL has its own origin",
        ),
        (["site", "--origin", "example.org"], "is not an http or https URL"),
    ],
)
def test_wrong_usage_is_told_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert len(shown.err.splitlines()) == 1
    assert shown.out == ""


def test_a_folder_with_nothing_in_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(tmp_path)) == 2
    assert f"no policy file and no page of {tmp_path} could be fetched" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no server listens at this port
        origin = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert run(origin) == 2
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{origin}/robots.txt: cannot be fetched: ")
    assert last == f"comity explain: no policy file and no page of {origin} could be fetched"


def test_a_site_is_explained_with_its_page(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    page = serve.Answer(
        "<p>page</p>", content_type="text/html", headers={"X-Robots-Tag": "noarchive"}
    )
    server = serve({"/robots.txt": ROBOTS, "/page": page})
    assert run(server.url("/page"), "--format", "json", "--agent", "bingbot") == 0
    assert server.paths[0] == "/robots.txt"
    assert server.paths.count("/page") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["origin"] == server.origin
    assert told["samples"] == [server.url("/"), server.url("/private"), server.url("/page")]
    assert told["as_everybody"] == ["bingbot"] or told["groups"][1]["agents"] == ["bingbot"]
    [archive] = [answer for answer in told["groups"][0]["answers"] if answer["about"] == "archive"]
    [exception] = archive["exceptions"]
    assert (exception["verdict"], exception["urls"]) == ("deny", [server.url("/page")])
    assert exception["decided_by"][0]["file"] == server.url("/page")


def test_policies_that_cannot_be_had_are_explained(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve({"/robots.txt": serve.Answer("", status=503)})
    assert run(server.origin, "--format", "markdown") == 0
    shown = capsys.readouterr().out
    assert "- Nobody may fetch anything, as " in shown
    assert "cannot be fetched: HTTP status 503" in shown
    assert "was not fetched" in shown
    assert server.paths == ["/robots.txt"]


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_people_see_the_readers_of_each_line(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert run("site", "--format", form) == 0
    title = "Crawlers that would obey each line, as their operators say"
    assert title not in capsys.readouterr().out
    assert run("site", "--readers", "--format", form) == 0
    shown = capsys.readouterr().out
    assert title in shown
    assert "`Disallow: /` (site/robots.txt:5) for GPTBot" in shown
    assert "GPTBot honours `Disallow`, as documented." in shown


@pytest.mark.usefixtures("site")
def test_json_has_the_statements_about_the_readers_of_each_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("site", "--readers", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["readers"]
    [line] = [one for one in found if one["agents"] == ["GPTBot"]]
    assert line["line"]["line"] == 5
    [directive] = line["directives"]
    assert (directive["format"], directive["directive"], directive["silent"]) == (
        "robots",
        "Disallow",
        [],
    )
    [statement] = directive["statements"]
    assert statement["who"] == "OpenAI"
    assert statement["answer"] == "honours"
    assert statement["source"].startswith("https://")
    assert statement["date"] == "2026-11-28"
