"""`comity lint --readers`: the documented readings of search engines and Lighthouse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from comity.cli import main

FILE = """Disallow: /before
User-agent:
User-agent: *
Disallow: a
Disallow: /b$c
Crawl-delay: 5
Content-Signal: ai-train=no
Prose without a sign
Sitemap: /map.xml
# a comment
Allow: /ok
Content-Usage: train-ai=n
"""


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize(
    ("readers", "lines"),
    [
        ("", []),
        ("google", [6, 7, 12]),
        ("lighthouse", [1, 2, 4, 5, 8, 9, 12]),
        ("google, lighthouse ,", [1, 2, 4, 5, 6, 7, 8, 9, 12, 12]),
    ],
)
def test_a_reader_is_noted_at_its_lines(
    readers: str, lines: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(FILE)
    for target in (file, tmp_path):
        arguments = ["--format", "json", "--select", "comity.reader", "--readers", readers]
        assert main(["lint", *arguments, str(target)]) == 0
        problems = json.loads(capsys.readouterr().out)["problems"]
        assert [problem["line"] for problem in problems] == lines
        assert {problem["severity"] for problem in problems} <= {"info"}


@pytest.mark.parametrize(
    ("reader", "text", "lines"),
    [
        ("bing", "User-agent: *\nCrawl-delay: 1\nCrawl-delay: 30\nCrawl-delay: x\n", []),
        ("bing", "User-agent: *\nCrawl-delay: 0.5\nCrawl-delay: 31\n", [2, 3]),
        ("yandex", "User-agent: *\nDisallow: /a\n\nUser-agent: a\nAllow: /b\n", []),
        ("yandex", "User-agent: *\n# the first\nDisallow: /a\nCrawl-delay: 5\n", [4]),
        ("yandex", "User-agent: *\n\nDisallow: /a\n \n# more\nAllow: /b\n", [3, 6]),
        ("yandex", "\nDisallow: /a\n", []),  # no group is above
        ("yandex", "User-agent: *\n" + "#" * 500_000, [None]),
    ],
)
def test_bing_and_yandex_are_noted_at_their_lines(
    reader: str,
    text: str,
    lines: list[int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(text)
    arguments = ["--format", "json", "--select", "comity.reader", "--readers", reader]
    assert main(["lint", *arguments, str(file)]) == 0
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [problem["line"] for problem in problems] == lines


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize(
    "name",
    [
        *("User agent", "useragent", "Disalow", "dissallow", "dissalow", "diasllow", "disallaw"),
        *("site-map", "Disallowed", "sitemaps"),
    ],
)
def test_nothing_is_said_of_names_that_only_the_parser_of_google_takes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Google's documentation excludes typos, and its published parser accepts these."""
    (tmp_path / "robots.txt").write_text(f"User-agent: *\n{name}: /a\n")
    assert main(["lint", "--readers", "google", "--select", "comity.reader", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "Nothing is wrong.\n"


def test_google_ignores_the_end_of_a_long_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "robots.txt"
    file.write_text("User-agent: *\nDisallow: /a\n" + "#" * 512 * 1000 + "\n")
    main(["lint", "--readers", "google", "--select", "comity.reader", str(file)])
    assert "Google ignores the text behind the first 500 KiB." in capsys.readouterr().out


def test_an_unknown_reader_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /a\n")
    assert main(["lint", "--readers", "gogle", str(tmp_path)]) == 2
    assert (
        "--readers: `gogle` is unknown. Write bing, google, lighthouse or yandex."
        in capsys.readouterr().err
    )
