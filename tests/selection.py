"""Which cases of a table run in `make test`, and how many examples; `make test-all` runs each, and all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

Param = type(pytest.param())


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases, of which a tuple is several parameters; the first, each `number`-th after it, and the first that proves a
    requirement are not left out as slow."""
    params = []
    proved: set[str] = set()
    for place, case in enumerate(cases):
        param = (
            case
            if isinstance(case, Param)
            else pytest.param(*(case if type(case) is tuple else (case,)))
        )
        proves = {row for mark in param.marks if mark.name == "requirement" for row in mark.args}
        is_left = place % number > 0 and proves <= proved
        proved |= proves
        params.append(param._replace(marks=[*param.marks, pytest.mark.slow]) if is_left else param)
    return params


def examples(number: int, *, quick: int | None = None) -> int:
    """So many of Hypothesis, of which `make test` tries few: as many as of other tests, or one in 25.

    `quick`: so many, because each takes long."""
    from hypothesis import (
        settings,  # the worker that runs spiders imports this module and needs no Hypothesis
    )

    if settings.get_current_profile_name() != "quick":
        return number
    return max(settings().max_examples, number // 25) if quick is None else quick
