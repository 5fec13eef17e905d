"""Today's policies of many sites: from the policy store, or fetched again."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess

from comity.bounded import Bounded
from comity.crawler.sites.sources import CommandSpider
from comity.crawler.sites.survey import MAX_SEEN, Survey
from comity.dataset.records import DatasetError
from comity.gate.fetching.fetcher import Sites, policies_of
from comity.gate.fetching.files import ROBOTS
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from comity.gate.run.flights import ClosingError
from comity.policies import Site
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import WELL_KNOWN

# Stands for each other policy file of an origin if its robots.txt cannot be fetched. These files
# are then not requested (docs/fetching.md).
UNASKED = PolicyFile(
    due=0.0, copy=Fetched(status=0, error="not fetched, because robots.txt cannot be fetched")
)


class StoredSites:
    """A function that returns the site of an origin, by the copies in the policy store.

    It returns None if the store does not have all copies. The copy of robots.txt is enough if it
    says that robots.txt cannot be fetched. The function can be pickled: each process opens the
    store for itself."""

    def __init__(self, store: Path, now: datetime) -> None:
        """`now`: aware. PolicyError at the first call: the file is not a store."""
        self._path = store
        self._now = now.timestamp()
        self._store: PolicyStore | None = None
        self._sites = Sites()
        self._absent: Bounded[str, None] = Bounded(MAX_SEEN)

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored_sites, (self._path, self._now)

    def __call__(self, origin: str) -> Site | None:
        policies_in_memory = self._sites.get(origin)
        if policies_in_memory is not None:
            return policies_in_memory.site
        if origin in self._absent or not self._path.exists():
            return None
        if self._store is None:
            self._store = PolicyStore(self._path)
        files = self._store.load(origin)
        missing = [path for path in WELL_KNOWN if path not in files]
        if missing and not (ROBOTS in files and policies_of(origin, files, self._now).unreachable):
            self._absent[origin] = None
            return None
        files |= dict.fromkeys(missing, UNASKED)
        self._sites.put(origin, policies := policies_of(origin, files, self._now))
        return policies.site


def _stored_sites(path: Path, now: float) -> StoredSites:
    return StoredSites(path, datetime.fromtimestamp(now).astimezone())


class RefreshSpider(CommandSpider):
    """Fetches the policies of sites, each once, and no page. It waits as long as the sites ask.

    Attributes:
        origins: The origins. They may repeat.
        renew_before: Seconds since the epoch. A copy that was confirmed earlier is requested again,
            even if it is fresh.
        error: An error of the file that has the origins, or None.
        is_complete: True if all origins were asked.
    """

    name = "refresh"
    origins: Iterator[str]
    renew_before: float
    error: DatasetError | None = None
    is_complete = False

    async def start(self) -> AsyncIterator[Any]:
        try:
            await Survey(self.crawler, renew_before=self.renew_before).run(self.origins)
            self.is_complete = True
        except ClosingError:  # Ctrl-C
            pass
        except DatasetError as error:
            self.error = error
        if False:  # makes this function a generator
            yield


def refresh(
    process: AsyncCrawlerProcess | CrawlerProcess, origins: Iterator[str], *, again: bool = False
) -> bool:
    """Fetch today's policies of these origins into the policy store. False if it ended early.

    `origins`: they may repeat. Fresh copies in the store are not fetched again, so a refresh that
    was ended or killed continues. `again`: True to fetch all policies once more, even fresh ones.
    DatasetError: `origins` raises it."""
    crawler = process.create_crawler(RefreshSpider)
    process.crawl(crawler, origins=origins, renew_before=time.time() if again else 0.0)
    process.start()
    spider = crawler.spider
    if not isinstance(spider, RefreshSpider):  # the crawl could not start, and has logged why
        return False
    if spider.error:
        raise spider.error
    return spider.is_complete
