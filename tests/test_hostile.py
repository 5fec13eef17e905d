"""Twice the hostile input, about twice the work: counted in calls, which are the same on every machine (SEC-1).

The cases are those of benchmarks/hostile.py, which measures their time at the limits of size."""

from __future__ import annotations

import gc
import runpy
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
MADE = runpy.run_path(str(ROOT / "benchmarks" / "hostile.py"), run_name="hostile")
GROWTH = MADE["GROWTH"]
SMALL = 64  # part of the limit
SLACK = 2000  # calls that whoever comes first makes for all
STEPS = ("accesses", "considered", "next page", "prompt", "others")  # what "first access", "first page" and "findings" do besides

# What rules for elements cost is bounded by steps, which tests/policies/document/test_selectors.py counts.
CASES = {
    case.name: case
    for case in MADE["cases"]()
    if case.name.rpartition(": ")[2] not in STEPS and not case.name.startswith("element")
}


def calls(step: Callable[[], object]) -> int:
    """Of functions in Python and in C."""
    count = 0

    def counting(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # what it calls depends on what was done before
    sys.setprofile(counting)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.mark.requirement("SEC-1", "AUTO-18")
@pytest.mark.parametrize("name", CASES)
def test_calls_grow_with_the_input(name: str, *, in_full: bool) -> None:
    case = CASES[name]
    sizes = [case.limit // SMALL * times for times in ((1, 2, 4) if in_full else (1, 2))]
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
