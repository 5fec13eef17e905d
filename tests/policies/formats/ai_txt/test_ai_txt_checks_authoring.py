"""What is wrong with an ai.txt besides its syntax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Fetched
from comity.policies.formats.ai_txt import parse, to_xml
from comity.policies.formats.ai_txt.authoring import AUTHORING
from comity.policies.formats.ai_txt.checks import check_site, check_xml
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.lines import MAX_FINDINGS

ORIGIN = "https://example.com"


def found(text: str | bytes) -> list[tuple[str, int]]:
    body = text.encode() if isinstance(text, str) else text
    files = SiteFiles(ORIGIN, {f"{ORIGIN}/ai.txt": Fetched(status=200, body=body)})
    findings = check_site(files)
    assert all(finding.url == f"{ORIGIN}/ai.txt" for finding in findings)
    return sorted((finding.rule, finding.line) for finding in findings)


def rule(*, agents: str = "*", path: str = "/ html", element: str = "p", then: str = "Disallow: Train") -> str:
    return f"User-agent: {agents}\n  Path: {path}\n    Element: {element}\n      {then}\n"


GUIDE = "Guide: Cite\n        Lang: {}\n        Guideline: Say who wrote it."

FOUND = [
    (rule(agents="GPTBot ClaudeBot gptbot"), [("ait.repeated-agent", 1)]),
    (rule(path="/a(b) html"), [("ait.path-characters", 2)]),
    (rule(path="/^a$ html"), [("ait.path-characters", 2)]),
    (rule(path="/“a” html"), [("ait.path-characters", 2)]),
    (rule(path="/a\u00a0b html"), [("ait.path-characters", 2)]),
    (rule(path="/<id>/x html"), [("ait.path-characters", 2)]),
    (rule(path="/a$b html"), [("ait.path-characters", 2)]),
    (rule(path="/feed.json html"), [("ait.extension", 2)]),
    (rule(path="/photo.jpg html"), [("ait.extension", 2)]),
    (rule(path="/a.html$ json", element="a"), [("ait.extension", 2)]),
    (rule(element="p[[["), [("ait.no-element", 3)]),
    (rule(element="p,,q"), [("ait.no-element", 3)]),
    (rule(element="p::foo"), [("ait.no-element", 3)]),
    (rule(element="p:foo"), [("ait.no-element", 3)]),
    (rule(element="a..b", path="/ json"), [("ait.no-element", 3)]),
    (rule(element="a..b", path="/ xml"), [("ait.no-element", 3)]),
    (rule(element="p:hover"), [("ait.element-part", 3)]),
    (rule(then=GUIDE.format("english")), [("ait.language-tag", 5)]),
    (rule(then=GUIDE.format("Deutsch")), [("ait.language-tag", 5)]),
    (rule(then=GUIDE.format("en-UK")), [("ait.language-tag", 5)]),
    (rule(then=GUIDE.format("jp")), [("ait.language-tag", 5)]),
    (rule(then=GUIDE.format("en_US")), [("ait.language-tag", 5)]),
    (rule(then=GUIDE.format("klingonese")), [("ait.language-tag", 5)]),
    (rule(then=f"{GUIDE.format('en')}\n        Lang: de"), [("ait.unused-language", 7)]),
    (rule(then=f"Disallow: Cite\n      {GUIDE.format('en')}"), [("ait.contradiction", 5)]),
    (rule(then="Disallow: *") + rule(agents="GPTBot", then=GUIDE.format("en")), [("ait.contradiction", 8)]),
    (rule(path="/a/ html", element="*", then="Disallow: Cite") + rule(path="/a/b/ html", then=GUIDE.format("en")), [("ait.contradiction", 8)]),
    (rule(then="Disallow: Train\n      Disallow: Cite Train"), []),
    (rule(then="Disallow: Train Cite\n      Disallow: Train"), [("ait.duplicate", 5)]),
    (rule() + rule(), [("ait.duplicate", 8)]),
    (rule(path="/ html", element="*") + rule(path="/a html"), [("ait.overruled", 8)]),
    (rule(path="/a html") + rule(path="/ html", element="*", then="Disallow: *"), [("ait.overruled", 4)]),
    ("Disallow: *.jpg\n" + rule(), [("ait.mixture", 1)]),
    ("# Guidelines\n\nPlease be kind.\n", [("ait.unread", 0)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "findings"), FOUND)
def test_what_cannot_be_meant_is_found_with_its_line(text: str, findings: list[tuple[str, int]]) -> None:
    assert found(text) == findings


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "User-Agent: *\nDisallow: *.jpg\nAllow: /\n",
        rule(agents="GPTBot ClaudeBot"),
        rule(path="/a_b-c~d/%41:@&.html html", element="article > p:not(.free), .price"),
        rule(path="/api/v1.2 json", element="author.email"),
        rule(path="/a.xhtml xml", element="a.b"),
        rule(path="/ json", element="*"),
        rule(then=GUIDE.format("en-US")),
        rule(then=GUIDE.format("zh-Hans")),
        rule(then=GUIDE.format("yue")),
        rule(then=GUIDE.format("de") + "\n        Lang: en\n        Guideline: a\n        Guideline: b"),
        rule() + rule(agents="GPTBot", then="Disallow: Cite"),
        rule(path="/a html", element="*") + rule(path="/ab html"),
        rule(path="/a html", element="*") + rule(path="/a json", element="p"),
        rule(agents="GPTBot", element="*") + rule(agents="ClaudeBot"),
        rule(agents="GPTBot") + rule(then="Guide: Train\n        Lang: en\n        Guideline: x"),
    ],
)  # fmt: skip
def test_what_can_be_meant_is_left_alone(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(("text", "findings"), FOUND)
def test_the_xml_form_is_checked_likewise(text: str, findings: list[tuple[str, int]]) -> None:
    rules = {each for each, _ in findings if each not in ("ait.mixture", "ait.unread", "ait.unused-language")}
    of_values = {"ait.repeated-agent", "ait.path-characters", "ait.language-tag"}  # which are read and written anew
    ai_txt = parse(text.encode())
    if ai_txt.rules:
        assert rules - of_values <= {finding.rule for finding in check_xml(to_xml(ai_txt), "ai.xml")}


def test_a_document_without_rules_is_said_to_have_none() -> None:
    assert {finding.rule for finding in check_xml(b"<ai-txt/>", "u")} == {"ait.unread"}
    assert {finding.rule for finding in check_xml(b"<ai-txt", "u")} == {"ait.unread", "ait.format"}


def test_an_xml_form_is_known_by_its_root() -> None:
    (kind,) = AUTHORING.kinds
    assert kind.is_meant("x", b"<?xml version='1.0'?>\n<!-- a -- b --><ai-txt>")
    assert kind.is_meant("x", to_xml(parse(rule().encode())))
    assert not kind.is_meant("x", b"<rsl/>")
    assert not kind.is_meant("ai.txt", rule().encode())


@given(st.text(alphabet="UPEDGLus.-*/#: \n\tagent:Path/Element:Disallow:Guide:Lang:TrainCite[],", max_size=300))
def test_nothing_raises(text: str) -> None:
    found(text)
    check_xml(text.encode(), "u")


def test_findings_of_each_rule_are_bounded() -> None:
    text = "User-agent: a\n  Path: / html\n" + "    Element: p[[[\n      Disallow: Train\n" * 3000
    findings = found(text)
    assert 0 < len(findings) <= 3 * (MAX_FINDINGS + 1)
