"""Completions in an ai.txt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.answers.element_rule import ACTIONS
from comity.policies.formats.ai_txt import completions, parse

AGENT = "User-agent: *\n"
PATH = f"{AGENT}  Path: /news/ html\n"
ELEMENT = f"{PATH}    Element: p\n"
GUIDE = f"{ELEMENT}      Guide: Cite\n"
LANG = f"{GUIDE}        Lang: en\n"


@pytest.mark.requirement("AIT-12")
@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", ["User-agent: "]),
        ("us", ["User-agent: "]),
        ("# why\n", ["User-agent: "]),
        (AGENT, ["Path: ", "User-agent: "]),
        (f"{AGENT}  pa", ["Path: "]),
        (PATH, ["Element: ", "Path: ", "User-agent: "]),
        (ELEMENT, ["Disallow: ", "Guide: ", "Element: ", "Path: ", "User-agent: "]),
        (
            f"{ELEMENT}      Disallow: Train\n      ",
            ["Disallow: ", "Guide: ", "Element: ", "Path: ", "User-agent: "],
        ),
        (GUIDE, ["Lang: ", "Disallow: ", "Guide: ", "Element: ", "Path: ", "User-agent: "]),
        (f"{LANG}        Gu", ["Guideline: ", "Guide: "]),
        ("User-agent: ", ["*"]),
        ("User-agent: GPTBot ", []),
        (f"{AGENT}  Path: ", []),
        (f"{AGENT}  Path: /a ", ["html", "json", "xml"]),
        (f"{AGENT}  Path: /a x", ["xml"]),
        (f"{AGENT}  Path: /a xml ", []),
        (f"{PATH}    Element: ", ["*"]),
        (f"{ELEMENT}      Disallow: ", ["*", *ACTIONS]),
        (f"{ELEMENT}      Disallow: tra", ["Train", "Transcribe", "Translate"]),
        (f"{ELEMENT}      Guide: Train tra", ["Transcribe", "Translate"]),
        (f"{LANG}        Guideline: ", []),
        ("Nonsense: ", []),
    ],
)
def test_what_may_stand_at_the_end(text: str, offered: list[str]) -> None:
    assert completions(text, len(text)) == offered
    assert completions(text + "\nUser-agent: *", len(text)) == offered


@pytest.mark.requirement("AIT-12")
@given(st.text(alphabet=" \t\r\nUPpathEl:emntDisGud*/#é"), st.integers(0, 60))
def test_anything_may_stand_before_it(text: str, at: int) -> None:
    assert len(completions(text, at)) <= 1 + len(ACTIONS)


@pytest.mark.requirement("AIT-12")
@given(st.data())
def test_a_file_that_is_written_from_what_is_offered_is_read_without_a_finding(
    data: st.DataObject,
) -> None:
    values = {
        "User-agent": "*",
        "Path": "/a html",
        "Element": "p",
        "Disallow": "Train",
        "Guide": "Cite",
        "Lang": "en",
        "Guideline": "Name her.",
    }
    levels = {
        "User-agent": 0,
        "Path": 1,
        "Element": 2,
        "Disallow": 3,
        "Guide": 3,
        "Lang": 4,
        "Guideline": 4,
    }
    text, inner = "", "User-agent: "
    for _ in range(12):
        offered = completions(text, len(text))
        # No keyword ends a block that is still empty.
        inner = (
            data.draw(st.sampled_from(offered))
            if inner.startswith(("Disallow", "Guideline"))
            else offered[0]
        )
        name = inner.removesuffix(": ")
        text += f"{'  ' * levels[name]}{inner}{values[name]}\n"
    while not inner.startswith(("Disallow", "Guideline")):
        inner = completions(text, len(text))[0]
        name = inner.removesuffix(": ")
        text += f"{'  ' * levels[name]}{inner}{values[name]}\n"
    assert parse(text.encode()).findings == ()
