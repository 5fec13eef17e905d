"""Puts the add-on into the default settings of Scrapy, in every process that imports this before it imports Scrapy."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

SETTINGS = "scrapy.settings.default_settings"


class _WithAddon(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        folder = tempfile.mkdtemp(prefix="comity-")  # no two processes share what a mock server said
        vars(module).update(
            ADDONS={"comity.crawler.addon.Addon": 100},
            COMITY_AGENT="testbot",
            COMITY_MIN_DELAY=0,
            COMITY_STORE=f"{folder}/policies.sqlite",
        )


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == SETTINGS else None
        if spec is not None and spec.origin:
            spec.loader = _WithAddon(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder())
