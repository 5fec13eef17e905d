"""A downloader middleware that stops the process of a spider just before its request goes out, and a request that kills it."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, Self

from scrapy.exceptions import NotConfigured
from scrapy.http import Request

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Deadly(Request):
    attributes = (*Request.attributes, "is_deadly")

    def __init__(self, *arguments: Any, is_deadly: bool = True, **options: Any) -> None:
        if is_deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        super().__init__(*arguments, **options)


class Stops:
    """STOP_AT: the path of the request. STOP_IN: turns of the loop that pass before: it may come to the socket's buffer."""

    def __init__(self, path: str, turns: int) -> None:
        self._path = path
        self._turns = turns

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        path = crawler.settings["STOP_AT"]
        if not path:
            raise NotConfigured
        return cls(path, crawler.settings.getint("STOP_IN"))

    def process_request(self, request: Request) -> None:
        if request.url.endswith(self._path):
            self._path = "no other"
            self._stop(self._turns)

    def _stop(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._stop, turns - 1)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
