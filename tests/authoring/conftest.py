"""Settings for what asks sites, as a project has them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def project(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings module of a project, with a store of its own."""
    folder = tmp_path_factory.mktemp("project")
    settings = folder / "explained_settings.py"
    settings.write_text(
        f'COMITY_STORE = "{folder / "policies.sqlite"}"\nCOMITY_MIN_DELAY = 0\nCOMITY_AGENT = "testbot"\n',
        "utf-8",
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "explained_settings", raising=False)  # of the test before
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "explained_settings")
    return settings
