"""Help in the editor, without a browser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position

from comity.authoring.workbench import markup
from comity.authoring.workbench.help import MAX_COLOURED, colours, completions, hover, html_of
from comity.authoring.workbench.state import Choices, State, safe_fixes
from comity.policies import Fetched

ORIGIN = "https://example.com"
ROBOTS = ORIGIN + "/robots.txt"
AI = ORIGIN + "/ai.txt"


def state(text: str, url: str = ROBOTS) -> State:
    page = Fetched(status=200, body=b'<article id="main"><p class="price">x</p></article>')
    file = Fetched(status=200, body=text.encode("utf-8", "replace"))
    return State(ORIGIN, {url: file}, {f"{ORIGIN}/shop/lamp.html": page}, Choices())


@pytest.mark.requirement("IDE-2")
def test_names_are_completed_with_their_meaning() -> None:
    offered = completions(state("User-agent: *\nDisa\n"), ROBOTS, Position(1, 4))
    assert offered
    assert (offered["start"], offered["end"]) == (0, 4)
    first = offered["options"][0]
    assert (first["label"], first["apply"]) == ("Disallow", "Disallow: ")
    assert "RFC 9309" in first["detail"]
    assert first["info"].startswith("<p>")


@pytest.mark.requirement("IDE-2")
@pytest.mark.parametrize(
    ("text", "url", "label"),
    [
        ("User-agent: gptb", ROBOTS, "GPTBot"),
        ("User-agent: *\nDisallow: /sh", ROBOTS, "/shop/"),
        ("User-agent: *\n  Path: / html\n    Element: #m", AI, "#main"),
    ],
)
def test_values_are_those_of_crawlers_and_pages(text: str, url: str, label: str) -> None:
    lines = text.split("\n")
    offered = completions(state(text, url), url, Position(len(lines) - 1, len(lines[-1])))
    assert offered
    assert label in [option["label"] for option in offered["options"]]


def test_columns_count_units_of_the_browser() -> None:
    offered = completions(
        state("# \U0001f916\nDisallow: /\U0001f916/sh /sh"), ROBOTS, Position(0, 4)
    )
    assert offered is None
    answer = colours(state("# \U0001f916\nDisallow: /\U0001f916\n"), ROBOTS)
    assert [(word.line, word.start, word.end) for word in answer][:2] == [(0, 0, 3), (1, 0, 8)]


@pytest.mark.requirement("IDE-3")
def test_a_word_is_explained() -> None:
    shown = hover(state("User-agent: GPTBot\nDisallow: /a\n"), ROBOTS, Position(1, 2), ())
    assert "<strong>Disallow</strong> <code>/a</code>" in shown
    assert '<a href="https://www.rfc-editor.org/' in shown


@pytest.mark.requirement("IDE-6")
def test_the_fixes_of_a_line_are_beside_its_explanation() -> None:
    site = state("User-agent: *\nDisallow: a\nDisalow: /b\n")
    problems = site.problems()[ROBOTS]
    shown = markup.help_at_line(2, problems, "<p>meaning</p>", is_editable=True)
    assert "Fix: Write /a (changes decisions)" in shown
    assert "Fix: Write Disallow" not in shown
    assert shown.endswith("<p>meaning</p>")
    assert "<button" not in markup.help_at_line(2, problems, "", is_editable=False)


@pytest.mark.requirement("IDE-6")
def test_fixes_that_change_a_decision_are_never_applied_in_bulk() -> None:
    site = state("User-agent: *\nDisallow: a\nDisalow: /b\nDisalow: /c\n")
    problems = site.problems()[ROBOTS]
    assert "Fix the 2 that change no decision" in markup.problems(problems, is_editable=True)
    after = site.with_fixes(ROBOTS, safe_fixes(problems))
    assert after.files[ROBOTS].body == (b"User-agent: *\nDisallow: a\nDisallow: /b\nDisallow: /c\n")


def test_types_of_words_are_known() -> None:
    words = colours(state("User-agent: GPTBot # note\nDisallow: /a\nNoname: x\n"), ROBOTS)
    assert [(word.line, word.start, word.type) for word in words] == [
        (0, 0, "keyword"),
        (0, 12, "type"),
        (0, 19, "comment"),
        (1, 0, "keyword"),
        (1, 10, "string"),
    ]
    assert colours(state("#" * (MAX_COLOURED + 1)), ROBOTS) == ()


@pytest.mark.requirement("SEC-4")
@given(st.text())
def test_markdown_has_no_elements_of_its_own(text: str) -> None:
    assert "<script" not in html_of(text + "<script>" + text)


@given(st.text(max_size=80), st.integers(0, 5), st.integers(0, 90))
def test_nothing_that_is_typed_raises(text: str, line: int, character: int) -> None:
    site = state(text)
    completions(site, ROBOTS, Position(line, character))
    hover(site, ROBOTS, Position(line, character), site.problems()[ROBOTS])
    colours(site, ROBOTS)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**a** `b*c*`", "<p><strong>a</strong> <code>b*c*</code></p>"),
        (
            "[RFC](https://a.example/?b&c)\n\n*d*",
            '<p><a href="https://a.example/?b&amp;c" target=_blank rel=noreferrer>RFC</a></p>'
            "<p><em>d</em></p>",
        ),
        (
            "<https://a.example>",
            '<p><a href="https://a.example" target=_blank rel=noreferrer>https://a.example</a></p>',
        ),
        ("[x](javascript:alert)", "<p>[x](javascript:alert)</p>"),
        (
            '[x](https://a.example/"onclick=b)',
            '<p><a href="https://a.example/&quot;onclick=b" target=_blank rel=noreferrer>x</a></p>',
        ),
    ],
)
def test_markdown_becomes_html(markdown: str, html: str) -> None:
    assert html_of(markdown) == html
