"""How much of a record is shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.permissions.lengths import beyond, fits
from comity.policies.answers.decision import UseDecision, Verdict
from comity.policies.elements.spans import Cut


def limit(max_chars: int | None = None, max_words: int | None = None) -> UseDecision:
    return UseDecision(
        verdict=Verdict.ALLOW, stated=True, reasons=(), max_chars=max_chars, max_words=max_words
    )


@pytest.mark.requirement("ACAP-34")
@pytest.mark.parametrize(
    ("record", "words", "left"),
    [
        ({"text": "one two three"}, 2, {"text": "one two"}),
        ({"text": "one two three"}, 3, {"text": "one two three"}),
        ({"text": "one two \n"}, 2, {"text": "one two \n"}),
        ({"text": "one two"}, 0, {"text": ""}),
        (
            {"title": "A long title", "text": "one two three"},
            2,
            {"title": "A long", "text": "one two"},
        ),
        ({"html": "<p>one two three", "text": "one two three"}, 2, {"html": "", "text": "one two"}),
        ({"quote": "one", "author": "two"}, 2, {"quote": "one", "author": "two"}),
        ({"quote": "one two", "author": "three"}, 2, {"quote": "one two", "author": ""}),
        ({"parts": ["one two", "three"], "n": 5}, 2, {"parts": [], "n": 5}),
        ({"parts": {"one": ["two"]}}, 2, {"parts": {"one": ["two"]}}),
        ({"title": ["one", "two", "three"]}, 2, {"title": []}),
        (
            {"url": "https://example.com/a b c", "links": ["u"] * 3},
            2,
            {"url": "https://example.com/a b c", "links": []},
        ),
    ],
)
def test_length(record: dict[str, Any], words: int, left: dict[str, Any]) -> None:
    assert Cut(record, beyond(record, limit(max_words=words))).fields == left


class _Counted(str):
    """A text that counts how often it is looked through."""

    times: int = 0

    def split(self, *args: Any) -> list[str]:
        self.times += 1
        return super().split(*args)


@pytest.mark.requirement("SEC-1")
def test_each_text_is_looked_through_once() -> None:
    texts = [_Counted("one two") for _ in range(9)]
    record = {f"f{number}": text for number, text in enumerate(texts)}
    assert Cut(record, beyond(record, limit(10**6, 8))).fields == {
        name: "one two" if name < "f4" else "" for name in record
    }
    assert {text.times for text in texts} == {1}


def test_a_length_that_no_text_has_cuts_nothing() -> None:
    record = {"title": "one two", "text": "one two three", "parts": ["one", ""]}
    assert Cut(record, beyond(record, limit(10**20, 10**20))).fields == record


@pytest.mark.requirement("ACAP-34")
@given(
    st.dictionaries(
        st.sampled_from(["text", "a", "b"]),
        st.text("ab \n", max_size=12) | st.lists(st.text("ab ", max_size=4)),
    ),
    st.none() | st.integers(0, 10),
    st.none() | st.integers(0, 4),
)
def test_all_that_is_left_is_within_the_length(
    record: dict[str, Any], chars: int | None, words: int | None
) -> None:
    left = Cut(record, beyond(record, limit(chars, words))).fields
    texts = [
        text for value in left.values() for text in ([value] if isinstance(value, str) else value)
    ]
    assert fits(["".join(texts)], limit(chars))
    assert len(" ".join(texts).split()) <= (99 if words is None else words)
