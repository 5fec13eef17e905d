"""The state that the workers of a crawl share on a server of Redis or Valkey.

It consists of requests, the pace of hosts, policy files, and the books of payments."""

from __future__ import annotations

from comity.cluster.address import SETTING
from comity.cluster.redis.address import StateAddress
from comity.cluster.steps.state import StepState
from comity.extras import required
from comity.policies import PolicyError

with required(SETTING, "redis", PolicyError):
    from comity.cluster.redis.books import RedisBooks
    from comity.cluster.redis.check import check_server
    from comity.cluster.redis.connection import StateConnection
    from comity.cluster.redis.store import RedisStore


class RedisState(StepState):
    """A worker's access to the shared state, or that of a command: see `SharedState`."""

    def __init__(self, url: str, crawl: str, *, ttl: float) -> None:
        """Prepare the connection.

        `url` and `crawl`: see `StateAddress.parse`. `ttl`: a worker counts as dead after so many
        seconds without a sign of life. PolicyError: the URL or the crawl's name is invalid."""
        self.address = StateAddress.parse(url, crawl)
        super().__init__(self.address, StateConnection(self.address), ttl)
        self._books: RedisBooks | None = None

    def check(self, *, is_dry: bool = False) -> list[str]:
        return check_server(self.address, sets_version=not is_dry)

    def store(self) -> RedisStore:
        return RedisStore(self.address)

    def books(self) -> RedisBooks:
        if self._books is None:
            self._books = RedisBooks(self.address)
        return self._books

    async def close(self) -> None:
        if self._books is not None:
            await self._books.disconnect()
        await super().close()
