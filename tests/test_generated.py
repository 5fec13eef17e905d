"""Generated parts of pages are those that the code makes. If a test fails, run `make docs`."""

from __future__ import annotations

import pytest

from tests import generated


@pytest.mark.requirement("MEET-4")
@pytest.mark.parametrize("path", generated.PARTS)
def test_the_page_is_current(path: str) -> None:
    assert (generated.ROOT / path).read_text("utf-8") == generated.generated(path)


def test_the_schema_of_the_tag_is_current() -> None:
    assert generated.SCHEMA.read_text("utf-8") == generated.tag_schema()


@pytest.mark.parametrize("path", generated.PARTS)
def test_every_part_has_one_place(path: str) -> None:
    text = (generated.ROOT / path).read_text("utf-8")
    for name, part in generated.PARTS[path].items():
        before, *after = text.split(f"<!-- {name} -->")
        assert len(after) == 1
        assert before.endswith("\n") == part().startswith("\n")
    assert text.count(generated.END) == len(generated.PARTS[path])
