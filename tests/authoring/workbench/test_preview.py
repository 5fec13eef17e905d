"""Previews of sample pages: covered elements are outlined, and nothing in the page is active."""

from __future__ import annotations

import re

import pytest
from lxml import html  # type: ignore[import-untyped]  # it ships no types

from comity.authoring.workbench.preview import ALLOWED, MAX_NODES, Preview, preview_of
from comity.policies import Agent, Fetched, Site

ORIGIN = "https://example.com"
AI_TXT = b"""User-agent: *
  Path: / html
    Element: blockquote
      Disallow: Train
    Element: .note
      Guide: Train Cite
        Lang: en
        Guideline: Ask first.
    Element: .note em
      Disallow: *
"""


def preview(
    body: str | bytes,
    action: str = "Train",
    *,
    ai_txt: bytes = AI_TXT,
    media_type: str = "text/html",
) -> Preview:
    octets = body.encode() if isinstance(body, str) else body
    fetched = Fetched(status=200, headers=((b"Content-Type", media_type.encode()),), body=octets)
    site = Site.from_files(ORIGIN, {"/ai.txt": ai_txt})
    page = site.page(Agent("comitybot"), f"{ORIGIN}/a", headers=fetched.headers, body=octets)
    return preview_of(page, fetched, action)


def outlined_parts(shown: Preview) -> list[tuple[str, str]]:
    """Return the outlined elements and their texts."""
    nodes = html.document_fromstring(shown.html).xpath("//*[@data-part]")
    return [(node.get("data-part"), "".join(node.itertext())) for node in nodes]


PAGE = (
    "<p>free<blockquote>quoted <b>text</b></blockquote><div class=note>noted <em>all</em></div>"
    "<q>q</q>"
)


def test_what_is_covered_is_outlined_by_action() -> None:
    assert outlined_parts(preview(PAGE)) == [
        ("deny", "quoted text"),
        ("guide", "noted all"),
        ("deny", "all"),
    ]
    assert outlined_parts(preview(PAGE, "Cite")) == [("guide", "noted all"), ("deny", "all")]
    assert outlined_parts(preview(PAGE, "Index")) == [("deny", "all")]


def test_the_parts_say_what_holds_in_words_too() -> None:
    parts = preview(PAGE).parts
    assert [
        (part.selector, part.verdict, part.denied, part.guidelines, part.covered) for part in parts
    ] == [
        ("blockquote", "deny", ("Train",), (), 1),
        (".note", "guide", (), ("Ask first.",), 1),
        (".note em", "deny", ("*",), (), 1),
    ]
    assert [reason.source.line for reason in parts[0].reasons] == [4]


def test_the_whole_page_is_outlined_where_a_rule_is_about_all_of_it() -> None:
    shown = preview(
        PAGE, ai_txt=b"User-agent: *\n  Path: / html\n    Element: *\n      Disallow: Train\n"
    )
    assert [verdict for verdict, _ in outlined_parts(shown)] == ["deny"]
    assert shown.parts[0].is_whole


HOSTILE = """<!doctype html><html onload=alert(1)><head><base href=//evil.example>
<meta http-equiv=refresh content="0;url=//evil.example">
<link rel=stylesheet href=//evil.example/a.css>
<style>@import "//evil.example"; * { display: none }</style><script>alert(2)</script>
<body onload=alert(3) style="background:url(//evil.example)"><img src=//evil.example onerror=alert(4) alt="a picture">
<a href="javascript:alert(5)" target=_top>link</a><iframe src=//evil.example></iframe>
<iframe srcdoc="<script>alert(6)</script>"></iframe>
<form action=//evil.example><input name=a autofocus onfocus=alert(7) value=v><button formaction=//evil.example>b</button></form>
<object data=//evil.example></object><embed src=//evil.example>
<svg onload=alert(8)><script>alert(9)</script><a xlink:href="//evil.example">
</a></svg><math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(10)&gt;"></table></math>
<noscript><p title="</noscript><img src=x onerror=alert(11)>"></noscript><template><img src=x onerror=alert(12)></template>
<xmp><script>alert(13)</script></xmp><plaintext><script>alert(14)</script></body><!-- --!><script>alert(15)</script> -->
<blockquote data-part=guide data-label=forged hidden>\u202equoted</blockquote>"""


@pytest.mark.requirement("SEC-4")
def test_nothing_of_a_hostile_page_does_anything() -> None:
    shown = preview(HOSTILE)
    tree = html.document_fromstring(shown.html)
    names = {str(node.tag) for node in tree.iter("*")}
    attributes = {name for node in tree.body.iter("*") for name in node.keys()}  # noqa: SIM118  # of lxml
    assert names <= ALLOWED | {"html", "head", "body", "meta", "title", "style"}
    assert attributes <= {
        "lang",
        "dir",
        "colspan",
        "rowspan",
        "start",
        "span",
        "class",
        "data-part",
        "data-label",
    }
    assert len(tree.xpath("//style")) == len(tree.xpath("//meta[@http-equiv]")) == 1
    assert not re.search(r"<[^>]*evil\.example", shown.html)
    assert "\u202e" not in shown.html
    assert "default-src 'none'" in shown.html.partition("<style>")[0]


def test_a_page_cannot_forge_an_outline() -> None:
    shown = preview(
        "<p data-part=deny data-label='No Train' class=replaced>x</p><blockquote "
        "hidden>y</blockquote>"
    )
    assert outlined_parts(shown) == [("deny", "y")]


def test_json_is_listed_and_shown_as_text() -> None:
    ai_txt = b"User-agent: *\n  Path: / json\n    Element: a.b\n      Disallow: Train\n"
    shown = preview('{"a": {"b": "<script>"}}', ai_txt=ai_txt, media_type="application/json")
    assert [(part.selector, part.covered) for part in shown.parts] == [("a.b", 1)]
    assert "&lt;script&gt;" in shown.html
    assert "not outlined" in shown.note


def test_pages_are_as_deep_and_as_long_as_they_like() -> None:
    assert "not" not in preview("<div>" * 3000 + "deep").note
    assert f"first {MAX_NODES}" in preview("<i>x</i>" * (MAX_NODES + 1)).note
