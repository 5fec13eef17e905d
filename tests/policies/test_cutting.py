"""What is cut out of fields, and where the rest of it is then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.cutting import Cut, Span, emptied, removals


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("value", "spans", "left"),
    [
        ("abcdef", [["f", 1, 3]], "adef"),
        ("abcdef", [["f", 1, 3], ["f", 2, 5]], "af"),
        ("abcdef", [["f", 0, 6]], ""),
        ("abcdef", [["f"]], ""),
        ("abcdef", [["f", 2, 2]], "abcdef"),
        ("abcdef", [["f", 4, 9]], ""),  # it does not fit: somebody has altered the text since
        ("abcdef", [["f", 1]], ""),
        (["a", "b", "c"], [["f", 1]], ["a", "c"]),
        (["a", "b", "c"], [["f", 1], ["f", 2]], ["a"]),
        (("a", "b"), [["f", 0]], ("b",)),
        (["a"], [["f", 5]], []),
        ({"a": 1}, [["f"]], {}),
        (5, [["f"]], None),
        (b"x", [["f"]], b""),
        (None, [["f"]], None),
        ("abc", [["g"]], "abc"),
    ],
)
def test_what_spans_cover_goes(value: Any, spans: list[Span], left: Any) -> None:
    fields = {"f": value, "h": "stays"}
    cut = Cut(fields, removals(fields, spans))
    assert cut.fields == {"f": left, "h": "stays"}
    assert type(cut.fields["f"]) is type(left)
    assert fields["f"] is value


@given(st.text(max_size=50), st.data())
@pytest.mark.requirement("MEET-5")
def test_what_is_left_is_where_its_spans_say(text: str, data: st.DataObject) -> None:
    place = st.integers(0, len(text))
    spans = data.draw(st.lists(st.tuples(place, place).map(sorted), max_size=5))
    own = sorted(data.draw(st.tuples(place, place)))
    gone = {at for start, end in spans for at in range(start, end)}
    fields = {"f": text}
    cut = Cut(fields, removals(fields, [("f", *span) for span in spans]))
    assert cut.fields["f"] == "".join(letter for at, letter in enumerate(text) if at not in gone)
    kept = "".join(text[at] for at in range(*own) if at not in gone)
    moved = cut.moved([("f", *own)])
    assert "".join(cut.fields["f"][start:end] for _, start, end in moved) == kept
    assert cut.shortens([("f", *own)]) == (0 < len(kept) < own[1] - own[0])


def test_nothing_of_a_kind() -> None:
    assert [emptied(value) for value in ("a", [1], (1,), {"a": 1}, b"a", 5, 1.5, True)] == ["", [], (), {}, b"", None, None, None]
