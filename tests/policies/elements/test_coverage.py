"""The parts of a document that ai.txt rules cover, their text, and their complete removal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.policies.answers.decision import Verdict
from comity.policies.answers.element_rule import ACTIONS, ElementRule
from comity.policies.answers.rule import RULES
from comity.policies.document.document import Content
from comity.policies.elements.coverage import (
    Covered,
    covered,
    findings,
    redacted,
    refuses,
    refusing_actions,
    text_with_spans,
)
from comity.policies.vocabulary.table import Vocabulary
from tests.selection import examples, one_in

SHIPPED = Vocabulary.shipped()
TYPES = {"html": "text/html; charset=utf-8", "json": "application/json", "xml": "application/xml"}


def rule(
    element: str, file_type: str = "html", *actions: str, guide: bool = False, line: int = 1
) -> ElementRule:
    return ElementRule(
        agents=("*",),
        path="/",
        file_type=file_type,
        element=element,
        verdict=None if guide else Verdict.DENY,
        actions=frozenset(actions or ("train",)),
        line=line,
        finding="ait.selector",
    )


def content(body: str | bytes, media_type: str = TYPES["html"]) -> Content:
    octets = body if isinstance(body, bytes) else body.encode()
    return Content([(b"Content-Type", media_type.encode())] if media_type else [], octets)


def without(
    body: str | bytes, *elements: str, file_type: str = "html", media_type: str = ""
) -> bytes:
    """Return the body without the parts that are refused for training."""
    page = content(body, media_type or TYPES[file_type])
    return redacted(
        page, covered(page, [rule(element, file_type) for element in elements]), ["train"], SHIPPED
    )


# HTML: generated pages, with the expected results computed without a parser

SECRETS = ("a", "b")  # refused classes
LEFT_OUT = ("nav", "script")


@dataclass
class Node:
    """An element of a generated page.

    Attributes:
        tag: its name.
        classes: its classes.
        children: elements and markers. A marker with "t" is a text, with "c" a comment."""

    tag: str
    classes: tuple[str, ...]
    children: list[Node | str] = field(default_factory=list)


@st.composite
def pages(draw: st.DrawFn) -> Node:
    """Nested elements, with a marker in each attribute, text, comment and script."""
    numbers = iter(range(10_000))
    budget = draw(st.integers(1, 15))

    def node(depth: int) -> Node:
        nonlocal budget
        tag = draw(
            st.sampled_from(
                ["div", "span", "section", "b", "nav", "script"] if depth else ["body", "main"]
            )
        )
        made = Node(tag, draw(st.sampled_from([(), (), ("a",), ("b",), ("b", "a"), ("x",)])))
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from("tttcn"))
            if kind != "n":
                made.children.append(f"{kind}{next(numbers):04}z")
            elif depth < 6 and budget and tag != "script":
                budget -= 1
                made.children.append(node(depth + 1))
        return made

    return node(0)


def html_of(node: Node, spaces: Sequence[str] = ("",)) -> str:
    """Return the HTML. `spaces` are placed around the texts in turn."""
    turn = 0

    def parts(node: Node) -> Iterator[str]:
        nonlocal turn
        own = f"m{id(node):016x}z"
        yield f'<{node.tag} class="{" ".join(node.classes)}" data-m="{own}">'
        for child in node.children:
            if isinstance(child, Node):
                yield from parts(child)
            elif child[0] == "c" and node.tag != "script":
                yield f"<!--{child}-->"
            else:
                turn += 1
                yield spaces[turn % len(spaces)] + child
        yield f"</{node.tag}>"

    return (
        "<!doctype html><!--top--><html><head><title>head</title></head>"
        + "".join(parts(node))
        + "<!--end--></html>"
    )


def nodes_of(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        if isinstance(child, Node):
            yield from nodes_of(child)


def markers_of(node: Node) -> Iterator[str]:
    for one in nodes_of(node):
        yield f"m{id(one):016x}z"
        yield from (child for child in one.children if isinstance(child, str))


def visible_text(node: Node, *, within: frozenset[int] | None = None, inside: bool = False) -> str:
    """Return the visible texts below an element; `within`: those in elements with these ids."""
    inside = inside or within is None or id(node) in within
    if node.tag in LEFT_OUT:
        return ""
    texts = (
        visible_text(one, within=within, inside=inside) if isinstance(one, Node) else one * inside
        for one in node.children
    )
    return "".join(text for text in texts if not text.startswith("c"))


@pytest.mark.requirement("MEET-5", "AIT-5")
@settings(max_examples=examples(1000), deadline=None)
@given(pages(), st.lists(st.sampled_from(["", " ", "\n ", "\t", "x"]), min_size=1, max_size=3))
def test_spans_are_exactly_the_covered_text(page: Node, spaces: list[str]) -> None:
    nodes = {
        name: frozenset(id(node) for node in nodes_of(page) if name in node.classes)
        for name in SECRETS
    }
    nodes["a, b"] = nodes["a"] | nodes["b"]
    body = content(html_of(page, [space.replace("x", "") for space in spaces]))
    elements = [", ".join(f".{name}" for name in names.split(", ")) for names in nodes]
    text, spans = text_with_spans(body, covered(body, [rule(element) for element in elements]))
    assert "".join(text.split()) == visible_text(page)
    for places, own in zip(nodes.values(), spans, strict=True):
        parts = [text[start:end] for start, end in own]
        assert "".join("".join(parts).split()) == visible_text(page, within=places)
        assert all(part and part == part.strip() for part in parts)
        assert all(end < start for (_, end), (start, _) in pairwise(own))


@pytest.mark.requirement("MEET-5", "AIT-5")
@settings(deadline=None)
@given(pages())
def test_each_element_has_its_own_span(page: Node) -> None:
    body = content(html_of(page, (" ", "")))
    for node in nodes_of(page):
        text, (spans,) = text_with_spans(body, covered(body, [rule(f"[data-m=m{id(node):016x}z]")]))
        wanted = visible_text(page, within=frozenset((id(node),)))
        assert ["".join(text[start:end].split()) for start, end in spans] == (
            [wanted] if wanted else []
        )


@pytest.mark.requirement("MEET-5", "AIT-16")
@settings(max_examples=examples(1000), deadline=None)
@given(
    pages(),
    st.sampled_from(
        [(".a",), (".b",), (".a", ".b"), (".a .b",), ("div > .a", "nav"), ("script",), (".none",)]
    ),
)
def test_nothing_of_a_covered_element_stays_and_everything_else_does(
    page: Node, elements: tuple[str, ...]
) -> None:
    body = content(html_of(page))
    said = covered(body, [rule(element) for element in elements])
    own = {f"m{id(node):016x}z": node for node in nodes_of(page)}
    gone = {
        marker
        for one in said
        for node in one.nodes
        for marker in markers_of(own[node.get("data-m")])
    }
    left = redacted(body, said, ["train"], SHIPPED).decode()
    found = re.findall(r"[tcm][0-9a-f]{4,16}z", left)
    assert found == [
        marker for marker in re.findall(r"[tcm][0-9a-f]{4,16}z", body.text) if marker not in gone
    ]
    assert left.startswith("<!DOCTYPE html>" if gone else "<!doctype html>")
    assert "<!--top-->" in left
    assert "<title>head</title>" in left
    for name in SECRETS:
        if f".{name}" in elements:
            assert not re.search(rf'class="[^"]*\b{name}\b', left)


@pytest.mark.requirement("MEET-5")
def test_the_page_itself_is_left_as_it_is() -> None:
    body = content("<!doctype html><p class=a>one<p>two")
    said = covered(body, [rule(".a")])
    for _ in range(2):
        assert (
            redacted(body, said, ["train"], SHIPPED)
            == b"<!DOCTYPE html><html><head></head><body><p>two</p></body></html>"
        )
    assert text_with_spans(body, said) == ("one\ntwo", (((0, 3),),))
    assert body.selector.css("p::text").getall() == ["one", "two"]


SPANS = [
    pytest.param("<p>one <b class=a>two</b> three", ".a", ["two"], id="inline"),
    pytest.param("<p>o<b class=a>n</b>e", ".a", ["n"], id="within a word"),
    pytest.param("<div class=a><p>one<p>two</div>three", ".a", ["one\ntwo"], id="blocks"),
    pytest.param("<div class=a> one <i class=a> two </i></div>", ".a", ["one two"], id="nested"),
    pytest.param("<i class=a>one</i><i class=a>two</i>", ".a", ["onetwo"], id="touching"),
    pytest.param("<i class=a>one</i> <i class=a>two</i>", ".a", ["one", "two"], id="side by side"),
    pytest.param("<nav class=a>menu</nav>text", ".a", [], id="not in the text"),
    pytest.param(
        "<div class=a>x<main>one</main><main>two</main></div>",
        ".a",
        ["one\ntwo"],
        id="around the main text",
    ),
    pytest.param("<main>one</main><p class=a>two", ".a", [], id="outside of the main text"),
    pytest.param("<p class=a> &nbsp; </p>x", ".a", [], id="white space alone"),
    pytest.param("<p>one<p>two", "*", ["one\ntwo"], id="the whole document"),
    pytest.param("<p>one<p>two", "p::", ["one\ntwo"], id="cannot be told"),
    pytest.param("<p>one<p>two", "p:hover", ["one", "two"], id="of any state"),
    pytest.param("<p>one<p>two", ":root", ["one\ntwo"], id="the root"),
    pytest.param("<p>one<p>two", "body", ["one\ntwo"], id="body"),
    pytest.param("", "*", [], id="no text"),
    pytest.param("<main><main class=a>one</main>two</main>", ".a", ["one"], id="main in main"),
]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(("html", "element", "parts"), one_in(2, SPANS))
def test_spans(html: str, element: str, parts: list[str]) -> None:
    body = content("<!doctype html><body>" + html)
    text, (spans,) = text_with_spans(body, covered(body, [rule(element)]))
    assert [text[start:end] for start, end in spans] == parts


def test_what_is_no_html_has_no_text() -> None:
    body = content('{"a": 1}', TYPES["json"])
    assert text_with_spans(body, covered(body, [rule("a", "json"), rule("*", "")])) == (
        "",
        ((), ()),
    )


# JSON and XML

KEYS = st.sampled_from(["a", "b", "c", "a.b", "b.c"])
VALUES = st.recursive(
    st.sampled_from(["m1", 1, 1.5, None, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def prune(value: Any, name: str) -> Any:
    """Return the document without the members that the dotted name means."""
    if isinstance(value, list):
        return [prune(one, name) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: prune(one, name.removeprefix(f"{key}.")) if name.startswith(f"{key}.") else one
        for key, one in value.items()
        if key != name
    }


@pytest.mark.requirement("AIT-5", "MEET-5")
@settings(max_examples=examples(500), deadline=None)
@given(
    VALUES,
    st.lists(st.sampled_from(["a", "b", "a.b", "b.c", "a.b.c", "c.c"]), min_size=1, max_size=3),
)
def test_members_of_json_go_and_everything_else_stays(value: Any, names: list[str]) -> None:
    wanted = value
    for name in names:
        wanted = prune(wanted, name)
    assert json.loads(without(json.dumps(value), *names, file_type="json")) == wanted


JSON = (
    b'[{"user": {"name": "N", "mail": ["m1"]}, "posts": [{"text": "t1", "id": 1}, [{"text": '
    b'"t2"}]]}, {"a.b": {"c": "d"}}]'
)


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("user", [(0, "user")]),
        ("user.mail", [(0, "user", "mail")]),
        ("posts.text", [(0, "posts", 0, "text"), (0, "posts", 1, 0, "text")]),
        ("a.b.c", [(1, "a.b", "c")]),
        ("a.b", [(1, "a.b")]),
        ("User", []),
        ("name", []),
        ("user.name.x", []),
        ("0.user", [(0, "user")]),
        ("1.user", []),
        ("posts.0", [(0, "posts", 0), (0, "posts", 1, 0)]),
        ("posts.1.text", [(0, "posts", 1, 0, "text")]),
        ("posts.1.0.text", [(0, "posts", 1, 0, "text")]),
        ("0.posts.0.text", [(0, "posts", 0, "text"), (0, "posts", 1, 0, "text")]),
        ("user.mail.0", [(0, "user", "mail", 0)]),
    ],
)
def test_names_in_json(name: str, paths: list[tuple[str | int, ...]]) -> None:
    (one,) = covered(content(JSON, TYPES["json"]), [rule(name, "json")])
    assert sorted(one.nodes) == paths
    assert not one.is_whole


@pytest.mark.requirement("AIT-5")
def test_numbers_beside_names_in_json() -> None:
    """A number is an index of an array. A name still means the members of all its objects."""
    said = covered(
        content(JSON, TYPES["json"]),
        [rule(name, "json") for name in ("posts.0", "posts.text", "posts.0.id")],
    )
    assert [sorted(one.nodes) for one in said] == [
        [(0, "posts", 0), (0, "posts", 1, 0)],
        [(0, "posts", 0, "text"), (0, "posts", 1, 0, "text")],
        [(0, "posts", 0, "id")],
    ]


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    "name", ["a/b", "'a'", "a>b", "@a", "a|b", "a::b", "a b", "dc:a", "a-b", "a\u2019b"]
)
def test_members_may_be_called_anything(name: str) -> None:
    """A name with the form of another language is a name if a member has it."""
    (one,) = covered(
        content(json.dumps({"x": {name: 1}}), TYPES["json"]), [rule(f"x.{name}", "json")]
    )
    assert (one.nodes, one.is_whole) == ((("x", name),), False)


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize("name", ["b", "a.b", "dc:a", "a b", "a-b", "it's", "a@b"])
def test_names_of_nothing_cover_nothing(name: str) -> None:
    (one,) = covered(content('{"x": 1}', TYPES["json"]), [rule(name, "json")])
    assert (one.nodes, one.is_whole) == ((), False)


@pytest.mark.requirement("AIT-5", "SEC-5")
def test_arrays_within_one_another() -> None:
    (one,) = covered(content("[" * 60 + '{"a": 1}' + "]" * 60, TYPES["json"]), [rule("a", "json")])
    assert (one.nodes, one.is_whole) == (((*[0] * 60, "a"),), False)


@pytest.mark.requirement("AIT-5")
def test_members_within_one_another() -> None:
    assert (
        without('{"a": {"b": {"c": 1}}, "d": 2}', "a", "a.b", "a.b.c", file_type="json")
        == b'{"d": 2}'
    )
    assert (
        without('{"a": {"b": {"c": 1}}, "d": 2}', "a.b.c", "a.b", file_type="json")
        == b'{"a": {}, "d": 2}'
    )


XML = """<?xml version="1.0" encoding="iso-8859-1"?><!--top--><?pi x?>
<feed xmlns="urn:f" xmlns:d="urn:d"><title>T</title><entry n="1"><title>é1</title>\
<d:by>w</d:by></entry>tail
<feed><title>F</title></feed>
<entry><title>t2</title><!--c--><x.y><z>q</z></x.y></entry></feed>""".encode("latin-1")


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("title", ["T"]),
        ("entry.title", ["é1", "t2"]),
        ("feed.entry.title", ["é1", "t2"]),
        ("feed.title", ["F", "T"]),
        ("entry.by", ["w"]),
        ("entry.d:by", ["w"]),
        ("entry.x.y.z", ["q"]),
        ("Title", []),
        ("entry.e:by", []),
        ("entry.None:title", []),
    ],
)
def test_names_in_xml(name: str, texts: list[str]) -> None:
    page = content(XML, TYPES["xml"])
    said = covered(page, [rule(name, "xml")])
    assert sorted(node.text for node in said[0].nodes) == sorted(texts)
    left = redacted(page, said, ["train"], SHIPPED).decode("latin-1")
    for text in ("T", "é1", "w", "t2", "q", "F"):
        assert (f">{text}<" in left) is (text not in texts)
    assert all(
        part in left
        for part in ("<!--top-->", "<?pi x?>", "tail", "<!--c-->", 'n="1"', "iso-8859-1")
    )


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A marker in each text, attribute, comment and CDATA section."""
    numbers = iter(range(10_000))
    parts = ["<r>"]
    tags: list[str] = []
    for _ in range(draw(st.integers(1, 20))):
        step = draw(st.sampled_from(["open", "open", "close", "text", "comment", "cdata"]))
        marker = f"m{next(numbers):04}z"
        if step == "open":
            tags.append(draw(st.sampled_from("abr")))
            parts.append(f'<{tags[-1]} x="{marker}">')
        elif step == "close" and tags:
            parts.append(f"</{tags.pop()}>")
        else:
            parts.append(
                {"comment": f"<!--{marker}-->", "cdata": f"<![CDATA[&{marker}]]>"}.get(step, marker)
            )
    return "".join([*parts, *(f"</{tag}>" for tag in reversed(tags)), "</r>"])


