"""Both parsers of HTML build the tree of the standard, and the same one.

The tests of trees are those of html5lib (https://github.com/html5lib/html5lib-tests), as the source
distribution of tinyhtml5 has them: `make .venv/ready-to-test` downloads it."""

from __future__ import annotations

import random
import re
import sys
import tarfile
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.gate.options import Options
from comity.gate.settings import PlainSettings
from comity.policies import Agent, PolicyError, Site, Verdict
from comity.policies.document import html
from comity.policies.document.document import Content
from comity.policies.document.html import tinyhtml5_tree, turbohtml_tree
from comity.policies.document.html.tinyhtml5_nodes import COMMENT, DOCTYPE, HTML, TEXT, Node
from comity.policies.document.html.tinyhtml5_parser import SVG, Parser
from comity.policies.document.html.tree import HtmlTree, MarkupTag, UnreadError
from comity.policies.document.markup import Html
from comity.policies.document.nofollow import rel_nofollow
from tests.fuzz.targets import TARGETS
from tests.selection import examples, one_in

D = "<!doctype html>"
TREES: dict[str, Callable[[str], HtmlTree]] = {
    "turbohtml": turbohtml_tree.Tree,
    "tinyhtml5": tinyhtml5_tree.Tree,
}
each_parser = pytest.mark.parametrize("parser", TREES)


@pytest.fixture(scope="module", autouse=True)
def parser() -> str:
    """Replace the fixture of the folder: each test chooses its parser."""
    return "turbohtml"


# The tests of html5lib

HEADINGS = ("data", "errors", "new-errors", "document-fragment", "script-off", "script-on")


@cache
def tree_tests() -> list[tuple[str, str]]:
    """Return each text, and the tree with scripting that the tests expect of it."""
    folder = Path(sys.prefix, "tree-tests")
    (archive,) = folder.glob("tinyhtml5-*.tar.gz")
    found: list[tuple[str, str]] = []
    with tarfile.open(archive) as opened:
        for member in opened:
            if "/tree-construction/" in member.name and member.name.endswith(".dat"):
                file = opened.extractfile(member)
                assert file is not None
                found += cases(file.read().decode("utf-8"))
    return found


def cases(text: str) -> Iterator[tuple[str, str]]:
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in [*text.split("\n"), "#data"]:
        if line == "#data" and parts:
            if not parts.keys() & {"document-fragment", "script-off"}:
                yield "\n".join(parts["data"]), "\n".join(parts["document"]).rstrip("\n")
            parts = {}
        if line[:1] == "#" and line[1:] in (*HEADINGS, "document"):
            lines = parts.setdefault(line[1:], [])
        else:
            lines.append(line)


def line_of(name: str, identifiers: tuple[str | None, ...]) -> str:
    public, system = (identifier or "" for identifier in identifiers)
    return f"<!DOCTYPE {name}" + (f' "{public}" "{system}">' if public or system else ">")


def attribute_lines(attributes: dict[str, str], *, is_foreign: bool) -> list[str]:
    spaced = {"xlink", "xml", "xmlns"} if is_foreign else set()
    return sorted(
        f'  {name.replace(":", " ") if name.split(":")[0] in spaced else name}="{value}"'
        for name, value in attributes.items()
    )


def turbohtml_lines(node: Any, indent: str = "| ") -> Iterator[str]:
    for child in node.children:
        if isinstance(child, turbohtml.Doctype):
            yield indent + line_of(child.name or "", (child.public_id, child.system_id))
        elif isinstance(child, turbohtml.Comment):
            yield f"{indent}<!-- {child.data} -->"
        elif isinstance(child, turbohtml.Text):
            yield f'{indent}"{child.data}"'
        elif isinstance(child, turbohtml.DocumentFragment):  # of a `template`
            yield f"{indent}content"
            yield from turbohtml_lines(child, indent + "  ")
        elif isinstance(child, turbohtml.Element):
            spaces = turbohtml.Namespace
            prefix = {spaces.SVG: "svg ", spaces.MATHML: "math "}.get(child.namespace, "")
            yield f"{indent}<{prefix}{child.tag}>"
            attributes = {name: child.attr(name) or "" for name in child.attrs}
            for line in attribute_lines(attributes, is_foreign=bool(prefix)):
                yield indent + line
            yield from turbohtml_lines(child, indent + "  ")


