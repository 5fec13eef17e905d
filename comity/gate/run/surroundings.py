"""The interfaces of a Scrapy crawl, or of a client without Scrapy, that the gate's parts use."""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from comity.gate.http import Request


class Stats(Protocol):
    """The counters of a crawl or a client."""

    def inc_value(self, key: str, count: int = 1) -> None: ...


class Run(Protocol):
    """The crawl or the client that makes the requests."""

    @property
    def stats(self) -> Stats: ...

    @property
    def is_closing(self) -> bool:
        """True if the crawl or client is ending. A request that begins now may never end."""

    @property
    def in_downloader(self) -> Container[Request]:
        """The requests that are in Scrapy's downloader now."""

    def wake(self) -> None:
        """Notify the scheduler that a request may be ready to go out now."""
