"""The files of a wish in several formats: one robots.txt, and errors where files collide."""

from __future__ import annotations

import re

import pytest

from comity.authoring.wishes import WISHES
from comity.authoring.wishes.files import write_files
from comity.authoring.wishes.wish import ELEMENT
from comity.policies import PolicyError

BY_NAME = {wish.name: wish for wish in WISHES}


def test_lines_for_the_same_crawlers_are_in_one_group_and_access_rules_are_last() -> None:
    files = write_files(BY_NAME["no-training-but-search"], {}, ["content signals", "Content-Usage"])
    assert files.texts == {
        "/robots.txt": "User-agent: *\n"
        "Content-Signal: search=yes, ai-train=no\n"
        "Content-Usage: train-ai=n, search=y\n"
        "Disallow:\n"
    }
    assert [form.format for form in files.forms] == ["Content Signals", "Content-Usage"]


def test_a_licence_is_outside_of_groups_wherever_its_format_is_in_the_list() -> None:
    values = {"origin": "https://news.example"}
    files = write_files(BY_NAME["no-training"], values, ["Content-Usage", "RSL", "ACAP"])
    assert files.texts["/robots.txt"].startswith(
        "License: https://news.example/license.xml\n\n"
        "User-agent: *\nContent-Usage: train-ai=n\nDisallow:\n\nACAP-crawler: *\n"
    )
    assert "<prohibits" in files.texts["/license.xml"]


def test_each_crawler_has_its_line() -> None:
    files = write_files(BY_NAME["everybody-but"], {"crawlers": "GPTBot,CCBot GPTBot"})
    assert files.texts == {
        "/robots.txt": "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\n"
        "User-agent: *\nDisallow:\n"
    }


def test_elements_and_fields_are_no_files() -> None:
    files = write_files(BY_NAME["no-snippets"], {})
    assert files.texts == {}
    assert files.others == ((ELEMENT, '<meta name="robots" content="nosnippet">\n'),)


@pytest.mark.parametrize(
    ("name", "values", "formats", "message"),
    [
        ("no-training", {}, ["robot.txt"], "`robot.txt` is no format: write one of robots.txt, "),
        (
            "slower",
            {},
            ["ACAP"],
            "the format `ACAP` cannot say `Slower`. The format has no word for the rate of",
        ),
        (
            "no-training",
            {},
            ["ai.txt", "ai.txt of Spawning"],
            "`ai.txt` and `ai.txt of Spawning` need the same file /ai.txt: choose one",
        ),
        ("nobody-but", {}, [], "the names of the crawlers must be known: add --crawlers"),
        ("no-training", {}, ["RSL"], "the origin of the site must be known: add --origin"),
        ("no-training", {"seconds": "3"}, [], "`No training` has no seconds: leave out --seconds"),
        ("slower", {"seconds": "x"}, [], "`x` is no number of seconds: write 1 to 86400"),
    ],
)
def test_a_mistake_is_one_message_with_its_remedy(
    name: str, values: dict[str, str], formats: list[str], message: str
) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        write_files(BY_NAME[name], values, formats)


def test_a_format_that_is_named_twice_is_written_once() -> None:
    wish = BY_NAME["no-training"]
    once = write_files(wish, {}, ["TDMRep"])
    assert write_files(wish, {}, ["TDMRep", "tdmrep"]) == once
