"""The queue that Scrapy's own scheduler has left in JOBDIR: its requests and fingerprints go into ours, once.

Scrapy reads them, from a copy. They are written in one transaction, with a mark of where they came from, and then the files of
Scrapy get other names. Where a process is killed on the way the next one begins again, or has only the names to change."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.http import Request
from scrapy.statscollectors import DummyStatsCollector
from scrapy.utils.misc import load_object

from comity.policies import PolicyError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from comity.crawler.frontier.journal import Journal

logger = logging.getLogger(__name__)

QUEUE, SEEN, STATE = "requests.queue", "requests.seen", "active.json"  # of Scrapy
ASIDE = ".taken-over"  # end of the names that they get
WORKPLACE = "taking-over"  # folder of the copy, in JOBDIR
IN_VAIN = 10_000  # times that nothing comes out of a queue that is not empty: behind what cannot be read it is asked once a priority
HEX = frozenset(b"0123456789abcdef")


def take_over(folder: Path, journal: Journal, crawler: Crawler, *, with_seen: bool) -> None:
    """`with_seen`: the fingerprints too, where the duplicate filter of the crawl is Scrapy's own. PolicyError where it fails."""
    queue, mark = folder / QUEUE, journal.mark
    try:
        if mark is not None and not (queue.exists() and _identity(queue) != mark):
            _put_aside(folder, journal, with_seen=with_seen)
        elif queue.is_dir() and (any(queue.iterdir()) or (folder / SEEN).exists()):
            _take_over(folder, journal, crawler, with_seen=with_seen)
    except OSError as error:
        raise PolicyError(
            f"JOBDIR: the queue of Scrapy's own scheduler, `{queue}`, cannot be taken over: {error}; make the folder writable, or"
            " move the queue away: then the crawl begins anew"
        ) from None


def _take_over(folder: Path, journal: Journal, crawler: Crawler, *, with_seen: bool) -> None:
    scrapys = _ScrapyQueue(folder, crawler)
    # Without what it has lost of its queue, what it has seen would keep the crawl from being led there again.
    has_seen = with_seen and scrapys.was_closed and (folder / SEEN).is_file()
    fingerprints = read_fingerprints((folder / SEEN).read_bytes()) if has_seen else set()
    with scrapys:
        count = journal.take_over(
            _identity(folder / QUEUE), scrapys.requests(), fingerprints, filtered=with_seen
        )
    names = " and ".join(_put_aside(folder, journal, with_seen=with_seen))
    logger.info(
        "JOBDIR: %(taken)d requests that wait and %(seen)d fingerprints of Scrapy's own scheduler are taken over; its files are"
        " kept as %(names)s",
        {"taken": count, "seen": len(fingerprints), "names": names},
    )
    if not scrapys.was_closed:
        logger.warning(
            "JOBDIR: the crawl with Scrapy's own scheduler did not end in order, so that not all of its queue can be read:"
            " what it has seen is asked for again, and nothing is lost"
        )


def _put_aside(folder: Path, journal: Journal, *, with_seen: bool) -> list[str]:
    """The new names."""
    names = []
    for name in (QUEUE, SEEN) if with_seen else (QUEUE,):
        if (folder / name).exists():
            number = 1
            while (new := folder / f"{name}{ASIDE}{f'-{number}' if number > 1 else ''}").exists():
                number += 1
            (folder / name).rename(new)
            names.append(new.name)
    shutil.rmtree(folder / WORKPLACE, ignore_errors=True)
    journal.unmark()
    return names


def _identity(queue: Path) -> int:
    """The identity of the folder, whatever it holds: a later one under the same name has another."""
    return queue.stat().st_ino


def read_fingerprints(octets: bytes) -> set[bytes]:
    """The fingerprints of Scrapy's RFPDupeFilter: up to 2.18 a line of hexadecimal digits each, since then each after its length,
    2 octets.

    The last one may be cut off."""
    if octets[:1] and octets[0] in HEX:
        lines = octets.split(b"\n")
        return {
            bytes.fromhex(line.decode("ascii"))
            for line in lines
            if len(line) % 2 == 0 and HEX.issuperset(line) and line
        }
    fingerprints, start = set(), 0
    while start + 2 <= len(octets):
        end = start + 2 + int.from_bytes(octets[start : start + 2], "big")
        if end > len(octets):
            break
        fingerprints.add(octets[start + 2 : end])
        start = end
    return fingerprints


class _ScrapyQueue:
    """The queue of Scrapy, by a copy of its files: to read it empties it."""

    def __init__(self, folder: Path, crawler: Crawler) -> None:
        self._queue = folder / QUEUE
        self._workplace = folder / WORKPLACE
        self._crawler = crawler
        # A crawl that ends in order writes last which queues there are.
        state = self._queue / STATE
        files = [path for path in self._queue.rglob("*") if path.is_file() and path != state]
        self.was_closed = state.exists() and all(
            path.stat().st_mtime_ns <= state.stat().st_mtime_ns for path in files
        )

    def __enter__(self) -> None:
        self._remove()
        shutil.copytree(self._queue, self._workplace / QUEUE)

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _remove(self) -> None:
        if self._workplace.exists():
            shutil.rmtree(self._workplace)

    def requests(self) -> Iterator[Request]:
        """The requests, in the order in which Scrapy would have handed them out. One that cannot be read is reported; it stays in
        the files."""
        settings, spider = self._crawler.settings, self._crawler.spider
        assert spider
        scheduler = Scheduler(
            BaseDupeFilter(),
            str(self._workplace),
            load_object(settings["SCHEDULER_DISK_QUEUE"]),
            load_object(settings["SCHEDULER_MEMORY_QUEUE"]),
            stats=DummyStatsCollector(self._crawler),
            pqclass=load_object(settings["SCHEDULER_PRIORITY_QUEUE"]),
            crawler=self._crawler,
        )
        try:
            scheduler.open(spider)
        except Exception as error:  # of whatever class of queue
            raise PolicyError(
                f"JOBDIR: the queue of Scrapy's own scheduler, `{self._queue}`, cannot be read: {error}; set"
                " SCHEDULER_PRIORITY_QUEUE and SCHEDULER_DISK_QUEUE as its crawl had them, or move it away to begin anew"
            ) from None
        before, in_vain = -1, 0
        while (length := len(scheduler)) and in_vain < IN_VAIN:
            before, in_vain = length, in_vain + 1 if length == before else 0
            try:
                request = scheduler.next_request()
            except Exception as error:  # whatever the objects in it raise
                assert self._crawler.stats
                self._crawler.stats.inc_value("comity/scheduler/unreadable")
                logger.error(
                    "JOBDIR: a request of Scrapy's own scheduler cannot be read: %(error)s",
                    {"error": error},
                )
            else:
                if request is not None:
                    yield request
        scheduler.close("taken over")
