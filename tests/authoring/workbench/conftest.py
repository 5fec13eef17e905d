"""The workbench starts outside projects."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the default settings, in place of those of the other tests in authoring."""
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
