"""Keeps policy files between crawls."""

from __future__ import annotations

from pathlib import Path


class PolicyStore:
    def __init__(self, path: Path) -> None:
        self.path = path
