"""The spider `urls`: fetch the pages in a list."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TextIO

from scrapy import Request, Spider
from scrapy.http import Response

from comity.crawler.crawl import Crawl
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import typed_url
from comity.spiders.arguments import extractor, flag, only, stop
from comity.spiders.pages import PageItem, page_item

ARGUMENTS = "file, html, text"
PAUSE = 0.1  # seconds between two checks of the number of waiting requests


class UrlsSpider(Spider):
    """Fetch the URLs in a file or from standard input, one in each line.

    Blank lines and lines that begin with # are skipped.

    comity crawl urls -a file=urls.txt [-a html=true] [-a text=trafilatura]
    ... | comity crawl urls -a file=-"""

    name = "urls"
    most_waiting = 1000  # reading of the list pauses while at least this many requests wait

    def __init__(
        self, file: str = "", *, html: str | bool = False, text: str = "main", **unknown: object
    ) -> None:
        """Check the arguments, and open the list.

        `file`: a path, or - for standard input.
        `html`: true to keep the source of pages in their items.
        `text`: the extractor of the text: main or trafilatura."""
        super().__init__()
        only(self.name, unknown, f"it takes {ARGUMENTS}")
        if not file:
            stop(self.name, "no list: add -a file=urls.txt, or -a file=- for standard input")
        self.file = file
        self.keep_html = flag(self.name, "html", html)
        self.extractor = extractor(self.name, text)
        try:
            self._lines: TextIO = (
                sys.stdin if file == "-" else Path(file).open(encoding="utf-8", errors="replace")  # noqa: SIM115
            )
        except OSError as error:
            stop(self.name, f"file `{file}` cannot be read: {error.strerror}")

    async def start(self) -> AsyncIterator[Request]:
        number = 0
        with self._lines:
            # Reading may block. On a pipe, it may block for any time.
            while line := await asyncio.to_thread(self._lines.readline):
                number += 1
                if request := self._request(line.strip(), number):
                    yield request
                # The queue has no event for getting shorter.
                while self._waiting() >= self.most_waiting:  # noqa: ASYNC110
                    await asyncio.sleep(PAUSE)

    def parse(self, response: Response) -> Iterator[PageItem]:
        yield page_item(response, html=self.keep_html, extractor=self.extractor)

    def _request(self, line: str, number: int) -> Request | None:
        if not line or line.startswith("#"):
            return None
        try:
            return Request(typed_url(line))
        except ValueError:
            assert self.crawler.stats
            self.crawler.stats.inc_value("comity/urls/bad")
            self.logger.error(
                "%s:%d: `%s` is no http or https URL: passed over",
                self.file,
                number,
                printable(line.encode()),
            )
            return None

    def _waiting(self) -> int:
        scheduler = Crawl.of(self.crawler).scheduler
        return 0 if scheduler is None else len(scheduler)
