"""Positions of elements in an item: none is missed, and text from outside of them is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any
from urllib.parse import urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from parsel import Selector

from comity.policies.answers.decision import Reason, Source, Verdict
from comity.policies.answers.element_rule import ElementRule
from comity.policies.document.document import Content
from comity.policies.document.markup import Html
from comity.policies.elements import provenance as tracing
from comity.policies.elements import text_runs as pieces
from comity.policies.elements.rules import ElementRules
from comity.policies.vocabulary.table import Vocabulary
from tests.effort import calls
from tests.selection import examples, one_in

TYPES = {
    "html": b"text/html; charset=utf-8",
    "json": b"application/json",
    "xml": b"application/xml",
}
URL = "https://example.com/news/1.html"


def rules_of(
    body: str | bytes, *elements: str, kind: str = "html", guides: tuple[str, ...] = ()
) -> ElementRules:
    """The rules about a page: no training on `elements`, guidelines for `guides`."""
    rules = [
        ElementRule(
            agents=("*",),
            path="/",
            file_type=kind,
            element=element,
            verdict=None if element in guides else Verdict.DENY,
            actions=frozenset(("train",)),
        )
        for element in (*elements, *guides)
    ]
    content = Content(
        [(b"Content-Type", TYPES[kind])], body if isinstance(body, bytes) else body.encode()
    )
    reason = Reason(rule="ait.disallow", source=Source(url="https://example.com/ai.txt"))
    return ElementRules(content, rules, URL, Vocabulary.shipped(), lambda rule: reason)


def elements_of(rules: ElementRules, value: Any) -> set[str]:
    """The elements from which a value may come."""
    return {element.selector for element in rules.covering(value)}


def spans(rules: ElementRules, value: Any, selector: str | None = None) -> dict[str, list[Any]]:
    """Element -> its positions in the field `f`."""
    traced = rules.traced({"f": value}, {} if selector is None else {"f": selector})
    return {one.element.selector: [span[1:] for span in one.spans] for one in traced if one.spans}


# One page, and values that spiders take from it

PAGE = """<!doctype html><!-- above --><html><head><base href="/base/"><title>The  title</title>
<script type="application/ld+json">{"headline": "Machine words"}</script></head><body>
<nav><a href="one.html">First link</a> <a href="two.html">Second</a></nav>
<p id="p1" title="a tip">Free words &amp; <i>more of</i> them, caf\u00e9 &nbsp; 5</p>
<div class="q" data-note="hidden note" id=""><p>Quoted &lt;words&gt; of <b>some</b>body</p>\
<!-- remark inside -->
<script>var inner = 7;</script>
<img src="/img/s.png" srcset="small.png 1x, big.png 2x" alt="Second">
<a href="two.html#top">dup</a><a href="three.html">Third</a></div>
<aside>Beside it <span class="q">nested quote</span> goes on</aside>
<p>After it<script>var outer;</script> all</p></body></html><!-- below -->"""
ALL = {".q", "aside"}


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("value", "elements"),
    [
        ("The title", set()),
        ("The\n title", set()),
        ("Free words & more of them", set()),
        ("Freewords&\nmore of", set()),
        ("caf\u00e9 \u00a0 5", set()),
        ("words & mo", set()),
        ("a tip", set()),
        ("Machine words", set()),
        (" above ", set()),
        ("below", set()),
        ("Quoted <words> of somebody", {".q"}),
        ("Quoted <words> of  some\nbody", {".q"}),
        ("<words>", {".q"}),
        ("ords> of so", {".q"}),
        ("hidden note", {".q"}),
        ("note", {".q"}),
        (" remark inside ", {".q"}),
        ("var inner = 7;", {".q"}),
        ("inner", {".q"}),
        ("small.png 1x", {".q"}),
        ("Second", {".q"}),  # it is inside and outside
        ("them, caf\u00e9 5Quoted", {".q"}),
        ("body Beside it", ALL),
        ("nested quote", ALL),
        ("Beside it goes on", {"aside"} | {".q"}),  # the page does not contain it in one piece
        ("goes on After", {"aside"}),
        ("them, caf\u00e9 5 After it", set()),  # the covered text was cut out of it
        ("FREE WORDS", ALL),  # changed
        ("2026-01-31T00:00:00", ALL),  # invented
        ("<p>made up</p>", ALL),
        ("<Free words>", ALL),
        ("After it var outer; all", set()),
        ("After it all", set()),
        ("Free", set()),
        ("ree", ALL),  # too short to search
        ("", set()),
        (" \n", set()),
        (None, set()),
        (5, ALL),
        (True, ALL),
        (object(), ALL),
        (10**5000, ALL),
        (b"", set()),
        (b"Free words", set()),
        (b"Quoted", {".q"}),
        (b"\xff\xfe", ALL),
        ([], set()),
        ({}, set()),
        ({"Free words": None}, set()),
        ({"name": "The title", "of": ["Second", {"deep": "After it all"}]}, {".q"}),
        ({"Quoted <words> of": 1}, ALL),
        ({"Quoted": "The title"}, {".q"}),
        ({"Second": "The title"}, set()),  # a name that is also outside
        ({"words": "The title"}, set()),
        ({"made up": "The title"}, ALL),
        ({"made_up": "The title"}, set()),
        (("The title", ("hidden note",)), {".q"}),
        ({"The title", "Third"}, {".q"}),
        (URL, set()),
        ("https://example.com/base/one.html", set()),
        ("https://example.com/base/two.html", set()),
        ("https://example.com/base/two.html#top", {".q"}),
        ("https://example.com/base/three.html", {".q"}),
        ("three.html", {".q"}),
        ("two.html", set()),
        ("https://example.com/img/s.png", {".q"}),
        ("https://example.com/base/big.png", {".q"}),
        ("https://other.example/", ALL),
        (PAGE, ALL),
        (PAGE.encode(), ALL),
    ],
    ids=lambda value: ascii(value)[:40] if isinstance(value, str) else type(value).__name__,
)
def test_which_elements_a_value_has_to_do_with(value: Any, elements: set[str]) -> None:
    assert elements_of(rules_of(PAGE, ".q", "aside"), value) == elements


@pytest.mark.requirement("MEET-5")
def test_what_is_not_refused_does_not_make_other_values_its_own() -> None:
    rules = rules_of(PAGE, "aside", guides=(".q",))
    assert elements_of(rules, "hidden note") == {".q"}
    assert elements_of(rules, "nested quote") == {".q", "aside"}
    assert elements_of(rules, "made up") == {"aside"}
    assert elements_of(rules_of(PAGE, guides=(".q",)), "made up") == set()
    assert elements_of(rules_of(PAGE, guides=(".q",)), "https://example.com/img/s.png") == {".q"}
    page = (
        "<!doctype html><body><p>one <b>two <i>three</i></b> four<a href=/in>link</a></p>"
        "<a href=/in>other</a>"
    )
    rules = rules_of(page, "p", "i", guides=("b", "a"))
    assert [
        elements_of(rules, value) for value in ("two", "three", "one four", "link", "other")
    ] == [
        {"p", "b"},
        {"p", "b", "i"},
        {"p", "i"},
        {"p", "a"},
        {"a"},
    ]
    assert elements_of(rules_of(page, "p", guides=("p > a",)), "https://example.com/in") == set()
    assert elements_of(
        rules_of(
            page.replace("other", "").replace("</p><a href=/in>", "</p>"), "p", guides=("p > a",)
        ),
        "/in",
    ) == {
        "p",
        "p > a",
    }


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("css", "elements"),
    [
        ("#p1", set()),
        ("#p1::text", set()),
        (".q b", {".q"}),
        ("body", ALL),
        ("aside", ALL),
        ("nav a", set()),
        ("div > p", {".q"}),
    ],
)
def test_markup_nodes_and_selections(css: str, elements: set[str]) -> None:
    rules, again = rules_of(PAGE, ".q", "aside"), Selector(PAGE, type="html")
    selection = again.css(css)
    for value in (
        selection,
        selection[0],
        selection.getall(),
        selection.get(),
        [one.root for one in selection],
    ):
        assert elements_of(rules, value) == elements
    piece = Selector(f"<div>{selection.get()}</div>", type="html").css("body > div")
    assert elements_of(rules, piece) >= elements


@pytest.mark.requirement("MEET-5")
def test_a_node_of_a_tree_that_was_changed_is_traced_by_its_texts() -> None:
    tree = Selector(PAGE, type="html")
    rules = rules_of(PAGE, ".q", "aside")
    etree.strip_tags(tree.root, "div", "span", "b")
    assert elements_of(rules, tree.css("aside")[0]) == ALL
    assert elements_of(rules, tree.css("body > p")[1]) == {".q"}
    assert elements_of(rules, tree.css("body > p")[0]) == set()


@pytest.mark.requirement("MEET-5")
def test_places_in_fields() -> None:
    rules = rules_of(PAGE, ".q", "aside")
    assert spans(rules, ["The title", "hidden note", "Beside it"]) == {
        ".q": [(1,)],
        "aside": [(2,)],
    }
    assert spans(rules, ("hidden note", {"of": "hidden note"})) == {".q": [(0,), (1,)]}
    assert spans(rules, "hidden note") == {".q": [()]}
    assert spans(rules, {"a": "hidden note"}) == {".q": [()]}
    assert spans(rules, PAGE) == {".q": [()], "aside": [()]}
    (start, end), *rest = spans(rules, rules.text)[".q"]
    assert rules.text[start:end] == "Quoted <words> of somebody\ndupThird"
    assert rest == []


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("value", "selector", "places"),
    [
        ("2026-01-31", "", {}),
        ("hidden note", "", {}),
        ("made up", "#p1", {}),
        ("made up", "#p1::text", {}),
        ("made up", ".q b", {".q": [()]}),
        ("made up", "body", {".q": [()], "aside": [()]}),
        ("made up", "aside::text", {".q": [()], "aside": [()]}),
        ("Second", "nav a", {}),  # the selector says which of two it is
        ("made up", ":has(", {".q": [()], "aside": [()]}),
        ("made up", "table", {".q": [()], "aside": [()]}),
        ("The title", "table", {}),
        (["First link", "Second", "dup", "Third"], "a", {".q": [(2,), (3,)]}),
        (["Third", "dup", "Second", "First link"], "a", {".q": [()]}),  # in another order
        (["First link", "Second", "dup"], "a", {".q": [()]}),
        (
            ["one.html", "two.html", "two.html#top", "three.html"],
            "a::attr(href)",
            {".q": [(2,), (3,)]},
        ),
        (["a tip"], "p::attr(title)", {}),
        (["/img/s.png"], "img::attr( src ), b::attr(src)", {".q": [(0,)]}),
        (["First link", "made up"], "nav a", {}),
        (["First link", "made up", "x", "y"], "a", {".q": [()]}),
        ("somebody", "p:nth-child(1)", {".q": [()]}),
    ],
)
def test_declared_selectors(value: Any, selector: str, places: dict[str, Any]) -> None:
    assert spans(rules_of(PAGE, ".q", "aside"), value, selector) == places


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("body", "selector", "value", "is_refused"),
    [
        # text that Scrapy's tree has in the node, and a browser's behind or before it
        (
            "<p>Free words<section class=q>Refused words</section>",
            "p",
            "Free words Refused words",
            True,
        ),
        (
            "<p>Free words<section class=q>Refused words</section>",
            "p",
            "FREE WORDS REFUSED WORDS",
            True,
        ),
        ("<p>Free words<section class=q>Refused words</section>", "p", ["changed"], True),
        ("<p>Free words<section class=q>Refused words</section>", "p", {"a": "Free words"}, False),
        ("<p>Free words<section class=q>Refused words</section>", "p::text", "changed", False),
        ("<p>Free words<section class=q>Refused words</section>", "p *::text", "changed", True),
        (
            "<table><tr><td>Free words</tr><div class=q>Refused words</div></table>",
            "table",
            "Free words Refused words",
            True,
        ),
        ("<p>Free words<section class=q><img alt='Refused words'></section>", "p", "changed", True),
        (
            "<p>Free words<section class=q><img alt='Refused words'></section>",
            "p *::attr(alt)",
            "changed",
            True,
        ),
        # equal in both trees
        (
            "<p title=t>Free words</p><div class=q title=t>Refused words</div>",
            "p",
            "changed",
            False,
        ),
        ("<p>Free words</p><div class=q>Free words</div>", "p", 2026, False),
        ("<p>Free words</p><div class=q>All words are free</div>", "p", "words", False),
        ("<p>Free <b>words</b></p><div class=q>words</div>", "p:has(> b)", "changed", False),
        ("<p>Free<section class=q>Refused words</section>", "p, b::attr(id)", "changed", True),
    ],
)
def test_declared_selectors_are_those_of_scrapy(
    body: str, selector: str, value: Any, is_refused: bool
) -> None:
    rules = rules_of(f"<!doctype html><body>{body}", ".q")
    assert bool(spans(rules, value, selector)) is is_refused


@pytest.mark.requirement("MEET-5", "SEC-5")
@pytest.mark.parametrize("selector", ["div", "div *", "div ~ *, div"])
def test_declared_selectors_that_find_much_within_one_another(
    selector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With libxml2's XPath, and once from each element, this took minutes."""
    looked_at: list[str] = []
    texts_in = tracing._texts_in

    def count_texts(node: Any) -> Iterator[str]:
        for text in texts_in(node):
            looked_at.append(text)
            yield text

    monkeypatch.setattr(tracing, "_texts_in", count_texts)
    inner = "".join(f"<i title={number}>{number}</i>" for number in range(100))
    assert (
        spans(
            rules_of(f"<!doctype html><p class=q>No</p>{'<div>' * 100}{inner}", ".q"),
            "changed",
            selector,
        )
        == {}
    )
    assert 100 < len(looked_at) <= 200
    monkeypatch.setattr(tracing, "MAX_STEPS_OF_SELECTOR", 10)
    assert spans(
        rules_of(f"<!doctype html><p class=q>No</p>{'<div>' * 100}{inner}", ".q"),
        "changed",
        selector,
    ) == {".q": [()]}