def tinyhtml5_lines(node: Node, indent: str = "| ") -> Iterator[str]:
    child = node.first
    while child:
        text = "".join(child.parts)
        if child.local == DOCTYPE:
            identifiers = (child.attributes.get("publicId"), child.attributes.get("systemId"))
            yield indent + line_of(text, identifiers)
        elif child.local == COMMENT:
            yield f"{indent}<!-- {text} -->"
        elif child.local == TEXT:
            yield f'{indent}"{text}"'
        else:
            prefix = {HTML: "", SVG: "svg "}.get(child.namespace, "math ")
            yield f"{indent}<{prefix}{child.local}>"
            for line in attribute_lines(child.attributes, is_foreign=bool(prefix)):
                yield indent + line
            inner = indent + "  "
            if child.name == "template":
                yield f"{inner}content"
                inner += "  "
            yield from tinyhtml5_lines(child, inner)
        child = child.after


def built_by(parser: str, text: str) -> str:
    if parser == "tinyhtml5":
        return "\n".join(
            tinyhtml5_lines(Parser(text.replace("\r\n", "\n").replace("\r", "\n")).read())
        )
    document = turbohtml.parse(text, scripting=True, allow_declarative_shadow_roots=False)
    return "\n".join(turbohtml_lines(document))


@pytest.mark.requirement("AIT-5")
@each_parser
def test_the_trees_are_those_of_html5lib(parser: str) -> None:
    tests = tree_tests()
    assert len(tests) > 1500
    differing = [text for text, tree in tests if built_by(parser, text) != tree]
    unexpected = [
        text
        for text in differing
        if not text.startswith("<?") and not re.search("<select>|xml:baaah", text)
    ]
    assert unexpected == []
    assert len(differing) <= 20


# Two trees at once


class Both:
    """The trees of both parsers, which must be equal in everything that comity sees of them."""

    count = 0

    def __init__(self, text: str) -> None:
        Both.count += 1
        self.text = text
        self.trees = [tree(text) for tree in TREES.values()]

    def same(self, read: Callable[[HtmlTree], Any], view: Callable[[Any], Any] = repr) -> Any:
        ours, theirs = map(read, self.trees)
        assert view(ours) == view(theirs), self.text
        return ours

    @property
    def is_quirky(self) -> bool:
        return bool(self.same(lambda tree: tree.is_quirky))

    def tags(self, *names: str) -> Iterator[MarkupTag]:
        def view(tags: list[MarkupTag]) -> list[Any]:
            # Lines count for statements. turbohtml has none for the copies of an `a`.
            return [tag if tag.name in ("meta", "link", "script") else tag[:3] for tag in tags]

        return iter(self.same(lambda tree: [*tree.tags(*names)], view))

    def as_xml(self) -> str:
        return str(self.same(lambda tree: tree.as_xml(), nodes_of))

    def without(self, positions: Collection[int]) -> str:
        notes = re.compile(r"<!--.*?-->|<\?.*?>", re.DOTALL)
        return str(
            self.same(lambda tree: tree.without(positions), lambda text: notes.sub("!", text))
        )


def nodes_of(xml: str) -> list[Any]:
    """Return the nodes of the tree that lxml builds. Comments are equal to all others."""
    parser = etree.XMLParser(recover=True, huge_tree=True, resolve_entities=False)
    root = etree.fromstring(xml.encode("utf-8", "replace"), parser)
    return [
        (event, node.tag.rpartition("}")[2], sorted(node.attrib.items()), node.text, node.tail)
        if isinstance(node.tag, str)
        else ("comment", node.tail)
        for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    ]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> type[Both]:
    monkeypatch.setattr("comity.policies.document.markup.parse", Both)
    monkeypatch.setattr(Both, "count", 0)
    return Both


