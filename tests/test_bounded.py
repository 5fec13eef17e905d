"""The dictionary that cannot grow without end."""

from __future__ import annotations

import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.bounded import PLACES, Bounded, BoundedSet


def test_one_more_takes_the_place_of_the_oldest() -> None:
    cache: Bounded[str, int] = Bounded(2)
    cache["a"], cache["b"], cache["c"] = 1, 2, 3
    assert dict(cache) == {"b": 2, "c": 3}


def test_to_read_or_replace_an_entry_drops_none_and_keeps_none_longer() -> None:
    cache: Bounded[str, int] = Bounded(2)
    cache["a"], cache["b"] = 1, 2
    cache["a"] = 3
    assert cache["a"] == cache.get("a") == 3
    cache["c"] = 4
    assert dict(cache) == {"b": 2, "c": 4}


def test_what_is_moved_to_the_end_is_kept_longer() -> None:
    cache: Bounded[str, int] = Bounded(2)
    cache["a"], cache["b"] = 1, 2
    cache.move_to_end("a")
    cache["c"] = 3
    assert dict(cache) == {"a": 1, "c": 3}


@given(st.integers(1, 5), st.lists(st.integers(0, 9)))
def test_no_way_to_put_something_leads_beyond_the_bound(most: int, keys: list[int]) -> None:
    cache: Bounded[int, None] = Bounded(most)
    for key in keys:
        cache.setdefault(key)
        assert len(cache) <= most
    cache.update(dict.fromkeys(keys))
    cache |= dict.fromkeys(keys)
    assert len(cache) == min(most, len(set(keys)))
    assert all(key in keys for key in cache)


@pytest.mark.parametrize("most", [0, -1])
def test_a_bound_that_holds_nothing_is_a_mistake(most: int) -> None:
    with pytest.raises(ValueError, match="write 1 or more"):
        Bounded(most)


def test_it_stays_bounded_in_another_process() -> None:
    cache: Bounded[str, int] = Bounded(2)
    cache["a"], cache["b"] = 1, 2
    copied = pickle.loads(pickle.dumps(cache))
    copied["c"] = 3
    assert dict(copied) == {"b": 2, "c": 3}


def test_a_set_keeps_what_was_added_last_in_memory_of_fixed_size() -> None:
    """A worker knows its last fingerprints. They must not make its memory grow."""
    some = BoundedSet(1600)
    strings = [b"%d" % number for number in range(8000)]
    before = sys.getallocatedblocks()
    for string in strings:
        some.add(string)
    assert sys.getallocatedblocks() - before < 100  # with an object for each it would be thousands
    assert sum(string in some for string in strings) <= 1600
    assert sum(string in some for string in strings[-800:]) > 780
    assert b"8000" not in some
    some.clear()
    assert not any(string in some for string in strings)


def test_a_string_that_is_added_again_pushes_none_out() -> None:
    some = BoundedSet(1)  # one bucket
    for number in range(PLACES):
        some.add(b"%d" % number)
    for _ in range(PLACES):
        some.add(b"1")
    assert all(b"%d" % number in some for number in range(PLACES))
    some.add(b"new")
    assert b"new" in some
    assert b"0" not in some
    assert b"1" in some