JSON = {
    "meta": {"author": "Jane Doe", "age": 41, "name": "x"},
    "items": [
        {
            "id": 1,
            "name": "First thing",
            "secret": {"note": "Hidden thing", "n": 12.5, "ok": True, "Odd key": None},
        },
        {"id": 2, "name": "Hidden", "secret": {"note": "nul\0l \ud800 \u00a0sp"}, "url": "/a/b"},
    ],
    "open": True,
    "shut": False,
}


@pytest.mark.requirement("MEET-5", "AIT-5")
@pytest.mark.parametrize(
    ("value", "elements"),
    [
        ("First thing", set()),
        (1, set()),
        (41, {"meta.age"}),
        ("41", {"meta.age"}),
        (12.5, {"items.secret"}),
        (True, {"items.secret"}),
        (False, set()),
        ("Hidden", set()),
        ("Hidden thing", {"items.secret"}),
        ("idden t", {"items.secret"}),
        ("Odd key", {"items.secret"}),
        ("note", {"items.secret"}),
        ({"note": 1}, {"items.secret"}),
        ({"id": 2, "name": "First thing"}, set()),
        ("nul\0l \ud800 \u00a0sp", {"items.secret"}),
        ("l \ud800", {"items.secret", "meta.age"}),
        ("nul\0l \ud800", {"items.secret"}),
        ("https://example.com/a/b", set()),
        (JSON["items"], {"items.secret"}),
        (JSON["meta"], {"meta.age"}),
        (JSON, {"items.secret", "meta.age"}),
        (json.dumps(JSON), {"items.secret", "meta.age"}),
        (3, {"items.secret", "meta.age"}),
    ],
    ids=lambda value: ascii(value)[:40] if isinstance(value, str) else type(value).__name__,
)
def test_values_of_json(value: Any, elements: set[str]) -> None:
    assert (
        elements_of(rules_of(json.dumps(JSON), "items.secret", "meta.age", kind="json"), value)
        == elements
    )


