"""Today's policies of many sites: as the policy store has them, or fetched again."""

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

# The other files of an origin whose robots.txt cannot be had: nobody asks for them (docs/fetching.md).
UNASKED = PolicyFile(
    due=0.0, copy=Fetched(status=0, error="not asked for, as robots.txt cannot be had")
)


class StoredSites:
    """Origin -> its site by the copies in the policy store, None where the store has not all of them.

    It can be pickled: each process opens the store for itself."""

    def __init__(self, store: Path, now: datetime) -> None:
        """PolicyError at the first question where the file is no store. `now`: aware."""
        self._path = store
        self._now = now.timestamp()
        self._store: PolicyStore | None = None
        self._sites = Sites()
        self._absent: Bounded[str, None] = Bounded(MAX_SEEN)

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored, (self._path, self._now)

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


def _stored(path: Path, now: float) -> StoredSites:
    return StoredSites(path, datetime.fromtimestamp(now).astimezone())


class RefreshSpider(CommandSpider):
    """Fetches the policies of sites, each once, and no page. It keeps to what the sites said of when to ask them."""

    name = "refresh"
    origins: Iterator[str]  # they may repeat
    renew_before: float  # seconds since the epoch: a copy that was confirmed earlier is asked for again, however fresh
    error: DatasetError | None = None  # of the file that has the origins
    is_complete = False

    async def start(self) -> AsyncIterator[Any]:
        try:
            await Survey(self.crawler, renew_before=self.renew_before).run(self.origins)
            self.is_complete = True
        except ClosingError:  # Ctrl-C
            pass
        except DatasetError as error:
            self.error = error
        if False:  # what makes it a generator
            yield


def refresh(
    process: AsyncCrawlerProcess | CrawlerProcess, origins: Iterator[str], *, again: bool = False
) -> bool:
    """Have today's policies of these origins in the policy store; False where it was ended before its time.

    `origins`: they may repeat. What the store has fresh is not asked for: a refresh that was ended or killed goes on where it
    was. `again`: all is asked for once more, however fresh. DatasetError where `origins` raises it."""
    crawler = process.create_crawler(RefreshSpider)
    process.crawl(crawler, origins=origins, renew_before=time.time() if again else 0.0)
    process.start()
    spider = crawler.spider
    if not isinstance(spider, RefreshSpider):  # the crawl could not even start; it has said why
        return False
    if spider.error:
        raise spider.error
    return spider.is_complete
