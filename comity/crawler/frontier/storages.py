"""The storage of a crawl: a file in JOBDIR, or the state that the workers of the crawl share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object

from comity.crawler.crawl import Crawl
from comity.crawler.frontier.journal import Journal
from comity.crawler.frontier.queue import Queue
from comity.crawler.frontier.scrapy_queues import take_over
from comity.crawler.scrapy_internals import never_opened
from comity.gate.options import stop
from comity.gate.options.agreement import LIMITS, Agreement
from comity.policies import PolicyError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.cluster.state import SharedState

logger = logging.getLogger(__name__)


def make_dupefilter(crawler: Crawler, *, is_stored: bool) -> BaseDupeFilter:
    """Return the duplicate filter that DUPEFILTER_CLASS names.

    `is_stored`: True if the crawl has a storage. Then Scrapy's own filter only writes the log: the
    storage keeps the fingerprints."""
    dupefilter_class = load_object(crawler.settings["DUPEFILTER_CLASS"])
    if is_stored:
        if dupefilter_class is RFPDupeFilter:
            debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
            return RFPDupeFilter(None, debug, fingerprinter=crawler.request_fingerprinter)
        logger.warning(
            "DUPEFILTER_CLASS is not Scrapy's own: it may know requests that a killed crawl has"
            " lost, and does not know requests of other workers"
        )
    dupefilter: BaseDupeFilter = build_from_crawler(dupefilter_class, crawler)
    return dupefilter


def is_stored(crawler: Crawler) -> bool:
    """Return True if the crawl has a storage."""
    return bool(job_dir(crawler.settings) or Crawl.of(crawler).state)


def open_storage(crawler: Crawler, dupefilter: BaseDupeFilter) -> Queue | None:
    """Return the storage of the crawl; None if it has none. PolicyError: it cannot be used."""
    state = Crawl.of(crawler).state
    if state is not None:
        return _shared_queue(crawler, state)
    if folder := job_dir(crawler.settings):
        return _journal(crawler, Path(folder), with_seen=type(dupefilter) is RFPDupeFilter)
    return None


def _shared_queue(crawler: Crawler, state: SharedState) -> Queue:
    from comity.crawler.frontier.shared_queue import SharedQueue  # it needs the extra `redis`

    crawl = Crawl.of(crawler)
    return SharedQueue(
        crawler,
        state.queue(),
        state.neighbours,
        rest=crawl.pace.rest,
        most=crawl.options.max_waiting,
        agreement=Agreement.of(crawler.settings, crawler.spidercls.name),
        again_after=crawl.options.again_after,
        limits={name: crawler.settings.getfloat(name) for name in LIMITS}
        if crawl.options.limits == "crawl"
        else {},
    )


def _journal(crawler: Crawler, folder: Path, *, with_seen: bool) -> Queue:
    """Open the file, and let it take over the queue that Scrapy's own scheduler left.

    `with_seen`: True to take over the seen requests too."""
    journal = Journal(folder)
    if crawler.spider is not None:
        journal.open(crawler.spider)
        take_over(folder, journal, crawler, with_seen=with_seen)
    return journal


@contextmanager
def stop_if_unusable(crawler: Crawler) -> Iterator[None]:
    """End the program with one line if a PolicyError says that the storage cannot be used."""
    try:
        yield
    except PolicyError as error:
        never_opened(crawler)
        stop(str(error))
