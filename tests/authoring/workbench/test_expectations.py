"""Expectations beside the editor, without a browser."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from comity.authoring.expectations.documents import read_document
from comity.authoring.workbench import markup
from comity.authoring.workbench.desk import desk_of
from comity.authoring.workbench.expectations import (
    MAX_SENTENCES,
    check_sentences,
    expectations_file,
    sentences_today,
)
from comity.authoring.workbench.state import Choices, State
from comity.policies import Fetched

ORIGIN = "https://example.com"
ROBOTS = ORIGIN + "/robots.txt"


def state(robots: str, *sentences: str) -> State:
    files = {ROBOTS: Fetched(status=200, body=robots.encode())}
    return State(ORIGIN, files, {}, Choices()).with_choices(expectations="\n".join(sentences))


def test_each_sentence_is_checked_and_names_its_line() -> None:
    site = state(
        "User-agent: GPTBot\nDisallow: /a\n",
        "GPTBot must not fetch /a",
        "",
        "GPTBot may fetch /a/b",
        "GPTBot fetches /a",
        "GPTBott may fetch /",
    )
    checked = check_sentences(site)
    assert [sentence.holds for sentence in checked] == [True, False, None, None]
    _, contradicted, unknown, misspelt = checked
    assert contradicted.why == "GPTBot must not fetch /a/b"
    assert contradicted.citation
    assert (contradicted.citation.file, contradicted.citation.line) == (ROBOTS, 2)
    assert "write `GPTBot may fetch /a`" in unknown.why
    assert "write GPTBot" in misspelt.why
    shown = markup.expectations(site, checked)
    assert "1 of 4 hold." in shown
    assert f'data-url="{ROBOTS}" data-line="2"' in shown


def test_an_edit_changes_what_holds() -> None:
    before = state("User-agent: *\nDisallow: /a\n", "everybody must not fetch /a")
    after = before.with_file(ROBOTS, b"User-agent: *\nDisallow: /b\n")
    assert [check_sentences(site)[0].holds for site in (before, after)] == [True, False]


def test_the_sentences_of_today_hold() -> None:
    site = state("User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 5\n")
    today = sentences_today(site)
    assert "GPTBot must not fetch /**\n" in today
    checked = check_sentences(site.with_choices(expectations=today))
    assert [sentence.text for sentence in checked] == today.splitlines()
    assert all(sentence.holds for sentence in checked)
    assert f"{len(checked)} of {len(checked)} hold." in markup.expectations(site, checked)


def test_no_sentence_is_nothing_and_many_are_cut() -> None:
    assert check_sentences(state("")) == ()
    assert markup.expectations(state(""), ()) == ""
    assert len(check_sentences(state("", *["everybody may fetch /"] * 60))) == MAX_SENTENCES


def test_the_file_is_one_for_comity_check(tmp_path: Path) -> None:
    site = state("", "everybody may fetch /", "training is left open on /**")
    assert tomllib.loads(expectations_file(site)) == {
        "origin": ORIGIN,
        "expectations": ["everybody may fetch /", "training is left open on /**"],
    }
    (tmp_path / "expectations.toml").write_text(expectations_file(site), "utf-8")
    assert len(read_document(tmp_path / "expectations.toml").sentences) == 2


def test_the_sentences_of_a_folder_are_opened(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\n", "utf-8")
    (tmp_path / "expectations.toml").write_text(
        'agent = "GPTBot"\nexpectations = ["training is left open on /"]\n', "utf-8"
    )
    desk = desk_of(str(tmp_path))
    assert desk.start.choices.expectations == "training is left open to GPTBot on /"
    (tmp_path / "expectations.toml").write_text("expectations = 1", "utf-8")
    desk = desk_of(str(tmp_path))
    assert desk.start.choices.expectations == ""
    assert "is not a list of sentences" in desk.notes[-1]


@pytest.mark.requirement("SEC-2")
def test_sentences_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "other.toml").write_text('expectations = ["everybody may fetch /"]', "utf-8")
    (site / "expectations.toml").symlink_to(tmp_path / "other.toml")
    desk = desk_of(str(site))
    assert desk.start.choices.expectations == ""
    assert "is not in the folder" in desk.notes[-1]
