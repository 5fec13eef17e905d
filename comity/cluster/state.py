"""The state that the workers of a crawl share on a server of Redis or Valkey: requests, the pace of hosts, and policy files."""

from __future__ import annotations

import logging
import os
import secrets
import socket

from comity.cluster.address import StateAddress, owner_of
from comity.cluster.check import check_server
from comity.cluster.connection import Connection
from comity.cluster.neighbours import Neighbours
from comity.cluster.queue import RedisQueue
from comity.cluster.store import RedisStore
from comity.cluster.turns import RedisTurns

logger = logging.getLogger(__name__)


class SharedState:
    """The part of one worker of one crawl in it."""

    def __init__(self, url: str, crawl: str, *, ttl: float) -> None:
        """PolicyError where the URL or the name makes no sense. `ttl`: seconds without a sign of life after which a worker is
        taken for dead."""
        self.address = StateAddress.parse(url, crawl)
        self._ttl = ttl
        self._connection = Connection(self.address)
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(5)}"
        self.neighbours = Neighbours(self.address, self._worker)

    def check(self) -> None:
        """PolicyError, with what to do about it, where the server cannot be used."""
        for note in check_server(self.address):
            logger.warning("COMITY_STATE: %(note)s", {"note": note})

    def queue(self) -> RedisQueue:
        return RedisQueue(self._connection, self._worker, self._ttl)

    def ledger(self) -> RedisTurns:
        return RedisTurns(self._connection, owner=owner_of(self._worker), owner_ttl=self._ttl)

    def store(self) -> RedisStore:
        return RedisStore(self.address)

    async def close(self) -> None:
        """Close what the parts share, once they are closed."""
        await self._connection.close()
        self.neighbours.vanish()