@pytest.mark.requirement("AIT-5", "MEET-5")
@settings(max_examples=examples(300), deadline=None)
@given(documents(), st.sampled_from(["a", "b", "a.b", "r.a", "r.r.a", "a.a.b", "r.b"]))
def test_elements_of_xml_go_and_everything_else_stays(document: str, name: str) -> None:
    wanted: list[str] = []
    path: list[str] = []
    gone = 0  # open elements that are covered
    for part in re.findall(r"</?\w+[^>]*>|m\d{4}z", document):
        if part.startswith("</"):
            gone -= gone > 0
            path.pop()
        elif part.startswith("<"):
            path.append(part[1])
            gone += gone > 0 or ".".join(path) == f"r.{name}" or ".".join(path) == name
            wanted += [] if gone else re.findall(r"m\d{4}z", part)
        elif not gone:
            wanted.append(part)
    assert re.findall(r"m\d{4}z", without(document, name, file_type="xml").decode()) == wanted


# Names and documents that are not understood

WHOLE = [
    ("html", "<p>x", "p["),
    ("html", "<p>x", "a" * 5_000),
    ("html", "<p>x" + "<b></b>" * 5_000, "* ~ " * 400 + "*"),
    ("json", '{"a": 1}', "a[0]"),
    ("json", '{"a": 1}', "$.a"),
    ("json", '{"a": 1}', "a.*"),
    ("json", '{"a": 1}', "a..b"),
    ("json", '{"a": 1}', ".".join("a" * 51)),
    ("json", '{"a": 1}', "a" * 5_000),
    ("json", '{"a": 1', "a"),
    ("json", 'f({"a": 1})', "a"),
    ("json", '{"a": 1, "a": 2}', "a"),
    ("json", '{"a": 1}', "/a"),
    ("json", '{"a": 1}', "a, b"),
    ("xml", "<r><a>x</a></r>", "/r/a"),
    ("xml", "<r><a>x</a></r>", "r/a"),
    ("xml", "<r><a b='x'/></r>", "a/@b"),
    ("xml", "<r><a b='x'/></r>", "a.@b"),
    ("xml", "<r><a>x</a></r>", "r > a"),
    ("xml", "<r><a>x</a></r>", "a|b"),
    ("xml", "<r><a>x</a></r>", "child::a"),
    ("json", '{"a": {"b": 1}}', "'a.b'"),
    ("json", '{"a": {"b": 1}}', '"a.b"'),
    ("json", '{"a": {"b": 1}}', "a/b"),
    ("json", "[" * 100_000, "a"),
    ("json", b'{"a": "\xff"}', "a"),
    pytest.param("json", "[" + ",".join(["[1]"] * 1_100_000) + "]", "a", marks=pytest.mark.slow),
    ("xml", "<r><a>x</r>", "a"),
    ("xml", "<r><a>x&nbsp;y</a></r>", "a"),
    ("xml", '<!DOCTYPE r [<!ENTITY e "x">]><r><a>&e;</a></r>', "a"),
    ("xml", '<!DOCTYPE r [<!ATTLIST a b CDATA "x">]><r><a/></r>', "a"),
    ("xml", "", "a"),
    ("xml", "<r>" + "<a/>" * 500_001 + "</r>", "a"),
]


