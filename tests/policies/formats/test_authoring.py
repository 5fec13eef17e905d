"""Edits of a file."""

from __future__ import annotations

from comity.policies.formats.authoring import Draft, Edit, Fix, apply


def test_edits_are_made_together_in_the_order_of_their_places() -> None:
    fixes = [
        Fix("replace", (Edit(0, 2, b"xy"),)),
        Fix("insert before it", (Edit(0, 0, b"-"), Edit(4, 5, b""))),
        Fix("overlaps", (Edit(1, 3, b"?"),)),
        Fix("before what is taken out", (Edit(4, 4, b"?"),)),
    ]
    assert apply(b"abcdef", fixes) == (b"-xycdf", tuple(fixes[:2]))


def test_the_end_of_lines_is_that_of_the_file() -> None:
    assert [Draft("u", body).line_end for body in (b"a\r\nb", b"a\rb", b"a\nb\r\n", b"a")] == [b"\r\n", b"\r", b"\n", b"\n"]