@pytest.mark.requirement("MEET-5", "AIT-5")
def test_selectors_of_json() -> None:
    rules = rules_of(json.dumps(JSON), "items.secret", "meta.age", kind="json")
    assert spans(rules, ["First thing", "Hidden"], "items.name") == {}
    assert spans(rules, [{"note": "Hidden thing"}, "nul\0l \ud800 \u00a0sp"], "items.secret") == {
        "items.secret": [(0,), (1,)]
    }
    assert spans(rules, "made up", "items") == {"items.secret": [()]}
    assert spans(rules, "made up", "items.secret.note") == {"items.secret": [()]}
    assert spans(rules, "made up", "meta") == {"meta.age": [()]}
    assert spans(rules, "made up", "meta.author") == {}
    top = rules_of('[{"a": "one text"}, {"a": "two text", "b": "three"}]', "a", kind="json")
    assert spans(top, ["three", "two text"]) == {"a": [(1,)]}
    assert spans(top, ["made up"], "b") == {}
    selection = Selector(json.dumps(JSON), type="json")
    assert elements_of(rules, selection.jmespath("items[0].secret")) == {"items.secret"}
    assert elements_of(rules, selection.jmespath("items[].name")) == set()


XML = """<?xml version="1.0"?><!-- before -->\
<f:feed xmlns:f="urn:f" xmlns="urn:e" f:kind="some kind"><entry>
<title>Open title</title><f:secret href="/hid" f:note="ns note"><![CDATA[Raw <b>text</b>]]>\
<x>deep text</x></f:secret>
<?pi some data?></entry><entry><title>Other title</title><price>41</price></entry></f:feed>"""