@pytest.mark.requirement("AIT-13", "SEC-5")
@pytest.mark.parametrize(("file_type", "body", "element"), one_in(4, WHOLE), ids=range(len(WHOLE)))
def test_what_cannot_be_told_is_the_whole_document(
    file_type: str, body: str | bytes, element: str
) -> None:
    page = content(body, TYPES[file_type])
    said = covered(page, [rule(element, file_type, line=7), rule("*", file_type)])
    assert [(one.is_whole, one.nodes, bool(one.cause)) for one in said] == [
        (True, (), True),
        (True, (), False),
    ]
    assert redacted(page, said, ["train"], SHIPPED) == b""
    (finding,) = findings(said, url="https://example.com/ai.txt")
    assert (finding.rule, finding.line, finding.url) == (
        "ait.selector",
        7,
        "https://example.com/ai.txt",
    )
    assert finding.rule in RULES
    assert finding.message.isprintable()


@pytest.mark.requirement("AIT-5")
def test_longest_names() -> None:
    """They have fifty parts."""
    body: Any = 1
    for _ in range(50):
        body = {"a": body}
    for number, is_whole in ((49, False), (50, False), (51, True)):
        (one,) = covered(
            content(json.dumps(body), TYPES["json"]), [rule(".".join("a" * number), "json")]
        )
        assert (one.nodes, one.is_whole) == (() if is_whole else (("a",) * number,), is_whole)


