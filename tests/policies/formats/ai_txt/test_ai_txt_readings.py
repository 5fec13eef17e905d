"""Files that depart from the paper: their reading, and the findings for their authors."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from comity.policies import Verdict
from comity.policies.answers.element_rule import ElementRule
from comity.policies.formats.ai_txt import AiTxt, grammar, parse
from comity.policies.formats.ai_txt.reading import (
    MAX_NAMES,
    MAX_PATH,
    MAX_RULES,
    MAX_SIZE,
    Position,
    Values,
)
from comity.policies.syntax.lines import MAX_LINE
from tests.selection import one_in

HEAD = "User-agent: *\n  Path: /a html\n    Element: p\n"
DISALLOW = "      Disallow: Train\n"
ELEMENT = "    Element: p\n"
BLOCK = f"  Path: /a html\n{ELEMENT}{DISALLOW}"


def brief(rule: ElementRule) -> str:
    """Return a rule as one line."""
    actions = " ".join(sorted(rule.actions))
    told = "".join(f" [{one.lang}: {one.text}]" for one in rule.guidelines)
    verdict = "deny" if rule.verdict is Verdict.DENY else "guide"
    return (
        f"{','.join(rule.agents)} {rule.path} {rule.file_type or '-'} {rule.element}: "
        f"{verdict} {actions}{told}"
    )


def read_text(text: str) -> tuple[list[str], list[str]]:
    return of(parse(text.encode("utf-8", "surrogateescape")))


def of(read: AiTxt) -> tuple[list[str], list[str]]:
    return [brief(rule) for rule in read.rules], [
        f"{one.rule} {one.line}:{one.column}" for one in read.findings
    ]


USUAL = "* /a html p: deny train"
CASES = [
    # AIT-14: the keyword decides the level.
    (
        "flat",
        "User-agent: *\nPath: /a html\nElement: p\nDisallow: Train\n",
        [USUAL],
        [f"ait.indentation {n}:1" for n in (2, 3, 4)],
    ),
    ("deeper", f"  User-agent: *\n{BLOCK}", [USUAL], ["ait.indentation 1:3"]),
    (
        "three-spaces",
        f"User-agent: *\n   Path: /a html\n{ELEMENT}{DISALLOW}",
        [USUAL],
        ["ait.indentation 2:4"],
    ),
    (
        "mixed",
        f"User-agent: *\n  Path: /a html\n\t\tElement: p\n{DISALLOW}",
        [USUAL],
        ["ait.indentation 3:3"],
    ),
    (
        "tab-then-spaces",
        f"User-agent: *\n\tPath: /a html\n{ELEMENT}\t\t\tDisallow: Train\n",
        [USUAL],
        ["ait.indentation 3:5"],
    ),
    (
        "no-break-spaces",
        f"User-agent: *\n\u00a0\u00a0Path: /a html\n{ELEMENT}{DISALLOW}",
        [USUAL],
        ["ait.indentation 2:5"],
    ),
    (
        "keywords-case",
        "USER-AGENT: *\npath: /a html\n",
        [],
        ["ait.keyword 1:1", "ait.keyword 2:1", "ait.indentation 2:1", "ait.empty 2:0"],
    ),
    (
        "misspelled",
        f"User agent: *\n{BLOCK.replace('Disallow', 'Dissallow')}",
        [USUAL],
        ["ait.keyword 1:1", "ait.keyword 4:7"],
    ),
    (
        "no-colon",
        f"User-agent: *\n  Path /a html\n{ELEMENT}      Disallow Train\n",
        [USUAL],
        ["ait.keyword 2:7", "ait.keyword 4:15"],
    ),
    (
        "no-colon-element",
        f"User-agent: *\n  Path: /a html\n    Element h1\n{DISALLOW}",
        ["* /a html h1: deny train"],
        ["ait.keyword 3:12"],
    ),
    # Characters that look like a space or are invisible count as a space.
    (
        "odd-agents",
        f"User-agent: \u00a0a\u00a0b\ufeff\n{BLOCK}",
        ["a,b /a html p: deny train"],
        ["ait.agent 1:13"],
    ),
    (
        "odd-actions",
        f"{HEAD}      Disallow: \u00a0Train\u00a0Cite\u200b\n",
        ["* /a html p: deny cite train"],
        ["ait.action 4:17"],
    ),
    (
        "odd-path",
        f"User-agent: *\n  Path: \u00a0/a\u00a0html\u00a0\n{ELEMENT}{DISALLOW}",
        [USUAL],
        ["ait.path 2:9"],
    ),
    (
        "odd-path-without-type",
        f"User-agent: *\n  Path: /a\u00a0\n{ELEMENT}{DISALLOW}",
        ["* /a - p: deny train"],
        ["ait.file-type 2:9", "ait.path 2:9"],
    ),
    (
        "part-of-a-path",
        f"User-agent: *\n  Path: /a\u00a0b html\n{ELEMENT}{DISALLOW}",
        ["* /a%C2%A0b html p: deny train"],
        [],
    ),
    (
        "odd-element",
        f"{HEAD[: HEAD.rindex('    Element')]}    Element: "
        f"\ufeffmain\u00a0\u00a0p\u00a0[title='a\u00a0b']\u00a0\n{DISALLOW}",
        ["* /a html main  p [title='a\u00a0b']: deny train"],
        ["ait.selector 3:14"],
    ),
    (
        "quoted-element",
        f'User-agent: *\n  Path: /a html\n    Element: p[title="a\u00a0b"]\n{DISALLOW}',
        ['* /a html p[title="a\u00a0b"]: deny train'],
        [],
    ),
    (
        "odd-name",
        f"User-agent: *\n  Path: /a json\n    Element: \u00a0a.b\u00a0c\u00a0\n{DISALLOW}",
        ["* /a json a.b\u00a0c: deny train"],
        ["ait.selector 3:14"],
    ),
    ("space-before-colon", f"User-agent : *\n{BLOCK}", [USUAL], []),
    # AIT-14: unknown keywords.
    (
        "unknown",
        f"Version: 1\nUser-agent: *\n  Allow: /\n{BLOCK}",
        [USUAL],
        ["ait.keyword 1:1", "ait.keyword 3:3"],
    ),
    (
        "prose-in-a-guideline",
        f"{HEAD}      Guide: Cite\n        Lang: en\n        Guideline: Keep the\n"
        f"path to the page as it is.\nElement names too.\n{DISALLOW}",
        ["* /a html p: guide cite [en: Keep the]", USUAL],
        ["ait.keyword 7:1", "ait.keyword 8:1"],
    ),
    # AIT-14: actions below their Disallow.
    (
        "actions-below",
        f"{HEAD}      Disallow:\n        Train\n",
        [USUAL],
        ["ait.empty 4:16", "ait.keyword 5:9"],
    ),
    (
        "actions-below-in-other-ways",
        f"{HEAD}      Disallow: # see below\n\n# a comment\n  - Train\n"
        f"- 'Summarise', cite.\nTRAIN  # again\n{ELEMENT}",
        [USUAL, "* /a html p: deny cite summarize", USUAL],
        [
            *("ait.comment 4:17", "ait.empty 4:17"),
            *("ait.keyword 7:3", "ait.action 7:3"),  # the hyphen is no action
            *("ait.keyword 8:1", "ait.action 8:1", "ait.action 8:3", "ait.action 8:16"),
            *("ait.keyword 9:1", "ait.empty 10:0"),
        ],
    ),
    (
        "actions-below-all",
        f"{HEAD}      Disallow:\n        *\n",
        ["* /a html p: deny *"],
        ["ait.empty 4:16", "ait.keyword 5:9"],
    ),
    (
        "more-actions-below",
        f"{HEAD}      Disallow: Train,\n        Cite\n",
        [USUAL, "* /a html p: deny cite"],
        ["ait.keyword 5:9"],
    ),
    (
        "actions-below-prose",
        f"{HEAD}      Disallow:\n        as we say:\n        Train\n",
        [USUAL],
        ["ait.empty 4:16", "ait.keyword 5:9", "ait.keyword 6:9"],
    ),
    (
        "no-known-actions-below",
        f"{HEAD}      Disallow:\n        Train crops\n        -\n",
        [],
        ["ait.empty 4:16", "ait.keyword 5:9", "ait.keyword 6:9"],
    ),
    (
        "actions-below-another-keyword",
        f"{HEAD}      Disallow:\n{ELEMENT}        Train\n",
        [],
        ["ait.empty 4:16", "ait.keyword 6:9", "ait.empty 5:0"],
    ),
    # The permissions of a Guide are read in its own line only.
    (
        "actions-below-a-guide",
        f"{HEAD}      Guide:\n        Train\n        Lang: en\n        Guideline: x\n",
        [],
        ["ait.empty 4:13", "ait.keyword 5:9"],
    ),
    (
        "no-colon-and-actions-below",
        f"{HEAD}      Disallow\n        Train\n",
        [USUAL],
        ["ait.keyword 4:15", "ait.empty 4:15", "ait.keyword 5:9"],
    ),
    # AIT-14: lines that belong to nothing, or cover more.
    (
        "no-element",
        f"User-agent: *\n  Path: /a html\n{DISALLOW}",
        ["* /a html *: deny train"],
        ["ait.orphan 3:0"],
    ),
    (
        "no-element-in-the-second-path",
        f"User-agent: *\n{BLOCK}  Path: /b html\n{DISALLOW}",
        [USUAL, "* /b html *: deny train"],
        ["ait.orphan 6:0"],
    ),
    ("no-path", f"User-agent: *\n{ELEMENT}{DISALLOW}", [], ["ait.orphan 2:0", "ait.orphan 3:0"]),
    ("no-agent", BLOCK, [], ["ait.orphan 1:0", "ait.orphan 2:0", "ait.orphan 3:0"]),
    (
        "unreadable-path",
        f"User-agent: *\n{BLOCK}  Path: html\n{ELEMENT}{DISALLOW}",
        [USUAL],
        ["ait.path 5:9", "ait.orphan 6:0", "ait.orphan 7:0"],
    ),
    (
        "unreadable-agent",
        f"User-agent: a\n{BLOCK}User-agent: !\n{BLOCK}",
        ["a /a html p: deny train"],
        ["ait.agent 5:13", "ait.agent 5:13", *(f"ait.orphan {n}:0" for n in (6, 7, 8))],
    ),
    (
        "guideline-of-nothing",
        f"{HEAD}{DISALLOW}        Lang: en\n        Guideline: x\n",
        [USUAL],
        ["ait.orphan 5:0", "ait.orphan 6:0"],
    ),
    # Empty blocks share the content of the next one.
    (
        "agents-in-a-row",
        f"User-agent: a\nUser-agent: b a\n{BLOCK}",
        ["a,b /a html p: deny train"],
        ["ait.empty 1:0"],
    ),
    (
        "paths-in-a-row",
        f"User-agent: *\n  Path: /a html\n  Path: /b json\n{ELEMENT}{DISALLOW}",
        [USUAL, "* /b json p: deny train"],
        ["ait.empty 2:0"],
    ),
    (
        "elements-in-a-row",
        f"{HEAD}    Element: h1\n{DISALLOW}    Element: h2\n      Disallow: Cite\n",
        [USUAL, "* /a html h1: deny train", "* /a html h2: deny cite"],
        ["ait.empty 3:0"],
    ),
    (
        "empty-at-the-end",
        f"User-agent: a\n{BLOCK}  Path: /b html\n    Element: h1\n",
        ["a /a html p: deny train"],
        ["ait.empty 6:0"],
    ),
    (
        "empty-before-another",
        f"{HEAD}User-agent: b\n{BLOCK}",
        ["b /a html p: deny train"],
        ["ait.empty 3:0"],
    ),
    # AIT-3: agents.
    (
        "agents-with-signs",
        f"User-agent: Google-Extended ai.bot\n{BLOCK}",
        ["Google-Extended,ai.bot /a html p: deny train"],
        [],
    ),
    (
        "agents-with-versions",
        f"User-agent: GPTBot/1.0 (x)\n{BLOCK}",
        ["GPTBot /a html p: deny train"],
        ["ait.agent 1:13", "ait.agent 1:24"],
    ),
    ("agents-by-commas", f"User-agent: a, b,c\n{BLOCK}", ["a,b,c /a html p: deny train"], []),
    ("any-beside-names", f"User-agent: a *\n{BLOCK}", [USUAL], ["ait.agent 1:13"]),
    ("wildcard-in-a-name", f"User-agent: *bot\n{BLOCK}", [USUAL], ["ait.agent 1:13"]),
    (
        "agent-comment",
        f"User-agent: a # b\n{BLOCK}",
        ["a /a html p: deny train"],
        ["ait.comment 1:15"],
    ),
    # AIT-4: paths and file types.
    *[
        (
            f"path-{value}",
            f"User-agent: *\n  Path: {value}\n{ELEMENT}{DISALLOW}",
            [f"* {read} p: deny train"],
            findings,
        )
        for value, read, findings in [
            ("/a", "/a -", ["ait.file-type 2:9"]),
            ("/a pdf", "/a -", ["ait.file-type 2:12"]),
            ("/a *", "/a -", ["ait.file-type 2:12"]),
            ("/a HTML", "/a html", []),
            ("/a html, json", "/a -", ["ait.file-type 2:9"]),
            ("/my page/a.html", "/my%20page/a.html -", ["ait.file-type 2:9"]),
            ("/my page/a.html html", "/my%20page/a.html html", []),
            ("/a .html", "/a -", ["ait.file-type 2:12"]),
            ("/a *.html", "/a -", ["ait.file-type 2:12"]),
            ("/a html,json", "/a -", ["ait.file-type 2:12"]),
            ("/a (json)", "/a -", ["ait.file-type 2:12"]),
            ("/a application/ld+json", "/a -", ["ait.file-type 2:12"]),
            ("/a text/HTML", "/a -", ["ait.file-type 2:12"]),
            ("a/b html", "/a/b html", ["ait.path 2:9"]),
            ("https://example.com/a html", "/a html", ["ait.path 2:9"]),
            ("https://example.com html", "/ html", ["ait.path 2:9"]),
            ("/a?b=c html", "/a html", ["ait.path 2:9"]),
            ("/a/* html", "/a/* html", ["ait.path 2:9"]),
            ("* html", "* html", ["ait.path 2:9"]),
            ("/a#b html", "/a -", ["ait.comment 2:11", "ait.file-type 2:9"]),
            ("/a html # b", "/a html", ["ait.comment 2:17"]),
        ]
    ],
    # AIT-5: elements.
    (
        "no-element-name",
        f"User-agent: *\n  Path: /a html\n    Element:\n{DISALLOW}",
        ["* /a html *: deny train"],
        ["ait.empty 3:13"],
    ),
    (
        "odd-element",
        f"User-agent: *\n  Path: /a html\n    Element: p\0\n{DISALLOW}",
        ["* /a html *: deny train"],
        ["ait.selector 3:14"],
    ),
    (
        "element-in-latin-1",
        f"User-agent: *\n  Path: /a html\n    Element: .caf\udce9\n{DISALLOW}",
        ["* /a html *: deny train"],
        ["ait.selector 3:14"],
    ),
    (
        "element-id",
        f"User-agent: *\n  Path: /a html\n    Element: #p #q\n{DISALLOW}",
        ["* /a html #p #q: deny train"],
        [],
    ),
    # AIT-6: actions.
    (
        "unknown-action",
        f"{HEAD}      Disallow: Train Crop\n",
        ["* /a html p: deny crop train"],
        ["ait.action 4:23"],
    ),
    (
        "other-spelling",
        f"{HEAD}      Disallow: summarise ANALYSE\n",
        ["* /a html p: deny analyze summarize"],
        ["ait.action 4:17", "ait.action 4:27"],
    ),
    ("all", f"{HEAD}      Disallow: All\n", ["* /a html p: deny *"], ["ait.action 4:17"]),
    (
        "commas",
        f"{HEAD}      Disallow: Train, Cite;Clip\n",
        ["* /a html p: deny cite clip train"],
        [],
    ),
    # Marks that are no part of a name. A permission has to be a name.
    *[
        (
            f"odd-action-{value}",
            f"{HEAD}      Disallow: {value}\n",
            [f"* /a html p: deny {read}"],
            findings,
        )
        for value, read, findings in [
            ("'Train' [Cite]", "cite train", ["ait.action 4:17", "ait.action 4:25"]),
            ("\u201cTrain\u201d (Cite).", "cite train", ["ait.action 4:17", "ait.action 4:29"]),
            ("Train/Cite|Clip", "cite clip train", []),
            ("- Train", "train", ["ait.action 4:17"]),
            ("**", "*", ["ait.action 4:17"]),
            ("Train*", "*", ["ait.action 4:17"]),
            ("Do-it", "do-it", ["ait.action 4:17"]),
        ]
    ],
    (
        "no-name",
        f"{HEAD}      Disallow: - ()\n",
        [],
        ["ait.action 4:17", "ait.action 4:19", "ait.empty 4:17"],
    ),
    (
        "odd-guide",
        f"{HEAD}      Guide: 'Train' Clip/Cite **\n",
        ["* /a html p: guide 'train' ** clip/cite"],
        ["ait.action 4:14", "ait.action 4:22", "ait.action 4:32", "ait.empty 4:0"],
    ),
    ("action-comment", f"{HEAD}      Disallow: Train # Cite\n", [USUAL], ["ait.comment 4:23"]),
    (
        "no-action",
        f"{HEAD}      Disallow:\n      Guide: # none\n",
        [],
        ["ait.empty 4:16", "ait.comment 5:14", "ait.empty 5:14"],
    ),
    # AIT-8: guides.
    (
        "guide-alone",
        f"{HEAD}      Guide: Cite\n{DISALLOW}",
        ["* /a html p: guide cite", USUAL],
        ["ait.empty 4:0"],
    ),
    (
        "guidelines",
        f"{HEAD}      Guide: Cite\n        Guideline: a\n        Lang: en_GB\n"
        "        Guideline: b\n        Guideline: c\n"
        "        Lang: !\n        Guideline: d\n        Guideline:\n",
        ["* /a html p: guide cite [und: a] [en-GB: b] [en-GB: c] [und: d]"],
        ["ait.language 5:0", "ait.language 9:15", "ait.language 10:0", "ait.empty 11:19"],
    ),
    (
        "guideline-control",
        f"{HEAD}      Guide: Cite\n        Lang: en\n        Guideline: a\x1b[1m\n",
        ["* /a html p: guide cite [en: a\ufffd[1m]"],
        [],
    ),
    (
        "guides-in-a-row",
        f"{HEAD}      Guide: Cite\n        Lang: en\n        Guideline: a\n"
        "      Guide: Clip\n        Guideline: b\n",
        ["* /a html p: guide cite [en: a]", "* /a html p: guide clip [und: b]"],
        ["ait.language 8:0"],
    ),
    # Line ends, and the end of the file.
    ("crlf", f"{HEAD}{DISALLOW}".replace("\n", "\r\n"), [USUAL], []),
    ("cr", f"{HEAD}{DISALLOW}".replace("\n", "\r"), [USUAL], []),
    ("no-end", f"{HEAD}{DISALLOW}".rstrip("\n"), [USUAL], []),
    ("trailing-space", f"{HEAD}{DISALLOW}".replace("\n", " \t\n"), [USUAL], []),
]


@pytest.mark.requirement(
    "AIT-1", "AIT-2", "AIT-3", "AIT-4", "AIT-5", "AIT-6", "AIT-8", "AIT-12", "AIT-13", "AIT-14"
)
@pytest.mark.parametrize(
    ("text", "rules", "findings"),
    one_in(3, [case[1:] for case in CASES]),
    ids=[case[0] for case in CASES],
)
def test_reading(text: str, rules: list[str], findings: list[str]) -> None:
    assert read_text(text) == (rules, findings)


@pytest.mark.requirement("AIT-14", "SEC-1")
def test_past_the_limit_of_rules_what_is_disallowed_is_disallowed_everywhere() -> None:
    many = "".join(f"    Element: e{number}\n{DISALLOW}" for number in range(MAX_RULES))
    more = "      Disallow: Cite\n      Guide: Clip\n        Lang: en\n        Guideline: x\n"
    rules, findings = read_text("User-agent: a\n  Path: /a html\n" + many)
    assert (len(rules), findings) == (MAX_RULES, [])
    rules, findings = read_text("User-agent: a\n  Path: /a html\n" + many + more + DISALLOW)
    assert rules[MAX_RULES:] == ["* / - *: deny cite train"]
    assert findings == [f"ait.limit {3 + 2 * MAX_RULES}:0"]


@pytest.mark.requirement("AIT-14", "SEC-1")
def test_blocks_that_share_a_line_are_bounded() -> None:
    paths = "".join(f"  Path: /{number} html\n" for number in range(300))
    elements = "".join(f"    Element: e{number}\n" for number in range(300))
    rules, findings = read_text(f"User-agent: a\n{paths}{elements}{DISALLOW}")
    assert rules[0] == "a /0 html e0: deny train"
    assert rules[-1] == "* / - *: deny train"
    assert len(rules) <= MAX_RULES + 1
    assert findings[-1] in ("comity.more-findings 0:0", "ait.limit 602:0")
    guides = f"      Guide: Cite\n        Lang: en\n        Guideline: {'x' * 30_000}\n"
    rules, _ = read_text(f"User-agent: a\n{paths}{ELEMENT}{guides}{DISALLOW}")
    assert 30_000 * len(rules) <= MAX_SIZE + 30_000
    assert rules[-1] == "* / - *: deny train"


@pytest.mark.requirement("AIT-14", "SEC-1")
def test_a_file_that_is_cut_may_have_prohibited_anything() -> None:
    rules, findings = of(parse(f"{HEAD}{DISALLOW}".encode(), cut=True))
    assert (rules, findings) == ([USUAL, "* / - *: deny *"], ["ait.limit 4:0"])


@pytest.mark.requirement("AIT-14", "SEC-1")
def test_lines_that_share_a_block_cost_little_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, each element searched the paths of its block, and each line its agents: ten seconds."""
    file_types: list[object] = []
    joined: list[int] = []

    class Counted(Values):
        def element(self, value: bytes, position: Position, types: Iterable[str] = ()) -> str:
            file_types.append(types)
            return super().element(value, position, types)

        def join_names(self, names: Iterable[str], position: Position) -> tuple[str, ...]:
            joined.append(position.line)
            return super().join_names(names, position)

    monkeypatch.setattr(grammar, "Values", Counted)
    agents = "User-agent: a\n" * 50 + "User-agent: b a\n" * 50
    paths = "".join(f"  Path: /{number} html\n" for number in range(50)) + "  Path: /x json\n"
    rules, _ = read_text(f"{agents}{paths}" + f"{ELEMENT}{DISALLOW}" * 50)
    assert (len(rules), rules[0], rules[-1]) == (
        51 * 50,
        "a,b /0 html p: deny train",
        "a,b /x json p: deny train",
    )
    assert [*map(id, file_types)] == [id(file_types[0])] * 50
    assert file_types[0] == {"html", "json"}
    # Each line has its own names. Only the last line adds new ones.
    assert len(joined) == 101


