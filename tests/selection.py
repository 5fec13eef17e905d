"""Which cases of a table run in `make test`; `make test-all` runs each."""

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
        param = case if isinstance(case, Param) else pytest.param(*(case if type(case) is tuple else (case,)))
        proves = {row for mark in param.marks if mark.name == "requirement" for row in mark.args}
        is_left = place % number > 0 and proves <= proved
        proved |= proves
        params.append(param._replace(marks=[*param.marks, pytest.mark.slow]) if is_left else param)
    return params