@pytest.mark.requirement("AIT-13")
@pytest.mark.parametrize(
    ("element", "tags", "why"),
    [
        ("p", ["p"], ""),
        ("p:hover", ["p"], "is read without :hover"),
        ("p:hover > b:focus", ["b"], "is read without :focus, :hover"),
        ("i:hover", [], "is read without :hover"),
        ("html", None, ""),
        (":root", None, ""),
        (":root:hover", None, "covers the whole document: it is read without :hover"),
        (":hover", None, "covers the whole document: it is read without :hover"),
    ],
)
def test_why_a_rule_covers_more_than_it_says(
    element: str, tags: list[str] | None, why: str
) -> None:
    """`tags` are None for the whole document."""
    (one,) = covered(content("<!doctype html><p>one<b>two"), [rule(element, line=3)])
    assert ([node.tag for node in one.nodes], one.is_whole) == (tags or [], tags is None)
    assert one.cause.replace("`", "") == why
    assert [(finding.line, finding.message) for finding in findings([one])] == (
        [(3, f"`{element}` {one.cause}")] if why else []
    )


@pytest.mark.requirement("AIT-5")
def test_the_root_of_xml_is_the_document() -> None:
    said = covered(
        content("<a><b><a/></b></a>", TYPES["xml"]),
        [rule("a", "xml"), rule("a.b", "xml"), rule("b.a", "xml")],
    )
    assert [(one.is_whole, [node.tag for node in one.nodes]) for one in said] == [
        (True, []),
        (False, ["b"]),
        (False, ["a"]),
    ]