@pytest.mark.requirement("MEET-5", "AIT-5")
@pytest.mark.parametrize(
    ("value", "elements"),
    [
        ("Open title", set()),
        ("some kind", set()),
        ("some data", set()),
        ("before", set()),
        ("41", {"entry.price"}),
        (41, {"entry.price"}),
        ("Raw <b>text</b>", {"entry.secret"}),
        ("text</b>deep", {"entry.secret"}),
        ("ns note", {"entry.secret"}),
        ("https://example.com/hid", {"entry.secret"}),
        ("Open title Raw", {"entry.secret"}),
        ("41.0", {"entry.secret", "entry.price"}),
        (XML, {"entry.secret", "entry.price"}),
        (XML.encode(), {"entry.secret", "entry.price"}),
    ],
)
def test_values_of_xml(value: Any, elements: set[str]) -> None:
    rules = rules_of(XML, "entry.secret", "entry.price", kind="xml")
    assert elements_of(rules, value) == elements


@pytest.mark.requirement("MEET-5", "AIT-5")
def test_selections_of_xml() -> None:
    rules, again = (
        rules_of(XML, "entry.secret", "entry.price", kind="xml"),
        etree.fromstring(XML.encode()),
    )
    assert elements_of(rules, again[0]) == {"entry.secret"}
    assert elements_of(rules, again[1][0]) == set()
    assert elements_of(rules, again) == {"entry.secret", "entry.price"}
    assert (
        elements_of(rules, Selector(XML, type="xml").xpath("//*[local-name()='title']").getall())
        == set()
    )
    assert spans(rules, ["Open title", "Other title"], "entry.title") == {}
    assert spans(rules, ["made up", "41"], "entry") == {"entry.secret": [()], "entry.price": [()]}
    assert spans(rules, ["Raw <b>text</b>", "41"], "entry") == {
        "entry.secret": [(0,)],
        "entry.price": [(1,)],
    }


# Values that would take too long to trace

DEEP = 480  # browsers nest at most 512


@pytest.mark.requirement("SEC-5", "MEET-5")
def test_values_and_documents_nest_as_deep_as_they_like() -> None:
    body = "<!doctype html><body>" + "".join(f"<div class=d{n}>text {n}z" for n in range(DEEP))
    rules = rules_of(body, *(f".d{n}" for n in range(0, DEEP, 3)))
    assert len(elements_of(rules, "text 400z")) == 134
    value: list[Any] = ["text 0z"]
    for _ in range(50_000):
        value = [value]
    assert elements_of(rules, value) == {".d0"}
    value[0] = value
    assert elements_of(rules, value) == set()
    assert len(spans(rules, "made up", ".d400")) == DEEP // 3
    assert spans(rules, "made up", "body") == {f".d{n}": [()] for n in range(0, DEEP, 3)}
    nested: Any = {"a": "one text"}
    for _ in range(200):
        nested = [nested, {"b": "free text"}]
    rules = rules_of(json.dumps(nested), "a", kind="json")
    assert elements_of(rules, nested) == {"a"}
    assert elements_of(rules, "free text") == set()


