"""docs/authoring.md has the wishes of publishers, and the classes of use."""

from __future__ import annotations

import re
from pathlib import Path

from comity.authoring.explaining import CLASSES

PAGE = Path(__file__).parent.parent.parent / "docs" / "authoring.md"


def test_the_page_begins_with_the_five_things_that_publishers_want() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert headings[:5] == [
        "No training",
        "No training, but search",
        "No snippets",
        "Slower",
        "Nobody but X",
    ]


def test_the_classes_of_use_are_those_of_explain() -> None:
    rows = re.findall(r"^\| ([a-z]+) \| `([a-z-]+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(class_.name, class_.use) for class_ in CLASSES]
