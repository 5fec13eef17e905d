"""Read the operator's settings, from a Scrapy project or from a client without Scrapy."""

from __future__ import annotations

import json
from typing import Any, Protocol

DEFAULT_AGENT = "comitybot"


class Settings(Protocol):
    """Settings by name. Scrapy's `BaseSettings` has these methods."""

    def get(self, name: Any, default: Any = None) -> Any: ...

    def getbool(self, name: Any, default: bool = False) -> bool: ...  # noqa: FBT001, FBT002  # as in Scrapy

    def getint(self, name: Any, default: int = 0) -> int: ...

    def getfloat(self, name: Any, default: float = 0.0) -> float: ...

    def getdict(self, name: Any, default: Any = None) -> dict[Any, Any]: ...


class PlainSettings(dict[str, Any]):
    """The settings of a client without Scrapy. It converts texts as Scrapy does."""

    def getbool(self, name: Any, default: bool = False) -> bool:  # noqa: FBT001, FBT002
        """Return a setting as bool. ValueError: the text is neither a number, True nor False."""
        value = self.get(name, default)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return bool(int(value))

    def getint(self, name: Any, default: int = 0) -> int:
        return int(self.get(name, default))

    def getfloat(self, name: Any, default: float = 0.0) -> float:
        return float(self.get(name, default))

    def getdict(self, name: Any, default: Any = None) -> dict[Any, Any]:
        """Return a setting as dict. ValueError: the text is not a JSON object."""
        value = self.get(name, default) or {}
        return dict(json.loads(value) if isinstance(value, str) else value)
