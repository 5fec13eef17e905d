"""The blocks of ai.txt as in figures 3 to 8 of the paper, and the reading of well-formed files."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from comity.policies import Verdict
from comity.policies.answers.element_rule import (
    ACTIONS,
    ElementRule,
    Guideline,
    display_names,
    of_action,
)
from comity.policies.formats.ai_txt import AiTxt, parse
from tests.selection import one_in

DENY = Verdict.DENY


def findings_of(read: AiTxt) -> list[tuple[str, int, int]]:
    return [(finding.rule, finding.line, finding.column) for finding in read.findings]


def rule(
    actions: str,
    *,
    agents: str = "*",
    path: str = "/",
    file_type: str = "html",
    element: str = "p",
    verdict: Verdict | None = DENY,
    guidelines: tuple[Guideline, ...] = (),
) -> ElementRule:
    return ElementRule(
        agents=tuple(agents.split()),
        path=path,
        file_type=file_type,
        element=element,
        verdict=verdict,
        actions=frozenset(actions.split()),
        guidelines=guidelines,
    )


class Case(NamedTuple):
    name: str
    text: str
    rules: tuple[ElementRule, ...]
    lines: tuple[int, ...]  # of the rules


HEAD = "User-agent: *\n  Path: / html\n    Element: p\n"
END = "  Path: / html\n    Element: p\n      Disallow: Train\n"
CASES = [
    # Figure 3: the file, and comments.
    Case("3-empty", "", (), ()),
    Case("3-comments-alone", "# a\n\n  # b", (), ()),
    Case(
        "3-comments-between",
        f"# a\n{HEAD}# b: c\n      # Disallow: Cite\n      Disallow: Train\n",
        (rule("train"),),
        (7,),
    ),
    Case(
        "3-two-blocks",
        f"User-agent: a\n{END}User-agent: b\n{END}",
        (rule("train", agents="a"), rule("train", agents="b")),
        (4, 8),
    ),
    # Figure 4: the user-agent block.
    Case("4-any", f"User-agent: *\n{END}", (rule("train"),), (4,)),
    Case("4-one", f"User-agent: GPT_4o\n{END}", (rule("train", agents="GPT_4o"),), (4,)),
    Case("4-several", f"User-agent: a B9 c\n{END}", (rule("train", agents="a B9 c"),), (4,)),
    Case("4-trailing-space", f"User-agent: a b \n{END}", (rule("train", agents="a b"),), (4,)),
    Case(
        "4-several-paths",
        "User-agent: *\n  Path: /a html\n    Element: p\n      Disallow: Cite\n"
        "  Path: /b/ xml\n    Element: c\n      Disallow: Clip\n",
        (rule("cite", path="/a"), rule("clip", path="/b/", file_type="xml", element="c")),
        (4, 7),
    ),
    # Figure 5: the path block.
    *[
        Case(
            f"5-{path}-{kind}",
            f"User-agent: *\n  Path: {path} {kind}\n    Element: p\n      Disallow: Train\n",
            (rule("train", path=normal, file_type=kind),),
            (4,),
        )
        for path, kind, normal in [
            ("/", "html", "/"),
            ("/wiki/Robots.txt", "html", "/wiki/Robots.txt"),
            ("/a/b/", "json", "/a/b/"),
            ("/feed", "xml", "/feed"),
            ("/a&b%20c:d@e-f_g", "html", "/a&b%20c:d@e-f_g"),
            ("/my files/a b", "html", "/my%20files/a%20b"),
            ("/%7euser", "html", "/~user"),
        ]
    ],
    Case(
        "5-several-elements",
        f"{HEAD}      Disallow: Train\n    Element: img\n      Disallow: Clip\n",
        (rule("train"), rule("clip", element="img")),
        (4, 6),
    ),
    # Figure 6: the element block and the action block.
    *[
        Case(
            f"6-{element}",
            f"User-agent: *\n  Path: / {kind}\n    Element: {element}\n      Disallow: Train\n",
            (rule("train", file_type=kind, element=element),),
            (4,),
        )
        for element, kind in [
            ("*", "html"),
            ("#main > p.lead, h1:first-child", "html"),
            ('a[href^="https:"]', "html"),
            (":root", "html"),
            ("user.address.city", "json"),
            ("rss.channel.item", "xml"),
            ("größe", "json"),
        ]
    ],
    Case(
        "6-disallow-and-guide",
        f"{HEAD}      Disallow: Train\n      Guide: Cite\n        Lang: en\n"
        "        Guideline: By name.\n      Disallow: Clip\n",
        (
            rule("train"),
            rule("cite", verdict=None, guidelines=(Guideline("en", "By name."),)),
            rule("clip"),
        ),
        (4, 5, 8),
    ),
    # Figure 7: the guide block.
    Case(
        "7-several-languages",
        f"{HEAD}      Guide: Summarize Translate\n        Lang: en-US\n"
        "        Guideline: Keep # 1: all.\n"
        "        Lang: de\n        Guideline: Behalte „alles“.\n",
        (
            rule(
                "summarize translate",
                verdict=None,
                guidelines=(
                    Guideline("en-US", "Keep # 1: all."),
                    Guideline("de", "Behalte „alles“."),
                ),
            ),
        ),
        (4,),
    ),
    Case(
        "7-all-actions",
        f"{HEAD}      Guide: *\n        Lang: fr\n        Guideline: Doucement.\n",
        (rule("*", verdict=None, guidelines=(Guideline("fr", "Doucement."),)),),
        (4,),
    ),
    # Figure 8: the disallow block.
    Case("8-one", f"{HEAD}      Disallow: Train\n", (rule("train"),), (4,)),
    Case("8-several", f"{HEAD}      Disallow: Train Cite\n", (rule("train cite"),), (4,)),
    Case("8-all", f"{HEAD}      Disallow: *\n", (rule("*"),), (4,)),
    Case(
        "8-two-blocks",
        f"{HEAD}      Disallow: Train\n      Disallow: Cite\n",
        (rule("train"), rule("cite")),
        (4, 5),
    ),
]


@pytest.mark.requirement("AIT-1", "AIT-2", "AIT-3", "AIT-4", "AIT-5", "AIT-6", "AIT-7", "AIT-8")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_written_as_the_figures_ask_is_read_without_a_finding(case: Case) -> None:
    for indentation in ("  ", "    ", "\t"):
        lines = [(line, line.lstrip(" ")) for line in case.text.split("\n")]
        text = "\n".join(
            indentation * ((len(line) - len(rest)) // 2) + rest for line, rest in lines
        )
        read = parse(text.encode())
        assert read.rules == case.rules, text
        assert tuple(one.line for one in read.rules) == case.lines, text
        assert findings_of(read) == [], text


@pytest.mark.requirement("AIT-6", "AIT-7")
@pytest.mark.parametrize("action", one_in(2, ACTIONS))
def test_every_action_can_be_disallowed(action: str) -> None:
    for spelling in (action, action.lower(), action.upper()):
        read = parse(f"{HEAD}      Disallow: {spelling}\n".encode())
        (one,) = read.rules
        assert (one.actions, display_names(one.actions), one.verdict) == (
            frozenset((action.lower(),)),
            (action,),
            Verdict.DENY,
        )
        assert findings_of(read) == []
        assert [other for other in ACTIONS if one.speaks_of(other)] == [action]


@pytest.mark.requirement("AIT-6")
def test_actions_are_those_of_the_paper_in_its_order() -> None:
    assert len(ACTIONS) == 14
    assert list(ACTIONS) == sorted(ACTIONS)
    actions = frozenset(("zoom", "translate", "analyze", "*", "crop"))
    assert display_names(actions) == (
        "*",
        "Analyze",
        "Translate",
        "Crop",
        "Zoom",
    )


@pytest.mark.requirement("AIT-8")
def test_a_guide_permits_nothing_that_is_refused() -> None:
    text = (
        f"{HEAD}      Guide: Cite Clip\n        Lang: en\n        Guideline: By name.\n"
        "      Disallow: Cite\n"
    )
    guide, disallow = rules = parse(text.encode()).rules
    assert (guide.verdict, guide.guidelines[0].line) == (None, 6)
    assert of_action(rules, "Cite") == (disallow,)
    assert of_action(rules, "clip") == (guide,)
    assert of_action(rules, "Train") == ()


@pytest.mark.requirement("AIT-9", "AIT-10")
def test_all_rules_about_a_resource_apply_and_none_lifts_another() -> None:
    text = """User-agent: *
  Path: / html
    Element: *
      Disallow: Train