NAMES = " ".join(f"n{number}" for number in range(MAX_NAMES + 1))
LONG = "x" * MAX_LINE
LIMITS = [
    ("agents", f"User-agent: {NAMES}\n{BLOCK}", [USUAL], ["ait.limit 1:13"]),
    ("agents-long", f"User-agent: {LONG} a\n{BLOCK}", [USUAL], ["ait.limit 1:13"]),
    (
        "path",
        f"User-agent: *\n  Path: /a/{'b' * MAX_PATH} html\n{ELEMENT}{DISALLOW}",
        ["* /a/ html p: deny train"],
        ["ait.limit 2:9"],
    ),
    (
        "element",
        f"User-agent: *\n  Path: /a html\n    Element: {LONG}y\n{DISALLOW}",
        ["* /a html *: deny train"],
        ["ait.limit 3:14"],
    ),
    (
        "actions-long",
        f"{HEAD}      Disallow: {LONG} Train\n",
        ["* /a html p: deny *"],
        ["ait.action 4:17", "ait.limit 4:17"],
    ),
    (
        "guideline",
        f"{HEAD}      Guide: Cite\n        Lang: en\n        Guideline: {LONG}y\n",
        [f"* /a html p: guide cite [en: {LONG}]"],
        ["ait.limit 6:20"],
    ),
    (
        "guideline-cut-at-a-space",
        f"{HEAD}      Guide: Cite\n        Lang: en\n        Guideline: {LONG[1:]} y\n",
        [f"* /a html p: guide cite [en: {LONG[1:]}]"],
        ["ait.limit 6:20"],
    ),
]


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize(
    ("text", "rules", "findings"), [case[1:] for case in LIMITS], ids=[case[0] for case in LIMITS]
)
def test_what_is_too_long_covers_more(text: str, rules: list[str], findings: list[str]) -> None:
    assert read_text(text) == (rules, findings)


@pytest.mark.requirement("SEC-1")
def test_beyond_the_limit_too_many_actions_are_all() -> None:
    many = f"User-agent: a\n  Path: /a html\n{ELEMENT}" + DISALLOW * MAX_RULES
    halves = [
        f"      Disallow: {' '.join(f'{half}{number}' for number in range(MAX_NAMES))}\n"
        for half in "ab"
    ]
    assert read_text(many + "".join(halves))[0][MAX_RULES:] == ["* / - *: deny *"]


@pytest.mark.requirement("SEC-1")
def test_too_many_actions_are_all() -> None:
    rules, findings = read_text(f"{HEAD}      Disallow: {NAMES}\n")
    assert (rules, findings[-1]) == (["* /a html p: deny *"], "comity.more-findings 0:0")


@pytest.mark.requirement("AIT-12", "SEC-4")
def test_findings_show_the_place_and_nothing_that_hides() -> None:
    (finding,) = parse(
        f"{HEAD}{DISALLOW}      Di\u202esallow: Cite\n".encode(), url="https://example.com/ai.txt"
    ).findings
    assert (
        str(finding)
        == "https://example.com/ai.txt:5:7: ait.keyword: `Di\ufffdsallow` is not a keyword."
    )