# tinyhtml5 reads up to 1,000.
COUNT = 20_000 if find_spec("turbohtml") else 900
MANY = " ".join(f'a{number}="1"' for number in range(COUNT))


@pytest.mark.requirement("SEC-5", "MEET-5")
@pytest.mark.parametrize("kind", ["html", "xml"])
def test_an_element_has_as_many_attributes_as_it_likes(kind: str) -> None:
    """Read as pairs, lxml takes the square of their number: `benchmarks/hostile.py` has more."""
    body = (
        f'<r xmlns:n="u"><p {MANY} n:href="/linked" title="Tip of the day">covered text</p>'
        f"<b>free text</b></r>"
    )
    rules = rules_of(body, "p", kind=kind)
    assert [
        *map(partial(elements_of, rules), ("Tip of the day", f"{URL[:19]}/linked", "free text"))
    ] == [
        {"p"},
        {"p"},
        set(),
    ]
    if kind == "html":
        other = Html(body).root
        assert elements_of(rules, other.find(".//p")) == {"p"}
        assert elements_of(rules, other.find(".//b")) == set()


@pytest.mark.requirement("SEC-5", "MEET-5")
def test_members_are_not_told_apart_where_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "MAX_SPANS", 10)
    rules = rules_of(PAGE, ".q", "aside")
    assert spans(rules, ["The title", *["made up"] * 5]) == {
        one: [(n,) for n in range(1, 6)] for one in (".q", "aside")
    }
    assert spans(rules, ["The title", *["made up"] * 6]) == {".q": [()], "aside": [()]}
    assert spans(rules, ["The title"] * 20) == {}


@pytest.mark.requirement("SEC-5", "MEET-5")
def test_what_takes_too_long_to_find_may_come_from_anywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "MAX_STEPS", 20_000)
    rules = rules_of(PAGE, ".q", "aside")
    assert spans(rules, ["words &"]) == {}
    assert spans(rules, ["words &", "more of them"] * 20 + ["of them"]) == {}
    many = [f"made up {number}" for number in range(99)]
    assert spans(rules, [*many, "words & m"])[".q"][-1] == (99,)
    assert spans(rules, [*many, "The title"])[".q"][-1] == (98,)
    assert spans(rules, ["words & m"]) == {}


@pytest.mark.requirement("SEC-5", "MEET-5")
def test_a_text_that_is_in_too_many_elements_may_come_from_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "MAX_SCOPES", 3)
    body = (
        "<!doctype html><body>"
        + "".join(f"<p id=p{n}>word {n}</p>, word" for n in range(9))
        + "<i id=other>other</i>"
    )
    names = [f"#p{n}" for n in range(9)] + ["#other"]
    rules = rules_of(body, *names)
    assert elements_of(rules, "wor d") == set(names)
    assert elements_of(rules, "word 1, word word 2") == {"#p1", "#p2"}
    assert elements_of(rules, ", word") == set()


@pytest.mark.requirement("SEC-5", "MEET-5")
def test_the_urls_of_elements_are_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MAX_URLS", 5)
    body = (
        "<!doctype html><body><div id=a><a href=/1>1</a><p id=b><a href=/2>2</a><a href=/3>3"
        "</a><a href=mailto:x>x</a>"
    )
    rules = rules_of(body, "#a", "#b")
    urls = [f"https://example.com/{number}" for number in (1, 2, 3)]
    assert [list(element.urls) for element in rules.elements] == [urls, urls[1:]]
    monkeypatch.setattr(pieces, "MAX_URLS", 4)
    assert [list(element.urls) for element in rules_of(body, "#a", "#b").elements] == [
        urls[:2],
        urls[1:2],
    ]


# Generated documents, whose values have known origins

WORD = "{}{:04}{}"  # unique in a document
SEPARATORS = ["", " ", "\n", " \n\t"]
HTML_NAMES, XML_NAMES = ["div", "p", "span", "b", "script", "a"], ["a", "b", "s", "n:s"]


@st.composite
def trees(draw: st.DrawFn, kind: str) -> tuple[str, list[str]]:
    """A document, and the elements that rules name."""
    count = 0
    left = draw(st.integers(1, 14))

    def word() -> str:
        nonlocal count
        count += 1
        space = draw(st.sampled_from(["", " ", "\n", "\u00a0"]))
        return space + WORD.format(
            draw(st.sampled_from("xyz")),
            count,
            draw(st.sampled_from(["q", "\u00e9", "&amp;", "&lt;"])),
        )

    def node(depth: int) -> str:
        nonlocal left
        left -= 1
        names = HTML_NAMES if kind == "html" else XML_NAMES
        name = draw(
            st.sampled_from(names if depth else ["main", "body"][:1] if kind == "html" else ["r"])
        )
        covering = (
            f' class="{draw(st.sampled_from(["", "s1", "s2", "s1 s2", "o"]))}"'
            if kind == "html" and depth
            else ""
        )
        attribute = draw(st.sampled_from(["title", "href", "src", "data-x"]))
        parts = [f'<{name}{covering} {attribute}="{word().strip()}">']
        for _ in range(draw(st.integers(0, 4))):
            what = draw(st.sampled_from("tttcn"))
            if what == "n" and depth < 5 and left and name != "script":
                parts.append(node(depth + 1))
            elif what == "c" and name != "script":
                parts.append(f"<!--{word()}-->")
            elif kind == "xml" and what == "c":
                parts.append(f"<![CDATA[{word()}]]>")
            else:
                parts.append(
                    word().replace("&lt;", "").replace("&amp;", "") if name == "script" else word()
                )
        return "".join((*parts, f"</{name}>"))

    if kind == "html":
        return (
            f"<!doctype html><html><head><title>{word()}</title></head><body>{node(0)}{word()}"
            f"</body></html>",
            [".s1", ".s2"],
        )
    return node(0).replace("<r ", '<r xmlns:n="urn:n" ', 1), ["a.s", "s", "n:s", "b.a"]


