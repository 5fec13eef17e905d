"""The covered parts are removed exactly, and other spans still cover the same text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.elements.spans import Cut, Span, merge, removals


def test_ranges_that_touch_become_one_and_an_empty_range_stays() -> None:
    assert merge([(5, 5), (2, 4), (0, 2), (8, 9)]) == [(0, 4), (5, 5), (8, 9)]
    assert removals({"text": "one two"}, [["text", 5, 5], ["text", 0, 2]]) == {"text": [(0, 2)]}


def value_at(record: dict[str, Any], span: Span) -> Any:
    value = record[span[0]]
    return (
        value if len(span) == 1 else value[span[1]] if len(span) == 2 else value[span[1] : span[2]]
    )


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("record", "spans", "left"),
    [
        ({"text": "one two three"}, [["text", 4, 8]], {"text": "one three"}),
        ({"text": "one two three"}, [["text", 0, 13]], {"text": ""}),
        ({"text": "one two three"}, [["text", 0, 3], ["text", 2, 7]], {"text": " three"}),
        ({"text": "one two three"}, [["text", 8, 13], ["text", 0, 4]], {"text": "two "}),
        ({"text": "ä€😀b"}, [["text", 1, 3]], {"text": "äb"}),
        ({"text": "one"}, [["text", 2, 2]], {"text": "one"}),
        ({"text": "one", "title": "t"}, [["text"]], {"text": "", "title": "t"}),
        ({"links": ["a", "b", "c"]}, [["links", 1], ["links", 0]], {"links": ["c"]}),
        ({"links": ["a", "b"]}, [["links"]], {"links": []}),
        ({"data": {"a": {"b": 1}}}, [["data"]], {"data": {}}),
        ({"price": 5, "sold": False}, [["price"], ["sold"]], {"price": None, "sold": None}),
        ({"text": ""}, [["text", 3, 4], ["gone"]], {"text": ""}),
        ({"html": None}, [["html"]], {"html": None}),
        # A value that was changed later has no known positions.
        ({"text": "short"}, [["text", 4, 9]], {"text": ""}),
        ({"text": "short"}, [["text", 3, 2]], {"text": ""}),
        ({"text": "short"}, [["text", 0]], {"text": ""}),
        ({"links": ["a"]}, [["links", 1]], {"links": []}),
        ({"links": ["a"]}, [["links", 0, 1]], {"links": []}),
        ({"data": {"a": 1}}, [["data", 0]], {"data": {}}),
        (
            {"pair": ("a", "b"), "body": b"x"},
            [["pair", 0], ["body"]],
            {"pair": ("b",), "body": b""},
        ),
    ],
)
def test_cut(record: dict[str, Any], spans: list[list[Any]], left: dict[str, Any]) -> None:
    before = dict(record)
    assert Cut(record, removals(record, spans)).fields == left
    assert record == before


RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=6)


@pytest.mark.requirement("MEET-5")
@given(RANGES, RANGES)
def test_texts_and_their_other_spans(going: list[list[int]], others: list[list[int]]) -> None:
    """Each character is its own position, so that the rest shows where it was."""
    text = "".join(chr(0x4E00 + place) for place in range(30))
    record = {"text": text}
    cut = Cut(record, removals(record, [["text", *span] for span in going]))
    gone = {place for start, end in going for place in range(start, end)}
    assert cut.fields["text"] == "".join(text[place] for place in range(30) if place not in gone)
    for span in others:
        wanted = "".join(text[place] for place in range(*span) if place not in gone)
        moved = cut.moved([["text", *span]])
        if wanted:
            assert [value_at(cut.fields, one) for one in moved] == [wanted]
        elif set(range(*span)) <= gone and gone:
            assert moved == []
        assert cut.shortens([["text", *span]]) == (0 < len(wanted) < span[1] - span[0])


@pytest.mark.requirement("MEET-5")
@given(st.sets(st.integers(0, 9)), st.integers(0, 9))
def test_members_and_their_other_spans(going: set[int], other: int) -> None:
    record = {"links": [str(number) for number in range(10)]}
    cut = Cut(record, removals(record, [["links", member] for member in going]))
    assert cut.fields["links"] == [str(number) for number in range(10) if number not in going]
    assert [value_at(cut.fields, span) for span in cut.moved([["links", other]])] == (
        [] if other in going else [str(other)]
    )


def test_spans_of_what_is_gone_or_cannot_be_told() -> None:
    record = {"text": "one two", "links": ["a"], "title": "t"}
    cut = Cut(record, {"text": [(0, 4)], "links": None})
    assert cut.moved([["text"], ["links", 0], ["links"], ["title"], ["text", 5, 99]]) == [
        ["text"],
        ["title"],
        ["text"],
    ]
