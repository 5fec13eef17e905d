"""Crawls whose processes are killed with -9, and a count of the items that they leave.

    outcome = KilledCrawl(folder, serve, "csv", "off", state=None).run(20, Random(1))

The count compares the pages that the servers have served with the records in the files of all processes."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from comity.dataset.files.folders import open_dataset
from comity.dataset.files.formats import open_reader
from comity.dataset.records import Unreadable
from tests.live.test_jobdir import Project, Running, asked, links
from tests.live.two_items import ITEMS, TwoItems

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve
    from tests.redis_server import Server

# Format -> name of the feed. `{}` is the number of the worker: each adds to its own file when it is started again.
FEEDS = {
    "jsonl": "items-{}.jsonl",
    "csv": "items-{}.csv",
    "parquet": "items-{}.parquet/%(batch_time)s.parquet",
    "warc.gz": "items-{}.warc.gz",
}
TAGS = {"tagged": "permissions", "untagged": "off"}  # values of COMITY_TAG
HOSTS = 4
WORKERS = 2  # of a crawl with COMITY_STATE
ROBOTS = "User-agent: *\nCrawl-delay: {}\n"
MOST_PAGES = 25  # that are served between two kills


class Outcome(NamedTuple):
    """The count at the end of a crawl."""

    kills: int
    pages: int  # distinct ones that the servers have served
    repeats: int  # requests for a page that was served before
    items: int  # distinct ones in the files
    lost: int  # items of served pages that no file has
    doubles: int  # records of an item that was there before
    unreadable: int  # lines, rows, records and files


class KilledCrawl:
    """A crawl of four hosts, whose processes are killed and started again."""

    def __init__(
        self,
        folder: Path,
        serve: Serve,
        feed: str,
        tag: str,
        state: Server | None,
        *,
        pages: int = 100,
        delay: float = 0.2,
    ) -> None:
        """`feed`: one of FEEDS. `tag`: COMITY_TAG. `state`: None for a crawl with JOBDIR. `pages`: of each host. `delay`: seconds
        between two pages of a host."""
        self._feed, self._pages, self._state = feed, pages, state
        self._project = Project(folder, reactor=True)
        self._settings: dict[str, Any] = {
            "COMITY_TAG": tag,
            "COMITY_PART_SECONDS": 1,
            "ITEM_PIPELINES": {},
            "LOG_LEVEL": "WARNING",
            "SPIDER_MODULES": ["two_items"],
        }
        if state is not None:
            self._settings |= {"COMITY_STATE": state.url, "COMITY_WORKER_TIMEOUT": 2, "JOBDIR": ""}
        self._servers = _site(serve, pages, delay)

    def run(self, kills: int, random: Random) -> Outcome:
        """Kill so many processes at random moments, let the crawl end, and count."""
        try:
            return self._judged(self._crawl(kills, random))
        finally:
            self._project.close()

    def _crawl(self, kills: int, random: Random) -> int:
        """Crawl to the end. Return the number of processes that were killed on the way."""
        workers = [self._begin(number) for number in range(WORKERS if self._state else 1)]
        killed = 0
        while killed < kills:
            served = self._served + random.randint(1, MOST_PAGES)
            while self._served < served and not all(worker.has_ended for worker in workers):
                time.sleep(0.002)  # between two looks at other processes
            number = random.randrange(len(workers))
            if workers[number].has_ended:
                break
            workers[number].kill()
            workers[number] = self._begin(number)
            killed += 1
        for worker in workers:
            assert worker.end() == 0, worker.log
        return killed

    @property
    def _served(self) -> int:
        """The number of pages that the servers have served."""
        return sum(len(asked(server)) for server in self._servers)

    @property
    def _requests(self) -> Counter[str]:
        """The URLs of pages that the servers have served."""
        return Counter(server.url(path) for server in self._servers for path in asked(server))

    def _begin(self, number: int) -> Running:
        feeds = {FEEDS[self._feed].format(number): {"format": self._feed}}
        return self._project.begin(
            TwoItems, {**self._settings, "FEEDS": feeds}, url=self._servers[0].url("/0")
        )

    def _judged(self, kills: int) -> Outcome:
        requests = self._requests
        expected = {(url, number) for url in requests for number in range(ITEMS)}
        found: Counter[tuple[str, int]] = Counter()
        unreadable = 0
        for record in self._records():
            if record is None:
                unreadable += 1
            else:
                found[record] += 1
        return Outcome(
            kills=kills,
            pages=len(requests),
            repeats=requests.total() - len(requests),
            items=len(found),
            lost=len(expected - found.keys()),
            doubles=found.total() - len(found),
            unreadable=unreadable,
        )

    def _records(self) -> Iterator[tuple[str, int] | None]:
        """Yield the URL and the number of each record in the files of all workers, and None for what cannot be read."""
        folder = self._project.folder
        if self._feed == "csv":
            for path in folder.glob("items-*.csv"):
                yield from _rows(path)
            return
        paths = folder.glob(
            "items-*.parquet" if self._feed == "parquet" else f"items-*.{self._feed}"
        )
        for file in [file for path in paths for file in open_dataset(path).files]:
            reader = open_reader(file)
            try:
                parts = [*reader.parts()]
            except Exception:  # the file of a killed process may be of any shape
                yield None
                continue
            for record in (
                record for part in parts for batch in reader.read(part) for record in batch
            ):
                yield None if isinstance(record, Unreadable) else (record["url"], record["number"])


def _rows(path: Path) -> Iterator[tuple[str, int] | None]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        columns = next(reader, [])
        try:
            for row in reader:
                if row != columns:  # each process that adds to the file writes its columns again
                    values = dict(zip(columns, row, strict=True))
                    yield values["url"], int(values["number"])
        except (csv.Error, ValueError):
            yield None


def _site(serve: Serve, pages: int, delay: float) -> list[Loopback]:
    """Return the servers of the hosts. Each page leads to three pages of its host, and to one of the next host."""
    servers = [
        serve({"/robots.txt": ROBOTS.format(delay)}, host=f"127.0.0.{place + 2}")
        for place in range(HOSTS)
    ]
    for place, server in enumerate(servers):
        other = servers[(place + 1) % HOSTS]
        for page in range(pages):
            children = [f"/{child}" for child in range(3 * page + 1, 3 * page + 4) if child < pages]
            text = f'"page {page}", ' * (
                1 if page % 5 else 1000
            )  # small ones wait in buffers, large ones are torn
            server.routes[f"/{page}"] = f"<p>{text}</p>" + links(*children, other.url(f"/{page}"))
    return servers
