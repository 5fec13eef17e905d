"""Pytest plugin: writes the outcome of each test to the file that COMITY_OUTCOMES names, one JSON line a test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_worst: dict[str, str] = {}
_ORDER = ("passed", "skipped", "failed")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    before = _worst.get(report.nodeid, "passed")
    outcome: str = report.outcome
    _worst[report.nodeid] = before if outcome == "rerun" else max(before, outcome, key=_ORDER.index)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # that of pytest-xdist, which has all reports
        lines = (json.dumps([name, outcome]) + "\n" for name, outcome in sorted(_worst.items()))
        Path(os.environ["COMITY_OUTCOMES"]).write_text("".join(lines))
