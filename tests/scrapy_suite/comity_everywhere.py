"""What holds in every process of a run: no name but localhost resolves, and where STORES is set, the add-on is in the default
settings of Scrapy; where it is not, Scrapy does not know comity's commands either.

To be imported before Scrapy and Twisted are."""

from __future__ import annotations

import importlib.metadata
import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from ipaddress import ip_address
from types import ModuleType
from typing import Any

STORES = os.environ.get("SUITE_STORES")  # of run.py: the folder for what the add-on keeps
SETTINGS = "scrapy.settings.default_settings"

_getaddrinfo = socket.getaddrinfo
_entry_points: Any = importlib.metadata.entry_points


class _WithAddon(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module).update(
            ADDONS={"suite_addon.SuiteAddon": 100},
            COMITY_AGENT="testbot",
            COMITY_MIN_DELAY=0,
            COMITY_STORE=f"{tempfile.mkdtemp(dir=STORES)}/policies.sqlite",
        )


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == SETTINGS else None
        if spec is not None and spec.origin:
            spec.loader = _WithAddon(fullname, spec.origin)
        return spec


def _resolve_nearby(host: Any, *arguments: Any, **keywords: Any) -> Any:
    """As on a machine without a network: tests ask for example.com, and what it answers is nothing that they can rely on."""
    name = (host.decode("latin-1") if isinstance(host, bytes) else host or "").rstrip(".")
    if name and name != "localhost" and not _is_address(name):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return _getaddrinfo(host, *arguments, **keywords)


def _others(**selection: Any) -> Any:
    return [
        entry_point
        for entry_point in _entry_points(**selection)
        if not entry_point.value.startswith("comity.")
    ]


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


socket.getaddrinfo = _resolve_nearby
if STORES:
    sys.meta_path.insert(0, _Finder())
else:
    importlib.metadata.entry_points = _others
