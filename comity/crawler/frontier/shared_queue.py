"""The requests of a crawl by several workers.

They wait in COMITY_STATE. A worker holds the requests of the hosts that it has leased.

How it works. These steps run beside the scheduler, which waits for none of them:

    work     Each TICK, news is sent to the server (counts.py, spider_state.py, outbox.py). Then
             this worker looks after its hosts (leased_hosts.py), and leases more of them, up to its
             share (host_share.py).
    renew    Each third of TTL the leases are prolonged. If the lease of a host has run out by then,
             this worker forgets the host's requests. Changes of other workers to the state of the
             spider are taken over.
    bury     The hosts of a dead worker of this machine go to other workers at once.
    look     While no request waits here, the server is asked whether any request waits, or is out,
             anywhere. If not, the crawl is finished. The first answer may be the one that another
             worker has noted.
    limit    While CLOSESPIDER_* limit the crawl, its counts are compared with them each second. The
             worker that sees first that a limit is reached ends the crawl.
    sweep    Data of earlier runs of the crawl is deleted.

If a host is slower than COMITY_MAX_DELAY permits, its requests are set aside: the host is given
back, and the crawl does not wait for it. A worker leases it again when it is due, or when another
worker begins.

Leases share out the work and nothing else: the ledger guards the pace of a host, independent of its
lease. A worker that is killed loses its leases at once if another worker on its machine notices,
else after TTL. Other workers repeat the requests that it had out. A worker that is suspended or cut
off from the server for as long as TTL loses its leases too.

The server drops a new request if any worker has put its fingerprint before. It is counted when the
server's answer is there. This worker remembers fingerprints only as long as it talks to one server:
another server, or one started anew, may have lost them. While the server is away or full, no host
is leased, and new requests wait here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from time import time
from typing import TYPE_CHECKING, Any

from comity.bounded import BoundedSet
from comity.cluster.counts import ERRORS, ITEMS, PAGES, CrawlCounts, CrawlLimits
from comity.cluster.errors import StateLostError
from comity.cluster.queue import QueuedRequest
from comity.cluster.spider_state import SpiderState
from comity.cluster.state import CrawlQueue
from comity.crawler.frontier.complaints import Complaints
from comity.crawler.frontier.host_share import LOOK_AGE, HostShare
from comity.crawler.frontier.leased_hosts import LeasedHosts
from comity.crawler.frontier.outbox import Outbox
from comity.crawler.frontier.queue import Taker
from comity.crawler.frontier.request_bodies import pack
from comity.crawler.scrapy_internals import end, wake
from comity.gate.fetching.freshness import DAY
from comity.gate.options.agreement import Agreement
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import host_name

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Request

    from comity.cluster.neighbours import Neighbours

logger = logging.getLogger(__name__)

TICK = 0.05  # seconds between two writes
MAX_KNOWN = 100_000  # fingerprints that are known here, without asking the server
# Values of finish_reason: the crawl was ended by a command, the server has lost requests, or the
# settings of the crawl were replaced.
ENDED, LOST, RECONFIGURED = ("crawl_ended", "state_lost", "crawl_reconfigured")
BURY_AGAIN = 0.25  # seconds between two looks for workers on this machine that are dead
LIMIT = "closespider_"  # the finish reasons of limits begin with it
LIMIT_AGAIN = 1.0  # seconds between two looks whether a limit of the crawl is reached
LOOK_AGAIN = 1.0  # seconds between two looks whether the crawl is finished


def is_start(request: Request) -> bool:
    """Return True for a start request, a retry of one, and a request to which one is redirected.

    Requests of callbacks may have a copy of its meta, and have a depth."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get("depth")


