"""Completion by context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lsprotocol.types import CompletionItemKind, InsertTextFormat, MarkupContent, TextEdit

from comity.authoring.language_server.samples import Samples, samples
from comity.authoring.wishes import WISHES
from tests.authoring.language_server.editing import items
from tests.selection import one_in

ROBOTS = "User-agent: *\n"
AI = "User-agent: *\n  Path: / html\n"
RSL = '<rsl xmlns="https://rslstandard.org/rsl">\n<content url="/">'

CASES = [
    # File, text, expected items, and unexpected ones.
    ("robots.txt", "Us|", {"User-agent"}, {"Disallow", "Path", "scope"}),
    (
        "robots.txt",
        f"{ROBOTS}|",
        {"Disallow", "Allow", "Content-Usage", "Content-Signal", "ACAP-crawler", "Sitemap"},
        {"scope"},
    ),
    (
        "robots.txt",
        "|",
        {"User-agent", "ACAP-crawler", "License"},
        {"Disallow", "ACAP-allow-index"},
    ),
    (
        "robots.txt",
        "ACAP-crawler: *\nACAP-|",
        {"ACAP-allow-index", "ACAP-usage-purpose"},
        {"Disallow"},
    ),
    ("robots.txt", "User-agent: |", {"*", "GPTBot"}, {"/"}),
    ("robots.txt", "User-agent: mybot\nDisallow:\n\nUser-agent: my|", {"mybot"}, {"GPTBot"}),
    ("robots.txt", f"{ROBOTS}Content-Usage: tr|", {"train-ai=n", "train-ai=y"}, {"search=n"}),
    ("robots.txt", f"{ROBOTS}Content-Usage: /a |", {"search=n"}, {"/"}),
    ("robots.txt", f"{ROBOTS}Content-Signal: search=yes, |", {"ai-train=no"}, {"search=yes"}),
    (
        "robots.txt",
        "ACAP-resource-set: news /a\nACAP-crawler: *\nACAP-allow-index: the|",
        {"the-acap:resource-set:news"},
        {"/"},
    ),
    (
        "robots.txt",
        "ACAP-crawler: *\nACAP-allow-index: / time|",
        {"time-limit=30-days"},
        {"max-length=30-words"},
    ),
    ("robots.txt", "ACAP-crawler: *\nACAP-allow-crawl: / |", set(), {"time-limit=30-days"}),
    ("robots.txt", "ACAP-qualified-usage: teaser |", {"present-snippet"}, {"time-limit=30-days"}),
    (
        "robots.txt",
        "ACAP-qualified-usage: t present-snippet max|",
        {"max-length=30-words"},
        {"index"},
    ),
    (
        "robots.txt",
        "ACAP-qualified-usage: t present-snippet max-length=3-words\nACAP-composite-usage: c |",
        {"(t)", "index"},
        set(),
    ),
    (
        "automation-preferences.txt",
        "scope: /\nallowed-|",
        {"allowed-methods", "allowed-purposes"},
        {"User-agent"},
    ),
    ("automation-preferences.txt", "allowed-methods: GET, |", {"HEAD"}, {"GET"}),
    ("automation-preferences.txt", "api-automation: |", {"with-key-only"}, {"GET"}),
    ("ai.txt", "|", {"User-agent"}, {"Path", "Element"}),
    ("ai.txt", f"{AI}    |", {"Element", "User-agent"}, {"Lang", "Guideline"}),
    ("ai.txt", f"{AI}    Element: *\n      Disallow: Train |", {"Summarize", "*"}, {"Train"}),
    (
        "ai.txt",
        f"{AI}    Element: *\n      Guide: Index\n        Lang: en|",
        {"en-US", "en-GB"},
        {"de"},
    ),
    ("ai.txt", "User-agent: *\n  Path: / |", {"html", "json", "xml"}, {"/"}),
    ("ai.xml", '<ai-txt><user-agent names="*"><|', {"path"}, {"user-agent", "disallow"}),
    (
        "ai.xml",
        '<ai-txt><user-agent names="*"><path value="/" |',
        {"file-type", "value"},
        {"names"},
    ),
    (
        "ai.xml",
        '<ai-txt><user-agent names="*"><path value="/" file-type="|"',
        {"html", "json"},
        {"file-type"},
    ),
    ("trust.txt", "data|", {"datatrainingallowed"}, {"Disallow"}),
    ("trust.txt", "datatrainingallowed=|", {"yes", "no"}, {"datatrainingallowed"}),
    ("tdmrep.json", '[{"loc|', {"location"}, {"tdm-policy"}),
    ("tdmrep.json", '[{"location": "/", |', {"tdm-reservation", "tdm-policy"}, {"url"}),
    ("tdmrep.json", '[{"tdm-reservation": |}]', {"1", "0"}, {"location"}),
    ("rsl.xml", f"{RSL}<lic|", {"license"}, {"permits", "content"}),
    ("rsl.xml", f'{RSL}<license><permits type="|"', {"usage", "user", "geo"}, {"ai-train"}),
    (
        "rsl.xml",
        f'{RSL}<license><permits type="usage">ai-|</permits>',
        {"ai-train", "ai-all"},
        {"commercial"},
    ),
    (
        "a.html",
        '<meta name="robots" content="noindex, no|">',
        {"noai", "nosnippet"},
        {"noindex", "max-snippet"},
    ),
    ("a.html", '<meta name="t|">', {"tdm-reservation"}, {"robots"}),
    ("a.html", '<meta name="tdm-reservation" content="|">', {"1"}, {"noai"}),
]


@pytest.mark.requirement("IDE-2")
@pytest.mark.parametrize(("name", "marked", "expected", "unexpected"), one_in(3, CASES))
def test_what_may_come_next_depends_on_what_stands_around(
    name: str, marked: str, expected: set[str], unexpected: set[str]
) -> None:
    found = items(name, marked)
    assert expected <= found.keys()
    assert not unexpected & found.keys()


@pytest.mark.requirement("IDE-2")
@pytest.mark.parametrize(
    ("marked", "label", "documentation"),
    [
        (f"{ROBOTS}Dis|", "Disallow", "URLs that begin with the path may not be fetched"),
        (f"{ROBOTS}Content-Usage: train-ai=|", "train-ai=n", "training of models"),
        ("User-agent: GPT|", "GPTBot", "OpenAI"),
    ],
)
def test_an_item_has_its_documentation(marked: str, label: str, documentation: str) -> None:
    shown = items("robots.txt", marked)[label].documentation
    assert isinstance(shown, MarkupContent)
    assert documentation in shown.value


def test_a_name_that_has_its_colon_gets_no_second_one() -> None:
    edit = items("robots.txt", f"{ROBOTS}Dis|: /a")["Disallow"].text_edit
    assert isinstance(edit, TextEdit)
    assert edit.new_text == "Disallow"
    edit = items("robots.txt", f"{ROBOTS}Dis|")["Disallow"].text_edit
    assert isinstance(edit, TextEdit)
    assert edit.new_text == "Disallow: "
    edit = items("trust.txt", "data|")["datatrainingallowed"].text_edit
    assert isinstance(edit, TextEdit)
    assert edit.new_text == "datatrainingallowed="


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("robots.txt", "/robots.txt"),
        ("automation-preferences.txt", "/automation-preferences.txt"),
        ("ai.txt", "/ai.txt"),
        ("trust.txt", "/trust.txt"),
        ("tdmrep.json", "/.well-known/tdmrep.json"),
    ],
)
def test_every_wish_that_a_file_can_say_has_its_snippet(name: str, places: str) -> None:
    written = {
        (wish.title, form.format, artefact.text(wish.values()))
        for wish in WISHES
        for form in wish.forms
        for artefact in form.artefacts
        if artefact.location == places
    }
    assert written
    found = items(name, "|")
    texts = {
        item.text_edit.new_text for item in found.values() if isinstance(item.text_edit, TextEdit)
    }
    for title, format_, text in written:
        assert f"{title} ({format_})" in found
        assert text in texts or sum(other[:2] == (title, format_) for other in written) > 1


@pytest.mark.parametrize(
    "text",
    ["|", "\n|\n", "[|]", "[\n  |\n]\n", '[\n  {"location": "/[a", "tdm-reservation": 0},\n  |\n]', '[{"location": "/a"}\n|]',
     '[|\n  {"location": "/a"}]', '[{"location": "/a"}, |{"location": "/b"}]'],
)  # fmt: skip
def test_a_snippet_of_tdmrep_is_a_file_or_a_member_of_what_is_there(text: str) -> None:
    before, _, after = text.partition("|")
    for has_snippets in (False, True):
        item = items("tdmrep.json", text, has_snippets=has_snippets)["No training (TDMRep)"]
        assert isinstance(item.text_edit, TextEdit)
        inserted = item.text_edit.new_text.replace("\\}", "}")
        found = json.loads(before + inserted + after)
        assert {"location": "/", "tdm-reservation": 1} in found
        assert len(found) == text.count('"location"') + 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            ("tdmrep.json", text)
            for text in (
                "[{|",
                '[{"loc|',
                '[{"location": "/a",\n|}]',
                '[{"location": "[|',
                "[]\n|",
                '["|',
                '["a\\"|',
            )
        ),
        ("rsl.xml", f"{RSL}\n|"),
    ],
)
def test_no_file_is_put_into_another(name: str, text: str) -> None:
    assert not [
        item for item in items(name, text).values() if item.kind == CompletionItemKind.Snippet
    ]


def test_an_editor_with_snippets_gets_places_to_fill_in() -> None:
    title = next(label for label in items("robots.txt", "|") if label.startswith("Nobody but"))
    item = items("robots.txt", "|", has_snippets=True)[title]
    assert item.insert_text_format == InsertTextFormat.Snippet
    assert isinstance(item.text_edit, TextEdit)
    assert "${1:examplebot}" in item.text_edit.new_text


def test_paths_and_elements_are_those_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "a b.html").write_text(
        '<article id="main" class="teaser big"><p>', "utf-8"
    )
    (tmp_path / "sitemap.xml").write_text(
        "<urlset><url><loc>https://example.com/shop/1?a=b&amp;c</loc></url></urlset>", "utf-8"
    )
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.html").write_text("<video>", "utf-8")
    site = samples(tmp_path)
    assert {"/news/", "/news/a%20b.html", "/shop/", "/shop/1?a=b&c"} <= items(
        "robots.txt", f"{ROBOTS}Disallow: /|", site
    ).keys()
    found = items("ai.txt", f"{AI}    Element: |", site).keys()
    assert {"*", "article", "#main", ".teaser", ".big", "p"} <= found
    assert "video" not in found


def test_a_folder_that_has_changed_is_read_again(tmp_path: Path) -> None:
    assert samples(tmp_path).targets == ()
    (tmp_path / "a.html").write_text("<p>", "utf-8")
    assert samples(tmp_path).targets == ("/a.html",)


def test_a_folder_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    assert samples(tmp_path / "none") == Samples()
    assert samples(None) == Samples()
