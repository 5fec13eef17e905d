"""The state that the workers of a crawl share on a server of Redis or Valkey.

It consists of requests, the pace of hosts, and policy files."""

from __future__ import annotations

import logging
import os
import secrets
import socket

from comity.cluster.neighbours import Neighbours
from comity.cluster.redis.address import StateAddress, owner_of
from comity.cluster.redis.check import check_server
from comity.cluster.redis.connection import StateConnection
from comity.cluster.redis.queue import RedisQueue
from comity.cluster.redis.store import RedisStore
from comity.cluster.redis.turns import RedisTurns

logger = logging.getLogger(__name__)


class SharedState:
    """One worker's access to the shared state. It makes the queue, the ledger and the store."""

    def __init__(self, url: str, crawl: str, *, ttl: float) -> None:
        """Prepare the connection.

        `url` and `crawl`: see `StateAddress.parse`. `ttl`: a worker counts as dead after so many
        seconds without a sign of life. PolicyError: the URL or the crawl's name is invalid."""
        self.address = StateAddress.parse(url, crawl)
        self._ttl = ttl
        self._connection = StateConnection(self.address)
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(5)}"
        self.neighbours = Neighbours(f"{self.address} {crawl}", self._worker)

    def check(self) -> None:
        """Check that the server can be used, and log warnings about its configuration.

        PolicyError: it cannot be used. The message contains the remedy."""
        for note in check_server(self.address):
            logger.warning("COMITY_STATE: %(note)s", {"note": note})

    def queue(self) -> RedisQueue:
        return RedisQueue(self._connection, self._worker, self._ttl)

    def ledger(self) -> RedisTurns:
        return RedisTurns(self._connection, owner=owner_of(self._worker), owner_ttl=self._ttl)

    def store(self) -> RedisStore:
        return RedisStore(self.address)

    async def close(self) -> None:
        """Close the connection. Close the queue, the ledger and the store before you call this."""
        await self._connection.close()
        self.neighbours.vanish()
