"""The state that the workers of a crawl share in a database of PostgreSQL or SQLite.

It consists of requests, the pace of hosts, and policy files."""

from __future__ import annotations

import os
import secrets
import socket

from comity.cluster.neighbours import Neighbours
from comity.cluster.redis.address import SETTING, owner_of
from comity.cluster.redis.queue import RedisQueue
from comity.cluster.redis.turns import RedisTurns
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.check import check_database
from comity.cluster.sql.connection import SqlConnection, database_class
from comity.cluster.sql.store import SqlStore
from comity.extras import required
from comity.policies import PolicyError


class SqlState:
    """One worker's access to the shared state, or that of a command: see `SharedState`."""

    def __init__(self, url: str, crawl: str, *, ttl: float) -> None:
        """Prepare the connection.

        `url` and `crawl`: see `SqlAddress.parse`. `ttl`: a worker counts as dead after so many
        seconds without a sign of life. PolicyError: the URL or the crawl's name is invalid, or the
        extra `postgresql` is missing."""
        self.address = SqlAddress.parse(url, crawl)
        with required(SETTING, "sqlite", PolicyError):
            import msgpack  # noqa: F401  # requests are packed with it
        with required(SETTING, "postgresql", PolicyError):
            database_class(self.address)
        self._ttl = ttl
        self._connection = SqlConnection(self.address)
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(5)}"
        self.neighbours = Neighbours(f"{self.address} {crawl}", self._worker)

    def check(self, *, is_dry: bool = False) -> list[str]:
        return check_database(self.address, is_dry=is_dry)

    def queue(self) -> RedisQueue:
        return RedisQueue(self._connection, self._worker, self._ttl)

    def ledger(self) -> RedisTurns:
        return RedisTurns(self._connection, owner=owner_of(self._worker), owner_ttl=self._ttl)

    def store(self) -> SqlStore:
        return SqlStore(self.address)

    async def close(self) -> None:
        await self._connection.close()
        self.neighbours.vanish()
