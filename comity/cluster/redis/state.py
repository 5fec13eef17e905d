"""The state that the workers of a crawl share on a server of Redis or Valkey.

It consists of requests, the pace of hosts, and policy files."""

from __future__ import annotations

import os
import secrets
import socket

from comity.cluster.neighbours import Neighbours
from comity.cluster.redis.address import SETTING, StateAddress, owner_of
from comity.extras import required
from comity.policies import PolicyError

with required(SETTING, "redis", PolicyError):
    from comity.cluster.redis.check import check_server
    from comity.cluster.redis.connection import StateConnection
    from comity.cluster.redis.queue import RedisQueue
    from comity.cluster.redis.store import RedisStore
    from comity.cluster.redis.turns import RedisTurns


class RedisState:
    """One worker's access to the shared state, or that of a command: see `SharedState`."""

    def __init__(self, url: str, crawl: str, *, ttl: float) -> None:
        """Prepare the connection.

        `url` and `crawl`: see `StateAddress.parse`. `ttl`: a worker counts as dead after so many
        seconds without a sign of life. PolicyError: the URL or the crawl's name is invalid."""
        self.address = StateAddress.parse(url, crawl)
        self._ttl = ttl
        self._connection = StateConnection(self.address)
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(5)}"
        self.neighbours = Neighbours(f"{self.address} {crawl}", self._worker)

    def check(self, *, is_dry: bool = False) -> list[str]:
        return check_server(self.address, sets_version=not is_dry)

    def queue(self) -> RedisQueue:
        return RedisQueue(self._connection, self._worker, self._ttl)

    def ledger(self) -> RedisTurns:
        return RedisTurns(self._connection, owner=owner_of(self._worker), owner_ttl=self._ttl)

    def store(self) -> RedisStore:
        return RedisStore(self.address)

    async def close(self) -> None:
        await self._connection.close()
        self.neighbours.vanish()