@pytest.mark.requirement("AIT-13")
@pytest.mark.parametrize(
    ("element", "is_whole"), [("item", True), ("ITEM", True), ("other", False)]
)
def test_what_is_served_as_html_and_is_none_is_searched_as_html(
    element: str, is_whole: bool
) -> None:
    """Names of elements have any case, as in browsers. Any match covers the whole document."""
    (one,) = covered(
        content('<?xml version="1.0"?><rss><Item>one</Item></rss>', "text/html"), [rule(element)]
    )
    assert (one.is_whole, one.nodes) == (is_whole, ())


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(("doctype", "number"), [("", 1), ("<!doctype html>", 0)])
def test_classes_in_any_case_where_browsers_have_quirks(doctype: str, number: int) -> None:
    (one,) = covered(content(f"{doctype}<p class=Ad>one"), [rule(".aD")])
    assert len(one.nodes) == number


@pytest.mark.requirement("AIT-13")
@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/pdf", "image/png", "application/x-ndjson"]
)
def test_of_a_document_of_another_type_the_whole_is_covered(media_type: str) -> None:
    assert without("x", "p", media_type=media_type) == b""


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("media_type", "body", "kind"),
    [
        ("text/html", "{}", "json"),
        ("text/html", "{p}", "html"),
        ("application/xhtml+xml", '<?xml version="1.0"?><html/>', "html"),
        ("application/ld+json", "{}", "json"),
        ("text/json", "{}", "json"),
        ("application/rss+xml", "<rss/>", "xml"),
        ("text/plain", "{}", "json"),
        ("text/plain", "{", ""),
        ("", ' {"a": 1}', "json"),
        ("", "[]", "json"),
        ("", '<?xml version="1.0"?><rss/>', "xml"),
        ("", '<?xml version="1.0"?><html/>', "html"),
        ("", "<p>x", "html"),
        ("", "", "html"),
    ],
)
def test_kinds(media_type: str, body: str, kind: str) -> None:
    assert content(body, media_type).kind == kind


