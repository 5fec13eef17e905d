"""Tests of `make words`: the habits that it counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.words.run import (
    ROOT,
    SPECIFIED,
    Sentence,
    is_empty,
    is_participle,
    read_markdown,
    read_python,
    worst,
)

NAMES = """
import json as found

class Said:
    asked: int

    def told(self, at, *named, kept=1, **given):
        self.asked = self.left = 1
        one = [one for one in at]
        return lambda known: known, lambda known: known

    def __init__(self, url, _):
        place: int = (stated := 1)
        with open(url) as written, open(url) as written:
            pass
        match url:
            case [*taken]:
                pass
            case held:
                pass
        try:
            pass
        except OSError as why:
            url = 2
"""


def test_a_name_counts_once_in_its_class_or_function() -> None:
    words = read_python(NAMES)
    names = "Said asked at found given held kept known known left named one place stated taken told why written"
    assert " ".join(sorted(words.empty.elements())) == names
    assert words.names == 19  # and `url`


def test_a_name_in_two_functions_counts_twice() -> None:
    words = read_python("def first():\n    found = 1\ndef second():\n    found = found_url = 1\n")
    assert (words.names, words.empty) == (5, {"found": 2})


@pytest.mark.parametrize("name", ["_found", "KEPT", "asked_for", "AskedFor", "at2", "Place"])
def test_empty_names(name: str) -> None:
    assert is_empty(name)


@pytest.mark.parametrize(
    "name", ["found_url", "RulesFound", "rest", "parsed", "at_most", "x", "URL"]
)
def test_names_that_say_something(name: str) -> None:
    assert not is_empty(name)


def test_a_verb_is_a_good_name_for_a_function_only() -> None:
    source = "def read(): ...\nasync def read_from(): ...\ndef found(read): ...\n"
    assert read_python(source).empty == {"found": 1, "read": 1}


def test_a_word_of_the_specification_is_not_empty() -> None:
    assert read_python("of = at = 1", specified=("of",)).empty == {"at": 1}


def test_each_word_of_a_specification_is_used_in_its_file() -> None:
    for file, names in SPECIFIED.items():
        used = {name.strip("_") for name in read_python((ROOT / file).read_text("utf-8")).empty}
        assert set(names) <= used, file


@pytest.mark.parametrize("name", ["joined", "_written", "fitted", "seen"])
def test_participles(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize(
    "name", ["join", "read", "joined_rules", "left_downloader", "need", "feed", "is_read"]
)
def test_names_that_are_not_participles(name: str) -> None:
    assert not is_participle(name)


def test_participles_count_for_functions_only() -> None:
    words = read_python(
        "def joined(written): ...\nclass Read:\n    async def _sent(self): ...\n    def __init__(self): ...\n"
    )
    assert (words.functions, words.participles) == (2, {"joined": 1, "_sent": 1})


def test_public_classes_of_one_name_in_several_files_count() -> None:
    words = read_python("class Answer: ...\nclass _Kind: ...\nclass Page: ...\n", "one.py")
    words.add(read_python("class Answer: ...\nclass _Kind: ...\n", "two.py"))
    assert words.repeated == [("Answer", 2)]


def test_docstrings_and_comments_are_split_into_sentences() -> None:
    source = (
        '"""One page. Whoever asks gets\nit.\n\nSaid `what`."""\nx = 1  # of nobody\n# noqa: E501\n'
    )
    sentences = read_python(source, "a.py").sentences
    assert [(sentence.line, sentence.text, sentence.pronouns) for sentence in sentences] == [
        (1, "One page.", 0),
        (1, "Whoever asks gets it.", 1),
        (4, "Said `…`.", 0),
        (5, "of nobody", 1),
    ]


def test_code_blocks_of_a_page_are_not_prose() -> None:
    sentences = read_markdown("# Who asks\n\n```\nwhat\n```\nThe page.\n").sentences
    assert [(sentence.line, sentence.text) for sentence in sentences] == [
        (1, "# Who asks"),
        (6, "The page."),
    ]


def test_the_worst_sentences_have_the_most_pronouns_for_their_length() -> None:
    long = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen whose"
    sentences = [
        Sentence("a", 1, long),
        Sentence("a", 2, "what who"),
        Sentence("a", 3, "fine"),
        Sentence("a", 4, "whom"),
    ]
    assert [sentence.line for sentence in worst(sentences)] == [2, 4, 1]


def test_the_exit_status_is_always_0(tmp_path: Path) -> None:
    (tmp_path / "name.py").write_text('"""What holds."""\nfound = page = 1\n\ndef joined(): ...\n')
    (tmp_path / "torn.py").write_text("def")
    command = [sys.executable, "tests/words/run.py", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    assert f"{tmp_path / 'torn.py'} is left out" in done.stderr
    table, *lists = done.stdout.split("\n\n")
    assert table.splitlines()[-1].split() == [
        "sum",
        "2",
        "1",
        "50.00",
        "1",
        "1",
        "100.00",
        "3",
        "1",
        "33.33",
    ]
    assert lists == [
        "Participles: joined 1",
        "Empty names: found 1",
        f"The 1 sentences with the most pronouns\n{tmp_path / 'name.py'}:1: What holds.\n",
    ]
