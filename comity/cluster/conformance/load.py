"""Load the plugin of the conformance tests if pytest runs them.

pytest loads this module in every run, as an entry point. It reads no conftest.py of `--pyargs`
before it reads the options."""

from __future__ import annotations

from typing import Any

PACKAGE = "comity.cluster.conformance"


def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    if any(argument.startswith(PACKAGE) for argument in args):
        early_config.pluginmanager.import_plugin(f"{PACKAGE}.plugin")
