"""Writes the report of a crawl, and serves its counters: COMITY_REPORT, COMITY_METRICS.

The report is written each minute and at the end of the crawl."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.http import Request, Response
from scrapy.utils.job import job_dir

from comity.crawler.crawl import Crawl
from comity.crawler.scrapy_internals import scheduler_of
from comity.dataset.records import DatasetError
from comity.gate.options import Options, stop
from comity.report import needs
from comity.report.collector import Collector
from comity.report.crawled import CrawlFacts, report_of
from comity.report.value import ReportError
from comity.report.writing import write

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.report.metrics import Metrics

logger = logging.getLogger(__name__)

INTERVAL = 60.0  # seconds between two reports while the crawl goes on


def check(options: Options) -> None:
    """SettingsError: a package for reports or metrics is missing, or the report is not writable."""
    try:
        if options.report.endswith((".html", ".htm")):
            needs.check("COMITY_REPORT", needs.PAGE)
        if options.metrics is not None:
            needs.check("COMITY_METRICS", needs.METRICS)
        folder = Path(options.report).parent
        if options.report and not folder.is_dir():
            raise ReportError(
                f"COMITY_REPORT `{options.report}`: there is no folder `{folder}`:"
                " make it, or name another file"
            )
        if options.report and Path(options.report).is_dir():
            raise ReportError(
                f"COMITY_REPORT `{options.report}` is a folder: name a file in this folder"
            )
        if options.report and not os.access(folder, os.W_OK):
            raise ReportError(
                f"COMITY_REPORT `{options.report}`: its folder is not writable: name another file"
            )
    except ReportError as error:
        stop(str(error))
    except OSError as error:  # e.g. the name is too long
        stop(
            f"COMITY_REPORT `{options.report}` cannot be written: {error.strerror}:"
            " name another file"
        )


class Reporting:
    """Extension that writes the report and serves the counters."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        crawl = Crawl.of(crawler)
        assert isinstance(crawl.observer, Collector)
        self._collector = crawl.observer
        self._options = crawl.options
        self._metrics: Metrics | None = None
        self._task: asyncio.Task[None] | None = None
        if self._options.metrics is not None:
            from comity.report.metrics import Metrics  # it needs the extra

            try:
                self._metrics = Metrics(
                    self._collector, self._options.metrics, waiting=self._waiting
                )
            except ReportError as error:
                stop(str(error))
            logger.info("Metrics are at %(url)s", {"url": self._metrics.url})
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._count_response, signals.response_downloaded)
        crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _count_response(self, response: Response, request: Request) -> None:
        self._collector.received(request.url, response.status)

    def _open(self) -> None:
        if self._options.report:
            self._task = asyncio.get_running_loop().create_task(self._write_again())

    async def _write_again(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            await self._write("running")

    async def _close(self, reason: str) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # a report that is being written is completed
            await self._write(reason)
            logger.info("The report is in %(path)s", {"path": self._options.report})
        if self._metrics is not None:
            self._metrics.close()

    async def _write(self, state: str) -> None:
        """Write the report in a thread, while the crawl goes on. The counts are copied first."""
        try:
            report = report_of(self._collector, self._facts(state))
            writing = asyncio.get_running_loop().run_in_executor(
                None, write, report, Path(self._options.report)
            )
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await asyncio.wait([writing])
                raise
        except (DatasetError, OSError) as error:
            logger.error("COMITY_REPORT: %(error)s", {"error": error})
        except Exception:
            logger.exception("COMITY_REPORT: the report cannot be made")

    def _facts(self, state: str) -> CrawlFacts:
        settings = self._crawler.settings
        return CrawlFacts(
            name=self._crawler.spider.name if self._crawler.spider else "",
            state=state,
            options=self._options,
            jobdir=job_dir(settings) or "",
            stats=self._stats.get_stats(),
            waiting=self._waiting(),
        )

    def _waiting(self) -> int:
        scheduler = scheduler_of(self._crawler)
        return len(scheduler) if scheduler is not None and hasattr(scheduler, "__len__") else 0
