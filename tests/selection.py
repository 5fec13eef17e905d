"""Which cases of a table run in `make test`; `make test-all` runs each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases, of which a tuple is several parameters; the first, and each `number`-th after it, are not left out as slow."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.slow] * (place % number > 0))
        for place, case in enumerate(cases)
    ]