class SharedQueue:
    """A Queue in COMITY_STATE, for several workers."""

    setting = "COMITY_STATE"
    is_shared = True
    has_begun = True  # another worker may have stored items before

    def __init__(
        self,
        crawler: Crawler,
        queue: CrawlQueue,
        neighbours: Neighbours,
        *,
        rest: Callable[[str, float], object],
        most: int,
        agreement: Agreement,
        again_after: float = 0.0,
        keep_seen: float = 0.0,
        limits: Mapping[str, float] = {},  # it is read only
    ) -> None:
        """Prepare the queue.

        Args:
            rest: called with a host and the seconds for which it gets no requests.
            most: this worker leases no more hosts while the crawl has more requests. 0: no limit.
            agreement: the settings of this worker. If those of the crawl decide differently, the
                worker does not begin.
            again_after: a crawl begins again if it has been finished for so many seconds. 0: it
                does not begin again.
            keep_seen: in a run that this worker begins, the requests of the runs of the last so
                many seconds count as seen. 0: none do.
            limits: CLOSESPIDER_* of the whole crawl, by their names."""
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._queue = queue
        self._neighbours = neighbours
        self._agreement = agreement
        self._again_after = again_after
        self._keep_seen = keep_seen
        self._complaints = Complaints(self.setting)
        self._counts = CrawlCounts(crawler.stats.get_stats, queue)
        self._limits = CrawlLimits(limits)
        self._state = SpiderState(queue)
        self._outbox = Outbox(queue, crawler.stats)
        self._hosts = LeasedHosts(
            crawler, queue, self._outbox, rest=rest, arrived=self._note_arrival
        )
        self._share = HostShare(queue, self._hosts, self._complaints, most=most)
        self._fingerprints = BoundedSet(MAX_KNOWN)
        queue.on_change(self._fingerprints.clear)
        self._spider: Spider | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._is_lost = False  # True if the state is lost: nothing is written to it any more
        self.is_finished = False

    @property
    def run(self) -> int:
        return self._queue.run

    async def open(self, spider: Spider) -> None:
        self._spider = self._hosts.spider = spider
        self._neighbours.appear()
        while True:
            try:
                await self._queue.open()
                await self._queue.renew([])  # from now on others count this worker
                if self._queue.state != "ended" or await self._begins_again_after_limit():
                    await self._take_up()
                    await self._agree()
                await self._queue.recall()  # COMITY_MAX_DELAY may have changed
                await self._state.exchange()
                if not self._queue.is_outdated:
                    break
            except OSError as error:  # the server was there when the process began
                self._complaints.log(f"{error}; comity tries again")
                await asyncio.sleep(TICK)
            except StateLostError as error:
                raise PolicyError(
                    f"COMITY_STATE: {self._queue.address} cannot be relied on: {error}"
                ) from None
            except PolicyError:  # this worker is refused
                await self._queue.close()
                raise
        if self._queue.state == "ended":
            name, reason = self._queue.address.crawl, (await self._queue.sums()).reason
            because = f" ({reason})" if reason.startswith(LIMIT) else ""
            await self._queue.close()
            raise PolicyError(
                f"crawl `{name}` has been ended{because}: resume it with `comity frontier {name}"
                " --resume`, or set COMITY_CRAWL to another name"
            )
        spider.state = self._state.values  # type: ignore[attr-defined]  # as Scrapy's SpiderState
        tasks = [self._work(), self._renew(), self._bury(), self._look(), self._sweep()]
        if self._limits:
            tasks.append(self._limit())
        for task in tasks:
            self._tasks.append(asyncio.create_task(task))

    async def _begins_again_after_limit(self) -> bool:
        """Begin the crawl again if a limit has ended it and it is time. True if it has begun."""
        sums = await self._queue.sums()
        if not sums.reason.startswith(LIMIT) or not 0 < self._again_after <= sums.ended:
            return False
        await self._begin_again()
        return self._queue.state == "running"

    async def _begin_again(self) -> bool:
        """Begin the next run. Return False if another worker has begun it already."""
        since = max(0.0, time() - self._keep_seen) if self._keep_seen else None
        return await self._queue.begin_again(since)

    async def _take_up(self) -> None:
        """Begin a finished crawl again if it is time, else warn that it is finished."""
        if not await self._queue.is_finished() or not self._queue.total:
            return
        seconds = await self._queue.finish()
        if seconds is None:  # another worker has begun it again
            return
        crawl, since = self._queue.address.crawl, datetime.now(UTC) - timedelta(seconds=seconds)
        words = {"crawl": crawl, "since": since.isoformat(" ", "minutes")}
        if self._again_after and seconds >= self._again_after:
            if await self._begin_again():
                logger.info(
                    "COMITY_STATE: crawl `%(crawl)s`, finished at %(since)s, begins again",
                    words,
                )
            return
        again = f"e.g. {DAY / 2:.0f} for a crawl each day"
        if self._again_after:
            again = f"it is {self._again_after:g} now"
        logger.warning(
            "COMITY_STATE: crawl `%(crawl)s` has been finished since %(since)s. Requests"
            " that it has seen are not made again. To crawl again: `comity frontier %(crawl)s"
            " --again`. To crawl again by time, set COMITY_AGAIN_AFTER to the seconds after which a"
            " finished crawl begins again (%(again)s). To forget the crawl: `comity frontier"
            " %(crawl)s --delete`",
            {**words, "again": again},
        )

    async def _agree(self) -> None:
        """Compare the settings of the crawl with those of this worker.

        PolicyError: a setting that decides differs. The log warns of other differences."""
        of_crawl = Agreement.from_json(await self._queue.agree(self._agreement.as_json()))
        name = self._queue.address.crawl
        if decisive := of_crawl.decisive(self._agreement):
            raise PolicyError(
                f"COMITY_STATE: this worker would decide differently from crawl `{name}`:"
                f" {'; '.join(map(str, decisive))}. Start it with the settings of the crawl, or"
                f" give the crawl these settings with `comity frontier {name} --reconfigure`"
            )
        if harmless := of_crawl.harmless(self._agreement):
            logger.warning(
                "COMITY_STATE: settings of this worker differ from those of crawl `%(crawl)s`:"
                " %(differences)s",
                {"crawl": name, "differences": "; ".join(map(str, harmless))},
            )

    async def _sweep(self) -> None:
        """Delete all data that earlier runs of the crawl have left on the server."""
        while not (self._queue.is_swept or self._is_lost):
            await self._try(self._queue.sweep())

    def begin(self, taker: Taker) -> None:
        self._hosts.taker = taker

    def put(self, origin: str, request: Request, fingerprint: bytes | None) -> int | None:
        assert self._spider
        if fingerprint is not None:
            self._fingerprints.add(fingerprint)
        try:
            body = pack(request, self._spider)
        except ValueError as error:
            logger.error(
                "COMITY_STATE: %(request)s waits in this process only, and is lost with it:"
                " %(reason)s",
                {"request": request, "reason": printable(str(error))},
            )
            return None
        self.is_finished = False
        return self._outbox.put(
            QueuedRequest(
                host_name(origin),
                fingerprint,
                self._queue.new_key(),
                request.priority,
                body,
                is_start=is_start(request),
            )
        )

    def _note_arrival(self) -> None:
        self.is_finished = False
        wake(self._crawler)

    def is_seen(self, fingerprint: bytes) -> bool:
        return fingerprint in self._fingerprints

    def get(self, key: int) -> Request:
        return self._hosts.get(key)

    def mark_through(self, key: int) -> None:
        self._hosts.mark_through(key)

    def mark_done(self, key: int) -> None:
        self._hosts.mark_done(key)

    def mark_seen(self, fingerprint: bytes) -> None:
        self._fingerprints.add(fingerprint)

    def set_aside(self, host: str) -> None:
        self._hosts.set_aside(host)

    async def tries(self, origin: str, since: float, due: float, *, here: int) -> int:
        try:
            return await self._queue.tries(origin, since, due)
        except OSError as error:
            self._complaints.log(f"{error}; tries of {origin} are counted in this process alone")
            return here

    def flush(self) -> None:
        """Do nothing: `_work` sends new requests."""

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            if not self._is_lost:
                await self._send()
                await self._set_unreadable_aside()
                await self._state.send()
                await self._counts.tell(now=True)
        finally:
            await self._queue.close([*self._hosts.by_name])

    # The tasks that run beside the scheduler

    async def _work(self) -> None:
        """Send news to the server and lease hosts while there is room, once each TICK."""
        while not self._is_lost:
            await self._try(self._set_unreadable_aside())
            if await self._try(self._send()) and not self._outbox.is_full:
                await self._try(self._refill())
            await asyncio.sleep(TICK)

    async def _refill(self) -> None:
        """Lease more hosts. Take over the state that their former workers have left."""
        if await self._share.refill() and self._state.is_used:
            await self._state.exchange()

    async def _send(self) -> None:
        if self._outbox.done:
            await self._state.send()
        await self._counts.tell(now=bool(self._outbox.done))
        await self._outbox.send(put=self._hosts.count_put)

    async def _set_unreadable_aside(self) -> None:
        await self._outbox.set_aside(told=self._hosts.changed.add)

    async def _renew(self) -> None:
        while not self._is_lost:
            await asyncio.sleep(self._queue.ttl / 3)
            await self._try(self._renew_now())

    async def _renew_now(self) -> None:
        for name in await self._queue.renew([*self._hosts.by_name]):
            logger.info(
                "COMITY_STATE: the lease of %(host)s has run out: other workers continue with it",
                {"host": name},
            )
            self._hosts.drop(name)
        if self._queue.is_redeployed and self._queue.state != "ended":
            await self._agree_again()
        if self._queue.state != "running":  # the crawl was paused or ended
            await self._queue.release(self._drop_hosts())
            if self._queue.state == "ended":
                await self._end_with_crawl()
        await self._state.exchange()

    async def _end_with_crawl(self) -> None:
        """End this worker for the reason for which the crawl is ended."""
        try:
            reason = (await self._queue.sums()).reason
        except OSError:  # the crawl was deleted, or the server is away
            reason = ""
        self._end(reason or ENDED)

    async def _limit(self) -> None:
        while not self._is_lost:
            await asyncio.sleep(LIMIT_AGAIN)
            await self._try(self._limit_now())

    async def _limit_now(self) -> None:
        sums = await self._queue.sums((ITEMS, PAGES, ERRORS))
        if self._queue.is_outdated:  # the counts are those of the next run
            return
        if sums.state == "ended":
            await self._end_with_crawl()
        elif reason := self._limits.reached(sums):
            logger.info("COMITY_STATE: the crawl ends: %(reason)s", {"reason": reason})
            await self._queue.set_state("ended", reason)
            await self._end_with_crawl()

    async def _agree_again(self) -> None:
        """End this worker if the crawl has settings now that decide differently."""
        try:
            await self._agree()
        except PolicyError as error:
            logger.error("%(error)s", {"error": error})
            self._end(RECONFIGURED, is_complete=False)

    def _end(self, reason: str, *, is_complete: bool = True) -> None:
        """End this worker. `is_complete`: False if pages are missing."""
        self.is_finished = True
        end(self._crawler, reason, is_complete=is_complete)

    def _lose(self, error: StateLostError) -> None:
        """End this worker with a finish reason of its own.

        Without requests, the crawl would look finished."""
        self._is_lost = True
        logger.critical(
            "COMITY_STATE: %(address)s has lost crawl `%(crawl)s`, or a part of it: %(why)s."
            " This worker ends, and pages are missing. Look for FLUSHALL, a server that began"
            " without its files, and its maxmemory-policy. Then begin the crawl again. Before that,"
            " delete the rest of it, if there is any, with `comity frontier %(crawl)s --delete`",
            {"address": self._queue.address, "crawl": self._queue.address.crawl, "why": error},
        )
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._drop_hosts()
        self._outbox.new.clear()
        self._end(LOST, is_complete=False)

    async def _bury(self) -> None:
        while not self._is_lost:
            await self._try(self._bury_now())
            await asyncio.sleep(BURY_AGAIN)

    async def _bury_now(self) -> None:
        with self._neighbours.dead() as workers:
            for worker in workers:
                await self._queue.bury(worker)
                logger.info(
                    "COMITY_STATE: %(worker)s is dead: other workers continue with its hosts",
                    {"worker": printable(worker)},
                )

    def _drop_hosts(self) -> list[str]:
        """Let other workers have all hosts of this worker, and return their names."""
        names = [*self._hosts.by_name]
        for name in names:
            self._hosts.drop(name)
        return names

    async def _look(self) -> None:
        while not self._is_lost:
            await asyncio.sleep(LOOK_AGAIN)
            if not (self._hosts.by_name or self._outbox.new or self._outbox.done):
                await self._try(self._look_now())

    async def _look_now(self) -> None:
        await self._queue.look(age=LOOK_AGE)
        if self._queue.left > self._queue.aside:
            self.is_finished = False
            return
        is_finished = await self._queue.is_finished() and await self._queue.finish() is not None
        self.is_finished = is_finished and not (self._hosts.by_name or self._outbox.new)
        if self.is_finished:
            if self._queue.aside:
                # The number of all workers.
                self._stats.set_value("comity/scheduler/set-aside", self._queue.aside)
            if self._queue.unreadable:
                logger.warning(
                    "COMITY_STATE: %(number)d requests could not be read, and are set aside:"
                    " `comity frontier %(crawl)s` lists them",
                    {"number": self._queue.unreadable, "crawl": self._queue.address.crawl},
                )
            wake(self._crawler)

    async def _try(self, step: Coroutine[Any, Any, None]) -> bool:
        """Carry out the step. False if it failed; the failure is logged, not raised."""
        try:
            await step
        except OSError as error:
            self._complaints.log(f"{error}; comity tries again")
            await asyncio.sleep(TICK)
            return False
        except StateLostError as error:
            self._lose(error)
            return False
        except Exception:  # a bug in one of the steps: the others go on
            logger.exception("COMITY_STATE: a step of the shared queue failed")
            await asyncio.sleep(LOOK_AGAIN)
            return False
        return True
