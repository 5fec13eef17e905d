"""The examples of docs/ai-txt.md are read as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

import comity.policies
from comity.policies.answers.element_rule import ACTIONS
from comity.policies.document.json_documents import MAX_DEPTH
from comity.policies.document.markup import MAX_MERGED
from comity.policies.document.selector_index import MAX_ELEMENTS
from comity.policies.document.selectors import MAX_CHARS, MAX_FUNCTIONS, compiled
from comity.policies.elements.coverage import MAX_PARTS, MAX_STEPS
from comity.policies.formats.ai_txt import from_xml, kind_of, parse, spawning
from comity.policies.formats.ai_txt.reading import MAX_NAMES, MAX_PATH, MAX_RULES, MAX_SIZE
from comity.policies.formats.ai_txt.spawning import MAX_PATTERNS
from comity.policies.prompt import MAX_LISTED
from comity.policies.syntax.lines import MAX_BYTES, MAX_LINE
from comity.policies.syntax.quoting import MAX_QUOTED

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "ai-txt.md").read_text("utf-8")
TEXT, XML, SPAWNING = (
    example.encode() for example in re.findall(r"```(?:xml)?\n(.*?)```", PAGE, re.DOTALL)
)


@pytest.mark.requirement("AIT-1", "AIT-6")
def test_the_example_of_the_text() -> None:
    read = parse(TEXT)
    assert [rule.line for rule in read.rules] == [5, 6, 12]
    assert read.findings == ()
    assert f"The actions: {', '.join(ACTIONS)}." in PAGE


@pytest.mark.requirement("AIT-10")
def test_the_example_of_xml_says_the_same_as_its_first_block() -> None:
    assert from_xml(XML).rules == parse(TEXT).rules[:2]
    schema = etree.XMLSchema(etree.parse(Path(comity.policies.__file__).parent / "ai_txt.xsd"))
    assert schema.validate(etree.fromstring(XML))


@pytest.mark.requirement("SPAWN-2")
def test_the_example_of_spawnings_form() -> None:
    assert kind_of(SPAWNING) == "spawning"
    patterns = spawning(SPAWNING).for_agent("ours")
    targets = ("/a.jpg", "/drafts/a", "/drafts/logo.jpg", "/a.html")
    assert [bool(patterns.statements(target)) for target in targets] == [True, True, False, False]


LIMITS = [
    ("a file", [MAX_BYTES // 1024]),
    ("rules of a file", [MAX_RULES, MAX_SIZE // 2**20]),
    ("names of a block, actions of a line", [MAX_NAMES, MAX_LINE // 1024]),
    ("a path; an element; a guideline", [MAX_PATH // 1024, MAX_LINE // 1024, MAX_LINE // 1024]),
    ("a selector; a dotted name", [MAX_CHARS, MAX_FUNCTIONS, MAX_CHARS, MAX_PARTS]),
    ("elements of an HTML page", [MAX_ELEMENTS]),
    ("steps for all rules of a page", [MAX_STEPS]),
    ("JSON", [MAX_DEPTH]),
    ("tags of `html` and `body` in a page", [MAX_MERGED]),
    ("patterns in Spawning's form", [MAX_PATTERNS]),
    ("a guideline in a prompt", [MAX_QUOTED]),
    ("prohibitions, and guidelines, in a prompt", [MAX_LISTED]),
]


def test_the_limits_are_those_of_the_code() -> None:
    """The tests of each part show the behaviour beyond the limits."""
    table = PAGE.partition("## Limits")[2].partition("## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("| ")
    ][1:]
    told = [
        (name, [int(number.replace(",", "")) for number in re.findall(r"[0-9][0-9,]*", limit)])
        for name, limit, _ in rows
    ]
    assert told == LIMITS


@pytest.mark.requirement("AIT-5")
@pytest.mark.parametrize(
    ("selector", "unread"),
    [
        *(
            (selector, "")
            for selector in re.findall(
                r"`(:[a-z-]+(?:\(\))?)`",
                PAGE.partition("comity reads these parts")[2].partition("Other CSS")[0],
            )
        ),
        (":hover", ":hover"),
        (":checked", ":checked"),
        (r"[\@click]", "[@click]"),
        ("svg|p", "svg|"),
        ("p::before", ""),
    ],
)
def test_selectors_are_read_as_it_says(selector: str, unread: str) -> None:
    arguments = {":lang()": ":lang(en)", ":has()": ":has(p)", ":not()": ":not(p, a > b)"}
    nth = selector.replace("()", "(2n+1)" if "nth" in selector else "(p, a > b)")
    assert ", ".join(compiled(arguments.get(selector, nth)).unread) == unread
