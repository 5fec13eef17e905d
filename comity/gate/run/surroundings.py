"""The surroundings of the parts of a crawl, as far as they need them: a crawl of Scrapy, or a client without it."""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from comity.gate.http import Request


class Stats(Protocol):
    """The counters of a crawl or a client."""

    def inc_value(self, key: str, count: int = 1) -> None: ...


class Run(Protocol):
    """The crawl or the client that requests are made for."""

    @property
    def stats(self) -> Stats: ...

    @property
    def is_closing(self) -> bool:
        """True where it is ending: a request that is begun now may never end."""

    @property
    def in_downloader(self) -> Container[Request]:
        """The requests that are on their way through Scrapy's downloader."""

    def wake(self) -> None:
        """Tell whoever hands out requests that there may be one to hand out now."""