NAMES = [
    "a",
    "b",
    "p",
    "i",
    "div",
    "table",
    "tr",
    "td",
    "th",
    "tbody",
    "thead",
    "caption",
    "colgroup",
    "col",
    "ul",
    "li",
    "dl",
    "dt",
    "dd",
    "select",
    "option",
    "optgroup",
    "hr",
    "input",
    "svg",
    "math",
    "g",
    "mi",
    "annotation-xml",
    "desc",
    "foreignObject",
    "title",
    "template",
    "script",
    "style",
    "textarea",
    "noscript",
    "form",
    "h1",
    "h2",
    "body",
    "html",
    "head",
    "frame",
    "noframes",
    "pre",
    "listing",
    "plaintext",
    "button",
    "nobr",
    "font",
    "em",
    "object",
    "ruby",
    "rb",
    "rt",
    "rp",
    "rtc",
    "image",
    "img",
    "br",
    "meta",
    "link",
    "base",
    "span",
    "section",
    "search",
    "dialog",
    "keygen",
    "iframe",
    "xmp",
    "noembed",
    "video",
]
PIECES = [
    *(f"<{name}>" for name in NAMES),
    *(f"</{name}>" for name in NAMES),
    *("<p/>", "<svg/>", "<path/>", "</br>", "<p class='a b' id=i>", "<svg xlink:href=x>", "<!--"),
    *("-->", "<!-- c -->", "x", " ", "\n", "\r\n", "&amp;", "&#12;", "&notit;", "&#0;"),
    *("&#x80;", "&#13;", "&#10;", "&unknown;", "&lt", "<", ">", "<o:p>", "<a:b:c xmlns:a=x>"),
    *('<p"q @click=1>', "<p xmlns=z>", "\u0085", "]]>", "<![CDATA[x]]>", "<?php x ?>", "<b id=1>"),
    *(
        "<font color=a>",
        "<input type=hidden>",
        "<a href=x>",
        "<meta name=a\ncontent=b>",
        "<b id=2>",
    ),
    *("<annotation-xml encoding='text/html'>", "<svg viewbox=1 contentscripttype=2>", D),
    *("<script type=x>\nvar a</script>", "<template shadowrootmode=open>", "\ud800", "&#55296;"),
]
DOCTYPES = [
    *(
        D,
        "",
        "<!doctype>",
        "<!doctype html system x>",
        "<!doctype html SYSTEM 'about:x'>",
        "\ufeff",
    ),
    '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" "http://x">',
    "<!DOCTYPE html PUBLIC '-//W3C//DTD HTML 4.01 Transitional//EN'>",
    "<!doctype html public '-//w3c//dtd html 3.2//'>",
]


@pytest.mark.requirement("AIT-5", "META-1", "SEC-5")
@settings(max_examples=examples(5000), deadline=None)
@given(
    st.sampled_from(DOCTYPES),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=40),
    st.lists(st.integers(min_value=1, max_value=40), max_size=3),
)
def test_both_build_the_same_tree(doctype: str, text: str, gone: list[int]) -> None:
    page = Html(doctype + text)
    tree = page.__dict__["_tree"] = Both(page._text)
    page.tags(*NAMES)
    assert page.is_quirky in (True, False)
    elements = [*page.root.iter("*")]
    tree.without({place for place in gone if place < len(elements)})
    assert not page.is_unread


@pytest.mark.requirement("AIT-5", "SEC-5")
@pytest.mark.parametrize("target", ["page", "redaction"])
def test_pages_of_the_fuzzer_have_the_same_trees(both: type[Both], target: str) -> None:
    choices = random.Random(target)
    for _ in range(examples(800)):
        TARGETS[target](choices.randbytes(choices.randrange(20, 200)))
    assert both.count > 10


# What only one of them reads

# HTML, and what the standard builds of it: turbohtml 1.15 does not.
OF_TINYHTML5 = [
    ("<p><b></p><source>", "<p><b></b></p><source>"),
    ("<p><b></p><param>", "<p><b></b></p><param>"),
    ("<p><b></p><track>", "<p><b></b></p><track>"),
    ("<p><b></p>\0", "<p><b></b></p>"),
    (
        "<p><template><th><tbody><select><tbody><b>",
        "<p><template><th></th><select><b></b></select></template></p>",
    ),
    ("<a><template><frameset>", "<a><template></template></a>"),
]
OF_TURBOHTML = [
    (
        "<select><selectedcontent></selectedcontent><option selected>b</select>",
        '<select><selectedcontent>b</selectedcontent><option selected="">b</option></select>',
    )
]


