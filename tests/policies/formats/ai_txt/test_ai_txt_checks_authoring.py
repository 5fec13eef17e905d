"""Checks of an ai.txt beyond its syntax, and fixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Fetched
from comity.policies.answers.rule import RULES, Severity
from comity.policies.formats.ai_txt import FORMAT as AI_TXT
from comity.policies.formats.ai_txt import parse, to_xml
from comity.policies.formats.ai_txt.authoring import AUTHORING
from comity.policies.formats.ai_txt.checks import check_site, check_xml
from comity.policies.formats.ai_txt.file import AiFile
from comity.policies.formats.authoring import apply
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.lines import MAX_FINDINGS
from tests.policies.formats.mending import apply_fixes, findings_of, fixes_of, site_of
from tests.selection import one_in

ORIGIN = "https://example.com"


def rules_in(text: str | bytes) -> list[tuple[str, int]]:
    body = text.encode() if isinstance(text, str) else text
    files = SiteFiles(ORIGIN, {f"{ORIGIN}/ai.txt": Fetched(status=200, body=body)})
    findings = check_site(files)
    assert all(finding.url == f"{ORIGIN}/ai.txt" for finding in findings)
    return sorted((finding.rule, finding.line) for finding in findings)


def rule(
    *, agents: str = "*", path: str = "/ html", element: str = "p", then: str = "Disallow: Train"
) -> str:
    return f"User-agent: {agents}\n  Path: {path}\n    Element: {element}\n      {then}\n"


GUIDE = "Guide: Cite\n        Lang: {}\n        Guideline: Say who wrote it."

WHOLE = rule(path="/a/ html", element="*", then="Disallow: Cite")

FOUND = [
    (rule(agents="GPTBot ClaudeBot gptbot"), [("ait.repeated-agent", 1)]),
    (rule(agents="Google-Extended GPTBot"), [("ait.grammar", 1)]),
    (rule(agents="GPTBot ai.bot"), [("ait.grammar", 1)]),
    (rule(path="/ü html"), [("ait.grammar", 2)]),
    (rule(then="Disallow: Train, Index"), [("ait.grammar", 4)]),
    (rule(path="/a(b) html"), [("ait.grammar", 2)]),
    (rule(path="/a;b,c=d html"), [("ait.grammar", 2)]),
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
    (rule(then="Disallow: *") + rule(agents="GPTBot", then=GUIDE.format("en")),
     [("ait.contradiction", 8)]),
    (WHOLE + rule(path="/a/b/ html", then=GUIDE.format("en")), [("ait.contradiction", 8)]),
    (rule(then="Disallow: Train\n      Disallow: Cite Train"), []),
    (rule(then="Disallow: Train Cite\n      Disallow: Train"), [("ait.duplicate", 5)]),
    (rule() + rule(), [("ait.duplicate", 8)]),
    (rule(path="/ html", element="*") + rule(path="/a html"), [("ait.overruled", 8)]),
    (rule(path="/a html") + rule(path="/ html", element="*", then="Disallow: *"), [("ait.overruled",
     4)]),
    ("Disallow: *.jpg\n" + rule(), [("ait.mixture", 1)]),
    ("# Guidelines\n\nPlease be kind.\n", [("ait.unread", 0)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "findings"), one_in(3, FOUND))
def test_what_cannot_be_meant_is_found_with_its_line(
    text: str, findings: list[tuple[str, int]]
) -> None:
    assert rules_in(text) == findings


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "User-Agent: *\nDisallow: *.jpg\nAllow: /\n",
        rule(agents="GPTBot ClaudeBot"),
        rule(path="/a_b-c~d/%41:@&.html html", element="article > p:not(.free), .price"),
        rule(agents="GPT_Bot", path="/a~b"),
        rule(path="/a/*.html$ html"),
        rule(path="/api/v1.2 json", element="author.email"),
        rule(path="/a.xhtml xml", element="a.b"),
        rule(path="/ json", element="*"),
        rule(then=GUIDE.format("en-US")),
        rule(then=GUIDE.format("zh-Hans")),
        rule(then=GUIDE.format("yue")),
        rule(then=GUIDE.format("de") + "\n        Lang: en\n        Guideline: a\n"
            "        Guideline: b"),
        rule() + rule(agents="GPTBot", then="Disallow: Cite"),
        rule(path="/a html", element="*") + rule(path="/ab html"),
        rule(path="/a html", element="*") + rule(path="/a json", element="p"),
        rule(agents="GPTBot", element="*") + rule(agents="ClaudeBot"),
        rule(agents="GPTBot") + rule(then="Guide: Train\n        Lang: en\n        Guideline: x"),
    ],
)  # fmt: skip
def test_what_can_be_meant_is_left_alone(text: str) -> None:
    assert rules_in(text) == []


@pytest.mark.parametrize(("text", "findings"), one_in(3, FOUND))
def test_the_xml_form_is_checked_likewise(text: str, findings: list[tuple[str, int]]) -> None:
    rules = {
        each
        for each, _ in findings
        if each not in ("ait.mixture", "ait.unread", "ait.unused-language")
    }
    # which are read and written anew
    of_values = {
        "ait.repeated-agent",
        "ait.grammar",
        "ait.path-characters",
        "ait.language-tag",
    }
    ai_txt = parse(text.encode())
    if ai_txt.rules:
        assert rules - of_values <= {
            finding.rule for finding in check_xml(to_xml(ai_txt), "ai.xml")
        }


@pytest.mark.requirement("AIT-3", "AIT-4", "IDE-4")
def test_a_character_outside_the_grammar_is_a_note_and_no_advice_narrows_a_path() -> None:
    messages = {}
    for path in ("/ü", "/a;b", "/a=b", "/a(b"):
        (finding,) = check_site(site_of("/ai.txt", rule(path=f"{path} html").encode()))
        messages[path] = finding.message
    assert RULES["ait.grammar"].severity is Severity.INFO
    assert messages["/ü"].endswith("Write `%C3%BC`, which is the same path.")
    # The escape of such a character is another path, which covers less.
    assert all("%" not in messages[path] for path in ("/a;b", "/a=b", "/a(b"))


def test_an_action_is_told_as_it_can_be_shown() -> None:
    text = rule(
        then="Disallow: \u202ex{}y\n      Guide: \u202ex{}y\n        Lang: en\n        Guideline: a"
    )
    [finding] = [
        finding
        for finding in check_site(site_of("/ai.txt", text.encode()))
        if finding.rule == "ait.contradiction"
    ]
    assert finding.message.startswith("This Guide has no effect for \ufffdx{}y: line 4 ")


def test_a_comment_behind_slashes_is_told_with_its_sign() -> None:
    [finding] = parse(f"// ours: all\n{rule()}".encode()).findings
    assert (finding.rule, finding.message) == (
        "ait.keyword",
        "`// ours` is not a keyword. Begin a comment with `#`.",
    )


def test_a_document_without_rules_is_said_to_have_none() -> None:
    assert {finding.rule for finding in check_xml(b"<ai-txt/>", "u")} == {"ait.unread"}
    assert {finding.rule for finding in check_xml(b"<ai-txt", "u")} == {"ait.unread", "ait.format"}


def test_an_xml_form_is_known_by_its_root() -> None:
    (kind,) = AUTHORING.kinds
    assert kind.is_meant("x", b"<?xml version='1.0'?>\n<!-- a -- b --><ai-txt>")
    assert kind.is_meant("x", to_xml(parse(rule().encode())))
    assert not kind.is_meant("x", b"<rsl/>")
    assert not kind.is_meant("ai.txt", rule().encode())


@given(
    st.text(
        alphabet="UPEDGLus.-*/#: \n\tagent:Path/Element:Disallow:Guide:Lang:TrainCite[],",
        max_size=300,
    )
)
def test_nothing_raises(text: str) -> None:
    rules_in(text)
    check_xml(text.encode(), "u")


def test_findings_of_each_rule_are_bounded() -> None:
    text = "User-agent: a\n  Path: / html\n" + "    Element: p[[[\n      Disallow: Train\n" * 3000
    findings = rules_in(text)
    assert 0 < len(findings) <= 3 * (MAX_FINDINGS + 1)


# Fixes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user-agent: *\nPath: / html\n element p\n\tDissallow: Train\n", rule()),
        (rule(agents="a, A b"), rule(agents="a b")),
        (rule(path="/a html # ours"), rule(path="/a html").replace("  Path", "  # ours\n  Path")),
        (rule(then=GUIDE.format("en_GB")), rule(then=GUIDE.format("en-GB"))),
        (rule(then="Disallow: Train\n      Disallow: train"), rule()),
        (f"// ours\n{rule()}  //\n", f"# ours\n{rule()}  #\n"),
        (rule(path="/ü/日;b html"), rule(path="/%C3%BC/%E6%97%A5;b html")),
        (rule(path="/ html # x").replace("\n", "\r\n"), rule().replace("  Path",
         "  # x\n  Path").replace("\n", "\r\n")),
        # No safe fix.
        ("Disallow: *\nuser-agent: *\n  Path: /a html\n    Element: p\n      Disallow: Train\n",
         None),
        (rule() + rule(), None),
        (rule(then=GUIDE.format("english")), None),
    ],
)  # fmt: skip
def test_what_is_safe_is_mended(text: str, expected: str | None) -> None:
    body = text.encode()
    once = apply_fixes(AI_TXT, "/ai.txt", body)
    twice = apply_fixes(AI_TXT, "/ai.txt", once)
    assert twice.decode() == (text if expected is None else expected)


_INDENTED = st.sampled_from(["", " ", "  ", "    ", "      ", "        ", "\t", "\t\t", "\u00a0 "])
_WRITTEN = """
User-agent: *|user-agent: a, A b|useragent GPTBot # x|Path: /a html|path /b json # y
Path: /a(b) x|Path: /ü|Element: p|element p|Element: .a # b|Element a|Element:|Disallow: Train
Disallow: *|Dissallow Train Cite|disallow: /x|Disallow *|Disallow: *.jpg|Allow: /|Guide: Cite
Guide cite # z|Lang: en_US|Lang de|Lang: english|Guideline: Be # kind|guideline: x|# note|// note
nonsense|
"""
_LINES = st.sampled_from(_WRITTEN.strip("\n").replace("\n", "|").split("|"))
FILES = st.lists(st.tuples(_INDENTED, _LINES).map("".join), max_size=14)


def meaning(body: bytes) -> tuple[object, object]:
    file = AiFile(f"{ORIGIN}/ai.txt", Fetched(status=200, body=body))
    assert file.elements
    assert file.spawning
    rules = {
        (
            frozenset(map(str.lower, each.agents)),
            each.path,
            each.file_type,
            each.element,
            each.verdict,
            action,
            each.guidelines,
        )
        for each in file.elements.rules
        for action in each.actions
    }
    patterns = [
        (pattern.verdict, pattern.text, pattern.group) for pattern in file.spawning.patterns
    ]
    return rules, patterns


@given(FILES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_fixes_change_no_rule_and_mend_what_they_are_for(lines: list[str], end: str) -> None:
    body = (
        end.join(
            ["User-agent: *", "  Path: /a html", "    Element: p", "      Disallow: Train", *lines]
        )
        + end
    ).encode()
    for finding, fix in fixes_of(AI_TXT, "/ai.txt", body):
        once, made = apply(body, [fix])
        assert made == (fix,)
        assert meaning(once) == meaning(body), fix
        before, after = (
            [each.rule for each in findings_of(AI_TXT, "/ai.txt", of)] for of in (body, once)
        )
        assert after.count(finding.rule) < before.count(finding.rule)
    states = [body]
    while (again := apply_fixes(AI_TXT, "/ai.txt", states[-1])) != states[-1]:
        assert meaning(again) == meaning(body)
        states.append(again)
        assert len(states) < 5  # a mended line may turn out to repeat another