User-agent: GPTBot other
  Path: /news/ html
    Element: p
      Guide: *
        Lang: en
        Guideline: Be kind.
      Disallow: Cite
  Path: /news/feed json
    Element: p
      Disallow: Clip
"""
    read = parse(text.encode())
    asked = [
        ("/", "gptbot", "text/html; charset=utf-8", [4]),
        ("/news/1?x=/y", "gptbot", "text/html", [4, 8, 11]),
        ("/news/1", "GPTBot", "text/html", [4, 8, 11]),
        ("/news/1", "gptbot2", "text/html", [4]),
        ("/news/feed", "Other", "application/json", [14]),
        ("/news/feed", "other", "", [4, 8, 11, 14]),
        ("/news/feed", "other", "image/png", []),
    ]
    for target, token, media_type, lines in asked:
        assert [one.line for one in read.rules_for(target, token, media_type)] == lines, target
        assert read.for_agent(token).rules_for(target, media_type) == read.rules_for(
            target, token, media_type
        )


@pytest.mark.requirement("AIT-4")
@pytest.mark.parametrize(
    ("path", "covers", "leaves"),
    [
        ("/", ["/", "/a", "/a/b?c"], []),
        ("/a/", ["/a/", "/a/b", "/a/b/c?d", "/%61/"], ["/a", "/A/b", "/ab/", "/b?/a/"]),
        (
            "/a",
            ["/a", "/a?b", "/a/", "/a/b", "/%61", "/a%2Fb"],
            ["/ab", "/A", "/", "/a.html", "/b/a"],
        ),
        ("/é", ["/%c3%a9", "/%C3%A9/x"], ["/e", "/%c3%aa"]),
        ("/a%2fb", ["/a%2Fb", "/a%2fb/c"], ["/a/b"]),
        ("/x*y", ["/xy", "/x/a/yz?b"], ["/x", "/x?y"]),
        ("/x/*.pdf$", ["/x/a.pdf", "/x/a.pdf?b"], ["/x/a.pdfs", "/a.pdf"]),
    ],
)
def test_what_a_path_covers(path: str, covers: list[str], leaves: list[str]) -> None:
    rules = parse(
        f"User-agent: *\n  Path: {path} html\n    Element: *\n      Disallow: *\n".encode()
    ).for_agent("a")
    assert [target for target in covers + leaves if rules.rules_for(target, "text/html")] == covers


@pytest.mark.requirement("AIT-4")
@pytest.mark.parametrize(
    ("media_type", "types"),
    [
        ("text/html", "html"),
        ("TEXT/HTML ;charset=x", "html"),
        ("application/xhtml+xml", "html xml"),
        ("application/json", "json"),
        ("application/ld+json", "json"),
        ("text/xml", "xml"),
        ("application/rss+xml", "xml"),
        ("", "html json xml"),
        ("text/plain", ""),
    ],
)
def test_which_file_type_a_resource_is_of(media_type: str, types: str) -> None:
    text = "User-agent: *\n" + "".join(
        f"  Path: / {kind}\n    Element: a\n      Disallow: Train\n"
        for kind in ("html", "json", "xml", "")
    )
    rules = parse(text.encode()).rules_for("/", "a", media_type)
    assert [one.file_type for one in rules] == [*types.split(), ""]
