"""Counters that are bounded, and exact in total."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from comity.report.tallies import KeyTally


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 5)), max_size=300))
def test_the_total_is_exact_and_no_key_is_counted_too_often(added: list[tuple[int, int]]) -> None:
    tally: KeyTally[int] = KeyTally(10)
    exact: dict[int, int] = {}
    for key, number in added:
        tally.add(key, number)
        exact[key] = exact.get(key, 0) + number
    assert tally.total == sum(exact.values())
    assert len(tally) <= 20
    assert all(count <= exact[key] for key, count in tally.largest(10))
    assert tally.rest(3) == tally.total - sum(count for _, count in tally.largest(3))


def test_what_comes_often_stays() -> None:
    tally: KeyTally[str] = KeyTally(10)
    for number in range(1000):
        tally.add("often")
        tally.add(f"once {number}")
    assert tally.largest(1) == [("often", 1000)]


def test_others_are_merged_with_what_they_have_folded() -> None:
    first: KeyTally[int] = KeyTally(2)
    second: KeyTally[int] = KeyTally(2)
    for tally in (first, second):
        for key in range(9):
            tally.add(key)
    first.update(second)
    assert first.total == 18
