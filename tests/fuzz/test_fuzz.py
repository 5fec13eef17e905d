"""Every target of tests/fuzz, for a moment: what is fuzzed for hours by `make fuzz` does not break meanwhile."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.selection import examples, one_in

HERE = Path(__file__).parent
MADE = runpy.run_path(str(HERE / "targets.py"))
TARGETS: dict[str, Callable[[bytes], None]] = MADE["TARGETS"]
SEEDS = list(runpy.run_path(str(HERE / "run.py"))["seeds"](MADE["raw"]))
REGRESSIONS = sorted(
    path for path in (HERE / "regressions").iterdir() if path.name.partition("-")[0] in TARGETS
)


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.name)
def test_what_has_failed_once(path: Path) -> None:
    TARGETS[path.name.partition("-")[0]](path.read_bytes())


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    assert len(SEEDS) > 5
    for octets in SEEDS:
        TARGETS[name](octets)


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("name", one_in(4, TARGETS))
def test_a_target_for_a_moment(name: str) -> None:
    @settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
    @given(st.binary(max_size=400))
    @example(b"")
    def run(octets: bytes) -> None:
        TARGETS[name](octets)

    run()
