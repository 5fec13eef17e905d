"""What `make words` counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.words.run import ROOT, SPECIFIED, Words, is_fragment, tells_nothing

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
    words = Words.of_source(NAMES)
    names = "Said asked at found given held kept known known left named one place stated taken told why written"
    assert " ".join(sorted(name for _, name in words.empty)) == names
    assert words.names == 19  # and `url`
    assert (4, "Said") in words.empty
    assert (5, "asked") in words.empty


def test_a_name_in_two_functions_counts_twice() -> None:
    assert Words.of_source("def first():\n    found = 1\ndef second():\n    found = found_url = 1\n")[:2] == (
        5,
        [(2, "found"), (4, "found")],
    )


@pytest.mark.parametrize("name", ["_found", "KEPT", "asked_for", "AskedFor", "at2", "Place"])
def test_names_that_tell_nothing(name: str) -> None:
    assert tells_nothing(name)


@pytest.mark.parametrize("name", ["found_url", "RulesFound", "rest", "parsed", "at_most", "x", "URL"])
def test_names_that_tell_something(name: str) -> None:
    assert not tells_nothing(name)


def test_a_verb_is_good_for_a_function_alone() -> None:
    assert Words.of_source("def read(): ...\nasync def read_from(): ...\ndef found(read): ...\n").empty == [
        (3, "found"),
        (3, "read"),
    ]


def test_a_word_of_the_specification_is_no_hit() -> None:
    assert Words.of_source("of = at = 1", ("of",)).empty == [(1, "at")]


def test_words_of_specifications_stand_in_their_files() -> None:
    for file, names in SPECIFIED.items():
        used = {name.strip("_") for _, name in Words.of_source((ROOT / file).read_text("utf-8")).empty}
        assert set(names) <= used, file


@pytest.mark.parametrize(
    "begin", ["Of which page it is.", "What holds.", "Whether it holds", "None: no limit.", "with\nthe rest"]
)
def test_fragments(begin: str) -> None:
    assert is_fragment(begin)


@pytest.mark.parametrize(
    "begin", ["Return what holds.", "The uses of one page.", "One page.", "`url`: of the page.", "Offer it."]
)
def test_no_fragments(begin: str) -> None:
    assert not is_fragment(begin)


def test_docstrings_of_modules_classes_and_functions_count() -> None:
    source = '"""Of it.\n\nMore."""\nclass A:\n    """A class."""\n    async def go(self):\n        """Whether it goes."""\n'
    words = Words.of_source(source)
    assert words[2:] == (3, [(1, "Of it."), (7, "Whether it goes.")])


def test_it_ends_well_whatever_it_shows(tmp_path: Path) -> None:
    (tmp_path / "name.py").write_text("found = page = 1\n")
    (tmp_path / "text.py").write_text('"""Of it."""\n')
    (tmp_path / "fine.py").write_text('"""A page."""\n')
    (tmp_path / "torn.py").write_text("def")
    other = tmp_path / "other"
    other.mkdir()
    (other / "url.py").write_text("url = 1\n")
    files = [str(tmp_path / name) for name in ("name.py", "text.py", "fine.py", "torn.py")]
    command = [sys.executable, "tests/words/run.py", "--against", str(other), *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    hits, table = done.stdout.split("file  ")
    assert hits == f"{files[0]}:1: found\n{files[1]}:1: Of it.\n"
    assert [line.split() for line in table.splitlines()[1:]] == [
        [files[0], "2", "1", "50.0", "0", "0", "-", "found", "1"],
        [files[1], "0", "0", "-", "1", "1", "100.0"],
        ["in", "sum", "2", "1", "50.0", "2", "1", "50.0", "found", "1"],
        [str(other), "1", "0", "0.0", "0", "0", "-"],
    ]
    assert f"{files[3]} is left out" in done.stderr
