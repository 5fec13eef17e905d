"""The element rules about one page: its elements, the refused uses, and the page without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import comity.policies
from comity.policies import Agent, Page, Site, Verdict
from comity.policies.answers.element_rule import ACTIONS
from comity.policies.elements.rules import ElementRules
from tests.effort import calls
from tests.selection import one_in

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/1.html"
HTML = (b"Content-Type", b"text/html; charset=utf-8")
SCHEMA = Draft202012Validator(
    json.loads((Path(comity.policies.__file__).parent / "permissions.schema.json").read_text())
)
AI = """User-agent: *
  Path: /news/ html
    Element: .quote
      Disallow: Train Cite
      Guide: Summarize
        Lang: en-US
        Guideline: Keep it short.
        Lang: de
        Guideline: Kurz.
    Element: #none
      Disallow: *
    Element: section
      Disallow: *
    Element: .quote
      Disallow: Return
    Element: em
      Guide: Translate
        Guideline: Ask first.
"""
BODY = b"""<!DOCTYPE html>
<html><head><title>Title</title></head><body><p>free <em>text</em></p>
<p class="quote">quoted <a href="/q#x">words</a></p>\
<section>beside <span class=quote>nested</span></section></body></html>
"""


def page_of(ai: str = AI, body: bytes = BODY, *, uses: tuple[str, ...] = ("train",)) -> Page:
    site = Site.from_files(ORIGIN, {"/ai.txt": ai.encode()})
    return site.page(Agent("examplebot", uses=uses), URL, headers=[HTML], body=body)


def rules_of(page: Page) -> ElementRules:
    assert page.element_rules is not None
    return page.element_rules


@pytest.mark.requirement("AIT-7", "AIT-8", "AIT-9")
def test_what_is_said_of_each_element() -> None:
    quote, section, em = page_of().elements
    assert (quote.selector, quote.type, quote.is_whole) == (".quote", "html", False)
    assert quote.deny == {"train", "cite", "return"}
    assert [reason.source.line for reason in quote.reasons] == [4, 5, 15]
    assert [[guideline.lang for guideline in rule.guidelines] for rule in quote.guides] == [
        ["en-US", "de"]
    ]
    assert [node.tag for node in quote.nodes] == ["p", "span"]
    assert quote.urls == (f"{ORIGIN}/q#x", f"{ORIGIN}/q")
    assert section.deny == {"*"}
    assert section.guides == ()
    assert em.urls == ()
    assert (em.deny, len(em.guides)) == (frozenset(), 1)


@pytest.mark.requirement("AIT-7", "MEET-4")
@pytest.mark.parametrize(
    ("uses", "refused"),
    [
        (["train"], [".quote", "section"]),
        (["index"], ["section"]),
        (["train-ai"], [".quote", "section"]),
        (["summarize"], ["section"]),
        (["search", "cite"], [".quote", "section"]),
        (["translate"], ["section"]),
        (["crawl", "follow"], []),
        ([], []),
    ],
)
def test_which_elements_are_refused_for_uses(uses: list[str], refused: list[str]) -> None:
    rules = rules_of(page_of())
    assert [element.selector for element in rules.refused(uses)] == refused
    left = rules.redacted(uses)
    assert (b"quoted" in left, b"beside" in left) == (
        ".quote" not in refused,
        "section" not in refused,
    )
    assert left == BODY if not refused else b"free" in left
    elements = rules.elements
    assert [not rules.permits(use, elements) for use in uses] == [
        any(rules.refused([use])) for use in uses
    ]


@pytest.mark.requirement("MEET-5")
def test_the_rules_about_what_is_left() -> None:
    rules = rules_of(page_of())
    left = rules.without(["train"])
    assert [element.selector for element in left.elements] == ["em"]
    assert left.text == "free text"
    assert [(one.element.selector, one.spans) for one in left.traced({"text": left.text}, {})] == [
        ("em", (("text", 5, 9),))
    ]
    assert left.covering("words nobody finds") == []
    assert [element.selector for element in rules.without(["index"]).elements] == [".quote", "em"]
    assert rules.without([]).redacted([]) == BODY
    assert left.refused(["translate"]) == []
    assert [element.selector for element in rules.without(["index"]).refused(["cite"])] == [
        ".quote"
    ]


@pytest.mark.requirement("MEET-5")
def test_what_is_left_is_not_covered_by_what_was_cut_out() -> None:
    """Even if the selector selects something else in the rest of the page."""
    first = "User-agent: *\nPath: /\nElement: p:first-of-type\nDisallow: Train\n"
    rules = rules_of(page_of(first, b"<!doctype html><p>one</p><p>two</p>"))
    left = rules.without(["train"])
    assert (left.text, left.elements) == ("two", ())


@pytest.mark.requirement("AIT-7", "AIT-8")
@pytest.mark.parametrize(
    ("rule", "refused", "permitted"),
    [
        ("Disallow: *", ["index", "train", "made-up"], []),
        ("Disallow: Train", ["train"], []),
        ("Guide: *\n    Guideline: Ask.", [], ["index", "train"]),
        ("Guide: Train\n    Guideline: Ask.", [], ["train"]),
    ],
)
def test_rules_about_the_whole_document_are_a_source(
    rule: str, refused: list[str], permitted: list[str]
) -> None:
    """They decide about all actions of the format, and about no use of fetching."""
    source = rules_of(page_of(f"User-agent: *\n  Path: /\n  Element: *\n    {rule}\n")).source
    uses = ("crawl", "follow", "index", "train", "summarize", "made-up")
    verdicts = {use: said.verdict for use in uses if (said := source.decide(use)) is not None}
    assert [use for use in uses if verdicts.get(use) is Verdict.DENY and use in refused] == refused
    assert not {"crawl", "follow"} & verdicts.keys()
    assert [use for use in permitted if verdicts.get(use) is not Verdict.ALLOW] == []
    assert set(source.named_uses) == (
        {action.lower() for action in ACTIONS} if "*" in rule else {"train"}
    )


@pytest.mark.requirement("MEET-5")
def test_a_tag_tells_of_what_there_is_alone() -> None:
    *_, em = page_of().tag_of({"text": "free text"}, {})["elements"]
    assert em.keys() & {"urls", "names", "more_urls", "whole"} == set()
    assert em["spans"] == [["text"]]


@pytest.mark.requirement("MEET-5", "SEC-5")
def test_a_tag_of_an_item_with_all_urls_of_an_element_says_that_there_are_no_more() -> None:
    """Even if the page has more URLs than a tag may list."""
    links = b"".join(b"<a href=/%d>link</a>" % number for number in range(60))
    body = b"<!doctype html><p class=quote>%s</p><em><a href=/last>last</a></em>" % links
    quote, em = page_of(body=body).tag_of({"links": [f"{ORIGIN}/last", f"{ORIGIN}/7"]}, {})[
        "elements"
    ]
    assert (em["urls"], em.get("more_urls", False)) == ([f"{ORIGIN}/last"], False)
    assert (quote["urls"], quote["more_urls"]) == ([f"{ORIGIN}/7"], True)


@pytest.mark.requirement("MEET-5")
def test_the_document_as_text_is_known_whatever_octets_it_has() -> None:
    body = BODY.replace(b"nested", b"nes\xffted")
    rules = rules_of(page_of(body=body))
    assert rules.is_document(body.decode("utf-8", "replace"))
    assert not rules.is_document("")
    left = rules.document_without(["train"], body.decode("utf-8", "replace"))
    assert isinstance(left, str)
    assert ("free" in left, "quoted" in left) == (True, False)
    site = Site.from_files(
        ORIGIN,
        {"/ai.txt": b"User-agent: *\n  Path: / json\n    Element: a\n      Disallow: Train\n"},
    )
    json_page = site.page(
        Agent("bot", uses=("train",)),
        URL,
        headers=[(b"Content-Type", b"application/json")],
        body=b'{"a": "\xff"}',
    )
    assert not rules_of(json_page).is_document('{"a": "\ufffd"}')
    assert rules_of(json_page).document_without([], "text") == ""


@pytest.mark.requirement("MEET-5", "AIT-8")
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"text": "free text\nquoted words\nbeside nested"},
        {
            "list": ["Title", "quoted words"],
            "made_up": 5,
            "html": BODY.decode(),
            "body": BODY,
            "none": None,
        },
    ],
)
def test_tags_are_valid_by_the_schema(fields: dict[str, Any]) -> None:
    tag = page_of().tag_of(fields, {"made_up": ""})
    SCHEMA.validate(tag)
    assert [element["selector"] for element in tag["elements"]] == [".quote", "section", "em"]
    assert all(element["because"] for element in tag["elements"])
    places = {element["selector"]: element["spans"] for element in tag["elements"]}
    if "text" in fields:
        assert [fields["text"][start:end] for _, start, end in places[".quote"]] == [
            "quoted words",
            "nested",
        ]
        assert places["section"] == [["text", 23, 36]]
    if "list" in fields:
        assert places[".quote"] == [["list", 1], ["html"], ["body"]]
        assert places["em"] == [["html"], ["body"]]
    assert tag["elements"][0]["guide"] == [
        {
            "actions": ["summarize"],
            "guidelines": [
                {"lang": "en-US", "text": "Keep it short."},
                {"lang": "de", "text": "Kurz."},
            ],
        }
    ]


@pytest.mark.requirement("MEET-5")
def test_a_text_that_is_declared_to_be_of_no_element_is_free() -> None:
    page = page_of()
    text = rules_of(page).text
    assert all(
        not element["spans"]
        for element in page.tag_of({"text": text, "n": 7}, {"text": "", "n": ""})["elements"]
    )


@pytest.mark.requirement("AIT-5", "AIT-13")
def test_the_whole_document_is_an_element_without_places() -> None:
    page = page_of(
        AI + "    Element: *\n      Guide: Cite\n    Element: :has(\n      Disallow: Clip\n"
    )
    *_, whole, broken = page.elements
    assert [(one.selector, one.is_whole, one.nodes, one.urls) for one in (whole, broken)] == [
        ("*", True, (), ()),
        (":has(", True, (), ()),
    ]
    rules = rules_of(page)
    assert [element.selector for element in rules.covering("Title")] == ["*", ":has("]
    assert [element.selector for element in rules.refused(["clip"])] == ["section"]
    tag = page.tag_of({"a": "quoted words"}, {})
    SCHEMA.validate(tag)
    assert [
        (element["selector"], element["spans"])
        for element in tag["elements"]
        if element.get("whole")
    ] == [
        ("*", []),
        (":has(", []),
    ]
    assert rules_of(
        page_of("User-agent: *\nPath: /\nElement: *\nGuide: Cite\n", b"\xff\x00<")
    ).covering("Title")


@pytest.mark.requirement("AIT-5", "SEC-5")
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (b"application/json", b"{"),
        (b"application/xml", b"<a>"),
        (b"image/png", b"\x89PNG"),
        (b"", b""),
    ],
)
def test_documents_that_are_not_read(media_type: bytes, body: bytes) -> None:
    site = Site.from_files(
        ORIGIN, {"/ai.txt": b"User-agent: *\n  Path: /\n    Element: a.b\n      Disallow: Train\n"}
    )
    page = site.page(
        Agent("examplebot", uses=("train",)),
        URL,
        headers=[(b"Content-Type", media_type)],
        body=body,
    )
    SCHEMA.validate(page.tag_of({"a": "text", "b": [body]}, {"a": "a.b"}))
    assert all(element.is_whole for element in page.elements)
    assert page.element_rules is None or page.element_rules.covering("text") == list(page.elements)


@pytest.mark.requirement("SEC-5", "MEET-5")
def test_places_in_the_main_text_are_not_told_apart_where_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("comity.policies.elements.rules.MAX_SPANS", 3)
    rules = rules_of(page_of())
    spans = {one.element.selector: one.spans for one in rules.traced({"text": rules.text}, {})}
    assert spans == {
        ".quote": (("text", 10, 36),),
        "section": (("text", 23, 36),),
        "em": (("text", 5, 9),),
    }


@pytest.mark.requirement("MEET-5")
def test_a_text_made_without_what_is_refused_has_to_do_with_the_others_only() -> None:
    rules = page_of().element_rules
    assert rules is not None
    seen = []

    def make(source: str) -> str:
        seen.append(source)
        return "Made up of all that is there"

    text = rules.made_without(["train"], make)
    assert "quoted" not in seen[0]
    assert "beside" not in seen[0]
    assert "free <em>text</em>" in seen[0]
    assert [one.element.selector for one in rules.traced({"text": text}, {}) if one.spans] == []
    text = rules.made_without(["cite"], lambda source: f"Made of {len(source)} characters")
    refused = {element.selector for element in rules.refused(["cite"])}
    others = {
        element.selector for element in rules.refused(["summarize", "train", "return", "cite"])
    } - refused
    assert {one.element.selector for one in rules.traced({"text": text}, {}) if one.spans} == others


NAMED = "User-agent: *\n  Path: / json\n" + "".join(
    f"    Element: {'.'.join(['p'] * parts)}\n      Disallow: Train\n" for parts in range(1, 50)
)
JSON_SHAPES: dict[str, tuple[str, str, str, int]] = {  # beginning, unit, end, values in a unit
    "objects": ("[", '{"p":1},', "0]", 2),
    "chains": ("[", '{"p":' * 49 + "1" + "}" * 49 + ",", "0]", 50),
    "in deep arrays": ("[" * 200, '{"p":1},', "0" + "]" * 200, 2),
    "addresses": ("[", '{"p":"/a"},', "0]", 2),
    "lines": ("", '{"p":1}\n', "", 2),
}


@pytest.mark.requirement("MEET-5", "SEC-1")
@pytest.mark.parametrize("name", one_in(2, JSON_SHAPES))
@pytest.mark.parametrize("has_text", one_in(2, [True, False]))
def test_each_value_of_json_costs_as_many_calls_wherever_it_stands(
    name: str, has_text: bool
) -> None:
    """The path to each value was once walked from the top: 1.4 seconds for a page of 512 KiB."""
    begin, unit, end, values = JSON_SHAPES[name]
    site = Site.from_files(ORIGIN, {"/ai.txt": NAMED.encode()})

    def effort(number: int) -> int:
        text = begin + unit * number + end
        headers = [(b"Content-Type", b"application/json")]

        def tag() -> object:
            page = site.page(
                Agent("examplebot", uses=("train",)), URL, headers=headers, body=text.encode()
            )
            return page.tag_of({"text": text} if has_text else {}, {})

        tag()  # so that caches are filled
        return calls(tag)

    once, twice = (effort(number // values) for number in (4000, 8000))
    assert twice - once < 45 * 4000


@pytest.mark.requirement("MEET-3")
def test_equal_files_of_two_sites_are_both_reasons() -> None:
    """The sites share the rules, which are read once."""
    agent = Agent("testbot")
    pages = []
    for origin in (ORIGIN, "https://www.example.com"):
        site = Site.from_files(origin, {"/ai.txt": AI.encode()})
        pages.append(site.page(agent, f"{origin}/news/1.html", headers=[HTML], body=BODY))
    before, last = pages
    for page in (last.asked_as(before), last.asked_as(before).asked_as(before)):
        quote = next(element for element in page.elements if element.selector == ".quote")
        urls = [reason.source.url for reason in quote.reasons]
        assert set(urls) == {f"{ORIGIN}/ai.txt", "https://www.example.com/ai.txt"}


def test_a_page_may_refer_to_entities() -> None:
    body = b"""<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"
 "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head>
<body><p class="quote">a &brand; b</p></body></html>"""
    site = Site.from_files(ORIGIN, {"/ai.txt": AI.encode()})
    headers = [(b"Content-Type", b"application/xhtml+xml")]
    page = site.page(Agent("testbot"), URL, headers=headers, body=body)
    assert [element.selector for element in page.elements] == [".quote"]