@pytest.mark.requirement("AIT-5")
def test_xhtml_is_xml_too() -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>one</p>'
        "<h1>two</h1></body></html>"
    )
    for element, file_type in (
        ("p", "html"),
        ("body.p", "xml"),
        ("Body.P", "xml"),
        ("html.body.p", "xml"),
        ("p", ""),
    ):
        left = without(page, element, file_type=file_type, media_type="application/xhtml+xml")
        assert b"two" in left
        assert (b"one" in left) is (file_type == "xml" and element == "p")


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    "element", ["body.svg.foreignObject", "Body.SVG.foreignobject", "body.math-\u03b1"]
)
@pytest.mark.parametrize("end", ["", "</b>"], ids=["well-formed", "not well-formed"])
def test_names_of_xhtml_have_any_case(element: str, end: str) -> None:
    within = "one" if element[5:8].lower() == "svg" else "two"
    page = (
        f"<svg><foreignObject>one</foreignObject></svg><math-\u03b1>two</math-\u03b1><p>three"
        f"</p>{end}"
    )
    left = without(
        f"<html><body>{page}</body></html>",
        element,
        file_type="xml",
        media_type="application/xhtml+xml",
    ).decode()
    assert [word for word in ("one", "two", "three") if word in left] == [
        word for word in ("one", "two", "three") if word != within
    ]


