"""`comity check` and `comity explain --as-expectations`, called as the program calls them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from junitparser import Failure, JUnitXml, TestSuite
from sarif_pydantic import Sarif

from comity.cli import main

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = (
    "User-agent: *\nCrawl-delay: 5\nContent-Signal: search=yes, ai-train=no\n"
    "Disallow: /private\nAllow: /private/*.pdf$\n\n"
    "User-agent: GPTBot\nDisallow: /\n"
)
ACAP = (
    "ACAP-crawler: *\nACAP-allow-preserve: /news time-limit=30-days\n"
    "ACAP-allow-present-snippet: /news max-length=50-words\nACAP-disallow-index: /secret\n"
)
CONDITIONS = "scope: /api/\nallowed-methods: GET, HEAD\nallowed-purposes: research\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    site = tmp_path / "site"
    site.mkdir()
    (site / "robots.txt").write_text(ROBOTS, "utf-8")
    return tmp_path


def write_expectations(folder: Path, *sentences: str, **keys: str) -> None:
    lines = [f"{key} = {value}" for key, value in ({"folder": '"site"'} | keys).items()]
    lines += ["expectations = [", *(f"  {json.dumps(sentence)}," for sentence in sentences), "]"]
    (folder / "expectations.toml").write_text("\n".join(lines), "utf-8")


@pytest.mark.parametrize(
    ("files", "holding", "failing", "place"),
    [
        ({}, "GPTBot must not fetch /x", "GPTBot may fetch /x", "site/robots.txt:8: `Disallow: /`"),
        ({}, "everybody else may fetch /", "everybody may fetch /", "site/robots.txt:8"),
        (
            {},
            "everybody must not fetch /private",
            "everybody must not fetch /private/**",
            "site/robots.txt:5: `Allow: /private/*.pdf$`",
        ),
        (
            {},
            "training is refused to ExampleBot on /**",
            "training is permitted to ExampleBot on /",
            "site/robots.txt:3: `Content-Signal: search=yes, ai-train=no`",
        ),
        ({}, "ExampleBot may search /", "ExampleBot must not search /", "site/robots.txt:3"),
        (
            {},
            "archive is left open on /**",
            "archive is refused on /**",
            "no line is about the use `preserve`",
        ),
        ({}, "ExampleBot waits at least 5 s", "ExampleBot waits at least 5.001 s", "wait 5 s"),
        ({}, "ExampleBot waits at most 5 s", "ExampleBot waits at most 4.9 s", "robots.txt:2"),
        (
            {"robots.txt": ACAP},
            "everybody keeps /news at most 30 days",
            "everybody keeps /news at most 29 days",
            "site/robots.txt:2",
        ),
        (
            {"robots.txt": ACAP},
            "everybody shows at most 50 words of /news",
            "everybody shows at most 49 words of /news",
            "site/robots.txt:3",
        ),
        (
            {"robots.txt": ACAP},
            "everybody must not index /secret/**",
            "everybody must not index /**",
            "is not told about /",
        ),
        (
            {"automation-preferences.txt": CONDITIONS},
            "ExampleBot may fetch /api/x under conditions",
            "ExampleBot must not fetch /api/x",
            "site/automation-preferences.txt:",
        ),
        (
            {"index.html": '<meta name="robots" content="noindex">'},
            "ExampleBot must not index /",
            "index is left open to ExampleBot on /",
            "site/index.html:1",
        ),
        (
            {"page.html": '<meta name="robots" content="nofollow">'},
            "ExampleBot must not follow links on /page.html",
            "follow is left open to ExampleBot on /**",
            "site/page.html:1",
        ),
    ],
)
def test_a_sentence_holds_or_names_the_line(
    files: dict[str, str],
    holding: str,
    failing: str,
    place: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in files.items():
        (folder / "site" / name).write_text(text, "utf-8")
    write_expectations(folder, holding, date="2026-12-01")
    assert main(["check"]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out == "1 sentence holds, 0 fail.\n"
    write_expectations(folder, holding, failing, date="2026-12-01")
    assert main(["check"]) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == f"expectations.toml:5: fails: {failing}"
    assert place in second
    assert last == "1 sentence holds, 1 fails."


def test_known_training_crawlers_are_asked_one_by_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_expectations(folder, "known training crawlers must not fetch /**")
    assert main(["check"]) == 1
    assert "AI2Bot may fetch /" in capsys.readouterr().out


def test_known_training_crawlers_are_those_that_no_training_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_expectations(folder, "known training crawlers must not fetch /**")
    robots = folder / "site" / "robots.txt"
    robots.unlink()
    assert main(["new", "no training", "--out", "site"]) == 0
    assert main(["check"]) == 0, capsys.readouterr().out
    text = robots.read_text("utf-8")
    robots.write_text(text.replace("User-agent: Timpibot\n", ""), "utf-8")
    assert main(["check"]) == 1
    assert "Timpibot may fetch /" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("robots", "sentence", "why"),
    [
        (
            "\ufeffUser-agent: archive.org_bot\nDisallow: /\n",
            "archive.org_bot must not fetch /",
            "",
        ),
        ("User-agent: archive.org_bot\nDisallow: /\n", "archive.org_bot must not fetch /", ""),
        ("User-agent: Archive.org_Bot # x\nDisallow: /\n", "archive.org_bot must not fetch /", ""),
        ("User-agent: Sogou web spider\nDisallow: /\n", '"Sogou web spider" must not fetch /', ""),
        ("User-agent: Kangaroo Bot\nDisallow: /\n", "'Kangaroo Bot' must not fetch /**", ""),
        ("User-agent: *\nDisallow: /\n", "archive.org_bot must not fetch /", ""),
        (
            "User-agent: archive\nDisallow: /\n",
            "archive.org_bot must not fetch /",
            "archive.org_bot, for readers that compare the whole name, may fetch /",
        ),
        (
            "User-agent: archive.is_bot\nDisallow: /\n",
            "archive.org_bot must not fetch /",
            "archive.org_bot, for readers that compare the whole name, may fetch /",
        ),
        (
            "User-agent: archive.is_bot\nDisallow: /\n",
            "archive.org_bot may fetch /",
            "archive.org_bot, for readers that read `archive`, must not fetch /",
        ),
        (  # readers by the RFC join the groups, and then the Allow decides
            "User-agent: archive.is_bot\nAllow: /\n\nUser-agent: archive.org_bot\nDisallow: /\n",
            "archive.org_bot must not fetch /",
            "archive.org_bot, for readers that read `archive`, may fetch /",
        ),
        (
            "User-agent: archive.is_bot\nDisallow: /x\n\nUser-agent: archive.org_bot\nDisallow: /y\n",
            "archive.org_bot must not fetch /x",
            "archive.org_bot, for readers that compare the whole name, may fetch /x",
        ),
        (
            "ACAP-crawler: archive.org_bot\nACAP-disallow-crawl: /\n",
            "archive.org_bot must not fetch /",
            "",
        ),
    ],
)
def test_names_with_other_signs_hold_for_both_kinds_of_readers(
    folder: Path, capsys: pytest.CaptureFixture[str], robots: str, sentence: str, why: str
) -> None:
    (folder / "site" / "robots.txt").write_text(robots, "utf-8")
    (folder / "expectations.toml").write_text(
        f"folder = 'site'\nexpectations = [{json.dumps(sentence)}]\n"
    )
    assert main(["check", "--format", "json"]) == bool(why)
    [result] = json.loads(capsys.readouterr().out)["results"]
    assert (result["holds"], result["why"] or "") == (not why, why)


def test_a_misspelt_name_with_other_signs_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "site" / "robots.txt").write_text("User-agent: archive.org_bot\nDisallow: /\n")
    write_expectations(folder, "archive.org_bto must not fetch /")
    assert main(["check"]) == 2
    assert "write archive.org_bot" in capsys.readouterr().err
    write_expectations(folder, "Sogou web spider must not fetch /")
    assert main(["check"]) == 2
    assert 'write `"Sogou web spider" must not fetch /`' in capsys.readouterr().err


def test_a_glob_is_tried_with_every_set_of_patterns(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_expectations(folder, "ExampleBot must not fetch /private/*/x/**")
    robots = "User-agent: *\nDisallow: /private\nAllow: /*/deep/x/*.PDF?v=\n"
    (folder / "site" / "robots.txt").write_text(robots, "utf-8")
    assert main(["check", "--format", "json"]) == 1
    [result] = json.loads(capsys.readouterr().out)["results"]
    assert result["is_complete"]
    assert result["why"] == "ExampleBot may fetch /private/deep/x/.PDF?v="
    assert result["decided_by"]["line"] == 3


def test_too_many_patterns_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"Disallow: /*{chr(97 + number)}=*&x\n" for number in range(20))
    (folder / "site" / "robots.txt").write_text(f"User-agent: *\n{lines}", "utf-8")
    write_expectations(folder, "everybody must not fetch /z=*", "everybody waits at most 0 s")
    assert main(["check"]) == 1
    assert "too many patterns for 1 sentence" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("expectations = [", "expectations.toml is not TOML"),
        ('expectation = ["x"]', "`expectation` has no meaning: write `expectations`"),
        ("expectations = []", "has no sentence"),
        ('expectations = "x"', "is not a list of sentences"),
        ('agent = "a/b"\nexpectations = ["x"]', "agent `a/b` is no crawler"),
        ('site = "x"\nexpectations = ["everybody may fetch /"]', "is not a URL"),
        ('site = "https://x.example"\nfolder = "."\nexpectations = ["x"]', "leave one of them out"),
        ('date = "today"\nexpectations = ["everybody may fetch /"]', "`date` is not a date"),
        ('expectations = [\n"x y",\n]', "expectations.toml:2: `x y` is not understood: write `"),
        (
            'folder = "site"\nexpectations = ["GTPBot must not fetch /"]',
            "expectations.toml:2: there is no known crawler `GTPBot`",
        ),
        ('folder = "empty"\nexpectations = ["everybody may fetch /"]', "has no policy file"),
        ('folder = "nowhere"\nexpectations = ["everybody may fetch /"]', "is not a folder"),
    ],
)
def test_what_is_not_understood_is_an_error(
    text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    (folder / "expectations.toml").write_text(text, "utf-8")
    assert main(["check"]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_a_missing_file_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder / "other.toml")]) == 2
    assert "other.toml cannot be read" in capsys.readouterr().err


def test_junit_has_a_case_for_each_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_expectations(folder, "GPTBot must not fetch /", "GPTBot may fetch /<ä>&")
    assert main(["check", "--format", "junit"]) == 1
    [suite] = JUnitXml.fromstring(capsys.readouterr().out.encode())
    assert isinstance(suite, TestSuite)
    assert (suite.name, suite.tests, suite.failures) == ("expectations.toml", 2, 1)
    holding, failing = suite
    assert (holding.name, holding.is_passed) == ("GPTBot must not fetch /", True)
    assert failing.name == "GPTBot may fetch /<ä>&"
    [failure] = failing.result
    assert isinstance(failure, Failure)
    assert "site/robots.txt:8: `Disallow: /`" in str(failure.message)


def test_sarif_has_the_sentence_and_the_line_that_decides(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_expectations(folder, "GPTBot must not fetch /", "GPTBot may fetch /")
    assert main(["check", "--format", "sarif"]) == 1
    [run] = Sarif.model_validate_json(capsys.readouterr().out).runs
    assert run.results is not None
    [result] = run.results
    assert result.rule_id == "comity.expectation"
    places = [
        json.loads(place.model_dump_json(by_alias=True))["physicalLocation"]
        for place in (*(result.locations or ()), *(result.related_locations or ()))
    ]
    lines = [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places]
    assert lines == [("expectations.toml", 4), ("site/robots.txt", 8)]


def test_github_shows_the_sentence_at_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_expectations(folder, "GPTBot may fetch /")
    assert main(["check", "--format", "github"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("::error file=expectations.toml,line=3,title=comity.expectation::")
    assert last == "0 sentences hold, 1 fails."


def test_a_live_site_is_checked(serve: Serve, folder: Path) -> None:
    server = serve({"/robots.txt": ROBOTS})
    write_expectations(folder, "GPTBot must not fetch /x", "everybody else may fetch /")
    assert main(["check", "--site", server.origin]) == 0
    assert server.paths[0] == "/robots.txt"
    assert "/x" not in server.paths


@pytest.mark.parametrize("sentence", ["everybody must not fetch /", "archive is left open on /"])
def test_a_file_that_cannot_be_fetched_is_no_pass(
    sentence: str, serve: Serve, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve({"/robots.txt": serve.Answer("", status=503)})
    write_expectations(folder, sentence)
    assert main(["check", "--site", server.origin]) == 2
    shown = capsys.readouterr()
    assert "/robots.txt cannot be fetched: HTTP status 503" in shown.err
    assert shown.out == ""
    assert server.paths == ["/robots.txt"]


def test_a_server_that_is_not_there_is_no_pass(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_expectations(folder, "everybody must not fetch /")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no server listens at this port
        assert main(["check", "--site", f"http://127.0.0.1:{taken.getsockname()[1]}"]) == 2
    assert "/robots.txt cannot be fetched" in capsys.readouterr().err


@pytest.mark.parametrize(
    "robots",
    [ROBOTS, ACAP, "User-agent: *\nVisit-time: 0100-0500\nRequest-rate: 1/7\n", ROBOTS + ACAP],
)
def test_the_sentences_of_today_hold_today(
    robots: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "site" / "robots.txt").write_text(robots, "utf-8")
    (folder / "site" / "page.html").write_text('<meta name="robots" content="noarchive">', "utf-8")
    (folder / "site" / "automation-preferences.txt").write_text(CONDITIONS, "utf-8")
    assert main(["explain", "site", "--as-expectations"]) == 0
    written = capsys.readouterr().out
    assert "archive is refused to everybody on /page.html" in written
    (folder / "expectations.toml").write_text(written, "utf-8")
    assert main(["check"]) == 0, capsys.readouterr().out
    (folder / "site" / "robots.txt").write_text("User-agent: *\nDisallow: /page\n", "utf-8")
    assert main(["check"]) == 1
