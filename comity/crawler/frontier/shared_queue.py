"""The requests of a crawl by several workers.

They wait in COMITY_STATE. A worker holds the requests of the hosts that it has leased.

How it works. These steps run beside the scheduler, which waits for none of them:

    put      Each TICK, the new requests are sent to the server together. After the server has
             confirmed them, it is told that their parents are done.
    lease    While this worker has room, it leases hosts that are due, each with the first of its
             requests. It gets more requests of a host when few are left here. A host without
             requests is released.
    share    A worker leases its share of the hosts: the number of hosts divided by the number of
             workers. When it learns that its share has become smaller, it gives back the hosts
             beyond it.
    renew    Each third of TTL the leases are prolonged. If the lease of a host has run out by then,
             this worker forgets the host's requests.
    bury     The hosts of a dead worker of this machine go to other workers at once.
    finish   While no request waits here, the server is asked whether any request waits, or is out,
             anywhere.

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
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from comity.bounded import Bounded
from comity.cluster.connection import StateFullError
from comity.cluster.queue import (
    Lease,
    LeasedRequest,
    QueuedRequest,
    RedisQueue,
    Shard,
    StateLostError,
)
from comity.crawler.frontier.complaints import Complaints
from comity.crawler.frontier.queue import Taker
from comity.crawler.frontier.request_bodies import pack, unpack, url_of
from comity.crawler.scrapy_internals import end, wake
from comity.gate.fetching.freshness import DAY
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import host_name, origin_or_empty

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Request

    from comity.cluster.neighbours import Neighbours

logger = logging.getLogger(__name__)

TICK = 0.05  # seconds between two writes
HOSTS = 4096  # hosts that a worker leases at most
HOSTS_AT_ONCE = 64  # hosts in one lease: workers that begin together share evenly
# A worker gives hosts back only if it has over an eighth more than its share. Otherwise hosts would
# move to and fro.
SLACK = 8
REQUESTS = 32  # requests of a host that wait here at most
MAX_KNOWN = 100_000  # fingerprints that are known here, without asking the server
LEASE_EACH = 0.1  # seconds between two leases
LEASE_AGAIN = 0.25  # seconds until the next lease, if there was no host to lease
# Values of finish_reason: the crawl was ended by a command, or the server has lost requests.
ENDED, LOST = ("crawl_ended", "state_lost")
BALANCE_EACH = 1.0  # seconds between two looks at the share of this worker, while it leases no host
# A worker that has its full share leases a host only after it was free for so many seconds. By then
# the other workers had their chance, and are busy.
UNWANTED = 1.0
BURY_AGAIN = 0.25  # seconds between two looks for workers on this machine that are dead
LOOK_AGAIN = 1.0  # seconds between two looks whether the crawl is finished


@dataclass(slots=True)
class _Waiting:
    """A request that waits here, or is out."""

    host: str
    key: bytes  # of the request in the state, for all processes
    body: bytes


@dataclass(slots=True)
class _Host:
    """A host that is leased."""

    # All requests of the host here: those that wait, are out, or are in `through`.
    keys: set[int] = field(default_factory=set)
    # Requests that have ended. They are not done before their items are on the disk.
    through: set[int] = field(default_factory=set)
    waiting: int = 0  # requests in the state, as far as this worker knows
    is_leaving: bool = False  # True: it is given back when none of its requests is out here
    # Requests that a worker had out when it died. They leave this map when they are read.
    suspects: dict[int, LeasedRequest] = field(default_factory=dict)


class SharedQueue:
    """A Queue in COMITY_STATE, for several workers."""

    setting = "COMITY_STATE"
    is_shared = True
    has_begun = True  # another worker may have stored items before

    def __init__(
        self,
        crawler: Crawler,
        queue: RedisQueue,
        neighbours: Neighbours,
        *,
        rest: Callable[[str, float], object],
        most: int,
        again_after: float = 0.0,
    ) -> None:
        """Prepare the queue.

        Args:
            rest: called with a host and the seconds for which it gets no requests.
            most: this worker leases no more hosts while the crawl has more requests. 0: no limit.
            again_after: a crawl begins again if it has been finished for so many seconds. 0: it
                does not begin again."""
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._queue = queue
        self._neighbours = neighbours
        self._rest = rest
        self._most = most
        self._again_after = again_after
        self._spider: Spider | None = None
        self._numbers = count(1)
        self._requests: dict[int, _Waiting] = {}
        self._hosts: dict[str, _Host] = {}
        self._fingerprints: Bounded[bytes, None] = Bounded(MAX_KNOWN)
        queue.on_change(self._fingerprints.clear)
        self._new: dict[int, QueuedRequest] = {}  # requests that the next flush puts
        self._done: dict[str, list[bytes]] = {}  # host -> keys of done requests, for the next flush
        # Host -> keys of unreadable requests that are to be set aside, and the reasons.
        self._unreadable: dict[str, dict[bytes, str]] = {}
        # Held to read a request that has killed a worker. It is read alone, or other requests would
        # be suspected too.
        self._reading = asyncio.Lock()
        self.is_finished = False
        self._tasks: list[asyncio.Task[None]] = []
        self._changed_hosts: set[str] = set()  # hosts for `_look_after`
        self._maybe_aside: set[str] = set()  # hosts with some requests that were set aside
        self._lease_at = 0.0  # monotonic
        self._balance_at = 0.0
        self._keep_until = 0.0  # until then, this worker keeps the hosts beyond its share
        self._complaints = Complaints(self.setting)
        self._is_full = False
        self._is_lost = False  # True if the state is lost: nothing is written to it any more

    async def open(self, spider: Spider) -> None:
        self._spider = spider
        self._neighbours.appear()
        while True:
            try:
                await self._queue.open()
                await self._queue.renew([])  # from now on others count this worker
                if self._queue.state != "ended":
                    await self._take_up()
                await self._queue.recall()  # COMITY_MAX_DELAY may have changed
                if not self._queue.is_outdated:
                    break
            except OSError as error:  # the server was there when the process began
                self._complaints.log(f"{error}; comity tries again")
                await asyncio.sleep(TICK)
            except StateLostError as error:
                raise PolicyError(
                    f"COMITY_STATE: {self._queue.address} cannot be relied on: {error}"
                ) from None
        if self._queue.state == "ended":
            name = self._queue.address.crawl
            raise PolicyError(
                f"crawl `{name}` has been ended: resume it with `scrapy frontier {name} --resume`,"
                " or set COMITY_CRAWL to another name"
            )
        for task in (self._share(), self._renew(), self._bury(), self._look(), self._sweep()):
            self._tasks.append(asyncio.create_task(task))

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
            if await self._queue.begin_again():
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
            " that it has seen are not made again. To begin it again, with the known policies and"
            " pace, set COMITY_AGAIN_AFTER to the seconds after which a finished crawl begins"
            " again (%(again)s), or delete it with `scrapy frontier %(crawl)s --delete`",
            {**words, "again": again},
        )

    async def _sweep(self) -> None:
        """Delete all data that earlier runs of the crawl have left on the server."""
        while not (self._queue.is_swept or self._is_lost):
            await self._try(self._queue.sweep())

    def begin(self, taker: Taker) -> None:
        self._taker = taker

    def put(self, origin: str, request: Request, fingerprint: bytes | None) -> int | None:
        assert self._spider
        if fingerprint is not None:
            self._fingerprints[fingerprint] = None
        try:
            body = pack(request, self._spider)
        except ValueError as error:
            logger.error(
                "COMITY_STATE: %(request)s waits in this process only, and is lost with it:"
                " %(reason)s",
                {"request": request, "reason": printable(str(error))},
            )
            return None
        number = next(self._numbers)
        host = host_name(origin)
        self._new[number] = QueuedRequest(
            host, fingerprint, self._queue.new_key(), request.priority, body
        )
        self.is_finished = False
        return number

    def is_seen(self, fingerprint: bytes) -> bool:
        return fingerprint in self._fingerprints

    def get(self, key: int) -> Request:
        assert self._spider
        waiting = self._requests[key]
        try:
            return unpack(waiting.body, self._spider)
        except ValueError as error:
            self._set_unreadable(key, str(error))
            raise LookupError(
                f"a request to {waiting.host} cannot be read, and is set aside:"
                f" {printable(str(error))}"
            ) from error

    def _set_unreadable(self, key: int, why: str) -> None:
        waiting = self._requests.pop(key)
        self._unreadable.setdefault(waiting.host, {})[waiting.key] = why
        if host := self._hosts.get(waiting.host):
            host.keys.discard(key)
            self._changed_hosts.add(waiting.host)

    def mark_through(self, key: int) -> None:
        waiting = self._requests.get(key)
        if waiting is not None and (host := self._hosts.get(waiting.host)):
            host.through.add(key)
            self._changed_hosts.add(waiting.host)

    def mark_done(self, key: int) -> None:
        waiting = self._requests.pop(key, None)
        if waiting is not None:
            self._done.setdefault(waiting.host, []).append(waiting.key)
            if host := self._hosts.get(waiting.host):
                host.keys.discard(key)
                host.through.discard(key)
                self._changed_hosts.add(waiting.host)

    def mark_seen(self, fingerprint: bytes) -> None:
        self._fingerprints[fingerprint] = None

    def set_aside(self, host: str) -> None:
        self._maybe_aside.add(host)
        self._changed_hosts.add(host)

    async def tries(self, origin: str, since: float, due: float, *, here: int) -> int:
        try:
            return await self._queue.tries(origin, since, due)
        except OSError as error:
            self._complaints.log(f"{error}; tries of {origin} are counted in this process alone")
            return here

    def flush(self) -> None:
        """Do nothing: `_share` sends new requests."""

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            if not self._is_lost:
                await self._flush()
                await self._give_up()
        finally:
            await self._queue.close([*self._hosts])

    # The tasks that run beside the scheduler

    async def _share(self) -> None:
        """Send news to the server and lease hosts while there is room, once each TICK."""
        while not self._is_lost:
            await self._try(self._give_up())
            if await self._try(self._flush()) and not self._is_full:
                await self._try(self._refill())
            await asyncio.sleep(TICK)

    async def _flush(self) -> None:
        """Put the new requests, then tell the server which earlier requests are done.

        In this order no request is done before its children are there."""
        new, done = dict(self._new), self._done
        self._done = {}
        try:
            if new:
                answers = await self._queue.put([*new.values()])
                self._is_full = False
                for (number, row), is_new in zip(new.items(), answers, strict=True):
                    del self._new[number]
                    if not is_new:
                        self._stats.inc_value("dupefilter/filtered")
                    elif host := self._hosts.get(row.host):
                        host.waiting += 1
                        self._changed_hosts.add(row.host)
            failed = await _failures(
                {of_host: self._queue.ack(of_host, keys) for of_host, keys in done.items()}
            )
            done = {of_host: keys for of_host, keys in done.items() if of_host in failed}
            for error in failed.values():
                raise error
        except StateFullError:
            self._is_full = True
            raise
        finally:
            for of_host, keys in done.items():
                self._done[of_host] = [*keys, *self._done.get(of_host, ())]

    async def _give_up(self) -> None:
        """Set aside the requests that cannot be read."""
        for host, whys in [*self._unreadable.items()]:
            await self._queue.give_up(host, whys)
            del self._unreadable[host]
            self._changed_hosts.add(host)

    async def _refill(self) -> None:
        changed, self._changed_hosts = self._changed_hosts, set()
        failed = await _failures({name: self._look_after(name) for name in changed})
        self._changed_hosts.update(failed)
        for error in failed.values():
            raise error
        now = monotonic()
        if now >= (self._lease_at if self._taker.has_room else self._balance_at):
            self._lease_at, self._balance_at = now + LEASE_AGAIN, now + BALANCE_EACH
            shards = await self._queue.look()
            if not self._is_too_long():
                await self._balance(shards)
                if self._taker.has_room:
                    await self._lease(shards)

    def _is_too_long(self) -> bool:
        """Return True if the crawl has more than COMITY_MAX_WAITING requests.

        Then this worker leases no more hosts. It is never True for a worker without hosts, which
        would have no work."""
        if not (self._most and self._hosts) or self._queue.left <= self._most:
            return False
        self._complaints.log(
            f"{self._queue.left} requests wait or are out, and COMITY_MAX_WAITING is {self._most}:"
            " no more hosts are leased until fewer are left"
        )
        return True

    async def _balance(self, shards: Sequence[Shard]) -> None:
        """Give back hosts beyond this worker's share. Free hosts count as given back.

        A host with requests that are out is given back when they are done. Otherwise another
        worker would send them again."""
        self._changed_hosts.update(name for name, host in self._hosts.items() if host.is_leaving)
        staying = [name for name, host in self._hosts.items() if not host.is_leaving]
        excess = len(staying) - self._queue.share
        if excess <= max(1, self._queue.share // SLACK) or monotonic() < self._keep_until:
            return
        excess -= sum(shard.ready for shard in shards)
        busy = [
            name
            for name in staying
            if name in self._done or self._taker.waiting(name) < len(self._hosts[name].keys)
        ]
        free = list(set(staying).difference(busy))[: max(0, excess)]
        for name in free:
            self._drop(name)
        for name in busy[: max(0, excess - len(free))]:
            self._hosts[name].is_leaving = True
            self._changed_hosts.add(name)
        await self._queue.release(free)

    async def _lease(self, shards: Sequence[Shard]) -> None:
        """Lease hosts up to this worker's share.

        If it has its share, lease only hosts that have been free for UNWANTED seconds."""
        most = min(HOSTS_AT_ONCE, HOSTS - len(self._hosts))
        below = self._queue.share - len(self._hosts)
        if below > 0:
            leases = await self._queue.lease(min(most, below), REQUESTS, shards=shards)
        else:
            leases = await self._queue.lease(most, REQUESTS, unwanted=UNWANTED, shards=shards)
            if leases:
                self._keep_until = monotonic() + self._queue.ttl
        self._lease_at = monotonic() + (
            LEASE_EACH if leases else LEASE_AGAIN if below > 0 else BALANCE_EACH
        )
        for lease in leases:
            self._drop(lease.host)  # this worker may have had an earlier lease, which has ended
            self._hosts[lease.host] = _Host()
            self._arrive(lease)

    async def _look_after(self, name: str) -> None:
        """Get more requests of a host with few requests here. Release it if it has none."""
        host = self._hosts.get(name)
        if host is None:
            self._maybe_aside.discard(name)
            return
        if host.suspects and not host.is_leaving:
            await self._read(name, host)
            if self._hosts.get(name) is not host:  # the host was given back meanwhile
                return
        if host.is_leaving:
            for key in [*self._taker.forget(name), *host.suspects]:
                self._requests.pop(key, None)
                host.keys.discard(key)
            host.suspects.clear()
        elif name in self._maybe_aside and await self._is_given_back(name, host):
            return
        in_work = len(host.keys - host.through)
        if not host.is_leaving and host.waiting and in_work < REQUESTS // 2:
            lease = await self._queue.more(name, REQUESTS - in_work)
            if lease is None:
                self._drop(name)
            elif name in self._hosts:  # else the host was given back meanwhile, with these requests
                self._arrive(lease)
                if not lease.requests:  # the next requests are unreadable
                    self._changed_hosts.add(name)
        elif name in self._done or name in self._unreadable:
            # The next flush has to report requests of the host first. If it were released before,
            # they would go out again.
            self._changed_hosts.add(name)
        elif not host.keys and (host.is_leaving or not host.waiting):
            del self._hosts[name]
            # There is room for another host.
            self._lease_at = min(self._lease_at, monotonic() + LEASE_EACH)
            await self._queue.release(name)

    async def _is_given_back(self, name: str, host: _Host) -> bool:
        """Give the host back if all its requests are set aside and none is out.

        Return True if the host was given back."""
        aside = self._taker.aside(name)
        if aside is None:
            self._maybe_aside.discard(name)
            return False
        if self._taker.waiting(name) < len(host.keys) or name in self._done:
            return False  # the host is looked at again when its requests are done
        self._maybe_aside.discard(name)
        logger.warning(
            "COMITY_STATE: requests to %(host)s are set aside: %(why)s (COMITY_MAX_DELAY);"
            " it keeps them",
            {"host": name, "why": aside.reason},
        )
        self._drop(name)
        await self._queue.set_aside(name, aside.seconds)
        return True

    def _arrive(self, lease: Lease) -> None:
        host = self._hosts[lease.host]
        host.waiting = lease.waiting
        if lease.rests > 0:
            self._rest(lease.host, lease.rests)
        for entry in lease.requests:
            number = next(self._numbers)
            self._requests[number] = _Waiting(lease.host, entry.key, entry.body)
            host.keys.add(number)
            if entry.reads < 0:
                self._taker.receive(number, origin_or_empty(url_of(entry.body)), entry.priority)
            else:
                host.suspects[number] = entry
        if host.suspects:
            self._changed_hosts.add(lease.host)
        if lease.requests:
            self.is_finished = False
            wake(self._crawler)

    async def _read(self, name: str, host: _Host) -> None:
        """Read the requests that a worker had when it died, and let the readable ones arrive.

        The state is told before and after. If this worker dies in between, the next worker knows
        which of the requests may have killed it."""
        fresh = {number: entry for number, entry in host.suspects.items() if not entry.reads}
        alone = [{number: entry} for number, entry in host.suspects.items() if entry.reads]
        for group in filter(None, [fresh, *alone]):
            async with self._reading if group is not fresh else nullcontext():
                keys = [entry.key for entry in group.values()]
                await self._queue.read(name, keys, is_done=False)
                readable = {
                    number: self._is_readable(number)
                    for number in group
                    if number in self._requests
                }
                await self._queue.read(name, keys, is_done=True)
            for number, is_readable in readable.items():
                if host.suspects.pop(number, None) is not None and is_readable:
                    body = group[number].body
                    self._taker.receive(
                        number, origin_or_empty(url_of(body)), group[number].priority
                    )
        wake(self._crawler)

    def _is_readable(self, number: int) -> bool:
        try:
            self.get(number)
        except LookupError as error:
            self._stats.inc_value("comity/scheduler/unreadable")
            logger.error("COMITY_STATE: %(error)s", {"error": error})
            return False
        return True

    async def _renew(self) -> None:
        while not self._is_lost:
            await asyncio.sleep(self._queue.ttl / 3)
            await self._try(self._renew_now())

    async def _renew_now(self) -> None:
        for name in await self._queue.renew([*self._hosts]):
            logger.info(
                "COMITY_STATE: the lease of %(host)s has run out: other workers continue with it",
                {"host": name},
            )
            self._drop(name)
        if self._queue.state != "running":  # the crawl was paused or ended
            hosts = [*self._hosts]
            for name in hosts:
                self._drop(name)
            await self._queue.release(hosts)
            if self._queue.state == "ended":
                self._end(ENDED)

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
            " delete the rest of it, if there is any, with `scrapy frontier %(crawl)s --delete`",
            {"address": self._queue.address, "crawl": self._queue.address.crawl, "why": error},
        )
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        for name in [*self._hosts]:
            self._drop(name)
        self._new.clear()
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

    def _drop(self, name: str) -> None:
        """Let other workers have the host. Requests that are out stay out, and are done for all."""
        host = self._hosts.pop(name, None)
        if host is not None:
            for key in [*self._taker.forget(name), *host.suspects]:
                self._requests.pop(key, None)
            host.suspects.clear()

    async def _look(self) -> None:
        while not self._is_lost:
            await asyncio.sleep(LOOK_AGAIN)
            if not (self._hosts or self._new or self._done):
                await self._try(self._look_now())

    async def _look_now(self) -> None:
        is_finished = await self._queue.is_finished() and await self._queue.finish() is not None
        self.is_finished = is_finished and not (self._hosts or self._new)
        if self.is_finished:
            if self._queue.aside:
                # The number of all workers.
                self._stats.set_value("comity/scheduler/set-aside", self._queue.aside)
            if self._queue.unreadable:
                logger.warning(
                    "COMITY_STATE: %(number)d requests could not be read, and are set aside:"
                    " `scrapy frontier %(crawl)s` lists them",
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


async def _failures(calls: dict[str, Coroutine[Any, Any, None]]) -> dict[str, BaseException]:
    """Await calls together, and return the errors of those that failed, by name."""
    outcomes = await asyncio.gather(*calls.values(), return_exceptions=True)
    return {
        name: outcome
        for name, outcome in zip(calls, outcomes, strict=True)
        if isinstance(outcome, BaseException)
    }
