"""Hover texts: the meaning of a line, its agents, and the section."""

from __future__ import annotations

import pytest
from lsprotocol.types import MarkupContent, Position

from comity.authoring.language_server.features.diagnostics import diagnostics, problems_in
from comity.authoring.language_server.features.hover import hover
from comity.authoring.rules import href
from comity.policies.answers.rule import RULES
from tests.authoring.language_server.editing import at, hover_text
from tests.selection import one_in

CASES = [
    (
        "robots.txt",
        "User-agent: a\nUser-agent: b\nDis|allow: /x",
        ["may not be fetched", "For `a`, `b`.", "rfc9309#section-2.2.2"],
    ),
    (
        "robots.txt",
        "User-agent: *\nDisallow: /|x",
        ["may not be fetched", "every agent that no other group names"],
    ),
    ("robots.txt", "User-agent: GPT|Bot\nDisallow: /", ["OpenAI", "training"]),
    (
        "robots.txt",
        "User-agent: GPTBot\nUser-agent: x\nDis|allow: /",
        [
            "[GPTBot](<https://developers.openai.com/api/docs/bots>) honours `Disallow`",
            "No statement was found about `Disallow` for `x`",
        ],
    ),
    (
        "robots.txt",
        "User-agent: *\nCrawl-|delay: 5",
        ["[Google", "honour `Crawl-delay`", "ignore `Crawl-delay`"],
    ),
    (
        "robots.txt",
        "User-agent: a\nContent-Usage: train-ai|=n",
        ["refused: training of models", "draft-ietf-aipref-attach"],
    ),
    (
        "robots.txt",
        "ACAP-crawler: x\nACAP-allow-in|dex: /",
        ["index entries", "For `x`.", "ACAP 1.0 section-2.5.3"],
    ),
    (
        "robots.txt",
        "ACAP-crawler: x\nACAP-allow-index: / time-limit=30-|days",
        ["days from the first use"],
    ),
    ("robots.txt", "ACAP-crawler: x\nACAP-allow-(tea|ser): /", ["no other field mentions"]),
    (
        "ai.txt",
        "User-agent: *\n  Path: / html\n    Element: p\n      Disallow: Tr|ain",
        ["train models on it", "ai.txt paper"],
    ),
    ("ai.txt", "User-agent: x\n  Path: / html\n    Ele|ment: #main .a", ["`#main .a`", "For `x`."]),
    (
        "automation-preferences.txt",
        "user-agent: x\nscope: /\nallowed-|methods: GET",
        ["The permitted methods", "For `x`."],
    ),
    (
        "automation-preferences.txt",
        "user-agent: x\nscope: /\n\nscope: /a\nallowed-|methods: GET",
        ["The permitted methods"],
    ),
    ("trust.txt", "datatraining|allowed=no", ["Whether AI models may be trained"]),
    ("trust.txt", "datatrainingallowed=n|o", ["models may not be trained"]),
    ("tdmrep.json", '[{"location": "/", "tdm-res|ervation": 1}]', ["reserved", "TDMRep"]),
    ("tdmrep.json", '[{"location": "/", "tdm-reservation": 1|}]', ["the right is reserved"]),
    (
        "rsl.xml",
        '<rsl><content url="/"><license><pro|hibits type="usage">ai-train</prohibits>',
        ["prohibited", "RSL 1.0"],
    ),
    (
        "rsl.xml",
        '<rsl><content url="/"><license><prohibits type="usage">ai-tr|ain</prohibits>',
        ["training of models"],
    ),
    (
        "ai.xml",
        '<ai-txt><user-agent names="a"><path><element><dis|allow actions="Train"/>',
        ["must not do this"],
    ),
    (
        "a.html",
        '<meta name="robots" content="no|ai">',
        ["must not be trained", "No reader is known that says that it honours `noai`"],
    ),
    ("a.html", '<meta name="tdm-reservation" content="|1">', ["the right is reserved"]),
]


@pytest.mark.requirement("IDE-3")
@pytest.mark.parametrize(("name", "marked", "parts"), one_in(2, CASES))
def test_a_line_says_what_it_means_for_whom_and_by_which_section(
    name: str, marked: str, parts: list[str]
) -> None:
    shown = hover_text(name, marked)
    for part in parts:
        assert part in shown


def test_lines_of_another_block_are_for_others() -> None:
    shown = hover_text(
        "automation-preferences.txt", "user-agent: x\nscope: /\n\nscope: /a\nallowed-|methods: GET"
    )
    assert "`x`" not in shown
    assert "For `b`." in hover_text(
        "robots.txt", "User-agent: a\nDisallow: /\n\nUser-agent: b\nDis|allow: /x"
    )


@pytest.mark.parametrize("marked", ["# a |comment", "|", "nonsense |here", "Unknown: |x"])
def test_nothing_is_said_of_what_is_not_known(marked: str) -> None:
    assert hover_text("robots.txt", marked) == ""


def test_a_text_of_the_file_cannot_end_its_quotation() -> None:
    assert "`/'[a](b)`" in hover_text("robots.txt", "User-agent: *\nDis|allow: /`[a](b)")


@pytest.mark.parametrize(
    ("spec", "address"),
    [
        ("RFC 9309 section-2.2.2", "https://www.rfc-editor.org/rfc/rfc9309#section-2.2.2"),
        (
            "draft-romm-aipref-contentsignals section-4",
            "https://datatracker.ietf.org/doc/html/draft-romm-aipref-contentsignals#section-4",
        ),
        ("ACAP 1.0 section-2.5", ""),
    ],
)
def test_a_section_that_has_an_address_is_a_link(spec: str, address: str) -> None:
    assert href(spec) == address


@pytest.mark.parametrize(
    ("marked", "rule", "meaning"),
    [
        ("User-agent: *\nDisallow: pri|vate/", "robots.path", "may not be fetched"),
        ("User-agent: *\nDisallow: /\nAl|ow: /a", "robots.unknown", ""),  # no word of a format
    ],
)
def test_a_problem_says_why_it_matters_and_how_to_mend_it(
    marked: str, rule: str, meaning: str
) -> None:
    outline, position = at("robots.txt", marked)
    problems = problems_in(outline.document)
    shown = hover(outline, position, problems)
    assert shown
    assert isinstance(shown.contents, MarkupContent)
    advice = f"`{rule}`: {RULES[rule].why}\n\n**Fix:** {RULES[rule].fix}"
    assert shown.contents.value.endswith(advice)
    assert shown.contents.value.count(advice) == 1
    assert meaning in shown.contents.value
    assert shown.range
    assert shown.range.start <= position <= shown.range.end
    elsewhere = hover(outline, Position(0, 3), problems)
    assert elsewhere
    assert isinstance(elsewhere.contents, MarkupContent)
    assert rule not in elsewhere.contents.value


def test_a_diagnostic_says_why_it_matters_and_how_to_mend_it() -> None:
    outline, _ = at("robots.txt", "User-agent: *\nDisallow: private/|")
    (shown,) = diagnostics(outline.document)
    entry = RULES["robots.path"]
    assert shown.message == (
        "`private/` matches nothing. Begin it with `/` or `*`. (RFC 9309 section-2.2.2)\n"
        f"{entry.why}\nFix: {entry.fix}"
    )
