"""Edits of a file, and words that are meant by others."""

from __future__ import annotations

import pytest

from comity.policies.formats.authoring import Draft, Edit, Fix, apply, meant


def test_edits_are_made_together_in_the_order_of_their_places() -> None:
    fixes = [
        Fix("replace", (Edit(0, 2, b"xy"),)),
        Fix("insert before it", (Edit(0, 0, b"-"), Edit(4, 5, b""))),
        Fix("overlaps", (Edit(1, 3, b"?"),)),
    ]
    assert apply(b"abcdef", fixes) == (b"-xycdf", tuple(fixes[:2]))


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
    assert meant(word, ("noindex", "max-snippet")) == near


def test_the_end_of_lines_is_that_of_the_file() -> None:
    assert [Draft("u", body).line_end for body in (b"a\r\nb", b"a\rb", b"a\nb\r\n", b"a")] == [b"\r\n", b"\r", b"\n", b"\n"]