def owners(kind: str, element: Any, names: list[str]) -> set[str]:
    """Return the names that cover a node, from the outermost."""
    above = [one for one in (element, *element.iterancestors()) if isinstance(one.tag, str)]
    if kind == "html":
        return {
            name for name in names for one in above if name[1:] in (one.get("class") or "").split()
        }
    own = set()
    for one in above:
        path = [*reversed([one, *one.iterancestors()])][1:]  # from below the root
        for name in names:
            parts = name.split(".")
            local = [node.tag.rpartition("}")[2] for node in path]
            shown = [
                f"{node.prefix}:{last}" if node.prefix else last
                for node, last in zip(path, local, strict=True)
            ]
            if len(path) == len(parts) and all(
                part in both
                for part, both in zip(parts, zip(local, shown, strict=True), strict=True)
            ):
                own.add(name)
    return own


def texts_of(kind: str, element: Any, names: list[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield the running text below an element, with the names that cover it."""
    for text in element.xpath(".//text()"):
        holder = text.getparent().getparent() if text.is_tail else text.getparent()
        yield str(text), owners(kind, holder, names)


@st.composite
def take_value(
    draw: st.DrawFn, kind: str, root: Any, names: list[str]
) -> tuple[Any, set[str], bool]:
    """A value that a spider takes, the elements in it, and whether the document contains it."""
    element = draw(st.sampled_from([*root.iter("*")]))
    comments = [*root.iter(etree.Comment)]
    way = draw(
        st.sampled_from(
            [
                "text",
                "text",
                "slice",
                "slice",
                "attribute",
                "url",
                "markup",
                "mixed",
                "comment",
                "parts",
            ]
        )
    )
    if way in ("text", "slice"):
        separator = draw(st.sampled_from(SEPARATORS))
        marked = []
        for text, own in texts_of(kind, element, names):
            marked += [*((sign, own) for sign in text), *((sign, set[str]()) for sign in separator)]
        if way == "slice" and marked:
            start = draw(st.integers(0, len(marked) - 1))
            marked = marked[start : draw(st.integers(start, len(marked)))]
        text = "".join(sign for sign, _ in marked)
        squeezed = "".join(text.split())
        if len(squeezed) < tracing.LEAST:
            return "", set(), True
        tells = len(squeezed) > 15  # at least one whole word, which is unique
        return text, set().union(*(own for sign, own in marked if not sign.isspace())), tells
    if way == "comment" and comments:
        comment = draw(st.sampled_from(comments))
        return comment.text, owners(kind, comment, names), True
    if way == "markup":
        inside = set().union(*(owners(kind, one, names) for one in element.iter()))
        if draw(st.booleans()):
            return element, inside, True
        return (
            etree.tostring(element, method=kind, encoding="unicode", with_tail=False),
            inside,
            True,
        )
    if way == "mixed":
        several = [draw(take_value(kind, root, names)) for _ in range(draw(st.integers(0, 3)))]
        values, own = (
            [value for value, _, _ in several],
            set().union(*(one for _, one, _ in several)),
        )
        value = draw(
            st.sampled_from([values, {"field": values}, dict(enumerate(values)), [tuple(values)]])
        )
        return value, own, isinstance(value, list) and all(tells for _, _, tells in several)
    if way == "parts":
        parts = draw(
            st.lists(st.sampled_from([*texts_of(kind, root, names), ("", set())]), max_size=3)
        )
        joined = draw(st.sampled_from([", ", " ", "; "])).join(text for text, _ in parts)
        return joined, set().union(*(own for text, own in parts if text.strip())), False
    attributes = {name: value for name, value in element.items() if name != "class"}
    name, text = draw(st.sampled_from(sorted(attributes.items()))) if attributes else ("", "")
    if way == "url" and name in ("href", "src"):
        return urljoin(URL, text.strip()), owners(kind, element, names), True
    return text, owners(kind, element, names) if text.strip() else set(), True


@pytest.mark.requirement("MEET-5", "AIT-5")
@pytest.mark.parametrize("kind", ["html", "xml"])
@settings(max_examples=examples(400))
@given(data=st.data())
def test_nothing_that_a_spider_takes_is_missed(kind: str, data: st.DataObject) -> None:
    body, names = data.draw(trees(kind))
    rules = rules_of(body, *names, kind=kind)
    covering = {element.selector for element in rules.elements if not element.is_whole}
    root = Html(body).root if kind == "html" else etree.fromstring(body.encode())
    if not covering or len(covering) < len(rules.elements):
        return
    for _ in range(5):
        value, own, is_as_it_stands = data.draw(take_value(kind, root, names))
        reported = elements_of(rules, value)
        assert own <= reported
        assert reported <= own or not is_as_it_stands or own
        assert {
            selector for selector, places in spans(rules, value).items() if places
        } == reported or value in (rules.text, body)


@st.composite
def json_trees(draw: st.DrawFn) -> Any:
    count = 1000

    def node(depth: int) -> Any:
        nonlocal count
        count += 1
        what = (
            draw(st.sampled_from("tnodl" if depth < 4 else "tn"))
            if depth
            else draw(st.sampled_from("dl"))
        )
        if what == "t":
            return WORD.format(
                "x", count, draw(st.sampled_from(["q", "\0", " \ud800", "\u00a0y", ' "z"']))
            )
        if what in "no":
            return count if what == "n" else count + 0.5
        if what == "l":
            return [node(depth + 1) for _ in range(draw(st.integers(0, 3)))]
        keys = draw(
            st.lists(
                st.sampled_from(["a", "s", f"k{count:04}y", f"key {count:04}"]),
                unique=True,
                max_size=4,
            )
        )
        return {key: node(depth + 1) for key in keys}

    return node(0)


def json_parts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield every value, and the keys on the way to it."""
    yield value, path
    if isinstance(value, dict):
        for key, member in value.items():
            yield key, (*path, key)
            yield from json_parts(member, (*path, key))
    elif isinstance(value, list):
        for member in value:
            yield from json_parts(member, path)


@pytest.mark.requirement("MEET-5", "AIT-5")
@settings(max_examples=examples(400))
@given(json_trees(), st.data())
def test_nothing_that_a_spider_takes_from_json_is_missed(
    document: Any, data: st.DataObject
) -> None:
    common = {"a", "s"}  # names that occur more than once
    names = {"s": ("s",), "a.s": ("a", "s"), "a.a": ("a", "a"), "a": ("a",), "s.a": ("s", "a")}
    rules = rules_of(json.dumps(document), *names, kind="json")
    covering = {element.selector for element in rules.elements}
    parts = [*json_parts(document)]
    for _ in range(5):
        value, path = data.draw(st.sampled_from(parts))
        below = [
            path + rest
            for part, rest in json_parts(value)
            if not isinstance(part, dict | list) and part not in common
        ]
        own = {
            name
            for name, steps in names.items()
            if any(one[: len(steps)] == steps for one in below)
        }
        if isinstance(value, str) and value not in common:
            start = data.draw(st.integers(0, max(len("".join(value.split())) - tracing.LEAST, 0)))
            if len("".join(value[start:].split())) >= tracing.LEAST:
                assert own <= elements_of(rules, value[start:])
        reported = elements_of(rules, value)
        assert reported <= covering
        if isinstance(value, str) and value in common:
            continue
        assert own <= reported
        if not own and not isinstance(value, dict | list):
            assert reported == set()


# Nodes of Scrapy's tree, which differs from a browser's

OTHER_TREES = [
    # Without `head` and `tbody`, which are implied. The text is also outside of it.
    ("<!doctype html><p>Yes</p><table><tr class=q><td>Yes<tr><td>Yes</table>", "tr.q td"),
    ("<!doctype html><p>Yes<section class=q>Yes<b>No</b></section><b>No</b>", "section"),
    ("<!doctype html><p>Yes<section class=q>Yes<b>No</b></section><b>No</b>", "section b"),
    ("<!doctype html><title>t</title><li>Yes<ul><li>Yes<li class=q>Yes</ul>", "li.q"),
    (
        "<!doctype html><thead><i>Yes</i><table><thead><tr><td>Yes</thead><tr class=q><td>Yes"
        "</table>",
        "tr.q td",
    ),
]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(("body", "selector"), OTHER_TREES)
def test_nodes_of_another_tree_are_those_of_the_document(body: str, selector: str) -> None:
    rules = rules_of(body, ".q")
    theirs = Selector(body, type="html")
    refused = theirs.css(selector)
    assert refused
    assert [elements_of(rules, node) for node in refused] == [{".q"}] * len(refused)
    outside = [
        one
        for one in theirs.css("p, b, i, td")
        if "q" not in {*one.xpath("ancestor-or-self::*/@class").getall()}
    ]
    if "section" not in selector:  # in Scrapy's tree it is inside the paragraph
        assert [elements_of(rules, node) for node in outside] == [set()] * len(outside)


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("attribute", ["hidden", "hidden=''", "data-x", "Disabled='disabled'"])
def test_markup_of_attributes_without_values(attribute: str) -> None:
    body = f"<!doctype html><body><div class=q>No</div><p {attribute}>Yes <i>indeed</i></p>"
    rules, theirs = rules_of(body, ".q"), Selector(body, type="html")
    assert [elements_of(rules, value) for value in (theirs.css("p").get(), theirs.css("p")[0])] == [
        set(),
        set(),
    ]
    assert elements_of(rules, theirs.css("body").get()) == {".q"}


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("body", "nodes"),
    [
        ("<p>Free<section class=q><img src=no.png></section></p><p>Free</p>", [{".q"}, set()]),
        ("<p>Free<section class=q data-x=no></section>", [{".q"}]),
        ("<p><section class=q><a href=no.html></a></section>", [{".q"}]),
        ("<p>Free<section class=q title='None of it'><b>at all</b></section>", [{".q"}]),
        ("<p>Free<nav class=q><video src=no.mp4></video></nav>", [{".q"}]),
        # browsers read these differently, which does not matter
        ("<p>Free <b id=1>and <i id=2>so</b> on</i> it goes<div class=q>No", [set()]),
        (
            "<p>Free<figure><figcaption id=3>of it</figcaption></figure></p></p><p>Free"
            "<div class=q>No",
            [set(), set()],
        ),
    ],
)
def test_what_stands_in_a_node_of_another_tree_may_have_no_text(
    body: str, nodes: list[set[str]]
) -> None:
    rules = rules_of(f"<!doctype html><body>{body}", ".q")
    assert [elements_of(rules, node) for node in Selector(body, type="html").css("p")] == nodes


MOVED = [
    # Browsers move content that cannot be in a table before it, so the refused one is the second.
    "<table><tr><td><p>Refused</p></td></tr><p>Free</p></table>",
    "<table><tr><td><div><p>Refused</p></div></td></tr><div><p>Free</p></div></table>",
    "<table><tr><td><p>Refused</p></td></tr><p>Free</p></table><p>Other</p></p>",
    "<table><tr><td><p>Refused <i>at all</i></p></td></tr><p>Free <!-- of it --><i>of it</i></p>"
    "</table>",
]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("body", MOVED)
def test_nodes_that_browsers_move(body: str) -> None:
    rules, theirs = rules_of(f"<!doctype html><body>{body}", "td p"), Selector(body, type="html")
    assert [elements_of(rules, node) for node in theirs.css("p")][:2] == [{"td p"}, set()]
    assert elements_of(rules, theirs.css("p:contains(Refused)").get()) == {"td p"}


@pytest.mark.requirement("MEET-5")
def test_a_node_that_may_be_one_that_was_moved() -> None:
    body = "<!doctype html><body><table><tr><td><p>Yes</p></td></tr><p>Yes</p></table>"
    assert [
        elements_of(rules_of(body, "td p"), node) for node in Selector(body, type="html").css("p")
    ] == [{"td p"}, {"td p"}]


@pytest.mark.requirement("MEET-5", "SEC-5")
@pytest.mark.parametrize("inner", one_in(2, ["{}", "yes", "<b>{}</b>", "<b>yes</b>", ""]))
def test_many_nodes_of_another_tree(inner: str) -> None:
    """In browsers the end tag makes another paragraph.

    It took the square of their number: a minute for 5,000."""

    outcomes = []

    def effort(number: int) -> int:
        paragraphs = "".join(f"<p>{inner.format(each)}</p>" for each in range(number))
        body = f"<!doctype html><body><table><tr><td><p>No</p></table>{paragraphs}</p>"
        rules, selection = rules_of(body, "td p"), Selector(body, type="html").css("p, b")
        return calls(lambda: outcomes.append(elements_of(rules, selection)))

    once, twice = effort(300), effort(600)
    assert outcomes == [{"td p"}, {"td p"}]
    assert twice < 3 * once


@pytest.mark.requirement("MEET-5")
def test_nodes_of_a_tree_that_a_spider_has_changed() -> None:
    body = "<!doctype html><p>Yes</p><div class=q><p>Yes</p><p>No</p></div><p>No</p>"
    rules, theirs = rules_of(body, ".q"), Selector(body, type="html")
    theirs.css("p")[0].drop()
    # Each may be any of the elements with the same text.
    assert [elements_of(rules, node) for node in theirs.css("p")] == [{".q"}, {".q"}, {".q"}]
    assert elements_of(rules, etree.fromstring("<p>made up</p>")) == {".q"}


@pytest.mark.requirement("MEET-5")
def test_nodes_of_a_tree_that_has_the_head_of_a_page_in_its_body() -> None:
    """For some readers the head ends at its `noscript`, and the rest is in the body."""
    head = (
        "<noscript><img src=x><p>scripts are off</p></noscript><script>var secret = 1</script>"
        "<title>Secret title</title>"
    )
    body = (
        f"<!doctype html><head>{head}</head><body><p>free words</p><noscript><b>more of it</b>"
        f"</noscript></body>"
    )
    rules = rules_of(body, "noscript", "head > title", "head > script")
    page = Selector(body, type="html")
    for css, elements in (
        ("noscript p", {"noscript"}),
        ("noscript b", {"noscript"}),
        ("title", {"head > title"}),
        ("script", {"head > script"}),
        ("body > p:not(noscript *)", None),
    ):
        nodes = [
            node for node in page.css(css) if elements is not None or "free words" in node.get()
        ]
        assert nodes
        assert [elements_of(rules, node) for node in nodes] == [elements or set()] * len(nodes)
    assert [
        elements_of(rules, text) for text in ("scripts are off", "Secret title", "free words")
    ] == [
        {"noscript"},
        {"head > title"},
        set(),
    ]
