"""`scrapy policy` about ai.txt: element rules in what it shows, `--prompt` and `--xml`, as a user calls them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

import comity.policies
from comity.policies import PolicyError, ai_txt_from_xml, ai_txt_to_xml
from comity.policies.formats.ai_txt import parse
from comity.policies.syntax.lines import MAX_BYTES
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Serve

TEXT = b"""\
User-agent: *
  Path: /news/ html
    Element: article > p
      Disallow: Train
      Guide: Summarize
        Lang: en-US
        Guideline: Keep the "first" line.
        Lang: de
        Guideline: Behalte die erste Zeile.
    Element: p[
      Disallow: Cite
  Path: /news/ json
    Element: author.email
      Disallow: *
  Path: /other/ html
    Element: b
      Disallow: Train
"""
SPAWNING = b"User-Agent: *\nDisallow: *.jpg\n"
PAGE = "https://example.com/news/1"


def scrapy(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "scrapy", "policy", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "150", **environment},
        capture_output=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ai.txt").write_bytes(TEXT)
    return tmp_path


def schema() -> Any:
    return etree.XMLSchema(etree.parse(Path(comity.policies.__file__).parent / "ai_txt.xsd"))


# What is shown


@pytest.mark.requirement("AIT-10", "WHY-1")
def test_json_has_the_elements_with_their_lines(folder: Path) -> None:
    told = json.loads(scrapy(PAGE, "--offline", ".", "--json", folder=folder).stdout)
    elements = [
        (one["selector"], one["type"], one.get("whole", False), one["deny"])
        for one in told["elements"]
    ]
    assert elements == [
        ("article > p", "html", False, ["train"]),
        ("p[", "html", True, ["cite"]),
        ("author.email", "json", False, ["*"]),
    ]
    assert [[reason["line"] for reason in one["reasons"]] for one in told["elements"]] == [
        [4, 5],
        [11],
        [14],
    ]
    (guide,) = told["elements"][0]["guide"]
    assert (guide["actions"], len(guide["guidelines"])) == (["summarize"], 2)
    assert (told["uses"]["cite"]["verdict"], "train" in told["uses"]) == (
        "deny",
        False,
    )  # of an HTML page the JSON says nothing


@pytest.mark.requirement("AIT-10", "SEC-4")
def test_people_read_a_table_of_elements(folder: Path) -> None:
    (folder / "ai.txt").write_bytes(TEXT.replace(b"article > p", "[bold] a\u202e".encode()))
    done = scrapy(PAGE, "--all", "--offline", ".", folder=folder)
    shown = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [
        line.split()
        for line in shown.partition("Uses of its elements")[2].partition("Files")[0].splitlines()
    ]
    assert rows[2:] == [
        ["[bold]", "a\ufffd", "html", "Train", "Summarize", "/ai.txt:4,5"],
        ["p[", "(whole", "document)", "html", "Cite", "/ai.txt:11"],
        ["author.email", "json", "*", "/ai.txt:14"],
    ]
    assert (
        "of elements"
        not in scrapy("https://example.com/", "--offline", ".", folder=folder).stdout.decode()
    )


# Prompts


@pytest.mark.requirement("AIT-11")
def test_the_prompt_is_printed_and_nothing_else(folder: Path) -> None:
    done = scrapy(PAGE, "--offline", ".", "--prompt", "summarize", "--lang", "en", folder=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert (lines[0], lines[-1]) == (
        "What a website asks of an AI agent whose next action is Summarize",
        "End of what the website asks.",
    )
    assert (
        '- What the CSS selector "article > p" selects: Guideline "Keep the \\u0022first\\u0022 line."'
        in lines
    )
    in_german = scrapy(
        PAGE, "--offline", ".", "--prompt", "Summarize", "--lang", "de-AT", folder=folder
    ).stdout.decode()
    assert 'Guideline "Behalte die erste Zeile."' in in_german
    (folder / "robots.txt").write_bytes(b"User-agent: *\nDisallow: /news/\n")
    refused = scrapy(PAGE, "--offline", ".", "--prompt", "Train", folder=folder)
    assert refused.returncode == 1
    assert b"It must not be fetched by this agent." in refused.stdout
    assert b'- What the name "author.email" means in JSON: ' in refused.stdout


@pytest.mark.requirement("AIT-11")
def test_a_prompt_takes_the_policy_files_and_no_page(serve: Serve, tmp_path: Path) -> None:
    site = serve(
        {
            "/robots.txt": "User-agent: *\nDisallow:\n",
            "/ai.txt": TEXT.decode(),
            "/news/1": "<article><p>never",
        }
    )
    done = scrapy(site.url("/news/1"), "--prompt", "Train", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f'(By "{site.url("/ai.txt")}" line 4: "Disallow: Train")'.encode() in done.stdout
    assert "/news/1" not in site.paths


# XML


@pytest.mark.requirement("AIT-10")
def test_a_file_becomes_xml_and_text_again(folder: Path) -> None:
    done = scrapy("--xml", "ai.txt", folder=folder)
    assert done.returncode == 0
    assert schema().validate(etree.fromstring(done.stdout))
    assert done.stdout == ai_txt_to_xml(TEXT)
    (folder / "rules").write_bytes(
        b"\xef\xbb\xbf\n" + done.stdout.partition(b"\n")[2]
    )  # told by what is in it
    back = scrapy("--xml", "rules", folder=folder)
    assert (back.returncode, back.stdout, back.stderr) == (0, TEXT, b"")


@pytest.mark.requirement("AIT-10")
def test_the_ai_txt_of_a_site_becomes_xml(serve: Serve, folder: Path) -> None:
    text = TEXT.replace(b"Disallow: *", b"Disallow: Crop")
    site = serve({"/robots.txt": "User-agent: *\nDisallow:\n", "/ai.txt": text.decode()})
    done = scrapy(site.url("/any"), "--xml", folder=folder)
    assert (done.returncode, done.stdout) == (0, ai_txt_to_xml(text))
    assert (
        done.stderr.decode()
        == f"{site.url('/ai.txt')}:14:17: ait.action: The action `Crop` is unknown.\n"
    )
    offline = scrapy("example.com", "--offline", ".", "--xml", folder=folder)
    assert (offline.returncode, offline.stdout) == (0, ai_txt_to_xml(TEXT))


@pytest.mark.requirement("AIT-10")
def test_an_ai_txt_that_was_not_asked_for_is_not_said_to_be_missing(
    serve: Serve, folder: Path
) -> None:
    site = serve({"/robots.txt": serve.Answer(status=503), "/ai.txt": TEXT.decode()})
    done = scrapy(site.url("/any"), "--xml", folder=folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert (
        done.stderr.decode()
        == f"{site.url('/ai.txt')}: it was not asked for: robots.txt cannot be fetched: HTTP status 503\n"
    )
    assert site.paths == ["/robots.txt"]


@pytest.mark.requirement("AIT-10", "AIT-15")
@pytest.mark.parametrize(
    ("body", "status", "message"),
    one_in(
        2,
        [
            (SPAWNING, 2, "This file is in Spawning's format, the opt-out by file type."),
            (b"<html/>", 2, "The root is `html`. Write `ai-txt`."),
            (b"<ai-txt><user-agent", 2, "ai.txt: "),
            (b"Hello.\n", 2, "neither of the formats"),
            (SPAWNING + TEXT, 0, "ai.txt: the lines in Spawning's form are left out"),
        ],
    ),
)
def test_files_without_an_xml_form(folder: Path, body: bytes, status: int, message: str) -> None:
    (folder / "ai.txt").write_bytes(body)
    done = scrapy("--xml", "ai.txt", folder=folder)
    assert (done.returncode, bool(done.stdout)) == (status, not status)
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("AIT-10")
def test_a_site_without_ai_txt_has_no_xml(tmp_path: Path) -> None:
    done = scrapy("example.com", "--offline", ".", "--xml", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"https://example.com/ai.txt: there is no ai.txt: HTTP status 404\n"


@pytest.mark.requirement("SEC-4", "AIT-10")
def test_a_terminal_is_shown_nothing_hidden(folder: Path) -> None:
    hidden = TEXT.replace(b"erste", "\u202eerste\x9b31m".encode())
    (folder / "ai.xml").write_bytes(ai_txt_to_xml(hidden))
    assert scrapy("--xml", "ai.xml", folder=folder).stdout == hidden
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", "policy", "--xml", "ai.xml"], cwd=folder, stdout=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while b"/other/" not in shown:
            shown += os.read(ours, 4096)
        process.wait(300)
    os.close(ours)
    assert "Behalte die \ufffderste\ufffd31m Zeile.".encode() in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    one_in(
        2,
        [
            (["--xml", "missing.txt"], "missing.txt cannot be read: No such file or directory"),
            (["--xml"], "policy: write one URL"),
            (["--xml", "--json", "x"], "not allowed with argument"),
            (
                ["--lang", "en", "--offline", ".", PAGE],
                "--lang is the language of --prompt: write both",
            ),
            (["--prompt", "to cite", "--offline", ".", PAGE], "action `to cite` is not a word"),
            (
                ["--prompt", "Cite", "--lang", "e n", "--offline", ".", PAGE],
                "language `e n` is not a language tag",
            ),
        ],
    ),
)
def test_wrong_usage(folder: Path, arguments: list[str], message: str) -> None:
    done = scrapy(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr


# The two functions


@pytest.mark.requirement("AIT-10")
@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace(b"first", "\u202e\x85\u2028\u200b\U000e0041 & <b> ]]> \U0001f600".encode()),
        TEXT.replace(b"article > p", 'a[title="\u2066 & \'"]'.encode()),
        b"",
    ],
)
def test_text_to_xml_to_text(text: bytes) -> None:
    document = ai_txt_to_xml(text)
    assert schema().validate(etree.fromstring(document))
    assert ai_txt_from_xml(document) == text
    assert not [char for char in document.decode() if char != "\n" and not char.isprintable()]


@pytest.mark.requirement("AIT-10")
def test_comments_and_writing_are_left_out() -> None:
    written = b"\xef\xbb\xbf# a comment\r\nuser-agent: *\r\n\tpath: /news html,\r\n\t\telement: p\r\n\t\t\tdisallow: train\r\n"
    normal = b"User-agent: *\n  Path: /news html\n    Element: p\n      Disallow: Train\n"
    assert ai_txt_from_xml(ai_txt_to_xml(written)) == normal


@pytest.mark.requirement("AIT-10", "SEC-1")
def test_what_is_left_out_of_a_long_file_is_prohibited_in_its_xml() -> None:
    prohibited = "    Element: *\n      Disallow: *\n"
    assert (
        prohibited
        not in ai_txt_from_xml(
            ai_txt_to_xml(TEXT.replace(b"Disallow: *", b"Disallow: Train"))
        ).decode()
    )
    for document in (ai_txt_to_xml(TEXT, cut=True), ai_txt_to_xml(TEXT + b"# \n" * MAX_BYTES)):
        rules = parse(ai_txt_from_xml(document)).rules
        assert (rules[-1].agents, rules[-1].path, rules[-1].element, rules[-1].actions) == (
            ("*",),
            "/",
            "*",
            frozenset("*"),
        )


@pytest.mark.requirement("AIT-10", "AIT-15")
@pytest.mark.parametrize("body", [SPAWNING, b"<html>", b"prose"])
def test_files_of_other_kinds_are_no_ai_txt(body: bytes) -> None:
    with pytest.raises(PolicyError):
        ai_txt_to_xml(body)
    with pytest.raises(PolicyError):
        ai_txt_from_xml(body)
