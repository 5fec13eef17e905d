"""The dictionary that cannot grow without end."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.bounded import Bounded


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
