"""docs/wishes.md has the wishes of publishers, and docs/authoring.md the classes of use."""

from __future__ import annotations

import re
from pathlib import Path

from comity.authoring.wishes import WISHES
from comity.policies.vocabulary.use_classes import CLASSES

PAGE = Path(__file__).parent.parent.parent / "docs" / "authoring.md"


def test_each_wish_has_its_section() -> None:
    text = (PAGE.parent / "wishes.md").read_text("utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [wish.title for wish in WISHES]


def test_the_classes_of_use_are_those_of_explain() -> None:
    rows = re.findall(r"^\| ([a-z]+) \| `([a-z-]+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(class_.name, class_.use) for class_ in CLASSES]
