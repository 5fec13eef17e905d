"""Generated parts of pages are those that the code makes. If a test fails, run `make docs`."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from comity.policies.answers.rule import RULES
from tests import generated, public_api


@pytest.mark.requirement("MEET-4")
@pytest.mark.parametrize("path", generated.PARTS)
def test_the_page_is_current(path: str) -> None:
    assert (generated.ROOT / path).read_text("utf-8") == generated.generated(path)


def test_the_schemas_are_current() -> None:
    for path, text in generated.schemas().items():
        assert path.read_text("utf-8") == text


@pytest.mark.parametrize("path", generated.PARTS)
def test_every_part_has_one_place(path: str) -> None:
    text = (generated.ROOT / path).read_text("utf-8")
    for name, part in generated.PARTS[path].items():
        before, *after = text.split(f"<!-- {name} -->")
        assert len(after) == 1
        assert before.endswith("\n") == part().startswith("\n")
    assert text.count(generated.END) == len(generated.PARTS[path])


def test_the_pages_of_the_rules_are_current() -> None:
    pages = {path.name: path.read_text("utf-8") for path in generated.RULE_PAGES.iterdir()}
    assert pages == generated.rule_pages()


def test_the_list_of_public_names_is_current() -> None:
    """If a public name goes or changes, docs/stability.md says how long the old one stays."""
    recorded = public_api.RECORDED.read_text("utf-8").splitlines()
    current = public_api.public_api().splitlines()
    assert sorted(set(recorded) - set(current)) == []
    assert sorted(set(current) - set(recorded)) == []


def test_each_rule_is_in_one_table() -> None:
    listed = [rule for name in generated.RULE_TABLES for rule in generated.rules_in(name)]
    assert Counter(listed) == dict.fromkeys(RULES, 1)


def test_each_finding_has_a_section_to_which_its_table_leads() -> None:
    text = (generated.ROOT / "docs" / "rules.md").read_text("utf-8")
    links = re.findall(r"\]\(rules/([a-z-]+\.md)#([a-z.-]+)\)", text)
    anchors = {
        (path.name, anchor)
        for path in generated.RULE_PAGES.iterdir()
        for anchor in re.findall(r'<a id="([a-z.-]+)"></a>', path.read_text("utf-8"))
    }
    assert len(links) == sum(map(generated.is_finding, RULES))
    assert set(links) == anchors
