"""What spans cover goes exactly, and what other spans cover stays where they say it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.cutting import Cut, beyond, fits, removals
from comity.policies.values import UseDecision, Verdict


def covered(record: dict[str, Any], span: list[Any]) -> Any:
    value = record[span[0]]
    return value if len(span) == 1 else value[span[1]] if len(span) == 2 else value[span[1] : span[2]]


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
        # Whoever altered a value since left its spans behind: nobody knows where it is.
        ({"text": "short"}, [["text", 4, 9]], {"text": ""}),
        ({"text": "short"}, [["text", 3, 2]], {"text": ""}),
        ({"text": "short"}, [["text", 0]], {"text": ""}),
        ({"links": ["a"]}, [["links", 1]], {"links": []}),
        ({"links": ["a"]}, [["links", 0, 1]], {"links": []}),
        ({"data": {"a": 1}}, [["data", 0]], {"data": {}}),
    ],
)
def test_cut(record: dict[str, Any], spans: list[list[Any]], left: dict[str, Any]) -> None:
    before = dict(record)
    assert Cut(record, removals(record, spans)).record == left
    assert record == before


RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=6)


@pytest.mark.requirement("MEET-5")
@given(RANGES, RANGES)
def test_texts_and_their_other_spans(going: list[list[int]], others: list[list[int]]) -> None:
    """Each character is its own place, so that what is left says itself where it was."""
    text = "".join(chr(0x4E00 + place) for place in range(30))
    record = {"text": text}
    cut = Cut(record, removals(record, [["text", *span] for span in going]))
    gone = {place for start, end in going for place in range(start, end)}
    assert cut.record["text"] == "".join(text[place] for place in range(30) if place not in gone)
    for span in others:
        wanted = "".join(text[place] for place in range(*span) if place not in gone)
        moved = cut.moved([["text", *span]])
        if wanted:
            assert [covered(cut.record, one) for one in moved] == [wanted]
        elif set(range(*span)) <= gone and gone:
            assert moved == []
        assert cut.shortens([["text", *span]]) == (0 < len(wanted) < span[1] - span[0])


@pytest.mark.requirement("MEET-5")
@given(st.sets(st.integers(0, 9)), st.integers(0, 9))
def test_members_and_their_other_spans(going: set[int], other: int) -> None:
    record = {"links": [str(number) for number in range(10)]}
    cut = Cut(record, removals(record, [["links", member] for member in going]))
    assert cut.record["links"] == [str(number) for number in range(10) if number not in going]
    assert [covered(cut.record, span) for span in cut.moved([["links", other]])] == ([] if other in going else [str(other)])


def test_spans_of_what_is_gone_or_cannot_be_told() -> None:
    record = {"text": "one two", "links": ["a"], "title": "t"}
    cut = Cut(record, {"text": [(0, 4)], "links": None})
    assert cut.moved([["text"], ["links", 0], ["links"], ["title"], ["text", 5, 99]]) == [["text"], ["title"], ["text"]]


def limit(max_chars: int | None = None, max_words: int | None = None) -> UseDecision:
    return UseDecision(verdict=Verdict.ALLOW, stated=True, reasons=(), max_chars=max_chars, max_words=max_words)


@pytest.mark.requirement("ACAP-34")
@pytest.mark.parametrize(
    ("record", "words", "left"),
    [
        ({"text": "one two three"}, 2, {"text": "one two"}),
        ({"text": "one two three"}, 3, {"text": "one two three"}),
        ({"text": "one two \n"}, 2, {"text": "one two \n"}),
        ({"text": "one two"}, 0, {"text": ""}),
        ({"title": "A long title", "text": "one two three"}, 2, {"title": "A long", "text": "one two"}),
        ({"html": "<p>one two three", "text": "one two three"}, 2, {"html": "", "text": "one two"}),
        ({"quote": "one", "author": "two"}, 2, {"quote": "one", "author": "two"}),
        ({"quote": "one two", "author": "three"}, 2, {"quote": "one two", "author": ""}),
        ({"parts": ["one two", "three"], "n": 5}, 2, {"parts": [], "n": 5}),
        ({"parts": {"one": ["two"]}}, 2, {"parts": {"one": ["two"]}}),
        ({"title": ["one", "two", "three"]}, 2, {"title": []}),
        ({"url": "https://example.com/a b c", "links": ["u"] * 3}, 2, {"url": "https://example.com/a b c", "links": []}),
    ],
)
def test_length(record: dict[str, Any], words: int, left: dict[str, Any]) -> None:
    assert Cut(record, beyond(record, limit(max_words=words))).record == left


@pytest.mark.requirement("ACAP-34")
@given(
    st.dictionaries(st.sampled_from(["text", "a", "b"]), st.text("ab \n", max_size=12) | st.lists(st.text("ab ", max_size=4))),
    st.none() | st.integers(0, 10),
    st.none() | st.integers(0, 4),
)
def test_all_that_is_left_is_within_the_length(record: dict[str, Any], chars: int | None, words: int | None) -> None:
    left = Cut(record, beyond(record, limit(chars, words))).record
    texts = [text for value in left.values() for text in ([value] if isinstance(value, str) else value)]
    assert fits("".join(texts), limit(chars))
    assert len(" ".join(texts).split()) <= (99 if words is None else words)
