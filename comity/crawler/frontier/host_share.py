"""The share of the hosts that this worker leases.

While this worker has room, it leases hosts that are due, up to its share: the number of hosts
divided by the number of workers. When it learns that its share has become smaller, it gives back
the hosts beyond it. If a host is free although other workers had their chance, it leases more than
its share. One look at the crawl serves all workers for LOOK_AGE."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from comity.cluster.queue import Shard
from comity.cluster.state import CrawlQueue
from comity.crawler.frontier.complaints import Complaints
from comity.crawler.frontier.leased_hosts import REQUESTS, LeasedHosts
from comity.crawler.frontier.outbox import failures

HOSTS = 4096  # hosts that a worker leases at most
HOSTS_AT_ONCE = 64  # hosts in one lease: workers that begin together share evenly
# A worker gives hosts back only if it has over an eighth more than its share. Otherwise hosts would
# move to and fro.
SLACK = 8
LEASE_EACH = 0.1  # seconds between two leases
LEASE_AGAIN = 0.25  # seconds until the next lease, if there was no host to lease
LOOK_AGE = 0.5  # seconds for which the look of one worker serves all
BALANCE_EACH = 1.0  # seconds between two looks at the share of this worker, while it leases no host
# A worker that has its full share leases a host only after it was free for so many seconds. By then
# the other workers had their chance, and are busy.
UNWANTED = 1.0


class HostShare:
    """Leases hosts, looks after them, and gives them back, so that each worker has its share."""

    def __init__(
        self, queue: CrawlQueue, hosts: LeasedHosts, complaints: Complaints, *, most: int
    ) -> None:
        """`most`: no more hosts are leased while the crawl has more requests. 0: no limit."""
        self._queue = queue
        self._hosts = hosts
        self._complaints = complaints
        self._most = most
        # Moments in monotonic seconds.
        self._lease_at = 0.0
        self._balance_at = 0.0
        self._keep_until = 0.0  # until then, this worker keeps the hosts beyond its share

    async def refill(self) -> bool:
        """Look after the hosts that have changed, and lease more hosts if it is time.

        Return True if hosts were leased."""
        hosts = self._hosts
        changed, hosts.changed = hosts.changed, set()
        failed = await failures({name: self._look_after(name) for name in changed})
        hosts.changed.update(failed)
        for error in failed.values():
            raise error
        now = monotonic()
        if now >= (self._lease_at if hosts.taker.has_room else self._balance_at):
            self._lease_at, self._balance_at = now + LEASE_AGAIN, now + BALANCE_EACH
            shards = await self._queue.look(age=LOOK_AGE)
            if not self._is_too_long():
                await self._balance(shards)
                if hosts.taker.has_room:
                    return await self._lease(shards)
        return False

    async def _look_after(self, name: str) -> None:
        if await self._hosts.look_after(name):  # there is room for another host
            self._lease_at = min(self._lease_at, monotonic() + LEASE_EACH)

    def _is_too_long(self) -> bool:
        """Return True if the crawl has more than COMITY_MAX_WAITING requests.

        Then this worker leases no more hosts. It is never True for a worker without hosts, which
        would have no work."""
        if not (self._most and self._hosts.by_name) or self._queue.left <= self._most:
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
        hosts = self._hosts
        hosts.changed.update(name for name, host in hosts.by_name.items() if host.is_leaving)
        staying = [name for name, host in hosts.by_name.items() if not host.is_leaving]
        excess = len(staying) - self._queue.share
        if excess <= max(1, self._queue.share // SLACK) or monotonic() < self._keep_until:
            return
        excess -= sum(shard.ready for shard in shards)
        busy = [name for name in staying if hosts.is_busy(name)]
        free = list(set(staying).difference(busy))[: max(0, excess)]
        for name in free:
            hosts.drop(name)
        for name in busy[: max(0, excess - len(free))]:
            hosts.by_name[name].is_leaving = True
            hosts.changed.add(name)
        await self._queue.release(free)

    async def _lease(self, shards: Sequence[Shard]) -> bool:
        """Lease hosts up to this worker's share. Return True if any were leased.

        If it has its share, lease only hosts that have been free for UNWANTED seconds."""
        number = len(self._hosts.by_name)
        most = min(HOSTS_AT_ONCE, HOSTS - number)
        below = self._queue.share - number
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
            self._hosts.add(lease)
        return bool(leases)
