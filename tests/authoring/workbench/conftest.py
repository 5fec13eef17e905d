"""The workbench is started where no project is."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the defaults, in place of those that the other tests of authoring have."""
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
