"""docs/automation.md says what the code does: its example is run, its tables are compared."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scrapy.http import Request

from comity.gate.request.facts import declaration
from comity.gate.request.sessions import KEYS
from comity.policies import Agent, Site
from comity.policies.answers.rule import RULES
from comity.policies.formats.automation import grammar
from comity.policies.formats.automation.value_syntax import DIRECTIVES
from comity.policies.syntax.lines import MAX_BYTES, MAX_FINDINGS, MAX_LINE

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "automation.md").read_text("utf-8")
RULES_PAGE = (DOCS / "rules.md").read_text("utf-8")

ORIGIN = "https://example.com"


def section(title: str, page: str = PAGE) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def cells(text: str) -> list[list[str]]:
    """Of the rows of the tables in it, without their heads."""
    rows = [
        [cell.strip() for cell in line[1:-1].split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    heads = {at - 1 for at, row in enumerate(rows) if row[0] == "---"}
    return [row for at, row in enumerate(rows) if at not in heads and row[0] != "---"]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


class Example(NamedTuple):
    request: str
    what: str
    verdict: str
    line: int


EXAMPLES = [
    Example(code(row[0])[0], row[1], row[2], int(row[3])) for row in cells(section("An example"))
]


def facts(what: str) -> dict[str, Any]:
    """What the words of the table mean, as arguments of Site.access."""
    named = next(iter(code(what)), None)
    found: dict[str, Any] = {}
    if what.startswith("made for"):
        found["purposes"] = (named,)
    if what.startswith("made with"):
        found["automations"] = (named,)
    if what.startswith("an API's"):
        found["kind"] = "api"
    if what.endswith("with a key"):
        found["headers"] = {"X-API-Key": "1"}
    if what.startswith("a script's"):
        found |= {"kind": "xhr", "referer": named}
    return found


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: f"{example.request} {example.what}"
)
def test_example(example: Example) -> None:
    (text,) = re.findall(r"\n```\n(.*?)```\n", section("An example"), re.DOTALL)
    site = Site.from_files(ORIGIN, {"/automation-preferences.txt": text.encode()})
    method, path = example.request.split()
    assert bool(facts(example.what)) == bool(example.what)
    decision = site.access(
        Agent("examplebot", purposes=("search",)),
        ORIGIN + path,
        method=method,
        **facts(example.what),
    )
    assert (decision.verdict.value, decision.reasons[0].source.line) == (
        example.verdict,
        example.line,
    )
    assert site.findings == ()


def test_the_example_has_all_of_its_rows() -> None:
    assert len(EXAMPLES) == 13


def test_directives() -> None:
    rows = cells(section("Directives"))
    assert [code(row[0])[0] for row in rows[:3]] == ["scope", "host", "user-agent"]
    assert [code(row[0])[0] for row in rows[3:]] == [name.decode() for name in DIRECTIVES]
    for row in rows[3:]:
        directive = DIRECTIVES[code(row[0])[0].encode()]
        for value in code(row[1]):
            assert directive.parse(value.encode())[1] is None
        assert directive.parse(b"\x7f ?")[0] == directive.strictest


def test_limits() -> None:
    numbers = [int(row[1].split()[0].replace(",", "")) for row in cells(section("Limits"))]
    assert numbers == [
        MAX_BYTES // 1024,
        MAX_LINE // 1024,
        grammar.MAX_GROUPS,
        grammar.MAX_SCOPES,
        grammar.MAX_HOSTS,
        grammar.MAX_VALUES,
        grammar.MAX_ITEMS,
        grammar.MAX_REPEATED,
        MAX_FINDINGS,
    ]


def test_every_decision_and_every_finding_is_named() -> None:
    named = set(re.findall(r"`([a-z]+\.[a-z-]+)`", PAGE))
    decisions = {
        code(row[0])[0]
        for row in cells(section("Decisions by automation-preferences.txt", RULES_PAGE))
    }
    findings = {
        code(row[0])[0]
        for row in cells(section("Findings in automation-preferences.txt", RULES_PAGE))
    }
    of_pages = {"automation.annotation"}
    assert len(decisions) > 10
    assert len(findings) > 10
    assert decisions | (findings - of_pages) <= named
    assert {name for name in named if name.startswith(("automation.", "comity."))} <= set(RULES)


def blocks(title: str) -> list[str]:
    return re.findall(r"\n```python\n(.*?)```", section(title), re.DOTALL)


def test_what_can_be_declared() -> None:
    (block,) = blocks("What a request is")
    stated = ast.literal_eval(re.sub(r"#.*", "", block).partition("meta=")[2].rstrip(" ,\n)"))
    found = declaration(Request(ORIGIN, meta=stated))
    assert None not in found
    assert len(found) == len(stated["comity"])


def test_what_a_session_can_say() -> None:
    (block,) = blocks("Sessions")
    assert block.startswith("COMITY_SESSIONS = ")
    sessions = ast.literal_eval(block.partition(" = ")[2])
    assert {key for session in sessions.values() for key in session} | {"insecure"} == set(KEYS)
    assert '"insecure"' in PAGE


def test_every_reading_is_a_requirement() -> None:
    readings = {row[0] for row in cells(section("Readings"))}
    assert len(readings) > 10
    assert all(re.fullmatch(r"AUT[OX]-\d+", reading) for reading in readings)
