"""Pytest plugin: writes to the file that run.py names how each test went: JSON lines for its set-up, itself, what comes after.

Each test has a store of its own: none knows what the mock server of an earlier one told, and how soon it may be asked again.
Commands that tests start have ten times as long as the tests give them: 15 seconds are few on a machine that is busy."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

# Read at once: there are tests that empty the environment.
_outcomes = Path(os.environ["SUITE_OUTCOMES"])
_stores = os.environ.get("SUITE_STORES")
_is_worker = (
    "PYTEST_XDIST_WORKER" in os.environ
)  # the process that has all reports is told too, and it alone writes

_communicate = subprocess.Popen.communicate


def _communicate_patiently(self: Any, input: Any = None, timeout: float | None = None) -> Any:  # noqa: A002  # as in subprocess
    return _communicate(self, input, timeout and timeout * 10)


subprocess.Popen.communicate = _communicate_patiently  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    if _stores:
        from scrapy.settings import default_settings  # not before the tests' own conftest.py

        vars(default_settings)["COMITY_STORE"] = f"{tempfile.mkdtemp(dir=_stores)}/policies.sqlite"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    outcome: str = report.outcome  # "rerun" is one of a plugin
    if not _is_worker and outcome != "rerun":
        error = next(
            (line for line in report.longreprtext.splitlines() if line.startswith("E ")), ""
        )
        with _outcomes.open("a", encoding="utf-8") as outcomes:
            outcomes.write(
                json.dumps([report.nodeid, outcome, error.removeprefix("E ").strip()]) + "\n"
            )