@pytest.mark.parametrize(("text", "built"), OF_TINYHTML5 + OF_TURBOHTML)
def test_a_known_difference(text: str, built: str) -> None:
    """If this test fails, docs/dependencies.md may have one difference less."""
    trees = {name: tree(D + text).without(()) for name, tree in TREES.items()}
    right = f"<!DOCTYPE html><html><head></head><body>{built}</body></html>"
    is_tiny = (text, built) in OF_TINYHTML5
    assert trees["tinyhtml5" if is_tiny else "turbohtml"] == right
    assert trees["turbohtml" if is_tiny else "tinyhtml5"] != right


# Hostile pages

SIZE = 100_000


def repeated(unit: str) -> str:
    return unit * (SIZE // len(unit))


# Read to the end, in a time that grows with the page. Its square would take minutes.
READ = [
    f'<a b="{repeated("&amp;")}">',
    f"<a b={repeated(chr(39))}>",
    f"<a {repeated('b1')}>",
    f"<{repeated('b1')}>",
    f"<!--{repeated('-a')}",
    f"<!--{repeated(chr(0) + '-')}",
    f"<title></{repeated('a')}",
    f"<script><!--<{repeated('a')}",
    f"<script><!--<script></{repeated('a')}",
    f"&#{repeated('1')};",
    f"&#x{repeated('f')}",
    f"&{repeated('a')}",
    *map(repeated, ("&amp", "&notit", "<", "\0", "\ud800", "<?a>", "</p>", "<li>")),
    *map(repeated, ("<template></template>", "<body a=1>", "<form>", "<table>a</table>")),
    f"<svg>{repeated('<![CDATA[]]>')}",
    f"<table>{repeated('a<tr>')}",
]
# More than 512 open elements, 1,000 attributes or 10,000 characters of a doctype.
UNREAD = [
    *map(repeated, ("<div>", "<b><i>", "<table><tr><td>", "<svg>", "<template>", "<a><b>")),
    *map(repeated, ("<select><optgroup>", "<object>", "<ruby><rt>", "<noscript>")),
    "".join(f"<p><font a={number}>x</p>" for number in range(5_000)),
    f"<a {repeated('b ')}>",
    f"</a {repeated('b ')}>",
    f"<!doctype {repeated('a')}>",
]
LAST = "<meta name=robots content=noindex>"


@pytest.mark.requirement("SEC-5")
@each_parser
@pytest.mark.parametrize("text", one_in(2, READ), ids=range(len(READ)))
def test_a_hostile_page_is_read(
    parser: str, text: str, monkeypatch: pytest.MonkeyPatch, *, in_full: bool
) -> None:
    monkeypatch.setattr(html, "_chosen", [parser])
    page = Html(text if in_full else text[: SIZE // 8])
    assert len([*page.tags("a", "meta")]) <= SIZE
    assert len([*page.root.iter("*")]) <= SIZE
    assert page.without((), "utf-8")
    assert not page.is_unread


@pytest.mark.requirement("SEC-5")
@pytest.mark.parametrize("text", one_in(4, UNREAD), ids=range(len(UNREAD)))
def test_tinyhtml5_does_not_read_a_page_that_costs_too_much(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "_chosen", ["tinyhtml5"])
    page = Html(text + "<p class=last>")
    assert len([*page.root.iter("*")]) == 3
    assert page.is_unread


@pytest.mark.requirement("SEC-5")
def test_turbohtml_does_not_read_a_page_that_grows() -> None:
    """Each paragraph opens all 512 `font` elements again: a hundred times as many as letters."""
    page = Html("".join(f"<p><font a={number}>x</p>" for number in range(2_000)))
    assert len([*page.root.iter("*")]) == 3
    assert page.is_unread


def test_a_long_page_is_unread_by_tinyhtml5() -> None:
    assert [*tinyhtml5_tree.Tree("a" * tinyhtml5_tree.MAX_CHARACTERS).tags("p")] == []
    with pytest.raises(UnreadError):
        [*tinyhtml5_tree.Tree("a" * tinyhtml5_tree.MAX_CHARACTERS + "a").tags("p")]


@pytest.mark.requirement("SEC-5")
@each_parser
def test_the_text_of_a_page_opens_no_file(parser: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("<p>secret", "utf-8")
    assert "secret" not in TREES[parser](str(path)).without(())


# Unread pages permit nothing

HTML_FIELD = (b"Content-Type", b"text/html")
DEEP = f"{D}<meta name=robots content=index>{'<div>' * 600}<a href='/b?c&amp;d'>x</a>{LAST}"
RULED = {
    "/robots.txt": b"User-agent: *\nAllow: /\n",
    "/ai.txt": b"User-agent: *\n  Path: / html\n    Element: p.a\n      Disallow: Train\n",
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_chosen", ["tinyhtml5"])


def page_of(body: str, files: dict[str, bytes]) -> Any:
    agent = Agent("examplebot", uses=("index", "train", "follow"))
    site = Site.from_files("https://example.com", files)
    return site.page(agent, "https://example.com/a", headers=[HTML_FIELD], body=body.encode())


@pytest.mark.usefixtures("tiny")
@pytest.mark.requirement("SEC-5", "META-1")
@pytest.mark.parametrize("files", [{}, RULED], ids=["plain", "ruled"])
def test_an_unread_page_permits_nothing(files: dict[str, bytes]) -> None:
    page = page_of(DEEP, files)
    assert {one.verdict for use, one in page.uses.items() if use != "crawl"} == {Verdict.DENY}
    (reason, *_) = page.uses["index"].reasons
    assert reason.rule == "comity.unread"
    assert page.tag_of({"text": "x"}, {})["uses"]["train"]["verdict"] == "deny"


@pytest.mark.usefixtures("tiny")
@pytest.mark.requirement("AIT-13", "MEET-5")
def test_a_rule_covers_the_whole_of_an_unread_page() -> None:
    assert page_of(f"{D}{'<div>' * 600}<p class=a>x", RULED).redacted(("train",)) == b""


@pytest.mark.usefixtures("tiny")
def test_no_link_of_an_unread_page_is_followed_if_it_mentions_nofollow() -> None:
    links = f"<a rel=nofollow href=/a>x</a>{DEEP}<A HREF = \"/e\"><a href='&#{'1' * 5000};'>"
    content = Content([HTML_FIELD], links.encode())
    assert rel_nofollow(content, "https://example.com/") >= {
        *("https://example.com/a", "https://example.com/b?c=&d=", "https://example.com/e")
    }


# The choice


@pytest.fixture
def unchosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(html, "_chosen", ["auto"])
    html._tree_of.cache_clear()
    yield
    html._tree_of.cache_clear()


def chosen() -> str:
    return type(html.parse("")).__module__.rpartition(".")[2]


@pytest.mark.usefixtures("unchosen")
def test_the_parser_is_chosen_by_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMITY_HTML_PARSER", raising=False)
    assert chosen() == "turbohtml_tree"
    Options.from_settings(PlainSettings({"COMITY_HTML_PARSER": "tinyhtml5"}))
    assert chosen() == "tinyhtml5_tree"
    Options.from_settings(PlainSettings({}))  # it leaves the choice
    assert chosen() == "tinyhtml5_tree"
    with pytest.raises(PolicyError, match=r"COMITY_HTML_PARSER.*lxml.*tinyhtml5"):
        Options.from_settings(PlainSettings({"COMITY_HTML_PARSER": "lxml"}))


@pytest.mark.usefixtures("unchosen")
def test_the_parser_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMITY_HTML_PARSER", "tinyhtml5")
    assert chosen() == "tinyhtml5_tree"
    html._tree_of.cache_clear()
    monkeypatch.setenv("COMITY_HTML_PARSER", "lxml")
    with pytest.raises(PolicyError, match="'lxml' is no parser of HTML: write auto, turbohtml or"):
        html.parse("")


@pytest.mark.usefixtures("unchosen")
def test_the_parser_is_chosen_by_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMITY_HTML_PARSER", raising=False)
    monkeypatch.setattr(html, "find_spec", lambda name: name == "tinyhtml5" or None)
    assert chosen() == "tinyhtml5_tree"
    with pytest.raises(PolicyError, match="turbohtml is not installed"):
        html.choose("turbohtml")
