"""Odd path patterns, patterns that cover others, and misspelt words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.syntax.path_patterns import covers, sample
from comity.policies.syntax.suspicions import nearest, oddity
from tests.selection import one_in

ODD = (
    """'/a'|/"a"|/“a”|/a\u00a0b|/a\u200bb|/a b|/^a|/\\d|/[a-z]|/a{2,3}|/<id>|/{id}|/a$b|/a#b|/50%"""
)
PLAIN = "|/|*|/*.pdf$|/a.*|/A_(b)|/a[1]?x[]=2|/%C3%A9|/é|/it's|/a+b|/~x/@y:z"


@pytest.mark.parametrize("pattern", [*ODD.split("|"), "/(a|b)"])
def test_what_matches_nothing_that_is_meant_is_odd(pattern: str) -> None:
    assert oddity(pattern.encode())


@pytest.mark.parametrize("pattern", one_in(2, PLAIN.split("|")))
def test_what_may_be_meant_is_not(pattern: str) -> None:
    assert oddity(pattern.encode()) == ""


_PATTERNS = st.text(alphabet="/ab*", min_size=1, max_size=6).flatmap(
    lambda text: st.sampled_from([text, f"{text}$"])
)


@given(_PATTERNS, _PATTERNS, st.text(alphabet="/abc", max_size=8))
def test_a_pattern_that_covers_the_sample_covers_all_that_the_other_does(
    wide: str, narrow: str, target: str
) -> None:
    assert not covers(wide, sample(narrow)) or not covers(narrow, target) or covers(wide, target)
    assert covers(narrow, sample(narrow))


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("no_Index", "noindex"),
        ("noindx", "noindex"),
        ("max-snipet", "max-snippet"),
        ("something", ""),
        ("noindex" * 100, ""),
        ("", ""),
    ],
)
def test_a_word_that_is_near_is_meant(word: str, near: str) -> None:
    assert nearest(word, ("noindex", "max-snippet")) == near
