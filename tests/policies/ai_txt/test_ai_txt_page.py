"""The examples of docs/ai-txt.md are read as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

import comity.policies
from comity.policies.formats.ai_txt import ACTIONS, from_xml, kind_of, parse, spawning

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "ai-txt.md").read_text("utf-8")
TEXT, XML, SPAWNING = (example.encode() for example in re.findall(r"```(?:xml)?\n(.*?)```", PAGE, re.DOTALL))


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