def test_a_rule_of_every_type_is_read_as_the_document_asks() -> None:
    assert (
        without('{"a": {"b": 1}, "b": 2}', "a.b", file_type="", media_type=TYPES["json"])
        == b'{"a": {}, "b": 2}'
    )
    assert b"<a/>" in without(
        "<r><a><b>1</b></a></r>", "a.b", file_type="", media_type=TYPES["xml"]
    )


@pytest.mark.requirement("SEC-5", "AIT-13")
@pytest.mark.parametrize(
    "body", ["<!doctype html>" + "<i></i>" * 60_000, "<!doctype html>" + "<div>" * 2_000]
)
def test_thousands_of_rules_are_bounded(body: str) -> None:
    """Rules covered their own parts until the steps were spent, and then the whole document."""
    page = content(body)
    said = covered(page, [rule(f"* ~ [x{number}]") for number in range(5_000)])
    assert [one.is_whole for one in said] == sorted(one.is_whole for one in said)
    assert said[-1].is_whole
    assert said[-1].cause


@pytest.mark.requirement("SEC-5")
@pytest.mark.parametrize(
    ("file_type", "body", "parser"),
    [
        ("json", "[" * 1000, "document.document.Json"),
        ("xml", "<r>", "document.markup.Xml"),
        ("html", "<br>" * 200_001, "elements.coverage.Outline"),
    ],
)
def test_what_is_not_read_is_tried_once(
    file_type: str, body: str, parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once to find its kind, if its octets show it, and once for all rules."""
    tried = []
    module, _, name = parser.rpartition(".")
    known = getattr(import_module(f"comity.policies.{module}"), name)

    def count_call(*args: Any, **named: Any) -> Any:
        tried.append(known)
        return known(*args, **named)

    monkeypatch.setattr(f"comity.policies.{parser}", count_call)
    said = covered(
        content(body, TYPES[file_type]), [rule(f"a{number}", file_type) for number in range(20)]
    )
    assert all(one.is_whole and one.cause for one in said)
    assert len(tried) == (1 if file_type == "html" else 2)


# Refusals


@pytest.mark.requirement("AIT-16", "MEET-5")
@pytest.mark.parametrize("action", one_in(2, [action.lower() for action in ACTIONS]))
def test_an_action_refuses_the_use_of_its_name(action: str) -> None:
    page = content("<!doctype html><p>one<b>two")
    said = covered(page, [rule("b", "html", action)])
    assert b"two" not in redacted(page, said, [action], SHIPPED)
    assert b"two" not in redacted(page, said, ["crawl", action.upper()], SHIPPED)
    assert redacted(page, said, ["crawl"], SHIPPED) == page.body
    assert redacted(page, said, [], SHIPPED) == page.body
    assert b"two" not in redacted(page, covered(page, [rule("b", "html", "*")]), [action], SHIPPED)
    assert (
        redacted(page, covered(page, [rule("b", "html", "*")]), ["crawl", "follow"], SHIPPED)
        == page.body
    )


@pytest.mark.requirement("AIT-9")
def test_a_guide_takes_nothing_away() -> None:
    page = content("<!doctype html><p>one<b>two")
    assert (
        redacted(
            page, covered(page, [rule("b", guide=True), rule("*", guide=True)]), ["train"], SHIPPED
        )
        == page.body
    )
    both = covered(page, [rule("b", guide=True), rule("b")])
    assert b"two" not in redacted(page, both, ["train"], SHIPPED)
    assert [len(one.nodes) for one in both] == [1, 1]


@pytest.mark.requirement("AIT-7")
@pytest.mark.parametrize("use", ["crawl", "follow", "index", "train", "summarize", "made-up"])
def test_actions_that_refuse_a_use(use: str) -> None:
    """All actions together refuse every use except those of fetching."""
    actions = refusing_actions(use, SHIPPED)
    assert ("*" in actions) is (use not in ("crawl", "follow")) is refuses(["*"], use, SHIPPED)
    assert use in actions
    assert all(refuses([action], use, SHIPPED) for action in actions - {"*"})


@pytest.mark.requirement("MEET-5")
def test_the_table_of_vocabularies_relates_actions_to_uses() -> None:
    table = Vocabulary.from_toml(
        """replaces = true
[vocabulary.ai-txt.terms]
train = {}
index = {}
[[relation]]
uses = ["learn"]
kind = "within"
terms = ["ai-txt:train"]
[[relation]]
uses = ["learn"]
kind = "touches"
terms = ["ai-txt:index"]
"""
    )
    assert refuses(["train"], "learn", table)
    assert refuses(["index"], "learn", table)
    assert not refuses(["cite"], "learn", table)
    assert not refuses(["train"], "index", table)


ENCODED = [
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "windows-1252",
    "iso-8859-1",
    "shift_jis",
    "koi8-r",
]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("encoding", ENCODED)
def test_the_encoding_stays(encoding: str) -> None:
    letters = {"shift_jis": "日本", "koi8-r": "жю"}.get(encoding, "éü")
    charset = encoding.removesuffix("-sig")
    page = content(
        f"<!doctype html><p>{letters}<b>two</b>&#8364;".encode(encoding),
        f"text/html; charset={charset}",
    )
    left = redacted(page, covered(page, [rule("b")]), ["train"], SHIPPED)
    again = content(left, f"text/html; charset={charset}")
    # The decoder removes the BOM of UTF-16.
    assert left.decode(charset).count("\ufeff") == (encoding == "utf-8-sig")
    assert again.selector.xpath("string(//p)").get() == f"{letters}€"
    if encoding in ("utf-8-sig", "utf-16"):
        assert content(left, "text/html").text == again.text


def test_scripts_and_quirks_stay() -> None:
    body = '<script>if (a<b && c) d("<i>")</script><p title="x&quot;y">one<b>two</b>'
    assert without(body, "b").decode() == (
        '<html><head><script>if (a<b && c) d("<i>")</script></head><body><p title="x&quot;y">one'
        "</p></body></html>"
    )


def test_same_element_is_looked_for_once() -> None:
    page = content("<!doctype html><p>one")
    first, second = covered(page, [rule("p", line=1), rule("p", "html", "cite", line=2)])
    assert isinstance(first, Covered)
    assert first.nodes is second.nodes
    assert (first.rule.line, second.rule.line) == (1, 2)
