"""The settings of a project, for tests that fetch sites."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def project(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up the settings module of a project with its own store."""
    folder = tmp_path_factory.mktemp("project")
    settings = folder / "explained_settings.py"
    settings.write_text(
        (
            f'COMITY_STORE = "{folder / "policies.sqlite"}"\nCOMITY_MIN_DELAY = 0\n'
            'COMITY_AGENT = "testbot"\n'
        ),
        "utf-8",
    )
    monkeypatch.syspath_prepend(folder)
    # The module of the previous test.
    monkeypatch.delitem(sys.modules, "explained_settings", raising=False)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "explained_settings")
    return settings
