"""Edits of a file."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.formats import authoring
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
    assert [Draft("u", body).line_end for body in (b"a\r\nb", b"a\rb", b"a\nb\r\n", b"a")] == [
        b"\r\n",
        b"\r",
        b"\n",
        b"\n",
    ]


EDITS = st.builds(
    lambda start, length, text: Edit(start, start + length, text),
    st.integers(0, 12),
    st.integers(0, 4),
    st.sampled_from([b"", b"x", b"y"]),
)


@given(st.lists(st.lists(EDITS, min_size=1, max_size=3), max_size=8))
def test_fixes_are_made_but_for_those_that_touch_what_another_has_changed(
    edits: list[list[Edit]],
) -> None:
    fixes = [
        Fix("", tuple(each))
        for each in edits
        if not any(meet(a, b) for a, b in combinations(each, 2))
    ]
    made: list[Fix] = []
    for fix in fixes:
        if not any(
            meet(edit, other) for edit in fix.edits for before in made for other in before.edits
        ):
            made.append(fix)
    body = bytes(range(97, 97 + 16))
    assert apply(body, fixes)[1] == tuple(made)


def meet(edit: Edit, other: Edit) -> bool:
    """Return True if two edits overlap, or begin together and cannot both be made.

    Both can be made if only one of them inserts something and they differ.
    """
    overlap = edit.start < other.end and other.start < edit.end
    return overlap or (
        edit.start == other.start and (edit == other or not (edit.text and other.text))
    )


@pytest.mark.requirement("SEC-1")
def test_what_meets_is_looked_for_beside_an_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def meets(*edits: Edit) -> bool:
        compared.append(edits)
        return False

    monkeypatch.setattr(authoring, "_meet", meets)
    fixes = [
        Fix("", tuple(Edit(at, at + 1, b"") for at in range(first, 4000, 20)))
        for first in range(10)
    ]
    assert apply(bytes(4000), fixes) == (bytes(2000), tuple(fixes))
    assert len(compared) <= 3 * 2000
