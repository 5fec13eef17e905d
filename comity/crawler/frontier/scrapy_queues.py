"""Moves the queue that Scrapy's own scheduler has left in JOBDIR into comity's journal, once.

1. Scrapy's code reads the requests from a copy of its files.
2. One transaction writes them and the fingerprints to the journal, with a mark: the identity of
   Scrapy's folder.
3. Scrapy's files are renamed, and the mark is removed.

If the process is killed before step 2 is complete, the next process starts again. After step 2 it
finds the mark, and only renames the files."""

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

QUEUE, SEEN, STATE = "requests.queue", "requests.seen", "active.json"  # names that Scrapy gives
ASIDE = ".taken-over"  # suffix of the new names of Scrapy's files
WORKPLACE = "taking-over"  # folder of the copy, in JOBDIR
# Calls in a row that take nothing out of a queue before it is given up. The limit is high because
# some of Scrapy's calls return None although requests are left: one per priority that is broken.
IN_VAIN = 10_000
HEX = frozenset(b"0123456789abcdef")


def take_over(folder: Path, journal: Journal, crawler: Crawler, *, with_seen: bool) -> None:
    """Take over the queue of Scrapy's own scheduler, if there is one.

    `with_seen`: True to take over the fingerprints too. Only Scrapy's own duplicate filter has
    them. PolicyError: a file cannot be read or written."""
    queue, mark = folder / QUEUE, journal.mark
    try:
        if mark is not None and not (queue.exists() and _identity(queue) != mark):
            _put_aside(folder, journal, with_seen=with_seen)
        elif queue.is_dir() and (any(queue.iterdir()) or (folder / SEEN).exists()):
            _take_over(folder, journal, crawler, with_seen=with_seen)
    except OSError as error:
        raise PolicyError(
            f"JOBDIR: the queue of Scrapy's own scheduler, `{queue}`, cannot be taken over:"
            f" {error}; make the folder writable, or move the queue away: then the crawl begins"
            " anew"
        ) from None


def _take_over(folder: Path, journal: Journal, crawler: Crawler, *, with_seen: bool) -> None:
    scrapys = _ScrapyQueue(folder, crawler)
    # If the crawl was killed, some requests may be lost. With their fingerprints in the filter, the
    # crawl would never fetch them again.
    has_seen = with_seen and scrapys.was_closed and (folder / SEEN).is_file()
    fingerprints = read_fingerprints((folder / SEEN).read_bytes()) if has_seen else set()
    with scrapys:
        count = journal.take_over(
            _identity(folder / QUEUE), scrapys.requests(), fingerprints, filtered=with_seen
        )
    names = " and ".join(_put_aside(folder, journal, with_seen=with_seen))
    logger.info(
        "JOBDIR: %(taken)d waiting requests and %(seen)d fingerprints of Scrapy's own scheduler"
        " are taken over; its files are kept as %(names)s",
        {"taken": count, "seen": len(fingerprints), "names": names},
    )
    if not scrapys.was_closed:
        logger.warning(
            "JOBDIR: the crawl with Scrapy's own scheduler did not end in order, so part of its"
            " queue may be unreadable: comity fetches pages again that it has seen, and loses none"
        )


def _put_aside(folder: Path, journal: Journal, *, with_seen: bool) -> list[str]:
    """Rename Scrapy's files, and return the new names."""
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
    """Return the identity of the folder. A later folder under the same name has another one."""
    return queue.stat().st_ino


def read_fingerprints(octets: bytes) -> set[bytes]:
    """Return the fingerprints of Scrapy's RFPDupeFilter.

    Up to Scrapy 2.18 each is a line of hexadecimal digits. Since then each is preceded by its
    length, 2 octets. The last one may be cut off."""
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
    """Scrapy's queue, read from a copy of its files, because reading empties it."""

    def __init__(self, folder: Path, crawler: Crawler) -> None:
        self._queue = folder / QUEUE
        self._workplace = folder / WORKPLACE
        self._crawler = crawler
        # A crawl that ends in order writes the list of its queues last.
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
        """Yield the requests in the order in which Scrapy would have handed them out.

        An unreadable request is reported, and stays in Scrapy's files."""
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
        except Exception as error:  # the queue's class may raise any error
            raise PolicyError(
                f"JOBDIR: the queue of Scrapy's own scheduler, `{self._queue}`, cannot be read:"
                f" {error}; set SCHEDULER_PRIORITY_QUEUE and SCHEDULER_DISK_QUEUE as its crawl had"
                " them, or move it away to begin anew"
            ) from None
        before, in_vain = -1, 0
        while (length := len(scheduler)) and in_vain < IN_VAIN:
            before, in_vain = length, in_vain + 1 if length == before else 0
            try:
                request = scheduler.next_request()
            except Exception as error:  # unpickling may raise any error
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
