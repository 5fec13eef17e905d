"""Twice the hostile input, about twice the work: counted in calls, which are the same on every machine (SEC-1).

The cases are those of benchmarks/hostile.py, which measures their time at the limits of size."""

from __future__ import annotations

import runpy
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from comity.policies.syntax import remembered
from tests.effort import calls
from tests.selection import one_in

ROOT = Path(__file__).parent.parent
MADE = runpy.run_path(str(ROOT / "benchmarks" / "hostile.py"), run_name="hostile")
GROWTH = MADE["GROWTH"]
SLACK = 2000  # calls that whoever comes first makes for all

# What rules for elements cost is bounded by steps, which tests/policies/document/test_selectors.py counts.
CASES = {
    case.name: case
    for case in MADE["cases"]()
    if not MADE["is_later"](case) and not case.name.startswith("element")
}


@pytest.mark.requirement("SEC-1", "AUTO-18")
@pytest.mark.parametrize("name", one_in(37, CASES))
def test_calls_grow_with_the_input(
    name: str, monkeypatch: pytest.MonkeyPatch, *, in_full: bool
) -> None:
    monkeypatch.setattr(remembered, "MAX_OCTETS", 0)  # what is short would be known by then
    case = CASES[name]
    sizes = [case.limit // part for part in ((64, 32, 16) if in_full else (64, 32))]
    steps = [case.prepare(size) for size in sizes]
    for size in sizes:
        case.prepare(size)()  # what is kept for all is made
    for less, more in pairwise(map(calls, steps)):
        assert more <= GROWTH * less + SLACK


def test_what_grows_faster_is_seen() -> None:
    def quadratic(size: int) -> object:
        return [abs(a - b) for a in range(size) for b in range(size)]

    once, twice = (calls(partial(quadratic, size)) for size in (100, 200))
    assert twice > GROWTH * once + SLACK
